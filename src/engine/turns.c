/* See turns.h. A run is queued and leaves its losses in host memory; a mark before it and one behind its
 * gradient say when the device came to it. The host waits for the run, or, where it has gone ahead, for the
 * one before: then the device has the next one in its queue already, and does not wait for the host. */
#include "turns.h"

static int open_mark(const struct device *device, void **mark, struct error *error) {
    return *mark ? OK : device->backend->marks->open(device, true, mark, error);
}

static void close_mark(const struct device *device, void **mark) {
    if (*mark) device->backend->marks->close(device, *mark);
    *mark = NULL;
}

/* A step that is queued behind the gradient needs to know when that was ready. */
static int open_ended(const struct replicas *replicas, const struct device *device, struct replica *replica,
                      struct error *error) {
    if (!replicas->traits || !replicas->traits->steps_own) return OK;
    return open_mark(device, &replica->turns[0].ended, error);
}

int turns_open(const struct replicas *replicas, const struct device *device, struct replica *replica,
               struct error *error) {
    const size_t losses = (size_t)replicas->microbatches;
    void *block = NULL;
    RETURN_IF(device->backend->allocate_host(device, &block, TURNS * losses * sizeof *replica->losses,
                                             "a loss", error));
    replica->losses = block;
    for (int t = 0; t < TURNS; t++) replica->turns[t].losses = replica->losses + (size_t)t * losses;
    if (!replicas->traits) return OK;
    RETURN_IF(open_mark(device, &replica->turns[0].began, error));
    return open_ended(replicas, device, replica, error);
}

/* The first mark of all is there under every strategy. */
static void close_ahead(const struct device *device, struct replica *replica) {
    for (int t = 0; t < TURNS; t++) close_mark(device, &replica->turns[t].ended);
    for (int t = 1; t < TURNS; t++) close_mark(device, &replica->turns[t].began);
    replica->ahead = false;
    replica->turn = 0;
}

void turns_close(const struct device *device, struct replica *replica) {
    close_ahead(device, replica);
    close_mark(device, &replica->turns[0].began);
    if (replica->losses) device->backend->release_host(device, replica->losses);
    replica->losses = NULL;
}

int turns_change(const struct replicas *replicas, const struct device *device, struct replica *replica,
                 struct error *error) {
    close_ahead(device, replica);
    return open_ended(replicas, device, replica, error);
}

/* What the host sends of a batch is guarded until the device has it, but for the shares of mixed examples. */
int turns_go_ahead(void *self, int worker, bool *may, struct error *error) {
    const struct replicas *replicas = self;
    struct replica *replica = &replicas->replicas[worker];
    const struct device *device = &replicas->devices[worker];
    *may = replica->ahead;
    if (replica->ahead || replicas->buffers > 1 || replica->group || !replica->turns[0].began ||
        replicas->network->shares != NONE)
        return OK;
    for (int t = 0; t < TURNS; t++) {
        RETURN_IF(open_mark(device, &replica->turns[t].began, error));
        RETURN_IF(open_mark(device, &replica->turns[t].ended, error));
    }
    *may = replica->ahead = true;
    return OK;
}

static float mean_loss(const struct replicas *replicas, const float *losses) {
    double sum = 0.0;
    for (int m = 0; m < replicas->microbatches; m++) sum += (double)losses[m];
    return (float)(sum / replicas->microbatches);
}

int turns_synchronize(void *self, int worker, bool waited, struct outcome *outcome, struct error *error) {
    const struct replicas *replicas = self;
    const struct replica *replica = &replicas->replicas[worker];
    const struct replica_turn *turn = &replica->turns[replica->turn];
    const struct device *device = &replicas->devices[worker];
    *outcome = (struct outcome){.timed = turn->began != NULL};
    if (!waited) RETURN_IF(device->backend->finish(device, error));
    outcome->loss = mean_loss(replicas, turn->losses);
    if (turn->began) RETURN_IF(device->backend->marks->since(device, turn->began, &outcome->begun_s, error));
    if (turn->ended)
        RETURN_IF(device->backend->marks->since(device, turn->ended, &outcome->computed_s, error));
    return OK;
}

/* As if it had ended when the host came to see it. */
int turns_behind(void *self, int worker, struct outcome *outcome, struct error *error) {
    const struct replicas *replicas = self;
    const struct replica *replica = &replicas->replicas[worker];
    const struct replica_turn *turn = &replica->turns[!replica->turn];
    const struct device *device = &replicas->devices[worker];
    *outcome = (struct outcome){.timed = true};
    RETURN_IF(device->backend->marks->await(device, turn->ended, error));
    outcome->loss = mean_loss(replicas, turn->losses);
    return device->backend->marks->between(device, turn->began, turn->ended, &outcome->begun_s, error);
}
