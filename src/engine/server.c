/* A server: applies the gradients in the mailboxes of its shards, in order of arrival. */
#include <math.h>

#include "worker.h"

static bool is_held(const struct server *server) {
    return atomic_load(&server->training->hold_servers) ||
           faults_hold(&server->training->settings.faults, server->index);
}

static bool has_work(void *argument) {
    struct server *server = argument;
    const struct training *training = server->training;
    const struct store *store = training->settings.store;
    if (atomic_load(&training->ending)) return true;
    if (is_held(server)) return false;
    for (int s = server->index; s < store->settings.shards; s += training->server_count)
        if (mailbox_has_mail(&store->shards[s].mailbox)) return true;
    return false;
}

static int serve_shard(struct server *server, struct shard *shard) {
    struct training *training = server->training;
    struct mail mail;
    while (!is_held(server) && mailbox_receive(&shard->mailbox, &mail)) {
        roster_phase(training->settings.roster, training->settings.roster->workers + server->index,
                     PHASE_APPLY);
        struct gradient *gradient = &shard->store->workers[mail.worker].gradients[mail.slot];
        RETURN_IF(training->strategy->serve(shard, gradient, &server->error));
    }
    return OK;
}

void server_body(void *argument) {
    struct server *server = argument;
    struct training *training = server->training;
    struct store *store = training->settings.store;
    struct roster *roster = training->settings.roster;
    const int member = roster->workers + server->index;
    int code = OK;
    while (code == OK && !atomic_load(&training->ending) && !world_stopped(training->settings.world)) {
        atomic_store(&server->busy, true);
        for (int s = server->index; s < store->settings.shards && code == OK; s += training->server_count)
            code = serve_shard(server, &store->shards[s]);
        atomic_store(&server->busy, false);
        if (atomic_load(&training->awaits_servers)) event_post(&training->bell);
        if (has_work(server)) continue;
        roster_phase(roster, member, PHASE_IDLE);
        event_wait_until(&server->mail, has_work, server, INFINITY);
    }
    if (code == OK) {
        roster_leave(roster, member, PHASE_DONE);
    } else {
        roster_phase(roster, member, PHASE_FAILED);
        training_fail(training, member);
    }
}
