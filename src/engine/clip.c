/* See clip.h. */
#include "clip.h"

#include <math.h>

/* What a statistic follows is no gradient, and stays unchanged; what is frozen has none. */
int gradient_clip(const struct layout *layout, const struct device *home, float *values, float most,
                  struct error *error) {
    const struct vectors *vectors = home->backend->vectors;
    double all = 0.0;
    for (int r = 0; r < layout->count; r++) {
        const struct range *range = &layout->ranges[r];
        double squares = 0.0;
        if (range->kind != RANGE_TRAINABLE) continue;
        RETURN_IF(vectors->squares(home, values + range->begin, range->floats, &squares, error));
        all += squares;
    }
    if (!(sqrt(all) > (double)most)) return OK;
    const float factor = (float)((double)most / sqrt(all));
    for (int r = 0; r < layout->count; r++) {
        const struct range *range = &layout->ranges[r];
        if (range->kind != RANGE_TRAINABLE) continue;
        RETURN_IF(vectors->scale(home, values + range->begin, range->floats, factor, error));
    }
    return home->backend->finish(home, error);
}
