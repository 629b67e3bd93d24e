/* The text of --share, and whole numbers from it. See shares.h. */
#include "shares.h"

#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"

enum { WEIGHT_MOST = 2000000000 };

bool shares_are_even(const char *text) {
    return strcmp(text, "even") == 0;
}

bool shares_are_measured(const char *text) {
    return strcmp(text, "auto") == 0;
}

/* The weight that *at begins with, and *at behind it and its comma; 0: there is none. */
static long next_weight(const char **at) {
    char *end = NULL;
    if (**at < '0' || **at > '9') return 0;
    const long weight = strtol(*at, &end, 10);
    if ((*end != ',' && *end != '\0') || (*end == ',' && end[1] == '\0')) return 0;
    *at = *end == ',' ? end + 1 : end;
    return weight <= WEIGHT_MOST ? weight : 0;
}

int shares_check(const char *text, int *weights, struct error *error) {
    const char *at = text;
    *weights = 0;
    if (shares_are_even(text) || shares_are_measured(text)) return OK;
    do {
        if (next_weight(&at) == 0)
            return error_set(
                error, ERROR_USAGE,
                "--share=%.200s: expected even, auto, or a whole number above 0 for each worker, "
                "as in 3,1",
                text);
        (*weights)++;
    } while (*at);
    return OK;
}

/* Of `units` in all: what worker w is short of its exact part, times the sum of the weights. */
static long missing(const long *weight, long sum, long units, const long *given, int w) {
    return units * weight[w] - given[w] * sum;
}

/* given[workers], one at least where there is a weight, `units` together. */
static void divide(const long *weight, long sum, int workers, long units, long *given) {
    long left = units;
    for (int w = 0; w < workers; w++) {
        given[w] = units * weight[w] / sum;
        if (given[w] < 1 && weight[w] > 0) given[w] = 1;
        left -= given[w];
    }
    for (; left != 0; left += left > 0 ? -1 : 1) {
        int best = -1;
        for (int w = 0; w < workers; w++) {
            const long now = missing(weight, sum, units, given, w);
            if (weight[w] == 0 || (left < 0 && given[w] == 1)) continue;
            const long least = best < 0 ? 0 : missing(weight, sum, units, given, best);
            if (best < 0 || (left > 0 ? now > least : now < least)) best = w;
        }
        given[best] += left > 0 ? 1 : -1;
    }
}

static int read_weights(const char *text, int workers, long *weight, struct error *error) {
    int count = 0;
    for (int w = 0; w < workers; w++) weight[w] = 1;
    if (shares_are_even(text)) return OK;
    RETURN_IF(shares_check(text, &count, error));
    if (count != workers)
        return error_set(error, ERROR_USAGE,
                         "--share=%.200s: found %d weight%s, expected %d, one for each worker", text, count,
                         count == 1 ? "" : "s", workers);
    for (int w = 0; w < workers; w++) weight[w] = next_weight(&text);
    return OK;
}

int shares_divide(const char *text, int workers, const bool *there, int total, int microbatches, int *sizes,
                  struct error *error) {
    long *weight = NULL, *given = NULL, sum = 0;
    RETURN_IF(memory_array(&weight, workers, "shares", error));
    int code = memory_array(&given, workers, "shares", error);
    if (code == OK) code = read_weights(text, workers, weight, error);
    for (int w = 0; w < workers && code == OK; w++) sum += weight[w] *= !there || there[w];
    if (code == OK) divide(weight, sum, workers, total / microbatches, given);
    for (int w = 0; w < workers && code == OK; w++) sizes[w] = (int)given[w] * microbatches;
    memory_free(given);
    memory_free(weight);
    return code;
}

int shares_cut(const char *text, int workers, int batch, int microbatches, int *sizes, struct error *error) {
    for (int w = 0; w < workers; w++) sizes[w] = batch;
    if (shares_are_even(text)) return OK;
    return shares_divide(text, workers, NULL, workers * batch, microbatches, sizes, error);
}

bool shares_equal(const int *sizes, int workers, int batch) {
    for (int w = 0; w < workers; w++)
        if (sizes[w] != batch) return false;
    return true;
}

int shares_write(const int *sizes, int workers, char *out, size_t bytes, struct error *error) {
    struct text text = text_into(out, bytes);
    for (int w = 0; w < workers; w++) text_item(&text, ",", "%d", sizes[w]);
    if (!text.cut) return OK;
    return error_set(error, ERROR_USAGE, "--share=auto: expected fewer than %d workers", workers);
}
