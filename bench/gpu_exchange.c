/* Times what an exchange costs when the shards live on a GPU: pull and push of a model of AlexNet's size
 * (4.27 MB), beside the bandwidth of the GPU's own copies and of the link to pinned host memory.
 *
 *   bench/gpu_exchange [STEPS [FLOATS [LARGE [DEVICE]]]]      200, 1068298, 67108864 floats, gpu:0 unless
 * given
 *
 * All goes through the slots that the store uses: a pull is backend.copy, which waits; a push is
 * vectors.update, w -= rate * g, and the wait for it. Bandwidth is that of copies of LARGE floats, the better
 * of backend.copy and of vectors.mean of a single vector, which is a copy, too, but only queued. Bytes are
 * counted as memcpy's are: as many read as written; a push reads two vectors and writes one, which is one and
 * a half. Small vectors may stay in a GPU's cache, and then be faster than its memory. Times are medians of
 * STEPS; of what is queued STEPS times in a row, with one wait at the end, the mean. Exit code 4 where there
 * is no GPU. */
#include <stdio.h>
#include <stdlib.h>

#include "../src/device/device.h"
#include "../src/store/optimizer.h"

enum { STEPS_MOST = 10000, WARM = 5 };

struct exchange {
    struct world *world;
    struct device *devices; /* one */
    struct choice optimizer;
    int count, steps;
    size_t floats, large;
    float *weights, *replica, *gradient; /* [large] on the GPU; gradient [floats] */
    float *host;                         /* [large] pinned host memory */
    double seconds[STEPS_MOST];
};

typedef int exchange_work(struct exchange *x, size_t floats, struct error *error);

static int copy(struct exchange *x, float *out, const float *in, size_t floats, struct error *error) {
    return x->devices->backend->copy(x->devices, out, in, floats * sizeof *out, error);
}
static int pull(struct exchange *x, size_t floats, struct error *error) {
    return copy(x, x->replica, x->weights, floats, error);
}
static int send_weights(struct exchange *x, size_t floats, struct error *error) {
    return copy(x, x->replica, x->host, floats, error);
}
static int fetch_gradient(struct exchange *x, size_t floats, struct error *error) {
    return copy(x, x->host, x->replica, floats, error);
}
static int queue_copy(struct exchange *x, size_t floats, struct error *error) {
    const float *const one[] = {x->weights};
    return x->devices->backend->vectors->mean(x->devices, one, NULL, 1, 0, floats, 1.0f, x->replica, error);
}
static int queue_step(struct exchange *x, size_t floats, struct error *error) {
    struct update update = optimizer_update(&x->optimizer, 1);
    update.rate = 0.01f;
    const struct state state = {.count = 1, .vector = {{"", x->weights}}};
    const float *const gradient = x->gradient;
    const struct update_slice slice = {.end = floats, .state = &state, .count = 1, .gradients = &gradient};
    return x->devices->backend->vectors->update(x->devices, &update, &slice, error);
}
static int push(struct exchange *x, size_t floats, struct error *error) {
    RETURN_IF(queue_step(x, floats, error));
    return x->devices->backend->finish(x->devices, error);
}
static int queue_both(struct exchange *x, size_t floats, struct error *error) {
    RETURN_IF(queue_copy(x, floats, error));
    return queue_step(x, floats, error);
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of work that waits for its own end. */
static int time_waited(struct exchange *x, exchange_work *work, size_t floats, double *out,
                       struct error *error) {
    for (int i = -WARM; i < x->steps; i++) {
        const double begin = world_now(x->world);
        RETURN_IF(work(x, floats, error));
        if (i >= 0) x->seconds[i] = world_now(x->world) - begin;
    }
    qsort(x->seconds, (size_t)x->steps, sizeof *x->seconds, ascending);
    *out = x->seconds[x->steps / 2];
    return OK;
}

/* Mean seconds of work that is only queued. */
static int time_queued(struct exchange *x, exchange_work *work, size_t floats, double *out,
                       struct error *error) {
    for (int i = 0; i < WARM; i++) RETURN_IF(work(x, floats, error));
    RETURN_IF(x->devices->backend->finish(x->devices, error));
    const double begin = world_now(x->world);
    for (int i = 0; i < x->steps; i++) RETURN_IF(work(x, floats, error));
    RETURN_IF(x->devices->backend->finish(x->devices, error));
    *out = (world_now(x->world) - begin) / x->steps;
    return OK;
}

/* Returns bytes a second; `of`: those that it is a share of, 0: of none. */
static double print_row(const char *what, double bytes, double seconds, double of) {
    const double speed = bytes / seconds;
    printf("| %s | %.2f | %.1f | %.1f |", what, bytes / 1e6, 1e6 * seconds, speed / 1e9);
    if (of > 0.0) printf(" %.0f %%", 100.0 * speed / of);
    printf(" |\n");
    return speed;
}

static int run(struct exchange *x, struct error *error) {
    const double small = (double)x->floats * sizeof(float), large = (double)x->large * sizeof(float);
    double waited, queued, pulled, pushed;
    printf("| on one GPU | MB | us | GB/s | of its copies |\n|---|---|---|---|---|\n");
    RETURN_IF(time_waited(x, pull, x->large, &waited, error));
    RETURN_IF(time_queued(x, queue_copy, x->large, &queued, error));
    const double by_copy = print_row("copy, waited for", large, waited, 0.0),
                 by_mean = print_row("copy, queued", large, queued, 0.0),
                 own = by_copy > by_mean ? by_copy : by_mean;
    RETURN_IF(time_waited(x, pull, x->floats, &pulled, error));
    RETURN_IF(time_waited(x, push, x->floats, &pushed, error));
    RETURN_IF(time_queued(x, queue_both, x->floats, &queued, error));
    print_row("pull, waited for", small, pulled, own);
    print_row("push, waited for", 1.5 * small, pushed, own);
    print_row("pull + push, each waited for", 2.5 * small, pulled + pushed, own);
    print_row("pull + push, queued", 2.5 * small, queued, own);

    printf("\n| pinned host memory | MB | us | GB/s | of the link |\n|---|---|---|---|---|\n");
    RETURN_IF(time_waited(x, send_weights, x->large, &waited, error));
    const double there = print_row("to the GPU", large, waited, 0.0);
    RETURN_IF(time_waited(x, fetch_gradient, x->large, &waited, error));
    const double back = print_row("from the GPU", large, waited, 0.0);
    RETURN_IF(time_waited(x, send_weights, x->floats, &pulled, error));
    RETURN_IF(time_waited(x, fetch_gradient, x->floats, &pushed, error));
    print_row("pull", small, pulled, there);
    print_row("push", small, pushed, back);
    print_row("pull + push", 2.0 * small, pulled + pushed, 2.0 / (1.0 / there + 1.0 / back));
    return OK;
}

static int open_exchange(struct exchange *x, const char *device, struct error *error) {
    const struct device_settings settings = {0};
    bool shared;
    RETURN_IF(plugin_choose(&x->optimizer, &optimizer_kind, "sgd", error));
    RETURN_IF(world_open_threads(&x->world, error));
    RETURN_IF(devices_open(device, &settings, &x->devices, &x->count, &shared, error));
    const struct device *gpu = x->devices;
    const struct backend *backend = gpu->backend;
    if (!backend->own_memory)
        return error_set(error, ERROR_DEVICE, "%s has no memory of its own; expected a GPU", gpu->name);
    backend->enter(gpu);
    const size_t bytes = x->large * sizeof(float);
    RETURN_IF(backend->allocate(gpu, (void **)&x->weights, bytes, "weights", error));
    RETURN_IF(backend->allocate(gpu, (void **)&x->replica, bytes, "a replica", error));
    RETURN_IF(backend->allocate(gpu, (void **)&x->gradient, x->floats * sizeof(float), "a gradient", error));
    return backend->allocate_host(gpu, (void **)&x->host, bytes, "pinned memory", error);
}

static void close_exchange(struct exchange *x) {
    if (x->weights) x->devices->backend->release(x->devices, x->weights);
    if (x->replica) x->devices->backend->release(x->devices, x->replica);
    if (x->gradient) x->devices->backend->release(x->devices, x->gradient);
    if (x->host) x->devices->backend->release_host(x->devices, x->host);
    devices_close(x->devices, x->count);
    world_close(x->world);
}

int main(int count, char **arguments) {
    static struct exchange x;
    struct error error = {0};
    x.steps = count > 1 ? atoi(arguments[1]) : 200;
    x.floats = count > 2 ? strtoul(arguments[2], NULL, 10) : 1068298;
    x.large = count > 3 ? strtoul(arguments[3], NULL, 10) : (size_t)1 << 26;
    if (x.steps < 1 || x.steps > STEPS_MOST || x.floats < 1 || x.large < x.floats) {
        fprintf(stderr,
                "usage: gpu_exchange [STEPS [FLOATS [LARGE [DEVICE]]]], up to %d steps, LARGE >= FLOATS\n",
                STEPS_MOST);
        return ERROR_USAGE;
    }
    int code = open_exchange(&x, count > 4 ? arguments[4] : "gpu:0", &error);
    if (code == OK) code = run(&x, &error);
    close_exchange(&x);
    if (code != OK) fprintf(stderr, "gpu_exchange: %s\n", error.words);
    return code;
}
