/* Control groups: a container, a service or a job of a queue may have less memory than the machine. */
#ifndef TRAINER_BASE_CGROUP_H
#define TRAINER_BASE_CGROUP_H

#include <stddef.h>

/* The least limit of the group's memory and of those of the groups around it, bytes; SIZE_MAX: there is none,
 * or it is not known. groups: "/proc/self/cgroup"; mounted: "/sys/fs/cgroup", of version 1 or 2. */
size_t cgroup_memory(const char *groups, const char *mounted);

#endif
