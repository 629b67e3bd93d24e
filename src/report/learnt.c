/* The curves of a run. */
#include <math.h>
#include "../base/memory.h"
#include "one_run.h"

enum { TRAIN, TEST, VALIDATION, BATCHES, KINDS };

/* The mean loss of the steps in each bin of time. */
static int curve_of_steps(struct curve *curve, const struct step_facts *steps, struct error *error) {
    RETURN_IF(memory_array(&curve->x, FACTS_BINS, "a curve", error));
    RETURN_IF(memory_array(&curve->y, FACTS_BINS, "a curve", error));
    for (int b = 0; b < FACTS_BINS; b++) {
        if (steps->losses[b] == 0) continue;
        curve->x[curve->count] = fmin((b + 0.5) * steps->bin_s, steps->end_s);
        curve->y[curve->count++] = steps->loss[b] / (double)steps->losses[b];
    }
    return OK;
}

static bool has_validation(const struct facts *facts) {
    for (int i = 0; i < facts->epochs.count; i++)
        if (isfinite(facts->epochs.rows[i].validation_loss)) return true;
    return false;
}

/* All of them, with nothing to draw yet. */
static void name_curves(struct curve curves[KINDS], bool validation, bool batches) {
    curves[TRAIN] = (struct curve){.label = "training, mean of the epoch", .colour = 1};
    curves[TEST] = (struct curve){.label = "test", .colour = 0};
    curves[VALIDATION] = (struct curve){.label = "validation", .colour = 2, .again = !validation};
    curves[BATCHES] = (struct curve){
        .label = "training, as the batches come", .colour = 1, .faint = true, .again = !batches};
}

/* What the curves are drawn over. */
struct axis {
    epoch_value *x;
    const char *title;
    double most;                    /* both charts over it end there */
    double changes[SUMMARY_PHASES]; /* [change_count] where another strategy began */
    int change_count;
};

/* Where the epoch before its first one ended; of many epochs, the last of them that is in the curve. */
static void find_changes(const struct facts *facts, struct axis *axis) {
    for (int p = 1; p < facts->summary.phase_count; p++) {
        const struct epoch_row *row = facts->epochs.rows;
        for (int i = 0; i < facts->epochs.count; i++)
            if (facts->epochs.rows[i].epoch < facts->phases[p].from_epoch) row = &facts->epochs.rows[i];
        axis->changes[axis->change_count++] = axis->x(row);
    }
}

/* "Strategies: async-lockfree, from epoch 4 on sync (at the dashed lines)." */
static void write_strategies(struct html *html, const struct facts *facts) {
    if (facts->summary.phase_count < 2) return;
    html_put(html, "<p>");
    html_say(html, "Strategies: %s", facts->phases[0].strategy);
    for (int p = 1; p < facts->summary.phase_count; p++)
        html_say(html, "; from epoch %d on, where a dashed line is, %s", facts->phases[p].from_epoch,
                 facts->phases[p].strategy);
    html_put(html, ".</p>\n");
}

static void write_chart(struct html *html, struct curve curves[KINDS], const struct axis *axis,
                        const struct chart *like) {
    struct chart chart = *like;
    chart.x_title = axis->title;
    chart.x_most = axis->most;
    chart.whole = axis->x == value_epoch;
    chart.changes = axis->changes;
    chart.change_count = axis->change_count;
    chart.curves = curves;
    chart.count = KINDS;
    chart_curves(html, &chart);
    for (int i = 0; i < KINDS; i++) curve_free(&curves[i]);
}

static int write_loss(struct html *html, const struct facts *facts, const struct axis *axis,
                      struct error *error) {
    struct curve curves[KINDS];
    name_curves(curves, true, true);
    int code = curve_of_epochs(&curves[TRAIN], facts, axis->x, value_train_loss, error);
    if (code == OK) code = curve_of_epochs(&curves[TEST], facts, axis->x, value_test_loss, error);
    if (code == OK) code = curve_of_epochs(&curves[VALIDATION], facts, axis->x, value_validation_loss, error);
    if (code == OK && axis->x == value_seconds) code = curve_of_steps(&curves[BATCHES], &facts->steps, error);
    write_chart(html, curves, axis, &(struct chart){.title = "Loss", .logarithmic = true});
    return code;
}

static int write_score(struct html *html, const struct facts *facts, const struct axis *axis,
                       struct error *error) {
    const struct metric_row *metric = &metric_rows[facts->epochs.metric];
    struct curve curves[KINDS];
    char title[32];
    snprintf(title, sizeof title, "%s%s", metric->title, metric->share ? ", %" : "");
    name_curves(curves, true, true);
    int code = curve_of_epochs(&curves[TEST], facts, axis->x, value_test_score, error);
    if (code == OK)
        code = curve_of_epochs(&curves[VALIDATION], facts, axis->x, value_validation_score, error);
    write_chart(html, curves, axis, &(struct chart){.title = title, .percent = metric->share});
    return code;
}

int write_learnt(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    const struct epoch_row *last = &facts->epochs.rows[facts->epochs.count - 1];
    struct axis epochs = {.x = value_epoch, .title = "epoch", .most = last->epoch};
    struct axis seconds = {
        .x = value_seconds, .title = "seconds of training", .most = fmax(last->time_s, facts->steps.end_s)};
    find_changes(facts, &epochs);
    find_changes(facts, &seconds);
    write_strategies(html, facts);
    struct curve curves[KINDS];
    name_curves(curves, has_validation(facts), facts->steps.rows > 0);
    chart_legend(html, curves, KINDS);
    html_put(html, "<div class=\"charts\">\n");
    RETURN_IF(write_loss(html, facts, &epochs, error));
    RETURN_IF(write_loss(html, facts, &seconds, error));
    RETURN_IF(write_score(html, facts, &epochs, error));
    RETURN_IF(write_score(html, facts, &seconds, error));
    html_put(html, "</div>\n");
    return OK;
}
