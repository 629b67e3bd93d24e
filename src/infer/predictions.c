/* Predictions as text and as CSV. */
#include "predictions.h"

#include <stdio.h>

#include "../base/csv.h"

/* A name can hold anything; a line of results is one line. */
static void print_name(const char *name) {
    for (const char *c = name; *c; c++) putchar((unsigned char)*c < ' ' || *c == 127 ? '?' : *c);
}

/* Of one value "prediction", of several "prediction=NAME" each. */
static void print_values_header(const struct restored *restored, const char *carried) {
    fputs(carried, stdout);
    for (int c = 0; c < restored->classes; c++) {
        if (c > 0) putchar(',');
        if (restored->classes > 1)
            csv_print_parts(stdout, "prediction=", restored->class_names[c]);
        else
            fputs("prediction", stdout);
    }
    putchar('\n');
}

void predictions_begin(struct predictions *predictions, const char *carried) {
    const struct restored *restored = predictions->restored;
    if (predictions->format == PREDICTIONS_TEXT || predictions->is_begun) return;
    predictions->is_begun = true;
    if (restored->task == TASK_VALUES) {
        print_values_header(restored, carried);
        return;
    }
    printf("%sprediction", carried);
    for (int c = 0; c < restored->classes; c++) {
        putchar(',');
        csv_print_parts(stdout, "probability=", restored->class_names[c]);
    }
    putchar('\n');
}

static int best_of(const float *probabilities, int classes) {
    int best = 0;
    for (int c = 1; c < classes; c++)
        if (probabilities[c] > probabilities[best]) best = c;
    return best;
}

/* The most probable class after `last`: less probable, or as probable with a higher number. */
static int next_best(const float *probabilities, int classes, int last) {
    int best = -1;
    for (int c = 0; c < classes; c++) {
        const bool after =
            probabilities[c] < probabilities[last] || (probabilities[c] == probabilities[last] && c > last);
        if (after && (best < 0 || probabilities[c] > probabilities[best])) best = c;
    }
    return best;
}

/* Of labels, those that are more probable than not, however many these are. */
static int count_likely(const float *probabilities, int count) {
    int likely = 0;
    for (int c = 0; c < count; c++) likely += probabilities[c] >= 0.5f;
    return likely;
}

static void print_words(const struct predictions *predictions, const float *probabilities, int best) {
    const struct restored *restored = predictions->restored;
    const bool labels = restored->task == TASK_LABELS && predictions->top == 1;
    const int top = labels ? count_likely(probabilities, restored->classes) : predictions->top;
    if (top == 0) printf("Prediction is none");
    for (int k = 0; k < top && best >= 0; k++) {
        printf(k == 0 ? "Prediction is \"" : ", \"");
        print_name(restored->class_names[best]);
        printf("\" (%.1f%%)", 100.0 * (double)probabilities[best]);
        best = next_best(probabilities, restored->classes, best);
    }
    putchar('\n');
}

/* Prediction is 0.246; of several values with their names, "width" 0.246, "height" 1.7 */
static void print_values(const struct restored *restored, const float *values) {
    printf("Prediction is ");
    for (int c = 0; c < restored->classes; c++) {
        if (c > 0) printf(", ");
        if (restored->classes > 1) putchar('"');
        if (restored->classes > 1) print_name(restored->class_names[c]);
        if (restored->classes > 1) printf("\" ");
        printf("%.6g", (double)values[c]);
    }
    putchar('\n');
}

/* The labels that are said, with blanks between, in one cell. */
static void print_labels(const struct restored *restored, const float *probabilities) {
    const char *before = "";
    bool quotes = false;
    for (int c = 0; c < restored->classes; c++)
        quotes = quotes || (probabilities[c] >= 0.5f && csv_needs_quotes(restored->class_names[c]));
    if (quotes) putchar('"');
    for (int c = 0; c < restored->classes; c++) {
        if (probabilities[c] < 0.5f) continue;
        fputs(before, stdout);
        csv_print_piece(stdout, restored->class_names[c]);
        before = " ";
    }
    if (quotes) putchar('"');
}

/* The cells behind those that are carried over. */
static void print_cells(const struct restored *restored, const float *outputs, int best) {
    const bool values = restored->task == TASK_VALUES;
    if (restored->task == TASK_LABELS)
        print_labels(restored, outputs);
    else if (!values)
        csv_print(stdout, restored->class_names[best]);
    for (int c = 0; c < restored->classes; c++)
        printf("%s%.6g", values && c == 0 ? "" : ",", (double)outputs[c]);
    putchar('\n');
}

int predictions_add(const struct predictions *predictions, const char *name, const char *carried,
                    const float *probabilities) {
    const struct restored *restored = predictions->restored;
    const int best = best_of(probabilities, restored->classes);
    if (predictions->format == PREDICTIONS_CSV) {
        fputs(carried, stdout);
        print_cells(restored, probabilities, best);
        return best;
    }
    if (predictions->named) {
        print_name(name);
        printf(": ");
    }
    if (restored->task == TASK_VALUES)
        print_values(restored, probabilities);
    else
        print_words(predictions, probabilities, best);
    return best;
}
