/* From the text of --devices to devices: which ones, and which cores each of them gets.
 *
 * A CPU device is a share of the cores: with D of them each gets T threads, and cores of its own as long as
 * there are D * T. Every device gets the same T, because the bits of a result may depend on it. Workers of a
 * cluster that are on one machine divide its cores first. */
#include "device.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "ranges.h"
#include "without.h"

enum { COUNT_MOST = 8, MEANT_BYTES = 80 };

struct list {
    struct device *devices; /* [count], owned */
    int count, capacity;
};

static const struct backend *find_backend(const char *name, size_t length) {
    for (const struct backend *const *backend = backends; *backend; backend++)
        if (strlen((*backend)->name) == length && memcmp((*backend)->name, name, length) == 0)
            return *backend;
    return NULL;
}

/* The backend that computes on this machine's cores; every build has it. */
static bool is_cpu(const struct backend *backend) {
    return strcmp(backend->name, "cpu") == 0;
}

/* Writes "cpu:0 to cpu:1, gpu:0" into out[bytes] and returns out. */
static const char *present(char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    for (const struct backend *const *backend = backends; *backend; backend++) {
        const int count = (*backend)->count();
        if (count > 0) text_item(&text, ", ", "%s:0", (*backend)->name);
        if (count > 1) text_add(&text, " to %s:%d", (*backend)->name, count - 1);
    }
    return out;
}

/* "; did you mean gpu:1?" for "cuda:1", "cpu:0?" for "cpu"; of a number that is all there is, so many CPU
 * devices; "" where nothing is near. */
static const char *nearest_words(bool alone, const char *item, size_t length, char out[MEANT_BYTES]) {
    static const char *const names[][2] = {{"cuda", "gpu"}, {"gpu", "gpu"}, {"cpu", "cpu"}};
    const char *colon = memchr(item, ':', length);
    const size_t name = colon ? (size_t)(colon - item) : length, digits = colon ? length - name - 1 : 0;
    out[0] = '\0';
    if (alone && length == 1 && item[0] >= '1' && item[0] <= '0' + COUNT_MOST) {
        struct text text = text_into(out, MEANT_BYTES);
        for (int i = 0; i < item[0] - '0'; i++)
            text_add(&text, i > 0 ? ",cpu:%d" : "; did you mean cpu:%d", i);
        text_add(&text, "?");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i][0]) != name || strncasecmp(item, names[i][0], name) != 0) continue;
        const bool every = digits == 1 && colon[1] == '*';
        const bool is_label =
            every || (digits > 0 && digits < 4 && strspn(colon + 1, "0123456789") >= digits);
        if (digits > 0 && !is_label) continue;
        snprintf(out, MEANT_BYTES, "; did you mean %s:%.*s?%s", names[i][1], is_label ? (int)digits : 1,
                 is_label ? colon + 1 : "0",
                 names[i][1][0] == 'g' && !DEVICES_MAY_BE_GPUS ? " (needs a build with CUDA)" : "");
    }
    return out;
}

static int not_understood(bool alone, const char *item, size_t length, struct error *error) {
    char meant[MEANT_BYTES];
    return error_set(
        error, ERROR_USAGE,
        "devices: '%.*s', expected auto, cpu:*, gpu:0, or a list such as cpu:0,cpu:1 or cpu:0-3%s",
        (int)length, item, nearest_words(alone, item, length, meant));
}

static int add(struct list *list, const struct backend *backend, int label, struct error *error) {
    for (int i = 0; is_cpu(backend) && i < list->count; i++)
        if (list->devices[i].backend == backend && list->devices[i].label == label)
            return error_set(error, ERROR_USAGE, "devices: cpu:%d is named twice, expected each device once",
                             label);
    if (list->count == list->capacity) {
        const int capacity = list->capacity ? 2 * list->capacity : 4;
        RETURN_IF(memory_grow(&list->devices, list->capacity, capacity, "the list of devices", error));
        list->capacity = capacity;
    }
    struct device *device = &list->devices[list->count++];
    *device = (struct device){.backend = backend, .label = label, .threads = 1};
    snprintf(device->name, sizeof device->name, "%s:%d", backend->name, label);
    return OK;
}

static int add_all(struct list *list, const struct backend *backend, struct error *error) {
    const int count = backend->count();
    for (int label = 0; label < count && label <= RANGE_LABEL_MOST; label++)
        RETURN_IF(add(list, backend, label, error));
    return OK;
}

/* Whether text[length] is "3", "0-9", or a range that is not complete. */
static bool are_labels(const char *text, size_t length) {
    const size_t first = strspn(text, "0123456789");
    return first >= length || (first > 0 && text[first] == '-');
}

static int wrong_labels(const char *item, size_t length, struct error *error) {
    const char *dash = memchr(item, '-', length);
    if (dash)
        return error_set(error, ERROR_USAGE,
                         "devices: '%.*s', expected a range such as cpu:0-9, labels from 0 to %d",
                         (int)length, item, RANGE_LABEL_MOST);
    return error_set(error, ERROR_USAGE, "devices: '%.*s', expected a label of 0 to %d", (int)length, item,
                     RANGE_LABEL_MOST);
}

/* item[length] is "cpu:3", "cpu:0-9" or "cpu:*". */
static int add_item(struct list *list, const char *item, size_t length, struct error *error) {
    const char *colon = memchr(item, ':', length);
    if (!colon) return not_understood(list->count == 0 && item[length] == '\0', item, length, error);
    const size_t name_length = (size_t)(colon - item), digits = length - name_length - 1;
    const char *label_text = colon + 1;
    const bool every = digits == 1 && label_text[0] == '*';
    if (digits == 0 || (!every && !are_labels(label_text, digits)))
        return not_understood(list->count == 0 && item[length] == '\0', item, length, error);

    const struct backend *backend = find_backend(item, name_length);
    char devices[200];
    if (!backend && name_length == 3 && memcmp(item, "gpu", 3) == 0)
        return error_set(error, ERROR_DEVICE, "%.*s: needs a build with CUDA (devices: %s)", (int)length,
                         item, present(devices, sizeof devices));
    if (!backend) return not_understood(list->count == 0 && item[length] == '\0', item, length, error);
    if (backend->count() == 0 && backend->missing)
        return error_set(error, ERROR_DEVICE, "%.*s: %s (devices: %s)", (int)length, item, backend->missing(),
                         present(devices, sizeof devices));
    if (every && backend->count() > 0) return add_all(list, backend, error);
    struct device_range range = {0};
    if (!every && !range_read(item, length, &range)) return wrong_labels(item, length, error);
    /* A CPU label is only a name for a share of the cores; any other device has to be there. */
    if (every || (!is_cpu(backend) && range.last >= backend->count()))
        return error_set(error, ERROR_DEVICE, "%.*s: there is no such device (devices: %s)", (int)length,
                         item, present(devices, sizeof devices));
    for (int label = range.first; label <= range.last; label++) RETURN_IF(add(list, backend, label, error));
    return OK;
}

static int add_list(struct list *list, const char *text, struct error *error) {
    for (;;) {
        const size_t length = strcspn(text, ",");
        RETURN_IF(add_item(list, text, length, error));
        if (text[length] == '\0') return OK;
        text += length + 1;
    }
}

/* Whatever is there besides the CPU; else two CPU devices, one on a single core. */
static int add_auto(struct list *list, struct error *error) {
    for (const struct backend *const *backend = backends; *backend; backend++)
        if (!is_cpu(*backend)) RETURN_IF(add_all(list, *backend, error));
    if (list->count > 0) return OK;
    const struct backend *cpu = find_backend("cpu", 3);
    const int count = cpu->count() > 1 ? 2 : 1;
    for (int label = 0; label < count; label++) RETURN_IF(add(list, cpu, label, error));
    return OK;
}

bool devices_in_turn(int turn, char *out, size_t bytes) {
    for (const struct backend *const *backend = backends; *backend; backend++) {
        const int count = is_cpu(*backend) ? 0 : (*backend)->count();
        if (count == 0) continue;
        snprintf(out, bytes, "%s:%d", (*backend)->name, turn % count);
        return true;
    }
    return false;
}

/* The next `wanted` cores of `all`, from *core on. */
static struct cores take_cores(const struct cores *all, int wanted, int *core) {
    struct cores taken = {0};
    for (; taken.count < wanted && *core < WORLD_CORES; (*core)++) {
        const uint64_t bit = UINT64_C(1) << (*core % 64);
        if (!(all->mask[*core / 64] & bit)) continue;
        taken.mask[*core / 64] |= bit;
        taken.count++;
    }
    return taken;
}

/* Where other processes share the cores, none has cores of its own: those that wait and copy have no device
 * and need some, too, and whoever is pinned to one waits for them. Measured with one parameter server and two
 * workers on two cores that others used too, MNIST, medians of four rounds: 80 thousand examples/s pinned to
 * a core each, 132 thousand not; with a million parameters 5.0 and 5.9 thousand. */
static void divide_cores(struct list *list, const struct device_settings *settings, bool *shared) {
    const int processes = settings->processes > 1 ? settings->processes : 1;
    struct cores all;
    world_cores(&all);
    int cpus = 0;
    for (int i = 0; i < list->count; i++) cpus += is_cpu(list->devices[i].backend);
    if (cpus == 0) return;
    const int share = all.count / processes / cpus;
    const int threads = settings->threads > 0 ? settings->threads : share > 0 ? share : 1;
    const bool enough = threads <= share, pinned = enough && processes == 1;
    int core = 0;
    for (int i = 0; i < list->count; i++) {
        struct device *device = &list->devices[i];
        if (!is_cpu(device->backend)) continue;
        device->threads = threads;
        device->pinned = pinned;
        if (pinned) device->cores = take_cores(&all, threads, &core);
    }
    *shared = !enough;
}

int device_array_of(const struct device *device, void *out, size_t bytes, const char *what,
                    struct error *error) {
    void *block;
    RETURN_IF(device->backend->allocate(device, &block, bytes, what, error));
    memcpy(out, &block, sizeof block); /* whatever the pointer points to */
    return OK;
}

static const char *const precisions[] = {
    [PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16", [PRECISION_TF32] = "tf32"};

static int check_precision(const struct list *list, struct error *error) {
    for (int i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];
        if (device->precision == PRECISION_FP32) continue;
        const char *lacks = device->backend->lacks ? device->backend->lacks(device, device->precision) : "it";
        if (lacks)
            return error_set(error, ERROR_DEVICE, "%s: no %s without %s (--precision=fp32 does without)",
                             device->name, precisions[device->precision], lacks);
    }
    return OK;
}

static void close_first(struct device *devices, int count) {
    for (int i = count - 1; i >= 0; i--)
        if (devices[i].backend->close) devices[i].backend->close(&devices[i]);
}

void devices_close(struct device *devices, int count) {
    if (devices) close_first(devices, count);
    memory_free(devices);
}

/* Opens all of them, or none. */
static int open_all(const struct list *list, struct error *error) {
    for (int i = 0; i < list->count; i++) {
        const struct device *device = &list->devices[i];
        const int code = device->backend->open ? device->backend->open(device, error) : OK;
        if (code == OK) continue;
        close_first(list->devices, i);
        return code;
    }
    return OK;
}

static int make_list(struct list *list, const char *text, const struct device_settings *settings,
                     bool *shared, struct error *error) {
    RETURN_IF(strcmp(text, "auto") == 0 ? add_auto(list, error) : add_list(list, text, error));
    for (int i = 0; i < list->count; i++) {
        list->devices[i].reference_only = settings->reference_only;
        list->devices[i].precision = settings->precision;
        list->devices[i].deterministic = settings->deterministic;
        list->devices[i].hard = settings->hard;
    }
    RETURN_IF(devices_without(list->devices, list->count, settings->without, error));
    RETURN_IF(check_precision(list, error));
    divide_cores(list, settings, shared);
    return open_all(list, error);
}

int devices_open(const char *text, const struct device_settings *settings, struct device **devices,
                 int *count, bool *shared, struct error *error) {
    struct list list = {0};
    *devices = NULL;
    *count = 0;
    *shared = false;
    const int code = make_list(&list, text, settings, shared, error);
    if (code) {
        memory_free(list.devices);
        return code;
    }
    *devices = list.devices;
    *count = list.count;
    return OK;
}

/* Targets are rows of floats, as examples are. */
int device_gather_labels(const struct device *device, const struct examples *examples,
                         const struct indices *indices, void *out, struct error *error) {
    if (!examples->targets) return device->backend->gather_labels(device, examples, indices, out, error);
    const struct examples rows = {
        .count = examples->count, .features = examples->outputs, .floats = examples->targets};
    const struct indices of = {.count = indices->count, .index = indices->index};
    return device->backend->gather(device, &rows, &of, out, error);
}
