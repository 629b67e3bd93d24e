/* See compress.h. */
#include "compress.h"

#include "../base/memory.h"

/* Rows of a range of two dimensions or more that lies whole in the slice; its last dimension is a row's
 * length.
 */
static size_t rows_of(const struct range *range, size_t floats) {
    const size_t columns = range->shape.rank > 1 ? (size_t)range->shape.dims[range->shape.rank - 1] : 0;
    return columns > 0 && floats == range->floats ? floats / columns : 0;
}

static void add_blocks(struct blocks *blocks, struct block *list, const struct layout *layout, size_t begin,
                       size_t end, enum range_kind kind) {
    blocks->list = list;
    for (int r = 0; r < layout->count; r++) {
        const struct range *range = &layout->ranges[r];
        const size_t from = range->begin > begin ? range->begin : begin;
        const size_t last = range->begin + range->floats, to = last < end ? last : end;
        if (range->kind != kind || from >= to) continue;
        list[blocks->count++] =
            (struct block){.at = from - begin, .floats = to - from, .rows = rows_of(range, to - from)};
        blocks->floats += to - from;
    }
}

bool compress_is_on(const struct choice *choice) {
    return strcmp(choice->plugin->name, "none") != 0;
}

int compress_open(struct compress *compress, const struct choice *choice, const struct layout *layout,
                  size_t begin, size_t end, struct error *error) {
    const struct compressor *compressor = compressor_of(choice);
    *compress = (struct compress){.settings = choice_settings(choice), .floats = end - begin};
    RETURN_IF(memory_array(&compress->list, layout->count, "pieces of the weights", error));
    add_blocks(&compress->lossy, compress->list, layout, begin, end, RANGE_TRAINABLE);
    add_blocks(&compress->exact, compress->list + compress->lossy.count, layout, begin, end, RANGE_STATISTIC);
    if (compressor->scratch)
        RETURN_IF(memory_array(&compress->scratch, compressor->scratch(compress->settings, &compress->lossy),
                               "compressing", error));
    compress->bytes =
        compress->exact.floats * sizeof(float) + compressor->bytes(compress->settings, &compress->lossy);
    compress->compressor = compressor;
    return OK;
}

void compress_close(struct compress *compress) {
    memory_free(compress->scratch);
    memory_free(compress->list);
    *compress = (struct compress){0};
}

size_t compress_pack(const struct compress *compress, const float *meant, float *sent, uint8_t *out) {
    const struct compressor *compressor = compress->compressor;
    uint8_t *at = out;
    memset(sent, 0, compress->floats * sizeof *sent);
    for (int b = 0; b < compress->exact.count; b++) {
        const struct block *block = &compress->exact.list[b];
        const size_t bytes = block->floats * sizeof *meant;
        memcpy(at, meant + block->at, bytes);
        memcpy(sent + block->at, meant + block->at, bytes);
        at += bytes;
    }
    const size_t count =
        compressor->encode(compress->settings, &compress->lossy, meant, compress->scratch, at);
    compressor->decode(compress->settings, &compress->lossy, at, count, compress->scratch, sent);
    return (size_t)(at - out) + count;
}

int compress_unpack(const struct compress *compress, const uint8_t *in, size_t count, float *values,
                    const char *peer, struct error *error) {
    const size_t exact = compress->exact.floats * sizeof(float);
    const uint8_t *at = in;
    memset(values, 0, compress->floats * sizeof *values);
    for (int b = 0; count >= exact && b < compress->exact.count; b++) {
        const struct block *block = &compress->exact.list[b];
        memcpy(values + block->at, at, block->floats * sizeof *values);
        at += block->floats * sizeof *values;
    }
    if (count >= exact && compress->compressor->decode(compress->settings, &compress->lossy, at,
                                                       count - exact, compress->scratch, values))
        return OK;
    return error_set(error, ERROR_PEER, "%s: %zu bytes that --compress=%s did not make", peer, count,
                     compress->compressor->plugin.name);
}
