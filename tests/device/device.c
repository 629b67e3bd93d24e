/* The text of --devices: which devices and cores come of it, and the words when it is wrong. And the table of
 * kernels: every operation can be computed, the reference kernel stands last. */
#include "../../src/device/device.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/device/ranges.h"
#include "../../src/program/passes.h"
#include "../check.h"

static struct cores cores; /* of this process */

/* Opens `text` and checks everything that holds for every list of CPU devices; labels in order. */
static void check_list(const char *text, int given_threads, const int *labels, int count) {
    const struct device_settings settings = {.threads = given_threads};
    struct device *devices = NULL;
    struct error error = {0};
    int found = 0;
    bool shared = false;
    const int code = devices_open(text, &settings, &devices, &found, &shared, &error);
    CHECK(code == OK, "'%s': %s", text, error.words);
    CHECK(found == count, "'%s': %d devices, expected %d", text, found, count);
    if (code || found != count) {
        devices_close(devices, found);
        return;
    }
    int threads = given_threads ? given_threads : cores.count / count;
    if (threads < 1) threads = 1;
    CHECK(shared == (threads * count > cores.count), "'%s' on %d cores: shared %d", text, cores.count,
          shared);
    uint64_t taken[WORLD_CORES / 64] = {0};
    for (int i = 0; i < count; i++) {
        const struct device *device = &devices[i];
        char name[16];
        snprintf(name, sizeof name, "cpu:%d", labels[i]);
        CHECK(strcmp(device->name, name) == 0, "'%s': %s, expected %s", text, device->name, name);
        CHECK(device->label == labels[i] && device->backend == backends[0], "'%s': %s", text, device->name);
        CHECK(device->threads == threads, "'%s': %s has %d threads, expected %d", text, name, device->threads,
              threads);
        CHECK(device->pinned == !shared, "'%s': %s pinned %d", text, name, device->pinned);
        CHECK(device->cores.count == (shared ? 0 : threads), "'%s': %s has %d cores", text, name,
              device->cores.count);
        int bits = 0;
        for (size_t w = 0; w < WORLD_CORES / 64; w++) {
            const uint64_t mask = device->cores.mask[w];
            CHECK((mask & ~cores.mask[w]) == 0, "'%s': %s has cores that are not there", text, name);
            CHECK((mask & taken[w]) == 0, "'%s': %s has a core of another device", text, name);
            taken[w] |= mask;
            bits += __builtin_popcountll(mask);
        }
        CHECK(bits == device->cores.count, "'%s': %s: %d bits", text, name, bits);
    }
    devices_close(devices, found);
}

/* Every list, on the cores that the process has at the moment. */
static void check_lists(void) {
    world_cores(&cores);
    int every[WORLD_CORES];
    for (int i = 0; i < WORLD_CORES; i++) every[i] = i;
    check_list("cpu:0", 0, (int[]){0}, 1);
    check_list("cpu:7", 0, (int[]){7}, 1);
    check_list("cpu:1023", 0, (int[]){1023}, 1);
    check_list("cpu:0,cpu:1", 0, (int[]){0, 1}, 2);
    check_list("cpu:1,cpu:0", 0, (int[]){1, 0}, 2);
    check_list("cpu:0,cpu:1,cpu:2", 0, (int[]){0, 1, 2}, 3);
    check_list("cpu:0,cpu:1", 1, (int[]){0, 1}, 2);
    check_list("cpu:0,cpu:1", 3, (int[]){0, 1}, 2);
    check_list("cpu:0", cores.count + 1, (int[]){0}, 1);
    check_list("cpu:*", 0, every, cores.count);
    check_list("cpu:0-9", 0, every, 10);
    check_list("cpu:0-3,cpu:7,cpu:4-5", 0, (int[]){0, 1, 2, 3, 7, 4, 5}, 7);
    check_list("cpu:3-3", 1, (int[]){3}, 1);
    bool others = false; /* which auto takes instead */
    for (int b = 0; backends[b]; b++) others |= backends[b] != backends[0] && backends[b]->count() > 0;
    if (!others) check_list("auto", 0, every, cores.count > 1 ? 2 : 1);
    if (!others) check_list("auto", 1, every, cores.count > 1 ? 2 : 1);
}

/* Up to more processes than cores: all have as many threads, together no more than there are cores, and none
 * is pinned to a core that another may have taken. */
static void check_processes(void) {
    for (int processes = 2; processes <= cores.count + 1 && processes <= 9; processes++)
        for (int given = 0; given <= 2; given++)
            for (int count = 1; count <= 2; count++) {
                const struct device_settings settings = {.threads = given, .processes = processes};
                const int part = cores.count / (processes * count), threads = given ? given : part ? part : 1;
                struct device *devices = NULL;
                struct error error = {0};
                int found = 0;
                bool shared = false;
                const int code = devices_open(count == 1 ? "cpu:0" : "cpu:0,cpu:1", &settings, &devices,
                                              &found, &shared, &error);
                CHECK(code == OK && found == count, "%s", error.words);
                CHECK(shared == (threads > part), "%d processes, --threads=%d: shared %d", processes, given,
                      shared);
                for (int d = 0; d < found; d++)
                    CHECK(devices[d].threads == threads && !devices[d].pinned && devices[d].cores.count == 0,
                          "%d processes, --threads=%d: %s: %d threads, pinned %d to %d cores", processes,
                          given, devices[d].name, devices[d].threads, devices[d].pinned,
                          devices[d].cores.count);
                devices_close(devices, found);
            }
}

static void check_one_core(void) {
    cpu_set_t before, one;
    if (sched_getaffinity(0, sizeof before, &before) != 0) return;
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; core++)
        if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    check_lists();
    CHECK(cores.count == 1, "%d cores", cores.count);
    sched_setaffinity(0, sizeof before, &before);
}

/* What is said of a list that gives no devices. */
static struct error refuse(const char *text, int expected_code) {
    const struct device_settings settings = {0};
    struct device *devices = NULL;
    struct error error = {0};
    int count = 0;
    bool shared = false;
    const int code = devices_open(text, &settings, &devices, &count, &shared, &error);
    CHECK(code == expected_code && error.code == code, "'%s': code %d, expected %d", text, code,
          expected_code);
    CHECK(!devices && count == 0, "'%s': %d devices beside an error", text, count);
    devices_close(devices, count);
    return error;
}

static void check_wrong(const char *text, int expected_code, const char *expected_words) {
    const struct error error = refuse(text, expected_code);
    CHECK(strstr(error.words, expected_words), "'%s': '%s', expected '%s'", text, error.words,
          expected_words);
}

static void check_no_guess(const char *text) {
    const struct error error = refuse(text, ERROR_USAGE);
    CHECK(!strstr(error.words, "did you mean"), "'%s': '%s'", text, error.words);
}

static void check_errors(void) {
    check_no_guess("cpu:0..3");
    check_no_guess("gpu:x");
    static const char *const texts[] = {"",        "cpu",        "cpu:",    ":0",          "cpu:0,",
                                        ",cpu:0",  "cpu:x",      "cpu:-1",  "cpu:+1",      "cpu: 1",
                                        "cpu:1.0", "CPU:0",      "cpu:0;1", "cpu:**",      "tpu:0",
                                        "tpu:*",   "auto,cpu:0", "cpu:0 ",  "cpu:0,,cpu:1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_wrong(texts[i], ERROR_USAGE, "devices: '");
    check_wrong("cpu:0,tpu:3", ERROR_USAGE,
                "'tpu:3', expected auto, cpu:*, gpu:0, or a list such as cpu:0,cpu:1");
    check_wrong("cuda", ERROR_USAGE, "; did you mean gpu:0?");
    check_wrong("cuda:1,cuda:0", ERROR_USAGE, "; did you mean gpu:1?");
    check_wrong("gpu", ERROR_USAGE, "; did you mean gpu:0?");
    check_wrong("cpu", ERROR_USAGE, "; did you mean cpu:0?");
    check_wrong("CPU:*", ERROR_USAGE, "; did you mean cpu:*?");
    check_wrong("2", ERROR_USAGE, "; did you mean cpu:0,cpu:1?");
    check_wrong("cpu:1024", ERROR_USAGE, "'cpu:1024', expected a label of 0 to 1023");
    check_wrong("cpu:99999999999999999999", ERROR_USAGE, "expected a label of 0 to 1023");
    check_wrong("cpu:0,cpu:0", ERROR_USAGE, "cpu:0 is named twice");
    check_wrong("cpu:0-3,cpu:2", ERROR_USAGE, "cpu:2 is named twice");
    static const char *const ranges[] = {"cpu:3-1",   "cpu:0-",  "cpu:0-1024",
                                         "cpu:0-3-5", "cpu:0-x", "cpu:0-99999"};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        check_wrong(ranges[i], ERROR_USAGE, "', expected a range such as cpu:0-9, labels from 0 to 1023");
    check_wrong("cpu:*,cpu:0", ERROR_USAGE, "cpu:0 is named twice");

    world_cores(&cores);
    char words[100];
    snprintf(words, sizeof words, "gpu:0: needs a build with CUDA (devices: cpu:0 to cpu:%d)",
             cores.count - 1);
    if (cores.count > 1 && !backends[1]) check_wrong("cpu:0,gpu:0", ERROR_DEVICE, words);
    if (!backends[1]) check_wrong("gpu:*", ERROR_DEVICE, "gpu:*: needs a build with CUDA (devices: cpu:0");
}

/* Whether a kernel takes a problem of float32 throughout. */
static bool takes_floats(const struct kernel *kernel, enum op op, const struct device *device) {
    struct error error = {0};
    const struct attributes attributes = {0};
    void *plan = NULL;
    const struct problem problem = {.op = op, .attributes = &attributes, .inputs = 2, .device = device};
    if (!kernel->prepare) return true;
    const int code = kernel->prepare(&problem, &plan, &error);
    if (kernel->release) kernel->release(plan);
    return code == OK;
}

/* Every operation but the sources, and those that a program runs itself, has kernels, each complete, the
 * reference kernel last and taking everything in float32. */
static void check_kernels(void) {
    const struct device fast = {.backend = backends[0], .threads = 1};
    const struct device plain = {.backend = backends[0], .threads = 1, .reference_only = true};
    int others = 0;
    for (int op = 0; op < OPS; op++) {
        const struct kernel *const *list = backends[0]->kernels(&fast, (enum op)op);
        const struct kernel *const *references = backends[0]->kernels(&plain, (enum op)op);
        const bool source = op == OP_placeholder || op == OP_constant || op == OP_variable ||
                            program_own_kernels((enum op)op);
        CHECK(source == !list[0] && source == !references[0], "%s", op_name((enum op)op));
        if (source) continue;
        CHECK(!references[1], "%s: two reference kernels", op_name((enum op)op));
        CHECK(takes_floats(references[0], (enum op)op, &plain), "%s: %s declines", op_name((enum op)op),
              references[0]->name);
        CHECK(strncmp(references[0]->name, "reference:", 10) == 0, "%s", references[0]->name);
        while (list[1]) {
            CHECK(list[0]->run && strncmp(list[0]->name, "onednn:", 7) == 0, "%s", list[0]->name);
            others++;
            list++;
        }
        CHECK(list[0] == references[0] && list[0]->run, "%s: %s last", op_name((enum op)op), list[0]->name);
    }
    CHECK((others > 0) == TRAINER_ONEDNN, "%d kernels of oneDNN", others);
}

static void check_memory(void) {
    const struct device device = {.backend = backends[0], .name = "cpu:0", .threads = 1};
    struct error error = {0};
    void *block = NULL;
    const int code = backends[0]->allocate(&device, &block, 1000, "a block", &error);
    CHECK(code == OK && block && (uintptr_t)block % CACHE_LINE == 0, "%d %p", code, block);
    for (size_t i = 0; code == OK && i < 1000; i++) CHECK(((char *)block)[i] == 0, "byte %zu", i);
    backends[0]->release(&device, block);

    char description[200], small[8];
    backends[0]->describe(3, description, sizeof description);
    CHECK(atoi(description) == cores.count && strstr(description, " core"), "%s", description);
    CHECK(!strchr(description, '\n'), "%s", description);
    backends[0]->describe(3, small, sizeof small);
    CHECK(strlen(small) == sizeof small - 1, "%s", small);
}

/* Products that round their factors are a GPU's. */
static void check_tf32(void) {
    const struct device_settings settings = {.precision = PRECISION_TF32};
    struct device *devices = NULL;
    struct error error = {0};
    int count = 0;
    bool shared = false;
    CHECK(devices_open("cpu:0", &settings, &devices, &count, &shared, &error) == ERROR_DEVICE,
          "tf32 on a CPU");
    CHECK(strcmp(error.words, "cpu:0: no tf32 without a GPU (--precision=fp32 does without)") == 0, "'%s'",
          error.words);
}

/* Lists are shown with ranges only where they are long. */
static void check_folding(void) {
    static const char *const lists[][2] = {
        {"cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5,cpu:6,cpu:7", NULL},
        {"cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5,cpu:6,cpu:7,cpu:8", "cpu:0-8"},
        {"gpu:3,cpu:9,cpu:10,cpu:11,cpu:12,cpu:13,cpu:14,cpu:15,cpu:16,cpu:17,cpu:19",
         "gpu:3,cpu:9-17,cpu:19"},
        {"cpu:0,cpu:1,cpu:2,cpu:3,gpu:4,gpu:5,gpu:6,gpu:7,gpu:8", NULL},
        {"(cpu:0+cpu:1),(cpu:2+cpu:3)", NULL},
        {"cpu:0,cpu:0", NULL},
        {"", NULL}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char list[200];
        snprintf(list, sizeof list, "%s", lists[i][0]);
        ranges_fold(list);
        CHECK(strcmp(list, lists[i][1] ? lists[i][1] : lists[i][0]) == 0, "%s becomes %s", lists[i][0], list);
    }
}

int main(void) {
    check_folding();
    check_lists();
    check_processes();
    check_one_core();
    check_errors();
    check_kernels();
    check_memory();
    check_tf32();
    return check_end();
}
