/* Names that must differ: whoever comes later gets a suffix. Those that must stay as they are come first. */
#ifndef TRAINER_BASE_NAMES_H
#define TRAINER_BASE_NAMES_H

#include <stddef.h>
#include "error.h"

enum { NAMES_BYTES = 96 };

struct name_taken {
    char name[NAMES_BYTES];
    int suffix; /* the last one that was put behind it */
};

struct names {
    struct name_taken *taken; /* [count] in room for `room` */
    int count, room;
};

/* Takes name[bytes], at most NAMES_BYTES. One that is taken becomes name_1, name_2, ...: the first that is
 * free, cut before its suffix where it would be too long. Errors: ERROR_DEVICE (memory). */
int names_take(struct names *names, char *name, size_t bytes, struct error *error);
void names_close(struct names *names); /* safe on a zeroed one */

#endif
