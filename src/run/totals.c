/* What a run was, and what it adds up to: the workers' times and the shards' tallies, for summary.json. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "open.h"
#include "../base/text.h"
#include "../device/ranges.h"

static int name_devices(const struct run *run, char **out, struct error *error) {
    struct text names = text_growing(error);
    for (int w = 0; w < run->workers; w++) groups_list(&names, run->device_lists[w]);
    *out = names.bytes;
    RETURN_IF(text_end(&names));
    if (*out) ranges_fold(*out);
    return OK;
}

int run_servers(const struct run *run) {
    return run->crew.parts > 1 ? run->crew.parts : run->roster.count - run->roster.workers;
}

/* Parameter servers have a run of shards each, threads every so many-th. */
int run_sizes(const struct run *run, long long *shard_bytes, long long *server_bytes, struct error *error) {
    const int shards = run->store.settings.shards_all, parts = run->crew.parts, servers = run_servers(run);
    size_t *boundary = NULL;
    RETURN_IF(memory_array(&boundary, shards + 1, "boundaries", error));
    const int code = store_cut(&run->setup.network.graph.layout, shards,
                               (enum shard_by)run->setup.config.shard_by, boundary, error);
    for (int s = 0; s < shards && code == OK; s++) {
        const long long bytes = (long long)((boundary[s + 1] - boundary[s]) * sizeof(float));
        shard_bytes[s] = bytes;
        if (servers > 0) server_bytes[parts > 1 ? s * parts / shards : s % servers] += bytes;
    }
    memory_free(boundary);
    return code;
}

static int describe_sizes(const struct run *run, struct run_result *result, struct error *error) {
    struct summary *summary = &result->summary;
    summary->servers = run_servers(run);
    RETURN_IF(memory_array(&result->shard_bytes, summary->shards, "the shards' sizes", error));
    RETURN_IF(memory_array(&result->server_bytes, summary->servers, "the servers' sizes", error));
    summary->shard_bytes = result->shard_bytes;
    summary->server_bytes = result->server_bytes;
    return run_sizes(run, result->shard_bytes, result->server_bytes, error);
}

static void describe_phases(const struct run *run, struct run_result *result) {
    result->summary.phases = result->phases;
    result->summary.phase_count = run_strategies(run, result->phases);
}

int run_describe(const struct run *run, struct run_result *result, struct error *error) {
    const struct config *config = &run->setup.config;
    struct summary *summary = &result->summary;
    result->config = *config;
    RETURN_IF(name_devices(run, &result->devices, error));
    store_name_homes(&run->store, result->homes, sizeof result->homes);
    if (!result->homes[0]) snprintf(result->homes, sizeof result->homes, "cpu");
    summary->program = "trainer " TRAINER_VERSION;
    summary->config = &result->config;
    describe_phases(run, result);
    summary->shards = run->store.settings.shards_all;
    summary->homes = result->homes;
    summary->devices = result->devices;
    const struct device *device = &run->setup.devices[0];
    device->backend->describe(device->label, result->machine, sizeof result->machine);
    summary->machine = result->machine;
    RETURN_IF(describe_sizes(run, result, error));
    summary->threads = run->setup.devices[0].threads;
    summary->faults = faults_text(result->faults, config->fail, config->stall, config->slow);
    return OK;
}

/* What all shards counted for a worker, those of other processes too. */
static struct tally tally_of(const struct run *run, int worker) {
    struct tally sum = {0};
    store_tally(&run->store, worker, &sum);
    if (run->crew.tally) run->crew.tally(run->members, worker, &sum);
    return sum;
}

static double mean_staleness(const struct tally *tally) {
    return tally->staleness.gradients > 0 ? staleness_mean(&tally->staleness) : 0.0;
}

static struct summary_staleness staleness_of(const struct tally *tally) {
    if (tally->staleness.gradients == 0) return (struct summary_staleness){0};
    return (struct summary_staleness){.mean = mean_staleness(tally),
                                      .p50 = staleness_percentile(&tally->staleness, 0.5),
                                      .p99 = staleness_percentile(&tally->staleness, 0.99),
                                      .max = tally->staleness.max};
}

static void sum_staleness(const struct run *run, struct summary *summary) {
    struct tally all = {0};
    for (int w = 0; w < run->workers; w++) {
        const struct tally tally = tally_of(run, w);
        tally_add(&all, &tally);
    }
    summary->dropped = all.dropped;
    summary->staleness = staleness_of(&all);
}

/* Of the shards of this process, each over all workers. */
static int sum_shards(const struct run *run, struct run_result *result, struct error *error) {
    const int shards = run->store.settings.shards;
    RETURN_IF(memory_array(&result->shard_staleness, shards, "results", error));
    for (int s = 0; s < shards; s++) {
        struct tally sum = {0};
        for (int w = 0; w < run->workers; w++) tally_add(&sum, &run->store.shards[s].tallies[w]);
        result->shard_staleness[s] = staleness_of(&sum);
    }
    result->summary.shard_staleness = result->shard_staleness;
    result->summary.shards_here = shards;
    return OK;
}

/* That count: those that a run which failed never applied do not. */
static long steps_of(const struct run *run, int worker) {
    const long steps = training_totals(&run->training, worker)->steps;
    const long most = run->roster.members[worker].earlier + run->rounds_most;
    return run->taken_back && steps > most ? most : steps;
}

long run_steps(const struct run *run) {
    long steps = run->steps_before;
    for (int w = 0; w < run->workers; w++) steps += steps_of(run, w);
    return steps;
}

void run_count_steps(struct run *run) {
    for (int w = 0; w < run->steps_count; w++)
        run->steps_of[w] = run->steps_of_before[w] + (w < run->workers ? steps_of(run, w) : 0);
}

/* Of the workers' first steps, or of the last of those who are still there, by their examples: what somebody
 * who was lost had last is no result of the run. `unknown` when none has made any. */
static double mean_loss(const struct run *run, bool last, double unknown) {
    const struct stream *stream = &run->sampler.stream;
    double sum = 0.0, counted = 0.0;
    for (int w = 0; w < run->workers; w++) {
        const struct worker_totals *totals = training_totals(&run->training, w);
        const double counts = (double)stream_size(stream, w) / stream->batch;
        if (totals->steps == 0 || (last && !atomic_load(&run->roster.members[w].active))) continue;
        sum += (double)(last ? totals->last_loss : totals->first_loss) * counts;
        counted += counts;
    }
    return counted > 0.0 ? sum / counted : unknown;
}

double run_final_cost(const struct run *run) {
    return mean_loss(run, true, run->cost_before);
}

double run_first_cost(const struct run *run) {
    return mean_loss(run, false, (double)NAN);
}

bool run_is_hopeless(const struct run *run) {
    const double first = run_first_cost(run);
    return !isnan(first) && training_is_hopeless(&run->training.settings, first, run_final_cost(run));
}

static void sum_workers(const struct run *run, struct summary *summary) {
    double input = 0.0, pull = 0.0, compute = 0.0, push = 0.0, wait = 0.0;
    long steps = 0;
    for (int w = 0; w < run->workers; w++) {
        const struct worker_totals *totals = training_totals(&run->training, w);
        input += totals->input_s;
        pull += totals->pull_s;
        compute += totals->compute_s;
        push += totals->push_s;
        wait += totals->wait_s;
        steps += totals->steps;
        summary->bytes_moved += training_bytes_moved(&run->training, w);
    }
    const double all = input + pull + compute + push + wait;
    const double per = all > 0.0 ? 1.0 / all : 0.0;
    summary->input_share = input * per;
    summary->batch_expected_s =
        run->setup.balanced.expected_s > 0.0 ? run->setup.balanced.expected_s : (double)NAN;
    summary->batch_compute_s = steps > 0 ? compute / (double)steps : (double)NAN;
    summary->pull_share = pull * per;
    summary->compute_share = compute * per;
    summary->push_share = push * per;
    summary->wait_share = wait * per;
    summary->steps = run_steps(run);
    summary->first_cost = run_first_cost(run);
    summary->final_cost = run_final_cost(run);
}

/* Where and for whom this worker waited longest, and how long for each. */
static void note_waits(const struct run *run, const struct member *member, double *waited_for,
                       struct worker_result *result) {
    memcpy(waited_for, member->waited_for, (size_t)run->roster.count * sizeof *waited_for);
    result->waited_for_each = waited_for;
    for (int i = 0; i < WAIT_PLACES; i++)
        if (member->waited_at[i].seconds > result->waited_at_s) {
            result->waited_at = member->waited_at[i].place;
            result->waited_at_s = member->waited_at[i].seconds;
        }
    for (int i = 0; i < run->roster.count; i++)
        if (member->waited_for[i] > result->waited_for_s) {
            memcpy(result->waited_for, run->roster.members[i].name, sizeof result->waited_for);
            result->waited_for_s = member->waited_for[i];
        }
}

static int name_members(const struct run *run, struct run_result *result, struct error *error) {
    const int members = run->roster.count;
    RETURN_IF(memory_array(&result->waited_for, (long)run->workers * members, "results", error));
    RETURN_IF(memory_array(&result->member_names, members, "results", error));
    for (int m = 0; m < members; m++)
        memcpy(result->member_names[m], run->roster.members[m].name, sizeof *result->member_names);
    result->summary.members = members;
    result->summary.member_names = (const char(*)[MEMBER_NAME_BYTES])result->member_names;
    return OK;
}

static int copy_joins(const struct run *run, struct run_result *result, struct error *error) {
    RETURN_IF(memory_array(&result->joins, run->join_count, "who has joined", error));
    for (int j = 0; j < run->join_count; j++) result->joins[j] = run->joins[j];
    result->summary.joins = result->joins;
    result->summary.join_count = run->join_count;
    return OK;
}

/* It is gone, and did not leave in order. */
static bool is_lost(const struct run *run, int worker) {
    long step, left_after;
    const char *words;
    return training_lost(&run->training, worker, &step, &words) &&
           !training_left(&run->training, worker, &left_after);
}

int run_totals(const struct run *run, struct run_result *result, struct error *error) {
    sum_staleness(run, &result->summary);
    RETURN_IF(sum_shards(run, result, error));
    sum_workers(run, &result->summary);
    struct crew_totals crew;
    run->crew.totals(run->members, &crew);
    result->summary.lost_updates = store_lost_updates(&run->store) + crew.lost_updates;
    result->summary.redone_updates = run->redone_updates;
    result->summary.cluster_ps = crew.ps;
    result->summary.cluster_workers = crew.workers;
    result->summary.wire_sent = crew.sent;
    result->summary.wire_received = crew.received;
    result->summary.pipeline_idle = crew.idle;
    result->summary.pipeline_idle_equal = crew.idle_equal;
    RETURN_IF(memory_array(&result->workers, run->workers, "results", error));
    RETURN_IF(name_members(run, result, error));
    for (int w = 0; w < run->workers; w++) {
        const struct worker_totals *totals = training_totals(&run->training, w);
        const struct member *member = &run->roster.members[w];
        const struct tally tally = tally_of(run, w);
        struct worker_result *worker = &result->workers[w];
        *worker = (struct worker_result){.steps = totals->steps,
                                         .examples = totals->examples,
                                         .input_s = totals->input_s,
                                         .pull_s = totals->pull_s,
                                         .compute_s = totals->compute_s,
                                         .push_s = totals->push_s,
                                         .wait_s = totals->wait_s,
                                         .staleness_mean = mean_staleness(&tally),
                                         .staleness_max = tally.staleness.max,
                                         .lost = is_lost(run, w)};
        struct recording_facts facts = {.nodes = -1, .why = ""};
        if (run->crew.recording) run->crew.recording(run->members, w, &facts);
        worker->recorded_nodes = facts.nodes;
        snprintf(worker->not_recorded, sizeof worker->not_recorded, "%s", facts.why);
        memcpy(worker->name, member->name, sizeof worker->name);
        memcpy(worker->device, run->member[w].device, sizeof worker->device);
        note_waits(run, member, result->waited_for + (size_t)w * (size_t)run->roster.count, worker);
        result->summary.lost_workers += worker->lost;
    }
    result->summary.per_worker = result->workers;
    result->summary.lost_workers += run->lost_before;
    return copy_joins(run, result, error);
}

struct summary run_summary(const struct run *run) {
    const double here = training_seconds(&run->training);
    const long long examples = run_examples(run);
    return (struct summary){.workers = run->workers,
                            .epochs = run_epochs(run),
                            .updates = store_updates(&run->store),
                            .examples = examples,
                            .train_seconds = run->seconds_before + here,
                            .examples_per_s =
                                here > 0.0 ? (double)(examples - run->examples_before) / here : 0.0,
                            .metric = run_metric(run),
                            .test_score = run->tested.score,
                            .test_value = run->tested.value,
                            .test_cost = run->tested.cost,
                            .views_score = run->viewed,
                            .target_s = run->target_s,
                            .best_epoch = run->best.epoch,
                            .best_score = run->best.score,
                            .best_test_score = run->best.test_score,
                            .lost_batches = sampler_batches(&run->sampler, run->sampler.in_flight),
                            .simulated = run->step_time.mean_s > 0.0,
                            .interrupted = run->interrupted};
}

/* The workers' time since the last steps that they ended, as far as all were there from the start. */
static void count_unfinished(const struct run *run, struct summary *summary) {
    double ended_s = 0.0;
    const double all_s = training_seconds(&run->training) * run->workers;
    for (int w = 0; w < run->workers; w++) {
        const struct worker_result *worker = &summary->per_worker[w];
        if (!atomic_load(&run->roster.members[w].active)) return;
        ended_s += worker->input_s + worker->pull_s + worker->compute_s + worker->push_s + worker->wait_s;
    }
    if (run->join_count > 0 || !(all_s > ended_s)) return;
    const double share = ended_s / all_s;
    summary->unfinished_share = 1.0 - share;
    summary->input_share *= share;
    summary->pull_share *= share;
    summary->compute_share *= share;
    summary->push_share *= share;
    summary->wait_share *= share;
}

/* A thread that hangs may still write what is summed up. */
void run_sum_up_failed(struct run *run, struct run_result *result) {
    struct error ignored = {0};
    if (run->crew.elsewhere && !training_failed(&run->training)) return;
    world_stop(run->world);
    training_end(&run->training, &ignored);
    if (run->training.abandoned || store_version(&run->store) == run->version_before) return;
    result->summary = run_summary(run);
    if (run_describe(run, result, &ignored) != OK || run_totals(run, result, &ignored) != OK)
        result->summary = (struct summary){0};
    else
        count_unfinished(run, &result->summary);
    result->summary.test_value = NULL;
}
