/* The layout of the model's flat vector: a list of ranges with attributes. Everything that distributes the
 * vector sees only [begin, end).
 *
 * Ranges follow each other in the order in which the model made its variables; each starts on a cache
 * line, so every weight matrix is aligned for the kernels and no two ranges share a line. The floats
 * between are padding: always zero, never a parameter. */
#ifndef TRAINER_GRAPH_LAYOUT_H
#define TRAINER_GRAPH_LAYOUT_H

#include <stddef.h>
#include <stdint.h>
#include "../base/error.h"
#include "shape.h"

enum range_kind {
    RANGE_TRAINABLE, /* its gradient is followed by the optimizer */
    RANGE_STATISTIC, /* its "gradient" is (1-m)(old - batch value); the rule is w -= g, whatever the optimizer
                      */
    RANGE_FROZEN,    /* never changes in training */
};

enum initial_kind {
    INITIAL_ZERO,
    INITIAL_CONSTANT,
    INITIAL_NORMAL,
    INITIAL_TRUNCATED_NORMAL,
    INITIAL_GLOROT_UNIFORM,
    INITIAL_HE_NORMAL, /* deviation sqrt(2 / inputs of an output); He et al. 2015, for ReLU */
    INITIAL_CODES,     /* [rows, units]: Glorot uniform, but row 0 is 0 */
    INITIAL_PASSING,   /* of a convolution: output i passes on input i while there is one; the others are
                        * normal, of length 1 on average */
    INITIAL_COSINES,   /* of a convolution: the orthonormal cosines of window and inputs, the smoothest first,
                        * then the same with the other sign; zeros where there are no more */
};

struct initial {
    enum initial_kind kind;
    float value;         /* constant: the value; normal, truncated normal: the standard deviation */
    const float *values; /* if not NULL: these values, whatever the kind; [floats], borrowed */
};

struct range {
    char name[64]; /* "dense1/kernel" */
    struct shape shape;
    size_t begin, floats; /* in the flat vector; begin is a multiple of LINE_FLOATS */
    enum range_kind kind;
    float decay; /* L2: decay * w is added to the gradient */
    float rate_multiplier;
    struct initial initial;
};

struct layout {
    struct range *ranges; /* [count] */
    int count;
    size_t floats;     /* of the flat vector, padding included; a multiple of LINE_FLOATS */
    size_t parameters; /* without padding: what people call the number of parameters */
};

/* Fills weights[layout->floats] with initial values; depends on seed and range number only. */
void layout_initialize(const struct layout *layout, uint64_t seed, float *weights);

/* The range of that name, or NULL. */
const struct range *layout_find(const struct layout *layout, const char *name);

/* Whether one of the patterns, "conv*,norm1", with commas between them, is the name of a range or of its
 * layer
 * ("conv1" of "conv1/kernel"), with * for anything, ? for a character, [ab] for one of these. */
bool layout_matches(const char *patterns, const char *name);

/* Whether each pattern matches a range, and a range that is trained is left. Errors: ERROR_USAGE, which begin
 * with `what`. */
int layout_check_patterns(const struct layout *layout, const char *what, const char *patterns,
                          struct error *error);

/* A hash of names, shapes and kinds: equal exactly when two layouts can exchange vectors. */
uint64_t layout_hash(const struct layout *layout);

#endif
