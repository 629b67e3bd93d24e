/* For the test programs: CHECK says where and what failed, and counts; a test's main ends with `return
 * check_end();`. */
#ifndef TRAINER_TESTS_CHECK_H
#define TRAINER_TESTS_CHECK_H

#include <stdio.h>

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

#endif
