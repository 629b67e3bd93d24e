/* Two halves in one process: a parameter server on one thread, and a worker that connects to it like any
 * other, by its address. See mirrored.h. */
#include "mirrored.h"

#include <stdatomic.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../record/progress.h"
#include "../record/sentence.h"
#include "../run/run.h"
#include "follower.h"

/* The half that is a parameter server. */
struct server_half {
    struct typed typed;
    struct cluster cluster; /* of both halves; borrows its lists */
    struct members_settings members;
    struct world *world;
    struct run_result result;
    struct error error;
    _Atomic bool failed, worker_failed;
    bool was_first; /* it failed before the worker did */
};

static void server_body(void *argument) {
    struct server_half *server = argument;
    int code = OK;
    if (server->cluster.task == 0) {
        const struct crew crew = members_crew(&server->members);
        code = run_train(&server->typed, &crew, server->world, &server->result, &server->error);
    } else {
        code = follow_train(&server->typed, &server->members, server->world, &server->result, &server->error);
    }
    if (code == OK) return;
    server->was_first = !atomic_load(&server->worker_failed);
    atomic_store(&server->failed, true);
}

/* A failure of the other side's peer is mostly a consequence of this side's. */
static int choose_error(const struct server_half *server, struct error *error) {
    const struct error *other = &server->error;
    if (other->code == OK) return error->code;
    const bool worker_knows = error->code != OK && error->code != ERROR_PEER;
    if (worker_knows || (error->code != OK && other->code == ERROR_PEER && !server->was_first))
        return error->code;
    *error = *other;
    return error->code;
}

/* The halves have a world each: when one fails, it stops its own, and the other one ends in order. */
static int train_halves(struct server_half *server, const struct typed *typed, struct world *world,
                        struct finish *finish, bool *abandoned, struct error *error) {
    struct world *own = NULL;
    struct world_thread *thread = NULL;
    RETURN_IF(world_open_beside(&own, world, error));
    server->members.because = error;
    int code = world_open_beside(&server->world, world, error);
    if (code == OK) code = world_spawn(world, "server", NULL, server_body, server, &thread, error);
    if (code == OK) {
        code = worker_train(typed, &server->cluster, own, &server->failed, finish, abandoned, error);
        if (code != OK) atomic_store(&server->worker_failed, true);
        world_join(thread);
        code = choose_error(server, error);
    }
    if (!server->result.abandoned) world_close(server->world);
    if (!*abandoned) world_close(own);
    return code;
}

static void say_where(const struct server_half *server) {
    struct progress progress;
    progress_open(&progress, stderr, false);
    progress_say(&progress, "the model is in %s", server->result.config.out);
}

/* Of a launcher's processes each has one GPU, for both halves. */
static void share_device(struct server_half *server) {
    struct config *config = &server->typed.value;
    if (!server->cluster.by || server->typed.given.devices) return;
    server->typed.given.devices =
        devices_in_turn(server->cluster.turn, config->devices, sizeof config->devices);
}

int mirrored_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                   struct finish *finish, char *sentence, bool *abandoned, struct error *error) {
    struct server_half *server = NULL;
    *abandoned = false;
    world_catch_interrupts();
    RETURN_IF(memory_array(&server, 1, "a mirrored process", error));
    server->typed = *typed;
    server->cluster = *cluster;
    server->cluster.ps = cluster->workers;
    server->cluster.mirrored = true;
    server->members =
        (struct members_settings){.cluster = &server->cluster, .give_up = &server->worker_failed};
    if (cluster->task > 0) server->typed.value.quiet = true;
    share_device(server);
    const int code = train_halves(server, typed, world, finish, abandoned, error);
    if (code == OK && cluster->task > 0 && !typed->value.quiet) say_where(server);
    sentence_of_run(&server->result.summary, sentence, SENTENCE_BYTES);
    *abandoned = *abandoned || server->result.abandoned;
    run_result_free(&server->result);
    if (!*abandoned) memory_free(server);
    return code;
}
