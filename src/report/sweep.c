/* See sweep.h. */
#include "sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "several.h"

enum { SETTINGS_SHOWN = 16 };

int sweep_check(const struct cells *sweep, const char *path, struct error *error) {
    const bool figures = cells_column(sweep, "run") == SWEEP_RUN &&
                         cells_column(sweep, "reason") == SWEEP_REASON &&
                         strncmp(cells_at(sweep, 0, SWEEP_METRIC), "validation_", 11) == 0;
    bool runs = figures && sweep->columns > SWEEP_FIGURES;
    for (int row = 1; row < sweep->rows && runs; row++) runs = cells_count(sweep, row, SWEEP_RUN) == row;
    if (runs) return OK;
    return error_set(error, ERROR_FILE, "%s: expected the table of a sweep", path);
}

static double metric_at(const struct cells *sweep, int row) {
    const char *cell = cells_at(sweep, row, SWEEP_METRIC);
    char *end;
    const double value = strtod(cell, &end);
    return end == cell ? (double)NAN : value;
}

static bool is_accuracy(const struct cells *sweep) {
    return strcmp(cells_at(sweep, 0, SWEEP_METRIC), "validation_accuracy") == 0;
}

static bool comes_before(const struct cells *sweep, int row, int other) {
    const double a = metric_at(sweep, row), b = metric_at(sweep, other);
    if (isnan(a) || isnan(b)) return !isnan(a) && isnan(b);
    return is_accuracy(sweep) ? a > b : a < b;
}

void sweep_order(const struct cells *sweep, int *order) {
    for (int row = 1; row < sweep->rows; row++) {
        int place = row - 1;
        for (; place > 0 && comes_before(sweep, row, order[place - 1]); place--)
            order[place] = order[place - 1];
        order[place] = row;
    }
}

/* --- the section --- */

bool has_sweep(const struct report *report) {
    return report->sweep && report->sweep->rows > 1;
}

static void metric_cell(struct table *table, const struct cells *sweep, const char *cell) {
    char number[NUMBER_BYTES];
    const double value = strtod(cell, NULL);
    if (isnan(value))
        table_cell(table, "-");
    else if (is_accuracy(sweep))
        table_cell(table, "%s", number_percent(value, 2, number));
    else
        table_cell(table, "%.6g", value);
}

static void write_row(struct table *table, const struct cells *sweep, int row, int settings) {
    char number[NUMBER_BYTES];
    table_row(table);
    table_cell(table, "%s", cells_at(sweep, row, SWEEP_RUN));
    for (int s = 0; s < settings; s++) table_cell(table, "%s", cells_at(sweep, row, SWEEP_FIGURES + s));
    metric_cell(table, sweep, cells_at(sweep, row, SWEEP_METRIC));
    table_cell(table, "%s", cells_at(sweep, row, SWEEP_EPOCHS));
    const double seconds = strtod(cells_at(sweep, row, SWEEP_SECONDS), NULL);
    table_cell(table, "%s", isnan(seconds) ? "-" : number_seconds(seconds, number));
    const char *reason = cells_at(sweep, row, SWEEP_REASON);
    table_cell(table, "%s%s%s", cells_at(sweep, row, SWEEP_STATUS), reason[0] ? ": " : "", reason);
}

static void write_rows(struct html *html, const struct cells *sweep, const int *order) {
    struct column columns[SETTINGS_SHOWN + 5] = {{"run", true}};
    int settings = 0, count = 1;
    for (; settings < SETTINGS_SHOWN && SWEEP_FIGURES + settings < sweep->columns; settings++)
        columns[count++] = (struct column){cells_at(sweep, 0, SWEEP_FIGURES + settings), false};
    columns[count++] = (struct column){cells_at(sweep, 0, SWEEP_METRIC) + strlen("validation_"), false};
    columns[count++] = (struct column){"epochs", false};
    columns[count++] = (struct column){"training", false};
    columns[count++] = (struct column){"status", true};
    struct table table = table_begin(html, columns, count);
    for (int i = 0; i < sweep->rows - 1; i++) write_row(&table, sweep, order[i], settings);
    table_end(&table);
}

static void write_words(struct html *html, const struct cells *sweep, int best) {
    char number[NUMBER_BYTES];
    const double test = strtod(cells_at(sweep, best, SWEEP_TEST), NULL);
    html_put(html, "<p class=\"quiet\">");
    html_say(html, "%d runs, ranked by the %s of the validation part at each run's best epoch.",
             sweep->rows - 1, cells_at(sweep, 0, SWEEP_METRIC) + strlen("validation_"));
    if (!isnan(test) && strcmp(cells_at(sweep, 0, SWEEP_TEST), "test_accuracy") == 0)
        html_say(html, " Only the best one was tested: %s of the test part are right.",
                 number_percent(test, 2, number));
    else if (!isnan(test))
        html_say(html, " Only the best one was tested: its RMSE on the test part is %.6g.", test);
    html_put(html, "</p>\n");
}

int write_sweep(struct html *html, const struct report *report, struct error *error) {
    const struct cells *sweep = report->sweep;
    int *order = NULL;
    RETURN_IF(memory_array(&order, sweep->rows, "an order", error));
    sweep_order(sweep, order);
    write_words(html, sweep, order[0]);
    const int code = chart_coordinates(html, sweep, order, error);
    write_rows(html, sweep, order);
    memory_free(order);
    return code;
}
