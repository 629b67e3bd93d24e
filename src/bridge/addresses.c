/* Addresses: parsed strictly, so that a typing error is found here and not when a process waits for a
 * connection. */
#include "addresses.h"

#include <string.h>
#include <strings.h>

#include "../base/memory.h"

#define HOST_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

/* What is wrong with a host, or NULL. */
static const char *parse_host(const char *text, size_t length, char host[ADDRESS_HOST_BYTES]) {
    const bool bracketed = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    const size_t bytes = bracketed ? length - 2 : length;
    if (bytes == 0) return "there is no host";
    if (bytes >= ADDRESS_HOST_BYTES) return "the host is too long";
    memcpy(host, bracketed ? text + 1 : text, bytes);
    host[bytes] = '\0';
    const bool has_colon = strchr(host, ':') != NULL;
    if (bracketed && (!has_colon || strspn(host, HOST_LETTERS ":%") != bytes))
        return "there is no IPv6 address in the brackets";
    if (!bracketed && has_colon && strspn(host, "0123456789abcdefABCDEF:.") == bytes)
        return "an IPv6 address stands in brackets";
    if (!bracketed && strspn(host, HOST_LETTERS) != bytes)
        return "a host has only letters, digits, . - and _";
    return NULL;
}

int address_digits(const char *text, int most) {
    int number = 0;
    if (text[0] == '\0') return -1;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return -1;
        number = 10 * number + (*text - '0');
        if (number > most) return -1;
    }
    return number;
}

static int parse_address(struct address *address, const char *text, size_t length, const char *where,
                         int code, struct error *error) {
    if (length >= sizeof address->text)
        return error_set(error, code, "%s: \"%.40s...\": found %zu characters, expected at most %zu", where,
                         text, length, sizeof address->text - 1);
    memcpy(address->text, text, length);
    address->text[length] = '\0';
    const char *colon = strrchr(address->text, ':');
    if (colon == NULL || strchr(colon, ']') != NULL)
        return error_set(error, code, "%s: \"%s\" has no port, expected host:port", where, address->text);
    const char *wrong = parse_host(address->text, (size_t)(colon - address->text), address->host);
    if (wrong != NULL)
        return error_set(error, code, "%s: \"%s\": %s, expected host:port or [IPv6]:port", where,
                         address->text, wrong);
    address->port = address_digits(colon + 1, 65535);
    if (address->port <= 0)
        return error_set(error, code, "%s: \"%s\": found port \"%s\", expected 1 to 65535", where,
                         address->text, colon + 1);
    return OK;
}

int addresses_add(struct addresses *addresses, const char *text, size_t length, const char *where, int code,
                  struct error *error) {
    const int count = addresses->count;
    if (count == ADDRESSES_MOST)
        return error_set(error, code, "%s: found more than %d addresses", where, ADDRESSES_MOST);
    RETURN_IF(memory_grow(&addresses->list, count, count + 1, "addresses of a cluster", error));
    return parse_address(&addresses->list[addresses->count++], text, length, where, code, error);
}

int addresses_add_list(struct addresses *addresses, const char *list, const char *where,
                       struct error *error) {
    for (const char *rest = list;;) {
        const size_t cell = strcspn(rest, ","), blanks = strspn(rest, " ");
        size_t length = cell - blanks;
        while (length > 0 && rest[blanks + length - 1] == ' ') length--;
        if (length == 0)
            return error_set(error, ERROR_USAGE, "%s: address %d is empty, expected host:port", where,
                             addresses->count + 1);
        RETURN_IF(addresses_add(addresses, rest + blanks, length, where, ERROR_USAGE, error));
        if (rest[cell] == '\0') return OK;
        rest += cell + 1;
    }
}

void addresses_free(struct addresses *addresses) {
    memory_free(addresses->list);
    *addresses = (struct addresses){0};
}

bool address_same(const struct address *a, const struct address *b) {
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}
