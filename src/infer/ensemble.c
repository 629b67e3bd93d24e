/* See ensemble.h. */
#include "ensemble.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../report/cells.h"

/* --- opening; a network that is open stays where it is --- */

/* Its examples are prepared as those of the first. */
static int check_member(const struct ensemble *ensemble, int member, const char *path, struct error *error) {
    const struct restored *first = &ensemble->members[0], *restored = &ensemble->members[member];
    const char *first_data = safetensors_text(&first->content, "dataset");
    const char *data = safetensors_text(&restored->content, "dataset");
    if (restored->task != TASK_CLASSES)
        return error_set(error, ERROR_FILE, "%s: a network without classes, expected a member with them",
                         path);
    if (first_data && data && strcmp(first_data, data) == 0 && first->classes == restored->classes &&
        shape_equal(&first->shape, &restored->shape))
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
    float *own; /* [examples][classes] of the member in hand */
    float *sum; /* [examples][classes] of the probabilities */
    int *votes; /* [examples][classes] */
    int *said;  /* [examples] by the member in hand */
    long count; /* examples */
    int classes, members;
};

static int answers_open(struct answers *answers, const struct ensemble *ensemble, long count,
                        struct error *error) {
    *answers =
        (struct answers){.count = count, .classes = ensemble->members[0].classes, .members = ensemble->count};
    RETURN_IF(memory_array(&answers->own, count * answers->classes, "probabilities", error));
    RETURN_IF(memory_array(&answers->sum, count * answers->classes, "probabilities", error));
    RETURN_IF(memory_array(&answers->votes, count * answers->classes, "votes", error));
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
    RETURN_IF(
        evaluator_predict(&member->evaluator, examples, member->weights, answers->own, answers->said, error));
    for (long i = 0; i < answers->count * answers->classes; i++) answers->sum[i] += answers->own[i];
    for (long i = 0; i < answers->count; i++) answers->votes[i * answers->classes + answers->said[i]]++;
    return OK;
}

/* The class of the highest mean; by VOTE the one of most votes, and of those with as many the higher mean. A
 * single member has said it itself, by its logits, which differ where probabilities are the same. */
static int class_of(const struct answers *answers, long example, enum ensemble_by by) {
    const float *sum = answers->sum + example * answers->classes;
    const int *votes = answers->votes + example * answers->classes;
    int best = 0;
    if (answers->members == 1) return answers->said[example];
    for (int c = 1; c < answers->classes; c++) {
        const int more = by == ENSEMBLE_VOTE ? votes[c] - votes[best] : 0;
        if (more > 0 || (more == 0 && sum[c] > sum[best])) best = c;
    }
    return best;
}

static int predict(struct ensemble *ensemble, struct answers *answers, const struct examples *examples,
                   enum ensemble_by by, float *probabilities, int *said, struct error *error) {
    for (int m = 0; m < ensemble->count; m++) RETURN_IF(ask(answers, &ensemble->members[m], examples, error));
    const float members = (float)ensemble->count;
    for (long i = 0; i < answers->count * answers->classes; i++)
        probabilities[i] =
            by == ENSEMBLE_VOTE ? (float)answers->votes[i] / members : answers->sum[i] / members;
    for (long i = 0; said && i < answers->count; i++) said[i] = class_of(answers, i, by);
    return OK;
}

int ensemble_predict(struct ensemble *ensemble, const struct examples *examples, enum ensemble_by by,
                     float *probabilities, int *said, struct error *error) {
    struct restored *first = &ensemble->members[0];
    struct answers answers;
    if (!ensemble->listed)
        return evaluator_predict(&first->evaluator, examples, first->weights, probabilities, said, error);
    int code = answers_open(&answers, ensemble, examples->count, error);
    if (code == OK) code = predict(ensemble, &answers, examples, by, probabilities, said, error);
    answers_close(&answers);
    return code;
}

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
        const float *own = answers->sum + (long)i * answers->classes;
        sum -= log(fmax((double)own[examples->labels[i]] / answers->members, 1e-38));
    }
    return sum / examples->count;
}

int ensemble_evaluate(struct ensemble *ensemble, const struct examples *examples,
                      struct ensemble_result *result, struct error *error) {
    struct answers answers = {0};
    *result = (struct ensemble_result){0};
    int code = memory_array(&result->member, ensemble->count, "accuracies", error);
    if (code == OK) code = answers_open(&answers, ensemble, examples->count, error);
    for (int m = 0; m < ensemble->count && code == OK; m++) {
        code = ask(&answers, &ensemble->members[m], examples, error);
        if (code == OK) result->member[m] = share_right(examples, &answers, true, ENSEMBLE_MEAN);
    }
    if (code == OK) {
        result->mean = share_right(examples, &answers, false, ENSEMBLE_MEAN);
        result->vote = share_right(examples, &answers, false, ENSEMBLE_VOTE);
        result->cost = mean_cost(examples, &answers);
    }
    answers_close(&answers);
    return code;
}

void ensemble_result_free(struct ensemble_result *result) {
    memory_free(result->member);
    *result = (struct ensemble_result){0};
}
