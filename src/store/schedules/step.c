/* The rate is multiplied by a factor each time a share of the run has passed. */
#include <math.h>

#include "../schedule.h"

struct step_settings {
    struct schedule_common common;
    double every, factor;
};

static const struct option rows[] = {
    SCHEDULE_COMMON_ROWS,
    OPTION_ROW(REAL, "every", struct step_settings, every, .fallback = "0.333", .least = 0.0001, .most = 1,
               .unit = "share of all updates", .help = "share of the run between two steps"),
    OPTION_ROW(REAL, "factor", struct step_settings, factor, .fallback = "0.1", .least = 0, .most = 1,
               .help = "what the rate is multiplied by at each step"),
    {0},
};

static double factor(const void *settings, double progress) {
    const struct step_settings *step = settings;
    return pow(step->factor, floor(progress / step->every));
}

const struct schedule schedule_step = {
    .plugin = {.name = "step",
               .help = "the rate is multiplied by a factor at even intervals",
               .options = rows,
               .settings_bytes = sizeof(struct step_settings)},
    .factor = factor,
};
