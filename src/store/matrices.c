/* Steps of whole matrices. See matrices.h.
 *
 * The momentum's step M [rows, columns] becomes nearly orthogonal by the Newton-Schulz iteration of Muon:
 * X = M / |M|, then X <- a X + b (X X') X + c (X X')^2 X, a few times. All that is done to X from the left is
 * a polynomial of S = X X', the Gram matrix of the shorter side. So the iteration runs on S and on the
 * product Q of the polynomials, and the long side is met twice only: S = X X' in the beginning and Q X in the
 * end. For 384 x 2304 and three rounds that is 2.4 instead of 4.4 thousand million operations, with the same
 * values but for rounding.
 *
 * The two products of the long side are computed in the device's precision. Where that is bf16, S is still
 * the Gram matrix of a real matrix, X rounded, so it has no negative eigenvalue that the rounds could blow
 * up. The rounds themselves are in float32.
 *
 * Source: K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024, whose
 * coefficients these are. */
#include "matrices.h"

#include "../base/memory.h"
#include "../device/record.h"
#include "device_state.h"

enum product { GRAM, SQUARE, APPLY, PRODUCTS };
enum small { EYE, GRAM_NOW, POLYNOMIAL, QUOTIENT, FIRST, SECOND, SMALLS }; /* [side][side] each */

/* One product of one matrix: the kernel that makes it, and what that has prepared. */
struct made {
    struct problem problem;
    struct attributes attributes;
    const struct kernel *kernel;
    void *plan, *instance;
};

struct matrix {
    const struct range *range;
    int rows, columns, side; /* side: the shorter of the two */
    struct made made[PRODUCTS];
    float *eye; /* [side][side] on the device */
    struct device_recording recording;
    int steps; /* that it was recorded with */
};

struct matrix_room {
    struct device device; /* computes in float32 */
    struct device coarse; /* the same in its own precision: products of the long side */
    float *sum, *ahead;   /* [layout floats] the gradient; the momentum's step */
    float *small[SMALLS]; /* [longest side squared]; EYE is the matrix's own */
    void *length;         /* VECTORS_ROOM bytes */
    struct matrix *matrices;
    int count;
};

static bool is_candidate(const struct range *range) {
    const int last = range->shape.rank > 0 ? range->shape.dims[range->shape.rank - 1] : 1;
    return range->kind == RANGE_TRAINABLE && range->shape.rank >= 2 && last > 1 &&
           range->floats / (size_t)last > 1;
}

bool store_is_matrix(const struct store *store, const struct range *range) {
    const struct optimizer *optimizer = optimizer_of(store->settings.optimizer);
    const struct layout *layout = store->settings.layout;
    const struct range *last = NULL;
    if (!optimizer->matrix || !is_candidate(range)) return false;
    for (int i = 0; i < layout->count; i++)
        if (is_candidate(&layout->ranges[i])) last = &layout->ranges[i];
    return range != last || optimizer->matrix(choice_settings(store->settings.optimizer)).head;
}

/* --- a room opened and closed --- */

static void describe_product(struct matrix *matrix, enum product which, const struct device *device) {
    struct made *made = &matrix->made[which];
    const bool wide = matrix->rows == matrix->side; /* S = X X', Q X; else S = X' X, X Q */
    const struct shape whole = SHAPE(matrix->rows, matrix->columns),
                       small = SHAPE(matrix->side, matrix->side);
    made->problem = (struct problem){.op = OP_matmul,
                                     .attributes = &made->attributes,
                                     .inputs = 2,
                                     .device = device,
                                     .output.shape = small};
    made->problem.input[0].shape = made->problem.input[1].shape = which == GRAM ? whole : small;
    if (which == GRAM) {
        made->attributes.transpose_a = !wide;
        made->attributes.transpose_b = wide;
    } else if (which == APPLY) {
        made->problem.input[wide ? 1 : 0].shape = made->problem.output.shape = whole;
    }
}

static int open_product(struct made *made, struct error *error) {
    const struct device *device = made->problem.device;
    const struct kernel *const *kernel = device->backend->kernels(device, OP_matmul);
    int code = KERNEL_DECLINED;
    for (; *kernel && code == KERNEL_DECLINED; kernel++) {
        code = (*kernel)->prepare ? (*kernel)->prepare(&made->problem, &made->plan, error) : OK;
        made->kernel = *kernel;
    }
    if (code == KERNEL_DECLINED)
        return error_set(error, ERROR_DEVICE, "%s has no product for the steps of matrices", device->name);
    if (code != OK) made->kernel = NULL;
    if (code == OK && made->kernel->bind)
        code = made->kernel->bind(&made->problem, made->plan, &made->instance, error);
    return code;
}

static void close_product(const struct made *made) {
    if (made->instance) made->kernel->unbind(made->instance);
    if (made->plan && made->kernel && made->kernel->release) made->kernel->release(made->plan);
}

static int open_eye(struct matrix *matrix, const struct device *device, struct error *error) {
    const size_t side = (size_t)matrix->side;
    float *eye = NULL;
    RETURN_IF(device_array(device, &matrix->eye, side * side, "a unit matrix", error));
    RETURN_IF(memory_array(&eye, side * side, "a unit matrix", error));
    for (size_t i = 0; i < side; i++) eye[i * side + i] = 1.0f;
    const int code = device->backend->copy(device, matrix->eye, eye, side * side * sizeof *eye, error);
    memory_free(eye);
    return code;
}

static int open_matrix(struct matrix_room *room, const struct range *range, struct error *error) {
    struct matrix *matrix = &room->matrices[room->count++];
    const int columns = range->shape.dims[range->shape.rank - 1];
    const int rows = (int)(range->floats / (size_t)columns);
    *matrix = (struct matrix){
        .range = range, .rows = rows, .columns = columns, .side = rows < columns ? rows : columns};
    for (int p = 0; p < PRODUCTS; p++) {
        describe_product(matrix, (enum product)p, p == SQUARE ? &room->device : &room->coarse);
        RETURN_IF(open_product(&matrix->made[p], error));
    }
    return open_eye(matrix, &room->device, error);
}

static void close_room(struct matrix_room *room) {
    if (!room) return;
    const struct device *device = &room->device;
    for (int m = 0; m < room->count; m++) {
        for (int p = 0; p < PRODUCTS; p++) close_product(&room->matrices[m].made[p]);
        if (room->matrices[m].eye) device->backend->release(device, room->matrices[m].eye);
        device_forget(device, &room->matrices[m].recording);
    }
    for (int s = EYE + 1; s < SMALLS; s++)
        if (room->small[s]) device->backend->release(device, room->small[s]);
    if (room->sum) device->backend->release(device, room->sum);
    if (room->ahead) device->backend->release(device, room->ahead);
    if (room->length) device->backend->release(device, room->length);
    memory_free(room->matrices);
    memory_free(room);
}

/* For the matrices of [begin, end), on that device. */
static int open_room(const struct store *store, const struct device *device, size_t begin, size_t end,
                     struct matrix_room **out, struct error *error) {
    const struct layout *layout = store->settings.layout;
    size_t longest = 0;
    RETURN_IF(memory_array(out, 1, "room for steps of matrices", error));
    struct matrix_room *room = *out;
    room->device = room->coarse = *device;
    room->device.precision = PRECISION_FP32;
    RETURN_IF(memory_array(&room->matrices, layout->count, "matrices", error));
    RETURN_IF(device_array(device, &room->sum, layout->floats, "the gradients of matrices", error));
    RETURN_IF(device_array(device, &room->ahead, layout->floats, "the steps of matrices", error));
    RETURN_IF(
        device->backend->allocate(device, &room->length, VECTORS_ROOM, "the length of a matrix", error));
    for (int i = 0; i < layout->count; i++) {
        const struct range *range = &layout->ranges[i];
        if (range->begin < begin || range->begin >= end || !store_is_matrix(store, range)) continue;
        RETURN_IF(open_matrix(room, range, error));
        const size_t side = (size_t)room->matrices[room->count - 1].side;
        if (side > longest) longest = side;
    }
    for (int s = EYE + 1; s < SMALLS; s++)
        RETURN_IF(device_array(device, &room->small[s], longest * longest, "powers of a matrix", error));
    return OK;
}

/* A shard by bytes may begin or end within a matrix. */
static int check_whole(const struct shard *shard, struct error *error) {
    const struct store_settings *settings = &shard->store->settings;
    for (int i = 0; i < settings->layout->count; i++) {
        const struct range *range = &settings->layout->ranges[i];
        const size_t end = range->begin + range->floats;
        const bool meets = range->begin < shard->end && end > shard->begin;
        if (meets && (range->begin < shard->begin || end > shard->end) &&
            store_is_matrix(shard->store, range))
            return error_set(error, ERROR_USAGE,
                             "--optimizer=%s steps whole matrices, but %.64s is cut by the shards: expected "
                             "--shard-by=tensor, or fewer shards",
                             settings->optimizer->plugin->name, range->name);
    }
    return OK;
}

int store_open_matrices(struct store *store, struct error *error) {
    if (!optimizer_of(store->settings.optimizer)->matrix) return OK;
    for (int s = 0; s < store->settings.shards; s++) {
        struct shard *shard = &store->shards[s];
        RETURN_IF(check_whole(shard, error));
        RETURN_IF(open_room(store, shard->home->device, shard->begin, shard->end, &shard->matrices, error));
    }
    for (int w = 0; w < store->settings.roster->workers; w++)
        RETURN_IF(open_room(store, store_own_device(store, w), store->begin, store->end,
                            &store->workers[w].matrices, error));
    return OK;
}

void store_close_matrices(struct store *store) {
    for (int s = 0; store->shards && s < store->settings.shards; s++) close_room(store->shards[s].matrices);
    for (int w = 0; store->workers && w < store->settings.roster->workers; w++)
        close_room(store->workers[w].matrices);
}

/* --- a step --- */

static int multiply(const struct matrix *matrix, enum product which, const float *left, const float *right,
                    float *out, struct error *error) {
    const struct made *made = &matrix->made[which];
    const struct call call = {.problem = &made->problem,
                              .plan = made->plan,
                              .instance = made->instance,
                              .input = {left, right},
                              .output = out};
    return made->kernel->run(&call, error);
}

/* out = by one + with other; out may be one. */
static int blend(const struct matrix_room *room, size_t floats, float by, const float *one, float with,
                 const float *other, float *out, struct error *error) {
    const float *const values[] = {one, other};
    const float weight[] = {by, with};
    return room->device.backend->vectors->mean(&room->device, values, weight, 2, 0, floats, 1.0f, out, error);
}

/* Q, the product of the polynomials of `steps` rounds, from S, the Gram matrix. */
static int iterate(const struct matrix_room *room, const struct matrix *matrix, int steps,
                   struct error *error) {
    const float a = 3.4445f, b = -4.7750f, c = 2.0315f;
    const size_t floats = (size_t)matrix->side * (size_t)matrix->side;
    float *const gram = room->small[GRAM_NOW], *const p = room->small[POLYNOMIAL],
                 *const q = room->small[QUOTIENT], *const first = room->small[FIRST],
                 *const second = room->small[SECOND];
    for (int step = 0; step < steps; step++) {
        RETURN_IF(multiply(matrix, SQUARE, gram, gram, p, error));
        RETURN_IF(blend(room, floats, c, p, b, gram, p, error)); /* the polynomial, less a */
        if (step == 0) {
            RETURN_IF(blend(room, floats, a, matrix->eye, 1.0f, p, q, error));
        } else {
            RETURN_IF(multiply(matrix, SQUARE, p, q, first, error));
            RETURN_IF(blend(room, floats, a, q, 1.0f, first, q, error));
        }
        if (step + 1 == steps) break;
        RETURN_IF(multiply(matrix, SQUARE, p, gram, first, error)); /* S <- P S P */
        RETURN_IF(blend(room, floats, 1.0f, first, a, gram, first, error));
        RETURN_IF(multiply(matrix, SQUARE, p, first, second, error));
        RETURN_IF(blend(room, floats, a, first, 1.0f, second, gram, error));
    }
    return OK;
}

/* room->sum, at the matrix, = room->ahead made nearly orthogonal; 0 where that is 0. */
static int orthogonalize(const struct matrix_room *room, const struct matrix *matrix, int steps,
                         struct error *error) {
    const struct vectors *vectors = room->device.backend->vectors;
    const bool wide = matrix->rows == matrix->side;
    const float *const quotient = room->small[QUOTIENT];
    float *const x = room->ahead + matrix->range->begin, *const out = room->sum + matrix->range->begin;
    RETURN_IF(vectors->unit(&room->device, x, matrix->range->floats, room->length, error));
    RETURN_IF(multiply(matrix, GRAM, x, x, room->small[GRAM_NOW], error));
    RETURN_IF(iterate(room, matrix, steps, error));
    return multiply(matrix, APPLY, wide ? quotient : x, wide ? x : quotient, out, error);
}

/* The same, on a device that records: as one piece. */
struct orthogonal {
    const struct matrix_room *room;
    const struct matrix *matrix;
    int steps;
};

static int make_orthogonal(void *argument, struct error *error) {
    const struct orthogonal *it = argument;
    return orthogonalize(it->room, it->matrix, it->steps, error);
}

static struct matrix *find(const struct matrix_room *room, const struct range *range) {
    int m = 0;
    while (room->matrices[m].range != range) m++;
    return &room->matrices[m];
}

/* Longer for a matrix that widens, so that each of its outputs moves as far. */
static float stretch(const struct matrix *matrix) {
    return matrix->columns > matrix->rows ? sqrtf((float)matrix->columns / (float)matrix->rows) : 1.0f;
}

int matrix_step(struct matrix_room *room, const struct span *span, const struct matrix_rule *rule,
                const struct update *update, const struct update_slice *slice, struct error *error) {
    struct matrix *matrix = find(room, span->matrix);
    struct orthogonal it = {room, matrix, rule->steps};
    const struct device *device = &room->device;
    const struct vectors *vectors = device->backend->vectors;
    const float *const sum = room->sum, *const loss[] = {sum, slice->state->vector[0].at};
    const float decay[] = {1.0f, span->decay};
    struct state ahead = *slice->state;
    struct update_slice part = *slice;
    struct update now = *update;
    /* A server's thread, or a proxy's, has entered no device: a product would take all cores. */
    if (device->backend->enter) device->backend->enter(device);
    /* The gradient, with that of the L2 loss. */
    RETURN_IF(vectors->mean(device, slice->gradients, slice->weight, slice->count, span->begin, span->end,
                            1.0f, room->sum, error));
    if (span->decay > 0.0f)
        RETURN_IF(vectors->mean(device, loss, decay, 2, span->begin, span->end, 1.0f, room->sum, error));
    /* Where the momentum leads, in place of weights. */
    ahead.vector[0].at = room->ahead;
    part.state = &ahead;
    part.average = NULL;
    part.count = 1;
    part.gradients = &sum;
    part.weight = NULL;
    now.phase = UPDATE_LOOKS;
    now.decay = now.weight_decay = 0.0f;
    RETURN_IF(vectors->update(device, &now, &part, error));
    if (matrix->steps != rule->steps) device_forget(device, &matrix->recording);
    matrix->steps = rule->steps;
    RETURN_IF(device_replay(device, &matrix->recording, make_orthogonal, &it, error));
    part.state = slice->state;
    part.average = slice->average;
    now.phase = UPDATE_STEPS;
    now.rate = update->rate * stretch(matrix);
    now.weight_decay = update->weight_decay / stretch(matrix);
    return vectors->update(device, &now, &part, error);
}
