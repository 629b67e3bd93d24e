/* Scales pictures, one axis at a time, by weighted means of neighbours. A row of the picture is scaled to
 * its new width when an output row needs it, so the memory needed is one row, not one picture. */
#include "picture.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"

/* One axis: position i of the new grid is the sum of weight[i][k] * old[first[i] + k], k < count[i]. */
struct axis {
    int taps;      /* most that there are a position */
    int *first;    /* [positions] owned */
    int *count;    /* [positions] owned */
    float *weight; /* [positions][taps] owned */
};

static void axis_close(struct axis *axis) {
    memory_free(axis->first);
    memory_free(axis->count);
    memory_free(axis->weight);
}

static int axis_open(struct axis *axis, int from, int to, struct error *error) {
    const double scale = (double)from / to, reach = scale > 1 ? scale : 1;
    *axis = (struct axis){.taps = 2 * (int)ceil(reach) + 1};
    RETURN_IF(memory_array(&axis->first, to, "places of pixels", error));
    RETURN_IF(memory_array(&axis->count, to, "numbers of pixels", error));
    RETURN_IF(memory_array(&axis->weight, (size_t)to * (size_t)axis->taps, "weights of pixels", error));
    for (int i = 0; i < to; i++) {
        const double middle = (i + 0.5) * scale - 0.5;
        const int begin = (int)fmax(0, ceil(middle - reach)),
                  end = (int)fmin(from - 1, floor(middle + reach));
        double sum = 0;
        for (int p = begin; p <= end; p++) sum += 1 - fabs(p - middle) / reach;
        for (int p = begin; p <= end; p++)
            axis->weight[(size_t)i * (size_t)axis->taps + (size_t)(p - begin)] =
                (float)((1 - fabs(p - middle) / reach) / sum);
        axis->first[i] = begin;
        axis->count[i] = end - begin + 1;
    }
    return OK;
}

static const float *weights_of(const struct axis *axis, int position) {
    return axis->weight + (size_t)position * (size_t)axis->taps;
}

/* Adds `share` of a row of the picture, brought to `width` pixels, to out[width][channels]. */
static void add_row(const struct picture *picture, int row, const struct axis *across, int width, float share,
                    float *out) {
    const size_t channels = (size_t)picture->channels;
    const uint8_t *pixels = picture->pixels + (size_t)row * (size_t)picture->width * channels;
    for (int x = 0; x < width; x++) {
        const uint8_t *from = pixels + (size_t)across->first[x] * channels;
        const float *weight = weights_of(across, x);
        for (size_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int k = 0; k < across->count[x]; k++)
                sum += weight[k] * (float)from[(size_t)k * channels + c];
            out[(size_t)x * channels + c] += share * sum;
        }
    }
}

int picture_fit(const struct picture *picture, int height, int width, float *out, struct error *error) {
    struct axis across = {0}, down = {0};
    const size_t row_floats = (size_t)width * (size_t)picture->channels;
    int code = axis_open(&across, picture->width, width, error);
    if (code == OK) code = axis_open(&down, picture->height, height, error);
    if (code == OK) memset(out, 0, (size_t)height * row_floats * sizeof *out);
    for (int y = 0; y < height && code == OK; y++)
        for (int k = 0; k < down.count[y]; k++)
            if (weights_of(&down, y)[k] != 0)
                add_row(picture, down.first[y] + k, &across, width, weights_of(&down, y)[k],
                        out + (size_t)y * row_floats);
    axis_close(&across);
    axis_close(&down);
    return code;
}
