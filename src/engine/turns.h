/* Private to src/engine: what the host learns of a replica's runs, and when. */
#ifndef TRAINER_TRAIN_TURNS_H
#define TRAINER_TRAIN_TURNS_H

#include "replica.h"

/* Of a worker whose strategy is known, or of none (no marks). Errors: no memory; the device's. */
int turns_open(const struct replicas *replicas, const struct device *device, struct replica *replica,
               struct error *error);
void turns_close(const struct device *device, struct replica *replica); /* safe on a zeroed one */
/* The strategy has changed. */
int turns_change(const struct replicas *replicas, const struct device *device, struct replica *replica,
                 struct error *error);

/* Of struct compute. */
int turns_go_ahead(void *replicas, int worker, bool *may, struct error *error);
int turns_synchronize(void *replicas, int worker, bool waited, struct outcome *outcome, struct error *error);
int turns_behind(void *replicas, int worker, struct outcome *outcome, struct error *error);

#endif
