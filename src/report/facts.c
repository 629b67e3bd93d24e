/* See facts.h. */
#include "facts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/page.h"
#include "../base/text.h"
#include "../config/config.h"
#include "../device/ranges.h"
#include "../record/sentence.h"

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
    *facts = (struct facts){.epochs = {.best_score = NAN}};
    snprintf(facts->folder, sizeof facts->folder, "%s", folder);
    if (!facts_there(folder))
        return error_set(error, ERROR_FILE,
                         "%s: no run there, expected summary.json, epochs.csv or steps.csv, or what "
                         "trainer bench or trainer sweep wrote",
                         folder);
    RETURN_IF(summary_read(facts, error));
    RETURN_IF(settings_read(facts, error));
    RETURN_IF(read_table(facts, "epochs.csv", epochs_read, error));
    return parts == FACTS_ALL ? read_table(facts, "steps.csv", steps_read, error) : OK;
}

void facts_free(struct facts *facts) {
    for (int i = 0; i < facts->setting_count; i++) memory_free(facts->settings[i].value);
    memory_free(facts->settings);
    memory_free(facts->sentence);
    memory_free(facts->failure);
    memory_free(facts->epochs.rows);
    memory_free(facts->steps.workers);
    memory_free(facts->stretch.steps);
    memory_free(facts->workers);
    memory_free(facts->member_names);
    memory_free(facts->waited_for);
    memory_free(facts->shard_staleness);
    memory_free(facts->joins);
    memory_free(facts->shard_bytes);
    memory_free(facts->server_bytes);
    json_free(&facts->json);
    *facts = (struct facts){0};
}

bool setting_is_of_files(const char *name) {
    const struct option *row = option_find(config_options, name);
    return row && row->group && strcmp(row->group, "What to keep") == 0;
}

const char *facts_setting(const struct facts *facts, const char *name) {
    for (int i = 0; i < facts->setting_count; i++)
        if (strcmp(facts->settings[i].name, name) == 0) return facts->settings[i].value;
    return NULL;
}

int facts_epochs_wanted(const struct facts *facts) {
    const char *epochs = facts_setting(facts, "epochs");
    const double wanted = epochs ? strtod(epochs, NULL) : 0.0;
    return wanted >= 1.0 && wanted <= 1e9 ? (int)wanted : 0;
}

/* The batches of an epoch may have some examples more than the data set: a run that ended has whole epochs.
 */
double facts_epochs(const struct facts *facts) {
    const char *early = facts_setting(facts, "early-stop");
    const int wanted = facts_epochs_wanted(facts);
    if (facts->summary.interrupted)
        return wanted > 0 ? fmin(facts->summary.epochs, wanted) : facts->summary.epochs;
    if (facts->epochs.count > 0) return facts->epochs.rows[facts->epochs.count - 1].epoch;
    return wanted > 0 && (!early || strtod(early, NULL) == 0.0) ? wanted : facts->summary.epochs;
}

bool facts_resumed(const struct facts *facts) {
    long steps = 0;
    for (int w = 0; w < facts->summary.workers; w++) steps += facts->workers[w].steps;
    return facts->summary.workers > 0 && steps < facts->summary.steps;
}

enum { DEVICES_NAMED = 4 };

static const char *next_device(const char *devices) {
    const char *comma = strchr(devices, ',');
    return comma ? comma + 1 : NULL;
}

/* Whether they are of one kind and numbered one after the other: then *row is all of them. */
static bool are_row(const char *devices, struct device_range *row) {
    *row = (struct device_range){0};
    for (const char *name = devices; name; name = next_device(name)) {
        struct device_range some;
        if (!range_read(name, strcspn(name, ","), &some)) return false;
        if (name == devices) *row = some;
        if (name != devices && (some.first != row->last + 1 || some.kind_length != row->kind_length ||
                                memcmp(some.kind, row->kind, row->kind_length) != 0))
            return false;
        row->last = some.last;
    }
    return true;
}

/* A group counts as one. */
static int count_devices(const char *devices) {
    int count = 0;
    for (const char *name = devices; name; name = next_device(name)) {
        struct device_range some;
        count += range_read(name, strcspn(name, ","), &some) ? some.last - some.first + 1 : 1;
    }
    return count;
}

const char *facts_devices(const struct facts *facts, char *out, size_t bytes) {
    const char *devices = facts->summary.devices;
    const int count = count_devices(devices);
    struct text text = text_into(out, bytes);
    struct device_range row;
    if (count > DEVICES_NAMED && are_row(devices, &row)) {
        const int kind = (int)row.kind_length;
        text_add(&text, "%d devices, %.*s:%d to %.*s:%d", count, kind, row.kind, row.first, kind, row.kind,
                 row.last);
        return out;
    }
    if (count > DEVICES_NAMED) text_add(&text, "%d %s, ", count, devices[0] == '(' ? "groups" : "devices");
    for (const char *c = devices; *c; c++) {
        text_add_bytes(&text, c, 1);
        if (*c == ',') text_add(&text, " ");
    }
    return out;
}

const char *facts_cluster(const struct facts *facts, char *out, size_t bytes) {
    const struct summary *summary = &facts->summary;
    const int ps = summary->cluster_ps, workers = summary->cluster_workers;
    out[0] = '\0';
    if (workers > 0 && ps > 0)
        snprintf(out, bytes, "a cluster of %d parameter server%s and %d worker%s", ps, ps == 1 ? "" : "s",
                 workers, workers == 1 ? "" : "s");
    else if (workers > 0)
        snprintf(out, bytes, "a mirrored cluster of %d processes", workers);
    else if (summary->wire_sent + summary->wire_received > 0)
        snprintf(out, bytes, "a cluster");
    return out;
}

double facts_target_s(const struct facts *facts, double accuracy) {
    for (int i = 0; i < facts->epochs.count; i++)
        if (facts->epochs.rows[i].test_score >= accuracy) return facts->epochs.rows[i].time_s;
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

int facts_print_sentence(const char *folder, const char *name, int number, const struct page *page,
                         struct error *error) {
    struct facts *facts = NULL;
    char sentence[SENTENCE_BYTES] = "", line[SENTENCE_BYTES + 40];
    RETURN_IF(memory_array(&facts, 1, "facts of a run", error));
    const int code = facts_read(facts, folder, FACTS_CURVES, error);
    if (code == OK && facts->has_summary) sentence_of_run(&facts->summary, sentence, sizeof sentence);
    snprintf(line, sizeof line, "%s %d: %s", name, number, sentence);
    if (sentence[0]) page_words(page, 0, 2, line);
    facts_free(facts);
    memory_free(facts);
    return code;
}
