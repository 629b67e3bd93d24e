/* The text of --devices where there is more than the CPU: a table of backends of our own, with three made-up
 * GPUs, and a backend that has none. */
#include "../../src/device/device.h"

#include <string.h>
#include "../../src/base/memory.h"
#include "../check.h"

static int one(void) {
    return 1;
}
static int three(void) {
    return 3;
}
static int none(void) {
    return 0;
}
static const char *why_none(void) {
    return "driver not found";
}

/* How often each label is open; label 2 may be opened once only. */
static int opened[3];
static int open_gpu(const struct device *device, struct error *error) {
    if (device->label == 2 && opened[2] > 0)
        return error_set(error, ERROR_DEVICE, "%s: in use", device->name);
    opened[device->label]++;
    return OK;
}
static void close_gpu(const struct device *device) {
    opened[device->label]--;
}

static const struct backend cpu = {.name = "cpu", .count = one},
                            gpu = {.name = "gpu", .count = three, .open = open_gpu, .close = close_gpu},
                            npu = {.name = "npu", .count = none, .missing = why_none};
const struct backend *const backends[] = {&cpu, &gpu, &npu, NULL};

static void check_names(const char *text, int expected_code, const char *expected) {
    const struct device_settings settings = {0};
    struct device *devices = NULL;
    struct error error = {0};
    int count = 0;
    bool shared = false;
    const int code = devices_open(text, &settings, &devices, &count, &shared, &error);
    char names[300] = "";
    for (int i = 0; i < count; i++) {
        strncat(names, devices[i].name, sizeof names - strlen(names) - 1);
        strncat(names, " ", sizeof names - strlen(names) - 1);
        CHECK(devices[i].threads >= 1, "%s: %d threads", devices[i].name, devices[i].threads);
        CHECK((devices[i].backend == &gpu) == (devices[i].name[0] == 'g'), "%s", devices[i].name);
        CHECK(devices[i].backend != &gpu || opened[devices[i].label] > 0, "%s is not open", devices[i].name);
    }
    CHECK(code == expected_code, "'%s': code %d, expected %d", text, code, expected_code);
    CHECK(strcmp(code ? error.words : names, expected) == 0, "'%s': '%s', expected '%s'", text,
          code ? error.words : names, expected);
    devices_close(devices, count);
    for (int label = 0; label < 3; label++)
        CHECK(opened[label] == 0, "'%s': gpu:%d is open %d times", text, label, opened[label]);
}

int main(void) {
    check_names("auto", OK, "gpu:0 gpu:1 gpu:2 ");
    check_names("gpu:*", OK, "gpu:0 gpu:1 gpu:2 ");
    check_names("gpu:1,gpu:1", OK, "gpu:1 gpu:1 ");
    check_names("gpu:2,cpu:5", OK, "gpu:2 cpu:5 ");
    check_names("gpu:3", ERROR_DEVICE, "gpu:3: there is no such device (devices: cpu:0, gpu:0 to gpu:2)");
    check_names("gpu:1,gpu:2,gpu:0,gpu:2", ERROR_DEVICE, "gpu:2: in use");
    check_names("npu:0", ERROR_DEVICE, "npu:0: driver not found (devices: cpu:0, gpu:0 to gpu:2)");
    check_names("npu:*", ERROR_DEVICE, "npu:*: driver not found (devices: cpu:0, gpu:0 to gpu:2)");
    check_names("cpu:1,cpu:1", ERROR_USAGE, "devices: cpu:1 is named twice, expected each device once");
    for (int turn = 0; turn < 7; turn++) {
        char name[16] = "", expected[16];
        snprintf(expected, sizeof expected, "gpu:%d", turn % 3);
        CHECK(devices_in_turn(turn, name, sizeof name) && strcmp(name, expected) == 0, "turn %d: %s", turn,
              name);
    }
    return check_end();
}
