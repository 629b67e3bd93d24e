/* Networks as text: one layer per line, or between semicolons.
 *
 *     # two branches that are added
 *     a = conv 16 3x3 same he no_bias
 *     batch_norm relu
 *     conv 16 3x3 same
 *     add a relu
 *     dense
 *
 * A line has a name and '=' if other layers refer to it, the layer, its settings as words or key=value, the
 * names of its inputs (without: the line before), and an activation as its last word. `input` is what the
 * network is given, `previous` the line before; add and concat with one name take the line before, too. The
 * first line may say of what shape an example is: `input 28x28x1`. */
#ifndef TRAINER_GRAPH_LAYERS_TEXT_H
#define TRAINER_GRAPH_LAYERS_TEXT_H

#include "layers.h"

/* Makes text[bytes] a list that layers_check accepts. `where` is the file or option that it is from, for the
 * words: "WHERE: line 2, column 7: ...". Errors: `code`. */
int layers_parse(struct layer_list *list, const char *where, const char *text, size_t bytes, int code,
                 struct error *error);

/* Writes the list so that layers_parse makes the same of it, `separator` ("; ", "\n") between its layers:
 * only what is not the default, everything in one order. */
void layers_write(const struct layer_list *list, const char *separator, struct text *text);

/* Layer i alone, as layers_write has it. */
void layers_write_one(const struct layer_list *list, int i, struct text *text);

#endif
