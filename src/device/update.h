/* A step of the weights: what the optimizers' formulas (src/store/optimizers) have in common, and the
 * description of a step that a backend gets. The common part of C and C++, shared by the processor's code
 * and by device code. */
#ifndef TRAINER_DEVICE_UPDATE_H
#define TRAINER_DEVICE_UPDATE_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __CUDACC__
#    define UPDATE_INLINE static inline __host__ __device__
#else
#    define UPDATE_INLINE static inline
#endif

/* The most that an optimizer can ask for: vectors of state, and numbers that its formula is given. */
enum { UPDATE_MOMENTS = 6, UPDATE_CONSTANTS = 8 };

/* Which formula steps a slice: one of these, or the place of an optimizer in its table. */
enum {
    UPDATE_NONE = -2,    /* frozen weights: only their average moves */
    UPDATE_SUBTRACT = -1 /* statistics: w -= g */
};

/* Of an optimizer that steps whole matrices, what its formula does to a weight. */
enum update_phase {
    UPDATE_ALONE, /* the step of a weight that is in no matrix; of all other optimizers, the only phase */
    UPDATE_LOOKS, /* what the formula returns is to become a step, of which more is to be made */
    UPDATE_STEPS  /* what has become of it is the gradient now */
};

struct update {
    int rule;
    enum update_phase phase;
    int moments;        /* vectors of state that the formula has */
    float rate, decay;  /* learning rate, with the range's multiplier; decay * w is added to the gradient */
    float weight_decay; /* rate * weight_decay * w is taken off the weight, beside the formula's step */
    float constant[UPDATE_CONSTANTS]; /* the formula's own */
    float towards;                    /* of update_average */
    /* The formula over a slice in the host's memory: weights[floats] and moments[moments][floats], with
     * gradient[floats], which overlaps none of them. NULL unless rule >= 0. */
    void (*step)(const struct update *update, size_t floats, float *weights, float *const *moments,
                 const float *gradient);
};

/* What a step changes: named vectors of the layout's floats each, all in one memory. */
enum { STATE_VECTORS = 1 + UPDATE_MOMENTS + 2 };
struct state {
    int count;
    struct {
        const char *name;    /* "", the weights; then the optimizer's, as it names them; then "average", where
                                there is a moving average of the weights */
        float *at;           /* [layout floats] */
    } vector[STATE_VECTORS]; /* room for one that is kept with them, too: store.h */
};

/* The vector of that name; NULL: there is none. */
static inline float *state_find(const struct state *state, const char *name) {
    for (int v = 0; v < state->count; v++)
        if (strcmp(state->vector[v].name, name) == 0) return state->vector[v].at;
    return NULL;
}

/* What makes up for the age of a gradient that was computed on `then`: it becomes g + l g g (w - then), where
 * l is lambda, or lambda over the root of a moving mean of the squares of gradients. Source: Zheng et al.,
 * "Asynchronous stochastic gradient descent with delay compensation", ICML 2017, whose outer product is cut
 * down to its diagonal so. Their mean begins with 0, and its root is far too small at first; here it is
 * divided by what it has seen, as Adam divides its own. */
#define UPDATE_LEAST_SQUARE 1e-7f
struct compensation {
    float lambda;
    float keep;        /* what is left of the squares at each update */
    float seen;        /* 1 - keep^n, at update n */
    size_t begin;      /* in the layout, of the first float of both: */
    const float *then; /* [slice floats] */
    float *squares;    /* [slice floats] NULL: lambda stays */
};

struct world;

/* The slice [begin, end) of a state and the gradients that it is stepped with, all in one memory. */
struct update_slice {
    size_t begin, end;
    const struct state *state;
    float *average;                /* the state's, or NULL */
    int count;                     /* of gradients, 1 or more */
    const float *const *gradients; /* [count][layout floats] */
    const float *weight; /* [count] of each gradient in the sum that is the step's, added in this order; NULL:
                            one gradient, as it is */
    float *mean;         /* [layout floats] for that sum, on a device with memory of its own; else NULL */
    const struct compensation *compensation; /* of one gradient, where weights are trained; NULL: none */
    /* Others may step the same slice meanwhile; then there is one gradient. */
    int racy;
    int atomic;          /* 1: the weights are changed by atomic additions */
    double *witness;     /* one number, to which the last line's step adds 1; NULL: none */
    struct world *world; /* of the calling thread */
};

/* A part of a slice, stepped with numbers of its own in the place of the update's. */
enum { UPDATE_WINDOWS = 64 };
struct update_window {
    size_t begin, end;
    int rule; /* the update's, UPDATE_SUBTRACT or UPDATE_NONE */
    float rate, decay, weight_decay;
};

/* The moving average of the weights after update n (1 for the first): its decay is small at first, so that
 * the first weights are soon forgotten. Source: TensorFlow's ExponentialMovingAverage with num_updates. What
 * is returned is one minus the decay. */
UPDATE_INLINE float update_average_rate(double decay, long n) {
    const double early = (1.0 + (double)n) / (10.0 + (double)n);
    return (float)(1.0 - (decay < early ? decay : early));
}

/* a = decay a + (1 - decay) w, in a form that leaves an average of equal weights alone. */
UPDATE_INLINE float update_average(float a, float w, float rate) {
    return a + rate * (w - a);
}

/* The weight after a step, w before it, with decoupled decay. Source: Loshchilov and Hutter, "Decoupled
 * weight decay regularization", 2019. */
UPDATE_INLINE float update_shrunk(const struct update *u, float after, float w) {
    return after - u->rate * u->weight_decay * w;
}

/* The squares after one more gradient. */
UPDATE_INLINE float update_squares(float m, float g, float keep) {
    return keep * m + (1.0f - keep) * g * g;
}

/* lambda over the root of their mean. */
UPDATE_INLINE float update_adapted(float lambda, float squares, float seen) {
    return lambda / sqrtf(squares / seen + UPDATE_LEAST_SQUARE);
}

UPDATE_INLINE float update_compensated(float g, float w, float then, float lambda) {
    return g + lambda * g * g * (w - then);
}

/* The gradient of the loss plus decay/2 |w|^2. */
UPDATE_INLINE float update_decayed(float g, float w, float decay) {
    return g + decay * w;
}

#endif
