/* The lines of a run on standard output: its settings, steps, epochs and final figures, in order.
 *
 * A reader never holds up a training. What it does not take at once waits here, up to LINES_BYTES; then one
 * that reads nothing for a second is not waited for any more, lines are left out, and a line says how many.
 * When the reader goes away, nothing more is printed, and that is no error. Any other failure, as of a full
 * disk, stays with the stream (ferror), for whoever closes it. Called by one thread. */
#ifndef TRAINER_RECORD_LINES_H
#define TRAINER_RECORD_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "progress.h"

enum { LINES_BYTES = 1 << 16 };

struct lines {
    FILE *file;           /* borrowed; NULL: nothing is printed */
    struct progress *bar; /* borrowed; cleared before lines on a terminal, and drawn again; NULL: none */
    int pipe;             /* of a pipe, an own handle that never blocks; -1: none */
    bool terminal;
    bool fitted;   /* they go to a terminal, here or of the process that prints them */
    bool gone;     /* the reader is */
    bool stuck;    /* it has read nothing for a second */
    long left_out; /* lines since the last that was taken */
    size_t used;
    char waiting[LINES_BYTES]; /* [used] whole lines, but for the end of one at the beginning */
};

void lines_open(struct lines *lines, FILE *file, struct progress *bar);
/* Columns of the terminal that they go to, here or where another process prints them; 0: there is none. */
int lines_columns(const struct lines *lines);

/* Adds one line; control characters in it become `?`. */
__attribute__((format(printf, 2, 3))) void lines_say(struct lines *lines, const char *format, ...);
/* The same; a terminal gets it in as many lines as its columns make of it. */
__attribute__((format(printf, 2, 3))) void lines_fit(struct lines *lines, const char *format, ...);
/* The same for what is only read by people, as the first lines of a run: in lines of PAGE_COLUMNS where there
 * is no terminal. */
__attribute__((format(printf, 2, 3))) void lines_describe(struct lines *lines, const char *format, ...);
/* Prints as much as the reader takes now. */
void lines_flush(struct lines *lines);
/* Waits until the reader has taken all, or is gone; after an interrupt, or when what they tell of has failed,
 * only while it still reads. Then closes; safe on a zeroed or closed one. */
void lines_close(struct lines *lines, bool failed);

#endif
