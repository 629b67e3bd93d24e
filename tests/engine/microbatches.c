/* Micro-batches: loss and gradient of a batch in M parts are, bit for bit, those of M replicas' steps of such
 * a part each, added by hand in their order and divided; with dropout, statistics, mixed examples and in
 * every input buffer, on every kind of device. Without what depends on the batch they are those of the whole
 * batch, as far as rounding allows. */
#include "../sides.h"

/* What a batch in M parts is to give, from a replica of a part. */
static int add_by_hand(struct side *one, int microbatches, long number, float *loss, float *sum,
                       struct error *error) {
    const int part = BATCH / microbatches;
    double losses = 0.0;
    for (int m = 0; m < microbatches; m++) {
        const struct indices indices = {
            .count = part, .index = index_of + m * part, .key = key_of + m * part};
        RETURN_IF(run_side(one, 0, number * microbatches + m, &indices, loss, error));
        losses += (double)*loss;
        for (size_t k = 0; k < one->network.graph.layout.floats; k++)
            sum[k] = m == 0 ? one->gradient[k] : sum[k] + one->gradient[k];
    }
    *loss = (float)(losses / microbatches);
    for (size_t k = 0; k < one->network.graph.layout.floats && microbatches > 1; k++)
        sum[k] *= 1.0f / (float)microbatches;
    return OK;
}

static double furthest(const float *one, const float *other, size_t floats) {
    double most = 0.0;
    for (size_t k = 0; k < floats; k++) most = fmax(most, fabs((double)one[k] - (double)other[k]));
    return most;
}

/* Several steps, through all input buffers. exact: else rounding may differ, as the parts are not those that
 * are added. */
static int compare(struct side *parts, struct side *other, int microbatches, bool exact, const char *name,
                   struct error *error) {
    const size_t floats = parts->network.graph.layout.floats;
    const struct indices indices = {.count = BATCH, .index = index_of, .key = key_of};
    float *sum = NULL, loss = 0.0f, expected = 0.0f;
    RETURN_IF(memory_array(&sum, floats, "a sum", error));
    int code = OK;
    for (int step = 0; step < STEPS && code == OK; step++) {
        draw_batch(step);
        code = run_side(parts, step % BUFFERS, step, &indices, &loss, error);
        if (code == OK) code = add_by_hand(other, exact ? microbatches : 1, step, &expected, sum, error);
        if (code != OK) break;
        const double off = furthest(parts->gradient, sum, floats);
        if (exact) {
            CHECK(memcmp(&loss, &expected, sizeof loss) == 0, "%s, %d parts, step %d: loss %g, expected %g",
                  name, microbatches, step, (double)loss, (double)expected);
            CHECK(memcmp(parts->gradient, sum, floats * sizeof *sum) == 0,
                  "%s, %d parts, step %d: the gradient is %g off", name, microbatches, step, off);
        } else {
            CHECK(fabsf(loss - expected) < 1e-5f && off < 1e-5 && off >= 0.0,
                  "%s, %d parts, step %d: loss %g, expected %g; the gradient is %g off", name, microbatches,
                  step, (double)loss, (double)expected, off);
        }
        CHECK(loss > 0.5f && furthest(sum, parts->weights, floats) > 1e-3, "%s: nothing is learnt", name);
    }
    memory_free(sum);
    return code;
}

static void check(const struct device *device, const char *layers, const struct examples *examples,
                  int microbatches, bool exact) {
    struct error error = {0};
    struct side parts, other;
    const int part = BATCH / microbatches;
    int code = open_side(&parts, device, NULL, layers, examples, microbatches, part, &error);
    const int also = open_side(&other, device, NULL, layers, examples, 1, exact ? part : BATCH, &error);
    if (code == OK && also == OK) code = compare(&parts, &other, microbatches, exact, device->name, &error);
    CHECK(code == OK && also == OK, "%s: %s", device->name, error.words);
    close_side(&other);
    close_side(&parts);
}

static void check_device(const struct device *device) {
    static const char plain[] = "layers:conv 3 3x3 same relu; maxpool 2; flatten; dense 7 tanh; dense";
    static const char drawn[] =
        "layers:conv 3 3x3 same; batch_norm; relu; flatten; dense 9 relu; dropout 0.4; dense";
    static const int counts[] = {1, 2, 3, 6, 12};
    const struct examples usual = side_examples(false), mixed = side_examples(true);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        check(device, drawn, &usual, counts[i], true);
        check(device, drawn, &mixed, counts[i], true);
        check(device, plain, &usual, counts[i], false);
    }
}

int main(void) {
    for (const struct backend *const *backend = backends; *backend; backend++) {
        struct error error = {0};
        struct device *devices = NULL;
        int count = 0;
        bool shared = false;
        char name[16];
        if ((*backend)->count() == 0) continue;
        snprintf(name, sizeof name, "%s:0", (*backend)->name);
        const struct device_settings settings = {.threads = 1, .reference_only = true, .deterministic = true};
        CHECK(devices_open(name, &settings, &devices, &count, &shared, &error) == OK, "%s", error.words);
        if (count > 0) check_device(&devices[0]);
        devices_close(devices, count);
    }
    return check_end();
}
