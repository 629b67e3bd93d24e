/* summary.json: the members stand in the order in which a reader asks: what, where, how much, how well, what
 * it cost. */
#include "summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/file.h"
#include "../base/json.h"

/* Of more members, who waited for whom would be most of the file, and no page could show it. */
enum { MEMBERS_EACH = 256 };

static void write_workers(struct json_writer *json, const struct summary *s) {
    json_open(json, "per_worker", '[');
    for (int w = 0; w < s->workers; w++) {
        const struct worker_result *worker = &s->per_worker[w];
        json_open(json, NULL, '{');
        json_text(json, "name", worker->name);
        json_text(json, "device", worker->device);
        json_int(json, "steps", worker->steps);
        json_int(json, "examples", worker->examples);
        json_real(json, "input_s", worker->input_s);
        json_real(json, "pull_s", worker->pull_s);
        json_real(json, "compute_s", worker->compute_s);
        json_real(json, "push_s", worker->push_s);
        json_real(json, "wait_s", worker->wait_s);
        json_real(json, "staleness_mean", worker->staleness_mean);
        json_int(json, "staleness_max", worker->staleness_max);
        json_text(json, "waited_at", worker->waited_at ? worker->waited_at : "");
        json_real(json, "waited_at_s", worker->waited_at_s);
        json_text(json, "waited_for", worker->waited_for);
        json_real(json, "waited_for_s", worker->waited_for_s);
        json_open(json, "waited_for_each", '[');
        for (int m = 0; worker->waited_for_each && m < s->members && s->members <= MEMBERS_EACH; m++)
            json_real(json, NULL, worker->waited_for_each[m]);
        json_close(json, ']');
        json_bool(json, "lost", worker->lost);
        json_real(json, "recorded_nodes", worker->recorded_nodes < 0 ? (double)NAN : worker->recorded_nodes);
        json_text(json, "not_recorded", worker->not_recorded);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Named as on the command line, but for the dashes. */
static int write_setting(void *json, const struct option *row, const char *value) {
    char name[64];
    snprintf(name, sizeof name, "%s", row->name);
    for (char *c = name; *c; c++)
        if (*c == '-') *c = '_';
    if (row->type == OPTION_TEXT || row->type == OPTION_CHOICE)
        json_text(json, name, value);
    else if (row->type == OPTION_FLAG)
        json_bool(json, name, value[0] == '1');
    else
        json_real(json, name, strtod(value, NULL));
    return OK;
}

double summary_imbalance(const long long *bytes, int count) {
    double most = 0.0, all = 0.0;
    for (int i = 0; bytes && i < count; i++) {
        most = fmax(most, (double)bytes[i]);
        all += (double)bytes[i];
    }
    return all > 0.0 ? most * count / all : (double)NAN;
}

static void write_bytes(struct json_writer *json, const char *name, const long long *bytes, int count) {
    json_open(json, name, '[');
    for (int i = 0; bytes && i < count; i++) json_int(json, NULL, bytes[i]);
    json_close(json, ']');
}

static void write_staleness(struct json_writer *json, const char *name,
                            const struct summary_staleness *staleness) {
    json_open(json, name, '{');
    json_real(json, "mean", staleness->mean);
    json_int(json, "p50", staleness->p50);
    json_int(json, "p99", staleness->p99);
    json_int(json, "max", staleness->max);
    json_close(json, '}');
}

static void write_score(struct json_writer *json, const char *of, enum metric metric, double value) {
    char name[METRIC_NAME_BYTES];
    json_real(json, metric_name(of, metric, name), value);
}

static void write_scores(struct json_writer *json, const struct summary *s) {
    json_text(json, "metric", metric_rows[s->metric].name);
    write_score(json, "test", s->metric, s->test_score);
    for (enum metric m = 0; m < METRICS && s->test_value; m++)
        if (m != s->metric && !isnan(s->test_value[m])) write_score(json, "test", m, s->test_value[m]);
}

static void write_phases(struct json_writer *json, const struct summary *s) {
    json_open(json, "strategies", '[');
    for (int p = 0; s->phases && p < s->phase_count; p++) {
        json_open(json, NULL, '{');
        json_text(json, "strategy", s->phases[p].strategy);
        json_int(json, "from_epoch", s->phases[p].from_epoch);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_joins(struct json_writer *json, const struct summary *s) {
    json_open(json, "joins", '[');
    for (int j = 0; j < s->join_count; j++) {
        json_open(json, NULL, '{');
        json_int(json, "worker", s->joins[j].worker);
        json_real(json, "time_s", s->joins[j].time_s);
        json_int(json, "step", s->joins[j].step);
        json_int(json, "update", s->joins[j].update);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_members(struct json_writer *json, const struct summary *s) {
    json_text(json, "program", s->program);
    config_each(s->config, OPTION_SHOWN, write_setting, json);
    write_phases(json, s);
    json_text(json, "machine", s->machine ? s->machine : "");
    json_text(json, "devices", s->devices);
    json_int(json, "workers", s->workers);
    json_int(json, "threads", s->threads);
    json_int(json, "shards", s->shards);
    write_bytes(json, "shard_bytes", s->shard_bytes, s->shards);
    json_text(json, "homes", s->homes);
    write_bytes(json, "server_bytes", s->server_bytes, s->servers);
    json_real(json, "server_imbalance", summary_imbalance(s->server_bytes, s->servers));
    json_text(json, "faults", s->faults);
    json_real(json, "epochs", s->epochs);
    json_int(json, "steps", s->steps);
    json_int(json, "updates", s->updates);
    json_int(json, "examples", s->examples);
    json_real(json, "train_seconds", s->train_seconds);
    json_real(json, "examples_per_s", s->examples_per_s);
    write_scores(json, s);
    json_real(json, "test_cost", s->test_cost);
    json_real(json, "test_accuracy_by_views", s->views_score);
    json_real(json, "first_cost", s->first_cost);
    json_real(json, "final_cost", s->final_cost);
    json_real(json, "target_s", s->target_s);
    json_int(json, "best_epoch", s->best_epoch);
    write_score(json, "best", s->metric, s->best_epoch > 0 ? s->best_score : (double)NAN);
    write_score(json, "best_test", s->metric, s->best_epoch > 0 ? s->best_test_score : (double)NAN);
    write_staleness(json, "staleness", &s->staleness);
    json_open(json, "shard_staleness", '[');
    for (int i = 0; s->shard_staleness && i < s->shards_here; i++)
        write_staleness(json, NULL, &s->shard_staleness[i]);
    json_close(json, ']');
    json_real(json, "wait_share", s->wait_share);
    json_real(json, "pull_share", s->pull_share);
    json_real(json, "push_share", s->push_share);
    json_real(json, "compute_share", s->compute_share);
    json_real(json, "input_share", s->input_share);
    json_real(json, "pipeline_idle", s->pipeline_idle);
    json_real(json, "pipeline_idle_equal", s->pipeline_idle_equal);
    json_real(json, "batch_expected_s", s->batch_expected_s);
    json_real(json, "batch_compute_s", s->batch_compute_s);
    json_int(json, "lost_updates", s->lost_updates);
    if (s->config->restart_wait_s > 0.0) json_int(json, "redone_updates", s->redone_updates);
    json_int(json, "dropped", s->dropped);
    json_int(json, "lost_workers", s->lost_workers);
    json_int(json, "lost_batches", s->lost_batches);
    write_joins(json, s);
    json_int(json, "bytes_moved", s->bytes_moved);
    json_int(json, "cluster_ps", s->cluster_ps);
    json_int(json, "cluster_workers", s->cluster_workers);
    json_int(json, "wire_sent", s->wire_sent);
    json_int(json, "wire_received", s->wire_received);
    json_bool(json, "interrupted", s->interrupted);
    json_text(json, "diverged", s->verdict.diverged);
    json_text(json, "learnt_nothing", s->verdict.learnt_nothing);
    json_open(json, "members", '[');
    for (int m = 0; m < s->members; m++) json_text(json, NULL, s->member_names[m]);
    json_close(json, ']');
    if (s->per_worker) write_workers(json, s);
}

int summary_write(const char *path, const struct summary *summary, struct error *error) {
    struct file_new file = {0};
    RETURN_IF(file_create(&file, path, error));
    struct json_writer json = {.file = file.stream};
    json_open(&json, NULL, '{');
    write_members(&json, summary);
    json_close(&json, '}');
    const int code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}
