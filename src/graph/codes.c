/* See codes.h. Rows are cut as columns of one number each, which Keras has a layer for (Cropping1D). */
#include "codes.h"

#include "rules.h"

enum { EXACT_MOST = 1 << 24 }; /* whole numbers that a float holds */

bool codes_equal(const struct codes *a, const struct codes *b) {
    if (a->columns == 0 || b->columns == 0) return a->columns == b->columns;
    return a->numbers == b->numbers && a->columns == b->columns && a->vocabulary == b->vocabulary &&
           a->units == b->units;
}

/* [batch, count] of them, from `first` on. */
static node part_of(struct graph *g, node rows, int first, int count) {
    return graph_slice(g, rows, (int[MAX_RANK]){0, first, 0}, SHAPE(-1, count, 1));
}

node codes_embed(struct graph *g, node x, const struct codes *codes) {
    const struct weights table = {.name = "categories", .kernel = {.kind = INITIAL_CODES}};
    const int all = codes->numbers + codes->columns;
    if (codes->vocabulary > EXACT_MOST) {
        graph_mistake(g, "found %d values in all columns of categories, expected at most %d",
                      codes->vocabulary, EXACT_MOST);
        return NONE;
    }
    if (codes->numbers == 0)
        return graph_flatten(g, graph_embedding_of(g, x, codes->vocabulary, codes->units, &table));
    const node rows = graph_reshape(g, x, SHAPE(-1, all, 1));
    const node numbers = graph_flatten(g, part_of(g, rows, 0, codes->numbers));
    const node values = part_of(g, rows, codes->numbers, codes->columns);
    const node learnt = graph_embedding_of(g, values, codes->vocabulary, codes->units, &table);
    const node parts[] = {numbers, graph_flatten(g, learnt)};
    return graph_concat(g, parts, 2, 1);
}
