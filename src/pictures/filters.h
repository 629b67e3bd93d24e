/* What the first layer of a network looks for: its weights as pictures, one for each of its units. */
#ifndef TRAINER_PICTURES_FILTERS_H
#define TRAINER_PICTURES_FILTERS_H

#include "../graph/graph.h"
#include "sheet.h"

/* The kernel of a convolution [rows, columns, channels, units], or that of a dense layer on images of `seen`,
 * {height, width, channels}. weights: [layout floats]. At most `count` of the units are shown. Weights of
 * three channels are colours around grey; those of one are blue where they are negative, white where they are
 * 0, red where they are positive, or, without colours, greys. Errors: ERROR_USAGE: the network does not begin
 * with such a layer. */
int filters_sheet(struct sheet *sheet, const struct graph *graph, const float *weights, const int seen[3],
                  int count, bool in_colours, struct error *error);

/* *width = the columns of each of these pictures. Errors: the same. */
int filters_width(int *width, const struct graph *graph, const int seen[3], struct error *error);

#endif
