/* Progress on standard error: a bar on a terminal, plain lines elsewhere, nothing when quiet. Called by the coordinator alone. */
#ifndef TRAINER_OUTPUT_PROGRESS_H
#define TRAINER_OUTPUT_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

struct progress {
    FILE *file;          /* NULL: quiet */
    bool terminal;       /* a bar, redrawn in place */
    double next_s;       /* when to show again */
    bool shown;          /* a bar stands on the current line */
};

void progress_open(struct progress *progress, FILE *file, bool quiet);
/* done and total examples, seconds of training so far, newest loss (NAN: none yet). Draws at most 10 times a second (terminal) or every 10 s (elsewhere). */
void progress_show(struct progress *progress, double done, double total, double seconds, int epoch, int epochs, double loss);
/* Clears the bar, so that another line can be printed. */
void progress_clear(struct progress *progress);
/* A log line on the same stream, "trainer: ..."; clears the bar first. */
__attribute__((format(printf, 2, 3))) void progress_say(struct progress *progress, const char *format, ...);

#endif
