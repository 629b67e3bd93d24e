/* Text for people to read, laid out for the width of their terminal: words wrapped in columns, commands that
 * can still be typed as they stand. */
#ifndef TRAINER_BASE_PAGE_H
#define TRAINER_BASE_PAGE_H

#include <stdio.h>
#include "text.h"

enum { PAGE_COLUMNS = 80, PAGE_COLUMNS_LEAST = 40 };
#define PAGE_VARIABLE "TRAINER_COLUMNS" /* instead of PAGE_COLUMNS: --hosts tells it those that it starts */

struct page {
    FILE *file;  /* borrowed */
    int columns; /* a line is at most so long, unless a single word is longer */
};

/* The columns of the terminal behind the file; PAGE_COLUMNS, or as PAGE_VARIABLE says, where there is none.
 */
int page_columns(FILE *file);

/* Where another process prints on a terminal what this one says: the columns that it has left for that, from
 * PAGE_VARIABLE; 0: there is none. */
int page_columns_told(void);

/* As wide as page_columns says, but at least PAGE_COLUMNS_LEAST. */
struct page page_on(FILE *file);

/* For rows that other programs read, too: without a terminal a line is as long as its words. */
struct page page_of_rows(FILE *file);

/* Adds the words of a text, which blanks separate: the first word at `column`, where the line stands already,
 * further lines from `indent` on. No newline at the end. */
void page_fold(struct text *out, int columns, int column, int indent, const char *words);

/* The same, written to the page with a newline at the end. */
void page_words(const struct page *page, int column, int indent, const char *words);

/* Two columns: `left`, and words from `indent` on; where `left` is too long, they begin on the next line. */
void page_row(const struct page *page, const char *left, int indent, const char *words);

/* Commands and comments (# ...), one per line, each indented. A command that is too long continues on the
 * next line behind a backslash, so that a shell takes it as it stands. */
void page_commands(const struct page *page, const char *lines);

#endif
