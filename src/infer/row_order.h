/* The order of a row's numbers in PyTorch's network of the same layers. There images have channels before
 * rows and columns, so a flattened image is a row in another order than here; what works on such a row number
 * by number keeps that order, up to the dense layer that ends it. */
#ifndef TRAINER_INFER_ROW_ORDER_H
#define TRAINER_INFER_ROW_ORDER_H

#include "layers_of.h"

/* channels: [of->count]; of each layer's value the channels that come first there: of an image, or of the
 * image that a row was, whose numbers are [places, channels] here and [channels, places] there. 1: the order
 * is the same. A weight that is an operand has those of what it is combined with; 0: none. Errors:
 * ERROR_FILE: a layer whose result has no such order, by its name: a concatenation of flattened images, a row
 * made an image, classes that were an image. */
int row_order(int *channels, const struct layers_of *of, struct error *error);

#endif
