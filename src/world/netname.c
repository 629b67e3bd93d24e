/* Addresses: the text a user types, the list the resolver makes of it, and the text that errors show.
 *
 * A socket that listens on any IPv6 address takes IPv4 too and names such peers ::ffff:10.0.0.1; that is
 * undone here before anything is shown or compared. */
#include "netname.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits alone, at most 65535. */
static bool is_port(const char *text) {
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= 5 && text[digits] == '\0' && strtol(text, NULL, 10) <= 65535;
}

int netname_parse(struct netname *netname, const char *text, struct error *error) {
    const char *colon = strrchr(text, ':'), *host = text;
    if (!colon || !is_port(colon + 1))
        return error_set(error, ERROR_USAGE, "address \"%s\": expected host:port, with a port up to 65535",
                         text);
    size_t length = (size_t)(colon - text);
    if (length >= 2 && text[0] == '[' && colon[-1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(text, ':', length)) {
        return error_set(error, ERROR_USAGE, "address \"%s\": an IPv6 address is written [address]:port",
                         text);
    }
    if (length >= sizeof netname->host)
        return error_set(error, ERROR_USAGE, "address \"%.60s...\": a host's name has at most %zu bytes",
                         text, sizeof netname->host - 1);
    memcpy(netname->host, host, length);
    netname->host[length] = '\0';
    snprintf(netname->port, sizeof netname->port, "%s", colon + 1);
    return OK;
}

int netname_look_up(const struct netname *netname, bool to_listen, struct addrinfo **out, const char **why) {
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0)};
    *out = NULL;
    const int code = getaddrinfo(netname->host[0] ? netname->host : NULL, netname->port, &wanted, out);
    *why = code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code);
    return code;
}

/* The IPv4 address of either kind of name, in the network's order; false: it is a true IPv6 one. */
static bool as_ipv4(const struct sockaddr_storage *name, struct in_addr *out) {
    if (name->ss_family == AF_INET) {
        *out = ((const struct sockaddr_in *)name)->sin_addr;
        return true;
    }
    const struct in6_addr *long_one = &((const struct sockaddr_in6 *)name)->sin6_addr;
    if (!IN6_IS_ADDR_V4MAPPED(long_one)) return false;
    memcpy(out, long_one->s6_addr + 12, sizeof *out);
    return true;
}

int netname_port(const struct sockaddr_storage *name) {
    return ntohs(name->ss_family == AF_INET ? ((const struct sockaddr_in *)name)->sin_port
                                            : ((const struct sockaddr_in6 *)name)->sin6_port);
}

void netname_text(char *text, size_t room, const struct sockaddr_storage *name) {
    struct in_addr short_one;
    char host[INET6_ADDRSTRLEN] = "";
    if (as_ipv4(name, &short_one)) {
        inet_ntop(AF_INET, &short_one, host, sizeof host);
        snprintf(text, room, "%s:%d", host, netname_port(name));
    } else {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)name)->sin6_addr, host, sizeof host);
        snprintf(text, room, "[%s]:%d", host, netname_port(name));
    }
}

bool netname_is_loopback(const struct sockaddr_storage *name) {
    struct in_addr short_one;
    if (as_ipv4(name, &short_one)) return ntohl(short_one.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)name)->sin6_addr);
}

bool netname_same_source(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    enum { NETWORK_BYTES = 8 };
    struct in_addr ignored;
    if (as_ipv4(a, &ignored) || as_ipv4(b, &ignored)) return netname_same_host(a, b);
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr,
                  NETWORK_BYTES) == 0;
}

bool netname_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    struct in_addr x, y;
    const bool is_short = as_ipv4(a, &x);
    if (is_short != as_ipv4(b, &y)) return false;
    if (is_short) return x.s_addr == y.s_addr;
    return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)a)->sin6_addr,
                              &((const struct sockaddr_in6 *)b)->sin6_addr);
}
