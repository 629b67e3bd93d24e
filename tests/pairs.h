/* Shapes of two operands that broadcast against each other: for every test of elementwise operations. */
#ifndef TRAINER_TESTS_PAIRS_H
#define TRAINER_TESTS_PAIRS_H

#include "../src/graph/shape.h"

static const struct {
    struct shape a, b;
} pairs[] = {
    {{0}, {0}},
    {{1, {1}}, {0}},
    {{1, {17}}, {1, {17}}},
    {{2, {7, 3}}, {1, {3}}},
    {{1, {3}}, {2, {7, 3}}},
    {{2, {7, 17}}, {2, {7, 1}}},
    {{2, {7, 1}}, {2, {1, 17}}},
    {{2, {1, 17}}, {2, {17, 1}}},
    {{3, {3, 7, 17}}, {0}},
    {{0}, {3, {3, 7, 17}}},
    {{3, {3, 1, 17}}, {3, {1, 7, 1}}},
    {{4, {2, 1, 3, 1}}, {3, {7, 1, 17}}},
    {{4, {3, 2, 7, 1}}, {4, {1, 1, 7, 5}}},
    {{6, {2, 1, 2, 1, 2, 3}}, {6, {1, 3, 1, 2, 1, 3}}},
};

#endif
