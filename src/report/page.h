/* What the sections of a page are made of, and the two kinds of pages. */
#ifndef TRAINER_REPORT_PAGE_H
#define TRAINER_REPORT_PAGE_H

#include "../base/text.h"
#include "chart.h"
#include "report.h"

enum { LANES_MOST = 24, COMMAND_BYTES = 8192 + PLUGIN_TEXT_BYTES, TITLE_BYTES = 1200 };

/* One of a page. */
struct section {
    const char *id, *title;
    bool (*has)(const struct report *report); /* whether there is something to say; NULL: always */
    int (*write)(struct html *html, const struct report *report, struct error *error);
};
extern const struct section one_run_sections[], several_runs_sections[]; /* ended by {0} */

extern const char *const page_style[]; /* ended by NULL */

/* Tables: rows of cells, which become blocks of lines where the page is narrow. */
struct column {
    const char *head;
    bool words; /* not numbers: begins at the left */
};
struct table {
    struct html *html;
    const struct column *columns; /* [count] */
    int count, column;
};
struct table table_begin(struct html *html, const struct column *columns, int count);
void table_row(struct table *table); /* begins one */
__attribute__((format(printf, 2, 3))) void table_cell(struct table *table, const char *format, ...);
void table_end(struct table *table);

/* A figure that is read first. */
void page_tile(struct html *html, const char *value, const char *words);

/* Curves of epochs.csv. */
typedef double epoch_value(const struct epoch_row *row);
epoch_value value_epoch, value_seconds, value_train_loss, value_test_loss, value_test_score,
    value_validation_loss, value_validation_score;
int curve_of_epochs(struct curve *curve, const struct facts *facts, epoch_value *x, epoch_value *y,
                    struct error *error);
void curve_free(struct curve *curve);

/* "mlp on mnist" */
const char *facts_title(const struct facts *facts, char out[TITLE_BYTES]);
/* Of a setting: a line may end after a comma. */
void write_value(struct html *html, const char *value);
void write_settings(struct html *html, const struct facts *facts);
/* Adds a word of a command, in single quotes where a shell would take it apart. */
void command_word(struct text *out, const char *word);
/* The command that goes on with an interrupted run: what a checkpoint does not have is typed again. */
void command_resume(struct text *out, const struct facts *facts);
/* The command that runs it again, and what to know of such commands. */
int write_command(struct html *html, const struct facts *facts, struct error *error);
void write_command_note(struct html *html, const struct facts *facts);
/* The steps of all workers in the stretch that was read. */
void write_steps(struct html *html, const struct facts *facts);
void write_steps_note(struct html *html); /* the end of a paragraph */
/* The closing sentence of the run; "": there is none. */
const char *facts_sentence(const struct facts *facts, char *out, size_t bytes);

#endif
