/* Kernels: arithmetic of the store on slices of flat vectors. */
#include "kernels.h"
#include "launch.h"
#include "optimizers.h" /* generated: the formulas, and OPTIMIZERS(ROW) */

namespace {

/* An optimizer's formula as a type, so that each has a kernel of its own. */
#define FORMULA(number, name)                                                                                \
    struct by_##name {                                                                                       \
        enum { moments = name##_moments };                                                                   \
        UPDATE_INLINE float weight(const update *u, float w, float g, float *moment) {                       \
            return name##_weight(u, w, update_decayed(g, w, u->decay), moment);                              \
        }                                                                                                    \
    };
OPTIMIZERS(FORMULA)

/* Where no weight is trained. */
struct by_nothing {
    enum { moments = 0 };
    UPDATE_INLINE float weight(const update *, float w, float, float *) { return w; }
};

/* Weight i before it is shrunk. Statistics and frozen weights have moments, too, which stay as they are. */
template <class Formula>
DEVICE float stepped(const update &own, const gpu_step &slice, size_t i, float w, float g) {
    if (own.rule < 0) return own.rule == UPDATE_SUBTRACT ? w - g : w;
    float moment[Formula::moments + 1];
    for (int m = 0; m < Formula::moments; m++) moment[m] = slice.moments[m][i];
    const float after = Formula::weight(&own, w, g, moment);
    for (int m = 0; m < Formula::moments; m++) slice.moments[m][i] = moment[m];
    return after;
}

/* 4 bytes read and 4 written of the weights and of each moment and average, 4 read of the gradient. */
template <class Formula>
KERNEL step(CONSTANT update all, CONSTANT gpu_windows windows, CONSTANT gpu_step slice, size_t floats) {
    EACH(n, floats) {
        int w = 0;
        while (n >= windows.window[w].until) w++;
        const size_t i = n + windows.window[w].ahead;
        update own = all;
        own.rule = windows.window[w].rule;
        own.rate = windows.window[w].rate;
        own.decay = windows.window[w].decay;
        own.weight_decay = windows.window[w].weight_decay;
        const float before = slice.weights[i], gradient = slice.gradient[i];
        if (!isfinite(gradient)) {
            *slice.refused = 1;
            continue;
        }
        const float after = update_shrunk(&own, stepped<Formula>(own, slice, i, before, gradient), before);
        if (slice.atomic)
            atomicAdd(&slice.weights[i], after - before);
        else
            slice.weights[i] = after;
        if (slice.average) slice.average[i] = update_average(slice.average[i], after, own.towards);
        if (slice.witness && n == floats - 1) {
            if (slice.atomic)
                atomicAdd(slice.witness, 1.0);
            else
                *slice.witness += 1.0;
        }
    }
}

KERNEL mean_of(CONSTANT gpu_mean mean, size_t floats, float *out) {
    EACH(i, floats) {
        const float first = mean.weight[0] * mean.values[0][i];
        float sum = mean.more ? out[i] + first : first;
        for (int k = 1; k < mean.count; k++) sum += mean.weight[k] * mean.values[k][i];
        out[i] = mean.factor * sum;
    }
}

struct add_up {
    DEVICE double of(double a, double b) { return a + b; }
};
enum { UNIT_SHARE = 8 * BLOCK }; /* floats of a block */

/* parts[k]: of the values 256 k + t + 256 chunks n, by thread t of block k. */
KERNEL squares(const float *values, size_t floats, double *parts, size_t chunks) {
    TEAMS(k, chunks, BLOCK) {
        each<double, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0;
            UNROLL(4)
            for (size_t i = k * BLOCK + t; i < floats; i += chunks * BLOCK)
                sum[t] += (double)values[i] * (double)values[i];
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK)
        if (t == 0) parts[k] = sum[t];
    }
}

KERNEL scale(float *values, size_t floats, float factor) {
    EACH(i, floats) values[i] *= factor;
}

/* Every block adds up the parts, in the same order, and divides its share of the values. */
KERNEL unit(float *values, size_t floats, const double *parts, size_t chunks) {
    TEAMS(k, (floats + UNIT_SHARE - 1) / UNIT_SHARE, BLOCK) {
        each<double, BLOCK> sum;
        ALONE(t, BLOCK) {
            sum[t] = 0.0;
            for (size_t i = t; i < chunks; i += BLOCK) sum[t] += parts[i];
        }
        team_fold<add_up>(sum);
        ALONE(t, BLOCK) {
            const float factor = (float)(1.0 / (sqrt(sum[t]) + 1e-7));
            const size_t begin = k * UNIT_SHARE,
                         end = begin + UNIT_SHARE < floats ? begin + UNIT_SHARE : floats;
            for (size_t i = begin + t; i < end; i += BLOCK) values[i] *= factor;
        }
    }
}

/* 12 bytes read and 4 written, and of the squares 4 of each. A gradient that is not finite stays so. */
KERNEL compensate(compensation by, const float *gradient, const float *weights, size_t at, size_t floats,
                  float *out) {
    EACH(i, floats) {
        const float g = gradient[i];
        float lambda = by.lambda;
        if (by.squares) {
            by.squares[at + i] = update_squares(by.squares[at + i], g, by.keep);
            lambda = update_adapted(lambda, by.squares[at + i], by.seen);
        }
        out[i] = update_compensated(g, weights[i], by.then[at + i], lambda);
    }
}

/* 8 bytes read and 8 written. */
KERNEL exchange(float *a, float *b, size_t floats, float rate) {
    EACH(i, floats) {
        const float moved = rate * (a[i] - b[i]);
        a[i] -= moved;
        b[i] += moved;
    }
}

} // namespace

cudaError_t launch_update(cudaStream_t stream, const struct update *update, const struct gpu_windows *windows,
                          const struct gpu_step *slice) {
    const size_t floats = windows->window[windows->count - 1].until;
    switch (update->rule) {
#define STEP(number, name)                                                                                   \
    case number:                                                                                             \
        return LAUNCH(stream, floats, step<by_##name>, *update, *windows, *slice, floats);
        OPTIMIZERS(STEP)
    case UPDATE_SUBTRACT:
    case UPDATE_NONE:
        return LAUNCH(stream, floats, step<by_nothing>, *update, *windows, *slice, floats);
    default:
        return cudaErrorInvalidValue;
    }
}
cudaError_t launch_mean(cudaStream_t stream, const struct gpu_mean *mean, size_t floats, float *out) {
    return LAUNCH(stream, floats, mean_of, *mean, floats, out);
}
cudaError_t launch_squares(cudaStream_t stream, const float *values, size_t floats, double *parts,
                           size_t chunks) {
    return LAUNCH_TEAMS(stream, chunks, BLOCK, squares, values, floats, parts, chunks);
}
cudaError_t launch_scale(cudaStream_t stream, float *values, size_t floats, float factor) {
    return LAUNCH(stream, floats, scale, values, floats, factor);
}
cudaError_t launch_unit(cudaStream_t stream, float *values, size_t floats, const double *parts,
                        size_t chunks) {
    return LAUNCH_TEAMS(stream, (floats + UNIT_SHARE - 1) / UNIT_SHARE, BLOCK, unit, values, floats, parts,
                        chunks);
}
cudaError_t launch_exchange(cudaStream_t stream, float *a, float *b, size_t floats, float rate) {
    return LAUNCH(stream, floats, exchange, a, b, floats, rate);
}
cudaError_t launch_compensate(cudaStream_t stream, const struct compensation *by, const float *gradient,
                              const float *weights, size_t at, size_t floats, float *out) {
    return LAUNCH(stream, floats, compensate, *by, gradient, weights, at, floats, out);
}
