/* How old gradients were. */
#include <math.h>
#include "../base/memory.h"
#include "one_run.h"

static bool is_stale(const struct step_facts *steps) {
    for (int w = 0; w < steps->count; w++)
        if (steps->workers[w].stale.max > 0) return true;
    return false;
}

static int choose_bars(struct stale_bars *bars, const struct step_facts *steps, struct error *error) {
    struct stale *all = NULL;
    RETURN_IF(memory_array(&all, 1, "the staleness of all workers", error));
    for (int w = 0; w < steps->count; w++) stale_merge(all, &steps->workers[w].stale);
    *bars = stale_bars(all);
    memory_free(all);
    return OK;
}

static double highest_share(const struct step_facts *steps, const struct stale_bars *bars) {
    double most = 0.0;
    for (int w = 0; w < steps->count; w++)
        for (int i = 0; i < bars->count + bars->above; i++)
            most = fmax(most, stale_share(&steps->workers[w].stale, bars, i));
    return most;
}

static void write_histogram(struct html *html, const struct facts *facts, int worker,
                            const struct stale_bars *bars, double most) {
    const struct stale *stale = &facts->steps.workers[worker].stale;
    char name[80], mean[NUMBER_BYTES];
    html_put(html, "<figure><div class=\"name\"><b>");
    html_text(html, facts_worker(facts, worker, name, sizeof name));
    html_put(html, "</b><span>");
    html_say(html, "mean %s, at most %ld",
             number_text(stale->gradients > 0 ? stale->sum / (double)stale->gradients : (double)NAN, mean),
             stale->max);
    html_put(html, "</span></div>\n");
    chart_staleness(html, stale, bars, most);
    html_put(html, "</figure>\n");
}

enum { SHARDS_MOST = 32 };

static void write_shards(struct html *html, const struct summary *summary) {
    static const struct column columns[] = {
        {"shard", true}, {"mean", false}, {"median", false}, {"99 %", false}, {"max", false}};
    html_put(html, "<figure class=\"below\"><figcaption>By shard</figcaption>\n");
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int s = 0; s < summary->shards_here && s < SHARDS_MOST; s++) {
        const struct summary_staleness *of = &summary->shard_staleness[s];
        table_row(&table);
        table_cell(&table, "shard %d", s);
        table_cell(&table, "%.2f", of->mean);
        table_cell(&table, "%ld", of->p50);
        table_cell(&table, "%ld", of->p99);
        table_cell(&table, "%ld", of->max);
    }
    table_end(&table);
    html_put(html, "</figure>\n");
}

int write_staleness(struct html *html, const struct report *report, struct error *error) {
    const struct facts *facts = run_of(report);
    struct stale_bars bars;
    char share[NUMBER_BYTES];
    if (!is_stale(&facts->steps)) {
        html_element(html, "p", "Every gradient was applied to the weights that it was computed on.");
        return OK;
    }
    RETURN_IF(choose_bars(&bars, &facts->steps, error));
    const double most = highest_share(&facts->steps, &bars);
    html_element(html, "p class=\"quiet\"",
                 "Updates between reading the weights and applying the gradient, the most over the shards. "
                 "The highest bar of all is %s of its worker's gradients.%s",
                 number_percent(most, 1, share),
                 bars.width > 1 ? " Bars cover ranges; the label is the lower end." : "");
    html_put(html, "<div class=\"small\">\n");
    for (int w = 0; w < facts->steps.count && w < LANES_MOST; w++)
        if (facts->steps.workers[w].rows > 0) write_histogram(html, facts, w, &bars, most);
    html_put(html, "</div>\n");
    say_more(html, facts->steps.count);
    if (facts->summary.shards_here > 1) write_shards(html, &facts->summary);
    return OK;
}
