/* The rate falls evenly to a share of it. */
#include "../schedule.h"

struct linear_settings {
    struct schedule_common common;
    double end;
};

static const struct option rows[] = {
    SCHEDULE_COMMON_ROWS,
    OPTION_ROW(REAL, "end", struct linear_settings, end, .fallback = "0", .least = 0, .most = 1,
               .help = "what the rate is multiplied by at the end"),
    {0},
};

static double factor(const void *settings, double progress) {
    const struct linear_settings *linear = settings;
    return 1.0 - (1.0 - linear->end) * progress;
}

const struct schedule schedule_linear = {
    .plugin = {.name = "linear",
               .help = "the rate falls evenly to its end",
               .options = rows,
               .settings_bytes = sizeof(struct linear_settings)},
    .factor = factor,
};
