/* sweep.json, what was asked for, and sweep.csv, what has come of it so far. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/json.h"
#include "../base/memory.h"
#include "../infer/predictions.h"
#include "../report/sweep.h"
#include "../run/folder.h"
#include "sweep.h"

enum { JSON_BYTES = 1 << 22 };

static const char *const methods[] = {"random", "grid", "halving"};
static const char *const metrics[] = {"auto", "validation_accuracy", "validation_rmse", "validation_loss"};

/* --- sweep.json --- */

/* Where the files are is no part of it. */
static bool is_kept(const struct option *row, const struct typed *typed) {
    bool given;
    memcpy(&given, (const char *)typed + row->given, sizeof given);
    return given && strcmp(row->name, "out") != 0 && strcmp(row->name, "resume") != 0 &&
           strcmp(row->name, "quiet") != 0;
}

static void write_settings(struct json_writer *json, const struct typed *typed, char *value) {
    json_open(json, "settings", '{');
    for (const struct option *row = run_options; row->name; row++) {
        if (!is_kept(row, typed)) continue;
        option_text(row, typed, value, CONFIG_VALUE_BYTES);
        json_text(json, row->name, value);
    }
    json_close(json, '}');
}

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
        write_settings(&json, &settings->run, value);
        json_close(&json, '}');
        code = file_commit(&file, error);
    }
    file_abandon(&file);
    memory_free(value);
    return code;
}

static int bad_json(const char *path, const char *name, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: \"%s\" is missing, or is not what a sweep writes", path, name);
}

static const struct json_value *member(const struct json *json, const char *name, enum json_kind kind) {
    const struct json_value *value = json_member(json, json->values, name);
    return value && value->kind == kind ? value : NULL;
}

static int read_word(const struct json *json, const char *path, const char *name, const char *const *words,
                     int count, int *out, struct error *error) {
    const struct json_value *value = member(json, name, JSON_TEXT);
    for (int i = 0; value && i < count; i++)
        if (strcmp(words[i], value->text) == 0) {
            *out = i;
            return OK;
        }
    return bad_json(path, name, error);
}

static int read_whole(const struct json *json, const char *path, const char *name, int least, int most,
                      int *out, struct error *error) {
    const struct json_value *value = member(json, name, JSON_NUMBER);
    if (!value || !(value->number >= least && value->number <= most)) return bad_json(path, name, error);
    *out = (int)value->number;
    return OK;
}

/* What is typed beside --resume may say where and how, not what. */
static int check_typed(const struct sweep_settings *settings, const char *folder, struct error *error) {
    const char *found = settings->varied.count > 0   ? "vary"
                        : settings->given.runs       ? "runs"
                        : settings->given.method     ? "method"
                        : settings->given.metric     ? "metric"
                        : settings->given.keep       ? "keep"
                        : settings->given.first_rung ? "first-rung"
                        : settings->run.given.out    ? "out"
                                                     : NULL;
    for (const struct option *row = run_options; row->name && !found; row++)
        if (row->flags & (OPTION_AGREED | OPTION_SAVED) && is_kept(row, &settings->run)) found = row->name;
    if (!found) return OK;
    return error_set(error, ERROR_USAGE,
                     "--%s: expected none beside --resume: the sweep in %.200s has its own", found, folder);
}

/* Those that were typed now go before those of then. */
static int read_settings(struct typed *typed, const struct json *json, const char *path,
                         struct error *error) {
    const struct json_value *settings = member(json, "settings", JSON_OBJECT);
    if (!settings) return bad_json(path, "settings", error);
    for (int i = settings->first; i >= 0; i = json->values[i].next) {
        const struct json_value *value = &json->values[i];
        const struct option *row = option_find(run_options, value->name);
        struct error why = {0};
        if (!row || value->kind != JSON_TEXT) return bad_json(path, value->name, error);
        if (is_kept(row, typed)) continue;
        if (option_set(run_options, typed, path, value->name, value->text, &why) != OK)
            return error_set(error, ERROR_FILE, "%s", why.words);
    }
    return OK;
}

static int read_members(struct sweep_settings *settings, const struct json *json, const char *path,
                        struct error *error) {
    const int most_epochs = 1000000;
    RETURN_IF(read_word(json, path, "method", methods, 3, &settings->method, error));
    RETURN_IF(read_word(json, path, "metric", metrics, 4, &settings->metric, error));
    RETURN_IF(read_whole(json, path, "runs", 0, SWEEP_RUNS, &settings->runs, error));
    RETURN_IF(read_whole(json, path, "keep", 2, SWEEP_RUNS, &settings->keep, error));
    RETURN_IF(read_whole(json, path, "first_rung", 1, most_epochs, &settings->first_rung, error));
    const struct json_value *vary = member(json, "vary", JSON_ARRAY);
    if (!vary) return bad_json(path, "vary", error);
    for (int i = vary->first; i >= 0; i = json->values[i].next) {
        if (json->values[i].kind != JSON_TEXT) return bad_json(path, "vary", error);
        RETURN_IF(vary_add(&settings->varied, json->values[i].text, error));
    }
    return read_settings(&settings->run, json, path, error);
}

int sweep_load(struct sweep_settings *settings, const char *folder, struct error *error) {
    char path[PATH_BYTES], *text = NULL;
    size_t bytes = 0;
    struct json json = {0};
    RETURN_IF(check_typed(settings, folder, error));
    RETURN_IF(file_join(path, folder, FOLDER_SWEEP, error));
    RETURN_IF(file_read_plain(path, JSON_BYTES, &text, &bytes, error));
    int code = json_parse(&json, text, bytes, error);
    if (code != OK) error_prefix(error, "%s: ", path);
    if (code == OK) code = read_members(settings, &json, path, error);
    json_free(&json);
    memory_free(text);
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
    predictions_cell(out, run->reason);
    for (int v = 0; v < sweep->variation_count; v++) predictions_cell(out, run->values[v]);
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
