/* Workers and servers started, paused, ended and joined. See training.h. */
#include "training.h"

#include "worker.h"

int training_servers(const struct choice *choice, int shards, int workers) {
    const struct strategy *strategy = (const struct strategy *)(const void *)choice->plugin;
    if (!strategy->traits(choice->settings)->servers) return 0;
    return shards < workers ? shards : workers;
}

void training_fail(struct training *training, int member) {
    int none = -1;
    atomic_compare_exchange_strong(&training->failed, &none, member);
    world_stop(training->settings.world);
    event_post(&training->bell);
}

bool training_failed(const struct training *training) {
    return atomic_load(&training->failed) >= 0;
}

static int open_worker_memory(struct training *training, struct worker *worker, struct error *error) {
    const struct store_settings *store = &training->settings.store->settings;
    void *block = NULL;
    worker->slab_count = store->slots + 1;
    RETURN_IF(memory_zeroed(&block, (size_t)store->slots + 1, sizeof(float *), "a worker's slots", error));
    worker->slabs = block;
    RETURN_IF(
        memory_zeroed(&block, (size_t)store->slots + 1, sizeof(struct log_row), "a worker's rows", error));
    worker->rows = block;
    RETURN_IF(memory_zeroed(&block, (size_t)training->settings.dealer->stream.batch, sizeof(int),
                            "a batch's numbers", error));
    worker->index_of = block;
    RETURN_IF(memory_zeroed(&block, (size_t)store->shards, sizeof(long), "a worker's versions", error));
    worker->side.version = block;
    for (int s = 0; s < store->shards; s++) worker->side.version[s] = -1; /* none: the first pull copies */
    return OK;
}

static int start_workers(struct training *training, struct error *error) {
    struct roster *roster = training->settings.roster;
    for (int w = 0; w < roster->workers; w++) {
        struct worker *worker = &training->workers[w];
        worker->training = training;
        worker->index = w;
        worker->side.store = training->settings.store;
        worker->side.strategy = training->strategy;
        worker->side.worker = w;
        RETURN_IF(open_worker_memory(training, worker, error));
    }
    for (int w = 0; w < roster->workers; w++) {
        const struct cores *cores = training->settings.cores ? &training->settings.cores[w] : NULL;
        RETURN_IF(world_spawn(training->settings.world, roster->members[w].name, cores, worker_body,
                              &training->workers[w], &training->workers[w].thread, error));
    }
    return OK;
}

/* A server runs on the cores of its first shard's home: the shards are dealt over the workers' devices. */
static int start_servers(struct training *training, struct error *error) {
    struct roster *roster = training->settings.roster;
    for (int i = 0; i < training->server_count; i++) {
        struct server *server = &training->servers[i];
        server->training = training;
        server->index = i;
        event_open(&server->mail, training->settings.world);
        for (int s = i; s < training->settings.store->settings.shards; s += training->server_count)
            training->settings.store->shards[s].mail = &server->mail;
    }
    for (int i = 0; i < training->server_count; i++) {
        const struct cores *cores =
            training->settings.cores ? &training->settings.cores[i % roster->workers] : NULL;
        RETURN_IF(world_spawn(training->settings.world, roster->members[roster->workers + i].name, cores,
                              server_body, &training->servers[i], &training->servers[i].thread, error));
    }
    return OK;
}

int training_open(struct training *training, const struct training_settings *settings, struct error *error) {
    void *block = NULL;
    *training = (struct training){
        .settings = *settings, .strategy = (const struct strategy *)(const void *)settings->strategy->plugin};
    training->traits = training->strategy->traits(settings->strategy->settings);
    training->server_count =
        training_servers(settings->strategy, settings->store->settings.shards, settings->roster->workers);
    atomic_store(&training->failed, -1);
    event_open(&training->go, settings->world);
    event_open(&training->bell, settings->world);
    RETURN_IF(
        memory_zeroed(&block, (size_t)settings->roster->workers, sizeof(struct worker), "workers", error));
    training->workers = block;
    RETURN_IF(memory_zeroed(&block, (size_t)training->server_count, sizeof(struct server), "servers", error));
    training->servers = block;
    if (training->strategy->open)
        for (int s = 0; s < settings->store->settings.shards; s++)
            RETURN_IF(
                training->strategy->open(&settings->store->shards[s], settings->strategy->settings, error));
    RETURN_IF(start_servers(training, error));
    return start_workers(training, error);
}

void training_go(struct training *training) {
    const double now = world_now(training->settings.world);
    if (training->segments == 0)
        training->started_s = now;
    else
        training->paused_s += now - training->pause_began_s;
    training->segments++;
    event_post(&training->go);
}

static bool all_paused(const struct training *training) {
    const long workers = training->settings.roster->workers;
    return training_failed(training) || atomic_load(&training->pauses) >= training->segments * workers;
}

static bool wants_look(void *argument) {
    const struct training *training = argument;
    return all_paused(training) || atomic_load(&training->log_full);
}

bool training_wait(struct training *training, double seconds) {
    struct world *world = training->settings.world;
    event_wait_until(&training->bell, wants_look, training, world_now(world) + seconds);
    if (!all_paused(training)) return false;
    training->pause_began_s = world_now(world);
    return true;
}

double training_seconds(const struct training *training) {
    if (training->segments == 0) return 0.0;
    const bool running = !all_paused(training);
    const double until = running ? world_now(training->settings.world) : training->pause_began_s;
    return until - training->started_s - training->paused_s;
}

const struct worker_totals *training_totals(const struct training *training, int worker) {
    return &training->workers[worker].totals;
}

long long training_bytes_moved(const struct training *training, int worker) {
    return training->workers[worker].side.bytes_moved;
}

void training_take_loss(struct training *training, double *sum, long *steps) {
    *sum = 0.0;
    *steps = 0;
    for (int w = 0; w < training->settings.roster->workers; w++) {
        struct worker_totals *totals = &training->workers[w].totals;
        *sum += totals->loss_sum;
        *steps += totals->loss_steps;
        totals->loss_sum = 0.0;
        totals->loss_steps = 0;
    }
}

int training_end(struct training *training, struct error *error) {
    const int workers = training->settings.roster ? training->settings.roster->workers : 0;
    atomic_store(&training->ending, true);
    if (training->workers) event_post(&training->go);
    for (int w = 0; training->workers && w < workers; w++) {
        world_join(training->workers[w].thread);
        training->workers[w].thread = NULL;
    }
    for (int i = 0; training->servers && i < training->server_count; i++) {
        if (training->servers[i].thread) event_post(&training->servers[i].mail);
        world_join(training->servers[i].thread);
        training->servers[i].thread = NULL;
    }
    const int failed = training->workers ? atomic_load(&training->failed) : -1;
    if (failed < 0) return OK;
    const struct error *first =
        failed < workers ? &training->workers[failed].error : &training->servers[failed - workers].error;
    return error_set(error, first->code, "%s", first->words);
}

void training_close(struct training *training) {
    const struct store *store = training->settings.store;
    for (int s = 0; store && training->strategy->close && s < store->settings.shards; s++)
        training->strategy->close(&store->shards[s]);
    for (int w = 0; training->workers && w < training->settings.roster->workers; w++) {
        struct worker *worker = &training->workers[w];
        for (int i = 0; worker->slabs && i < worker->slab_count; i++) memory_free(worker->slabs[i]);
        memory_free((void *)worker->slabs);
        memory_free(worker->rows);
        memory_free(worker->index_of);
        memory_free(worker->side.version);
        memory_free(worker->own_weights);
    }
    memory_free(training->workers);
    memory_free(training->servers);
    *training = (struct training){0};
}
