/* Kernels: a batch built from examples that lie on the GPU. Images are augmented as src/device/augment.h
 * says, in passes: parts of each crop are summed, its draw and line worked out from the sums, its bytes
 * stretched to floats. A byte is read at most twice, of a rotated image eight times; a float is written once.
 */
#include "kernels.h"
#include "launch.h"

namespace {

KERNEL numbers(gpu_indices indices, int *out) {
    EACH(i, (size_t)indices.count) out[i] = indices.index[i];
}

/* Labels and number of a batch that is picked on the device go along with what has a thread for each example;
 * those of other batches are launched by themselves. */
DEVICE void bring(const gpu_indices &, size_t) {}
DEVICE void bring(const gpu_picks &picks, size_t i) {
    if (i < (size_t)picks.count) picks.labels[i] = picks.label[i];
    if (i == 0 && picks.step) *picks.step = picks.label[picks.count];
}

template <class Indices>
KERNEL rows(CONSTANT Indices indices, size_t features, const float *values, float *out) {
    const uint32_t length = (uint32_t)features;
    EACH(i, (size_t)indices.count * features) {
        const uint32_t row = (uint32_t)i / length, column = (uint32_t)i % length;
        out[i] = values[(size_t)indices.index[row] * features + column];
        bring(indices, i);
    }
}

template <class Indices>
KERNEL rows_bytes(CONSTANT Indices indices, size_t features, const uint8_t *bytes, float scale, float *out) {
    const uint32_t length = (uint32_t)features;
    EACH(i, (size_t)indices.count * features) {
        const uint32_t row = (uint32_t)i / length, column = (uint32_t)i % length;
        out[i] = (float)bytes[(size_t)indices.index[row] * features + column] * scale;
        bring(indices, i);
    }
}

/* The byte of channel c at (row, column) of a crop; black where the crop reaches beyond the image. */
DEVICE uint8_t pixel(const augment &a, const struct augment_draw &draw, const uint8_t *image, int row,
                     int column, int c) {
    if (augment_is_turned(&draw)) {
        const struct augment_place place = augment_place(&a, &draw, row, column);
        return augment_rotated(&a, &place, image, c);
    }
    return augment_stored(&a, image, draw.top - a.pad + row,
                          draw.left - a.pad + (draw.flip ? a.columns - 1 - column : column), c);
}

template <class Indices>
DEVICE const uint8_t *image_of(const augment &a, const Indices &indices, uint32_t i, const uint8_t *images) {
    return images + (size_t)indices.index[i] * (size_t)a.height * (size_t)a.width * (size_t)a.channels;
}

template <class Keys> DEVICE struct augment_draw draw_of(const augment &a, const Keys &keys, uint32_t i) {
    return keys.drawn ? augment_draw(&a, keys.key[i]) : augment_centre(&a);
}

/* A thread sums the rows part, part + GPU_CROP_PARTS, ... of one crop. */
template <class Indices, class Keys>
KERNEL measure(augment a, CONSTANT Indices indices, CONSTANT Keys keys, const uint8_t *images,
               gpu_crops *crops) {
    EACH(at, (size_t)indices.count * GPU_CROP_PARTS) {
        const uint32_t i = (uint32_t)at / GPU_CROP_PARTS, part = (uint32_t)at % GPU_CROP_PARTS;
        const uint8_t *image = image_of(a, indices, i, images);
        const struct augment_draw draw = draw_of(a, keys, i);
        gpu_crop_sums sums = {{0, 0, 0, 0}, 0};
        for (int row = (int)part; row < a.rows; row += GPU_CROP_PARTS)
            for (int column = 0; column < a.columns; column++)
                for (int c = 0; c < a.channels; c++) {
                    const uint32_t x = pixel(a, draw, image, row, column, c);
                    sums.sum[c] += x;
                    sums.squares += x * x;
                }
        crops->sums[i][part] = sums;
    }
}

/* A thread a crop. */
template <class Indices, class Keys>
KERNEL draw_lines(augment a, CONSTANT Indices indices, CONSTANT Keys keys, float scale, int measured,
                  gpu_crops *crops) {
    EACH(i, (size_t)indices.count) {
        bring(indices, i);
        augment_sums sums = {{0, 0, 0, 0}, 0};
        for (int part = 0; measured && part < GPU_CROP_PARTS; part++) {
            for (int c = 0; c < a.channels; c++) sums.sum[c] += crops->sums[i][part].sum[c];
            sums.squares += crops->sums[i][part].squares;
        }
        const struct augment_draw draw = draw_of(a, keys, (uint32_t)i);
        crops->image[i].draw = draw;
        crops->image[i].line = augment_line(&a, &draw, &sums, scale);
    }
}

template <class Indices>
KERNEL stretch(augment a, CONSTANT Indices indices, const uint8_t *images, const gpu_crops *crops,
               float *out) {
    const uint32_t channels = (uint32_t)a.channels, row_bytes = (uint32_t)a.columns * channels;
    const uint32_t bytes = (uint32_t)a.rows * row_bytes;
    EACH(at, (size_t)indices.count * bytes) {
        const uint32_t i = (uint32_t)at / bytes, place = (uint32_t)at % bytes;
        const int row = (int)(place / row_bytes), column = (int)(place % row_bytes / channels);
        const int c = (int)(place % channels);
        const struct augment_draw &draw = crops->image[i].draw;
        const struct augment_line &line = crops->image[i].line;
        const bool cut = row >= draw.cut_top && row < draw.cut_bottom && column >= draw.cut_left &&
                         column < draw.cut_right;
        const uint8_t byte = pixel(a, draw, image_of(a, indices, i, images), row, column, c);
        out[at] = cut ? 0.0f : augment_value(byte, line.slope, line.offset[c]);
    }
}

KERNEL mix_rows(augment a, gpu_mixes mixes, const float *rows, float *out) {
    const uint32_t row_floats = (uint32_t)a.columns * (uint32_t)a.channels;
    const uint32_t floats = (uint32_t)a.rows * row_floats;
    EACH(at, (size_t)mixes.count * floats) {
        const struct augment_mix &mix = mixes.mix[(uint32_t)at / floats];
        const uint32_t place = (uint32_t)at % floats;
        const int row = (int)(place / row_floats), column = (int)(place % row_floats / (uint32_t)a.channels);
        const bool inside = row >= mix.top && row < mix.bottom && column >= mix.left && column < mix.right;
        const float own = rows[at], other = rows[at + floats];
        out[at] = mix.boxed ? inside ? other : own : augment_mixed(mix.share, own, other);
    }
}

template <class Indices, class Keys>
cudaError_t augment_all(cudaStream_t stream, const augment &a, const Indices &indices, const Keys &keys,
                        const uint8_t *images, float scale, int measured, gpu_crops *crops, float *out) {
    const size_t count = (size_t)indices.count, floats = (size_t)a.rows * a.columns * a.channels;
    cudaError_t code = cudaSuccess;
    if (measured)
        code =
            LAUNCH(stream, count * GPU_CROP_PARTS, (measure<Indices, Keys>), a, indices, keys, images, crops);
    if (code == cudaSuccess)
        code = LAUNCH(stream, count, (draw_lines<Indices, Keys>), a, indices, keys, scale, measured, crops);
    if (code == cudaSuccess)
        code = LAUNCH(stream, count * floats, stretch<Indices>, a, indices, images, crops, out);
    return code;
}

} // namespace

cudaError_t launch_numbers(cudaStream_t stream, const struct gpu_indices *indices, int *out) {
    return LAUNCH(stream, indices->count, numbers, *indices, out);
}

cudaError_t launch_rows(cudaStream_t stream, const struct gpu_indices *indices, size_t features,
                        const float *values, float *out) {
    return LAUNCH(stream, indices->count * features, rows<gpu_indices>, *indices, features, values, out);
}

cudaError_t launch_rows_bytes(cudaStream_t stream, const struct gpu_indices *indices, size_t features,
                              const uint8_t *bytes, float scale, float *out) {
    return LAUNCH(stream, indices->count * features, rows_bytes<gpu_indices>, *indices, features, bytes,
                  scale, out);
}

cudaError_t launch_augment(cudaStream_t stream, const struct augment *a, const struct gpu_indices *indices,
                           const struct gpu_keys *keys, const uint8_t *images, float scale, int measured,
                           struct gpu_crops *crops, float *out) {
    return augment_all(stream, *a, *indices, *keys, images, scale, measured, crops, out);
}

cudaError_t launch_picked_rows(cudaStream_t stream, const struct gpu_picks *picks, size_t features,
                               const float *values, float *out) {
    return LAUNCH(stream, picks->count * features, rows<gpu_picks>, *picks, features, values, out);
}
cudaError_t launch_picked_bytes(cudaStream_t stream, const struct gpu_picks *picks, size_t features,
                                const uint8_t *bytes, float scale, float *out) {
    return LAUNCH(stream, picks->count * features, rows_bytes<gpu_picks>, *picks, features, bytes, scale,
                  out);
}
cudaError_t launch_picked_augment(cudaStream_t stream, const struct augment *a, const struct gpu_picks *picks,
                                  const uint8_t *images, float scale, int measured, struct gpu_crops *crops,
                                  float *out) {
    return augment_all(stream, *a, *picks, *picks, images, scale, measured, crops, out);
}

cudaError_t launch_mix(cudaStream_t stream, const struct augment *a, const struct gpu_mixes *mixes,
                       const float *rows, float *out) {
    const size_t floats = (size_t)a->rows * a->columns * a->channels;
    return LAUNCH(stream, (size_t)mixes->count * floats, mix_rows, *a, *mixes, rows, out);
}
