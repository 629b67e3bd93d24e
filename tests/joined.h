/* For tests of clusters that workers join: what steps.csv says of a run in which some came late. */
#ifndef TRAINER_TESTS_JOINED_H
#define TRAINER_TESTS_JOINED_H

#include "../src/store/strategy.h"
#include "simulated_cluster.h"

enum { JOINED_WORKERS = 16, JOINED_UPDATES = 1 << 14, JOINED_EPOCHS = 64 };

struct joined_rows {
    long rows, examples;
    long steps[JOINED_WORKERS];                /* of each worker */
    long in_epoch[JOINED_EPOCHS + 1];          /* rows of each, from 1 */
    uint16_t in_update[JOINED_UPDATES];        /* workers, a bit each, whose gradients are in it */
    double first_s[JOINED_WORKERS];            /* when each had taken its first step */
    bool seen[JOINED_WORKERS][JOINED_UPDATES]; /* which of its steps, from 1 */
};

static inline void joined_read(const struct simulated_cluster *all, struct joined_rows *joined) {
    const int failures = check_failures;
    char *data;
    size_t bytes;
    memset(joined, 0, sizeof *joined);
    cluster_file(all, "steps.csv", &data, &bytes);
    for (const char *line = data ? strchr(data, '\n') : NULL; line && line[1];
         line = strchr(line + 1, '\n')) {
        double time_s;
        int worker, epoch, examples;
        long step, update;
        const int fields = sscanf(line + 1,
                                  "%lf,%d,%*[^,],%d,%ld,%*[^,],%*[^,],%d,%*[^,],%*[^,],%*[^,],%*[^,],"
                                  "%*[^,],%*[^,],%ld",
                                  &time_s, &worker, &epoch, &step, &examples, &update);
        CHECK(fields == 6 && worker >= 0 && worker < JOINED_WORKERS && step > 0 && step < JOINED_UPDATES &&
                  update >= 0 && update < JOINED_UPDATES && epoch > 0 && epoch <= JOINED_EPOCHS,
              "steps.csv: \"%.60s\"", line + 1);
        if (check_failures > failures) break;
        CHECK(!joined->seen[worker][step], "worker %d took its step %ld twice", worker, step);
        if (joined->steps[worker] == 0) joined->first_s[worker] = time_s;
        joined->seen[worker][step] = true;
        joined->steps[worker]++;
        joined->in_epoch[epoch]++;
        joined->in_update[update] |= (uint16_t)(1u << worker);
        joined->examples += examples;
        joined->rows++;
    }
    memory_free(data);
}

/* Each worker's steps are 1, 2, 3, ... without a gap, whoever had its place. */
static inline void joined_check_steps(const struct joined_rows *joined) {
    for (int w = 0; w < JOINED_WORKERS; w++)
        for (long step = 1; step <= joined->steps[w]; step++)
            if (!joined->seen[w][step]) {
                CHECK(false, "worker %d: %ld steps, but no step %ld", w, joined->steps[w], step);
                break;
            }
}

/* All that was computed is in the rows, once. */
static inline void joined_check_counts(const struct joined_rows *joined, const struct summary *summary) {
    CHECK(joined->rows == summary->steps && joined->examples == summary->examples,
          "%ld rows of %ld steps, %ld examples of %lld", joined->rows, summary->steps, joined->examples,
          summary->examples);
}

/* Every batch is in exactly one row, but those that were in the hands of who was lost. */
static inline void joined_check_epochs(const struct joined_rows *joined, int epochs, long batches,
                                       long lost) {
    long missing = 0;
    for (int e = 1; e <= epochs; e++) {
        CHECK(joined->in_epoch[e] <= batches, "epoch %d: %ld rows of %ld batches", e, joined->in_epoch[e],
              batches);
        missing += batches - joined->in_epoch[e];
    }
    CHECK(missing <= lost, "%ld batches are missing, and %ld were lost", missing, lost);
}

/* A round is one update, with one gradient of each who takes part: together they have all that were made. One
 * has none where its last batch was in the hands of who was lost, and there were no others any more. */
static inline void joined_check_rounds(const struct joined_rows *joined, const struct summary *summary) {
    const long updates = summary->updates;
    long rows = 0, empty = 0;
    for (long u = 1; u <= updates; u++) {
        empty += joined->in_update[u] == 0;
        CHECK(empty <= summary->lost_batches, "no gradient is in update %ld of %ld", u, updates);
        for (int w = 0; w < JOINED_WORKERS; w++) rows += joined->in_update[u] >> w & 1;
    }
    CHECK(rows == joined->rows, "%ld gradients in %ld updates, expected %ld", rows, updates, joined->rows);
}

/* Who joined is in the rows from the step on that the summary has, and in the rounds from the next update on
 * until another joins, or somebody is gone. */
static inline void joined_check_joins(const struct joined_rows *joined, const struct summary *summary,
                                      bool rounds) {
    for (int j = 0; j < summary->join_count; j++) {
        const struct summary_join *join = &summary->joins[j];
        const bool known = join->worker >= 0 && join->worker < summary->workers && join->step >= 1;
        CHECK(known && join->update <= summary->updates,
              "worker %d joined with its step %ld after update %ld", join->worker, join->step, join->update);
        if (!known || joined->steps[join->worker] < join->step || !rounds || summary->lost_workers > 0)
            continue;
        CHECK(joined->in_update[join->update + 1] >> join->worker & 1,
              "worker %d joined after update %ld, and is not in the next one", join->worker, join->update);
        CHECK(!(joined->in_update[join->update] >> join->worker & 1),
              "worker %d joined after update %ld, and is in it", join->worker, join->update);
    }
}

/* Of a run that ended well: all that is true of its rows, its updates and its summary. */
static inline void joined_check(const struct simulated_cluster *all, const struct traits *traits, int epochs,
                                long batches) {
    static struct joined_rows joined;
    const struct summary *summary = &all->processes[0].result.summary;
    const bool rounds = traits->rounds && traits->merged && !traits->drops && !traits->own_weights;
    joined_read(all, &joined);
    joined_check_counts(&joined, summary);
    joined_check_steps(&joined);
    joined_check_epochs(&joined, epochs, batches, summary->lost_batches);
    if (rounds) joined_check_rounds(&joined, summary);
    joined_check_joins(&joined, summary, rounds);
}

/* The same where parts have different sizes: what is left of who has gone makes rounds of its own, in which
 * not everybody has a batch. */
static inline void joined_check_parts(const struct simulated_cluster *all, const struct traits *traits) {
    static struct joined_rows joined;
    const struct summary *summary = &all->processes[0].result.summary;
    joined_read(all, &joined);
    joined_check_counts(&joined, summary);
    if (!traits->drops) joined_check_rounds(&joined, summary);
    joined_check_joins(&joined, summary, false);
}

#endif
