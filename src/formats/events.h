/* TensorBoard's event files: records of a length, two check sums and an Event (events.proto).
 *
 * A file is only appended to and never renamed, so that it can be watched. A run that goes on begins another
 * one beside it, which TensorBoard reads behind the first: it begins with the step from which on what the
 * earlier ones have is void (SessionLog START). Times are seconds since 1970; steps are those of the axis.
 *
 * Errors of all functions, where none are named: ERROR_FILE (what does not fit is cut off: the file stays
 * whole), ERROR_DEVICE (memory). */
#ifndef TRAINER_FORMATS_EVENTS_H
#define TRAINER_FORMATS_EVENTS_H

#include <stdbool.h>
#include <stdio.h>
#include "../base/error.h"
#include "../base/file.h"
#include "../graph/graph.h"

struct events {
    FILE *file; /* NULL: not open */
    char path[PATH_BYTES];
    long long bytes, flushed; /* of whole records: handed to the stream, known to have left it */
    unsigned char *room;      /* [room_bytes] of the record in hand, owned */
    size_t room_bytes;
};

/* Makes the next file of `folder`, which is made if it is not there; see event_file_next. What an
 * earlier part that was killed left half written is cut off. What earlier files
 * have from first_step on is void. */
int events_open(struct events *events, const char *folder, long long utc_seconds, long first_step,
                struct error *error);

/* One point for each tag, all at one step; values that are NAN are left out: they are not known. */
struct events_scalar {
    const char *tag;
    double value;
};
int events_scalars(struct events *events, double time, long step, const struct events_scalar *scalars,
                   int count, struct error *error);

/* Buckets in ascending order, without gaps. */
struct events_bucket {
    double left, right, count;
};
int events_histogram(struct events *events, double time, long step, const char *tag,
                     const struct events_bucket *buckets, int count, struct error *error);
/* Cuts the range of values into EVENTS_BUCKETS equal buckets, or one around a single value; returns how many.
 * Values that are not finite are left out; 0: there are no others. */
enum { EVENTS_BUCKETS = 30 };
int events_buckets(struct events_bucket buckets[EVENTS_BUCKETS], const float *values, size_t count);

/* channels: 1 grey, 3 RGB, 4 RGBA; the picture as PNG. */
struct events_image {
    int height, width, channels;
    const void *png; /* [bytes] */
    size_t bytes;
};
int events_image(struct events *events, double time, long step, const char *tag,
                 const struct events_image *image, struct error *error);

/* Markdown. */
int events_text(struct events *events, double time, long step, const char *tag, const char *text,
                struct error *error);

/* The operations of the graph, grouped by layer; those of the backward pass under "gradients". */
int events_graph(struct events *events, double time, const struct graph *graph, const char *device,
                 struct error *error);

/* What runs are compared by on the page HPARAMS: their settings, and the last values of some scalars. */
struct events_setting {
    const char *name;
    enum { SETTING_TEXT, SETTING_NUMBER, SETTING_FLAG } kind;
    const char *text;
    double number;
    bool flag;
    bool first; /* one of those that the table begins with: TensorBoard shows five unless asked for more */
};
struct events_metric {
    const char *tag, *name; /* of the scalar; as shown */
};
int events_settings(struct events *events, double time, const struct events_setting *settings, int count,
                    const struct events_metric *metrics, int metric_count, struct error *error);
int events_settings_end(struct events *events, double time, bool succeeded, struct error *error);

int events_flush(struct events *events, struct error *error);
void events_close(struct events *events); /* safe on a zeroed one; what was not flushed may be lost */

#endif
