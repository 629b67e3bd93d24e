/* See step_time.h. */
#include "step_time.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/rng.h"

static const double least_s = 1e-6, most_s = 1000.0, most_spread = 10.0;
static const struct unit {
    const char *name;
    double seconds;
} units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
enum { UNITS = sizeof units / sizeof *units, PURPOSE = 0x51E9 };

/* A number in front of *at, which goes behind it: digits and a point, so that no "inf", no sign and no blank
 * is one. */
static bool read_number(const char **at, double *number) {
    const size_t length = strspn(*at, "0123456789.");
    char *end = NULL;
    *number = length > 0 ? strtod(*at, &end) : 0.0;
    if (length == 0 || end != *at + length) return false;
    *at = end;
    return true;
}

static bool read_mean(const char **at, double *seconds) {
    const struct unit *unit = units;
    double number = 0.0;
    if (!read_number(at, &number)) return false;
    const size_t length = strcspn(*at, ":");
    while (unit < units + UNITS && (strlen(unit->name) != length || strncmp(*at, unit->name, length) != 0))
        unit++;
    if (unit == units + UNITS) return false;
    *at += length;
    *seconds = number * unit->seconds;
    return *seconds >= least_s && *seconds <= most_s;
}

static bool read_spread(const char *at, double *spread) {
    static const char name[] = "spread=";
    if (*at == '\0') return true;
    if (*at++ != ':') return false;
    if (strncmp(at, name, sizeof name - 1) == 0) at += sizeof name - 1; /* the only setting may go unnamed */
    return read_number(&at, spread) && *at == '\0' && *spread <= most_spread;
}

int step_time_parse(struct step_time *time, const char *text, struct error *error) {
    const char *at = text;
    *time = (struct step_time){0};
    if (*text == '\0') return OK;
    if (!read_mean(&at, &time->mean_s))
        return error_set(error, ERROR_USAGE,
                         "--simulate: \"%s\", expected the time of a step from 1us to 1000s, as in 20ms",
                         text);
    if (read_spread(at, &time->spread)) return OK;
    return error_set(error, ERROR_USAGE,
                     "--simulate: \"%s\", expected spread from 0 to %g behind the time, as in "
                     "20ms:spread=0.3",
                     text, most_spread);
}

/* Box-Muller. */
static double normal(const struct rng_block *block) {
    const double pi = 3.14159265358979323846;
    return sqrt(-2.0 * log((double)rng_unit_open(block->word[0]))) *
           cos(2.0 * pi * (double)rng_unit(block->word[1]));
}

double step_time_of(const struct step_time *time, int worker, long step) {
    if (time->spread <= 0.0) return time->mean_s;
    const struct rng_block block = rng_philox(rng_mix(time->seed, PURPOSE), (uint64_t)worker, (uint64_t)step);
    const double variance = log1p(time->spread * time->spread); /* of the logarithm */
    return time->mean_s * exp(sqrt(variance) * normal(&block) - 0.5 * variance);
}

const char *step_time_words(const struct step_time *time, char *out, size_t bytes) {
    const struct unit *unit = units + UNITS - 1;
    char spread[60] = "";
    while (unit > units && time->mean_s < unit->seconds) unit--;
    if (time->spread > 0.0)
        snprintf(spread, sizeof spread, " in the mean, with a deviation of %g %%", 100.0 * time->spread);
    snprintf(out, bytes, "a step takes %g %s of virtual time%s", time->mean_s / unit->seconds, unit->name,
             spread);
    if (time->mean_s <= 0.0) out[0] = '\0';
    return out;
}
