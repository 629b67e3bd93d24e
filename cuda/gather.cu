/* Kernels: a batch built from examples that lie on the GPU. Images are augmented as src/device/augment.h
 * says: a block sums a crop where that matters, works out its line and stretches its bytes to floats. A byte
 * is read at most twice, of a rotated image eight times; a float is written once. */
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

/* Whole numbers, below 2^32 as a crop has at most AUGMENT_BYTES bytes: in any order they are the same. */
struct crop_sums {
    uint32_t sum[AUGMENT_CHANNELS], squares;
};
struct add_crops {
    DEVICE crop_sums of(const crop_sums &a, const crop_sums &b) {
        crop_sums all;
        for (int c = 0; c < AUGMENT_CHANNELS; c++) all.sum[c] = a.sum[c] + b.sum[c];
        all.squares = a.squares + b.squares;
        return all;
    }
};

DEVICE crop_sums sums_of(const augment &a, const struct augment_draw &draw, const uint8_t *image,
                         uint32_t first, uint32_t step) {
    const uint32_t columns = (uint32_t)a.columns, pixels = (uint32_t)a.rows * columns;
    crop_sums sums = {{0, 0, 0, 0}, 0};
    for (uint32_t p = first; p < pixels; p += step)
        for (int c = 0; c < a.channels; c++) {
            const uint32_t x = pixel(a, draw, image, (int)(p / columns), (int)(p % columns), c);
            sums.sum[c] += x;
            sums.squares += x * x;
        }
    return sums;
}

DEVICE struct augment_line line_of(const augment &a, const struct augment_draw &draw, const crop_sums &found,
                                   float scale) {
    augment_sums sums;
    for (int c = 0; c < AUGMENT_CHANNELS; c++) sums.sum[c] = found.sum[c];
    sums.squares = found.squares;
    return augment_line(&a, &draw, &sums, scale);
}

/* The pixels first, first + step, ... before `end`. */
DEVICE void stretch(const augment &a, const struct augment_draw &draw, const struct augment_line &line,
                    const uint8_t *image, uint32_t first, uint32_t step, uint32_t end, float *out) {
    const uint32_t columns = (uint32_t)a.columns;
    for (uint32_t p = first; p < end; p += step) {
        const int row = (int)(p / columns), column = (int)(p % columns);
        const bool cut = row >= draw.cut_top && row < draw.cut_bottom && column >= draw.cut_left &&
                         column < draw.cut_right;
        for (int c = 0; c < a.channels; c++) {
            const uint8_t byte = pixel(a, draw, image, row, column, c);
            out[p * (uint32_t)a.channels + (uint32_t)c] =
                cut ? 0.0f : augment_value(byte, line.slope, line.offset[c]);
        }
    }
}

/* A block has an image, or `part` pixels of one that need not be measured. */
template <class Indices, class Keys>
KERNEL augment_images(augment a, CONSTANT Indices indices, CONSTANT Keys keys, const uint8_t *images,
                      float scale, int measured, uint32_t part, float *out) {
    const uint32_t pixels = (uint32_t)a.rows * (uint32_t)a.columns, parts = (pixels + part - 1) / part;
    TEAMS(team, (size_t)indices.count * parts, BLOCK) {
        const uint32_t i = (uint32_t)team / parts, begin = (uint32_t)team % parts * part;
        const uint32_t end = begin + part < pixels ? begin + part : pixels;
        const uint8_t *image = image_of(a, indices, i, images);
        float *to = out + (size_t)i * pixels * (uint32_t)a.channels;
        const struct augment_draw draw = draw_of(a, keys, i);
        SHARED(struct augment_line, line, 1);
        each<crop_sums, BLOCK> sums;
        ALONE(t, BLOCK) {
            const crop_sums none = {{0, 0, 0, 0}, 0};
            sums[t] = none;
            if (measured) sums[t] = sums_of(a, draw, image, t, BLOCK);
        }
        if (measured) team_fold<add_crops>(sums);
        FIRST(t, BLOCK) {
            line[0] = line_of(a, draw, sums[t], scale);
            if (begin == 0) bring(indices, i);
        }
        EVERY(t, BLOCK) stretch(a, draw, line[0], image, begin + t, BLOCK, end, to);
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
                        const uint8_t *images, float scale, int measured, float *out) {
    const uint32_t pixels = (uint32_t)a.rows * (uint32_t)a.columns, part = measured ? pixels : 4 * BLOCK;
    const size_t parts = (pixels + part - 1) / part;
    return LAUNCH_TEAMS(stream, (size_t)indices.count * parts, BLOCK, (augment_images<Indices, Keys>), a,
                        indices, keys, images, scale, measured, part, out);
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
                           float *out) {
    return augment_all(stream, *a, *indices, *keys, images, scale, measured, out);
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
                                  const uint8_t *images, float scale, int measured, float *out) {
    return augment_all(stream, *a, *picks, *picks, images, scale, measured, out);
}

cudaError_t launch_mix(cudaStream_t stream, const struct augment *a, const struct gpu_mixes *mixes,
                       const float *rows, float *out) {
    const size_t floats = (size_t)a->rows * a->columns * a->channels;
    return LAUNCH(stream, (size_t)mixes->count * floats, mix_rows, *a, *mixes, rows, out);
}
