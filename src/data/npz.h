/* NumPy's arrays from files: members "name.npy" of an archive that np.savez or np.savez_compressed wrote, or
 * files of their own that np.save wrote. */
#ifndef TRAINER_DATA_NPZ_H
#define TRAINER_DATA_NPZ_H

#include "npy.h"
#include "zip.h"

/* How much larger than its packed bytes an array may be; a small one may always have NPZ_UNPACKED_FREE. */
enum { NPZ_UNPACKED_TIMES = 200, NPZ_UNPACKED_FREE = 64 << 20, NPZ_NAME_BYTES = 448 };

struct npz_array {
    struct npy npy;            /* in C order; zeroed: none */
    void *block;               /* what its values are in, owned; NULL: in the file's bytes */
    char name[NPZ_NAME_BYTES]; /* for the words: "data.npz: x_train", and what `npy` borrows */
};

/* The member of that array, or NULL. */
const struct zip_member *npz_find(const struct zip *zip, const char *name);
/* "x_train, y_train" as far as they fit: the arrays that are there. Returns out. */
const char *npz_names(const struct zip *zip, char *out, size_t bytes);

/* Opens an array of the archive. One that is stored stays in the archive's bytes. A compressed one is
 * unpacked: to as many bytes as its own header says, which the directory has to say, too. Errors: ERROR_FILE.
 * On error the caller closes. */
int npz_open(struct npz_array *array, const struct zip *zip, const struct zip_member *member,
             struct error *error);
/* The same of a whole file in memory; `path` is for the words. */
int npz_open_file(struct npz_array *array, const char *path, const uint8_t *bytes, size_t length,
                  struct error *error);
void npz_close(struct npz_array *array); /* safe on a zeroed or half-open one */

#endif
