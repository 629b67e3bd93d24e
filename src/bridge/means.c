/* See means.h. */
#include "means.h"

#include <stdio.h>
#include <string.h>

static bool is_same_device(const struct peer *a, const struct peer *b) {
    return memcmp(a->offer.device, b->offer.device, sizeof a->offer.device) == 0;
}

/* What stands in the way of peer i, in words[bytes]; NULL: nothing. */
static const char *peer_obstacle(const struct host *host, int i, char *words, size_t bytes) {
    const struct peer *peer = &host->peers[i], *first = host->peers;
    if (!peer->offer.able) {
        snprintf(words, bytes, "%s: %s", peer->name,
                 peer->offer.words[0] ? peer->offer.words : "its device has no memory of its own");
        return words;
    }
    if (strcmp(peer->offer.words, first->offer.words) != 0) {
        snprintf(words, bytes, "%s has %.40s, %s has %.40s", peer->name, peer->offer.words, first->name,
                 first->offer.words);
        return words;
    }
    for (const struct peer *before = first; before < peer; before++) {
        if (!is_same_device(before, peer)) continue;
        snprintf(words, bytes, "%s and %s are on one device", before->name, peer->name);
        return words;
    }
    return NULL;
}

/* Whether any worker is on a device of which it may be expected. */
static bool is_expected(const struct host *host) {
    bool expected = false;
    for (int i = 0; i < host->count; i++) expected = expected || host->peers[i].offer.words[0];
    return expected;
}

/* The first device of the process that this host is in. */
static int find_root(const struct host *host) {
    for (int i = 0; i < host->count; i++)
        if (host->peers[i].task == host->settings.cluster->task) return i;
    return -1;
}

bool means_agree(struct host *host, const char *obstacle, struct welcome *welcome) {
    char words[360];
    welcome->root = -1;
    welcome->means[0] = '\0';
    if (!is_expected(host) || (obstacle && !obstacle[0])) return false;
    for (int i = 0; i < host->count && !obstacle; i++) obstacle = peer_obstacle(host, i, words, sizeof words);
    if (obstacle) {
        snprintf(welcome->means, sizeof welcome->means, "%.190s", obstacle);
        return false;
    }
    const struct rank_offer *first = &host->peers[0].offer;
    welcome->root = find_root(host);
    if (welcome->root < 0) return false;
    host->peers[welcome->root].root = true;
    memcpy(welcome->id, first->id, sizeof welcome->id);
    snprintf(welcome->means, sizeof welcome->means, "%.90s, over %d devices of %d processes", first->words,
             host->count, host->settings.cluster->workers.count);
    return true;
}
