/* Where the files of data sets come from: public addresses, and the SHA-256 of each file. `trainer fetch`
 * downloads by this list; a build without it names the addresses. */
#ifndef TRAINER_DATA_SOURCES_H
#define TRAINER_DATA_SOURCES_H

#include <stddef.h>

struct source_file {
    const char *name;         /* as it lies in the data set's folder */
    long long bytes;          /* its size */
    const char *sha256;       /* 64 hexadecimal digits */
    const char *plain_sha256; /* of what it holds, when it is compressed (name ends in .gz); else NULL */
};

struct source {
    const char *dataset;
    const char *addresses[3]; /* folders on the network, the best first, ended by NULL */
    const char *archive;      /* a .tar.gz there that holds the files, or NULL: they lie there themselves */
    long long archive_bytes;
    const struct source_file *files; /* ended by one without a name */
};

extern const struct source sources[]; /* ended by one without a data set */

/* Of that data set, or NULL. */
const struct source *source_find(const char *dataset);

/* Where to get a file when it is missing, one phrase: "trainer fetch mnist downloads it", or, in a build that
 * cannot, its address; `name` without or with .gz. Writes into out[bytes], returns out; "" when nobody knows.
 */
const char *source_advice(const char *dataset, const char *name, char *out, size_t bytes);

#endif
