/* See cgroup.h. A line of /proc/self/cgroup is "0::/GROUP" in version 2, "N:memory:/GROUP" in version 1; in a
 * container the group may be mounted as the root, so what is not found is passed over. */
#include "cgroup.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, PATH = 2 * LINE };

/* A limit that is a number: version 2 says "max" where there is none. */
static size_t limit_in(const char *mounted, const char *folder, const char *group, const char *name) {
    char path[PATH], text[32], *end = text;
    unsigned long long limit = 0;
    if (snprintf(path, sizeof path, "%s%s%s/%s", mounted, folder, group, name) >= (int)sizeof path)
        return SIZE_MAX;
    FILE *file = fopen(path, "re");
    if (!file) return SIZE_MAX;
    if (fgets(text, sizeof text, file)) limit = strtoull(text, &end, 10);
    fclose(file);
    return end == text || limit == 0 ? SIZE_MAX : (size_t)limit;
}

/* Of the group and those around it; group: is cut. */
static size_t least_of(const char *mounted, const char *folder, char *group, const char *name) {
    size_t least = SIZE_MAX;
    for (;;) {
        const size_t limit = limit_in(mounted, folder, group, name);
        if (limit < least) least = limit;
        char *const last = strrchr(group, '/');
        if (!last) return least;
        *last = 0;
    }
}

size_t cgroup_memory(const char *groups, const char *mounted) {
    char line[LINE];
    size_t least = SIZE_MAX;
    FILE *file = fopen(groups, "re");
    while (file && fgets(line, sizeof line, file)) {
        size_t limit = SIZE_MAX;
        char *const controllers = strchr(line, ':'),
                    *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        line[strcspn(line, "\n")] = 0;
        group++;
        if (strncmp(controllers, "::", 2) == 0) limit = least_of(mounted, "", group, "memory.max");
        if (strncmp(controllers, ":memory:", 8) == 0)
            limit = least_of(mounted, "/memory", group, "memory.limit_in_bytes");
        if (limit < least) least = limit;
    }
    if (file) fclose(file);
    return least;
}
