/* Bars, lanes and histograms as wide as the page: places are percentages, or units of an inner picture that
 * is stretched, so that letters keep their size. See chart.h. */
#include <math.h>
#include <string.h>
#include "chart.h"

enum {
    BAR_HEIGHT = 24,
    TIME_HEIGHT = 46,
    LANE_HEIGHT = 24,
    STALE_HEIGHT = 90,
    STALE_ROOM = 272, /* pixels of the narrowest histogram */
    UNITS = 20000,    /* of a stretched picture */
    TICKS = 6
};

/* The share of the width from which on a number fits into a bar, also on a telephone. */
static const double number_fits = 0.13;
/* Pixels of the narrowest page that has numbers of steps, of a digit, and beside the number. */
static const double step_page = 820, step_digit = 8.5, step_room = 8;

static const char *const part_names[PARTS] = {"input", "pull", "compute", "push", "wait"};
static const char *const part_words[PARTS] = {"getting the batch", "taking weights", "computing",
                                              "giving gradients", "waiting for others"};
/* As they are stacked, the useful one first; and as they follow each other in a step. */
static const enum part stacked[PARTS] = {PART_COMPUTE, PART_INPUT, PART_PULL, PART_PUSH, PART_WAIT};
static const enum part in_time[PARTS] = {PART_INPUT, PART_PULL, PART_WAIT, PART_COMPUTE, PART_PUSH};

void chart_parts(struct html *html) {
    html_put(html, "<ul class=\"legend\">\n");
    for (int i = 0; i < PARTS; i++)
        html_put(html,
                 "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect class=\"%s\" width=\"14\" "
                 "height=\"14\"/></svg>%s</li>\n",
                 part_names[stacked[i]], part_words[stacked[i]]);
    html_put(html, "</ul>\n");
}

void chart_shares(struct html *html, const double seconds[PARTS]) {
    double sum = 0.0, at = 0.0;
    for (int p = 0; p < PARTS; p++) sum += seconds[p];
    html_put(html, "<svg class=\"wide\" height=\"%d\" role=\"img\" aria-label=\"shares of its time\">",
             BAR_HEIGHT);
    for (int i = 0; i < PARTS && sum > 0.0; i++) {
        const enum part part = stacked[i];
        const double share = seconds[part] / sum;
        html_put(html,
                 "<rect class=\"%s\" x=\"%.2f%%\" width=\"%.2f%%\" height=\"%d\"><title>%s: %.1f %%</title>"
                 "</rect>",
                 part_names[part], 100 * at, 100 * share, BAR_HEIGHT, part_words[part], 100 * share);
        if (share >= number_fits)
            html_put(html,
                     "<text class=\"on-%s\" x=\"%.2f%%\" y=\"17\" text-anchor=\"middle\">%.0f %%</text>",
                     part_names[part], 100 * (at + share / 2), 100 * share);
        at += share;
    }
    html_put(html, "</svg>\n");
}

/* Where a tick's number stands, so that it is not cut off at the edges. */
static const char *anchor_at(double place) {
    return place < 0.06 ? "start" : place > 0.94 ? "end" : "middle";
}

/* --- over time --- */

/* Of what the bin has: all of it where only some steps are known, else the part that steps take up. */
static double whole_of(const struct step_facts *steps, const double seconds[PARTS], int bin) {
    double sum = 0.0;
    for (int p = 0; p < PARTS; p++) sum += seconds[p];
    const double length = fmin(steps->bin_s, steps->end_s - bin * steps->bin_s);
    return steps->sampled ? sum : fmax(sum, length);
}

/* The area under the first `parts` parts, as steps; the others lie in front of it. */
static void write_area(struct html *html, const struct step_facts *steps, const struct worker_steps *of,
                       int parts) {
    html_put(html, "<path class=\"%s\" d=\"M0 1000", part_names[stacked[parts - 1]]);
    for (int b = 0; b * steps->bin_s < steps->end_s && b < FACTS_BINS; b++) {
        const double whole = whole_of(steps, of->seconds[b], b);
        double sum = 0.0;
        for (int i = 0; i < parts; i++) sum += of->seconds[b][stacked[i]];
        const double end = fmin((b + 1) * steps->bin_s, steps->end_s);
        html_put(html, "V%.0fH%.0f", 1000 - (whole > 0.0 ? 1000 * sum / whole : 0.0),
                 UNITS * end / steps->end_s);
    }
    html_put(html, "V1000z\"/>");
}

void chart_time(struct html *html, const struct step_facts *steps, int worker) {
    html_put(html,
             "<svg class=\"wide lane\" height=\"%d\" viewBox=\"0 0 %d 1000\" preserveAspectRatio=\"none\" "
             "role=\"img\" aria-label=\"how its time was spent, over time\">",
             TIME_HEIGHT, UNITS);
    for (int parts = PARTS; parts > 0; parts--) write_area(html, steps, &steps->workers[worker], parts);
    html_put(html, "</svg>\n");
}

void chart_seconds_axis(struct html *html, double from_s, double length_s) {
    const bool small = from_s + length_s < 1.0;
    const double unit = small ? 1e-3 : 1.0;
    const struct scale scale = scale_linear(from_s / unit, (from_s + length_s) / unit, TICKS, false);
    char number[NUMBER_BYTES];
    html_put(html, "<svg class=\"wide\" height=\"26\" aria-hidden=\"true\">");
    for (int i = 0; i < scale.count; i++) {
        const double place = scale_place(&scale, scale.ticks[i]);
        html_put(html, "<rect class=\"tick\" x=\"%.2f%%\" width=\"1\" height=\"6\"/>", 99.8 * place);
        html_put(html, "<text x=\"%.2f%%\" y=\"20\" text-anchor=\"%s\">%s%s</text>", 100 * place,
                 anchor_at(place), scale_text(&scale, i, number),
                 i > 0 && i < scale.count - 1 ? ""
                 : small                      ? " ms"
                                              : " s");
    }
    html_put(html, "</svg>\n");
}

/* --- a stretch --- */

static double part_begin(const struct stretch_step *step, int place) {
    double begin = step->end_s;
    for (int i = place; i < PARTS; i++) begin -= 1e-3 * step->ms[in_time[i]];
    return begin;
}

/* Its share of the stretch, from 0 to 1; false: none of it is seen. */
static bool clip(const struct stretch *stretch, double begin, double end, double *from, double *to) {
    *from = fmax(0.0, (begin - stretch->from_s) / stretch->length_s);
    *to = fmin(1.0, (end - stretch->from_s) / stretch->length_s);
    return *to > *from;
}

static void write_boxes(struct html *html, const struct stretch *stretch, int worker, int place) {
    double from, to;
    bool begun = false;
    for (int i = 0; i < stretch->count; i++) {
        const struct stretch_step *step = &stretch->steps[i];
        const double begin = part_begin(step, place);
        if (step->worker != worker ||
            !clip(stretch, begin, begin + 1e-3 * step->ms[in_time[place]], &from, &to))
            continue;
        const int x = (int)(UNITS * from), width = (int)ceil(UNITS * to) - x;
        if (!begun) html_put(html, "<path class=\"%s\" d=\"", part_names[in_time[place]]);
        html_put(html, "M%d 0h%dv1h-%dz", x, width, width);
        begun = true;
    }
    if (begun) html_put(html, "\"/>\n");
}

static void write_number(struct html *html, const struct stretch_step *step, double from, double to) {
    char number[64], stale[96];
    snprintf(number, sizeof number, "%ld", step->step);
    snprintf(stale, sizeof stale, "%s, stale %ld", number, step->staleness);
    const double room = step_page * (to - from) - step_room;
    const char *words = step->staleness > 0 && step_digit * (double)strlen(stale) < room ? stale : number;
    if (step_digit * (double)strlen(words) >= room) return;
    html_put(html, "<text class=\"step on-compute\" x=\"%.2f%%\" y=\"17\" text-anchor=\"middle\">%s</text>",
             50 * (from + to), words);
}

static void write_numbers(struct html *html, const struct stretch *stretch, int worker) {
    double from, to;
    int compute = 0;
    while (in_time[compute] != PART_COMPUTE) compute++;
    for (int i = 0; i < stretch->count; i++) {
        const struct stretch_step *step = &stretch->steps[i];
        const double begin = part_begin(step, compute);
        if (step->worker == worker && clip(stretch, begin, begin + 1e-3 * step->ms[PART_COMPUTE], &from, &to))
            write_number(html, step, from, to);
    }
}

void chart_steps(struct html *html, const struct stretch *stretch, int worker) {
    html_put(html,
             "<svg class=\"wide lane\" height=\"%d\" role=\"img\" aria-label=\"its steps, one by one\">",
             LANE_HEIGHT);
    html_put(html, "<svg width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d 1\" preserveAspectRatio=\"none\">\n",
             LANE_HEIGHT, UNITS);
    for (int place = 0; place < PARTS; place++) write_boxes(html, stretch, worker, place);
    html_put(html, "</svg>\n");
    write_numbers(html, stretch, worker);
    html_put(html, "</svg>\n");
}

/* --- staleness --- */

/* "3", of several numbers "16 to 23", of all above "> 23" */
static const char *bar_text(const struct stale_bars *bars, int bar, char out[64]) {
    const long from = bar * bars->width;
    if (bar == bars->count)
        snprintf(out, 64, "> %ld", from - 1);
    else if (bars->width > 1)
        snprintf(out, 64, "%ld to %ld", from, from + bars->width - 1);
    else
        snprintf(out, 64, "%ld", from);
    return out;
}

static void write_bar(struct html *html, const struct stale_bars *bars, int bar, double share, double most) {
    const int all = bars->count + bars->above;
    const double height = fmax(STALE_HEIGHT * share / most, 1.0);
    char text[64];
    if (!(share > 0.0)) return;
    html_put(html, "<rect class=\"%s\" x=\"%.2f%%\" width=\"%.2f%%\" y=\"%.1f\" height=\"%.1f\"><title>",
             bar < bars->count ? "f0" : "f1", 100.0 * (bar + 0.06) / all, 88.0 / all, STALE_HEIGHT - height,
             height);
    html_say(html, "%s: %.2f %%", bar_text(bars, bar, text), 100 * share);
    html_put(html, "</title></rect>\n");
}

/* Under every bar, or every so many-th, so that numbers of that many digits have room; under the last one,
 * which is of all above, always. */
static void write_bar_labels(struct html *html, const struct stale_bars *bars) {
    const int all = bars->count + bars->above, steps[] = {1, 2, 4, 8};
    char text[64];
    snprintf(text, sizeof text, "%ld", bars->count * bars->width);
    int every = 0;
    while (every < 3 && all * (8 * (int)strlen(text) + 8) > STALE_ROOM * steps[every]) every++;
    for (int i = 0; i < bars->count; i += steps[every])
        if (!bars->above || STALE_ROOM * (bars->count - i) / all > 9 * (int)strlen(text) + 16)
            html_put(html, "<text x=\"%.2f%%\" y=\"%d\" text-anchor=\"middle\">%ld</text>",
                     100.0 * (i + 0.5) / all, STALE_HEIGHT + 17, i * bars->width);
    if (!bars->above) return;
    html_put(html, "<text x=\"100%%\" y=\"%d\" text-anchor=\"end\">", STALE_HEIGHT + 17);
    html_text(html, bar_text(bars, bars->count, text));
    html_put(html, "</text>");
}

void chart_staleness(struct html *html, const struct stale *stale, const struct stale_bars *bars,
                     double most) {
    html_put(html, "<svg class=\"wide\" height=\"%d\" role=\"img\" aria-label=\"histogram of staleness\">\n",
             STALE_HEIGHT + 22);
    for (int i = 0; i < bars->count + bars->above; i++)
        write_bar(html, bars, i, stale_share(stale, bars, i), most);
    write_bar_labels(html, bars);
    html_put(html, "<rect class=\"tick\" y=\"%d\" width=\"100%%\" height=\"1\"/></svg>\n", STALE_HEIGHT);
}

void chart_bar(struct html *html, double share, int colour) {
    html_put(
        html,
        "<svg class=\"wide bar\" height=\"12\" aria-hidden=\"true\"><rect class=\"f%d\" width=\"%.2f%%\" "
        "height=\"12\"/></svg>",
        colour, 100 * fmin(fmax(share, 0.0), 1.0));
}
