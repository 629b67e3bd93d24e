/* See mixing.h. */
#include "mixing.h"

#include "../base/memory.h"
#include "../data/mix.h"
#include "../device/gather.h"

int mixing_open(struct mixing *mixing, const struct device *device, const struct examples *examples,
                int batch, int microbatches, struct error *error) {
    const size_t count = (size_t)batch, shares = count * (size_t)microbatches;
    void *block = NULL;
    RETURN_IF(device_array(device, &mixing->rows, (count + 1) * (size_t)examples->features,
                           "examples to be mixed", error));
    RETURN_IF(memory_array(&mixing->mix, count, "how examples are mixed", error));
    RETURN_IF(device->backend->allocate_host(device, &block, shares * sizeof *mixing->shares,
                                             "shares of mixed examples", error));
    mixing->shares = block;
    return OK;
}

void mixing_close(struct mixing *mixing, const struct device *device) {
    if (mixing->shares) device->backend->release_host(device, mixing->shares);
    if (mixing->rows) device->backend->release(device, mixing->rows);
    memory_free(mixing->mix);
    *mixing = (struct mixing){0};
}

static int mix_rows(const struct mixing *mixing, const struct device *device, const struct examples *examples,
                    const struct indices *indices, float *shares, float *x, struct error *error) {
    const struct backend *backend = device->backend;
    const struct indices more = {
        .count = indices->count + 1, .index = indices->index, .key = indices->key, .soon = indices->soon};
    for (int i = 0; i < indices->count; i++) {
        mix_draw(&mixing->mix[i], &examples->augment, indices->key[i]);
        shares[i] = mixing->mix[i].share;
    }
    RETURN_IF(device_gather(device, examples, &more, mixing->rows, error));
    return backend->mix(device, &examples->augment, mixing->mix, indices->count, mixing->rows, x, error);
}

int mixing_load(const struct mixing *mixing, const struct device *device, const struct examples *examples,
                int micro, const struct indices *indices, const struct mixed *out, struct error *error) {
    const struct backend *backend = device->backend;
    float *const shares = mixing->shares + (size_t)micro * (size_t)indices->count;
    const bool drawn = indices->key != NULL;
    const struct indices others = {.count = indices->count, .index = indices->index + (drawn ? 1 : 0)};
    if (drawn) {
        RETURN_IF(mix_rows(mixing, device, examples, indices, shares, out->x, error));
    } else {
        for (int i = 0; i < indices->count; i++) shares[i] = 1.0f;
        RETURN_IF(device_gather(device, examples, indices, out->x, error));
    }
    RETURN_IF(device_gather_labels(device, examples, indices, out->labels, error));
    RETURN_IF(device_gather_labels(device, examples, &others, out->others, error));
    return backend->queue_copy(device, out->shares, shares, (size_t)indices->count * sizeof *out->shares,
                               error);
}
