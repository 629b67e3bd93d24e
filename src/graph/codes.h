/* Rows of numbers of which the last ones are codes: whole numbers that stand for values of columns of texts.
 * All columns share one table of learnt numbers, a row for each of their values; row 0 is of what none of
 * them has, stays 0, and is nobody's in training. */
#ifndef TRAINER_GRAPH_CODES_H
#define TRAINER_GRAPH_CODES_H

#include "graph.h"

struct codes {
    int numbers;    /* of a row, before its codes */
    int columns;    /* codes of a row; 0: it has none, and the rest means nothing */
    int vocabulary; /* codes that there are: 0, then those of each column after those of the one before */
    int units;      /* learnt numbers that each becomes */
};

bool codes_equal(const struct codes *a, const struct codes *b);

/* x [batch, numbers + columns]: its numbers, then what its codes become, rows of a new variable
 * "categories/kernel" [vocabulary, units]: -> [batch, numbers + columns * units]. Another code is an error of
 * the run (ERROR_FILE). */
node codes_embed(struct graph *g, node x, const struct codes *codes);

#endif
