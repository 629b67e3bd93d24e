/* For tests of the library: a call that succeeds, and one that is refused with a code and words. */
#ifndef TESTS_LIBRARY_CHECK_H
#define TESTS_LIBRARY_CHECK_H

#include <string.h>

#include "../src/library/trainer.h"
#include "check.h"

static struct trainer_error error;

#define GOOD(call) CHECK((call) == TRAINER_OK, "%s", error.words)
#define REFUSED(call, wanted, part)                                                                          \
    do {                                                                                                     \
        error = (struct trainer_error){0};                                                                   \
        const int code_ = (call);                                                                            \
        CHECK(code_ == (wanted) && error.code == code_, "code %d: %s", code_, error.words);                  \
        CHECK(strstr(error.words, (part)), "\"%s\" without \"%s\"", error.words, (part));                    \
    } while (0)

#endif
