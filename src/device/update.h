/* The optimizers' formulas for one weight, shared by the CPU and by device code (the common part of C and
 * C++). g is the gradient with decay already added; rate includes the range's multiplier. */
#ifndef TRAINER_DEVICE_UPDATE_H
#define TRAINER_DEVICE_UPDATE_H

#include <math.h>
#include <stddef.h>

#ifdef __CUDACC__
#    define UPDATE_INLINE static inline __host__ __device__
#else
#    define UPDATE_INLINE static inline
#endif

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

/* The gradient of the loss plus decay/2 |w|^2. */
UPDATE_INLINE float update_decayed(float g, float w, float decay) {
    return g + decay * w;
}

/* w -= rate g */
UPDATE_INLINE float update_sgd(float w, float g, float rate) {
    return w - rate * g;
}

/* v = momentum v + g; w -= rate v. Source: Polyak 1964, in the form of Sutskever et al. 2013 with the rate
 * outside. */
UPDATE_INLINE float update_momentum(float w, float *v, float g, float rate, float momentum) {
    *v = momentum * *v + g;
    return w - rate * *v;
}

/* The same, looking ahead: w -= rate (g + momentum v). */
UPDATE_INLINE float update_nesterov(float w, float *v, float g, float rate, float momentum) {
    *v = momentum * *v + g;
    return w - rate * (g + momentum * *v);
}

/* a += g^2; w -= rate g / (sqrt(a) + epsilon). Source: Duchi, Hazan and Singer 2011. */
UPDATE_INLINE float update_adagrad(float w, float *a, float g, float rate, float epsilon) {
    *a += g * g;
    return w - rate * g / (sqrtf(*a) + epsilon);
}

/* Source: Kingma and Ba 2015, algorithm 1. unbias1 = 1/(1-beta1^t), unbias2 = 1/(1-beta2^t). */
UPDATE_INLINE float update_adam(float w, float *m, float *v, float g, float rate, float beta1, float beta2,
                                float epsilon, float unbias1, float unbias2) {
    *m = beta1 * *m + (1.0f - beta1) * g;
    *v = beta2 * *v + (1.0f - beta2) * (g * g);
    return w - rate * (*m * unbias1) / (sqrtf(*v * unbias2) + epsilon);
}

/* Which of these formulas a step is made with, and its constants: what a device other than the CPU is told.
 * The CPU's optimizers call the formulas themselves; that both agree is tested for every optimizer. */
enum update_rule {
    UPDATE_NONE,     /* frozen weights: only their average moves */
    UPDATE_SUBTRACT, /* statistics: w -= g */
    UPDATE_SGD,
    UPDATE_MOMENTUM, /* a: momentum */
    UPDATE_NESTEROV, /* a: momentum */
    UPDATE_ADAGRAD,  /* a: epsilon */
    UPDATE_ADAM      /* a, b: beta1, beta2; c: epsilon; unbias1, unbias2 */
};

struct update {
    enum update_rule rule;
    float rate, decay;
    float a, b, c, unbias1, unbias2;
    float towards; /* of update_average */
};

/* A window of vectors that lie in one device's memory. */
struct update_window {
    size_t floats;
    float *weights;        /* [floats] */
    const float *gradient; /* [floats] */
    float *moments[2];     /* [floats] each, or NULL */
    float *average;        /* [floats], or NULL */
    double *witness;       /* one number; NULL: none */
    int atomic;            /* 1: the weights are changed by atomic additions */
};

/* The weight after the step; moments are changed in place. m0 and m1 may be any address where the rule has no
 * such moment. */
UPDATE_INLINE float update_weight(const struct update *u, float w, float g, float *m0, float *m1) {
    if (u->rule == UPDATE_NONE) return w;
    if (u->rule == UPDATE_SUBTRACT) return w - g;
    g = update_decayed(g, w, u->decay);
    switch (u->rule) {
    case UPDATE_MOMENTUM:
        return update_momentum(w, m0, g, u->rate, u->a);
    case UPDATE_NESTEROV:
        return update_nesterov(w, m0, g, u->rate, u->a);
    case UPDATE_ADAGRAD:
        return update_adagrad(w, m0, g, u->rate, u->a);
    case UPDATE_ADAM:
        return update_adam(w, m0, m1, g, u->rate, u->a, u->b, u->c, u->unbias1, u->unbias2);
    default:
        return update_sgd(w, g, u->rate);
    }
}

#endif
