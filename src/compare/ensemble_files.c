/* ensemble.json, what was asked for, and ensemble.csv, what has come of it so far. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/csv.h"
#include "../base/memory.h"
#include "../report/cells.h"
#include "ensemble.h"
#include "kept.h"

#define ENSEMBLE_JSON "ensemble.json"

const char *ensemble_typed(const struct ensemble_run *run, int member) {
    const struct ensemble_settings *settings = &run->settings;
    return settings->typed_count > 0 ? settings->typed[member % settings->typed_count] : "";
}

/* --- ensemble.json --- */

int ensemble_save(const struct ensemble_run *run, struct error *error) {
    const struct ensemble_settings *settings = &run->settings;
    struct file_new file = {0};
    char path[PATH_BYTES], *value = NULL;
    RETURN_IF(memory_array(&value, CONFIG_VALUE_BYTES, "settings", error));
    int code = file_join(path, run->out, ENSEMBLE_JSON, error);
    if (code == OK) code = file_create(&file, path, error);
    if (code == OK) {
        struct json_writer json = {.file = file.stream};
        json_open(&json, NULL, '{');
        json_text(&json, "program", "trainer " TRAINER_VERSION);
        json_int(&json, "members", run->count);
        json_open(&json, "member", '[');
        for (int t = 0; t < settings->typed_count; t++) json_text(&json, NULL, settings->typed[t]);
        json_close(&json, ']');
        kept_put_settings(&json, &settings->run, value);
        json_close(&json, '}');
        code = file_commit(&file, error);
    }
    file_abandon(&file);
    memory_free(value);
    return code;
}

static int add_member(void *to, const char *text, struct error *error) {
    return ensemble_add(to, text, error);
}

static int read_members(struct ensemble_settings *settings, const struct kept *kept, struct error *error) {
    RETURN_IF(kept_whole(kept, "members", 1, ENSEMBLE_MEMBERS, &settings->members, error));
    RETURN_IF(kept_texts(kept, "member", add_member, settings, error));
    return kept_get_settings(kept, &settings->run, error);
}

int ensemble_load(struct ensemble_settings *settings, const char *folder, struct error *error) {
    const char *found = settings->typed_count > 0 ? "member" : settings->members > 0 ? "members" : NULL;
    struct kept kept;
    RETURN_IF(kept_check_typed(&settings->run, found, "ensemble", folder, error));
    int code = kept_open(&kept, folder, ENSEMBLE_JSON, error);
    if (code == OK) code = read_members(settings, &kept, error);
    kept_close(&kept);
    return code;
}

/* --- ensemble.csv --- */

enum { MEMBER, STATUS, SCORE, SECONDS, SETTINGS, REASON, COLUMNS };

int ensemble_write(const struct ensemble_run *run, struct error *error) {
    struct text text = text_growing(error);
    char path[PATH_BYTES];
    text_add(&text, "member,status,test_%s,seconds,settings,reason\n", metric_rows[run->metric].name);
    for (int m = 0; m < run->count; m++) {
        const struct ensemble_member *member = &run->members[m];
        const bool failed = member->failure.code != OK;
        text_add(&text, "%d,%s,", m + 1, failed ? "failed" : member->done ? "finished" : "waiting");
        text_add(&text, isnan(member->score) ? "nan," : "%.9g,", member->score);
        text_add(&text, isnan(member->seconds) ? "nan," : "%.3f,", member->seconds);
        csv_add(&text, ensemble_typed(run, m));
        csv_add(&text, member->failure.words);
        if (text.used > 0 && text.bytes[text.used - 1] == ',') text.bytes[text.used - 1] = '\n';
    }
    int code = text_end(&text);
    if (code == OK) code = file_join(path, run->out, ENSEMBLE_LIST, error);
    if (code == OK) code = file_write(path, text.bytes, text.used, error);
    memory_free(text.bytes);
    return code;
}

static int read_member(struct ensemble_run *run, const struct cells *cells, int number, const char *path,
                       struct error *error) {
    struct ensemble_member *member = &run->members[number];
    const int row = number + 1;
    const char *status = cells_at(cells, row, STATUS);
    member->done = strcmp(status, "finished") == 0;
    const bool failed = strcmp(status, "failed") == 0, waits = strcmp(status, "waiting") == 0;
    if (cells_count(cells, row, MEMBER) != row || !(member->done || failed || waits))
        return error_set(error, ERROR_FILE, "%s: row %d is not what an ensemble writes", path, row);
    if (strcmp(cells_at(cells, row, SETTINGS), ensemble_typed(run, number)) != 0)
        return error_set(error, ERROR_FILE, "%s: member %d: found %.100s, expected %.100s", path, row,
                         cells_at(cells, row, SETTINGS), ensemble_typed(run, number));
    member->seconds = strtod(cells_at(cells, row, SECONDS), NULL);
    if (failed) error_set(&member->failure, ERROR_DIVERGED, "%s", cells_at(cells, row, REASON));
    return OK;
}

int ensemble_read(struct ensemble_run *run, struct error *error) {
    char path[PATH_BYTES];
    struct cells cells = {0};
    RETURN_IF(file_join(path, run->out, ENSEMBLE_LIST, error));
    RETURN_IF(cells_read(&cells, path, error));
    int code = OK;
    if (cells.rows != run->count + 1 || cells.columns != COLUMNS)
        code = error_set(error, ERROR_FILE, "%s: found %d members and %d columns, expected %d and %d", path,
                         cells.rows - 1, cells.columns, run->count, COLUMNS);
    for (int m = 0; m < run->count && code == OK; m++) code = read_member(run, &cells, m, path, error);
    cells_free(&cells);
    return code;
}
