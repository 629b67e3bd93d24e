/* SHA-256 (FIPS 180-4), by OpenSSL's libcrypto. */
#ifndef TRAINER_DATA_SHA256_H
#define TRAINER_DATA_SHA256_H

#include <stddef.h>
#include "../base/error.h"

enum { SHA256_TEXT_BYTES = 65 }; /* 64 hexadecimal digits and a 0 */

struct sha256 {
    void *state; /* libcrypto's, owned */
};

/* Errors: ERROR_DEVICE: libcrypto did not. */
int sha256_open(struct sha256 *sum, struct error *error);
int sha256_add(struct sha256 *sum, const void *bytes, size_t count, struct error *error);
int sha256_end(struct sha256 *sum, char text[SHA256_TEXT_BYTES], struct error *error);
void sha256_close(struct sha256 *sum); /* safe on a zeroed one */

#endif
