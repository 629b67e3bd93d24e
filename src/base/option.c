/* Options: values read strictly (the whole text, in range) and written back, all from the rows. */
#include "option.h"
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "file.h"
#include "text.h"

enum { WORDS_BYTES = 200, NAMES_MOST = 127, NAME_MOST = 63 };

/* --- names --- */

/* `job_name` is `job-name`: both are typed. */
static bool same_name(const char *a, const char *b) {
    for (; *a != '\0' && *b != '\0'; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_'))) return false;
    return *a == *b;
}

static bool is_named(const struct option *row, const char *name) {
    return same_name(row->name, name) || (row->also != NULL && same_name(row->also, name));
}

const struct option *option_find(const struct option *rows, const char *name) {
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++)
        if (!option_is_absent(row) && is_named(row, name)) return row;
    return NULL;
}

/* The row of that name that this build cannot have, or NULL. */
static const struct option *find_absent(const struct option *rows, const char *name) {
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++)
        if (option_is_absent(row) && is_named(row, name)) return row;
    return NULL;
}

static int least_of(int a, int b, int c) {
    return a < b ? (a < c ? a : c) : (b < c ? b : c);
}

/* Insertions, deletions, substitutions and swaps of neighbours that lead from a to b ("optimal string
 * alignment"). Both at most NAME_MOST long. */
static int edit_distance(const char *a, const char *b) {
    const int a_length = (int)strlen(a), b_length = (int)strlen(b);
    int line[3]
            [NAME_MOST + 1]; /* the row before the last, the last, this one; indexed by what is used of b */
    int *before = line[0], *last = line[1], *now = line[2];
    for (int j = 0; j <= b_length; j++) now[j] = j;
    for (int i = 1; i <= a_length; i++) {
        int *const free_line = before;
        before = last;
        last = now;
        now = free_line;
        now[0] = i;
        for (int j = 1; j <= b_length; j++) {
            now[j] = least_of(last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
    }
    return now[b_length];
}

const char *option_nearest(const char *typed, const char *const *names) {
    const size_t length = strlen(typed);
    char name[NAME_MOST + 1];
    if (length == 0 || length > NAME_MOST) return NULL;
    for (size_t i = 0; i <= length; i++) name[i] = (char)tolower((unsigned char)typed[i]);
    const char *nearest = NULL;
    int least = length < 5 ? 1 : length < 9 ? 2 : 3; /* more slips than these are another word */
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strlen(names[i]) > NAME_MOST) continue;
        int distance = edit_distance(name, names[i]);
        if (length >= 3 && strncmp(name, names[i], length) == 0) distance = 0; /* only cut short */
        if (distance > least || (size_t)distance >= length) continue;
        if (nearest != NULL && distance == least) continue; /* of equally near ones the first */
        nearest = names[i];
        least = distance;
    }
    return nearest;
}

/* What others call so, where these rows have what it is here; else NULL. */
static const char *instead_of(const struct option *rows, const char *name, const char *value, char *out,
                              size_t bytes) {
    char own[NAME_MOST + 1];
    if (habit_instead("option", name, value, out, bytes) == NULL) return NULL;
    if (strncmp(out, "trainer ", 8) == 0) return out; /* another command's */
    snprintf(own, sizeof own, "%.*s", (int)strcspn(out + 2, "="), out + 2);
    return option_find(rows, own) != NULL ? out : NULL;
}

/* The option as it is to be typed: "--batch=64". value: as typed, or NULL. */
static const char *spelled(const struct option *row, const char *value, char *out, size_t bytes) {
    const bool is_bare = row->type == OPTION_FLAG && value == NULL;
    snprintf(out, bytes, "--%s%s%.100s", row->name, is_bare ? "" : "=",
             is_bare         ? ""
             : value != NULL ? value
                             : "...");
    return out;
}

static int absent_name(const struct option *row, const char *owner, struct error *error) {
    return error_set(error, ERROR_USAGE, "%s%s%s: needs a build with %s", owner, owner[0] == '-' ? "" : ": ",
                     row->name, row->needs);
}

/* As the widths of `mlp` do, too, which are a text. */
static bool takes_number(const struct option *row) {
    return row->type == OPTION_REAL || row->type == OPTION_INT ||
           (row->type == OPTION_TEXT && row->fallback != NULL && isdigit((unsigned char)row->fallback[0]));
}

/* Whether `text`, which is no setting's name, may be meant as the value of this one. */
static bool may_be_value(const struct option *row, const char *text) {
    if (row->type != OPTION_CHOICE) {
        const double number = atof(text);
        const bool fits = row->least >= row->most || (number >= row->least && number <= row->most);
        return isdigit((unsigned char)text[0]) && takes_number(row) && fits;
    }
    for (const char *choice = row->choices; choice != NULL; choice = strchr(choice, '|')) {
        if (*choice == '|') choice++;
        if (strcspn(choice, "|") == strlen(text) && strncmp(choice, text, strlen(text)) == 0) return true;
    }
    return false;
}

static int unknown_name(const struct option *rows, const char *owner, const char *name, const char *value,
                        struct error *error) {
    const char *names[NAMES_MOST + 1] = {0};
    int count = 0;
    for (const struct option *row = rows; row != NULL && row->name != NULL && count < NAMES_MOST; row++)
        if (!option_is_absent(row)) names[count++] = row->name;
    const char *nearest = option_nearest(name, names);
    const bool typed_with_dashes = owner[0] == '-';
    char meant[WORDS_BYTES];
    const struct option *absent = find_absent(rows, name);
    if (absent != NULL) return absent_name(absent, owner, error);
    if (typed_with_dashes && instead_of(rows, name, value, meant, sizeof meant) != NULL)
        return error_set(error, ERROR_USAGE, "unknown option \"--%s\"; did you mean %s?%s", name, meant,
                         strstr(meant, "=gpu:") && !TRAINER_CUDA ? " (needs a build with CUDA)" : "");
    if (typed_with_dashes && nearest != NULL)
        return error_set(error, ERROR_USAGE, "unknown option \"--%s\"; did you mean %s?", name,
                         spelled(option_find(rows, nearest), value, meant, sizeof meant));
    if (typed_with_dashes)
        return error_set(error, ERROR_USAGE, "unknown option \"--%s\"; --help=all lists them", name);
    if (nearest != NULL)
        return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; did you mean \"%s\"?", owner, name,
                         nearest);
    if (habit_instead("setting", name, NULL, meant, sizeof meant) != NULL && option_find(rows, meant) != NULL)
        return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; did you mean \"%s\"?", owner, name,
                         meant);
    const char *path = file_is_folder(name) ? "dir" : file_exists(name) || strchr(name, '/') ? "file" : NULL;
    if (value == NULL && path != NULL && option_find(rows, path) != NULL)
        return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; did you mean \"%s=%s\"?", owner,
                         name, path, name);
    if (value == NULL && count > 0 && may_be_value(rows, name))
        return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; did you mean \"%s=%s\"?", owner,
                         name, rows->name, name);
    char list[WORDS_BYTES];
    struct text text = text_into(list, sizeof list);
    for (int i = 0; i < count; i++) text_item(&text, ", ", "%s", names[i]);
    if (text.cut)
        return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; trainer --help=all lists them",
                         owner, name);
    return error_set(error, ERROR_USAGE, "%s: unknown setting \"%s\"; %s%s", owner, name,
                     count == 0 ? "it has none" : "its settings are ", list);
}

/* --- values --- */

/* What a row accepts, in words: "a whole number, 1 to 1000000 examples". `above`: what was typed is more. */
static void expected_words(const struct option *row, bool is_number, bool above, char *out, size_t bytes) {
    char range[96] = "";
    if (row->least < row->most && row->most >= (double)INT_MAX && above)
        snprintf(range, sizeof range, "at most %.15g", row->most);
    else if (row->least < row->most && row->most >= (double)INT_MAX)
        snprintf(range, sizeof range, "%.12g or more", row->least);
    else if (row->least < row->most)
        snprintf(range, sizeof range, "%.12g to %.12g", row->least, row->most);
    const char *kind = is_number ? "" : row->type == OPTION_REAL ? "a number" : "a whole number";
    if (is_number && range[0] == '\0')
        kind = row->type == OPTION_REAL ? "a smaller number" : "a smaller whole number";
    snprintf(out, bytes, "%s%s%s%s%s%s", kind, kind[0] != '\0' && range[0] != '\0' ? ", " : "", range,
             row->unit != NULL ? " " : "", row->unit != NULL ? row->unit : "",
             row->flags & OPTION_AUTO ? ", or auto" : "");
}

static int bad_value(const struct option *row, const char *owner, const char *value, const char *expected,
                     struct error *error) {
    if (owner[0] == '-')
        return error_set(error, ERROR_USAGE, "--%s=%.200s: expected %s", row->name, value, expected);
    return error_set(error, ERROR_USAGE, "%s: %s=%.200s: expected %s", owner, row->name, value, expected);
}

/* strtol and strtod skip blanks and know words ("inf") and hexadecimal digits: none of these is a setting. */
static bool has_only(const char *value, const char *allowed) {
    return value[0] != '\0' && value[strspn(value, allowed)] == '\0';
}

static int set_number(const struct option *row, void *field, const char *owner, const char *value,
                      struct error *error) {
    char *end = NULL;
    double real = 0;
    long whole = 0;
    bool is_number, fits;
    errno = 0;
    if (row->type == OPTION_REAL) {
        real = strtod(value, &end);
        is_number = has_only(value, "0123456789+-.eE") && *end == '\0';
        fits = isfinite(real);
    } else {
        whole = strtol(value, &end, 10);
        real = (double)whole;
        is_number = has_only(value, "0123456789+-") && *end == '\0';
        fits = errno == 0 && (row->type == OPTION_LONG || (whole >= INT_MIN && whole <= INT_MAX));
    }
    if (row->least < row->most) fits = fits && real >= row->least && real <= row->most;
    if (!is_number || !fits) {
        char words[WORDS_BYTES];
        expected_words(row, is_number, is_number && real > row->most, words, sizeof words);
        return bad_value(row, owner, value, words, error);
    }
    const int narrow = (int)whole;
    if (row->type == OPTION_REAL) memcpy(field, &real, sizeof real);
    if (row->type == OPTION_LONG) memcpy(field, &whole, sizeof whole);
    if (row->type == OPTION_INT) memcpy(field, &narrow, sizeof narrow);
    return OK;
}

static int set_flag(const struct option *row, void *field, const char *owner, const char *value,
                    struct error *error) {
    const char *const words[] = {"0", "1", "no", "yes", "false", "true", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const bool set = i % 2 == 1;
        if (strcmp(value, words[i]) != 0) continue;
        memcpy(field, &set, sizeof set);
        return OK;
    }
    return bad_value(row, owner, value, "0 or 1", error);
}

static int set_choice(const struct option *row, void *field, const char *owner, const char *value,
                      struct error *error) {
    int position = 0;
    for (const char *choice = row->choices;; position++) {
        const size_t length = strcspn(choice, "|");
        const char letter[2] = {row->letters ? row->letters[position] : '\0'};
        if ((strlen(value) == length && strncmp(value, choice, length) == 0) ||
            (*letter && strcmp(value, letter) == 0)) {
            memcpy(field, &position, sizeof position);
            return OK;
        }
        if (choice[length] == '\0') break;
        choice += length + 1;
    }
    if (row->needs != NULL && row->lacking != NULL && strcmp(value, row->lacking) == 0)
        return error_set(error, ERROR_USAGE, "%s%s%s=%s: needs a build with %s", owner,
                         owner[0] == '-' ? "" : ": ", row->name, value, row->needs);
    char words[WORDS_BYTES], choices[WORDS_BYTES - 8], meant[WORDS_BYTES];
    if (owner[0] == '-' && habit_instead(row->name, value, NULL, meant, sizeof meant) != NULL)
        return error_set(error, ERROR_USAGE, "--%s=%.100s: did you mean %s? (one of %s)", row->name, value,
                         meant, option_choices(row, choices, sizeof choices));
    snprintf(words, sizeof words, "one of %s", option_choices(row, choices, sizeof choices));
    return bad_value(row, owner, value, words, error);
}

static int set_text(const struct option *row, void *field, const char *owner, const char *value,
                    struct error *error) {
    const size_t length = strlen(value);
    assert(row->bytes > 0);
    if (length >= row->bytes) {
        char words[WORDS_BYTES];
        snprintf(words, sizeof words, "at most %zu characters, found %zu", row->bytes - 1, length);
        return bad_value(row, owner, value, words, error);
    }
    memset(field, 0, row->bytes);
    memcpy(field, value, length);
    return OK;
}

/* Strictly: digits, an 'x' between any two of them, none before or after. */
static int set_sizes(const struct option *row, void *field, const char *owner, const char *value,
                     struct error *error) {
    struct option_sizes sizes = {0};
    const char *at = value;
    bool good = has_only(value, "0123456789-x") && row->sizes <= SIZES_MOST;
    while (good) {
        char *end = NULL;
        errno = 0;
        const long size = strtol(at, &end, 10);
        good = end != at && errno == 0 && (double)size >= row->least && (double)size <= row->most &&
               sizes.count < row->sizes && (*end == 'x' || *end == '\0');
        if (good) sizes.at[sizes.count++] = (int)size;
        if (!good || *end == '\0') break;
        at = end + 1;
    }
    if (good) {
        memcpy(field, &sizes, sizeof sizes);
        return OK;
    }
    char words[WORDS_BYTES];
    if (row->sizes > 1)
        snprintf(words, sizeof words, "up to %d whole numbers joined by 'x', each %.12g to %.12g", row->sizes,
                 row->least, row->most);
    else
        snprintf(words, sizeof words, "a whole number, %.12g to %.12g", row->least, row->most);
    return bad_value(row, owner, value, words, error);
}

static int set_value(const struct option *row, void *field, const char *owner, const char *value,
                     struct error *error) {
    switch (row->type) {
    case OPTION_FLAG:
        return set_flag(row, field, owner, value, error);
    case OPTION_CHOICE:
        return set_choice(row, field, owner, value, error);
    case OPTION_TEXT:
        return set_text(row, field, owner, value, error);
    case OPTION_SIZES:
        return set_sizes(row, field, owner, value, error);
    case OPTION_INT:
    case OPTION_LONG:
    case OPTION_REAL:
        return set_number(row, field, owner, value, error);
    }
    return error_set(error, ERROR_INTERNAL, "%s: option without a type", row->name);
}

static size_t field_bytes(const struct option *row) {
    switch (row->type) {
    case OPTION_FLAG:
        return sizeof(bool);
    case OPTION_LONG:
        return sizeof(long);
    case OPTION_REAL:
        return sizeof(double);
    case OPTION_TEXT:
        return row->bytes;
    case OPTION_SIZES:
        return sizeof(struct option_sizes);
    case OPTION_INT:
    case OPTION_CHOICE:
        break;
    }
    return sizeof(int);
}

static void set_given(const struct option *row, void *settings, bool given) {
    if (row->given > 0) memcpy((char *)settings + row->given, &given, sizeof given);
}

static void set_default(const struct option *row, void *settings) {
    char *field = (char *)settings + row->offset;
    const double no_number = NAN; /* told apart from a 0 that was given */
    const int automatic = OPTION_AUTOMATIC;
    memset(field, 0, field_bytes(row));
    set_given(row, settings, false);
    if (row->fallback == NULL && row->type == OPTION_REAL) memcpy(field, &no_number, sizeof no_number);
    if (row->fallback == NULL && row->type == OPTION_INT && row->flags & OPTION_AUTO)
        memcpy(field, &automatic, sizeof automatic);
    if (row->fallback == NULL) return;
    struct error error = {0};
    const int code = set_value(row, field, "default", row->fallback, &error);
    assert(code == OK && "a default must be a value that could be typed");
    (void)code;
}

void option_defaults(const struct option *rows, void *settings) {
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++) set_default(row, settings);
}

int option_set(const struct option *rows, void *settings, const char *owner, const char *name,
               const char *value, struct error *error) {
    const struct option *row = option_find(rows, name);
    if (row == NULL) return unknown_name(rows, owner, name, value, error);
    if (value == NULL && row->type == OPTION_FLAG) value = "1";
    /* An empty text is an unset variable of the shell, not a wish. */
    if (value != NULL && value[0] == '\0' && row->type == OPTION_TEXT) value = NULL;
    if (value == NULL && owner[0] == '-')
        return error_set(error, ERROR_USAGE, "--%s: a value is missing, expected --%s=...", row->name,
                         row->name);
    if (value == NULL)
        return error_set(error, ERROR_USAGE, "%s: %s: a value is missing, expected %s=...", owner, row->name,
                         row->name);
    if (row->flags & OPTION_AUTO && strcmp(value, "auto") == 0) {
        set_default(row, settings);
        return OK;
    }
    RETURN_IF(set_value(row, (char *)settings + row->offset, owner, value, error));
    set_given(row, settings, true);
    return OK;
}
