/* Workers that join a run of a cluster while it goes on. The crew says who is there; here the run makes room:
 * while all pause, everything begins anew for the workers that there are then, as after a change of the
 * strategy (change.c), with the weights, the versions and the position of the moment. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "open.h"

bool run_may_be_joined(const struct run *run) {
    return run->crew.admit && config_may_be_joined(&run->setup.config);
}

void run_note_absent(struct run *run) {
    run->present = run->workers;
    for (int w = 0; w < run->workers; w++) {
        if (!run->member[w].absent) continue;
        run->lost[w] = true;
        run->present--;
        roster_leave(&run->roster, w, PHASE_DONE);
    }
}

enum { PARTS_BYTES = 100 };

/* ", batch 86 + 85 + 85": where the parts change with the workers. */
static const char *name_parts(const struct run *run, char out[PARTS_BYTES]) {
    char sizes[80];
    out[0] = '\0';
    if (run_divides_anew(run))
        snprintf(out, PARTS_BYTES, ", batch %s", run_name_batch(run, sizes, sizeof sizes));
    return out;
}

/* Its steps go on from those that it, or who had the place before, has taken. */
static int tell_join(struct run *run, int worker, struct error *error) {
    const struct member *member = &run->roster.members[worker];
    const struct summary_join join = {.worker = worker,
                                      .time_s = run->seconds_before + training_seconds(&run->training),
                                      .step = member->earlier + run->steps_of_before[worker] + 1,
                                      .update = store_updates(&run->store)};
    char words[400], parts[PARTS_BYTES];
    RETURN_IF(memory_grow(&run->joins, run->join_count, run->join_count + 1, "who has joined", error));
    run->joins[run->join_count++] = join;
    snprintf(words, sizeof words, "%s, from its step %ld on, after %ld updates; %d of %d workers are there%s",
             member->name, join.step, join.update, run->present, run->workers, name_parts(run, parts));
    progress_say(&run->progress, "joined: %s", words);
    run_tell_event(run, EVENT_JOINED, worker, words);
    return OK;
}

/* As it is now: another process, elsewhere. */
static int describe_again(struct run *run, int worker, struct error *error) {
    struct text list = text_growing(error);
    struct crew_member *member = &run->member[worker];
    run->crew.member(run->members, worker, member);
    memcpy(run->roster.members[worker].name, member->name, sizeof member->name);
    text_add(&list, "%s", member->device);
    memory_free(run->device_lists[worker]);
    run->device_lists[worker] = list.bytes;
    RETURN_IF(text_end(&list));
    run->slowness[worker] = faults_factor(&run->training.settings.faults, list.bytes);
    return OK;
}

static int take_place(struct run *run, int worker, struct error *error) {
    RETURN_IF(describe_again(run, worker, error));
    run->lost[worker] = false;
    training_join(&run->training, worker);
    return sampler_join(&run->sampler, worker, error);
}

/* Lets one in, where somebody is there; *worker: -1: nobody is. */
static int let_in_one(struct run *run, int *worker, struct error *error) {
    struct training *training = &run->training;
    bool *is_free;
    long step;
    const char *words;
    RETURN_IF(memory_array(&is_free, run->workers, "places", error));
    for (int w = 0; w < run->workers; w++)
        is_free[w] =
            run->lost[w] && training_place_is_free(training, w) && sampler_may_join(&run->sampler, w);
    const int code = run->crew.admit(run->members, is_free, worker, error);
    memory_free(is_free);
    if (code != OK || *worker < 0) return code;
    if (training_lost(training, *worker, &step, &words) && !training_left(training, *worker, &step))
        run->lost_before++;
    return take_place(run, *worker, error);
}

/* All begin anew, before the newcomers' threads do. */
static int begin_with(struct run *run, const int *newcomers, int count, struct error *error) {
    RETURN_IF(run_divide(run, error));
    struct phase_change change = run_tells_change(run);
    run->present = roster_active_workers(&run->roster);
    change.schedule_ahead = run_ahead_of(run, change.version);
    RETURN_IF(run_begin_anew(run, &change, error));
    for (int i = 0; i < count; i++) {
        RETURN_IF(tell_join(run, newcomers[i], error));
        RETURN_IF(training_start(&run->training, newcomers[i], error));
    }
    return OK;
}

int run_let_in(struct run *run, struct error *error) {
    int *newcomers = NULL, count = 0, worker = -1, code = OK;
    if (!run_may_be_joined(run) || !run->crew.joining(run->members)) return OK;
    RETURN_IF(memory_array(&newcomers, run->workers, "newcomers", error));
    do {
        code = let_in_one(run, &worker, error);
        if (code == OK && worker >= 0) newcomers[count++] = worker;
    } while (code == OK && worker >= 0 && count < run->workers);
    if (code == OK && count > 0) code = begin_with(run, newcomers, count, error);
    memory_free(newcomers);
    return code;
}

int run_divide_rest(struct run *run, struct error *error) {
    char words[PARTS_BYTES];
    const int active = roster_active_workers(&run->roster);
    if (!run_divides_anew(run) || active == 0 || active == run->present) return OK;
    RETURN_IF(begin_with(run, NULL, 0, error));
    progress_say(&run->progress, "%d of %d workers are there%s", run->present, run->workers,
                 name_parts(run, words));
    return OK;
}

/* Whom the leader has not, this process has not either. */
static int take_workers(struct run *run, const bool *present, const bool *joins, struct error *error) {
    int count = 0;
    for (int w = 0; w < run->workers; w++) {
        if (joins[w]) RETURN_IF(take_place(run, w, error));
        if (!present[w]) training_give_up(&run->training, w);
        run->lost[w] = !present[w];
        count += present[w];
    }
    const int active = roster_active_workers(&run->roster);
    if (active == count) return OK;
    return error_set(error, ERROR_PEER, "the %s that leads has %d workers, and this one has %d",
                     run->crew.mirrored ? "process" : "parameter server", count, active);
}

int run_follow_change(struct run *run, const struct phase_change *change, const bool *present,
                      const bool *joins, struct error *error) {
    RETURN_IF(take_workers(run, present, joins, error));
    RETURN_IF(run_divide(run, error));
    RETURN_IF(run_apply_change(run, change, error));
    for (int w = 0; w < run->workers; w++)
        if (joins[w]) RETURN_IF(training_start(&run->training, w, error));
    return OK;
}
