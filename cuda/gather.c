/* Builds batches on the GPU from examples that are kept there, or, where they do not fit, from the rows of a
 * batch that are sent.
 *
 * The numbers and keys of a batch go as arguments of the launch, a part of the batch at a time: the launch
 * copies them, so nothing of the caller's has to outlive the call, and nobody waits. Rows are sent from a
 * ring of pinned blocks, each with an event that says when it may be filled again. */
#include <string.h>

#include "gpu.h"
#include "kernels.h"

/* What a batch is built from. */
struct source {
    const struct examples *examples;
    const char *host;  /* rows as they are stored */
    size_t row_bytes;  /* of one of them */
    const void *there; /* all of them on the GPU, or NULL */
    void *rows;        /* else: room for a part of a batch there */
    int most;          /* rows of a part */
};

static bool is_images(const struct examples *examples) {
    return examples->bytes && examples->augment.height > 0;
}

static int open_source(const struct device *device, struct queue *queue, const struct examples *examples,
                       int count, struct source *source, struct error *error) {
    const size_t fit = (size_t)INT32_MAX / (size_t)examples->features; /* kernels count in 32 bits */
    *source = (struct source){.examples = examples,
                              .host = examples->bytes ? (const char *)examples->bytes
                                                      : (const char *)examples->floats,
                              .row_bytes = examples_row_bytes(examples),
                              .most = fit < GPU_PICKS ? (int)fit : GPU_PICKS};
    if (count < source->most) source->most = count;
    RETURN_IF(gpu_examples(device, source->host, (size_t)examples->count * source->row_bytes, &source->there,
                           error));
    const size_t sent = source->there ? 0 : (size_t)source->most * source->row_bytes;
    return sent > 0 ? gpu_queue_scratch(device, queue, sent, &source->rows, error) : OK;
}

/* Sends the rows that are picked, one behind the other. */
static int send_rows(const struct device *device, struct queue *queue, const struct source *source,
                     const struct gpu_indices *indices, struct error *error) {
    const size_t bytes = (size_t)indices->count * source->row_bytes;
    struct outbox *box = NULL;
    RETURN_IF(gpu_outbox(device, queue, (size_t)source->most * source->row_bytes, &box, error));
    for (int i = 0; i < indices->count; i++)
        memcpy((char *)box->block + (size_t)i * source->row_bytes,
               source->host + (size_t)indices->index[i] * source->row_bytes, source->row_bytes);
    return gpu_outbox_send(device, queue, box, bytes, source->rows, error);
}

/* What an image gets depends on its pixels, or may. */
bool gpu_is_measured(const struct augment *a, bool keyed) {
    const bool contrast = a->contrast_least < 1.0f || a->contrast_least > 1.0f || a->contrast_most < 1.0f ||
                          a->contrast_most > 1.0f;
    return a->standardize || (keyed && contrast);
}

/* count <= source->most examples from number `first` of the indices on. */
static int gather_part(const struct device *device, struct queue *queue, const struct source *source,
                       const struct indices *indices, int first, int count, float *out, struct error *error) {
    const struct examples *examples = source->examples;
    const void *from = source->there;
    struct gpu_indices part = {.count = count};
    memcpy(part.index, indices->index + first, (size_t)count * sizeof *part.index);
    if (!from) {
        RETURN_IF(send_rows(device, queue, source, &part, error));
        from = source->rows;
        for (int i = 0; i < count; i++) part.index[i] = i;
    }
    if (is_images(examples)) {
        struct gpu_keys keys = {.drawn = indices->key != NULL};
        if (indices->key) memcpy(keys.key, indices->key + first, (size_t)count * sizeof *keys.key);
        GPU_TRY(device,
                launch_augment(queue->stream, &examples->augment, &part, &keys, from, examples->scale,
                               gpu_is_measured(&examples->augment, indices->key != NULL), out),
                error);
    } else if (examples->bytes) {
        GPU_TRY(
            device,
            launch_rows_bytes(queue->stream, &part, (size_t)examples->features, from, examples->scale, out),
            error);
    } else {
        GPU_TRY(device, launch_rows(queue->stream, &part, (size_t)examples->features, from, out), error);
    }
    return OK;
}

int gpu_gather(const struct device *device, const struct examples *examples, const struct indices *indices,
               float *out, struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    struct source source;
    if (!queue) return error->code;
    if (indices->count == 0) return OK;
    RETURN_IF(open_source(device, queue, examples, indices->count, &source, error));
    for (int first = 0; first < indices->count; first += source.most) {
        const int left = indices->count - first;
        RETURN_IF(gather_part(device, queue, &source, indices, first, left < source.most ? left : source.most,
                              out + (size_t)first * (size_t)examples->features, error));
    }
    return OK;
}

/* Labels are so few that the numbers themselves are sent. */
int gpu_gather_labels(const struct device *device, const struct examples *examples,
                      const struct indices *indices, int *out, struct error *error) {
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    for (int first = 0; first < indices->count; first += GPU_PICKS) {
        struct gpu_indices part = {.count = indices->count - first};
        if (part.count > GPU_PICKS) part.count = GPU_PICKS;
        for (int i = 0; i < part.count; i++) part.index[i] = examples->labels[indices->index[first + i]];
        GPU_TRY(device, launch_numbers(queue->stream, &part, out + first), error);
    }
    return OK;
}

int gpu_mix(const struct device *device, const struct augment *augment, const struct augment_mix *mix,
            int count, const float *rows, float *out, struct error *error) {
    const size_t floats = (size_t)augment->rows * (size_t)augment->columns * (size_t)augment->channels;
    struct queue *queue = gpu_queue(device, error);
    if (!queue) return error->code;
    for (int first = 0; first < count; first += GPU_MIXES) {
        struct gpu_mixes part = {.count = count - first < GPU_MIXES ? count - first : GPU_MIXES};
        const size_t at = (size_t)first * floats;
        memcpy(part.mix, mix + first, (size_t)part.count * sizeof *part.mix);
        GPU_TRY(device, launch_mix(queue->stream, augment, &part, rows + at, out + at), error);
    }
    return OK;
}
