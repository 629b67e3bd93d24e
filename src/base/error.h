/* Errors: a code that travels up, and the words, said once where it happened.
 *
 * A function that can fail returns one of the codes below (0 is success) and takes a `struct error *` as its
 * last argument. Where the failure happens, `error_set` writes one line that names the file or option, what
 * was found and what was expected. Everyone above only passes the code on. The codes are the exit codes of
 * the program; only main prints the words and exits. */
#ifndef TRAINER_BASE_ERROR_H
#define TRAINER_BASE_ERROR_H

#include <stdbool.h>

enum error_code {
    OK = 0,
    ERROR_INTERNAL = 1,     /* our own mistake */
    ERROR_USAGE = 2,        /* command line */
    ERROR_FILE = 3,         /* a file or its format */
    ERROR_DEVICE = 4,       /* a device, or its memory */
    ERROR_PEER = 5,         /* a worker, server or machine was lost, or gave no sign of life */
    ERROR_DIVERGED = 6,     /* the loss is not a number */
    ERROR_INTERRUPTED = 130 /* Ctrl-C */
};

struct error {
    int code;        /* enum error_code */
    char words[500]; /* one line, no newline at the end */
};

/* Stores `code` and the formatted words, unless an earlier error is already there: the first failure is the
 * one reported. Returns the code stored, so that `return error_set(...)` reads well. `error` is not NULL. */
__attribute__((format(printf, 3, 4))) int error_set(struct error *error, int code, const char *format, ...);

/* Puts words in front of the error that is there ("iris_test.csv: ..."); nothing when there is none. Returns
 * its code. */
__attribute__((format(printf, 2, 3))) int error_prefix(struct error *error, const char *format, ...);

#define RETURN_IF(call)                                                                                      \
    do {                                                                                                     \
        const int return_if_code_ = (call);                                                                  \
        if (return_if_code_ != 0) return return_if_code_;                                                    \
    } while (0)

#endif
