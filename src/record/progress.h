/* Progress on standard error: a bar on a terminal, plain lines elsewhere, nothing when quiet. Called by the
 * coordinator alone. A reader who takes nothing gets no progress, and costs a log line a second at most.
 *
 *   epoch 3/20 [=====>    ] 45 %  123,456 examples/s  loss 0.3123  12 s left
 *
 * On a narrow terminal the rate is shortened, and pieces go: bar, epoch, rate, loss, time left. No colours;
 * control characters on a terminal only. */
#ifndef TRAINER_RECORD_PROGRESS_H
#define TRAINER_RECORD_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>

enum { PROGRESS_BYTES = 1100 };

struct progress {
    FILE *file;    /* borrowed; NULL: quiet */
    FILE *always;  /* the same, also when quiet */
    bool terminal; /* a bar, redrawn in place */
    bool shown;    /* a bar stands on the current line */
    bool started;  /* first_done and first_s are set */
    double first_done,
        first_s;   /* of the first call: what a resumed run had done before is not this run's speed */
    double next_s; /* when to show again */
    char drawn[PROGRESS_BYTES]; /* the newest bar */
};

void progress_open(struct progress *progress, FILE *file, bool quiet);
/* done and total examples, seconds of training so far, loss of the epoch so far (NAN: none yet). Draws at
 * most 10 times a second (terminal) or every 10 s (elsewhere), and once when all is done. */
void progress_show(struct progress *progress, double done, double total, double seconds, int epoch,
                   int epochs, double loss);
/* On a terminal, `text` in the bar's place; nothing elsewhere. */
void progress_status(struct progress *progress, const char *text);
/* Clears the bar, so that another line can be printed. */
void progress_clear(struct progress *progress);
/* Draws the newest bar again, after lines for which it was cleared. */
void progress_redraw(struct progress *progress);
/* A log line on the same stream, "trainer: ..."; clears the bar first. A terminal gets it in as many lines as
 * its columns make of it, everything else in one. */
__attribute__((format(printf, 2, 3))) void progress_say(struct progress *progress, const char *format, ...);
/* The same for what must be known, also when quiet: a worker was lost. */
__attribute__((format(printf, 2, 3))) void progress_warn(struct progress *progress, const char *format, ...);
/* The same on standard error for who has no progress; "" is not said. */
void progress_warn_of(const char *words);

/* What progress_show draws, without a line's end, in at most `columns` columns (0: any). Returns out[bytes].
 */
const char *progress_text(char *out, size_t bytes, int columns, double done, double total, double per_second,
                          int epoch, int epochs, double loss);

#endif
