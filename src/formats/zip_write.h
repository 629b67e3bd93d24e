/* Zip archives, writing: members are stored as they are, one after the other, as NumPy's .npz and Keras'
 * .keras files have them (format: PKWARE's APPNOTE 6.3, without zip64: less than 4 GiB and 65,535 members).
 */
#ifndef TRAINER_FORMATS_ZIP_WRITE_H
#define TRAINER_FORMATS_ZIP_WRITE_H

#include <stdint.h>
#include <stdio.h>
#include "../base/error.h"

struct zip_member;

struct zip_writing {
    FILE *file;                 /* borrowed */
    struct zip_member *members; /* [count] */
    int count;
    uint64_t bytes; /* written so far */
};

/* The member's bytes are the pieces one after the other. Errors: ERROR_FILE (the stream; too large),
 * ERROR_DEVICE (memory). */
struct zip_piece {
    const void *at;
    size_t bytes;
};
int zip_add(struct zip_writing *zip, const char *name, const struct zip_piece *pieces, int count,
            struct error *error);
/* The list of members at the end. */
int zip_end(struct zip_writing *zip, struct error *error);
void zip_close(struct zip_writing *zip); /* frees; safe on a zeroed one */

#endif
