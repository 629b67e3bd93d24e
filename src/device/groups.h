/* Groups of devices, as --devices writes them: "(cpu:0+cpu:1),(cpu:2+cpu:3)". */
#ifndef TRAINER_DEVICE_GROUPS_H
#define TRAINER_DEVICE_GROUPS_H

#include "device.h"

/* From such a text the plain list for devices_open, "cpu:0,cpu:1,cpu:2,cpu:3", in out[bytes], and how many
 * devices a group has; *size 0: there are no groups in it. Errors: ERROR_USAGE: groups of several sizes, or
 * beside single devices; not understood. */
int groups_read(const char *text, char *out, size_t bytes, int *size, struct error *error);

/* Brings the devices of `count` groups, one group behind the other, into the order in which they are used:
 * the first of each group, then all others, group by group. */
void groups_spread(struct device *devices, int count, int size);

/* The device number `place` of a group, among devices in that order. */
static inline struct device *groups_device(struct device *devices, int count, int size, int group,
                                           int place) {
    return &devices[place == 0 ? group : count + group * (size - 1) + place - 1];
}

#endif
