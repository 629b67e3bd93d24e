/* A worker that takes part while a training runs: one that had not come yet, or that comes again after it was
 * lost or has left. All others pause meanwhile, and then all begin as after a change of the strategy
 * (change.c): so nobody has counted steps or rounds that the newcomer has not. What it has in this process
 * from an earlier time stays: totals, rows and memory. */
#include "worker.h"

/* How long the thread of one who is gone has to end; it was interrupted. */
#define END_S 0.01

bool training_place_is_free(struct training *training, int worker) {
    struct worker *place = &training->workers[worker];
    if (atomic_load(&training->settings.roster->members[worker].active)) return false;
    if (place->thread && world_join_within(place->thread, END_S)) place->thread = NULL;
    return place->thread == NULL;
}

void training_join(struct training *training, int worker) {
    struct worker *newcomer = &training->workers[worker];
    newcomer->error = newcomer->loss = (struct error){0};
    newcomer->left = newcomer->by_itself = false;
    newcomer->hopeless_steps = 0;
    atomic_store(&newcomer->lost, false);
    atomic_store(&newcomer->pauses, training->segments);
    roster_join(training->settings.roster, worker);
}

int training_start(struct training *training, int worker, struct error *error) {
    const struct training_settings *settings = &training->settings;
    const struct cores *cores = settings->cores ? &settings->cores[worker] : NULL;
    return world_spawn(settings->world, settings->roster->members[worker].name, cores, worker_body,
                       &training->workers[worker], &training->workers[worker].thread, error);
}
