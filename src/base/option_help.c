/* Options shown: as help, in two columns, and as the text that sets them. */
#include "option.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the second column begins; on a page with few columns it is under the first. */
enum { HELP_INDENT = 26, NARROW_INDENT = 8, NARROW_COLUMNS = 72 };

static void write_sizes(const struct option_sizes *sizes, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (int i = 0; i < sizes->count; i++) text_item(&text, "x", "%d", sizes->at[i]);
}

void option_text(const struct option *row, const void *settings, char *out, size_t bytes) {
    const char *field = (const char *)settings + row->offset;
    bool flag;
    int number;
    long whole;
    double real;
    struct option_sizes sizes;
    switch (row->type) {
    case OPTION_FLAG:
        memcpy(&flag, field, sizeof flag);
        snprintf(out, bytes, "%d", flag ? 1 : 0);
        return;
    case OPTION_INT:
        memcpy(&number, field, sizeof number);
        if (row->flags & OPTION_AUTO && number == OPTION_AUTOMATIC)
            snprintf(out, bytes, "auto");
        else
            snprintf(out, bytes, "%d", number);
        return;
    case OPTION_LONG:
        memcpy(&whole, field, sizeof whole);
        snprintf(out, bytes, "%ld", whole);
        return;
    case OPTION_TEXT:
        snprintf(out, bytes, "%.*s", (int)row->bytes, field);
        return;
    case OPTION_REAL: /* the fewest digits that read back the same; 60 is no 6e+01 */
        memcpy(&real, field, sizeof real);
        for (int digits = fabs(real) < 1e6 && real == trunc(real) ? 6 : 1; digits <= 17; digits++) {
            snprintf(out, bytes, "%.*g", digits, real);
            const double back = strtod(out, NULL);
            if (memcmp(&back, &real, sizeof real) == 0) return;
        }
        return;
    case OPTION_SIZES:
        memcpy(&sizes, field, sizeof sizes);
        write_sizes(&sizes, out, bytes);
        return;
    case OPTION_CHOICE: {
        memcpy(&number, field, sizeof number);
        const char *choice = row->choices;
        for (; number > 0 && strchr(choice, '|') != NULL; number--) choice = strchr(choice, '|') + 1;
        snprintf(out, bytes, "%.*s", (int)strcspn(choice, "|"), choice);
        return;
    }
    }
}

const char *option_choices(const struct option *row, char *out, size_t bytes) {
    out[0] = '\0';
    if (row->type == OPTION_CHOICE)
        snprintf(out, bytes, "%s%s", row->flags & OPTION_AUTO ? "auto|" : "", row->choices);
    return out;
}

/* What stands for the value where the row does not say. */
static const char *usual_value(const struct option *row) {
    if (row->unit != NULL && strcmp(row->unit, "s") == 0) return "SECONDS";
    if (row->type == OPTION_SIZES && row->sizes > 1) return "NxN";
    return row->type == OPTION_TEXT ? "TEXT" : row->type == OPTION_REAL ? "X" : "N";
}

/* "also --job_name; default 32; 1 to 1000000", as far as the row says it. `said`: the default stands
 * elsewhere. */
static void note_words(const struct option *row, const char *prefix, bool all, bool said, char *out,
                       size_t bytes) {
    struct text notes = text_into(out, bytes);
    const bool is_number = row->type == OPTION_INT || row->type == OPTION_LONG || row->type == OPTION_REAL ||
                           row->type == OPTION_SIZES;
    const bool is_ranged = all && is_number && row->least < row->most;
    const bool is_flag = row->type == OPTION_FLAG;
    if (row->also != NULL) text_item(&notes, "; ", "also %s%s", prefix, row->also);
    if (row->fallback != NULL && row->fallback[0] != '\0' && !is_flag && !said)
        text_item(&notes, "; ", "default %s%s", row->flags & OPTION_RECIPE ? "the model's, or " : "",
                  row->fallback);
    if (row->fallback != NULL && strcmp(row->fallback, "1") == 0 && is_flag && prefix[0] != '-')
        text_item(&notes, "; ", "default on");
    if (is_ranged && row->most >= (double)INT_MAX) text_item(&notes, "; ", "%.12g or more", row->least);
    if (is_ranged && row->most < (double)INT_MAX)
        text_item(&notes, "; ", "%.12g to %.12g", row->least, row->most);
}

/* Where a help that ends in "(0: never)" says what its default, 0, means; else NULL. */
static const char *explains_default(const struct option *row) {
    const char *bracket = row->help != NULL ? strrchr(row->help, '(') : NULL;
    if (bracket == NULL || row->fallback == NULL || row->help[strlen(row->help) - 1] != ')') return NULL;
    const size_t length = strlen(row->fallback);
    return strncmp(bracket + 1, row->fallback, length) == 0 && bracket[1 + length] == ':' ? bracket + 1
                                                                                          : NULL;
}

void option_words(const struct option *row, const char *prefix, bool all, char left[OPTION_LEFT_BYTES],
                  char help[OPTION_HELP_BYTES]) {
    char notes[420], choices[OPTION_LEFT_BYTES];
    const bool has_dashes = prefix[0] == '-',
               is_on = row->fallback != NULL && strcmp(row->fallback, "1") == 0;
    const char *value = row->value != NULL           ? row->value
                        : row->type == OPTION_CHOICE ? option_choices(row, choices, sizeof choices)
                                                     : usual_value(row);
    if (row->type == OPTION_FLAG)
        snprintf(left, OPTION_LEFT_BYTES, "%s%s%s%s", prefix, has_dashes && is_on ? "no-" : "", row->name,
                 has_dashes ? "" : "=0|1");
    else
        snprintf(left, OPTION_LEFT_BYTES, "%s%s=%s%s", prefix, row->name,
                 row->flags & OPTION_AUTO && row->type != OPTION_CHOICE ? "auto|" : "", value);
    const char *words = row->help != NULL ? row->help : "", *explained = explains_default(row);
    const bool ends = words[0] != '\0' && words[strlen(words) - 1] == ')'; /* one pair of brackets, not two */
    struct text text = text_into(help, OPTION_HELP_BYTES);
    note_words(row, prefix, all, explained != NULL, notes, sizeof notes);
    if (explained != NULL)
        text_add(&text, "%.*sdefault %s", (int)(explained - words), words, explained);
    else
        text_add(&text, "%s", words);
    if (notes[0] == '\0') return;
    if (ends) help[--text.used] = '\0';
    text_add(&text, ends ? "; %s)" : " (%s)", notes);
}

static void print_row(const struct page *page, const struct option *row, const char *prefix, bool all) {
    char left[OPTION_LEFT_BYTES], help[OPTION_HELP_BYTES], indented[OPTION_LEFT_BYTES + 2];
    option_words(row, prefix, all, left, help);
    snprintf(indented, sizeof indented, "  %s", left);
    page_row(page, indented, page->columns < NARROW_COLUMNS ? NARROW_INDENT : HELP_INDENT, help);
}

int option_help(const struct page *page, const struct option *rows, const char *prefix, bool all) {
    const char *group = NULL;
    int left_out = 0;
    bool first = true;
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++) {
        if (option_is_absent(row)) continue;
        if (row->flags & OPTION_RARE && !all) {
            left_out++;
            continue;
        }
        if (row->group != NULL && (group == NULL || strcmp(row->group, group) != 0))
            fprintf(page->file, "%s%s:\n", first ? "" : "\n", row->group);
        group = row->group;
        first = false;
        print_row(page, row, prefix, all);
    }
    return left_out;
}
