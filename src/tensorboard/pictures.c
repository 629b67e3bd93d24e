/* Pictures: examples as the network sees them, filters, mistakes and the confusion matrix. */
#include <math.h>

#include "../base/memory.h"
#include "../pictures/confusion.h"
#include "../pictures/filters.h"
#include "../pictures/png.h"
#include "../pictures/wrong.h"
#include "board.h"

enum { FILTERS_MOST = 64, WRONG_MOST = 40 };
/* Pictures of the filters: at most every second, and ever more rarely. */
static const double filters_s = 1.0, filters_times = 1.2;

void board_see_what_can_be_drawn(struct tensorboard *self) {
    struct error ignored = {0};
    int width = 0;
    self->has_pictures = self->histograms > 0 && png_check(&ignored) == OK &&
                         example_sizes(&self->sizes, self->dataset, &ignored) == OK;
    self->has_filters =
        self->has_pictures && filters_width(&width, self->graph, self->sizes.seen, &ignored) == OK;
}

static int write_picture(struct tensorboard *self, const char *tag, const struct canvas *canvas, double time,
                         int epoch, struct error *error) {
    char *png = NULL;
    size_t bytes = 0;
    RETURN_IF(png_encode(canvas, &png, &bytes, error));
    const struct events_image image = {
        .height = canvas->height, .width = canvas->width, .channels = 3, .png = png, .bytes = bytes};
    const int code = events_image(&self->events, time, epoch, tag, &image, error);
    memory_free(png);
    return code;
}

static int write_sheet(struct tensorboard *self, const char *tag, const struct sheet *sheet, double time,
                       int epoch, struct error *error) {
    struct canvas canvas = {0};
    int code = sheet_draw(sheet, &canvas, error);
    if (code == OK) code = write_picture(self, tag, &canvas, time, epoch, error);
    canvas_close(&canvas);
    return code;
}

static int write_filters(struct tensorboard *self, const float *weights, double time_s, int epoch,
                         struct error *error) {
    struct sheet sheet = {0};
    int code = filters_sheet(&sheet, self->graph, weights, self->sizes.seen, FILTERS_MOST, true, error);
    if (code == OK) code = write_sheet(self, "filters", &sheet, board_time(self, time_s), epoch, error);
    sheet_close(&sheet);
    self->filters_at_s = time_s;
    self->filters_epoch = epoch;
    return code;
}

/* Those that the first epoch began with, as they are and as the network saw them. */
static int write_examples(struct tensorboard *self, double time, int epoch, struct error *error) {
    struct sheet sheet = {0};
    self->examples.epoch = epoch;
    int code = example_sheet(&sheet, self->dataset, &self->examples, error);
    if (code == OK) code = write_sheet(self, "examples", &sheet, time, epoch, error);
    sheet_close(&sheet);
    self->examples.count = 0;
    return code;
}

static bool filters_due(const struct tensorboard *self, double time_s) {
    return self->has_filters &&
           (self->filters_epoch == 0 ||
            time_s > fmax(self->filters_at_s + filters_s, self->filters_at_s * filters_times));
}

int board_pictures(struct tensorboard *self, const struct output_epoch *epoch, struct error *error) {
    const struct epoch_row *row = epoch->row;
    if (self->has_pictures && self->examples.count > 0)
        RETURN_IF(write_examples(self, board_time(self, row->time_s), row->epoch, error));
    if (!epoch->weights || !filters_due(self, row->time_s)) return OK;
    return write_filters(self, epoch->weights, row->time_s, row->epoch, error);
}

static int write_wrong(struct tensorboard *self, const struct output_end *end, double time,
                       struct error *error) {
    const struct answers answers = {.said = end->said, .probabilities = end->probabilities};
    struct sheet sheet = {0};
    int code = wrong_sheet(&sheet, self->dataset, &self->dataset->test, "test", &answers, WRONG_MOST, error);
    if (code == OK && sheet.count > 0) code = write_sheet(self, "wrong", &sheet, time, self->epoch, error);
    sheet_close(&sheet);
    return code;
}

static int write_confusion(struct tensorboard *self, const struct output_end *end, double time,
                           struct error *error) {
    const struct dataset *dataset = self->dataset;
    struct confusion confusion = {0};
    struct canvas canvas = {0};
    int code = confusion_open(&confusion, (const char *const *)dataset->class_names, dataset->classes,
                              dataset->test.labels, end->said, dataset->test.count, error);
    snprintf(confusion.title, sizeof confusion.title, "%s: %d of %d test examples are right", dataset->name,
             confusion.right, confusion.examples);
    if (code == OK) code = confusion_draw(&confusion, &canvas, error);
    if (code == OK) code = write_picture(self, "confusion", &canvas, time, self->epoch, error);
    canvas_close(&canvas);
    confusion_close(&confusion);
    return code;
}

int board_last_pictures(struct tensorboard *self, const struct output_end *end, double time,
                        struct error *error) {
    if (self->has_filters && end->weights && self->epoch > self->filters_epoch)
        RETURN_IF(write_filters(self, end->weights, end->summary->train_seconds, self->epoch, error));
    if (!self->has_pictures || !end->said || self->dataset->test.count == 0) return OK;
    RETURN_IF(write_wrong(self, end, time, error));
    return self->dataset->classes <= CONFUSION_MOST ? write_confusion(self, end, time, error) : OK;
}
