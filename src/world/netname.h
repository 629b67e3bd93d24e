/* Addresses of the network: from text, to text, and looked up. Used inside this folder. */
#ifndef TRAINER_WORLD_NETNAME_H
#define TRAINER_WORLD_NETNAME_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include "../base/error.h"

enum { NETNAME_HOST_BYTES = 256 /* DNS allows 253 */, NETNAME_TEXT_BYTES = NETNAME_HOST_BYTES + 8 };

struct netname {
    char host[NETNAME_HOST_BYTES]; /* without brackets; empty: any */
    char port[6];                  /* 0..65535 as digits */
};

/* "host:port", "[v6]:port", ":port". ERROR_USAGE. */
int netname_parse(struct netname *netname, const char *text, struct error *error);

/* All it may mean; *out is freed with freeaddrinfo. For listening, an empty host is any address. Returns
 * getaddrinfo's code and its words in *why (a constant text, or until the next failing call). */
int netname_look_up(const struct netname *netname, bool to_listen, struct addrinfo **out, const char **why);

/* "127.0.0.1:5000", "[::1]:5000"; IPv4 inside IPv6 is shown as IPv4. */
void netname_text(char *text, size_t room, const struct sockaddr_storage *name);
bool netname_is_loopback(const struct sockaddr_storage *name);
bool netname_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b); /* any ports */
/* The same IPv4 address, or IPv6 addresses of one network (/64). */
bool netname_same_source(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
int netname_port(const struct sockaddr_storage *name);

#endif
