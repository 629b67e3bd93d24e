/* Parallel coordinates, see sweep.h. An axis whose values are all numbers is a scale, logarithmic where they
 * are far apart; any other one has a place for each value, in the order in which they come. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"
#include "chart.h"
#include "sweep.h"

/* Of the picture, in its own units. */
enum {
    WIDTH = 1100,
    HEIGHT = 330,
    LEFT = 60,
    RIGHT = 70,
    TOP = 34,
    BOTTOM = 16,
    TICKS = 6,
    WORDS_SHOWN = 18
};

/* From this ratio on a logarithmic axis shows more. */
static const double ratio_matters = 20;

struct axis {
    const char *title;
    bool numbers;
    struct scale scale;
    double *place; /* [rows] of each row, 0 at the bottom to 1; NAN: none */
    int *first;    /* [kinds] a row that has the value */
    int kinds;     /* of words: different values */
};

static bool is_number(const char *cell, double *value) {
    char *end;
    *value = strtod(cell, &end);
    return end != cell && *end == '\0';
}

static void make_scale(struct axis *axis, const struct cells *sweep, int column) {
    double least = INFINITY, most = -INFINITY, value;
    axis->numbers = true;
    for (int row = 1; row < sweep->rows; row++) {
        axis->numbers = axis->numbers && is_number(cells_at(sweep, row, column), &value);
        if (!axis->numbers || !isfinite(value)) continue;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    if (!axis->numbers || !(least <= most)) return;
    axis->scale = least > 0.0 && most > ratio_matters * least ? scale_logarithmic(least, most)
                                                              : scale_linear(least, most, TICKS, true);
}

static void place_words(struct axis *axis, const struct cells *sweep, int column) {
    for (int row = 1; row < sweep->rows; row++) {
        int kind = 0;
        while (kind < axis->kinds &&
               strcmp(cells_at(sweep, axis->first[kind], column), cells_at(sweep, row, column)) != 0)
            kind++;
        if (kind == axis->kinds) axis->first[axis->kinds++] = row;
        axis->place[row] = kind;
    }
    for (int row = 1; row < sweep->rows; row++)
        axis->place[row] = axis->kinds > 1 ? axis->place[row] / (axis->kinds - 1) : 0.5;
}

static int open_axis(struct axis *axis, const struct cells *sweep, int column, struct error *error) {
    axis->title = cells_at(sweep, 0, column);
    RETURN_IF(memory_array(&axis->place, sweep->rows, "an axis", error));
    RETURN_IF(memory_array(&axis->first, sweep->rows, "an axis", error));
    make_scale(axis, sweep, column);
    if (!axis->numbers) place_words(axis, sweep, column);
    for (int row = 1; axis->numbers && row < sweep->rows; row++) {
        double value;
        is_number(cells_at(sweep, row, column), &value);
        axis->place[row] = isfinite(value) ? scale_place(&axis->scale, value) : (double)NAN;
    }
    return OK;
}

static double height(double place) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * place;
}

static double x_of(int axis, int axes) {
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * axis / (axes - 1);
}

static void write_tick(struct html *html, double x, double place, const char *words) {
    html_put(html, "<path class=\"axis\" d=\"M%.1f %.1fh5\"/>", x, height(place));
    html_put(html, "<text x=\"%.1f\" y=\"%.1f\">", x + 8, height(place) + 4);
    html_say(html, "%.*s%s", WORDS_SHOWN, words, strlen(words) > WORDS_SHOWN ? "..." : "");
    html_put(html, "</text>\n");
}

static void write_axis(struct html *html, const struct axis *axis, const struct cells *sweep, int column,
                       double x) {
    char number[NUMBER_BYTES];
    html_put(html, "<path class=\"axis\" d=\"M%.1f %dV%d\"/>", x, TOP, HEIGHT - BOTTOM);
    html_put(html, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" class=\"count\">", x, TOP - 14);
    html_text(html, axis->title);
    html_put(html, "</text>\n");
    for (int i = 0; axis->numbers && i < axis->scale.count; i++)
        write_tick(html, x, scale_place(&axis->scale, axis->scale.ticks[i]),
                   scale_text(&axis->scale, i, number));
    for (int i = 0; !axis->numbers && i < axis->kinds; i++)
        write_tick(html, x, axis->place[axis->first[i]], cells_at(sweep, axis->first[i], column));
}

/* The best one is drawn last, over the others. */
static void write_run(struct html *html, const struct axis *axes, int count, const struct cells *sweep,
                      int row, bool best) {
    if (isnan(axes[count - 1].place[row])) return;
    html_put(html, "<path class=\"curve %s\" d=\"", best ? "c1" : "c0 faint");
    for (int a = 0; a < count; a++)
        html_put(html, "%c%.1f %.1f", a == 0 ? 'M' : 'L', x_of(a, count), height(axes[a].place[row]));
    html_put(html, "\"><title>");
    html_say(html, "run %s:", cells_at(sweep, row, SWEEP_RUN));
    for (int a = 0; a < count; a++)
        html_say(html, " %s=%s", axes[a].title,
                 cells_at(sweep, row, a < count - 1 ? SWEEP_FIGURES + a : SWEEP_METRIC));
    html_put(html, "</title></path>\n");
}

static void write_chart(struct html *html, const struct axis *axes, int count, const struct cells *sweep,
                        const int *order) {
    html_put(html,
             "<figure><figcaption>Settings and result of each run; the best one stands out</figcaption>\n"
             "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Parallel coordinates "
             "of the runs\">\n",
             WIDTH, HEIGHT);
    for (int i = sweep->rows - 2; i >= 0; i--) write_run(html, axes, count, sweep, order[i], i == 0);
    for (int a = 0; a < count; a++)
        write_axis(html, &axes[a], sweep, a < count - 1 ? SWEEP_FIGURES + a : SWEEP_METRIC, x_of(a, count));
    html_put(html, "</svg>\n</figure>\n");
}

int chart_coordinates(struct html *html, const struct cells *sweep, const int *order, struct error *error) {
    const int count = sweep->columns - SWEEP_FIGURES + 1;
    struct axis *axes = NULL;
    RETURN_IF(memory_array(&axes, count, "the axes", error));
    int code = OK;
    for (int a = 0; a < count && code == OK; a++)
        code = open_axis(&axes[a], sweep, a < count - 1 ? SWEEP_FIGURES + a : SWEEP_METRIC, error);
    if (code == OK) write_chart(html, axes, count, sweep, order);
    for (int a = 0; a < count; a++) {
        memory_free(axes[a].place);
        memory_free(axes[a].first);
    }
    memory_free(axes);
    return code;
}
