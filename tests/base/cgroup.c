/* Limits of control groups, of both versions, in files as the kernel has them: the least of the group and
 * those around it counts; what is not there, or no number, is none. */
#include "../../src/base/cgroup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../check.h"

static char root[64] = "/tmp/cgroup.XXXXXX";

static void write_file(const char *name, const char *text) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s", path);
}

static void expect(size_t limit, const char *groups) {
    char path[100];
    write_file("groups", groups);
    snprintf(path, sizeof path, "%s/groups", root);
    const size_t found = cgroup_memory(path, root);
    CHECK(found == limit, "%s: found %zu, expected %zu", groups, found, limit);
}

int main(void) {
    char command[100];
    if (!mkdtemp(root)) return 1;
    write_file("memory.max", "7000000\n"); /* as a container sees its own group */
    write_file("a/memory.max", "5000000\n");
    write_file("a/b/memory.max", "max\n");
    write_file("a/c/memory.max", "3000000\n");
    write_file("a/d/memory.max", "6000000\n");
    write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    write_file("memory/job/memory.limit_in_bytes", "4000000\n");
    expect(7000000, "0::/\n");
    expect(5000000, "0::/a\n");
    expect(5000000, "0::/a/b\n");
    expect(3000000, "0::/a/c\n");
    expect(5000000, "0::/a/d\n");
    expect(7000000, "0::/gone/too\n");
    expect(4000000, "9:pids:/a/c\n4:memory:/job\n");
    expect(4000000, "4:memory:/job/x\n0::/a\n");
    expect(9223372036854771712u, "4:memory:/\n");
    expect(SIZE_MAX, "3:cpuset:/a/c\nnonsense\n");
    expect(SIZE_MAX, "");
    CHECK(cgroup_memory("/nowhere/groups", root) == SIZE_MAX, "a limit without groups");
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0, "%s", command);
    return check_end();
}
