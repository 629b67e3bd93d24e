/* What the first layer of the trained network looks for: its weights as pictures. A section for a page about
 * the run; there is none where the network does not begin with a layer on images, or where the build has no
 * libpng. */
#ifndef TRAINER_REPORT_LOOKS_FOR_H
#define TRAINER_REPORT_LOOKS_FOR_H

#include "../graph/graph.h"
#include "../pictures/sheet.h"
#include "report.h"

struct looks_for {
    struct sheet sheet; /* a tile for each unit */
    struct unit_picture {
        char *png; /* [bytes] owned */
        size_t bytes;
    } * pictures; /* [sheet.count] owned */
};

/* seen: {height, width, channels} of the images that the network is given; NULL: it is given none.
 * weights: [layout floats]. *there: there is such a section. Errors: ERROR_DEVICE (memory). */
int looks_for_open(struct looks_for *looks_for, const int seen[3], const struct graph *graph,
                   const float *weights, bool *there, struct error *error);
void looks_for_close(struct looks_for *looks_for); /* safe on a zeroed one */

/* The section; `looks_for` is borrowed. */
struct report_section looks_for_section(const struct looks_for *looks_for);

#endif
