/* Ways: how long it takes until bytes of one device are another one's. */
#ifndef TRAINER_ENGINE_WAYS_H
#define TRAINER_ENGINE_WAYS_H

#include "../device/device.h"
#include "../program/balance.h"

/* ways[count][count] between devices[count], measured as a group's parts send: a thread that sleeps on one
 * device is woken when the thread of the other has copied. Some milliseconds for each two devices. Errors:
 * ERROR_DEVICE; ERROR_PEER: the world was stopped, or one did not answer for timeout_s; ERROR_INTERRUPTED. */
int ways_measure(const struct device *devices, int count, struct world *world, double timeout_s,
                 struct balance_way *ways, struct error *error);

#endif
