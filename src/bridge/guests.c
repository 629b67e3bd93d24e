/* Who may stay and who has to go, and what is said of it. See guests.h. */
#include "guests.h"

#include <math.h>
#include <string.h>

enum { LINES_A_SECOND = 10 };

/* --- what is said --- */

static void say(const struct host *host, const char *words) {
    host->settings.say(host->settings.argument, words);
}

void guests_say_unsaid(struct host *host, double now) {
    struct refusals *refusals = &host->refusals;
    char words[60];
    if (now < refusals->since_s + 1.0) return;
    if (refusals->unsaid > 0) {
        snprintf(words, sizeof words, "refused: %d more", refusals->unsaid);
        say(host, words);
    }
    *refusals = (struct refusals){.since_s = now};
}

/* While the training runs, its thread alone speaks to the user. */
static void say_refused(struct host *host, const char *why) {
    char words[600];
    if (host->full) return;
    guests_say_unsaid(host, world_now(host->settings.world));
    if (host->refusals.said == LINES_A_SECOND) {
        host->refusals.unsaid++;
        return;
    }
    host->refusals.said++;
    snprintf(words, sizeof words, "refused: %s", why);
    say(host, words);
}

/* Through a forwarded port somebody elsewhere comes from an address of this machine. */
bool guest_is_trusted(const struct host *host, const struct endpoint *endpoint) {
    return endpoint_is_encrypted(endpoint) ||
           (endpoint_is_loopback(endpoint) && host->listener && listener_is_loopback(host->listener));
}

void guest_refuse(struct host *host, struct guest *guest, const char *why, uint32_t flags, bool is_ours) {
    struct error ignored = {0};
    const char *told = guest_is_trusted(host, guest->endpoint) ? why : "its log says why";
    const struct piece piece = {told, strlen(told)};
    say_refused(host, why);
    frame_write(guest->endpoint, FRAME_FAILURE, flags, &piece, 1, 0.0, &ignored);
    guest->leaving = is_ours;
    guest->since_s = world_now(host->settings.world);
    if (is_ours) return;
    endpoint_close(guest->endpoint);
    guest->endpoint = NULL;
}

/* --- who stays --- */

static void drop_guest(struct host *host, int index) {
    endpoint_close(host->guests[index].endpoint);
    host->guest_count--;
    memmove(&host->guests[index], &host->guests[index + 1],
            (size_t)(host->guest_count - index) * sizeof *host->guests);
}

/* Of those who have been there long enough the first who has sent nothing, or was refused; else the first. Of
 * the address of `like` alone, where there is one. -1: nobody. */
static int first_to_go(const struct host *host, const struct endpoint *like) {
    const double now = world_now(host->settings.world);
    int first = -1;
    for (int g = 0; g < host->guest_count; g++) {
        const struct guest *guest = &host->guests[g];
        if (now - guest->since_s < GUEST_STAYS_S || (like && !endpoint_same_source(like, guest->endpoint)))
            continue;
        if (!guest->spoke || guest->leaving) return g;
        if (first < 0) first = g;
    }
    return first;
}

bool guests_drop_one(struct host *host) {
    const int first = first_to_go(host, NULL);
    if (first < 0) return false;
    drop_guest(host, first);
    return true;
}

bool guests_make_room(struct host *host) {
    return host->guest_count < host->guests_most || guests_drop_one(host);
}

static int count_like(const struct host *host, const struct endpoint *endpoint) {
    int count = 0;
    for (int g = 0; g < host->guest_count; g++)
        count += endpoint_same_source(endpoint, host->guests[g].endpoint);
    return count;
}

void guests_add(struct host *host, const struct guest *guest) {
    const int most = host->guests_most / 2 < HOST_GUESTS_OF_ONE ? host->guests_most / 2 : HOST_GUESTS_OF_ONE;
    if (count_like(host, guest->endpoint) >= most) {
        const int first = first_to_go(host, guest->endpoint);
        if (first < 0) {
            endpoint_close(guest->endpoint);
            return;
        }
        drop_guest(host, first);
    }
    if (!guests_make_room(host))
        endpoint_close(guest->endpoint);
    else
        host->guests[host->guest_count++] = *guest;
}

void guests_end(struct host *host) {
    for (int g = 0; g < host->guest_count; g++) endpoint_close(host->guests[g].endpoint);
    host->guest_count = 0;
    if (host->settings.say) guests_say_unsaid(host, INFINITY);
}
