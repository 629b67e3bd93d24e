/* See pipeline.h. The schedules differ in one number: how many micro-batches a stage computes forward before
 * it computes one forward and one backward in turn. */
#include "pipeline.h"

static int warm_up(const struct pipeline *pipeline, int stage) {
    const int all = pipeline->microbatches, ahead = pipeline->stages - 1 - stage;
    switch (pipeline->schedule) {
    case PIPELINE_NONE:
        return 0;
    case PIPELINE_GPIPE:
        return all;
    case PIPELINE_1F1B:
        return ahead < all ? ahead : all;
    }
    return 0;
}

struct turn pipeline_turn(const struct pipeline *pipeline, int stage, int i) {
    const int all = pipeline->microbatches, first = warm_up(pipeline, stage), paired = all - first;
    if (i < first) return (struct turn){.micro = i};
    if (i >= first + 2 * paired) return (struct turn){.backward = true, .micro = i - all};
    const int pair = (i - first) / 2;
    if ((i - first) % 2 == 0) return (struct turn){.micro = first + pair};
    return (struct turn){.backward = true, .micro = pair};
}

int pipeline_in_flight(const struct pipeline *pipeline, int stage) {
    const int first = warm_up(pipeline, stage);
    return first < pipeline->microbatches ? first + 1 : first;
}

double pipeline_bubble(const struct pipeline *pipeline) {
    const double ahead = pipeline->stages - 1;
    return ahead / (ahead + (pipeline->schedule == PIPELINE_NONE ? 1 : pipeline->microbatches));
}

const char *pipeline_name(enum pipeline_schedule schedule) {
    static const char *const names[] = {"none", "gpipe", "1f1b"};
    return names[schedule];
}
