/* The results of a sweep on the terminal: a row per run, the best first, then the best one's command. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../report/facts.h"
#include "../report/page.h"
#include "sweep.h"

enum { FIGURES = 40 }; /* columns before the settings */

/* "accuracy", above its column */
static const char *metric_title(const struct sweep *sweep) {
    return sweep->metric_name + strlen("validation_");
}

static void settings_text(const struct sweep *sweep, int run, struct text *text) {
    for (int v = 0; v < sweep->variation_count; v++)
        text_item(text, " ", "%s=%s", sweep->variations[v].name, sweep->runs[run].values[v]);
}

static int print_run(const struct sweep *sweep, const struct page *page, int place, int number,
                     struct error *error) {
    const struct sweep_run *run = &sweep->runs[number];
    struct text words = text_growing(error);
    char metric[METRIC_BYTES], line[160];
    const bool loss = sweep->settings.metric == SWEEP_LOSS;
    snprintf(metric, sizeof metric, "%.6g", run->metric);
    if (!loss) metric_text(sweep->score, run->metric, metric);
    if (isnan(run->metric)) snprintf(metric, sizeof metric, "%s", sweep_status_words[run->status]);
    snprintf(line, sizeof line, "%5d %5d  %10s %6d %7.3g  ", place, number + 1, metric, run->epochs,
             isnan(run->seconds) ? 0.0 : run->seconds);
    settings_text(sweep, number, &words);
    if (run->status == SWEEP_FAILED) text_add(&words, ": %s", run->reason);
    const int code = text_end(&words);
    if (code == OK) fputs(line, page->file);
    if (code == OK) page_words(page, FIGURES, FIGURES, words.bytes);
    memory_free(words.bytes);
    return code;
}

/* The device and the threads that the run had, wherever that was: as its summary.json says. */
static int add_machine(const struct sweep *sweep, int run, struct text *text, struct error *error) {
    struct facts *facts = NULL;
    char folder[PATH_BYTES];
    RETURN_IF(sweep_folder(sweep, run, folder, error));
    RETURN_IF(memory_array(&facts, 1, "facts of a run", error));
    const int code = facts_read(facts, folder, FACTS_CURVES, error);
    if (code == OK && facts->has_summary) {
        text_add(text, " --devices=%s", facts->summary.devices);
        if (facts->summary.threads > 0) text_add(text, " --threads=%d", facts->summary.threads);
    }
    facts_free(facts);
    memory_free(facts);
    return code;
}

/* What was typed, and what was drawn. */
static void command_text(const struct typed *typed, char *value, struct text *text) {
    static const char *const left_out[] = {"out", "resume", "quiet", "devices", "threads"};
    const struct option *const of_clusters = option_find(run_options, "secret-file");
    text_add(text, "trainer");
    for (const struct option *row = run_options; row->name; row++) {
        bool given, out = strcmp(row->group, of_clusters->group) == 0;
        memcpy(&given, (const char *)typed + row->given, sizeof given);
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
            out = out || strcmp(left_out[i], row->name) == 0;
        if (!given || out) continue;
        option_text(row, typed, value, CONFIG_VALUE_BYTES);
        text_add(text, " --%s=", row->name);
        command_word(text, value);
    }
}

static int print_command(const struct sweep *sweep, const struct page *page, int run, struct error *error) {
    struct text text = text_growing(error);
    struct typed *typed = NULL;
    char *value = NULL;
    RETURN_IF(memory_array(&value, CONFIG_VALUE_BYTES, "a setting", error));
    int code = memory_array(&typed, 1, "settings", error);
    if (code == OK) code = sweep_typed(sweep, run, typed, error);
    if (code == OK) {
        command_text(typed, value, &text);
        code = add_machine(sweep, run, &text, error);
    }
    if (code == OK) code = text_end(&text);
    if (code == OK) page_commands(page, text.bytes);
    memory_free(text.bytes);
    memory_free(typed);
    memory_free(value);
    return code;
}

static int print_rows(const struct sweep *sweep, const struct page *page, struct error *error) {
    int *order = NULL, code = OK;
    RETURN_IF(memory_array(&order, sweep->count, "an order", error));
    sweep_rank(sweep, order);
    fprintf(page->file, "%5s %5s  %10s %6s %7s  settings\n", "place", "run", metric_title(sweep), "epochs",
            "seconds");
    for (int i = 0; i < sweep->count && code == OK; i++)
        code = print_run(sweep, page, i + 1, order[i], error);
    memory_free(order);
    return code;
}

int sweep_print(const struct sweep *sweep, const struct page *page, struct error *error) {
    const int best = sweep_best(sweep);
    char line[PATH_BYTES + 200], folder[PATH_BYTES], figure[METRIC_BYTES];
    RETURN_IF(print_rows(sweep, page, error));
    snprintf(line, sizeof line, "%s is that of the validation part, at each run's best epoch.",
             metric_title(sweep));
    fputc('\n', page->file);
    page_words(page, 0, 2, line);
    if (best < 0 || isnan(sweep->runs[best].test)) return OK;
    snprintf(line, sizeof line, "The best is run %d: %s on the test part, in %s/%d/checkpoint/best.",
             best + 1, metric_figure(sweep->score, sweep->runs[best].test, figure), sweep->out, best + 1);
    page_words(page, 0, 2, line);
    RETURN_IF(sweep_folder(sweep, best, folder, error));
    RETURN_IF(facts_print_sentence(folder, "Run", best + 1, page, error));
    fputs("To train it again:\n\n", page->file);
    RETURN_IF(print_command(sweep, page, best, error));
    fprintf(page->file, "\nsweep.csv and all runs are in %s\n", sweep->out);
    return OK;
}
