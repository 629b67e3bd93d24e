/* See facts.h. */
#include "facts.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"

static const char *const names[] = {"summary.json", "epochs.csv", "steps.csv"};

static bool has_file(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct error ignored = {0};
    return file_join(path, folder, name, &ignored) == OK && file_exists(path);
}

bool facts_there(const char *folder) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (has_file(folder, names[i])) return true;
    return false;
}

/* Only what is there. */
static int read_table(struct facts *facts, const char *name,
                      int (*read)(struct facts *facts, const char *path, struct error *error),
                      struct error *error) {
    char path[PATH_BYTES];
    RETURN_IF(file_join(path, facts->folder, name, error));
    return file_exists(path) ? read(facts, path, error) : OK;
}

int facts_read(struct facts *facts, const char *folder, enum facts_parts parts, struct error *error) {
    *facts = (struct facts){.epochs = {.best_accuracy = NAN}};
    snprintf(facts->folder, sizeof facts->folder, "%s", folder);
    if (!facts_there(folder))
        return error_set(error, ERROR_FILE,
                         "%s: no run there, expected summary.json, epochs.csv or steps.csv, or what "
                         "trainer bench wrote",
                         folder);
    RETURN_IF(summary_read(facts, error));
    RETURN_IF(settings_read(facts, error));
    RETURN_IF(read_table(facts, "epochs.csv", epochs_read, error));
    return parts == FACTS_ALL ? read_table(facts, "steps.csv", steps_read, error) : OK;
}

void facts_free(struct facts *facts) {
    for (int i = 0; i < facts->setting_count; i++) memory_free(facts->settings[i].value);
    memory_free(facts->settings);
    memory_free(facts->epochs.rows);
    memory_free(facts->steps.workers);
    memory_free(facts->stretch.steps);
    memory_free(facts->workers);
    memory_free(facts->member_names);
    memory_free(facts->waited_for);
    memory_free(facts->shard_staleness);
    memory_free(facts->shard_bytes);
    memory_free(facts->server_bytes);
    json_free(&facts->json);
    *facts = (struct facts){0};
}

const char *facts_setting(const struct facts *facts, const char *name) {
    for (int i = 0; i < facts->setting_count; i++)
        if (strcmp(facts->settings[i].name, name) == 0) return facts->settings[i].value;
    return NULL;
}

double facts_target_s(const struct facts *facts, double accuracy) {
    for (int i = 0; i < facts->epochs.count; i++)
        if (facts->epochs.rows[i].test_accuracy >= accuracy) return facts->epochs.rows[i].time_s;
    return NAN;
}

const char *facts_worker(const struct facts *facts, int worker, char *out, size_t bytes) {
    if (worker < facts->summary.workers)
        snprintf(out, bytes, "%s", facts->workers[worker].name);
    else if (worker < facts->steps.count && facts->steps.workers[worker].device[0])
        snprintf(out, bytes, "worker %d (%s)", worker, facts->steps.workers[worker].device);
    else
        snprintf(out, bytes, "worker %d", worker);
    return out;
}
