/* Other programs that this one starts and watches: each in a process group of its own, so that Ctrl-C at the
 * terminal is this program's to pass on. What they print comes line by line. */
#ifndef TRAINER_WORLD_CHILDREN_H
#define TRAINER_WORLD_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include "world.h"

struct children;

int children_open(struct children **out, int most, struct error *error);
/* Ends those that still run, at once. NULL is fine. */
void children_close(struct children *children);

/* Starts one more, at most `most` of them; they are numbered from 0. words: the program, looked for as a
 * shell does, and its arguments, ended by NULL. `input` is what it reads first; its standard input stays open
 * behind that. Errors: ERROR_DEVICE: it cannot be started. */
int children_start(struct children *children, const char *const *words, const char *input,
                   struct error *error);

/* The next line that one of them has printed, without its end; a longer one comes in parts. */
struct child_line {
    int child;
    bool error; /* on standard error */
    char text[4096];
};
/* Waits for it at most so long; false: there is none. A signal ends the wait. */
bool children_line(struct children *children, double seconds, struct child_line *line);

/* Whether it has ended and all that it has printed was taken; *code: its exit code, or 128 and the number of
 * the signal that ended it. */
bool children_ended(struct children *children, int child, int *code);

void children_hang_up(struct children *children, int child);           /* its standard input ends */
void children_end(struct children *children, int child, bool at_once); /* SIGTERM or SIGKILL to its group */

/* The first line of standard input, which may be shorter than line[bytes]. Errors: ERROR_FILE: it is too
 * long, or cannot be read. */
int world_read_line(char *line, size_t bytes, struct error *error);
/* From now on this process gets SIGTERM when its standard input ends. Errors: ERROR_DEVICE. */
int world_end_with_input(struct error *error);

#endif
