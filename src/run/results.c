/* What the program prints last: the three lines of the reference program, and where the time went. */
#include <math.h>

#include "../infer/evaluate.h"
#include "../record/digits.h"
#include "../record/lines.h"
#include "../record/sentence.h"
#include "results.h"
#include "run.h"

void results_print(const struct results *results, const char *sentence) {
    struct lines lines;
    char score[METRIC_BYTES], cost[DIGITS_BYTES];
    lines_open(&lines, stdout, NULL);
    if (results) {
        if (!isnan(results->test_score))
            lines_say(&lines, "Test-%s: %s", metric_rows[results->metric].title,
                      metric_plain(results->metric, results->test_score, score));
        if (results->views && !isnan(results->views_score))
            lines_say(&lines, "Test-%s-By-%s: %s", metric_rows[results->metric].title, results->views,
                      metric_plain(results->metric, results->views_score, score));
        lines_say(&lines, "Total Time: %.2fs", results->train_seconds);
        digits_fixed(cost, results->final_cost, 4);
        lines_say(&lines, "Final Cost: %s", cost);
    }
    if (sentence[0] != '\0') lines_fit(&lines, "%s", sentence);
    lines_close(&lines, results == NULL);
}

void run_print_results(int code, const struct run_result *result) {
    const struct summary *summary = &result->summary;
    const struct results results = {.metric = summary->metric,
                                    .test_score = summary->test_score,
                                    .views_score = summary->views_score,
                                    .views = views_titles[result->config.views],
                                    .train_seconds = summary->train_seconds,
                                    .final_cost = summary->final_cost};
    char sentence[SENTENCE_BYTES] = "";
    if (!result->config.quiet) sentence_of_run(summary, sentence, sizeof sentence);
    results_print(code == OK ? &results : NULL, sentence);
}
