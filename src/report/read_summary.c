/* summary.json, back into the record that it was written from; what is not in the file is 0, or not known. */
#include <limits.h>
#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "facts.h"

enum { SUMMARY_BYTES = 64 << 20 };

/* An object of the file. */
struct source {
    const struct json *json;
    const struct json_value *object;
};

static double real(struct source source, const char *name) {
    const struct json_value *value = json_member(source.json, source.object, name);
    return value && (value->kind == JSON_NUMBER || value->kind == JSON_BOOL) ? value->number : (double)NAN;
}

/* Of a number that a program may have to count up to: what is none is 0. */
static double limited(struct source source, const char *name, double most) {
    const double value = real(source, name);
    return value > 0.0 ? fmin(value, most) : 0.0;
}

static int whole(struct source source, const char *name) {
    return (int)limited(source, name, INT_MAX);
}

static long count(struct source source, const char *name) {
    return (long)limited(source, name, 9e15);
}

static const char *text(struct source source, const char *name) {
    const struct json_value *value = json_member(source.json, source.object, name);
    return value && value->kind == JSON_TEXT ? value->text : "";
}

static int read_bytes(struct source source, const char *name, long long **bytes, int *counted,
                      struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, name);
    if (!list || list->kind != JSON_ARRAY) return OK;
    RETURN_IF(memory_array(bytes, list->children + 1, "the sizes of shards", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next)
        (*bytes)[(*counted)++] = (long long)fmin(fmax(source.json->values[i].number, 0.0), 9e15);
    return OK;
}

static struct worker_result worker_of(struct source source) {
    const char *at = text(source, "waited_at");
    struct worker_result worker = {.steps = count(source, "steps"),
                                   .examples = count(source, "examples"),
                                   .input_s = limited(source, "input_s", 1e12),
                                   .pull_s = limited(source, "pull_s", 1e12),
                                   .compute_s = limited(source, "compute_s", 1e12),
                                   .push_s = limited(source, "push_s", 1e12),
                                   .wait_s = limited(source, "wait_s", 1e12),
                                   .staleness_mean = real(source, "staleness_mean"),
                                   .staleness_max = count(source, "staleness_max"),
                                   .waited_at = at[0] ? at : NULL,
                                   .waited_at_s = limited(source, "waited_at_s", 1e12),
                                   .waited_for_s = limited(source, "waited_for_s", 1e12),
                                   .lost = limited(source, "lost", 1) > 0};
    snprintf(worker.name, sizeof worker.name, "%s", text(source, "name"));
    snprintf(worker.device, sizeof worker.device, "%s", text(source, "device"));
    snprintf(worker.waited_for, sizeof worker.waited_for, "%s", text(source, "waited_for"));
    return worker;
}

static int read_members(struct facts *facts, struct source source, struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, "members");
    int *members = &facts->summary.members;
    if (!list || list->kind != JSON_ARRAY) return OK;
    RETURN_IF(memory_array(&facts->member_names, list->children + 1, "the members", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next) {
        const struct json_value *name = &source.json->values[i];
        snprintf(facts->member_names[(*members)++], sizeof *facts->member_names, "%s",
                 name->kind == JSON_TEXT ? name->text : "");
    }
    facts->summary.member_names = (const char(*)[MEMBER_NAME_BYTES])facts->member_names;
    return OK;
}

/* For whom each worker waited how long; of what does not have a number for each member, nothing. */
static int read_waits(struct facts *facts, struct source source, struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, "per_worker");
    const int members = facts->summary.members;
    int w = 0;
    if (!list || list->kind != JSON_ARRAY || members == 0) return OK;
    RETURN_IF(
        memory_array(&facts->waited_for, (long)list->children * members + 1, "who waited for whom", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next, w++) {
        const struct json_value *each = json_member(source.json, &source.json->values[i], "waited_for_each");
        double *seconds = facts->waited_for + (size_t)w * (size_t)members;
        if (!each || each->kind != JSON_ARRAY || each->children != members) continue;
        for (int j = each->first; j >= 0; j = source.json->values[j].next)
            *seconds++ = fmin(fmax(source.json->values[j].number, 0.0), 1e12);
        facts->workers[w].waited_for_each = facts->waited_for + (size_t)w * (size_t)members;
    }
    return OK;
}

static int read_workers(struct facts *facts, struct source source, struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, "per_worker");
    facts->summary.workers = 0;
    if (!list || list->kind != JSON_ARRAY) return OK;
    RETURN_IF(memory_array(&facts->workers, list->children + 1, "the workers", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next)
        facts->workers[facts->summary.workers++] =
            worker_of((struct source){source.json, &source.json->values[i]});
    facts->summary.per_worker = facts->workers;
    return OK;
}

static double score(struct source source, const char *of, enum metric metric) {
    char name[METRIC_NAME_BYTES];
    return real(source, metric_name(of, metric, name));
}

static void take_scores(struct summary *summary, struct source source) {
    summary->metric = metric_named(text(source, "metric"));
    summary->test_score = score(source, "test", summary->metric);
    summary->best_score = score(source, "best", summary->metric);
    summary->best_test_score = score(source, "best_test", summary->metric);
}

static void take_results(struct summary *summary, struct source source) {
    summary->epochs = real(source, "epochs");
    summary->steps = count(source, "steps");
    summary->updates = count(source, "updates");
    summary->examples = count(source, "examples");
    summary->train_seconds = real(source, "train_seconds");
    summary->examples_per_s = real(source, "examples_per_s");
    take_scores(summary, source);
    summary->test_cost = real(source, "test_cost");
    summary->first_cost = real(source, "first_cost");
    summary->final_cost = real(source, "final_cost");
    summary->target_s = real(source, "target_s");
    summary->best_epoch = whole(source, "best_epoch");
    summary->lost_updates = count(source, "lost_updates");
    summary->redone_updates = count(source, "redone_updates");
    summary->dropped = count(source, "dropped");
    summary->lost_workers = whole(source, "lost_workers");
    summary->lost_batches = count(source, "lost_batches");
    summary->bytes_moved = count(source, "bytes_moved");
    summary->cluster_ps = whole(source, "cluster_ps");
    summary->cluster_workers = whole(source, "cluster_workers");
    summary->wire_sent = count(source, "wire_sent");
    summary->wire_received = count(source, "wire_received");
    summary->interrupted = limited(source, "interrupted", 1) > 0;
    snprintf(summary->verdict.diverged, VERDICT_BYTES, "%s", text(source, "diverged"));
    snprintf(summary->verdict.learnt_nothing, VERDICT_BYTES, "%s", text(source, "learnt_nothing"));
}

static struct summary_staleness staleness_of(struct source source) {
    return (struct summary_staleness){.mean = real(source, "mean"),
                                      .p50 = count(source, "p50"),
                                      .p99 = count(source, "p99"),
                                      .max = count(source, "max")};
}

static int read_shards(struct facts *facts, struct source source, struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, "shard_staleness");
    if (!list || list->kind != JSON_ARRAY) return OK;
    RETURN_IF(memory_array(&facts->shard_staleness, list->children + 1, "the shards", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next)
        facts->shard_staleness[facts->summary.shards_here++] =
            staleness_of((struct source){source.json, &source.json->values[i]});
    facts->summary.shard_staleness = facts->shard_staleness;
    return OK;
}

static int read_joins(struct facts *facts, struct source source, struct error *error) {
    const struct json_value *list = json_member(source.json, source.object, "joins");
    if (!list || list->kind != JSON_ARRAY) return OK;
    RETURN_IF(memory_array(&facts->joins, list->children + 1, "who has joined", error));
    for (int i = list->first; i >= 0; i = source.json->values[i].next) {
        const struct source one = {source.json, &source.json->values[i]};
        facts->joins[facts->summary.join_count++] = (struct summary_join){.worker = whole(one, "worker"),
                                                                          .time_s = real(one, "time_s"),
                                                                          .step = count(one, "step"),
                                                                          .update = count(one, "update")};
    }
    facts->summary.joins = facts->joins;
    return OK;
}

static void take_phases(struct facts *facts, struct source source) {
    const struct json_value *list = json_member(source.json, source.object, "strategies");
    if (!list || list->kind != JSON_ARRAY) return;
    for (int i = list->first; i >= 0 && facts->summary.phase_count < SUMMARY_PHASES;
         i = source.json->values[i].next) {
        const struct source one = {source.json, &source.json->values[i]};
        struct summary_phase *phase = &facts->phases[facts->summary.phase_count++];
        snprintf(phase->strategy, sizeof phase->strategy, "%s", text(one, "strategy"));
        phase->from_epoch = whole(one, "from_epoch");
    }
    facts->summary.phases = facts->phases;
}

static void take_shares(struct summary *summary, struct source source) {
    summary->staleness =
        staleness_of((struct source){source.json, json_member(source.json, source.object, "staleness")});
    summary->wait_share = real(source, "wait_share");
    summary->pull_share = real(source, "pull_share");
    summary->push_share = real(source, "push_share");
    summary->compute_share = real(source, "compute_share");
    summary->input_share = real(source, "input_share");
    summary->pipeline_idle = real(source, "pipeline_idle");
    summary->pipeline_idle_equal = real(source, "pipeline_idle_equal");
}

static int take_summary(struct facts *facts, struct source source, struct error *error) {
    struct summary *summary = &facts->summary;
    summary->program = text(source, "program");
    summary->homes = text(source, "homes");
    summary->devices = text(source, "devices");
    summary->machine = text(source, "machine");
    summary->faults = text(source, "faults");
    summary->simulated = text(source, "simulate")[0] != '\0';
    summary->threads = whole(source, "threads");
    take_results(summary, source);
    take_shares(summary, source);
    take_phases(facts, source);
    RETURN_IF(read_bytes(source, "shard_bytes", &facts->shard_bytes, &summary->shards, error));
    RETURN_IF(read_bytes(source, "server_bytes", &facts->server_bytes, &summary->servers, error));
    summary->shard_bytes = facts->shard_bytes;
    summary->server_bytes = facts->server_bytes;
    facts->has_summary = true;
    RETURN_IF(read_workers(facts, source, error));
    RETURN_IF(read_members(facts, source, error));
    RETURN_IF(read_shards(facts, source, error));
    RETURN_IF(read_joins(facts, source, error));
    return read_waits(facts, source, error);
}

int summary_read(struct facts *facts, struct error *error) {
    char path[PATH_BYTES], *bytes = NULL;
    size_t length = 0;
    RETURN_IF(file_join(path, facts->folder, "summary.json", error));
    if (!file_exists(path)) return OK;
    RETURN_IF(file_read_plain(path, SUMMARY_BYTES, &bytes, &length, error));
    int code = json_parse(&facts->json, bytes, length, error);
    memory_free(bytes);
    if (code != OK) return error_prefix(error, "%s: ", path);
    if (facts->json.values[0].kind != JSON_OBJECT)
        return error_set(error, ERROR_FILE, "%s: expected one object, in {}", path);
    return take_summary(facts, (struct source){&facts->json, facts->json.values}, error);
}
