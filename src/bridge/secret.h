/* The key that the processes of a cluster share: 64 hexadecimal digits, in a file that its owner alone can
 * read or in the environment. With it their connections are encrypted (world/endpoint.h). */
#ifndef TRAINER_BRIDGE_SECRET_H
#define TRAINER_BRIDGE_SECRET_H

#include <stdbool.h>

#include "../world/endpoint.h"

#define SECRET_VARIABLE "TRAINER_SECRET"

struct secret {
    bool there;
    uint8_t key[ENDPOINT_KEY_BYTES];
};

/* From the file, where `path` is not empty, else from `environment`, the value of SECRET_VARIABLE, which may
 * be NULL; none where both are missing. Errors: ERROR_FILE: no such file, others can read it, no key;
 * ERROR_USAGE: the variable has no key. */
int secret_find(struct secret *out, const char *path, const char *environment, struct error *error);

/* For all connections of the world: encrypted with the key; without one in clear, to other machines only
 * where `insecure`. Errors: those of endpoint_encrypt. */
int secret_use(const struct secret *secret, bool insecure, struct world *world, struct error *error);

/* Random numbers that nobody can guess. Errors: ERROR_DEVICE. */
int secret_draw(void *bytes, size_t count, struct error *error);

/* Writes a new key to a file that was not there. Errors: ERROR_FILE; ERROR_DEVICE: no random numbers. */
int secret_make(const char *path, struct error *error);

#endif
