/* A page about one run, or about several side by side: one HTML file that needs nothing else, no network and
 * no script, for light and dark screens and for paper.
 *
 *     struct report report = {.runs = runs, .count = 1, .target_accuracy = NAN};
 *     facts_read(&runs[0], "runs/digits", FACTS_ALL, &error);
 *     report_write("runs/digits/report.html", &report, &error);
 *
 * Whoever knows more of a run than its files say, gives the page sections of its own. */
#ifndef TRAINER_REPORT_REPORT_H
#define TRAINER_REPORT_REPORT_H

#include "cells.h"
#include "facts.h"
#include "html.h"

/* A section that the caller writes, after those of the run. */
struct report_section {
    const char *id, *title; /* for links: letters and dashes; as it is read */
    /* Writes what stands under the title. */
    int (*write)(struct html *html, const void *self, struct error *error);
    const void *self;
};

struct report {
    struct facts *runs; /* [count] read; those of a group follow each other */
    int count;
    double from_s, length_s; /* of the timeline; NAN: from the first step on, and some steps of each worker */
    double target_accuracy;  /* of several runs: to be reached; NAN: what all of them reach */
    const struct cells *sweep; /* sweep.csv, whose runs they are; NULL or without rows: there is none */
    const struct report_section *more; /* [more_count] */
    int more_count;
};

/* Whether nothing is at `path`, or a page that was written here. Errors: ERROR_FILE: something else. */
int report_check_free(const char *path, struct error *error);
/* Writes `path` (temporary name, rename). Reads the steps of the timeline. Errors: ERROR_USAGE: from_s is
 * after the last step; ERROR_FILE; ERROR_DEVICE
 * (memory). */
int report_write(const char *path, struct report *report, struct error *error);

#endif
