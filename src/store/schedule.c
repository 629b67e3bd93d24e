/* The warm-up that all schedules share, and then the schedule's own factor. */
#include "schedule.h"

double schedule_factor(const struct choice *choice, long update, long total) {
    const struct schedule *schedule = schedule_of(choice);
    const struct schedule_common *common = choice_settings(choice);
    const double warm = common->warmup * (double)total;
    if ((double)update < warm) return (double)(update + 1) / (warm + 1.0);
    const double rest = (double)total - warm;
    const double progress = rest > 0.0 ? ((double)update - warm) / rest : 1.0;
    return schedule->factor(choice->settings, progress < 1.0 ? progress : 1.0);
}
