/* Pictures in SVG, without scripts. Curves have a fixed shape that grows with its column; bars, lanes and
 * histograms are as wide as the page, while their letters keep their size. */
#ifndef TRAINER_REPORT_CHART_H
#define TRAINER_REPORT_CHART_H

#include "facts.h"
#include "html.h"
#include "scale.h"

/* Points that are not finite, or beyond 1e30, leave a gap. */
struct curve {
    const char *label;
    int colour;    /* from 0: each has a colour, and from the eighth on a dash, of its own */
    bool faint;    /* thin, behind the others */
    bool again;    /* thinner; of a label that another curve has already, not in the legend */
    double *x, *y; /* [count] owned by whoever draws */
    int count;
};

struct chart {
    const char *title, *x_title; /* "Test accuracy, %", "seconds of training" */
    bool logarithmic;            /* its y, where that helps */
    bool percent;                /* its y ends at 0 and 100, if it comes that far */
    bool whole;                  /* its x has ticks at whole numbers */
    double x_most;               /* it goes this far, so that charts beside each other end alike; 0: any */
    bool marked;                 /* with a dashed line at y = mark */
    double mark;
    const double *changes; /* [change_count] with a dashed line at each x */
    int change_count;
    const struct curve *curves;
    int count;
};

void chart_curves(struct html *html, const struct chart *chart);
/* Of curves that several charts share. */
void chart_legend(struct html *html, const struct curve *curves, int count);

/* The legend of the five times. */
void chart_parts(struct html *html);
/* Shares of one whole as a bar, each with its percentage where there is room. */
void chart_shares(struct html *html, const double seconds[PARTS]);
/* How the time of a worker was spent, over time. */
void chart_time(struct html *html, const struct step_facts *steps, int worker);
/* The axis under lanes. */
void chart_seconds_axis(struct html *html, double from_s, double length_s);
/* A worker's steps in a stretch. */
void chart_steps(struct html *html, const struct stretch *stretch, int worker);
/* How many gradients had which staleness; `most`: the share that is as high as the picture. */
void chart_staleness(struct html *html, const struct stale *stale, const struct stale_bars *bars,
                     double most);
/* A bar of `share` of the width. */
void chart_bar(struct html *html, double share, int colour);

#endif
