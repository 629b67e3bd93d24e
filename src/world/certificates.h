/* Certificates: how two sides of an encrypted connection know each other where they share no key. Each shows
 * a certificate, and takes any that its CA has signed and that is valid now. What a certificate calls its
 * owner is not looked at: the CA is the cluster's, and signs for its members alone. Only this folder includes
 * this. */
#ifndef TRAINER_WORLD_CERTIFICATES_H
#define TRAINER_WORLD_CERTIFICATES_H

#include <openssl/ssl.h>

#include "../base/text.h"
#include "endpoint.h"

/* For all connections of the context, both ways. Errors: ERROR_FILE, with what is wrong in which file;
 * ERROR_DEVICE: no memory. */
int certificates_use(SSL_CTX *context, const struct endpoint_certificates *files, struct error *error);

/* Why a certificate was not accepted, by OpenSSL's number (X509_V_ERR_...), as what is said of it: "has
 * expired". */
void certificates_describe(struct text *words, long number);

#endif
