/* SHA-256, by OpenSSL's libcrypto. */
#include "sha256.h"

#include <openssl/evp.h>
#include <stdio.h>

static int refuse(struct error *error) {
    return error_set(error, ERROR_DEVICE, "SHA-256: libcrypto does not compute it");
}

int sha256_open(struct sha256 *sum, struct error *error) {
    sum->state = EVP_MD_CTX_new();
    if (sum->state != NULL && EVP_DigestInit_ex(sum->state, EVP_sha256(), NULL) == 1) return OK;
    sha256_close(sum);
    return refuse(error);
}

int sha256_add(struct sha256 *sum, const void *bytes, size_t count, struct error *error) {
    return EVP_DigestUpdate(sum->state, bytes, count) == 1 ? OK : refuse(error);
}

int sha256_end(struct sha256 *sum, char text[SHA256_TEXT_BYTES], struct error *error) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_DigestFinal_ex(sum->state, digest, &length) != 1 || 2 * length + 1 != SHA256_TEXT_BYTES)
        return refuse(error);
    for (unsigned i = 0; i < length; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return OK;
}

void sha256_close(struct sha256 *sum) {
    EVP_MD_CTX_free(sum->state);
    sum->state = NULL;
}
