/* What --outputs=tensorboard keeps, and the parts of a run that it writes, a file each;
 * src/outputs/tensorboard.c says which files there are and what is in them. Errors of all functions: those of
 * events.h. */
#ifndef TRAINER_TENSORBOARD_BOARD_H
#define TRAINER_TENSORBOARD_BOARD_H

#include "../base/text.h"
#include "../formats/events.h"
#include "../pictures/example.h"
#include "../record/output.h"
#include "../store/store.h"

enum { BOARD_TEXT_BYTES = 4096 };

/* What the rows of some steps of a worker add up to. */
struct steps_sum {
    double ms, wait_ms;
    long rows, dropped;
    struct staleness staleness;
};

struct watched { /* a worker */
    struct events events;
    struct steps_sum point, epoch; /* since the last point; in this epoch */
    double time_s;                 /* of the last point */
    double rest_s;                 /* waits so far that no row has */
    long step, last_step;          /* of the last point; of the last row */
};

struct tensorboard {
    struct events events;
    struct watched *workers;        /* [count] */
    long (*shards)[STALENESS_BINS]; /* [shards here] gradients in each bin of staleness, up to the last
                                       histogram */
    int count, every, histograms;
    double utc_s, seconds_before; /* when training began, on the clock and in its own time */
    struct text happened;         /* since it was last written, as a list */
    char happened_bytes[BOARD_TEXT_BYTES];
    int epoch;
    bool drops;           /* a gradient was dropped: then it is worth a curve */
    double learning_rate; /* of the last row; NAN: there was none */
    long lost_updates;    /* up to the last epoch */

    const struct graph *graph;     /* borrowed */
    const struct dataset *dataset; /* borrowed */
    struct example_sizes sizes;
    bool has_pictures;   /* examples can be drawn */
    bool has_filters;    /* the first layer, too */
    double filters_at_s; /* of training, when they were drawn last */
    int filters_epoch;
    struct example_choice examples; /* that are drawn after the first epoch; count 0: they have been */
};

/* On the clock, of a time of training. */
static inline double board_time(const struct tensorboard *self, double time_s) {
    return self->utc_s + time_s - self->seconds_before;
}

/* settings.c: as a table, and, at the first time in this folder, as what runs are compared by. */
int board_settings(struct tensorboard *self, const struct output_scene *scene, bool first,
                   struct error *error);

/* histograms.c: of staleness since the last ones, and of weights and gradients as they are. */
int board_histograms(struct tensorboard *self, const struct output_epoch *epoch, double time,
                     struct error *error);

/* pictures.c: those of an epoch, where they are due; those of the end. */
void board_see_what_can_be_drawn(struct tensorboard *self);
int board_pictures(struct tensorboard *self, const struct output_epoch *epoch, struct error *error);
int board_last_pictures(struct tensorboard *self, const struct output_end *end, double time,
                        struct error *error);

#endif
