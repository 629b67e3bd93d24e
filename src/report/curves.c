/* Curves in a frame, see chart.h. */
#include <math.h>
#include "../base/text.h"
#include "chart.h"

/* Of the picture, in its own units; a column of the page is about as many pixels wide. */
enum {
    WIDTH = 420,
    HEIGHT = 260,
    LEFT = 50,
    RIGHT = 14,
    TOP = 12,
    BOTTOM = 44,
    COLOURS = 7,
    DOTS = 32,
    X_TICKS = 6,
    Y_TICKS = 6
};

/* From this ratio on a logarithmic axis shows more. */
static const double ratio_matters = 8;

/* A number that a picture can have; what runs away further is as good as infinite. */
static bool is_drawn(double value) {
    return fabs(value) < 1e30;
}

struct reach {
    double least, most;
    bool any;
};

static void widen(struct reach *range, const double *values, int count) {
    for (int i = 0; i < count; i++) {
        if (!is_drawn(values[i])) continue;
        range->least = range->any ? fmin(range->least, values[i]) : values[i];
        range->most = range->any ? fmax(range->most, values[i]) : values[i];
        range->any = true;
    }
}

struct frame {
    struct scale x, y;
};

static bool make_frame(const struct chart *chart, struct frame *frame) {
    struct reach x = {0}, y = {0};
    for (int c = 0; c < chart->count; c++) {
        widen(&x, chart->curves[c].x, chart->curves[c].count);
        widen(&y, chart->curves[c].y, chart->curves[c].count);
    }
    if (!x.any || !y.any) return false;
    const double end = fmax(chart->x_most, x.most > 0.0 ? x.most : 1.0);
    frame->x = chart->whole ? scale_whole(end, X_TICKS) : scale_linear(0.0, end, X_TICKS, false);
    if (chart->logarithmic && y.least > 0.0 && y.most > ratio_matters * y.least)
        frame->y = scale_logarithmic(y.least * 0.9, y.most * 1.1);
    else
        frame->y = scale_linear(y.least, y.most, Y_TICKS, true);
    if (chart->percent) scale_cut(&frame->y, fmin(0.0, y.least), fmax(100.0, y.most));
    return true;
}

static double place_x(const struct frame *frame, double x) {
    return LEFT + (WIDTH - LEFT - RIGHT) * scale_place(&frame->x, x);
}

static double place_y(const struct frame *frame, double y) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * scale_place(&frame->y, y);
}

static void write_axes(struct html *html, const struct frame *frame, const char *x_title) {
    char number[NUMBER_BYTES];
    for (int i = 0; i < frame->y.count; i++) {
        const double y = place_y(frame, frame->y.ticks[i]);
        html_put(html, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
        html_put(html, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6, y + 4,
                 scale_text(&frame->y, i, number));
    }
    for (int i = 0; i < frame->x.count; i++) {
        const double x = place_x(frame, frame->x.ticks[i]);
        html_put(html, "<path class=\"axis\" d=\"M%.1f %dv5\"/>", x, HEIGHT - BOTTOM);
        html_put(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x,
                 HEIGHT - BOTTOM + 18, scale_text(&frame->x, i, number));
    }
    html_put(html, "<path class=\"axis\" d=\"M%d %dH%d\"/>", LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT);
    html_put(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6);
    html_text(html, x_title);
    html_put(html, "</text>\n");
}

static void put_class(struct html *html, const struct curve *curve) {
    html_put(html, "class=\"curve c%d%s%s\"", curve->colour % COLOURS,
             curve->colour / COLOURS % 3 == 1   ? " dash"
             : curve->colour / COLOURS % 3 == 2 ? " dots"
                                                : "",
             curve->faint   ? " faint"
             : curve->again ? " again"
                            : "");
}

static bool is_point(const struct frame *frame, const struct curve *curve, int i) {
    return is_drawn(curve->x[i]) && is_drawn(curve->y[i]) && (!frame->y.logarithmic || curve->y[i] > 0.0);
}

static void write_curve(struct html *html, const struct frame *frame, const struct curve *curve) {
    bool drawing = false;
    html_put(html, "<path ");
    put_class(html, curve);
    html_put(html, " d=\"");
    for (int i = 0; i < curve->count; i++) {
        const bool point = is_point(frame, curve, i);
        if (point)
            html_put(html, "%c%.1f %.1f", drawing ? 'L' : 'M', place_x(frame, curve->x[i]),
                     place_y(frame, curve->y[i]));
        drawing = point;
    }
    html_put(html, "\"/>\n");
    if (curve->faint || curve->count > DOTS) return;
    for (int i = 0; i < curve->count; i++)
        if (is_point(frame, curve, i))
            html_put(html, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"/>",
                     curve->colour % COLOURS, place_x(frame, curve->x[i]), place_y(frame, curve->y[i]));
    html_put(html, "\n");
}

void chart_legend(struct html *html, const struct curve *curves, int count) {
    html_put(html, "<ul class=\"legend\">\n");
    for (int i = 0; i < count; i++) {
        if (curves[i].again) continue;
        html_put(html, "<li><svg width=\"28\" height=\"10\" aria-hidden=\"true\"><path ");
        put_class(html, &curves[i]);
        html_put(html, " d=\"M1 5h26\"/></svg>");
        html_text(html, curves[i].label);
        html_put(html, "</li>\n");
    }
    html_put(html, "</ul>\n");
}

void chart_curves(struct html *html, const struct chart *chart) {
    struct frame frame;
    if (!make_frame(chart, &frame)) return;
    html_put(html, "<figure><figcaption>");
    html_say(html, "%s%s", chart->title, frame.y.logarithmic ? " (logarithmic)" : "");
    html_put(html, "</figcaption>\n");
    html_put(html, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    html_say(html, "%s over %s", chart->title, chart->x_title);
    html_put(html, "\">\n");
    write_axes(html, &frame, chart->x_title);
    if (chart->marked && chart->mark >= frame.y.least && chart->mark <= frame.y.most)
        html_put(html, "<path class=\"mark\" d=\"M%d %.1fH%d\"/>\n", LEFT, place_y(&frame, chart->mark),
                 WIDTH - RIGHT);
    for (int i = 0; i < chart->change_count; i++)
        if (chart->changes[i] > 0.0 && chart->changes[i] < frame.x.most)
            html_put(html, "<path class=\"mark\" d=\"M%.1f %dV%d\"/>\n", place_x(&frame, chart->changes[i]),
                     TOP, HEIGHT - BOTTOM);
    for (int i = 0; i < chart->count; i++)
        if (chart->curves[i].faint) write_curve(html, &frame, &chart->curves[i]);
    for (int i = 0; i < chart->count; i++)
        if (!chart->curves[i].faint) write_curve(html, &frame, &chart->curves[i]);
    html_put(html, "</svg>\n</figure>\n");
}
