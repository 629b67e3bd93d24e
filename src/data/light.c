/* Means over pixels. See light.h. */
#include "light.h"

#include <math.h>
#include "../device/gather.h"

enum { SAMPLE = 1000, WHITE = 255 };

/* A border that is hardly lighter or darker than the whole says nothing of figure and ground. */
#define LEAST_CONTRAST 0.05

/* The side of a square of that many pixels, or 0. */
static int side_of(int pixels) {
    const int side = (int)lround(sqrt(pixels));
    return side * side == pixels ? side : 0;
}

bool light_size(int size[3], const struct shape *shape, const struct augment *augment) {
    const int grey = side_of(shape->dims[0]),
              colour = shape->dims[0] % 3 == 0 ? side_of(shape->dims[0] / 3) : 0;
    size[0] = shape->rank == 1 ? (grey ? grey : colour) : shape->dims[0];
    size[1] = shape->rank == 1 ? size[0] : shape->dims[1];
    size[2] = shape->rank == 1 ? (grey ? 1 : 3) : shape->rank == 2 ? 1 : shape->dims[2];
    if (augment->height > 0) {
        size[0] = augment->height;
        size[1] = augment->width;
        size[2] = augment->channels;
    }
    return shape->rank <= 3 && size[0] > 0 && (size[2] == 1 || size[2] == 3);
}

struct light light_measure(const int size[3], int pictures, light_number *number, const void *self) {
    double whole = 0.0, border = 0.0;
    long all = 0, outermost = 0;
    for (int p = 0; p < pictures; p++)
        for (int at = 0; at < size[0] * size[1] * size[2]; at++) {
            const int pixel = at / size[2], row = pixel / size[1], column = pixel % size[1];
            const double light = number(self, p, at);
            whole += light;
            all++;
            if (row > 0 && row < size[0] - 1 && column > 0 && column < size[1] - 1) continue;
            border += light;
            outermost++;
        }
    if (all == 0) return (struct light){(double)NAN, (double)NAN};
    return (struct light){whole / (double)all, border / (double)outermost};
}

/* --- a data set --- */

struct sample {
    const struct dataset *dataset;
    int numbers, step; /* of a picture; between two pictures */
};

static double number_of(const void *self, int picture, int at) {
    const struct sample *sample = self;
    const struct dataset *dataset = sample->dataset;
    const struct examples *train = &dataset->train;
    const size_t place = (size_t)picture * (size_t)sample->step * (size_t)sample->numbers + (size_t)at;
    if (train->bytes) return (double)train->bytes[place] * (double)train->scale;
    const double given = (double)train->floats[place];
    const bool moved = dataset->mean && dataset->deviation;
    return (moved ? given * (double)dataset->deviation[at] + (double)dataset->mean[at] : given) / WHITE;
}

int light_of_dataset(struct light *light, const struct dataset *dataset, struct error *error) {
    const struct augment *augment = &dataset->test.augment;
    const int count = dataset->train.count, step = count > SAMPLE ? count / SAMPLE : 1;
    int size[3];
    *light = (struct light){(double)NAN, (double)NAN};
    if (dataset->feature_names || augment->whitened || !light_size(size, &dataset->shape, augment)) return OK;
    const struct sample sample = {dataset, size[0] * size[1] * size[2], step};
    const int pictures = count / step < SAMPLE ? count / step : SAMPLE;
    for (int p = 0; p < pictures; p++) RETURN_IF(examples_use_one(&dataset->train, p * step, error));
    *light = light_measure(size, pictures, number_of, &sample);
    return OK;
}

/* --- the other way round --- */

bool light_reversed(const struct light *picture, const struct light *dataset) {
    const double own = dataset->whole - dataset->border, seen = picture->whole - picture->border;
    if (!(fabs(own) >= LEAST_CONTRAST)) return false; /* NAN, too */
    const bool other_ground = (picture->border - 0.5) * (dataset->border - 0.5) < 0.0;
    return other_ground && seen * own < 0.0 && fabs(seen) > fabs(own) / 4.0;
}
