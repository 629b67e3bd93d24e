/* The page of one run: its sections, and what they share. */
#include "one_run.h"

const struct facts *run_of(const struct report *report) {
    return &report->runs[0];
}

static bool has_summary(const struct report *report) {
    return run_of(report)->has_summary;
}

static bool has_epochs(const struct report *report) {
    return run_of(report)->epochs.count > 0;
}

static bool has_steps(const struct report *report) {
    return run_of(report)->steps.rows > 0;
}

static bool has_workers(const struct report *report) {
    return run_of(report)->summary.workers > 0 || has_steps(report);
}

void write_name(struct html *html, const struct facts *facts, int worker) {
    char name[80];
    html_put(html, "<div class=\"name\"><b>");
    html_text(html, facts_worker(facts, worker, name, sizeof name));
    html_put(html, "</b>");
    if (worker < facts->summary.workers && facts->workers[worker].lost) html_put(html, "<span>lost</span>");
    html_put(html, "</div>\n");
}

void say_more(struct html *html, int count) {
    if (count > LANES_MOST)
        html_element(html, "p class=\"quiet\"", "And %d more workers, which are not drawn.",
                     count - LANES_MOST);
}

static int write_what(struct html *html, const struct report *report, struct error *error) {
    (void)error;
    write_settings(html, run_of(report));
    return OK;
}

static bool has_settings(const struct report *report) {
    return run_of(report)->setting_count > 0;
}

static int write_again(struct html *html, const struct report *report, struct error *error) {
    RETURN_IF(write_command(html, run_of(report), error));
    write_command_note(html, run_of(report));
    return OK;
}

const struct section one_run_sections[] = {
    {"glance", "At a glance", NULL, write_glance},
    {"curves", "What it learnt", has_epochs, write_learnt},
    {"time", "Where the time went", has_workers, write_time_spent},
    {"waits", "Who waited for whom", has_waits, write_waits},
    {"steps", "Step by step", has_steps, write_step_by_step},
    {"staleness", "How old gradients were", has_steps, write_staleness},
    {"losses", "Faults and losses", has_summary, write_losses},
    {"settings", "What was run", has_settings, write_what},
    {"repeat", "How to repeat it", has_settings, write_again},
    {0},
};
