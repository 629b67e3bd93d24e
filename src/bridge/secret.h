/* The key that the processes of a cluster share: 64 hexadecimal digits, in a file that its owner alone can
 * read or in the environment; or the certificates that they show each other. With either their connections
 * are encrypted (world/endpoint.h). */
#ifndef TRAINER_BRIDGE_SECRET_H
#define TRAINER_BRIDGE_SECRET_H

#include <stdbool.h>

#include "../config/config.h"
#include "../world/endpoint.h"

#define SECRET_VARIABLE "TRAINER_SECRET"
enum { SECRET_DIGITS = 2 * ENDPOINT_KEY_BYTES };

struct secret {
    bool there; /* either of the two */
    uint8_t key[ENDPOINT_KEY_BYTES];
    struct endpoint_certificates certificates; /* of the settings, borrowed; NULL: none */
};

/* As the settings say, else from `environment`, the value of SECRET_VARIABLE, which may be NULL; none where
 * both say nothing. Errors: ERROR_FILE: no such file, others can read it, no key; ERROR_USAGE: the variable
 * has no key, certificates that are not complete or beside a key; those of endpoint_certify. */
int secret_find(struct secret *out, const struct config *settings, const char *environment,
                struct error *error);

/* From its digits; `where` is for the words. Errors: ERROR_USAGE: they are none. */
int secret_read(struct secret *out, const char *digits, const char *where, struct error *error);
/* A new key, and the digits of one. Errors: ERROR_DEVICE: no random numbers. */
int secret_new(struct secret *out, struct error *error);
void secret_text(const struct secret *secret, char digits[SECRET_DIGITS + 1]);

/* For all connections of the world: encrypted; without a secret in clear, to other machines only where
 * `insecure`. Errors: those of endpoint_encrypt and endpoint_certify. */
int secret_use(const struct secret *secret, bool insecure, struct world *world, struct error *error);

/* Random numbers that nobody can guess. Errors: ERROR_DEVICE. */
int secret_draw(void *bytes, size_t count, struct error *error);

/* Writes a new key to a file that was not there. Errors: ERROR_FILE; ERROR_DEVICE: no random numbers. */
int secret_make(const char *path, struct error *error);

#endif
