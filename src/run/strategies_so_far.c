/* Which strategies a run has had, one after the other: those of --strategy, and, where it was resumed, those
 * of the parts before. */
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "open.h"

_Static_assert((int)SUMMARY_PHASES == (int)PHASES_MOST, "a summary has room for all");

/* One that had no epoch of its own goes. The list keeps the last ones. */
static int append(struct summary_phase *list, int count, const char *strategy, int from_epoch) {
    while (count > 0 && list[count - 1].from_epoch >= from_epoch) count--;
    if (count == SUMMARY_PHASES) memmove(list, list + 1, (size_t)--count * sizeof *list);
    snprintf(list[count].strategy, sizeof list[count].strategy, "%s", strategy);
    list[count].from_epoch = from_epoch;
    return count + 1;
}

/* "1 sync; 4 async-lockfree", as run_strategies_text has it. What is none is passed over: it is for readers
 * alone. */
void run_read_strategies(struct run *run) {
    const char *text = safetensors_text(&run->checkpoint, "strategies");
    const char *now = safetensors_text(&run->checkpoint, "strategy_now");
    for (const char *at = text; at && *at; at += strspn(at, "; ")) {
        char *name, strategy[SUMMARY_PHASE_BYTES];
        const long from = strtol(at, &name, 10);
        const size_t bytes = strcspn(name, ";");
        if (*name == ' ' && bytes > 1 && bytes < sizeof strategy && from >= 1 &&
            from <= run->epochs_before + 1) {
            snprintf(strategy, sizeof strategy, "%.*s", (int)bytes - 1, name + 1);
            run->earlier_count = append(run->earlier, run->earlier_count, strategy, (int)from);
        }
        at = name + bytes;
    }
    if (!text && now && run->next_phase == 0 && run->epochs_before > 0)
        run->earlier_count = append(run->earlier, 0, now, 1);
}

/* Whether the one that the part before ended with goes on. */
static bool goes_on(const struct run *run, const char *strategy) {
    return run->earlier_count > 0 && strcmp(run->earlier[run->earlier_count - 1].strategy, strategy) == 0;
}

int run_strategies(const struct run *run, struct summary_phase list[SUMMARY_PHASES]) {
    const int least = run->earlier_count > 0 ? run->epochs_before + 1 : 1;
    int count = run->earlier_count;
    memcpy(list, run->earlier, (size_t)count * sizeof *list);
    for (int p = 0; p <= run->phase; p++) {
        const char *strategy = run->setup.phases.list[p].strategy.text;
        const int from = p > 0 ? run->phase_ends[p - 1] + 1 : 1;
        const bool is_over = p < run->phase && run->phase_ends[p] < (from < least ? least : from);
        if (is_over || (from < least && goes_on(run, strategy))) continue;
        count = append(list, count, strategy, from < least ? least : from);
    }
    return count;
}

void run_strategies_text(const struct run *run, struct text *text) {
    struct summary_phase list[SUMMARY_PHASES];
    const int count = run_strategies(run, list);
    for (int p = 0; p < count; p++) text_item(text, "; ", "%d %s", list[p].from_epoch, list[p].strategy);
}
