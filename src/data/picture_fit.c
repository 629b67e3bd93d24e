/* Cuts and scales pictures, one axis at a time, by weighted means of neighbours. The rows that make an output
 * row are added up first, each in one pass, and only their sum is scaled to the new width; so the memory
 * needed is one row, not one picture. */
#include "picture.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"

/* One axis: position i of the new grid is the sum of weight[i][k] * old[low + first[i] + k], k < count[i]. */
struct axis {
    int low, from; /* the first pixel of the part, and how many pixels it has or cuts */
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

/* Of pixel p for a place: the triangle's, for as much of the pixel as lies within [cut, cut + length). */
static double weight_of(int p, double middle, double reach, double cut, double length) {
    const double within = fmin(p + 1, cut + length) - fmax(p, cut);
    return within * (1 - fabs(p - middle) / reach);
}

/* From the part [begin, begin + length) of so many pixels. */
static int axis_open(struct axis *axis, double begin, double length, int pixels, int to,
                     struct error *error) {
    const double scale = length / to, reach = scale > 1 ? scale : 1, low = floor(begin), cut = begin - low;
    *axis = (struct axis){.low = (int)low,
                          .from = (int)(fmin(ceil(begin + length), pixels) - low),
                          .taps = 2 * (int)ceil(reach) + 1};
    RETURN_IF(memory_array(&axis->first, to, "places of pixels", error));
    RETURN_IF(memory_array(&axis->count, to, "numbers of pixels", error));
    RETURN_IF(memory_array(&axis->weight, (size_t)to * (size_t)axis->taps, "weights of pixels", error));
    for (int i = 0; i < to; i++) {
        const double middle = (i + 0.5) * scale - 0.5 + cut;
        const int first = (int)fmax(0, ceil(middle - reach)),
                  last = (int)fmin(axis->from - 1, floor(middle + reach));
        double sum = 0;
        for (int p = first; p <= last; p++) sum += weight_of(p, middle, reach, cut, length);
        for (int p = first; p <= last; p++)
            axis->weight[(size_t)i * (size_t)axis->taps + (size_t)(p - first)] =
                (float)(weight_of(p, middle, reach, cut, length) / sum);
        axis->first[i] = first;
        axis->count[i] = last - first + 1;
    }
    return OK;
}

static const float *weights_of(const struct axis *axis, int position) {
    return axis->weight + (size_t)position * (size_t)axis->taps;
}

/* Adds `share` of so many numbers to sum[numbers]. */
static void add_row(const uint8_t *restrict from, size_t numbers, float share, float *restrict sum) {
    for (size_t i = 0; i < numbers; i++) sum[i] += share * (float)from[i];
}

/* out[width][channels] = a row of from[][channels], brought to that width. */
static inline void fit_row_of(const float *restrict from, size_t channels, const struct axis *across,
                              int width, float *restrict out) {
    for (int x = 0; x < width; x++) {
        const float *weight = weights_of(across, x), *first = from + (size_t)across->first[x] * channels;
        float sum[3] = {0};
        for (int k = 0; k < across->count[x]; k++)
            for (size_t c = 0; c < channels; c++) sum[c] += weight[k] * first[(size_t)k * channels + c];
        for (size_t c = 0; c < channels; c++) out[(size_t)x * channels + c] = sum[c];
    }
}

/* A number that the compiler knows makes it twice as fast. */
static void fit_row(const float *from, size_t channels, const struct axis *across, int width, float *out) {
    if (channels == 3)
        fit_row_of(from, 3, across, width, out);
    else
        fit_row_of(from, 1, across, width, out);
}

/* out[width][channels] = row y of the new grid; sum: room for a row of the part. */
static void make_row(const struct picture *picture, const struct axis *down, const struct axis *across, int y,
                     int width, float *sum, float *out) {
    const size_t channels = (size_t)picture->channels, numbers = (size_t)across->from * channels,
                 stride = (size_t)picture->width * channels;
    const uint8_t *from =
        picture->pixels + (size_t)(down->low + down->first[y]) * stride + (size_t)across->low * channels;
    memset(sum, 0, numbers * sizeof *sum);
    for (int k = 0; k < down->count[y]; k++, from += stride)
        if (weights_of(down, y)[k] != 0) add_row(from, numbers, weights_of(down, y)[k], sum);
    fit_row(sum, channels, across, width, out);
}

struct picture_part picture_middle(int height, int width, int down, int across) {
    const long tall = (long)height * across, wide = (long)width * down;
    int rows = height, columns = width;
    if (wide > tall)
        columns = (int)((tall + down / 2) / down);
    else
        rows = (int)((wide + across / 2) / across);
    if (columns < 1) columns = 1;
    if (rows < 1) rows = 1;
    const int top = (height - rows) / 2, left = (width - columns) / 2;
    return (struct picture_part){top, left, rows, columns};
}

int picture_fit(const struct picture *picture, const struct picture_part *part, int height, int width,
                float *out, struct error *error) {
    struct axis across = {0}, down = {0};
    float *sum = NULL;
    const size_t channels = (size_t)picture->channels;
    int code = axis_open(&across, part->left, part->width, picture->width, width, error);
    if (code == OK) code = axis_open(&down, part->top, part->height, picture->height, height, error);
    if (code == OK) code = memory_array(&sum, (size_t)across.from * channels, "a row of a picture", error);
    for (int y = 0; y < height && code == OK; y++)
        make_row(picture, &down, &across, y, width, sum, out + (size_t)y * (size_t)width * channels);
    memory_free(sum);
    axis_close(&across);
    axis_close(&down);
    return code;
}
