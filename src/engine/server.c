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

/* After it was served the gradient is the worker's again. */
static void note_span(const struct server *server, const struct shard *shard, int worker, long step,
                      double began_s) {
    const struct training_settings *settings = &server->training->settings;
    const struct trace_span span = {.kind = TRACE_SERVE,
                                    .begin_s = began_s,
                                    .end_s = world_now(settings->world),
                                    .member = settings->roster->workers + server->index,
                                    .worker = worker,
                                    .step = step,
                                    .shard = shard->index,
                                    .waiting = mailbox_mails(&shard->mailbox)};
    trace_put(settings->roster->trace, &span);
}

static int serve_shard(struct server *server, struct shard *shard) {
    struct training *training = server->training;
    struct mail mail;
    while (!is_held(server) && mailbox_receive(&shard->mailbox, &mail)) {
        roster_phase(training->settings.roster, training->settings.roster->workers + server->index,
                     PHASE_APPLY);
        struct gradient *gradient = &shard->store->workers[mail.worker].gradients[mail.slot];
        const long step = training->settings.roster->members[mail.worker].earlier + gradient->step + 1;
        struct trace *spans =
            trace_wants(training->settings.roster->trace, step) ? training->settings.roster->trace : NULL;
        const double began_s = spans ? world_now(training->settings.world) : 0.0;
        RETURN_IF(training->strategy->serve(shard, gradient, &server->error));
        if (spans) note_span(server, shard, mail.worker, step, began_s);
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

int training_serve_rest(struct training *training, struct error *error) {
    struct store *store = training->settings.store;
    for (int i = 0; i < training->server_count; i++)
        for (int s = i; s < store->settings.shards; s += training->server_count)
            if (serve_shard(&training->servers[i], &store->shards[s]) != OK)
                return error_set(error, training->servers[i].error.code, "%s",
                                 training->servers[i].error.words);
    return OK;
}
