/* See kept.h. */
#include "kept.h"

#include <string.h>

#include "../base/memory.h"

enum { JSON_BYTES = 1 << 22 };

/* Where the files are is no part of it. */
static bool is_kept(const struct option *row, const struct typed *typed) {
    bool given;
    memcpy(&given, (const char *)typed + row->given, sizeof given);
    return given && strcmp(row->name, "out") != 0 && strcmp(row->name, "resume") != 0 &&
           strcmp(row->name, "quiet") != 0;
}

void kept_put_settings(struct json_writer *json, const struct typed *typed, char *value) {
    json_open(json, "settings", '{');
    for (const struct option *row = run_options; row->name; row++) {
        if (!is_kept(row, typed)) continue;
        option_text(row, typed, value, CONFIG_VALUE_BYTES);
        json_text(json, row->name, value);
    }
    json_close(json, '}');
}

int kept_open(struct kept *kept, const char *folder, const char *name, struct error *error) {
    size_t bytes = 0;
    *kept = (struct kept){0};
    RETURN_IF(file_join(kept->path, folder, name, error));
    if (!file_exists(kept->path))
        return error_set(error, ERROR_FILE, "%s: found no %s, expected a folder that trainer %.*s wrote",
                         folder, file_is_folder(folder) ? name : "such folder", (int)strcspn(name, "."),
                         name);
    RETURN_IF(file_read_plain(kept->path, JSON_BYTES, &kept->text, &bytes, error));
    const int code = json_parse(&kept->json, kept->text, bytes, error);
    return code == OK ? OK : error_prefix(error, "%s: ", kept->path);
}

void kept_close(struct kept *kept) {
    json_free(&kept->json);
    memory_free(kept->text);
    *kept = (struct kept){0};
}

const struct json_value *kept_member(const struct kept *kept, const char *name, enum json_kind kind) {
    const struct json_value *value = json_member(&kept->json, kept->json.values, name);
    return value && value->kind == kind ? value : NULL;
}

int kept_bad(const struct kept *kept, const char *name, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: \"%s\" is missing, or is not what is written there", kept->path,
                     name);
}

int kept_whole(const struct kept *kept, const char *name, int least, int most, int *out,
               struct error *error) {
    const struct json_value *value = kept_member(kept, name, JSON_NUMBER);
    if (!value || !(value->number >= least && value->number <= most)) return kept_bad(kept, name, error);
    *out = (int)value->number;
    return OK;
}

int kept_word(const struct kept *kept, const char *name, const char *const *words, int count, int *out,
              struct error *error) {
    const struct json_value *value = kept_member(kept, name, JSON_TEXT);
    for (int i = 0; value && i < count; i++)
        if (strcmp(words[i], value->text) == 0) {
            *out = i;
            return OK;
        }
    return kept_bad(kept, name, error);
}

int kept_texts(const struct kept *kept, const char *name,
               int (*add)(void *to, const char *text, struct error *error), void *to, struct error *error) {
    const struct json_value *list = kept_member(kept, name, JSON_ARRAY);
    if (!list) return kept_bad(kept, name, error);
    for (int i = list->first; i >= 0; i = kept->json.values[i].next) {
        if (kept->json.values[i].kind != JSON_TEXT) return kept_bad(kept, name, error);
        RETURN_IF(add(to, kept->json.values[i].text, error));
    }
    return OK;
}

int kept_get_settings(const struct kept *kept, struct typed *typed, struct error *error) {
    const struct json_value *settings = kept_member(kept, "settings", JSON_OBJECT);
    if (!settings) return kept_bad(kept, "settings", error);
    for (int i = settings->first; i >= 0; i = kept->json.values[i].next) {
        const struct json_value *value = &kept->json.values[i];
        const struct option *row = option_find(run_options, value->name);
        struct error why = {0};
        if (!row || value->kind != JSON_TEXT) return kept_bad(kept, value->name, error);
        if (is_kept(row, typed)) continue;
        if (option_set(run_options, typed, kept->path, value->name, value->text, &why) != OK)
            return error_set(error, ERROR_FILE, "%s", why.words);
    }
    return OK;
}

int kept_check_typed(const struct typed *typed, const char *other, const char *what, const char *folder,
                     struct error *error) {
    const char *found = other ? other : typed->given.out ? "out" : NULL;
    for (const struct option *row = run_options; row->name && !found; row++)
        if (row->flags & (OPTION_AGREED | OPTION_SAVED) && is_kept(row, typed)) found = row->name;
    if (!found) return OK;
    return error_set(error, ERROR_USAGE, "--%s: expected none beside --resume: the %s in %.200s has its own",
                     found, what, folder);
}
