/* Rehearsal: whether the parts of a partition come to the end of a batch in the order of a pipeline.
 *
 * Parts wait only for values to come and for room to send them, and each does its transfers in one order. So
 * whether they get through does not depend on how fast they are: what a rehearsal without any computing does,
 * one transfer after the other, is what every run does. */
#include "../base/memory.h"
#include "passes.h"
#include "split.h"

/* A send or receive of a part's program. */
struct transfer {
    int crossing;
    bool sends, backward;
};

/* A part, and how far it has come. */
struct actor {
    struct transfer *transfers; /* [count] in the order of the program */
    int count, forward;         /* the first so many are in the forward half */
    int turn, at;
};

struct rehearsal {
    const struct partition *partition;
    const struct pipeline *pipeline;
    const int *depth;              /* [crossing_count] */
    struct actor *actors;          /* [partition->count] */
    long *sent, *received, *taken; /* [crossing_count] */
};

static int find_crossing(const struct partition *partition, int part, node n, bool sends) {
    int i = 0;
    for (;; i++) {
        const struct crossing *crossing = &partition->crossings[i];
        if (sends ? crossing->from == part && crossing->send == n
                  : crossing->to == part && crossing->receive == n)
            return i;
    }
}

static int open_actor(const struct partition *partition, int part, struct actor *actor, struct error *error) {
    const struct part *its = &partition->parts[part];
    RETURN_IF(memory_array(&actor->transfers, its->graph.count, "transfers", error));
    for (node n = 0; n < its->graph.count; n++) {
        const enum op op = its->graph.nodes[n].op;
        if (!is_transfer(op)) continue;
        const bool sends = op == OP_send, backward = n >= its->backward;
        const int crossing = find_crossing(partition, part, n, sends);
        actor->transfers[actor->count++] = (struct transfer){crossing, sends, backward};
        if (!backward) actor->forward++;
    }
    return OK;
}

static bool is_done(const struct rehearsal *rehearsal, const struct actor *actor) {
    return actor->turn == 2 * rehearsal->pipeline->microbatches;
}

/* Makes the transfer if it can be made. */
static bool try_transfer(struct rehearsal *rehearsal, const struct transfer *transfer) {
    const int i = transfer->crossing;
    if (transfer->sends) {
        if (rehearsal->sent[i] - rehearsal->taken[i] == rehearsal->depth[i]) return false;
        rehearsal->sent[i]++;
    } else {
        if (rehearsal->sent[i] == rehearsal->received[i]) return false;
        rehearsal->received[i]++;
    }
    return true;
}

/* Goes on until it must wait or is done; whether it came any further. */
static bool advance(struct rehearsal *rehearsal, int part) {
    const struct partition *partition = rehearsal->partition;
    struct actor *actor = &rehearsal->actors[part];
    bool moved = false;
    for (; !is_done(rehearsal, actor); moved = true) {
        const bool backward =
            pipeline_turn(rehearsal->pipeline, partition_stage(partition, part), actor->turn).backward;
        const int begin = backward ? actor->forward : 0, end = backward ? actor->count : actor->forward;
        if (begin + actor->at < end) {
            if (!try_transfer(rehearsal, &actor->transfers[begin + actor->at])) return moved;
            actor->at++;
            continue;
        }
        for (int i = 0; backward && i < partition->crossing_count; i++)
            if (partition->crossings[i].to == part) rehearsal->taken[i]++;
        actor->turn++;
        actor->at = 0;
    }
    return moved;
}

/* Whoever waits, going forward, for a value that is to come is why the others wait. */
static int refuse(const struct rehearsal *rehearsal, struct error *error) {
    const struct partition *partition = rehearsal->partition;
    const struct transfer *found = NULL;
    for (int part = 0; part < partition->count; part++) {
        const struct actor *actor = &rehearsal->actors[part];
        if (is_done(rehearsal, actor)) continue;
        const int stage = partition_stage(partition, part);
        const bool backward = pipeline_turn(rehearsal->pipeline, stage, actor->turn).backward;
        const struct transfer *waits = &actor->transfers[(backward ? actor->forward : 0) + actor->at];
        if (!found || (!waits->backward && !waits->sends)) found = waits;
    }
    const struct crossing *crossing = &partition->crossings[found->crossing];
    const char *from = partition->devices[crossing->from].name, *to = partition->devices[crossing->to].name;
    char words[NODE_WORDS_BYTES];
    return error_set(
        error, ERROR_USAGE,
        "a pipeline by %s: %s and %s would wait for each other, for %s, whose value goes from %s to "
        "%s; expected the first layers on the first device, the next on the next, or gpipe",
        pipeline_name(rehearsal->pipeline->schedule), to, from,
        partition_words(partition, crossing->value, words), from, to);
}

static int rehearse(struct rehearsal *rehearsal, struct error *error) {
    const int parts = rehearsal->partition->count, crossings = rehearsal->partition->crossing_count;
    RETURN_IF(memory_array(&rehearsal->actors, parts, "a rehearsal", error));
    RETURN_IF(memory_array(&rehearsal->sent, crossings, "a rehearsal", error));
    RETURN_IF(memory_array(&rehearsal->received, crossings, "a rehearsal", error));
    RETURN_IF(memory_array(&rehearsal->taken, crossings, "a rehearsal", error));
    for (int part = 0; part < parts; part++)
        RETURN_IF(open_actor(rehearsal->partition, part, &rehearsal->actors[part], error));
    for (bool moved = true; moved;) {
        moved = false;
        for (int part = 0; part < parts; part++) moved = advance(rehearsal, part) || moved;
    }
    for (int part = 0; part < parts; part++)
        if (!is_done(rehearsal, &rehearsal->actors[part])) return refuse(rehearsal, error);
    return OK;
}

int partition_rehearse(const struct partition *partition, const struct pipeline *pipeline, const int *depth,
                       struct error *error) {
    struct rehearsal rehearsal = {.partition = partition, .pipeline = pipeline, .depth = depth};
    const int code = rehearse(&rehearsal, error);
    for (int part = 0; rehearsal.actors && part < partition->count; part++)
        memory_free(rehearsal.actors[part].transfers);
    memory_free(rehearsal.taken);
    memory_free(rehearsal.received);
    memory_free(rehearsal.sent);
    memory_free(rehearsal.actors);
    return code;
}
