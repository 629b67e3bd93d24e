/* See epoch_line.h. */
#include "epoch_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "digits.h"

enum { LINES_AT_LEAST = 20 };
static const double line_every_s = 1;

void epoch_line_time(struct text *text, double seconds, int decimals) {
    if (seconds < 0.0995)
        text_add(text, "%.*f ms", seconds < 0.00995, seconds * 1e3);
    else if (seconds < 99.5)
        text_add(text, "%.*f s", seconds < 9.95 ? 1 : decimals, seconds);
    else if (seconds < 99.5 * 60)
        text_add(text, "%.*f min", decimals, seconds / 60);
    else
        text_add(text, "%.1f h", fmin(seconds / 3600, 1e6));
}

/* `speed`, `left`: with these. */
static void put_line(const struct epoch_line *line, bool speed, bool left, struct text *text) {
    char digits[DIGITS_BYTES], figure[METRIC_BYTES];
    const int width = (int)(digits_whole(digits, line->epochs) - digits);
    text_add(text, "Epoch %*d/%d", width, line->epoch, line->epochs);
    if (!isnan(line->loss)) {
        digits_fixed(digits, line->loss, 4);
        text_add(text, "  loss %s", digits);
    }
    if (!isnan(line->validation_score))
        text_add(text, "  val %s", metric_figure(line->metric, line->validation_score, figure));
    if (!isnan(line->test_score))
        text_add(text, "  test %s", metric_figure(line->metric, line->test_score, figure));
    digits_thousands(digits, line->examples_per_s);
    if (speed && line->examples_per_s > 0) text_add(text, "  %s examples/s", digits);
    text_add(text, "  ");
    epoch_line_time(text, line->seconds, 1);
    if (!left || isnan(line->left_s) || line->epoch >= line->epochs) return;
    text_add(text, "  (ETA ");
    epoch_line_time(text, line->left_s, 0);
    text_add(text, ")");
}

const char *epoch_line_text(const struct epoch_line *line, int columns, char *out, size_t bytes) {
    for (int parts = 2; parts >= 0; parts--) {
        struct text text = text_into(out, bytes);
        put_line(line, parts > 0, parts > 1, &text);
        if (columns == 0 || strlen(out) <= (size_t)columns) break;
    }
    return out;
}

bool epoch_line_due(int epoch, int epochs, double since_s) {
    const long long part = (long long)epoch * LINES_AT_LEAST / epochs;
    const long long part_before = (long long)(epoch - 1) * LINES_AT_LEAST / epochs;
    return epoch == 1 || part > part_before || since_s >= line_every_s;
}
