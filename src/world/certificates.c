/* See certificates.h. */
#include "certificates.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <unistd.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "../base/text.h"

enum { FILE_MOST = 1 << 20 };

/* OpenSSL's reason goes behind ours, where there is one. */
static int fail(const char *path, const char *expected, struct error *error) {
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    if (!why) return error_set(error, ERROR_FILE, "%s: %s", path, expected);
    return error_set(error, ERROR_FILE, "%s: %s (%s)", path, expected, why);
}

/* A text in memory, for PEM_read_bio_...; NULL: no memory. */
static BIO *read_from(const char *text, size_t bytes) {
    ERR_clear_error();
    return BIO_new_mem_buf(text, (int)bytes);
}

/* The next certificate of a text. NULL: there is none, or *damaged. */
static X509 *next_certificate(BIO *text, bool *damaged) {
    X509 *one = PEM_read_bio_X509(text, NULL, NULL, NULL);
    const unsigned long code = ERR_peek_last_error();
    *damaged = !one && !(ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE);
    if (!one && !*damaged) ERR_clear_error();
    return one;
}

/* Gives each certificate of a file to `take`, which keeps what it wants of it; *count: how many. */
static int read_certificates(const char *path, int (*take)(SSL_CTX *context, X509 *one, int index),
                             SSL_CTX *context, struct error *error) {
    char *text = NULL;
    size_t bytes;
    int count = 0;
    bool good = true, damaged = false;
    RETURN_IF(file_read_plain(path, FILE_MOST, &text, &bytes, error));
    BIO *from = read_from(text, bytes);
    for (X509 *one; good && from && (one = next_certificate(from, &damaged)); X509_free(one))
        good = take(context, one, count++) == 1;
    BIO_free(from);
    memory_free(text);
    if (!from) return error_set(error, ERROR_DEVICE, "%s: no memory", path);
    if (!good) return fail(path, "a certificate that cannot be used", error);
    if (damaged) return fail(path, "a certificate is damaged", error);
    return count > 0 ? OK
                     : fail(path, "expected a certificate, as -----BEGIN CERTIFICATE----- begins", error);
}

static int trust(SSL_CTX *context, X509 *one, int index) {
    (void)index;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(context), one);
}

/* The first is this process's own; those behind it lead to the CA. */
static int show(SSL_CTX *context, X509 *one, int index) {
    return index == 0 ? SSL_CTX_use_certificate(context, one) : (int)SSL_CTX_add1_chain_cert(context, one);
}

/* Nobody is asked for a password. */
static int no_password(char *room, int bytes, int writes, void *argument) {
    (void)room, (void)bytes, (void)writes, (void)argument;
    return -1;
}

static int read_key(EVP_PKEY **out, const char *path, struct error *error) {
    char text[16 << 10];
    int file = -1;
    RETURN_IF(file_open_private(path, &file, error));
    const ssize_t bytes = read(file, text, sizeof text);
    const int reason = errno;
    close(file);
    if (bytes < 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(reason));
    BIO *from = read_from(text, (size_t)bytes);
    *out = from ? PEM_read_bio_PrivateKey(from, NULL, no_password, NULL) : NULL;
    BIO_free(from);
    OPENSSL_cleanse(text, sizeof text);
    return *out ? OK : fail(path, "expected a private key in PEM, without a password", error);
}

static int use_key(SSL_CTX *context, const struct endpoint_certificates *files, struct error *error) {
    EVP_PKEY *key = NULL;
    RETURN_IF(read_key(&key, files->key, error));
    int code = OK;
    if (X509_check_private_key(SSL_CTX_get0_certificate(context), key) != 1)
        code = error_set(error, ERROR_FILE, "%s: is not the key of the certificate in %s", files->key,
                         files->certificate);
    else if (SSL_CTX_use_PrivateKey(context, key) != 1)
        code = fail(files->key, "a key that cannot be used", error);
    ERR_clear_error();
    EVP_PKEY_free(key);
    return code;
}

void certificates_describe(struct text *words, long number) {
    switch (number) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        text_add(words, "has expired");
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        text_add(words, "is not valid yet");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        text_add(words, "is not signed by the CA that is used here");
        break;
    default:
        text_add(words, "is refused: %s", X509_verify_cert_error_string(number));
    }
}

/* What the others would refuse is refused here, in the file's name. */
static int check_own(SSL_CTX *context, const struct endpoint_certificates *files, struct error *error) {
    STACK_OF(X509) *chain = NULL;
    X509_STORE_CTX *check = X509_STORE_CTX_new();
    char room[200];
    struct text words = text_into(room, sizeof room);
    SSL_CTX_get0_chain_certs(context, &chain);
    if (!check || !X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(context),
                                       SSL_CTX_get0_certificate(context), chain)) {
        X509_STORE_CTX_free(check);
        return error_set(error, ERROR_DEVICE, "%s: no memory", files->certificate);
    }
    const bool good = X509_verify_cert(check) == 1;
    certificates_describe(&words, X509_STORE_CTX_get_error(check));
    X509_STORE_CTX_free(check);
    ERR_clear_error();
    if (good) return OK;
    return error_set(error, ERROR_FILE, "%s: the certificate %s (%s)", files->certificate, room, files->ca);
}

int certificates_use(SSL_CTX *context, const struct endpoint_certificates *files, struct error *error) {
    RETURN_IF(read_certificates(files->ca, trust, context, error));
    RETURN_IF(read_certificates(files->certificate, show, context, error));
    RETURN_IF(use_key(context, files, error));
    RETURN_IF(check_own(context, files, error));
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return OK;
}
