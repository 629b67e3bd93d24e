/* Scales pictures, one axis at a time, by weighted means of neighbours. The rows that make an output row are
 * added up first, each in one pass, and only their sum is scaled to the new width; so the memory needed is
 * one row, not one picture. */
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

/* Adds `share` of a row of the picture to sum[picture->width][channels]. */
static void add_row(const struct picture *picture, int row, float share, float *restrict sum) {
    const size_t numbers = (size_t)picture->width * (size_t)picture->channels;
    const uint8_t *restrict from = picture->pixels + (size_t)row * numbers;
    for (size_t i = 0; i < numbers; i++) sum[i] += share * (float)from[i];
}

/* out[width][channels] = a row of from[][channels], brought to that width. */
static void fit_row(const float *from, size_t channels, const struct axis *across, int width, float *out) {
    for (int x = 0; x < width; x++) {
        const float *weight = weights_of(across, x), *first = from + (size_t)across->first[x] * channels;
        for (size_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int k = 0; k < across->count[x]; k++) sum += weight[k] * first[(size_t)k * channels + c];
            out[(size_t)x * channels + c] = sum;
        }
    }
}

int picture_fit(const struct picture *picture, int height, int width, float *out, struct error *error) {
    struct axis across = {0}, down = {0};
    float *sum = NULL;
    const size_t channels = (size_t)picture->channels, numbers = (size_t)picture->width * channels;
    int code = axis_open(&across, picture->width, width, error);
    if (code == OK) code = axis_open(&down, picture->height, height, error);
    if (code == OK) code = memory_array(&sum, numbers, "a row of a picture", error);
    for (int y = 0; y < height && code == OK; y++) {
        memset(sum, 0, numbers * sizeof *sum);
        for (int k = 0; k < down.count[y]; k++)
            if (weights_of(&down, y)[k] != 0)
                add_row(picture, down.first[y] + k, weights_of(&down, y)[k], sum);
        fit_row(sum, channels, &across, width, out + (size_t)y * (size_t)width * channels);
    }
    memory_free(sum);
    axis_close(&across);
    axis_close(&down);
    return code;
}
