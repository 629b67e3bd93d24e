/* See scale.h. */
#include "scale.h"

#include <math.h>
#include <stdio.h>
#include "../record/digits.h"

/* 1, 2, 2.5 or 5 times a power of ten, so that `length` has at most `ticks` of them. */
static double round_step(double length, int ticks) {
    static const double rounds[] = {1, 2, 2.5, 5, 10};
    const double power = pow(10, floor(log10(length / ticks)));
    for (int i = 0; i < 4; i++)
        if (length <= ticks * power * rounds[i] * (1 + 1e-9)) return power * rounds[i];
    return power * rounds[4];
}

/* A tick every `step` between the ends. */
static void place_linear(struct scale *scale, double step) {
    double tick = step * ceil(scale->least / step - 1e-9);
    for (scale->count = 0; scale->count < SCALE_TICKS && tick <= scale->most + 1e-9 * step; tick += step)
        scale->ticks[scale->count++] = fabs(tick) < 1e-9 * step ? 0.0 : tick;
}

struct scale scale_linear(double least, double most, int ticks, bool round_ends) {
    struct scale scale = {.least = least, .most = most};
    if (!(most - least > 1e-12 * fmax(fabs(least), fabs(most)))) {
        const double room = least != 0.0 ? 0.1 * fabs(least) : 1.0;
        scale.least = least - room, scale.most = most + room;
    }
    const double step = round_step(scale.most - scale.least, ticks);
    if (round_ends) {
        scale.least = step * floor(scale.least / step + 1e-9);
        scale.most = step * ceil(scale.most / step - 1e-9);
    }
    place_linear(&scale, step);
    return scale;
}

struct scale scale_whole(double most, int ticks) {
    struct scale scale = {.most = most};
    const double step = fmax(round_step(most, ticks), 1.0);
    place_linear(&scale, step == 2.5 ? 5.0 : step);
    return scale;
}

void scale_cut(struct scale *scale, double least, double most) {
    const double room = 1e-9 * (scale->most - scale->least);
    int kept = 0;
    for (int i = 0; i < scale->count; i++)
        if (scale->ticks[i] >= least - room && scale->ticks[i] <= most + room)
            scale->ticks[kept++] = scale->ticks[i];
    scale->count = kept;
    scale->least = fmax(scale->least, least);
    scale->most = fmin(scale->most, most);
}

/* Ticks at the digits of every `every`-th power of ten. */
static void place_ticks(struct scale *scale, const char *digits, int every) {
    const int first = (int)floor(log10(scale->least)) - 1, last = (int)ceil(log10(scale->most));
    scale->count = 0;
    for (int power = first; power <= last; power++)
        for (const char *digit = digits; *digit && power % every == 0; digit++) {
            const double tick = (*digit - '0') * pow(10, power);
            if (tick < scale->least * (1 - 1e-9) || tick > scale->most * (1 + 1e-9)) continue;
            if (scale->count < SCALE_TICKS) scale->ticks[scale->count++] = tick;
        }
}

struct scale scale_logarithmic(double least, double most) {
    struct scale scale = {.least = least, .most = most, .logarithmic = true};
    const double powers = log10(most / least);
    if (powers > 3.5)
        place_ticks(&scale, "1", powers > 7 ? (int)ceil(powers / 6) : 1);
    else
        place_ticks(&scale, powers > 2.2 ? "13" : "125", 1);
    return scale;
}

double scale_place(const struct scale *scale, double value) {
    if (scale->logarithmic) return log(value / scale->least) / log(scale->most / scale->least);
    return (value - scale->least) / (scale->most - scale->least);
}

const char *scale_text(const struct scale *scale, int tick, char out[NUMBER_BYTES]) {
    const double value = scale->ticks[tick];
    const double step = scale->count > 1 ? scale->ticks[1] - scale->ticks[0] : 1.0;
    if (scale->logarithmic || fabs(value) >= 1e6 || step < 1e-4) {
        snprintf(out, NUMBER_BYTES, "%g", value);
        return out;
    }
    int decimals = 0;
    for (double times = step; decimals < 5 && fabs(times - round(times)) > 1e-6 * times; times *= 10)
        decimals++;
    snprintf(out, NUMBER_BYTES, "%.*f", decimals, value);
    return out;
}

const char *number_text(double value, char out[NUMBER_BYTES]) {
    if (!isfinite(value))
        snprintf(out, NUMBER_BYTES, isnan(value) ? "-" : "infinite");
    else if (fabs(value) >= 1e15)
        snprintf(out, NUMBER_BYTES, "%.3g", value);
    else if (fabs(value) >= 999.5) {
        out[0] = '-';
        digits_thousands(out + (value < 0), fabs(value));
    } else
        snprintf(out, NUMBER_BYTES, "%.3g", value);
    return out;
}

const char *number_seconds(double seconds, char out[NUMBER_BYTES]) {
    if (!isfinite(seconds))
        snprintf(out, NUMBER_BYTES, "-");
    else if (fabs(seconds) < 0.5e-9) /* what rounding has left of none */
        snprintf(out, NUMBER_BYTES, "0\xC2\xA0s");
    else if (seconds < 0.9995e-3)
        snprintf(out, NUMBER_BYTES, "%.3g\xC2\xA0\xC2\xB5s", 1e6 * seconds);
    else if (seconds < 0.9995)
        snprintf(out, NUMBER_BYTES, "%.3g\xC2\xA0ms", 1e3 * seconds);
    else if (seconds < 99.95)
        snprintf(out, NUMBER_BYTES, "%.3g\xC2\xA0s", seconds);
    else if (seconds < 600)
        snprintf(out, NUMBER_BYTES, "%.0f\xC2\xA0s", seconds);
    else if (seconds < 3600)
        snprintf(out, NUMBER_BYTES, "%d\xC2\xA0min %d\xC2\xA0s", (int)seconds / 60, (int)seconds % 60);
    else
        snprintf(out, NUMBER_BYTES, "%.0f\xC2\xA0h %d\xC2\xA0min", floor(seconds / 3600),
                 (int)fmod(seconds, 3600) / 60);
    return out;
}

const char *number_percent(double share, int decimals, char out[NUMBER_BYTES]) {
    snprintf(out, NUMBER_BYTES, "%.*f\xC2\xA0%%", decimals, 100 * share);
    if (!isfinite(share)) snprintf(out, NUMBER_BYTES, "-");
    return out;
}
