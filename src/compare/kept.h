/* What a sweep or an ensemble was asked for, kept in its folder as a JSON file, from which it goes on. */
#ifndef TRAINER_COMPARE_KEPT_H
#define TRAINER_COMPARE_KEPT_H

#include "../base/json.h"
#include "../config/config.h"

struct kept {
    char path[PATH_BYTES];
    char *text; /* owned; what json points into */
    struct json json;
};

/* --- written --- */

/* The options of a run that were typed, but where its files are, as the member "settings". value:
 * [CONFIG_VALUE_BYTES] to work in. */
void kept_put_settings(struct json_writer *json, const struct typed *typed, char *value);

/* --- read --- */

/* Errors: ERROR_FILE: no such file, or no JSON. */
int kept_open(struct kept *kept, const char *folder, const char *name, struct error *error);
void kept_close(struct kept *kept); /* safe on a zeroed one */

/* A member of it, or NULL where it has none of this kind. */
const struct json_value *kept_member(const struct kept *kept, const char *name, enum json_kind kind);
/* The error for a member that is missing, or is not what it should be: ERROR_FILE. */
int kept_bad(const struct kept *kept, const char *name, struct error *error);
/* A whole number; one of words[count], as its place. Errors: ERROR_FILE. */
int kept_whole(const struct kept *kept, const char *name, int least, int most, int *out, struct error *error);
int kept_word(const struct kept *kept, const char *name, const char *const *words, int count, int *out,
              struct error *error);
/* The texts of a list, one by one. Errors: ERROR_FILE; those of `add`. */
int kept_texts(const struct kept *kept, const char *name,
               int (*add)(void *to, const char *text, struct error *error), void *to, struct error *error);
/* The options that were typed then go behind those that were typed now. */
int kept_get_settings(const struct kept *kept, struct typed *typed, struct error *error);

/* Refuses what may not be typed beside --resume: it says what is trained, or `other`, the name of an option
 * that was typed, or NULL. what: "sweep". Errors: ERROR_USAGE. */
int kept_check_typed(const struct typed *typed, const char *other, const char *what, const char *folder,
                     struct error *error);

#endif
