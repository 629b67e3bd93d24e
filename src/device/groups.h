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
static inline const struct device *groups_device(const struct device *devices, int count, int size, int group,
                                                 int place) {
    return &devices[place == 0 ? group : count + group * (size - 1) + place - 1];
}

/* A worker is named by its devices: "cpu:1"; of a group, "cpu:2+cpu:3"; of one too large for a name,
 * "cpu:0+...+cpu:9". */
enum { GROUP_NAME_BYTES = 48 };
void groups_name(const struct device *devices, int count, int size, int group, char out[GROUP_NAME_BYTES]);
/* Appends all of them, however many: "cpu:2+cpu:3". */
struct text;
void groups_join(struct text *names, const struct device *devices, int count, int size, int group);
/* Whether a device, or one of a range such as "cpu:0-9", is among those of such a name. */
bool groups_name_has(const char *name, const char *device);
/* Appends such a name to a list as --devices has it: "(cpu:0+cpu:1),(cpu:2+cpu:3)". */
void groups_list(struct text *list, const char *name);

#endif
