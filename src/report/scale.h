/* Axes, and numbers as a reader likes them. */
#ifndef TRAINER_REPORT_SCALE_H
#define TRAINER_REPORT_SCALE_H

#include <stdbool.h>

enum { SCALE_TICKS = 12, NUMBER_BYTES = 48 };

/* From a value to its place on an axis, 0 to 1. */
struct scale {
    double least, most;
    bool logarithmic;
    double ticks[SCALE_TICKS]; /* [count] between least and most */
    int count;
};

/* At least from `least` to `most`, with about `ticks` round ticks; ends at ticks if `round_ends`. */
struct scale scale_linear(double least, double most, int ticks, bool round_ends);
/* From 0 to `most`, with ticks at whole numbers only. */
struct scale scale_whole(double most, int ticks);
/* Ends a linear one at `least` and `most` where it goes beyond. */
void scale_cut(struct scale *scale, double least, double most);
/* The same of positive numbers, with ticks at 1, 10, ..., or at 1, 2, 5, 10, ... where these are few. */
struct scale scale_logarithmic(double least, double most);
double scale_place(const struct scale *scale, double value);
/* The value of a tick, with as many decimals as its neighbours need. */
const char *scale_text(const struct scale *scale, int tick, char out[NUMBER_BYTES]);

/* 1,234,567; 12.3; 0.0123; "-" for what is not known. */
const char *number_text(double value, char out[NUMBER_BYTES]);
/* "12.3 µs", "4.5 ms", "1.27 s", "12 min 5 s", "3 h 20 min" */
const char *number_seconds(double seconds, char out[NUMBER_BYTES]);
/* "96.7 %" */
const char *number_percent(double share, int decimals, char out[NUMBER_BYTES]);

#endif
