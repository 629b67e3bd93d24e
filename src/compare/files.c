/* bench.csv and runs.csv. One function lists the columns of a file; it is called once for the names and
 * once for each row, so the two cannot differ. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>
#include "../base/csv.h"
#include "../base/file.h"
#include "../base/json.h"
#include "bench.h"

/* A row being written. */
struct cells {
    FILE *file;
    bool names; /* the header: names instead of values */
    bool begun;
};

static void put_name(struct cells *cells, const char *name, const char *suffix) {
    if (cells->begun) fputc(',', cells->file);
    cells->begun = true;
    if (cells->names) fprintf(cells->file, "%s%s", name, suffix);
}

static void put_text(struct cells *cells, const char *name, const char *text) {
    put_name(cells, name, "");
    if (!cells->names) csv_print(cells->file, text);
}

static void put_whole(struct cells *cells, const char *name, long long value) {
    put_name(cells, name, "");
    if (!cells->names) fprintf(cells->file, "%lld", value);
}

/* What only a run that came to its end has. */
static void put_count(struct cells *cells, const char *name, long long value, bool known) {
    put_name(cells, name, "");
    if (!cells->names && known) fprintf(cells->file, "%lld", value);
    if (!cells->names && !known) fputs("nan", cells->file);
}

static void put_value(struct cells *cells, double value) {
    if (cells->names) return;
    if (isnan(value))
        fputs("nan", cells->file);
    else
        json_digits(cells->file, value);
}

static void put_real(struct cells *cells, const char *name, double value) {
    put_name(cells, name, "");
    put_value(cells, value);
}

/* Two columns: NAME is the mean, NAME_sd the standard deviation. */
static void put_statistic(struct cells *cells, const char *name, const struct statistic *statistic) {
    put_real(cells, name, statistic_mean(statistic));
    put_name(cells, name, "_sd");
    put_value(cells, statistic_deviation(statistic));
}

static void put_mean(struct cells *cells, const char *name, const struct statistic *statistic) {
    put_real(cells, name, statistic_mean(statistic));
}

/* --- bench.csv --- */

/* Unknown where the runs are judged by another metric. */
static void put_score(struct cells *cells, enum metric metric, const struct bench_row *row) {
    const struct statistic none = {0};
    char name[METRIC_NAME_BYTES];
    put_statistic(cells, metric_name("test", metric, name), row->metric == metric ? &row->test_score : &none);
}

static void put_row(struct cells *cells, const struct bench_row *row, double target_accuracy) {
    char sentence[1200];
    put_text(cells, "strategy", row->name);
    put_whole(cells, "baseline", row->baseline);
    put_text(cells, "devices", row->devices);
    put_whole(cells, "workers", row->workers);
    put_whole(cells, "threads", row->threads);
    put_whole(cells, "runs", row->finished);
    put_whole(cells, "failed", row->failed);
    put_statistic(cells, "examples_per_s", &row->examples_per_s);
    put_real(cells, "speedup_one", row->speedup_one);
    put_real(cells, "speedup_one_sd", row->speedup_one_sd);
    put_real(cells, "speedup_all", row->speedup_all);
    put_real(cells, "speedup_all_sd", row->speedup_all_sd);
    put_statistic(cells, "train_seconds", &row->train_seconds);
    put_statistic(cells, "target_s", &row->target_s);
    put_whole(cells, "target_runs", row->target_s.count);
    put_score(cells, METRIC_ACCURACY, row);
    put_statistic(cells, "test_cost", &row->test_cost);
    put_statistic(cells, "final_cost", &row->final_cost);
    put_mean(cells, "staleness_mean", &row->staleness_mean);
    put_mean(cells, "staleness_p99", &row->staleness_p99);
    put_count(cells, "staleness_max", row->staleness_max, row->finished > 0);
    put_mean(cells, "compute_share", &row->compute_share);
    put_mean(cells, "input_share", &row->input_share);
    put_mean(cells, "pull_share", &row->pull_share);
    put_mean(cells, "push_share", &row->push_share);
    put_mean(cells, "wait_share", &row->wait_share);
    put_mean(cells, "updates", &row->updates);
    put_mean(cells, "lost_updates", &row->lost_updates);
    put_mean(cells, "dropped", &row->dropped);
    put_mean(cells, "bytes_moved", &row->bytes_moved);
    put_text(cells, "waited_at", row->waited_at ? row->waited_at : "");
    put_real(cells, "waited_at_share", row->waited_at_share);
    put_text(cells, "waited_for", row->waited_for ? row->waited_for : "");
    put_real(cells, "waited_for_share", row->waited_for_share);
    put_count(cells, "lost_workers", row->lost_workers, row->finished > 0);
    put_whole(cells, "exit_code", row->failure);
    put_score(cells, METRIC_RMSE, row);
    put_text(cells, "sentence", bench_sentence(row, target_accuracy, sentence, sizeof sentence));
    fputc('\n', cells->file);
}

int bench_write(const char *path, const struct bench *bench, struct error *error) {
    struct file_new file = {0};
    RETURN_IF(file_create(&file, path, error));
    for (int i = -1; i < bench->count; i++) {
        struct cells cells = {.file = file.stream, .names = i < 0};
        put_row(&cells, &bench->rows[i < 0 ? 0 : i], bench->target_accuracy);
    }
    const int code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

/* --- runs.csv --- */

static int runs_failed(const struct bench_runs *runs, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", runs->path, strerror(errno));
}

/* "110034;27508": of each worker over the whole training. */
static void put_workers(struct cells *cells, const struct summary *summary) {
    put_name(cells, "worker_examples_per_s", "");
    for (int w = 0; !cells->names && summary->per_worker && w < summary->workers; w++)
        fprintf(cells->file, "%s%.0f", w > 0 ? ";" : "",
                (double)summary->per_worker[w].examples / summary->train_seconds);
}

/* A run that failed has no figures. */
static const struct summary unknown = {.examples_per_s = NAN,
                                       .train_seconds = NAN,
                                       .target_s = NAN,
                                       .test_score = NAN,
                                       .test_cost = NAN,
                                       .final_cost = NAN,
                                       .staleness = {.mean = NAN},
                                       .compute_share = NAN,
                                       .input_share = NAN,
                                       .pull_share = NAN,
                                       .push_share = NAN,
                                       .wait_share = NAN};

static void put_run(struct cells *cells, const char *name, int repeat, long seed,
                    const struct summary *summary, const struct error *failure) {
    const bool known = summary != &unknown;
    put_text(cells, "strategy", name);
    put_whole(cells, "repeat", repeat);
    put_whole(cells, "seed", seed);
    put_whole(cells, "exit_code", failure->code);
    put_text(cells, "error", failure->words);
    put_real(cells, "examples_per_s", summary->examples_per_s);
    put_real(cells, "train_seconds", summary->train_seconds);
    put_real(cells, "target_s", summary->target_s);
    put_real(cells, "test_accuracy", summary->metric == METRIC_ACCURACY ? summary->test_score : (double)NAN);
    put_real(cells, "test_cost", summary->test_cost);
    put_real(cells, "final_cost", summary->final_cost);
    put_real(cells, "staleness_mean", summary->staleness.mean);
    put_count(cells, "staleness_p99", summary->staleness.p99, known);
    put_count(cells, "staleness_max", summary->staleness.max, known);
    put_real(cells, "compute_share", summary->compute_share);
    put_real(cells, "input_share", summary->input_share);
    put_real(cells, "pull_share", summary->pull_share);
    put_real(cells, "push_share", summary->push_share);
    put_real(cells, "wait_share", summary->wait_share);
    put_count(cells, "updates", summary->updates, known);
    put_count(cells, "lost_updates", summary->lost_updates, known);
    put_count(cells, "dropped", summary->dropped, known);
    put_count(cells, "bytes_moved", summary->bytes_moved, known);
    put_count(cells, "lost_workers", summary->lost_workers, known);
    put_workers(cells, summary);
    put_real(cells, "test_rmse", summary->metric == METRIC_RMSE ? summary->test_score : (double)NAN);
    fputc('\n', cells->file);
}

int bench_runs_open(struct bench_runs *runs, const char *path, struct error *error) {
    *runs = (struct bench_runs){0};
    snprintf(runs->path, sizeof runs->path, "%s", path);
    RETURN_IF(file_overwrite(&runs->file, path, error));
    struct cells cells = {.file = runs->file, .names = true};
    put_run(&cells, "", 0, 0, &unknown, &(struct error){0});
    return fflush(runs->file) != 0 ? runs_failed(runs, error) : OK;
}

int bench_runs_add(struct bench_runs *runs, const char *name, int repeat, long seed,
                   const struct summary *summary, const struct error *failure, struct error *error) {
    struct cells cells = {.file = runs->file};
    put_run(&cells, name, repeat, seed, summary ? summary : &unknown, failure);
    return fflush(runs->file) != 0 || ferror(runs->file) ? runs_failed(runs, error) : OK;
}

int bench_runs_finish(struct bench_runs *runs, struct error *error) {
    if (!runs->file) return OK;
    FILE *file = runs->file;
    runs->file = NULL;
    return fclose(file) != 0 ? runs_failed(runs, error) : OK;
}

void bench_runs_close(struct bench_runs *runs) {
    if (runs->file) fclose(runs->file);
    *runs = (struct bench_runs){0};
}
