/* For the tests of graphs and programs: a device with the reference kernels and nothing else, whose memory is
 * full of rubbish to begin with, and a session that compiles, feeds, runs and reads. One test program
 * includes it once. */
#ifndef TRAINER_TESTS_REFERENCE_DEVICE_H
#define TRAINER_TESTS_REFERENCE_DEVICE_H

#include <math.h>
#include <string.h>
#include "../src/base/memory.h"
#include "../src/base/rng.h"
#include "../src/cpu/reference.h"
#include "../src/program/program.h"
#include "check.h"

#define reference_source reference_copy /* rows of sources: never run */
static const struct kernel *const reference_kernels[OPS][2] = {
#define OP(name, inputs, shape, gradient, reference, ...) [OP_##name] = {&reference_##reference, NULL},
#include "../src/graph/ops.def"
};
#undef reference_source

static const struct kernel *const *kernels_of(const struct device *device, enum op op) {
    (void)device;
    return reference_kernels[op];
}

/* The contract says zeroed; a program must not depend on it. */
static int allocate_rubbish(const struct device *device, void **out, size_t bytes, const char *what,
                            struct error *error) {
    (void)device;
    RETURN_IF(memory_zeroed(out, bytes, 1, what, error));
    memset(*out, 0xFF, bytes);
    return OK;
}

static void release_memory(const struct device *device, void *block) {
    (void)device;
    memory_free(block);
}

static const struct backend reference_backend = {
    .name = "test", .kernels = kernels_of, .allocate = allocate_rubbish, .release = release_memory};
static const struct device reference_device = {.backend = &reference_backend, .name = "test:0", .threads = 1};

/* A compiled graph with one arena and slabs of its own. */
struct session {
    const struct graph *graph;
    struct program *program;
    struct arena *arena;
    float *weights, *gradients; /* [layout.floats] */
    struct error error;
};

static inline void session_open_on(struct session *s, const struct graph *g, const node *fetches, int count,
                                   const struct device *device) {
    *s = (struct session){.graph = g};
    if (program_compile(&s->program, g, fetches, count, device, &s->error) == OK &&
        arena_open(&s->arena, s->program, &s->error) == OK &&
        memory_zeroed((void **)&s->weights, g->layout.floats, sizeof(float), "weights", &s->error) == OK &&
        memory_zeroed((void **)&s->gradients, g->layout.floats, sizeof(float), "gradients", &s->error) == OK)
        layout_initialize(&g->layout, 1, s->weights);
    CHECK(s->error.code == OK, "%s", s->error.words);
}

static inline void session_open(struct session *s, const struct graph *g, const node *fetches, int count) {
    session_open_on(s, g, fetches, count, &reference_device);
}

static inline void session_close(struct session *s) {
    memory_free(s->gradients);
    memory_free(s->weights);
    arena_close(s->arena);
    program_close(s->program);
    *s = (struct session){0};
}

static inline void session_run(struct session *s) {
    if (s->error.code != OK) return;
    program_run(s->program, s->arena, s->weights, s->gradients, &s->error);
    CHECK(s->error.code == OK, "%s", s->error.words);
}

/* Feeds a placeholder; data holds its elements. */
static inline void session_feed(struct session *s, node n, const void *data) {
    if (s->error.code != OK) return;
    const struct node_info *info = &s->graph->nodes[n];
    void *to = arena_address(s->arena, n);
    CHECK(to != NULL, "placeholder %s has no address", info->name);
    if (to) memcpy(to, data, shape_count(&info->shape) * type_bytes(info->type));
}

/* Where a fetched value is after a run, whatever slab it is in. */
static inline const void *session_value(const struct session *s, node n) {
    const struct node_info *info = &s->graph->nodes[n];
    const void *at = s->arena ? arena_address(s->arena, n) : NULL;
    if (at || s->error.code != OK) return at;
    if (info->op == OP_constant) return info->constant;
    const bool variable = info->op == OP_variable || info->op == OP_assign || info->op == OP_assign_add;
    if (!variable && info->gradient_of < 0) return NULL;
    const int range = variable ? info->attributes.variable : info->gradient_of;
    return (variable ? s->weights : s->gradients) + s->graph->layout.ranges[range].begin;
}

/* Element i of a fetched float value; not a number when it is nowhere. */
static inline float session_float(const struct session *s, node n, size_t i) {
    const float *values = session_value(s, n);
    return values ? values[i] : NAN;
}

static inline int session_int(const struct session *s, node n, size_t i) {
    const int *values = session_value(s, n);
    return values ? values[i] : -12345;
}

/* Whole numbers from -4 to 4: sums and products of some of them are exact in float32. */
static inline void fill_whole(float *out, size_t count, uint64_t seed) {
    struct rng rng;
    rng_start(&rng, seed, 0);
    for (size_t i = 0; i < count; i++) out[i] = (float)((int)rng_below(&rng, 9) - 4);
}

static inline void fill_between(float *out, size_t count, uint64_t seed, float least, float most) {
    struct rng rng;
    rng_start(&rng, seed, 1);
    for (size_t i = 0; i < count; i++) out[i] = least + (most - least) * rng_uniform(&rng);
}

/* The value of a node that both fetched is the same, bit for bit. */
static inline void check_same(const struct session *a, const struct session *b, node n, const char *what) {
    const struct node_info *info = &a->graph->nodes[n];
    const void *left = session_value(a, n), *right = session_value(b, n);
    CHECK(left && right && memcmp(left, right, shape_count(&info->shape) * type_bytes(info->type)) == 0,
          "%s: node %d (%s) differs", what, n, op_name(info->op));
}

#endif
