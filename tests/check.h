/* For the test programs: CHECK says where and what failed, and counts; a test's main ends with `return
 * check_end();`. */
#ifndef TRAINER_TESTS_CHECK_H
#define TRAINER_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int check_failures, check_count;

#define CHECK(condition, ...)                                                                                \
    do {                                                                                                     \
        check_count++;                                                                                       \
        if (!(condition)) {                                                                                  \
            check_failures++;                                                                                \
            fprintf(stderr, "%s:%d: %s is false: ", __FILE__, __LINE__, #condition);                         \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fputc('\n', stderr);                                                                             \
        }                                                                                                    \
    } while (0)

static inline int check_end(void) {
    if (check_count == 0) fprintf(stderr, "no check was made\n");
    return check_failures != 0 || check_count == 0;
}

/* A number of the environment. */
static inline uint64_t number_of(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text && text[0] ? strtoull(text, NULL, 10) : otherwise;
}

/* EVERY=N: one case in N, as .ci/run has it under sanitizers: they look at what is done, which is the same in
 * all. */
static inline bool is_chosen(uint64_t number) {
    return number % number_of("EVERY", 1) == 0;
}

#endif
