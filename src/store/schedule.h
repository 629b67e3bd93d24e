/* Learning-rate schedules: one plug-in per file in src/store/schedules/. They count the shard's updates. */
#ifndef TRAINER_STORE_SCHEDULE_H
#define TRAINER_STORE_SCHEDULE_H

#include "../base/option.h"

struct schedule {
    struct plugin plugin; /* settings begin with a `struct schedule_common` */
    /* Factor on the base rate, for progress 0 <= p <= 1 through the updates that follow the warm-up. */
    double (*factor)(const void *settings, double progress);
};

/* First member of every schedule's settings: warm-up, a linear rise from 0 over this share of all updates. */
struct schedule_common {
    double warmup;
};
#define SCHEDULE_COMMON_ROWS                                                                                 \
    OPTION_ROW(REAL, "warmup", struct schedule_common, warmup, .fallback = "0", .least = 0, .most = 1,       \
               .unit = "share of all updates",                                                               \
               .help = "share of the run in which the rate first rises from 0")

extern const struct schedule *const schedules[]; /* generated, ended by NULL */
extern const struct plugin_kind schedule_kind;   /* generated: the same */

static inline const struct schedule *schedule_of(const struct choice *choice) {
    return (const struct schedule *)(const void *)choice->plugin;
}

/* The factor on the base rate for an update (from 0) of `total`. */
double schedule_factor(const struct choice *schedule, long update, long total);

#endif
