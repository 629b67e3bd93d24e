/* Batches that are built in a recording: the backend's struct picker. Which examples make one, what they are
 * augmented by, their labels and the batch's number lie in one pinned block, which the recording copies to
 * the GPU and builds the batch from: so a batch costs the host no call. Only of examples that are kept on the
 * GPU, and have a class each. */
#include <string.h>

#include "../src/base/memory.h"
#include "gpu.h"
#include "kernels.h"

struct picks {
    const struct examples *examples; /* borrowed */
    int count;
    const void *there;  /* all examples on the GPU; NULL: not yet */
    size_t bytes;       /* of a block: keys [count], then numbers [count], then labels [count + 1] */
    void *host, *block; /* pinned; on the GPU */
};

static bool is_images(const struct examples *examples) {
    return examples->bytes && examples->augment.height > 0;
}

static uint64_t *keys_in(const struct picks *picks, void *block) {
    (void)picks;
    return block;
}
static int *numbers_in(const struct picks *picks, void *block) {
    return (int *)(keys_in(picks, block) + picks->count);
}
static int *labels_in(const struct picks *picks, void *block) {
    return numbers_in(picks, block) + picks->count;
}

static void close_picks(const struct device *device, void *self) {
    struct picks *picks = self;
    if (!picks) return;
    if (picks->host) gpu_release_host(device, picks->host);
    if (picks->block) gpu_release(device, picks->block);
    memory_free(picks);
}

static int fill(const struct device *device, struct picks *picks, struct error *error) {
    RETURN_IF(gpu_allocate_host(device, &picks->host, picks->bytes, "the numbers of a batch", error));
    return gpu_allocate(device, &picks->block, picks->bytes, "the numbers of a batch", error);
}

static int open_picks(const struct device *device, const struct examples *examples, int count, void **out,
                      struct error *error) {
    struct picks *picks = NULL;
    *out = NULL;
    if (!examples->labels || examples->targets || count < 1 ||
        (size_t)count > (size_t)INT32_MAX / (size_t)examples->features)
        return OK;
    RETURN_IF(memory_array(&picks, 1, "the numbers of a batch", error));
    picks->examples = examples;
    picks->count = count;
    picks->bytes = (size_t)count * sizeof(uint64_t) + (2 * (size_t)count + 1) * sizeof(int);
    const int code = fill(device, picks, error);
    if (code == OK)
        *out = picks;
    else
        close_picks(device, picks);
    return code;
}

static int pick(const struct device *device, void *self, const struct indices *indices, int number,
                bool *picked, struct error *error) {
    struct picks *picks = self;
    const struct examples *examples = picks->examples;
    *picked = false;
    if (indices->count != picks->count || !indices->key) return OK;
    if (!picks->there)
        RETURN_IF(gpu_examples(device, examples_rows(examples),
                               (size_t)examples->count * examples_row_bytes(examples), &picks->there, error));
    if (!picks->there) return OK;
    int *labels = labels_in(picks, picks->host);
    memcpy(keys_in(picks, picks->host), indices->key, (size_t)picks->count * sizeof *indices->key);
    memcpy(numbers_in(picks, picks->host), indices->index, (size_t)picks->count * sizeof *indices->index);
    for (int i = 0; i < picks->count; i++) labels[i] = examples->labels[indices->index[i]];
    labels[picks->count] = number;
    *picked = true;
    return OK;
}

static int gather(const struct device *device, const void *self, float *out, int *labels, int *step,
                  struct error *error) {
    const struct picks *picks = self;
    const struct examples *examples = picks->examples;
    const struct augment *augment = &examples->augment;
    const size_t features = (size_t)examples->features;
    const struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    const struct gpu_picks from = {.count = picks->count,
                                   .drawn = 1,
                                   .index = numbers_in(picks, picks->block),
                                   .key = keys_in(picks, picks->block),
                                   .label = labels_in(picks, picks->block),
                                   .labels = labels,
                                   .step = step};
    RETURN_IF(gpu_queue_copy(device, picks->block, picks->host, picks->bytes, error));
    if (is_images(examples))
        GPU_TRY(device,
                launch_picked_augment(queue->stream, augment, &from, picks->there, examples->scale,
                                      gpu_is_measured(augment, true), out),
                error);
    else if (examples->bytes)
        GPU_TRY(device,
                launch_picked_bytes(queue->stream, &from, features, picks->there, examples->scale, out),
                error);
    else
        GPU_TRY(device, launch_picked_rows(queue->stream, &from, features, picks->there, out), error);
    return OK;
}

const struct picker gpu_picker = {.open = open_picks, .close = close_picks, .pick = pick, .gather = gather};
