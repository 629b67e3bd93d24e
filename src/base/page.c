/* See page.h. */
#include "page.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WORDS_BYTES = 6000, COMMAND_INDENT = 2, CONTINUED_INDENT = 4 };

int page_columns_told(void) {
    const char *told = getenv(PAGE_VARIABLE);
    const long columns = told ? strtol(told, NULL, 10) : 0;
    return columns > 0 && columns <= USHRT_MAX ? (int)columns : 0;
}

int page_columns(FILE *file) {
    struct winsize size = {0};
    if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 1) return size.ws_col;
    const int told = page_columns_told();
    return told > 0 ? told : PAGE_COLUMNS;
}

struct page page_on(FILE *file) {
    const int columns = page_columns(file);
    return (struct page){.file = file,
                         .columns = columns < PAGE_COLUMNS_LEAST ? PAGE_COLUMNS_LEAST : columns};
}

struct page page_of_rows(FILE *file) {
    struct page page = page_on(file);
    if (!isatty(fileno(file))) page.columns = INT_MAX;
    return page;
}

static int word_length(const char *text) {
    const int length = (int)strcspn(text, " ");
    if (strncmp(text + length, " %", 2) != 0) return length;
    return length + 2 + (int)strcspn(text + length + 2, " "); /* a number stays with its unit */
}

void page_fold(struct text *out, int columns, int column, int indent, const char *words) {
    bool first = true;
    for (; *words == ' '; words++) continue;
    while (*words != '\0') {
        const int length = word_length(words);
        if (!first && column + 1 + length > columns) {
            text_add(out, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            text_add(out, " ");
            column++;
        }
        text_add_bytes(out, words, (size_t)length);
        column += length;
        first = false;
        for (words += length; *words == ' '; words++) continue;
    }
}

void page_words(const struct page *page, int column, int indent, const char *words) {
    char folded[WORDS_BYTES];
    struct text text = text_into(folded, sizeof folded);
    page_fold(&text, page->columns, column, indent, words);
    fprintf(page->file, "%s\n", folded);
}

void page_row(const struct page *page, const char *left, int indent, const char *words) {
    if ((int)strlen(left) + 2 > indent)
        fprintf(page->file, "%s\n%*s", left, indent, "");
    else
        fprintf(page->file, "%-*s", indent, left);
    page_words(page, indent, indent, words);
}

/* Up to the next blank that stands in no quotes. */
static int argument_length(const char *line) {
    int length = 0;
    for (char quote = '\0'; line[length] != '\0' && line[length] != '\n'; length++) {
        const char c = line[length];
        if (c == ' ' && quote == '\0') break;
        if (c == quote)
            quote = '\0';
        else if (quote == '\0' && (c == '\'' || c == '"'))
            quote = c;
    }
    return length;
}

static void print_command(const struct page *page, const char *line, size_t length) {
    const char *const end = line + length;
    int column = fprintf(page->file, "%*s", COMMAND_INDENT, "");
    for (bool first = true; line < end; first = false) {
        const int word = argument_length(line);
        const int backslash = line + word < end ? 2 : 0;
        if (!first && column + 1 + word + backslash > page->columns)
            column = fprintf(page->file, " \\\n%*s", CONTINUED_INDENT, "") - 3;
        else if (!first)
            column += fprintf(page->file, " ");
        column += fprintf(page->file, "%.*s", word, line);
        for (line += word; line < end && *line == ' '; line++) continue;
    }
    fputc('\n', page->file);
}

/* A comment of several lines has a # on each. */
static void print_comment(const struct page *page, const char *line, size_t length) {
    char words[WORDS_BYTES], folded[WORDS_BYTES];
    struct text text = text_into(folded, sizeof folded);
    const size_t skipped = strspn(line, "# ");
    snprintf(words, sizeof words, "%.*s", (int)(length - skipped), line + skipped);
    page_fold(&text, page->columns - COMMAND_INDENT - 2, 0, 0, words);
    for (const char *rest = folded; *rest != '\0'; rest += strspn(rest, "\n")) {
        const size_t end = strcspn(rest, "\n");
        fprintf(page->file, "%*s# %.*s\n", COMMAND_INDENT, "", (int)end, rest);
        rest += end;
    }
}

void page_commands(const struct page *page, const char *lines) {
    while (*lines != '\0') {
        for (; *lines == ' '; lines++) continue;
        const size_t length = strcspn(lines, "\n");
        if (*lines == '#')
            print_comment(page, lines, length);
        else if (length > 0)
            print_command(page, lines, length);
        lines += length + (lines[length] == '\n');
    }
}
