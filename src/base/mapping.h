/* Files that are looked at in place: their pages come into memory when they are read, and the kernel may take
 * them out again. What is written goes to a private copy of the page, never to the file. A file that is cut
 * short by somebody else while it is mapped ends the program (SIGBUS). */
#ifndef TRAINER_BASE_MAPPING_H
#define TRAINER_BASE_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "error.h"

struct mapping {
    uint8_t *bytes; /* [length], at the beginning of a page; NULL: nothing is mapped */
    size_t length;
    int handle;   /* of the file; -1: they are none's */
    bool changed; /* pages may differ from the file's: who writes to them says so */
};

/* Maps a whole file. Errors: ERROR_FILE: it cannot be read, is empty, or is no regular file. */
int mapping_open(struct mapping *mapping, const char *path, struct error *error);
/* Memory of its own instead: room for `bytes` bytes at least, zeroed, of which only what is touched is taken.
 * What was there stays, where it then is, without a copy: two of them are never needed. `what`: what it is
 * for, for the words. Errors: ERROR_DEVICE. */
int mapping_grow(struct mapping *mapping, size_t bytes, const char *what, struct error *error);
void mapping_close(struct mapping *mapping); /* safe on a zeroed one */

/* Hints, for bytes of a mapping; nothing depends on them. They will be wanted soon: the kernel begins to read
 * them, and returns before they are there. They are read here and there: a page that is missing is no reason
 * to read its neighbours. */
void mapping_soon(const void *bytes, size_t count);
void mapping_scattered(const void *bytes, size_t count);
/* These bytes of the file will not be wanted for long: they are taken out of memory. */
void mapping_used(const struct mapping *mapping, const void *bytes, size_t count);

#endif
