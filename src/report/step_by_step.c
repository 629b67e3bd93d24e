/* A stretch of time, step by step. */
#include "one_run.h"

void write_steps_note(struct html *html) {
    html_put(html, "Numbers mark the compute phase of each step. Gaps are between epochs. "
                   "<code>--from=SECONDS</code> <code>--length=SECONDS</code> shows another stretch.</p>\n");
}

void write_steps(struct html *html, const struct facts *facts) {
    const struct stretch *stretch = &facts->stretch;
    char most[NUMBER_BYTES], asked[NUMBER_BYTES], all[NUMBER_BYTES], length[NUMBER_BYTES];
    for (int w = 0; w < facts->steps.count && w < LANES_MOST; w++) {
        html_put(html, "<div class=\"lane-box\">");
        write_name(html, facts, w);
        chart_steps(html, stretch, w);
        html_put(html, "</div>\n");
    }
    chart_seconds_axis(html, stretch->from_s, stretch->length_s);
    say_more(html, facts->steps.count);
    if (stretch->count == 0) html_element(html, "p class=\"note\"", "No step lies in this stretch.");
    if (stretch->left_out > 0)
        html_element(
            html, "p class=\"note\"",
            "At most %s steps are drawn: the stretch that was asked for, %s, has %s, and the picture "
            "ends after %s.",
            number_text(FACTS_STRETCH, most), number_seconds(stretch->asked_s, asked),
            number_text((double)stretch->left_out + stretch->count, all),
            number_seconds(stretch->length_s, length));
}

int write_step_by_step(struct html *html, const struct report *report, struct error *error) {
    char from[NUMBER_BYTES], length[NUMBER_BYTES];
    const struct stretch *stretch = &run_of(report)->stretch;
    (void)error;
    html_put(html, "<p class=\"quiet\">");
    html_say(html, "%s of the run, from %s on. ", number_seconds(stretch->length_s, length),
             number_seconds(stretch->from_s, from));
    write_steps_note(html);
    chart_parts(html);
    write_steps(html, run_of(report));
    return OK;
}
