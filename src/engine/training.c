/* Starts, pauses, ends and joins workers and servers. See training.h. */
#include "training.h"

#include <math.h>

#include "worker.h"

int training_servers(const struct choice *choice, int shards, int workers) {
    const struct strategy *strategy = strategy_of(choice);
    if (!strategy_traits(strategy, choice->settings)->servers) return 0;
    return shards < workers ? shards : workers;
}

void training_fail(struct training *training, int member) {
    int none = -1;
    atomic_compare_exchange_strong(&training->failed, &none, member);
    world_stop(training->settings.world);
    event_post(&training->bell);
}

void training_stop(struct training *training, const struct error *why) {
    training->silence = *why;
    training_fail(training, training->settings.roster->count);
}

bool training_failed(const struct training *training) {
    return atomic_load(&training->failed) >= 0;
}

int training_failing(const struct training *training) {
    return atomic_load(&training->failed);
}

bool training_is_hopeless(const struct training_settings *settings, double first, double loss) {
    const double usual = fmax(first, settings->guess_loss);
    return settings->guess_loss > 0.0 && loss > HOPELESS_TIMES * usual;
}

/* The step that a worker is at, earlier parts of the run included. */
static long step_of(const struct training *training, int worker) {
    const long *before = training->settings.steps_before;
    const struct member *member = &training->settings.roster->members[worker];
    return atomic_load(&member->step) + member->earlier + (before ? before[worker] : 0);
}

/* --- losses --- */

bool training_spares(const struct training *training, int worker) {
    const struct roster *roster = training->settings.roster;
    if (!training->settings.go_on || atomic_load(&training->ending)) return false;
    for (int w = 0; w < roster->workers; w++)
        if (w != worker && atomic_load(&roster->members[w].active)) return true;
    return false;
}

/* With rounds the workers stop at the last round that any worker was assigned, so that the coordinator can
 * assign the rest to those who are left. */
void training_lose(struct training *training, int worker, const struct error *why) {
    struct worker *lost = &training->workers[worker];
    struct roster *roster = training->settings.roster;
    lost->loss = *why;
    lost->lost_step = atomic_load(&roster->members[worker].step);
    sampler_bar(training->settings.sampler, worker);
    if (training->settings.sampler->rounds) sampler_stop(training->settings.sampler);
    if (training->settings.compute.lose)
        training->settings.compute.lose(training->settings.compute.self, worker);
    atomic_store(&lost->lost, true);
    roster_leave(roster, worker, PHASE_FAILED);
    atomic_fetch_add(&training->losses, 1);
    event_post(&training->bell);
}

void training_leave(struct training *training, int worker) {
    struct worker *leaver = &training->workers[worker];
    leaver->left = true;
    training_lose(training, worker, &leaver->error);
}

bool training_left(const struct training *training, int worker, long *steps) {
    const struct worker *leaver = &training->workers[worker];
    if (!atomic_load(&leaver->lost) || !leaver->left) return false;
    *steps = leaver->side.step;
    return true;
}

bool training_lost(const struct training *training, int worker, long *step, const char **words) {
    const struct worker *lost = &training->workers[worker];
    if (!atomic_load(&lost->lost)) return false;
    *step = lost->lost_step;
    *words = lost->loss.words;
    return true;
}

static void say_hanging(const struct training *training, int worker, char *out, size_t bytes) {
    const struct compute *compute = &training->settings.compute;
    const int phase = atomic_load(&training->settings.roster->members[worker].phase);
    if (compute->say_hanging && phase == PHASE_COMPUTE)
        compute->say_hanging(compute->self, worker, out, bytes);
}

/* A worker that another waits for in vain. It may have been removed already, or be on its way out. */
bool training_remove(void *argument, int member) {
    struct training *training = argument;
    struct roster *roster = training->settings.roster;
    const struct member *silent = &roster->members[member];
    struct error why = {0};
    if (member >= roster->workers) return false;
    if (!atomic_load(&silent->active) || roster_expelled(roster, member)) return true;
    const char *phase = phase_name((enum phase)atomic_load(&silent->phase));
    char hangs[200] = "";
    say_hanging(training, member, hangs, sizeof hangs);
    if (!training_spares(training, member)) return false;
    if (!roster_expel(roster, member)) return roster_expelled(roster, member);
    error_set(&why, ERROR_PEER, "%s showed no sign of life for %g s, %s at step %ld%s%s", silent->name,
              roster->timeout_s, phase, step_of(training, member), hangs[0] ? ": " : "", hangs);
    training_lose(training, member, &why);
    return true;
}

void training_give_up(struct training *training, int worker) {
    struct error why = {0};
    const struct member *member = &training->settings.roster->members[worker];
    if (!atomic_load(&member->active) || !roster_expel(training->settings.roster, worker)) return;
    error_set(&why, ERROR_PEER, "%s: another process of the cluster has lost it", member->name);
    training_lose(training, worker, &why);
}

/* --- opening --- */

static int open_worker_memory(struct training *training, struct worker *worker, struct error *error) {
    const struct store_settings *store = &training->settings.store->settings;
    worker->slab_count = (store->slots_most > store->slots ? store->slots_most : store->slots) + 1;
    RETURN_IF(memory_array(&worker->slabs, worker->slab_count, "a worker's slots", error));
    RETURN_IF(memory_array(&worker->rows, worker->slab_count, "a worker's rows", error));
    RETURN_IF(memory_array(&worker->side.version, store->shards, "a worker's versions", error));
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
        worker->traits = training->traits;
        worker->side.worker = w;
        RETURN_IF(open_worker_memory(training, worker, error));
        RETURN_IF(prefetcher_open(&worker->prefetcher, &training->settings, w, error));
    }
    for (int w = 0; w < roster->workers; w++)
        if (atomic_load(&roster->members[w].active)) RETURN_IF(training_start(training, w, error));
    return OK;
}

/* A server runs on the cores of its first shard's home: the shards are spread over the workers' devices. */
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

bool training_copies_to(const struct store *store, const struct traits *traits, int worker,
                        const struct device *device) {
    if (!traits->own_weights) return false;
    return !traits->own_moments || device_same_memory(store_own_device(store, worker), device);
}

int training_open(struct training *training, const struct training_settings *settings, struct error *error) {
    *training = (struct training){.settings = *settings, .strategy = strategy_of(settings->strategy)};
    training->traits = strategy_traits(training->strategy, settings->strategy->settings);
    training->server_count = settings->roster->count - settings->roster->workers;
    atomic_store(&training->failed, -1);
    event_open(&training->go, settings->world);
    event_open(&training->bell, settings->world);
    settings->roster->remove = training_remove;
    settings->roster->remove_argument = training;
    RETURN_IF(memory_array(&training->workers, settings->roster->workers, "workers", error));
    RETURN_IF(memory_array(&training->servers, training->server_count, "servers", error));
    RETURN_IF(training_open_strategy(training, error));
    RETURN_IF(start_servers(training, error));
    return start_workers(training, error);
}

static int first_starting(const struct training *training) {
    const struct roster *roster = training->settings.roster;
    int w = 0;
    while (w < roster->workers && (atomic_load(&roster->members[w].phase) != PHASE_STARTING ||
                                   !atomic_load(&roster->members[w].active)))
        w++;
    return w < roster->workers ? w : -1;
}

static bool all_started(void *argument) {
    const struct training *training = argument;
    return training_failed(training) || first_starting(training) < 0;
}

int training_starting(struct training *training, double seconds) {
    struct world *world = training->settings.world;
    event_wait_until(&training->bell, all_started, training, world_now(world) + seconds);
    return all_started(training) ? -1 : first_starting(training);
}

void training_go(struct training *training) {
    const double now = world_now(training->settings.world);
    if (training->segments == 0)
        training->started_s = now;
    else
        training->paused_s += now - training->pause_began_s;
    training->went_s = now;
    training->segments++;
    atomic_store(&training->awaits_servers, false);
    event_post(&training->go);
}

static bool is_running(const struct training *training, int worker) {
    return atomic_load(&training->workers[worker].pauses) < training->segments &&
           atomic_load(&training->settings.roster->members[worker].active);
}

static bool any_running(const struct training *training) {
    for (int w = 0; w < training->settings.roster->workers; w++)
        if (is_running(training, w)) return true;
    return false;
}

/* The first server that still has gradients: those of a lost worker, which nobody waits for. -1: none. A
 * server says that it is busy before it takes mail, so the mailboxes are looked at first. */
static int first_serving(const struct training *training) {
    for (int s = 0; s < training->settings.store->settings.shards && training->server_count > 0; s++)
        if (mailbox_has_mail(&training->settings.store->shards[s].mailbox)) return s % training->server_count;
    for (int i = 0; i < training->server_count; i++)
        if (atomic_load(&training->servers[i].busy)) return i;
    return -1;
}

static bool all_paused(const struct training *training) {
    return training_failed(training) || (!any_running(training) && first_serving(training) < 0);
}

/* World time at which the last worker paused or was lost. */
static double latest_pause(const struct training *training) {
    const struct roster *roster = training->settings.roster;
    double latest = training->went_s;
    for (int w = 0; w < roster->workers; w++) latest = fmax(latest, atomic_load(&roster->members[w].since));
    return latest;
}

/* Workers that nobody waits for can stop answering, too. Those that wait themselves have their own
 * timeout, which must end first because its message says more. */
static void look_for_silence(struct training *training) {
    struct roster *roster = training->settings.roster;
    const double now = world_now(training->settings.world);
    for (int w = 0; w < roster->workers; w++) {
        const struct member *member = &roster->members[w];
        const double silent_s = now - fmax(atomic_load(&member->since), training->went_s);
        if (!is_running(training, w) || atomic_load(&member->phase) == PHASE_WAIT) continue;
        if (silent_s < 1.1 * roster->timeout_s || training_remove(training, w)) continue;
        char hangs[200] = "";
        const char *phase = phase_name((enum phase)atomic_load(&member->phase));
        say_hanging(training, w, hangs, sizeof hangs);
        error_set(&training->silence, ERROR_PEER,
                  "gave up after %g s without a sign of life: waiting for %s, %s for %.1f s at step %ld%s%s",
                  roster->timeout_s, member->name, phase, silent_s, step_of(training, w),
                  hangs[0] ? ": " : "", hangs);
        training_fail(training, roster->count);
        return;
    }
    const int serving = any_running(training) ? -1 : first_serving(training);
    const double served_s = now - latest_pause(training);
    if (serving < 0 || served_s < 1.1 * roster->timeout_s) return;
    error_set(&training->silence, ERROR_PEER,
              "gave up after %g s: waiting for %s to apply what was sent to it, while all workers are paused",
              roster->timeout_s, roster->members[roster->workers + serving].name);
    training_fail(training, roster->count);
}

/* Servers ring the bell from when all workers are found paused: one of the two sees the other. */
static bool wants_look(void *argument) {
    struct training *training = argument;
    if (!any_running(training)) atomic_store(&training->awaits_servers, true);
    return all_paused(training) || atomic_load(&training->log_full);
}

/* When it came to rest, or was lost: then others may have waited for it until that. */
static double came_to_rest_s(const struct training *training, int index) {
    const struct worker *worker = &training->workers[index];
    if (atomic_load(&worker->pauses) == training->segments) return worker->accounted_s;
    return atomic_load(&worker->lost) ? atomic_load(&training->settings.roster->members[index].acted)
                                      : -INFINITY;
}

/* Who paused early waited for who came last. */
static void settle_pause(struct training *training) {
    struct roster *roster = training->settings.roster;
    int last = 0;
    for (int w = 1; w < roster->workers; w++)
        if (came_to_rest_s(training, w) > came_to_rest_s(training, last)) last = w;
    for (int w = 0; w < roster->workers; w++) {
        struct worker *worker = &training->workers[w];
        if (atomic_load(&worker->pauses) != training->segments) continue; /* it was lost */
        const double waited_s = training->pause_began_s - worker->accounted_s;
        worker->totals.wait_s += waited_s;
        worker->totals.rest_s += waited_s;
        worker->accounted_s = training->pause_began_s;
        note_wait(roster, w, "the end of the epoch", w == last ? -1 : last, waited_s);
    }
    training->settled = training->segments;
}

bool training_wait(struct training *training, double seconds) {
    struct world *world = training->settings.world;
    event_wait_until(&training->bell, wants_look, training, world_now(world) + seconds);
    look_for_silence(training);
    if (!all_paused(training)) return false;
    if (training->settled == training->segments) return true;
    training->pause_began_s = world_now(world);
    if (!training_failed(training)) settle_pause(training);
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

long training_steps(const struct training *training, int worker) {
    return training->workers[worker].side.step;
}

long long training_bytes_moved(const struct training *training, int worker) {
    return training->workers[worker].side.bytes_moved;
}

void training_loss(const struct training *training, double *sum, double *steps) {
    *sum = *steps = 0.0;
    for (int w = 0; training->workers && w < training->settings.roster->workers; w++) {
        *sum += training->workers[w].totals.loss_sum;
        *steps += training->workers[w].totals.loss_steps;
    }
}

void training_take_loss(struct training *training, double *sum, double *steps) {
    training_loss(training, sum, steps);
    for (int w = 0; w < training->settings.roster->workers; w++)
        training->workers[w].totals.loss_sum = training->workers[w].totals.loss_steps = 0.0;
}

/* The failure that came first, with its own message. */
static int first_failure(const struct training *training, struct error *error) {
    const int failed = training->workers ? atomic_load(&training->failed) : -1;
    const int workers = training->settings.roster ? training->settings.roster->workers : 0;
    if (failed < 0) return OK;
    const struct error *first = failed < workers ? &training->workers[failed].error
                                : failed < training->settings.roster->count
                                    ? &training->servers[failed - workers].error
                                    : &training->silence;
    return error_set(error, first->code, "%s", first->words);
}

/* Joins a thread if it ends in time; one that does not is left behind, with all it may use. */
static void end_thread(struct training *training, struct world_thread **thread, double deadline) {
    const double left = deadline - world_now(training->settings.world);
    if (world_join_within(*thread, left > 0.0 ? left : 0.0))
        *thread = NULL;
    else
        training->abandoned = true;
}

int training_end(struct training *training, struct error *error) {
    const int workers = training->settings.roster ? training->settings.roster->workers : 0;
    const double deadline =
        workers > 0 ? world_now(training->settings.world) + training->settings.ending_s : 0.0;
    atomic_store(&training->ending, true);
    if (training->workers) event_post(&training->go);
    for (int w = 0; training->workers && w < workers; w++) {
        end_thread(training, &training->workers[w].thread, deadline);
        prefetcher_end(&training->workers[w].prefetcher);
        end_thread(training, &training->workers[w].prefetcher.thread, deadline);
    }
    for (int i = 0; training->servers && i < training->server_count; i++) {
        if (training->servers[i].thread) event_post(&training->servers[i].mail);
        end_thread(training, &training->servers[i].thread, deadline);
    }
    return first_failure(training, error);
}

void training_close(struct training *training) {
    if (training->abandoned) return;
    const struct store *store = training->settings.store;
    training_close_strategy(training);
    for (int w = 0; training->workers && w < training->settings.roster->workers; w++) {
        struct worker *worker = &training->workers[w];
        for (int i = 0; worker->slabs && i < worker->slab_count; i++)
            store_own_vector_free(store, w, worker->slabs[i]);
        memory_free((void *)worker->slabs);
        memory_free(worker->rows);
        prefetcher_close(&worker->prefetcher);
        memory_free(worker->side.version);
        worker_close_own(worker);
    }
    memory_free(training->workers);
    memory_free(training->servers);
    *training = (struct training){0};
}
