/* Which run of a sweep is next.
 *
 * Halving is ASHA (Li et al., "A System for Massively Parallel Hyperparameter Tuning", 2020). The epochs are
 * cut into rungs, each `keep` times as long as the one before; a run stops at the end of each. Of the runs
 * that have ended a rung the best one in `keep` go on; while no other one may, a new one begins. No device
 * waits for a rung to be complete. At the end, when no run has got through all its epochs, the best of the
 * last rung goes on alone. */
#include <math.h>

#include "sweep.h"

void sweep_make_rungs(struct sweep *sweep, int epochs) {
    sweep->rungs = 0;
    if (sweep->settings.method == SWEEP_HALVING)
        for (long end = sweep->settings.first_rung; end < epochs && sweep->rungs < SWEEP_RUNGS - 1;
             end *= sweep->settings.keep)
            sweep->rung_epochs[sweep->rungs++] = (int)end;
    sweep->rung_epochs[sweep->rungs++] = 0;
}

static bool better(const struct sweep *sweep, double value, double than) {
    if (isnan(value) || isnan(than)) return !isnan(value) && isnan(than);
    return sweep->lower ? value < than : value > than;
}

static bool comes_first(const struct sweep *sweep, int run, double value, int other, double than) {
    return better(sweep, value, than) || (!better(sweep, than, value) && run < other);
}

bool sweep_better(const struct sweep *sweep, int run, int than) {
    return comes_first(sweep, run, sweep->runs[run].metric, than, sweep->runs[than].metric);
}

int sweep_best(const struct sweep *sweep) {
    int best = -1;
    for (int run = 0; run < sweep->count; run++)
        if (!isnan(sweep->runs[run].metric) && (best < 0 || sweep_better(sweep, run, best))) best = run;
    return best;
}

void sweep_rank(const struct sweep *sweep, int *order) {
    for (int run = 0; run < sweep->count; run++) {
        int place = run;
        for (; place > 0 && sweep_better(sweep, run, order[place - 1]); place--)
            order[place] = order[place - 1];
        order[place] = run;
    }
}

/* Those that ended a rung, or failed in it, which no longer stand in the way of others. */
static int count_ended(const struct sweep *sweep, int rung) {
    int ended = 0;
    for (int run = 0; run < sweep->count; run++) {
        const struct sweep_run *of = &sweep->runs[run];
        ended += of->rungs > rung || (of->status == SWEEP_FAILED && of->rungs == rung);
    }
    return ended;
}

/* How many of those that ended the rung are better. */
static int rank_in(const struct sweep *sweep, int rung, int run) {
    int before = 0;
    for (int other = 0; other < sweep->count; other++)
        before +=
            other != run && sweep->runs[other].rungs > rung &&
            comes_first(sweep, other, sweep->runs[other].at_rung[rung], run, sweep->runs[run].at_rung[rung]);
    return before;
}

/* The best run that stands at the end of a rung and is among the first `most` of it; or -1. */
static int waiting_at(const struct sweep *sweep, int rung, int most) {
    int best = -1, best_rank = most;
    for (int run = 0; run < sweep->count; run++) {
        const struct sweep_run *of = &sweep->runs[run];
        if (of->status != SWEEP_STOPPED || of->rungs != rung + 1) continue;
        const int rank = rank_in(sweep, rung, run);
        if (rank >= best_rank) continue;
        best_rank = rank;
        best = run;
    }
    return best;
}

static int count(const struct sweep *sweep, enum sweep_status status) {
    int runs = 0;
    for (int run = 0; run < sweep->count; run++) runs += sweep->runs[run].status == status;
    return runs;
}

static int first_waiting(const struct sweep *sweep) {
    for (int run = 0; run < sweep->count; run++)
        if (sweep->runs[run].status == SWEEP_WAITING) return run;
    return -1;
}

enum lane_answer sweep_next(const struct sweep *sweep, int *run) {
    *run = -1;
    for (int rung = sweep->rungs - 2; rung >= 0 && *run < 0; rung--)
        *run = waiting_at(sweep, rung, count_ended(sweep, rung) / sweep->settings.keep);
    if (*run < 0) *run = first_waiting(sweep);
    if (*run >= 0) return LANE_TAKE;
    if (count(sweep, SWEEP_RUNNING) > 0) return LANE_WAIT; /* one may come back from a lane that is lost */
    if (count(sweep, SWEEP_FINISHED) > 0) return LANE_END;
    for (int rung = sweep->rungs - 2; rung >= 0 && *run < 0; rung--)
        *run = waiting_at(sweep, rung, sweep->count);
    return *run >= 0 ? LANE_TAKE : LANE_END;
}
