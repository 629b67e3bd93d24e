/* Errors: keeps the first failure's code and words, always as one printable line, whatever a file or a peer
 * put into them. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes below a space would break the line, or let a file's contents drive the terminal. */
static void make_one_line(char *words) {
    for (char *c = words; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = ' ';
}

int error_set(struct error *error, int code, const char *format, ...) {
    if (error->code != OK) return error->code;
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(error->words, sizeof error->words, format, arguments) < 0)
        snprintf(error->words, sizeof error->words, "%s", format);
    va_end(arguments);
    make_one_line(error->words);
    error->code = code == OK ? ERROR_INTERNAL : code;
    return error->code;
}

int error_prefix(struct error *error, const char *format, ...) {
    if (error->code == OK) return OK;
    char words[sizeof error->words];
    memcpy(words, error->words, sizeof words);
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(error->words, sizeof error->words, format, arguments);
    va_end(arguments);
    const size_t used = written < 0 ? 0 : (size_t)written < sizeof words ? (size_t)written : sizeof words - 1;
    snprintf(error->words + used, sizeof words - used, "%s", words);
    make_one_line(error->words);
    return error->code;
}
