/* See filters.h. */
#include "filters.h"

#include <math.h>
#include <string.h>

#include "../base/text.h"

enum { FULL = 3 }; /* root mean squares of the weights: a weight of so many has the full colour */

struct filters {
    const struct range *range;
    const float *kernel; /* [rows][columns][channels][units] */
    int rows, columns, channels, units;
};

/* The first operation that has weights tells. */
static const struct range *first_kernel(const struct graph *graph) {
    for (int n = 0; n < graph->count; n++) {
        const struct node_info *info = &graph->nodes[n];
        if (info->op != OP_conv2d && info->op != OP_matmul) continue;
        const struct node_info *kernel = &graph->nodes[info->input[1]];
        return kernel->op == OP_variable ? &graph->layout.ranges[kernel->attributes.variable] : NULL;
    }
    return NULL;
}

static int find(struct filters *filters, const struct graph *graph, const int seen[3], struct error *error) {
    const struct range *range = first_kernel(graph);
    char text[64];
    if (!range) return error_set(error, ERROR_USAGE, "filters: the network begins with no layer of weights");
    const int *dims = range->shape.dims;
    *filters = (struct filters){.range = range};
    if (range->shape.rank == 4) {
        filters->rows = dims[0];
        filters->columns = dims[1];
        filters->channels = dims[2];
        filters->units = dims[3];
    } else if (range->shape.rank == 2 && dims[0] == seen[0] * seen[1] * seen[2]) {
        filters->rows = seen[0];
        filters->columns = seen[1];
        filters->channels = seen[2];
        filters->units = dims[1];
    }
    if (filters->units > 0 && (filters->channels == 1 || filters->channels == 3)) return OK;
    return error_set(error, ERROR_USAGE,
                     "filters: the weights of the first layer, %s %s, are not images of one or three colours",
                     range->name, shape_text(&range->shape, text, sizeof text));
}

static double full_of(const struct filters *filters) {
    double squares = 0.0;
    for (size_t i = 0; i < filters->range->floats; i++)
        squares += (double)filters->kernel[i] * (double)filters->kernel[i];
    return squares > 0.0 ? FULL * sqrt(squares / (double)filters->range->floats) : 1.0;
}

/* share: -1 to 1. Blue, white, red: told apart by those who see no green, too. */
static struct colour diverging(double share) {
    static const struct colour ends[] = {{33, 102, 172}, {178, 24, 43}};
    const struct colour end = ends[share > 0.0];
    const double white = 1.0 - fabs(share);
    return (struct colour){(uint8_t)lrint(end.red + white * (255 - end.red)),
                           (uint8_t)lrint(end.green + white * (255 - end.green)),
                           (uint8_t)lrint(end.blue + white * (255 - end.blue))};
}

static double share_of(const struct filters *filters, int pixel, int channel, int unit, double full) {
    const size_t row = (size_t)pixel * (size_t)filters->channels + (size_t)channel;
    const double weight = (double)filters->kernel[row * (size_t)filters->units + (size_t)unit];
    return fmin(fmax(weight / full, -1.0), 1.0);
}

static int draw(struct canvas *out, const struct filters *filters, int unit, bool diverges, double full,
                struct error *error) {
    RETURN_IF(canvas_open(out, filters->columns, filters->rows, (struct colour){0}, error));
    for (int i = 0; i < filters->rows * filters->columns; i++) {
        double share[3]; /* of red, green and blue */
        for (int c = 0; c < 3; c++)
            share[c] = share_of(filters, i, filters->channels == 3 ? c : 0, unit, full);
        out->pixels[i] = diverges ? diverging(share[0])
                                  : (struct colour){(uint8_t)lrint(127.5 + 127.5 * share[0]),
                                                    (uint8_t)lrint(127.5 + 127.5 * share[1]),
                                                    (uint8_t)lrint(127.5 + 127.5 * share[2])};
    }
    return OK;
}

static void write_title(struct sheet *sheet, const struct filters *filters, bool diverges, double full) {
    struct text title = text_into(sheet->title, sizeof sheet->title);
    const char *name = filters->range->name;
    text_add(&title, "%.*s: ", (int)strcspn(name, "/"), name);
    if (sheet->count < filters->units) text_add(&title, "%d of ", sheet->count);
    text_add(&title, "%d filters of %dx%d. ", filters->units, filters->rows, filters->columns);
    if (diverges)
        text_add(&title, "Blue: negative, white: 0, red: positive; full colour: %.2g", full);
    else
        text_add(&title, "Grey: 0, black: -%.2g, white: %.2g", full, full);
}

int filters_sheet(struct sheet *sheet, const struct graph *graph, const float *weights, const int seen[3],
                  int count, bool in_colours, struct error *error) {
    struct filters filters = {0};
    RETURN_IF(find(&filters, graph, seen, error));
    filters.kernel = weights + filters.range->begin;
    const double full = full_of(&filters);
    const bool diverges = filters.channels == 1 && in_colours;
    RETURN_IF(sheet_open(sheet, count < filters.units ? count : filters.units, error));
    for (int i = 0; i < sheet->count; i++)
        RETURN_IF(draw(&sheet->tiles[i].picture[0], &filters, i, diverges, full, error));
    write_title(sheet, &filters, diverges, full);
    return OK;
}

int filters_width(int *width, const struct graph *graph, const int seen[3], struct error *error) {
    struct filters filters = {0};
    RETURN_IF(find(&filters, graph, seen, error));
    *width = filters.columns;
    return OK;
}
