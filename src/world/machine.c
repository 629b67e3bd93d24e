/* What the world knows of the machine: cores, resident memory, time of day. */
#include "world.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* process 0: this one. */
static void cores_of(pid_t process, struct cores *cores) {
    memset(cores, 0, sizeof *cores);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(process, sizeof set, &set) == 0) {
        for (int core = 0; core < WORLD_CORES; core++)
            if (CPU_ISSET((size_t)core, &set)) {
                cores->mask[core / 64] |= UINT64_C(1) << (core % 64);
                cores->count++;
            }
    }
}

void world_cores(struct cores *cores) {
    cores_of(0, cores);
    if (cores->count == 0) { /* a kernel with wider sets than ours: one core is always there */
        cores->mask[0] = 1;
        cores->count = 1;
    }
}

void world_cores_of_parent(struct cores *cores) {
    const pid_t parent = getppid();
    memset(cores, 0, sizeof *cores);
    if (parent > 0) cores_of(parent, cores); /* 0: it is in another container */
}

int world_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
    return (int)limit.rlim_cur;
}

long long world_resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    long long total = 0, resident = 0;
    const int found = fscanf(file, "%lld %lld", &total, &resident);
    fclose(file);
    return found == 2 ? resident * (long long)sysconf(_SC_PAGESIZE) : 0;
}

long long world_utc_seconds(void) {
    return (long long)time(0);
}
