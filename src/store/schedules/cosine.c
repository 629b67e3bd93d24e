/* Half a cosine from the rate down to a share of it (Loshchilov and Hutter, "SGDR", 2017; no restarts). */
#include <math.h>

#include "../schedule.h"

struct cosine_settings {
    struct schedule_common common;
    double end;
};

static const struct option rows[] = {
    SCHEDULE_COMMON_ROWS,
    OPTION_ROW(REAL, "end", struct cosine_settings, end, .fallback = "0", .least = 0, .most = 1,
               .help = "what the rate is multiplied by at the end"),
    {0},
};

static double factor(const void *settings, double progress) {
    const struct cosine_settings *cosine = settings;
    const double pi = 3.14159265358979323846;
    return cosine->end + (1.0 - cosine->end) * 0.5 * (1.0 + cos(pi * progress));
}

const struct schedule schedule_cosine = {
    .plugin = {.name = "cosine",
               .help = "the rate falls to its end along half a cosine",
               .options = rows,
               .settings_bytes = sizeof(struct cosine_settings)},
    .factor = factor,
};
