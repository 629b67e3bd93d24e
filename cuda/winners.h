/* Private to the .cu files: the largest element of a window and where it is, of V channels at once. */
#ifndef TRAINER_CUDA_WINNERS_H
#define TRAINER_CUDA_WINNERS_H

#include "../src/device/formulas.h"
#include "narrow.h"

namespace {

/* The first largest of a window in each of V channels: its value, and where in the window it is, counted row
 * by row in the whole window, also in what of it is beside the image. */
template <int V> struct winners {
    float value[V];
    int which[V];
};
template <class T, int V> DEVICE void take_larger(winners<V> *best, const pack<T, V> &elements, int here) {
    UNROLL(8)
    for (int v = 0; v < V; v++) {
        const float one = widen(elements.at[v]);
        best->which[v] = one > best->value[v] ? here : best->which[v];
        best->value[v] = formula_largest(best->value[v], one);
    }
}
template <class T, int V> DEVICE winners<V> begin_with(const pack<T, V> &elements, int here) {
    winners<V> best;
    UNROLL(8)
    for (int v = 0; v < V; v++) {
        best.which[v] = here;
        best.value[v] = widen(elements.at[v]);
    }
    return best;
}
template <int V> DEVICE int which_of(const winners<V> &best, int v) {
    return best.which[v];
}
template <class T, int V> DEVICE pack<T, V> values_of(const winners<V> &best) {
    pack<T, V> values;
    UNROLL(8)
    for (int v = 0; v < V; v++) put(&values.at[v], best.value[v]);
    return values;
}

/* The same two channels at a time, of bf16 and windows of less than 2^16 elements. */
template <int V> struct winners_in_pairs { uint32_t value[V / 2], which[V / 2]; };
template <int V> DEVICE void take_larger(winners_in_pairs<V> *best, const pack<bf16, V> &elements, int here) {
    uint32_t one[V / 2];
    memcpy(one, &elements, sizeof one);
    UNROLL(4)
    for (int p = 0; p < V / 2; p++) {
        const uint32_t larger = halves_greater(one[p], best->value[p]);
        best->which[p] = (best->which[p] & ~larger) | ((uint32_t)here * 0x10001u & larger);
        best->value[p] = (best->value[p] & ~larger) | (one[p] & larger);
    }
}
template <int V> DEVICE int which_of(const winners_in_pairs<V> &best, int v) {
    return (int)half_of(best.which[v / 2], v % 2);
}
template <class T, int V> DEVICE pack<T, V> values_of(const winners_in_pairs<V> &best) {
    pack<T, V> values;
    memcpy(&values, best.value, sizeof values);
    return values;
}

/* What to begin with where the window is small. */
template <int V> DEVICE winners<V> begin_small(const pack<float, V> &elements, int here) {
    return begin_with(elements, here);
}
template <int V> DEVICE winners_in_pairs<V> begin_small(const pack<bf16, V> &elements, int here) {
    winners_in_pairs<V> best;
    memcpy(best.value, &elements, sizeof best.value);
    UNROLL(4)
    for (int p = 0; p < V / 2; p++) best.which[p] = (uint32_t)here * 0x10001u;
    return best;
}

} // namespace

#endif
