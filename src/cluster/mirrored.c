/* Two halves in one process: a parameter server on one thread, and a worker that connects to it like any
 * other, by its address. One that joins has the worker's half alone. See mirrored.h. */
#include "mirrored.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "../bridge/joins.h"
#include "../record/progress.h"
#include "follower.h"
#include "leader.h"

/* The half that is a parameter server. */
struct server_half {
    struct typed typed;
    struct cluster cluster;         /* of both halves; borrows its lists */
    struct cluster_session session; /* as this half sees it */
    struct members_settings members;
    struct event printed;      /* the lines of the steps before a pause, by the other half */
    struct run_result *result; /* the caller's: parts of it point into it */
    struct error error;
    _Atomic bool failed, worker_failed;
    bool was_first;                   /* it failed before the worker did */
    double failed_s, worker_failed_s; /* of the world */
};

static void server_body(void *argument) {
    struct server_half *server = argument;
    int code = OK;
    if (server->cluster.task == 0)
        code = leader_session(&server->members, server->result, &server->error);
    else
        code = follow_session(&server->members, server->result, &server->error);
    if (code == OK) return;
    server->was_first = !atomic_load(&server->worker_failed);
    server->failed_s = world_now(server->session.world);
    atomic_store(&server->failed, true);
}

static void warn_of_device(const struct error *error) {
    char words[400];
    snprintf(words, sizeof words, "the training went on without the device of this process: %.300s",
             error->words);
    progress_warn_of(words);
}

/* A failure of the other side's peer is mostly a consequence of this side's; not where the run went on
 * without this side for longer than anybody is waited for. */
static int choose_error(const struct server_half *server, const struct cluster_session *session,
                        struct error *error) {
    const struct error *other = &server->error;
    if (other->code == OK) return error->code;
    const bool worker_knows = error->code != OK && error->code != ERROR_PEER;
    const bool follows =
        !server->was_first && server->failed_s - server->worker_failed_s < server->typed.value.timeout_s;
    if (worker_knows || (error->code != OK && other->code == ERROR_PEER && follows)) return error->code;
    if (error->code != OK && !server->was_first && !follows && atomic_load(&session->begun))
        warn_of_device(error);
    *error = *other;
    return error->code;
}

/* Where the run goes on from is known to the half that leads alone. */
static void add_rest(const struct server_half *server, struct error *error) {
    struct text words = {.bytes = error->words, .room = sizeof error->words, .used = strlen(error->words)};
    const char *rest = server->result->rest;
    if (rest[0] != '\0' && !strstr(error->words, rest)) text_add(&words, "%s", rest);
}

/* Where a run may go on without a worker, that may be this process's: what came of it is what this process
 * ends with, too. */
static int go_by_server(const struct server_half *server, struct finish *finish, struct error *error) {
    const struct summary *summary = &server->result->summary;
    if (error->code != ERROR_PEER || server->error.code != OK) return error->code;
    warn_of_device(error);
    *finish = (struct finish){.metric = summary->metric,
                              .test_score = summary->test_score,
                              .final_cost = summary->final_cost,
                              .train_seconds = summary->train_seconds};
    *error = (struct error){0};
    return OK;
}

/* What either half has seen counts for both. */
static void join_sessions(struct cluster_session *session, const struct cluster_session *other) {
    session_see(session, atomic_load(&other->seen));
    if (atomic_load(&other->begun)) atomic_store(&session->begun, true);
    if (atomic_load(&other->over)) atomic_store(&session->over, true);
}

/* The halves have a world each: when one fails, it stops its own, and the other one ends in order. */
static int train_halves(struct server_half *server, struct cluster_session *session, struct finish *finish,
                        bool *abandoned, struct error *error) {
    struct world *const world = session->world;
    struct world_thread *thread = NULL;
    RETURN_IF(world_open_beside(&session->world, world, error));
    server->members.because = error;
    int code = world_open_beside(&server->session.world, world, error);
    if (code == OK && server->cluster.task == 0 && !server->typed.value.quiet) {
        event_open(&server->printed, server->session.world);
        session->printed = server->session.printed = &server->printed;
    }
    if (code == OK) code = world_spawn(world, "server", NULL, server_body, server, &thread, error);
    if (code == OK) {
        code = worker_session(session, &server->failed, finish, abandoned, error);
        if (code != OK && atomic_load(&session->over)) atomic_store(&server->session.over, true);
        server->worker_failed_s = world_now(world);
        if (code != OK) atomic_store(&server->worker_failed, true);
        world_join(thread);
        code = choose_error(server, session, error);
        if (code != OK) code = go_by_server(server, finish, error);
        if (code != OK) add_rest(server, error);
    }
    join_sessions(session, &server->session);
    if (!server->result->abandoned) world_close(server->session.world);
    if (*abandoned) return code;
    world_close(session->world);
    session->world = world;
    return code;
}

static void say_where(const struct server_half *server) {
    struct progress progress;
    progress_open(&progress, stderr, false);
    progress_say(&progress, "the model is %s/model.safetensors", server->result->config.out);
}

/* Of a launcher's processes each has one GPU, for both halves. */
static void share_device(struct server_half *server) {
    struct config *config = &server->typed.value;
    if (!server->cluster.by || server->typed.given.devices) return;
    server->typed.given.devices =
        devices_in_turn(server->cluster.turn, config->devices, sizeof config->devices);
}

struct mirroring {
    struct finish *finish;
    struct run_result *result;
};

/* The weights are where they are for the whole run: in the processes of all workers, or with --workers in
 * those of the first ones, who are there from the start. */
static int share_weights(struct cluster *cluster, const struct config *config, struct error *error) {
    int least;
    RETURN_IF(joins_read(config, cluster, &least, error));
    cluster->ps = cluster->workers;
    if (least > 0) cluster->ps.count = least;
    cluster->mirrored = true;
    return OK;
}

/* Both halves. */
static int train_whole(struct server_half *server, struct cluster_session *session,
                       const struct mirroring *mirroring, bool *abandoned, struct error *error) {
    const struct cluster *cluster = session->cluster;
    server->typed = *session->typed;
    server->result = mirroring->result;
    server->session = (struct cluster_session){.typed = &server->typed,
                                               .cluster = session->cluster,
                                               .until_s = session->until_s,
                                               .again = session->again,
                                               .seen_before = session->seen_before};
    server->members = (struct members_settings){
        .cluster = &server->cluster, .give_up = &server->worker_failed, .session = &server->session};
    if (cluster->task > 0) server->typed.value.quiet = true;
    share_device(server);
    const int code = train_halves(server, session, mirroring->finish, abandoned, error);
    if (code == OK && cluster->task > 0 && !session->typed->value.quiet) say_where(server);
    *abandoned = *abandoned || server->result->abandoned;
    return code;
}

static int train(void *argument, struct cluster_session *session, bool *abandoned, struct error *error) {
    const struct mirroring *mirroring = argument;
    struct server_half *server = NULL;
    run_result_free(mirroring->result); /* of the session before */
    world_catch_interrupts();
    RETURN_IF(memory_array(&server, 1, "a mirrored process", error));
    server->cluster = *session->cluster;
    int code = share_weights(&server->cluster, &session->typed->value, error);
    session->cluster = &server->cluster;
    if (code == OK && cluster_holds(&server->cluster))
        code = train_whole(server, session, mirroring, abandoned, error);
    else if (code == OK)
        code = worker_session(session, NULL, mirroring->finish, abandoned, error);
    if (!*abandoned) memory_free(server);
    return code;
}

int mirrored_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   struct finish *finish, struct run_result *result, bool *abandoned, struct error *error) {
    struct mirroring mirroring = {finish, result};
    *result = (struct run_result){0};
    return sessions_train(typed, cluster, world, train, &mirroring, abandoned, error);
}
