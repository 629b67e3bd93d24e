/* Two halves in one process: a parameter server on a thread of its own, and a worker that finds it like any
 * other, at its address. See mirrored.h. */
#include "mirrored.h"

#include <stdatomic.h>
#include <stdio.h>

#include "../base/memory.h"
#include "../output/progress.h"
#include "run.h"

/* The half that is a parameter server. */
struct server_half {
    struct run_settings settings;
    struct run_result result;
    struct error error;
    _Atomic bool failed, worker_failed;
    bool was_first; /* it failed before the worker did */
};

static void server_body(void *argument) {
    struct server_half *server = argument;
    if (run_train(&server->settings, &server->result, &server->error) == OK) return;
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

static int train_halves(struct server_half *server, const struct run_settings *settings,
                        const struct cluster *cluster, struct finish *finish, struct error *error) {
    struct world *world = NULL;
    struct world_thread *thread = NULL;
    RETURN_IF(world_open_threads(&world, error));
    int code = world_spawn(world, "server", NULL, server_body, server, &thread, error);
    if (code == OK) {
        struct run_settings worker = *settings;
        worker.give_up = &server->failed;
        code = remote_train(&worker, cluster, finish, error);
        if (code != OK) atomic_store(&server->worker_failed, true);
        world_join(thread);
        code = choose_error(server, error);
    }
    world_close(world);
    return code;
}

static void say_where(const struct server_half *server) {
    struct progress progress;
    progress_open(&progress, stderr, false);
    progress_say(&progress, "the model is in %s", server->result.settings.out);
}

int mirrored_train(const struct run_settings *settings, const struct cluster *cluster, struct finish *finish,
                   struct error *error) {
    void *block = NULL;
    struct cluster both = *cluster; /* borrows its lists */
    struct run_settings own = *settings;
    both.ps = both.workers;
    both.mirrored = true;
    own.mirrored = true;
    own.servers = both.ps.count;
    world_catch_interrupts();
    RETURN_IF(memory_zeroed(&block, 1, sizeof(struct server_half), "a mirrored process", error));
    struct server_half *server = block;
    server->settings = own;
    server->settings.hosted = &both;
    server->settings.give_up = &server->worker_failed;
    if (cluster->task > 0) server->settings.quiet = true;
    const int code = train_halves(server, &own, &both, finish, error);
    if (code == OK && cluster->task > 0 && !settings->quiet) say_where(server);
    run_result_free(&server->result);
    memory_free(server);
    return code;
}
