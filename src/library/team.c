/* See team.h: threads, a run on all of them, and what it says of one that fails or hangs. */
#include "team.h"

#include <math.h>
#include <string.h>

#include "../base/memory.h"
#include "session.h"

enum { MOST_ENDING_S = 10 };

/* When one has failed the others are told so, and end at their next wait: within this. */
static const double aftermath_s = 1.0;

struct member {
    struct team *team;
    int part;
    struct world_thread *thread;
    struct event go, done;
    uint64_t runs; /* in which it had something to do */
    bool plays;    /* in this run */
    int code;      /* of the last run */
    struct error error;
};

struct team {
    struct world *world;
    double timeout_s;
    const struct device *devices; /* [count] borrowed */
    const struct slabs *slabs;    /* [count] borrowed */
    int count;
    struct member *members;            /* [count] */
    struct rendezvous *rendezvous;     /* of this run */
    char hung[NODE_WORDS_BYTES + 100]; /* what did not end in time */
    _Atomic bool ending;
};

/* --- a member --- */

static int run_part(struct member *member, struct error *error) {
    const struct team *team = member->team;
    const struct device *device = &team->devices[member->part];
    const struct slabs *slabs = &team->slabs[member->part];
    for (int backward = 0; backward < 2; backward++)
        RETURN_IF(rendezvous_run(team->rendezvous, member->part, backward, slabs->weights, slabs->gradients,
                                 error));
    return device->backend->finish(device, error);
}

static void play(struct member *member) {
    member->error = (struct error){0};
    member->code = run_part(member, &member->error);
    if (member->code != OK) rendezvous_fail(member->team->rendezvous, member->part);
    event_post(&member->done);
}

static void member_body(void *argument) {
    struct member *member = argument;
    const struct team *team = member->team;
    const struct device *device = &team->devices[member->part];
    device->backend->enter(device);
    for (uint64_t run = 1; event_wait(&member->go, run, INFINITY) == WAIT_DONE; run++) {
        if (atomic_load(&team->ending)) return;
        play(member);
    }
}

/* --- a run --- */

static bool has_ended(const struct member *member) {
    return atomic_load(&member->done.count) >= member->runs;
}

/* Waits for a member as long as it goes on; false: it has stayed at one node for too long. */
static bool await(const struct team *team, struct member *member) {
    char before[NODE_WORDS_BYTES], after[NODE_WORDS_BYTES];
    do {
        rendezvous_words(team->rendezvous, member->part, before);
        const double deadline = world_now(team->world) + team->timeout_s;
        if (event_wait(&member->done, member->runs, deadline) == WAIT_DONE) return true;
        rendezvous_words(team->rendezvous, member->part, after);
    } while (strcmp(before, after) != 0);
    return false;
}

static struct member *find_late(struct team *team) {
    for (int i = 0; i < team->count; i++)
        if (team->members[i].plays && !await(team, &team->members[i])) return &team->members[i];
    return NULL;
}

/* Whoever was late because it waits for another one ends now: who does not hangs. Of several it is the one
 * that was late first. */
static struct member *find_hung(struct team *team, struct member *late) {
    struct member *hung = NULL;
    rendezvous_fail(team->rendezvous, late->part);
    const double deadline = world_now(team->world) + fmin(aftermath_s, team->timeout_s);
    for (int i = 0; i < team->count; i++) {
        struct member *member = &team->members[i];
        if (!member->plays || event_wait(&member->done, member->runs, deadline) == WAIT_DONE) continue;
        if (!hung || member == late) hung = member;
    }
    return hung;
}

/* The others were told that one has failed, and failed in turn: what they say is of no use. */
static int report(const struct team *team, struct error *error) {
    const int failed = rendezvous_failed(team->rendezvous);
    if (failed == NONE) return OK;
    const struct member *member = &team->members[failed];
    const char *name = team->devices[failed].name, *words = member->error.words;
    char at[NODE_WORDS_BYTES];
    rendezvous_words(team->rendezvous, failed, at);
    if (member->code == OK) /* it was late, and has ended after all */
        return error_set(error, ERROR_PEER, "%s has not ended %s after %g s", name, at, team->timeout_s);
    if (!strstr(words, "node ")) return error_set(error, member->code, "%s: %s: %s", name, at, words);
    if (strstr(words, name)) return error_set(error, member->code, "%s", words);
    return error_set(error, member->code, "%s: %s", name, words);
}

static void begin(struct team *team, const struct partition *partition, int here) {
    for (int i = 0; i < team->count; i++) {
        struct member *member = &team->members[i];
        member->plays = program_instructions(partition_program(partition, i)) > 0;
        if (!member->plays) continue;
        member->runs++;
        if (i != here) event_post(&member->go);
    }
    if (here == NONE || !team->members[here].plays) return;
    team->devices[here].backend->enter(&team->devices[here]);
    play(&team->members[here]);
}

int team_run(struct team *team, const struct partition *partition, struct rendezvous *rendezvous, int here,
             struct error *error) {
    team->rendezvous = rendezvous;
    begin(team, partition, here);
    struct member *late = find_late(team), *hung = late ? find_hung(team, late) : NULL;
    if (!hung) return report(team, error);
    char words[NODE_WORDS_BYTES];
    snprintf(team->hung, sizeof team->hung, "%s has not ended %s", team->devices[hung->part].name,
             rendezvous_words(rendezvous, hung->part, words));
    return error_set(error, ERROR_PEER, "%s after %g s", team->hung, team->timeout_s);
}

int team_ended(const struct team *team, struct error *error) {
    for (int i = 0; i < team->count; i++)
        if (!has_ended(&team->members[i])) return error_set(error, ERROR_PEER, "%s yet", team->hung);
    return OK;
}

int team_meet(const struct team *team, const struct partition *partition, struct rendezvous **out,
              struct error *error) {
    return rendezvous_open(out, partition, NULL, team->world, team->timeout_s, error);
}

/* --- open and close --- */

void team_set_timeout(struct team *team, double seconds) {
    team->timeout_s = seconds;
}

static int open_member(struct team *team, int part, struct error *error) {
    struct member *member = &team->members[part];
    char name[24];
    *member = (struct member){.team = team, .part = part};
    event_open(&member->go, team->world);
    event_open(&member->done, team->world);
    snprintf(name, sizeof name, "part %s", team->devices[part].name);
    return world_spawn(team->world, name, NULL, member_body, member, &member->thread, error);
}

static int fill(struct team *team, struct error *error) {
    RETURN_IF(world_open_threads(&team->world, error));
    RETURN_IF(memory_array(&team->members, team->count, "a session's threads", error));
    for (int part = 0; part < team->count; part++) RETURN_IF(open_member(team, part, error));
    return OK;
}

int team_open(struct team **out, const struct device *devices, const struct slabs *slabs, int count,
              struct error *error) {
    struct team *team = NULL;
    *out = NULL;
    RETURN_IF(memory_array(&team, 1, "a session's threads", error));
    team->devices = devices;
    team->slabs = slabs;
    team->count = count;
    team->timeout_s = 60.0;
    const int code = fill(team, error);
    if (code == OK)
        *out = team;
    else
        team_close(team);
    return code;
}

bool team_close(struct team *team) {
    if (!team) return true;
    bool ended = true;
    atomic_store(&team->ending, true);
    for (int i = 0; team->members && i < team->count; i++) {
        struct member *member = &team->members[i];
        if (!member->thread) continue;
        event_post(&member->go);
        ended = world_join_within(member->thread, fmin(MOST_ENDING_S, team->timeout_s)) && ended;
    }
    if (!ended) return false;
    memory_free(team->members);
    world_close(team->world);
    memory_free(team);
    return true;
}
