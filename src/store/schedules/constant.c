/* The rate stays what it is. */
#include "../schedule.h"

static const struct option rows[] = {SCHEDULE_COMMON_ROWS, {0}};

static double factor(const void *settings, double progress) {
    (void)settings;
    (void)progress;
    return 1.0;
}

const struct schedule schedule_constant = {
    .plugin = {.name = "constant",
               .help = "the rate stays the same",
               .options = rows,
               .settings_bytes = sizeof(struct schedule_common)},
    .factor = factor,
};
