/* JSON: a writer that streams to a file, and a small reader into a flat array of values (RFC 8259). */
#ifndef TRAINER_BASE_JSON_H
#define TRAINER_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "error.h"

/* --- writer: keeps commas and indentation right; names are NULL inside arrays --- */
struct json_writer {
    FILE *file; /* borrowed */
    int depth;
    bool filled; /* something was written at this depth */
};

void json_open(struct json_writer *json, const char *name, char bracket); /* '{' or '[' */
void json_close(struct json_writer *json, char bracket);                  /* '}' or ']' */
void json_text(struct json_writer *json, const char *name, const char *text);
void json_int(struct json_writer *json, const char *name, long long value);
void json_digits(FILE *file, double value); /* as few digits as give the finite number back */
void json_real(struct json_writer *json, const char *name,
               double value); /* shortest that reads back; null when not finite */
/* The same, never as a whole number: 1.0, for readers that tell it from 1. */
void json_float(struct json_writer *json, const char *name, double value);
void json_bool(struct json_writer *json, const char *name, bool value);

/* --- reader --- */
enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    const char *name; /* of a member, else NULL */
    const char *text; /* JSON_TEXT: unescaped, ended by 0 */
    double number;    /* JSON_NUMBER, and JSON_BOOL as 0 or 1 */
    int first, next;  /* index of the first child, of the next sibling; -1: none */
    int children;
};

struct json {
    struct json_value *values; /* [count]; values[0] is the root */
    int count;
    char *text; /* owned copy that names and texts point into */
};

/* Parses `bytes` bytes. At most 64 levels and 1,000,000 values. Errors: ERROR_FILE with the position. */
int json_parse(struct json *json, const char *text, size_t bytes, struct error *error);
void json_free(struct json *json);
/* The member of an object by name, or NULL. */
const struct json_value *json_member(const struct json *json, const struct json_value *object,
                                     const char *name);

#endif
