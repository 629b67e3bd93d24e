/* What a run has to say of itself at its end: that it diverged, or that it learnt nothing. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "open.h"

/* A final cost of so many times the first one is no bad luck of a batch. */
#define DIVERGED_TIMES 10.0

int run_check_diverged(const struct run *run, struct error *error) {
    if (!run_is_hopeless(run)) return OK;
    return error_set(error, ERROR_DIVERGED,
                     "training diverged: the loss was %.4g in the first steps and is %.4g in the last, over "
                     "%g times as much (a smaller rate than %s may help)",
                     run_first_cost(run), run_final_cost(run), HOPELESS_TIMES, run->setup.config.optimizer);
}

double run_guess_loss(const struct run *run) {
    return loss_of_guessing(run->setup.loss, run->setup.dataset.classes);
}

/* One that only is large may have come of what was tried on purpose. The loss of guessing counts, too: a
 * resumed run begins near 0. */
static void judge_diverged(const struct run *run, struct summary *summary) {
    const double guessing = run_guess_loss(run);
    const double begin = summary->first_cost > guessing ? summary->first_cost : guessing;
    if (!(summary->final_cost > DIVERGED_TIMES * begin)) return;
    snprintf(
        summary->verdict.diverged, VERDICT_BYTES,
        "training diverged: the loss was %.4g in the first steps and is %.4g in the last, where guessing "
        "has %.2f; a smaller rate than %s may help",
        summary->first_cost, summary->final_cost, guessing, run->setup.config.optimizer);
}

/* Who always says the most frequent class is right as often as that is. */
static double guessed_right(const struct run *run) {
    const struct dataset *dataset = &run->setup.dataset;
    int most = 0;
    for (int c = 0; c < dataset->classes; c++) {
        int count = 0;
        for (int i = 0; i < dataset->test.count; i++) count += dataset->test.labels[i] == c;
        if (count > most) most = count;
    }
    return dataset->test.count > 0 ? (double)most / dataset->test.count : 0.0;
}

/* No better than guessing, as far as so many examples can tell: three standard deviations. A run of fewer
 * updates than these tells nothing of its settings. */
enum { LEARNING_UPDATES = 100 };
/* Whoever gets so much right of what guessing gets wrong has learnt, however few examples are tested. */
#define LEARNT_LEAST 0.1

/* Sigmoids, which mlp has unless it is told otherwise, learn slowly where the inputs are not small. */
enum { OTHER_BYTES = 120 };
static const char *other_model(const struct config *config, char out[OTHER_BYTES]) {
    const char *model = config->model, *const name = "mlp";
    out[0] = '\0';
    if (strncmp(model, name, strlen(name)) != 0 || strstr(model, "activation=") || strlen(model) > 60)
        return out;
    snprintf(out, OTHER_BYTES, ", --model=%.60s%sactivation=relu", model, strchr(model, ':') ? "," : ":");
    return out;
}

/* A loss so many times that of guessing has gone up; gradients so old are a cause of that. */
#define RISEN_TIMES 1.5
#define STALE_UPDATES 8.0

static void add_advice(const struct run *run, const struct summary *summary, struct text *words) {
    const struct config *config = &run->setup.config;
    const double guessing = run_guess_loss(run);
    char model[OTHER_BYTES];
    if (!(summary->final_cost > RISEN_TIMES * guessing)) {
        text_add(words, "; try another --optimizer or rate (now %s)%s, or more --epochs", config->optimizer,
                 other_model(config, model));
        return;
    }
    text_add(words, "; the loss is %.3g, where guessing has %.2f: a smaller rate than %s may help",
             summary->final_cost, guessing, config->optimizer);
    if (summary->staleness.mean >= STALE_UPDATES)
        text_add(words,
                 ", or fresher gradients, which are %.0f updates old on average: fewer devices, or sync",
                 summary->staleness.mean);
}

static void judge_classes(const struct run *run, struct summary *summary) {
    struct text words = text_into(summary->verdict.learnt_nothing, VERDICT_BYTES);
    const double guessed = guessed_right(run), examples = run->tested.examples;
    const double spread = 3.0 * sqrt(guessed * (1.0 - guessed) / fmax(examples, 1.0));
    const double chance = guessed + fmin(spread, LEARNT_LEAST * (1.0 - guessed));
    if (run->tested.score > chance || guessed >= 1.0 || summary->updates < LEARNING_UPDATES) return;
    text_add(&words,
             "nothing was learnt: %.1f %% of the test examples are right, and always saying the most "
             "frequent class has %.1f %%",
             100 * run->tested.score, 100 * guessed);
    add_advice(run, summary, &words);
}

/* These have a metric that says 0 of what always says the mean, or 0.5 of what says anything. */
static void judge_others(const struct run *run, struct summary *summary) {
    struct text words = text_into(summary->verdict.learnt_nothing, VERDICT_BYTES);
    const bool values = run->setup.dataset.task == TASK_VALUES;
    const enum metric metric = values ? METRIC_R2 : METRIC_AUC;
    if (!(run->tested.value[metric] <= (values ? 0.0 : 0.5)) || summary->updates < LEARNING_UPDATES) return;
    text_add(&words, "nothing was learnt: %s on the test part is %.3g, and a constant prediction scores %s",
             metric_rows[metric].words, run->tested.value[metric], values ? "0" : "0.5");
    add_advice(run, summary, &words);
}

void run_judge(const struct run *run, struct summary *summary) {
    judge_diverged(run, summary);
    if (run->tested.examples == 0 || run->interrupted) return; /* broken off: it was given no time to learn */
    if (run->setup.dataset.task == TASK_CLASSES)
        judge_classes(run, summary);
    else
        judge_others(run, summary);
}

void run_say_verdict(struct run *run, const struct summary *summary) {
    const struct verdict *verdict = &summary->verdict;
    if (verdict->diverged[0]) progress_warn(&run->progress, "%s", verdict->diverged);
    if (verdict->learnt_nothing[0]) progress_warn(&run->progress, "%s", verdict->learnt_nothing);
}
