/* Addresses of processes: "host:port", the host a name, an IPv4 address or, in brackets, an IPv6 address. */
#ifndef TRAINER_BRIDGE_ADDRESSES_H
#define TRAINER_BRIDGE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include "../config/config.h"

enum { ADDRESSES_MOST = CLUSTER_TASKS, ADDRESS_HOST_BYTES = 256 };

struct address {
    char text[ADDRESS_HOST_BYTES + 16]; /* as given */
    char host[ADDRESS_HOST_BYTES];      /* without brackets */
    int port;                           /* 1 to 65535 */
};

struct addresses {
    struct address *list; /* [count] owned */
    int count;            /* ADDRESSES_MOST at most */
};

/* Adds one. `where` is where it was found, for the words; `code` is the code of an error in it. */
int addresses_add(struct addresses *addresses, const char *text, size_t length, const char *where, int code,
                  struct error *error);
/* Adds those of "a:1,b:2"; blanks around the commas are dropped. Errors: ERROR_USAGE. */
int addresses_add_list(struct addresses *addresses, const char *list, const char *where, struct error *error);
void addresses_free(struct addresses *addresses); /* safe on a zeroed one */

/* Both name the same host in the same letters, large or small, and the same port. */
bool address_same(const struct address *a, const struct address *b);

/* A whole number of digits only, 0 to `most`; -1: it is none. */
int address_digits(const char *text, int most);

#endif
