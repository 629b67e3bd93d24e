/* Images of a batch mixed with the ones that come next: mixup and cutmix (see ../device/augment.h). */
#include <string.h>
#include "cpu.h"

static void mix_all(float share, size_t floats, const float *restrict own, const float *restrict other,
                    float *restrict out) {
    for (size_t i = 0; i < floats; i++) out[i] = augment_mixed(share, own[i], other[i]);
}

static void mix_box(const struct augment *a, const struct augment_mix *mix, const float *own,
                    const float *other, float *out) {
    const size_t pixel = (size_t)a->channels, row = (size_t)a->columns * pixel;
    const size_t first = (size_t)mix->left * pixel, floats = (size_t)(mix->right - mix->left) * pixel;
    memcpy(out, own, (size_t)a->rows * row * sizeof *out);
    for (size_t y = (size_t)mix->top; y < (size_t)mix->bottom; y++)
        memcpy(out + y * row + first, other + y * row + first, floats * sizeof *out);
}

int cpu_mix(const struct device *device, const struct augment *augment, const struct augment_mix *mix,
            int count, const float *rows, float *out, struct error *error) {
    (void)device, (void)error;
    const size_t floats = (size_t)augment->rows * (size_t)augment->columns * (size_t)augment->channels;
    for (int i = 0; i < count; i++, rows += floats, out += floats)
        if (mix[i].boxed)
            mix_box(augment, &mix[i], rows, rows + floats, out);
        else
            mix_all(mix[i].share, floats, rows, rows + floats, out);
    return OK;
}
