/* Whether a host is this machine: by what it is called, and by the addresses of the interfaces. No name
 * server is asked, which might take its time; a name that only such a server knows is another machine. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "netname.h"
#include "world.h"

/* An address in figures; the interface after its % goes. */
static bool parse_figures(struct sockaddr_storage *name, const char *host) {
    struct sockaddr_in *short_one = (struct sockaddr_in *)name;
    struct sockaddr_in6 *long_one = (struct sockaddr_in6 *)name;
    char figures[INET6_ADDRSTRLEN];
    const size_t length = strcspn(host, "%");
    *name = (struct sockaddr_storage){0};
    if (length >= sizeof figures) return false;
    memcpy(figures, host, length);
    figures[length] = '\0';
    if (inet_pton(AF_INET, figures, &short_one->sin_addr) == 1) {
        name->ss_family = AF_INET;
        return true;
    }
    name->ss_family = AF_INET6;
    return inet_pton(AF_INET6, figures, &long_one->sin6_addr) == 1;
}

static bool is_of_interface(const struct sockaddr_storage *name) {
    struct ifaddrs *list = NULL;
    bool found = false;
    if (getifaddrs(&list) != 0) return false;
    for (const struct ifaddrs *one = list; one && !found; one = one->ifa_next) {
        struct sockaddr_storage own = {0};
        if (!one->ifa_addr || !(one->ifa_flags & IFF_UP)) continue;
        const bool is_short = one->ifa_addr->sa_family == AF_INET;
        if (!is_short && one->ifa_addr->sa_family != AF_INET6) continue;
        memcpy(&own, one->ifa_addr, is_short ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        found = netname_same_host(&own, name);
    }
    freeifaddrs(list);
    return found;
}

bool world_is_here(const char *host) {
    struct sockaddr_storage name;
    char own[NETNAME_HOST_BYTES] = "";
    if (strcasecmp(host, "localhost") == 0) return true;
    if (gethostname(own, sizeof own - 1) == 0 && own[0] != '\0' && strcasecmp(host, own) == 0) return true;
    return parse_figures(&name, host) && (netname_is_loopback(&name) || is_of_interface(&name));
}
