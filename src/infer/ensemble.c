/* See ensemble.h. */
#include "ensemble.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../report/cells.h"
#include "units.h"

/* --- opening; a network that is open stays where it is --- */

/* Its examples are prepared as those of the first. */
static int check_member(const struct ensemble *ensemble, int member, const char *path, struct error *error) {
    const struct restored *first = &ensemble->members[0], *restored = &ensemble->members[member];
    const char *first_data = safetensors_text(&first->content, "dataset");
    const char *data = safetensors_text(&restored->content, "dataset");
    if (restored->task == TASK_LABELS)
        return error_set(error, ERROR_FILE, "%s: a network of labels, expected a member of classes or values",
                         path);
    if (first_data && data && strcmp(first_data, data) == 0 && first->task == restored->task &&
        first->classes == restored->classes && shape_equal(&first->shape, &restored->shape) &&
        units_equal(&first->units, &restored->units, first->classes))
        return OK;
    return error_set(error, ERROR_FILE, "%s: trained on %.150s, expected %.150s as the first member", path,
                     data ? data : "an unknown data set", first_data ? first_data : "one that is named");
}

static int open_list(struct ensemble *ensemble, const char *folder, const char *list, bool reference_only,
                     struct error *error) {
    struct cells cells = {0};
    char path[PATH_BYTES];
    RETURN_IF(cells_read(&cells, list, error));
    const int names = cells_column(&cells, "member"), status = cells_column(&cells, "status");
    int code = OK;
    if (names < 0 || status < 0 || cells.rows - 1 > ENSEMBLE_MEMBERS)
        code = error_set(error, ERROR_FILE, "%s: expected the columns member and status, and %d rows at most",
                         list, ENSEMBLE_MEMBERS);
    if (code == OK) code = memory_array(&ensemble->members, cells.rows, "the members", error);
    for (int row = 1; row < cells.rows && code == OK; row++) {
        if (strcmp(cells_at(&cells, row, status), "finished") != 0) continue;
        code = file_join(path, folder, cells_at(&cells, row, names), error);
        if (code == OK)
            code = restored_open(&ensemble->members[ensemble->count++], path, reference_only, error);
        if (code == OK) code = check_member(ensemble, ensemble->count - 1, path, error);
    }
    cells_free(&cells);
    if (code == OK && ensemble->count == 0)
        return error_set(error, ERROR_FILE, "%s: found no member that is trained", list);
    return code;
}

int ensemble_open(struct ensemble *ensemble, const char *path, bool reference_only, struct error *error) {
    char list[PATH_BYTES];
    *ensemble = (struct ensemble){0};
    RETURN_IF(file_join(list, path, ENSEMBLE_LIST, error));
    ensemble->listed = file_exists(list);
    if (ensemble->listed) return open_list(ensemble, path, list, reference_only, error);
    RETURN_IF(memory_array(&ensemble->members, 1, "the network", error));
    ensemble->count = 1;
    return restored_open(&ensemble->members[0], path, reference_only, error);
}

void ensemble_close(struct ensemble *ensemble) {
    for (int m = 0; m < ensemble->count; m++) restored_close(&ensemble->members[m]);
    memory_free(ensemble->members);
    *ensemble = (struct ensemble){0};
}

/* --- asking --- */

/* What the members have said so far. */
struct answers {
    float *own; /* [examples][outputs] of the member in hand */
    float *sum; /* [examples][outputs] of probabilities, or of values in the networks' units */
    int *votes; /* [examples][outputs] of classes */
    int *said;  /* [examples] by the member in hand, of classes */
    long count; /* examples */
    int outputs, members;
    bool classes; /* they say classes; else values */
};

static int answers_open(struct answers *answers, const struct ensemble *ensemble, long count,
                        struct error *error) {
    const struct restored *first = &ensemble->members[0];
    *answers = (struct answers){.count = count,
                                .outputs = first->classes,
                                .members = ensemble->count,
                                .classes = first->task == TASK_CLASSES};
    RETURN_IF(memory_array(&answers->own, count * answers->outputs, "answers", error));
    RETURN_IF(memory_array(&answers->sum, count * answers->outputs, "answers", error));
    RETURN_IF(memory_array(&answers->votes, count * answers->outputs, "votes", error));
    return memory_array(&answers->said, count, "predictions", error);
}

static void answers_close(struct answers *answers) {
    memory_free(answers->own);
    memory_free(answers->sum);
    memory_free(answers->votes);
    memory_free(answers->said);
}

static int ask(struct answers *answers, struct restored *member, const struct examples *examples,
               struct error *error) {
    RETURN_IF(evaluator_outputs(&member->evaluator, examples, member->weights, answers->own,
                                answers->classes ? answers->said : NULL, error));
    for (long i = 0; i < answers->count * answers->outputs; i++) answers->sum[i] += answers->own[i];
    for (long i = 0; answers->classes && i < answers->count; i++)
        answers->votes[i * answers->outputs + answers->said[i]]++;
    return OK;
}

static float mean_of(const struct answers *answers, long answer) {
    return answers->sum[answer] / (float)answers->members;
}

/* The class of the highest mean; by VOTE the one of most votes, and of those with as many the higher mean. A
 * single member has said it itself, by its logits, which differ where probabilities are the same. */
static int class_of(const struct answers *answers, long example, enum ensemble_by by) {
    const float *sum = answers->sum + example * answers->outputs;
    const int *votes = answers->votes + example * answers->outputs;
    int best = 0;
    if (answers->members == 1) return answers->said[example];
    for (int c = 1; c < answers->outputs; c++) {
        const int more = by == ENSEMBLE_VOTE ? votes[c] - votes[best] : 0;
        if (more > 0 || (more == 0 && sum[c] > sum[best])) best = c;
    }
    return best;
}

/* Values in their own units. */
static void give_values(const struct answers *answers, const struct units *units, float *values) {
    for (long i = 0; i < answers->count * answers->outputs; i++) {
        const long o = i % answers->outputs;
        values[i] = mean_of(answers, i);
        if (units->deviation) values[i] = values[i] * units->deviation[o] + units->mean[o];
    }
}

static int predict(struct ensemble *ensemble, struct answers *answers, const struct examples *examples,
                   enum ensemble_by by, float *outputs, int *said, struct error *error) {
    for (int m = 0; m < ensemble->count; m++) RETURN_IF(ask(answers, &ensemble->members[m], examples, error));
    if (!answers->classes) {
        give_values(answers, &ensemble->members[0].units, outputs);
        return OK;
    }
    for (long i = 0; i < answers->count * answers->outputs; i++)
        outputs[i] =
            by == ENSEMBLE_VOTE ? (float)answers->votes[i] / (float)ensemble->count : mean_of(answers, i);
    for (long i = 0; said && i < answers->count; i++) said[i] = class_of(answers, i, by);
    return OK;
}

int ensemble_predict(struct ensemble *ensemble, const struct examples *examples, enum ensemble_by by,
                     float *outputs, int *said, struct error *error) {
    struct restored *first = &ensemble->members[0];
    struct answers answers;
    if (!ensemble->listed)
        return evaluator_predict(&first->evaluator, examples, first->weights, outputs, said, error);
    if (by == ENSEMBLE_VOTE && first->task == TASK_VALUES)
        return error_set(error, ERROR_USAGE, "--combine=vote: expected mean, as the members say values");
    int code = answers_open(&answers, ensemble, examples->count, error);
    if (code == OK) code = predict(ensemble, &answers, examples, by, outputs, said, error);
    answers_close(&answers);
    return code;
}

/* --- judging --- */

static double share_right(const struct examples *examples, const struct answers *answers, bool of_member,
                          enum ensemble_by by) {
    long right = 0;
    for (int i = 0; i < examples->count; i++)
        right += (of_member ? answers->said[i] : class_of(answers, i, by)) == examples->labels[i];
    return (double)right / examples->count;
}

/* Of the smallest probability a float can have, where a class got none at all. */
static double mean_cost(const struct examples *examples, const struct answers *answers) {
    double sum = 0.0;
    for (int i = 0; i < examples->count; i++) {
        const float *own = answers->sum + (long)i * answers->outputs;
        sum -= log(fmax((double)own[examples->labels[i]] / answers->members, 1e-38));
    }
    return sum / examples->count;
}

/* The metrics of values[count][outputs] in the networks' units. */
static int judge_values(const struct restored *first, const struct examples *examples, const float *values,
                        double value[METRICS], struct error *error) {
    struct figures figures = {0};
    int code = figures_open(&figures, first->task, first->classes, first->units, examples->count, error);
    if (code == OK) {
        figures_add(&figures, examples, 0, examples->count, values, NULL);
        code = figures_end(&figures, examples, value, error);
    }
    figures_close(&figures);
    return code;
}

static int judge_member(const struct ensemble *ensemble, const struct answers *answers,
                        const struct examples *examples, double *score, struct error *error) {
    const struct restored *first = &ensemble->members[0];
    double value[METRICS];
    if (answers->classes) {
        *score = share_right(examples, answers, true, ENSEMBLE_MEAN);
        return OK;
    }
    RETURN_IF(judge_values(first, examples, answers->own, value, error));
    *score = value[metric_of(first->task)];
    return OK;
}

static int judge_all(const struct ensemble *ensemble, struct answers *answers,
                     const struct examples *examples, struct ensemble_result *result, struct error *error) {
    if (answers->classes) {
        result->score = share_right(examples, answers, false, ENSEMBLE_MEAN);
        result->vote = share_right(examples, answers, false, ENSEMBLE_VOTE);
        result->cost = mean_cost(examples, answers);
        return OK;
    }
    for (long i = 0; i < answers->count * answers->outputs; i++) answers->own[i] = mean_of(answers, i);
    RETURN_IF(judge_values(&ensemble->members[0], examples, answers->own, result->value, error));
    result->score = result->value[result->metric];
    return OK;
}

int ensemble_evaluate(struct ensemble *ensemble, const struct examples *examples,
                      struct ensemble_result *result, struct error *error) {
    struct answers answers = {0};
    *result = (struct ensemble_result){
        .metric = metric_of(ensemble->members[0].task), .vote = (double)NAN, .cost = (double)NAN};
    for (enum metric m = 0; m < METRICS; m++) result->value[m] = (double)NAN;
    int code = memory_array(&result->member, ensemble->count, "scores", error);
    if (code == OK) code = answers_open(&answers, ensemble, examples->count, error);
    for (int m = 0; m < ensemble->count && code == OK; m++) {
        code = ask(&answers, &ensemble->members[m], examples, error);
        if (code == OK) code = judge_member(ensemble, &answers, examples, &result->member[m], error);
    }
    if (code == OK) code = judge_all(ensemble, &answers, examples, result, error);
    answers_close(&answers);
    return code;
}

void ensemble_result_free(struct ensemble_result *result) {
    memory_free(result->member);
    *result = (struct ensemble_result){0};
}
