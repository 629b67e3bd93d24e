/* Options shown: as help, in two columns within HELP_COLUMNS, and as the text that sets them. */
#include "option.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMNS = 100, HELP_INDENT = 28 };

void option_text(const struct option *row, const void *settings, char *out, size_t bytes) {
    const char *field = (const char *)settings + row->offset;
    bool flag;
    int number;
    long whole;
    double real;
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
    case OPTION_REAL: /* the fewest digits that read back the same */
        memcpy(&real, field, sizeof real);
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(out, bytes, "%.*g", digits, real);
            const double back = strtod(out, NULL);
            if (memcmp(&back, &real, sizeof real) == 0) return;
        }
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

/* Writes words from `column` on, continuing on new lines that begin at HELP_INDENT. */
static void print_wrapped(FILE *file, const char *text, int column) {
    const char *word = text;
    while (*word != '\0') {
        const int length = (int)strcspn(word, " ");
        if (word != text && column + 1 + length > HELP_COLUMNS) {
            fprintf(file, "\n%*s", HELP_INDENT, "");
            column = HELP_INDENT;
        } else if (word != text) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", length, word);
        column += length;
        word += length + (word[length] == ' ');
    }
    fputc('\n', file);
}

/* "also --job_name; default 32; 1 to 1000000 examples", as far as the row says it. */
static void note_words(const struct option *row, const char *prefix, char *out, size_t bytes) {
    char range[96] = "", fallback[160] = "", also[96] = "";
    const bool is_number = row->type == OPTION_INT || row->type == OPTION_LONG || row->type == OPTION_REAL;
    const bool is_ranged = is_number && row->least < row->most;
    if (is_ranged && row->most >= (double)INT_MAX) snprintf(range, sizeof range, "%.12g or more", row->least);
    if (is_ranged && row->most < (double)INT_MAX)
        snprintf(range, sizeof range, "%.12g to %.12g", row->least, row->most);
    if (row->fallback != NULL && row->fallback[0] != '\0' && row->type != OPTION_FLAG)
        snprintf(fallback, sizeof fallback, "default %s%s",
                 row->flags & OPTION_RECIPE ? "the model's, or " : "", row->fallback);
    if (row->fallback != NULL && strcmp(row->fallback, "1") == 0 && row->type == OPTION_FLAG)
        snprintf(fallback, sizeof fallback, "default on");
    const char *unit = row->unit != NULL ? row->unit : "";
    const char *between = fallback[0] != '\0' && (range[0] != '\0' || unit[0] != '\0') ? "; " : "";
    const char *space = range[0] != '\0' && unit[0] != '\0' ? " " : "";
    if (row->also != NULL)
        snprintf(also, sizeof also, "also %s%s%s", prefix, row->also,
                 fallback[0] != '\0' || range[0] != '\0' || unit[0] != '\0' ? "; " : "");
    snprintf(out, bytes, "%s%s%s%s%s%s", also, fallback, between, range, space, unit);
}

static void print_row(FILE *file, const struct option *row, const char *prefix) {
    char left[160], notes[420], text[900];
    const bool has_dashes = prefix[0] == '-',
               is_on = row->fallback != NULL && strcmp(row->fallback, "1") == 0;
    const char *value = row->type == OPTION_TEXT ? "TEXT" : row->type == OPTION_REAL ? "X" : "N";
    if (row->type == OPTION_FLAG)
        snprintf(left, sizeof left, "  %s%s%s%s", prefix, has_dashes && is_on ? "no-" : "", row->name,
                 has_dashes ? "" : "=0|1");
    else
        snprintf(left, sizeof left, "  %s%s=%s%s", prefix, row->name, row->flags & OPTION_AUTO ? "auto|" : "",
                 row->type == OPTION_CHOICE ? row->choices : value);
    note_words(row, prefix, notes, sizeof notes);
    const char *help = row->help != NULL ? row->help : "";
    const size_t length = strlen(help);
    if (notes[0] == '\0')
        snprintf(text, sizeof text, "%s", help);
    else if (length > 0 && help[length - 1] == ')') /* one pair of brackets, not two */
        snprintf(text, sizeof text, "%.*s; %s)", (int)length - 1, help, notes);
    else
        snprintf(text, sizeof text, "%s (%s)", help, notes);
    const int width = (int)strlen(left);
    if (width + 1 >= HELP_INDENT)
        fprintf(file, "%s\n%*s", left, HELP_INDENT, "");
    else
        fprintf(file, "%-*s", HELP_INDENT, left);
    print_wrapped(file, text, HELP_INDENT);
}

void option_help(FILE *file, const struct option *rows, const char *prefix) {
    const char *group = NULL;
    for (const struct option *row = rows; row != NULL && row->name != NULL; row++) {
        if (row->flags & OPTION_ABSENT) continue;
        if (row->group != NULL && (group == NULL || strcmp(row->group, group) != 0))
            fprintf(file, "%s%s:\n", row == rows ? "" : "\n", row->group);
        group = row->group;
        print_row(file, row, prefix);
    }
}
