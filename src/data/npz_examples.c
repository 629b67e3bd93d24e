/* See npz_examples.h. */
#include "npz_examples.h"

#include <limits.h>
#include <string.h>
#include "../base/finite.h"
#include "../base/memory.h"
#include "npz_targets.h"
#include "standardize.h"

/* How the numbers of x are kept. */
struct kept {
    bool bytes; /* as bytes; else as floats */
    float scale;
    int features;
};

static bool is_bytes(const struct npy *npy) {
    return npy->kind == 'u' && npy->item == 1;
}

static bool is_table(const struct npy *npy) {
    return npy->shape.rank <= 2;
}

static int check_pair(const struct npz_pair *pair, struct error *error) {
    const struct npy *x = &pair->x.npy, *y = &pair->y.npy;
    char text[100];
    if (x->count / (size_t)x->shape.dims[0] > INT_MAX)
        return error_set(error, ERROR_FILE, "%s: found %s, expected at most %d numbers per example", x->name,
                         npy_text(x, text, sizeof text), INT_MAX);
    if (x->shape.dims[0] == y->shape.dims[0]) return OK;
    return error_set(error, ERROR_FILE, "%s: found %d rows, expected %d, one for each example of %s", y->name,
                     y->shape.dims[0], x->shape.dims[0], x->name);
}

/* Whether examples of both parts are alike. */
static int check_alike(const struct npy *train, const struct npy *test, struct error *error) {
    struct shape expected = train->shape;
    char found[100], wanted[100];
    expected.dims[0] = test->shape.dims[0];
    if (shape_equal(&expected, &test->shape) && (is_table(train) || is_bytes(train) == is_bytes(test)))
        return OK;
    return error_set(error, ERROR_FILE, "%s: found %s, expected examples as in %s, %s", test->name,
                     npy_text(test, found, sizeof found), train->name,
                     npy_text(train, wanted, sizeof wanted));
}

/* Whether the array can be used where it lies; its numbers are then finite. */
static int check_in_place(bool *in_place, const struct npy *npy, const struct kept *kept,
                          struct error *error) {
    *in_place = kept->bytes || npy_is_plain_floats(npy);
    if (kept->bytes || !*in_place) return OK;
    if (all_finite((const float *)(const void *)npy->values, npy->count)) return OK;
    float number;
    for (size_t i = 0; i < npy->count; i++) RETURN_IF(npy_floats(npy, i, 1, &number, error)); /* its place */
    return OK;
}

/* *block = the rows in the order of their places: bytes or floats. */
static int copy_rows(void **block, const struct npz_rows *rows, const struct kept *kept,
                     struct error *error) {
    const size_t features = (size_t)kept->features, item = kept->bytes ? 1 : sizeof(float);
    RETURN_IF(memory_zeroed(block, (size_t)rows->count * features, item, rows->npy->name, error));
    uint8_t *out = *block;
    for (int i = 0; i < rows->count; i++, out += features * item) {
        const size_t from = (size_t)npz_row(rows, i) * features;
        if (kept->bytes)
            memcpy(out, rows->npy->values + from, features);
        else
            RETURN_IF(npy_floats(rows->npy, from, features, (float *)(void *)out, error));
    }
    return OK;
}

/* All rows of x: `values` is where they are from then on, *block what they are in, NULL: the file's bytes. */
static int keep_rows(const void **values, void **block, struct npz_array *x, const struct npz_rows *rows,
                     const struct kept *kept, struct error *error) {
    bool in_place;
    RETURN_IF(check_in_place(&in_place, &x->npy, kept, error));
    if (!in_place || rows->shuffled) {
        RETURN_IF(copy_rows(block, rows, kept, error));
        *values = *block;
        return OK;
    }
    *values = x->npy.values;
    *block = x->block;
    x->block = NULL; /* the data set owns it now */
    return OK;
}

static struct examples examples_of(const void *values, const struct npz_rows *rows, const struct kept *kept,
                                   const struct dataset *dataset, const void *labels) {
    const size_t first = rows->shuffled ? (size_t)rows->first * (size_t)kept->features : 0;
    struct examples examples = {.count = rows->count, .features = kept->features, .scale = kept->scale};
    dataset_label(dataset, &examples, labels);
    if (kept->bytes)
        examples.bytes = (const uint8_t *)values + first;
    else
        examples.floats = (const float *)values + first;
    return examples;
}

/* The floats are the data set's own: its blocks, or private pages of a file. */
static int standardize_both(struct dataset *dataset, struct error *error) {
    const int features = dataset->train.features;
    float *train = (float *)dataset->train.floats, *test = (float *)dataset->test.floats;
    RETURN_IF(memory_array(&dataset->mean, features, "means", error));
    RETURN_IF(memory_array(&dataset->deviation, features, "deviations", error));
    float *mean = dataset->mean, *deviation = dataset->deviation;
    standardize_measure(train, dataset->train.count, features, mean, deviation);
    standardize_apply(train, dataset->train.count, features, mean, deviation);
    standardize_apply(test, dataset->test.count, features, mean, deviation);
    return OK;
}

static struct shape shape_of_example(const struct npy *x) {
    struct shape shape = {.rank = x->shape.rank - 1};
    for (int d = 0; d < shape.rank; d++) shape.dims[d] = x->shape.dims[d + 1];
    return shape.rank == 0 ? SHAPE(1) : shape;
}

/* The rows of both parts, of x as of y. */
static int choose_rows(struct npz_rows *train, struct npz_rows *test, const struct npz_pair *pair,
                       const struct npz_pair *test_pair, const struct split *split, struct error *error) {
    const int rows = pair->x.npy.shape.dims[0];
    int tested;
    *train = (struct npz_rows){.npy = &pair->y.npy, .count = rows};
    if (test_pair) {
        *test = (struct npz_rows){.npy = &test_pair->y.npy, .count = test_pair->x.npy.shape.dims[0]};
        return OK;
    }
    RETURN_IF(split_test_rows(split, pair->x.npy.name, rows, &tested, error));
    train->shuffled = true;
    train->seed = split->seed;
    *test = *train;
    train->count = test->first = rows - tested;
    test->count = tested;
    return OK;
}

/* x of both parts; of a split one, the test rows lie behind the training rows. */
static int keep_both(struct dataset *dataset, struct npz_pair *pairs[2], const struct npz_rows *rows,
                     const struct kept *kept, struct error *error) {
    struct npz_rows all = {.npy = &pairs[0]->x.npy,
                           .shuffled = rows[0].shuffled,
                           .seed = rows[0].seed,
                           .count = pairs[0]->x.npy.shape.dims[0]};
    const void *values[2];
    RETURN_IF(keep_rows(&values[0], &dataset->blocks[0], &pairs[0]->x, &all, kept, error));
    values[1] = values[0];
    if (pairs[1]) {
        all = (struct npz_rows){.npy = &pairs[1]->x.npy, .count = rows[1].count};
        RETURN_IF(keep_rows(&values[1], &dataset->blocks[1], &pairs[1]->x, &all, kept, error));
    }
    dataset->train = examples_of(values[0], &rows[0], kept, dataset, dataset->blocks[2]);
    dataset->test = examples_of(values[1], &rows[1], kept, dataset, dataset->blocks[3]);
    return OK;
}

int npz_examples(struct dataset *dataset, struct npz_pair *train, struct npz_pair *test,
                 const struct split *split, bool standardize, struct error *error) {
    const struct npy *x = &train->x.npy;
    struct npz_rows rows[2];
    RETURN_IF(check_pair(train, error));
    if (test) RETURN_IF(check_pair(test, error));
    if (test) RETURN_IF(check_alike(x, &test->x.npy, error));
    RETURN_IF(choose_rows(&rows[0], &rows[1], train, test, split, error));
    RETURN_IF(npz_task(&dataset->task, &train->y.npy, error));
    RETURN_IF((dataset->task == TASK_CLASSES ? npz_labels : npz_targets)(
        dataset, &rows[0], &rows[1], &dataset->blocks[2], &dataset->blocks[3], error));
    const bool targets = standardize && dataset->task == TASK_VALUES;
    standardize = standardize && is_table(x);
    const bool bytes = is_bytes(x) && (!test || is_bytes(&test->x.npy)) && !standardize;
    const struct kept kept = {.bytes = bytes,
                              .scale = bytes && !is_table(x) ? 1.0f / 255.0f : 1.0f,
                              .features = (int)(x->count / (size_t)x->shape.dims[0])};
    dataset->shape = shape_of_example(x);
    RETURN_IF(keep_both(dataset, (struct npz_pair *[2]){train, test}, rows, &kept, error));
    if (targets) RETURN_IF(dataset_standardize_targets(dataset, error));
    return standardize ? standardize_both(dataset, error) : OK;
}
