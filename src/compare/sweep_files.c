/* sweep.json, what was asked for, and sweep.csv, what has come of it so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/csv.h"
#include "../base/memory.h"
#include "../report/sweep.h"
#include "../run/folder.h"
#include "kept.h"
#include "sweep.h"

static const char *const methods[] = {"random", "grid", "halving"};
static const char *const metrics[] = {"auto", "validation_accuracy", "validation_rmse", "validation_loss"};

/* --- sweep.json --- */

int sweep_save(const struct sweep *sweep, struct error *error) {
    const struct sweep_settings *settings = &sweep->settings;
    struct file_new file = {0};
    char path[PATH_BYTES], *value = NULL;
    RETURN_IF(memory_array(&value, CONFIG_VALUE_BYTES, "settings", error));
    int code = file_join(path, sweep->out, FOLDER_SWEEP, error);
    if (code == OK) code = file_create(&file, path, error);
    if (code == OK) {
        struct json_writer json = {.file = file.stream};
        json_open(&json, NULL, '{');
        json_text(&json, "program", "trainer " TRAINER_VERSION);
        json_text(&json, "method", methods[settings->method]);
        json_text(&json, "metric", metrics[settings->metric]);
        json_int(&json, "runs", settings->runs);
        json_int(&json, "keep", settings->keep);
        json_int(&json, "first_rung", settings->first_rung);
        json_open(&json, "vary", '[');
        for (int v = 0; v < settings->varied.count; v++) json_text(&json, NULL, settings->varied.text[v]);
        json_close(&json, ']');
        kept_put_settings(&json, &settings->run, value);
        json_close(&json, '}');
        code = file_commit(&file, error);
    }
    file_abandon(&file);
    memory_free(value);
    return code;
}

const char *sweep_own_typed(const struct sweep_settings *settings) {
    return settings->varied.count > 0   ? "vary"
           : settings->given.runs       ? "runs"
           : settings->given.method     ? "method"
           : settings->given.metric     ? "metric"
           : settings->given.keep       ? "keep"
           : settings->given.first_rung ? "first-rung"
                                        : NULL;
}

/* What is typed beside --resume may say where and how, not what. */
static int check_typed(const struct sweep_settings *settings, const char *folder, struct error *error) {
    return kept_check_typed(&settings->run, sweep_own_typed(settings), "sweep", folder, error);
}

static int add_vary(void *to, const char *text, struct error *error) {
    return vary_add(to, text, error);
}

static int read_members(struct sweep_settings *settings, const struct kept *kept, struct error *error) {
    const int most_epochs = 1000000;
    RETURN_IF(kept_word(kept, "method", methods, 3, &settings->method, error));
    RETURN_IF(kept_word(kept, "metric", metrics, 4, &settings->metric, error));
    RETURN_IF(kept_whole(kept, "runs", 0, SWEEP_RUNS, &settings->runs, error));
    RETURN_IF(kept_whole(kept, "keep", 2, SWEEP_RUNS, &settings->keep, error));
    RETURN_IF(kept_whole(kept, "first_rung", 1, most_epochs, &settings->first_rung, error));
    RETURN_IF(kept_texts(kept, "vary", add_vary, &settings->varied, error));
    return kept_get_settings(kept, &settings->run, error);
}

int sweep_load(struct sweep_settings *settings, const char *folder, struct error *error) {
    struct kept kept;
    RETURN_IF(check_typed(settings, folder, error));
    int code = kept_open(&kept, folder, FOLDER_SWEEP, error);
    if (code == OK) code = read_members(settings, &kept, error);
    kept_close(&kept);
    return code;
}

/* --- sweep.csv --- */

const char *const sweep_status_words[] = {"waiting", "running", "stopped", "finished", "failed"};
enum { STATUSES = SWEEP_FAILED + 1 };

static void put_real(struct text *out, double value) {
    if (isnan(value))
        text_add(out, "nan");
    else
        text_add(out, "%.9g", value);
}

static void put_names(struct text *out, const struct sweep *sweep) {
    text_add(out, "run,status,epochs,best_epoch,%s,test_%s,seconds,at_rungs,reason", sweep->metric_name,
             metric_rows[sweep->score].name);
    for (int v = 0; v < sweep->variation_count; v++) text_add(out, ",%s", sweep->variations[v].name);
    text_add(out, "\n");
}

static void put_run(struct text *out, const struct sweep *sweep, int number) {
    const struct sweep_run *run = &sweep->runs[number];
    text_add(out, "%d,%s,%d,%d,", number + 1, sweep_status_words[run->status], run->epochs, run->best_epoch);
    put_real(out, run->metric);
    text_add(out, ",");
    put_real(out, run->test);
    text_add(out, isnan(run->seconds) ? ",nan," : ",%.3f,", run->seconds);
    for (int r = 0; r < run->rungs; r++) {
        if (r > 0) text_add(out, ";");
        put_real(out, run->at_rung[r]);
    }
    text_add(out, ",");
    csv_add(out, run->reason);
    for (int v = 0; v < sweep->variation_count; v++) csv_add(out, run->values[v]);
    if (out->used > 0 && out->bytes[out->used - 1] == ',') out->bytes[out->used - 1] = '\n';
}

int sweep_write(const struct sweep *sweep, struct error *error) {
    struct text text = text_growing(error);
    char path[PATH_BYTES];
    put_names(&text, sweep);
    for (int i = 0; i < sweep->count; i++) put_run(&text, sweep, i);
    int code = text_end(&text);
    if (code == OK) code = file_join(path, sweep->out, "sweep.csv", error);
    if (code == OK) code = file_write(path, text.bytes, text.used, error);
    memory_free(text.bytes);
    return code;
}

/* "0.71;0.83" */
static void read_rungs(struct sweep_run *run, const char *text) {
    char *end;
    for (; *text && run->rungs < SWEEP_RUNGS; text = *end == ';' ? end + 1 : end) {
        run->at_rung[run->rungs] = strtod(text, &end);
        if (end == text) return;
        run->rungs++;
    }
}

static int read_run(struct sweep *sweep, const struct cells *cells, int number, const char *path,
                    struct error *error) {
    struct sweep_run *run = &sweep->runs[number];
    const int row = number + 1;
    int status = 0;
    while (status < STATUSES && strcmp(cells_at(cells, row, SWEEP_STATUS), sweep_status_words[status]) != 0)
        status++;
    for (int v = 0; v < sweep->variation_count; v++) {
        const char *found = cells_at(cells, row, SWEEP_FIGURES + v);
        if (strcmp(found, run->values[v]) != 0)
            return error_set(error, ERROR_FILE, "%s: run %d: found %s=%.100s, expected %.100s", path, row,
                             sweep->variations[v].name, found, run->values[v]);
    }
    read_rungs(run, cells_at(cells, row, SWEEP_AT_RUNGS));
    run->epochs = cells_count(cells, row, SWEEP_EPOCHS);
    run->best_epoch = cells_count(cells, row, SWEEP_BEST_EPOCH);
    if (status == STATUSES || cells_count(cells, row, SWEEP_RUN) != row || run->rungs > sweep->rungs ||
        run->epochs < 0 || run->best_epoch < 0)
        return error_set(error, ERROR_FILE, "%s: row %d is not what a sweep writes", path, row);
    run->status = (enum sweep_status)status;
    if (run->status == SWEEP_RUNNING) run->status = run->rungs > 0 ? SWEEP_STOPPED : SWEEP_WAITING;
    run->metric = strtod(cells_at(cells, row, SWEEP_METRIC), NULL);
    run->test = strtod(cells_at(cells, row, SWEEP_TEST), NULL);
    run->seconds = strtod(cells_at(cells, row, SWEEP_SECONDS), NULL);
    snprintf(run->reason, sizeof run->reason, "%s", cells_at(cells, row, SWEEP_REASON));
    return OK;
}

int sweep_read(struct sweep *sweep, struct error *error) {
    char path[PATH_BYTES];
    struct cells cells = {0};
    RETURN_IF(file_join(path, sweep->out, "sweep.csv", error));
    RETURN_IF(cells_read(&cells, path, error));
    int code = OK;
    if (cells.rows != sweep->count + 1 || cells.columns != SWEEP_FIGURES + sweep->variation_count)
        code = error_set(error, ERROR_FILE, "%s: found %d runs and %d columns, expected %d and %d", path,
                         cells.rows - 1, cells.columns, sweep->count, SWEEP_FIGURES + sweep->variation_count);
    for (int i = 0; i < sweep->count && code == OK; i++) code = read_run(sweep, &cells, i, path, error);
    cells_free(&cells);
    return code;
}
