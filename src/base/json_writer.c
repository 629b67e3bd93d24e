/* JSON, writing: one value per line, indented by two blanks per level, so that a person can read a summary
 * too. What is not UTF-8 (a file name may be anything) is written as the replacement character: the file
 * stays valid. */
#include "json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "utf8.h"

static void write_text(FILE *file, const char *text) {
    fputc('"', file);
    while (*text != '\0') {
        const unsigned char c = (unsigned char)*text;
        const size_t length = utf8_length(text);
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", file);
        else if (c < 0x20 || c == 0x7f)
            fprintf(file, "\\u%04x", c);
        else if (length == 0)
            fputs("\\ufffd", file);
        else
            fwrite(text, 1, length, file);
        text += length == 0 ? 1 : length;
    }
    fputc('"', file);
}

/* What stands before any value: the comma of the one before it, the line, the name. */
static void begin_value(struct json_writer *json, const char *name) {
    if (json->filled) fputc(',', json->file);
    if (json->depth > 0) fprintf(json->file, "\n%*s", 2 * json->depth, "");
    json->filled = true;
    if (name == NULL) return;
    write_text(json->file, name);
    fputs(": ", json->file);
}

void json_open(struct json_writer *json, const char *name, char bracket) {
    begin_value(json, name);
    fputc(bracket, json->file);
    json->depth++;
    json->filled = false;
}

void json_close(struct json_writer *json, char bracket) {
    json->depth--;
    if (json->filled) fprintf(json->file, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->file);
    if (json->depth == 0) fputc('\n', json->file);
    json->filled = true;
}

void json_text(struct json_writer *json, const char *name, const char *text) {
    begin_value(json, name);
    write_text(json->file, text);
}

void json_int(struct json_writer *json, const char *name, long long value) {
    begin_value(json, name);
    fprintf(json->file, "%lld", value);
}

void json_digits(FILE *file, double value) {
    char text[40] = "";
    if (fabs(value) < 1e15 && floor(value) == value) { /* 100, not 1e+02 */
        fprintf(file, "%.0f", value);
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (memcmp(&back, &value, sizeof value) == 0) break;
    }
    fputs(text, file);
}

void json_real(struct json_writer *json, const char *name, double value) {
    begin_value(json, name);
    if (!isfinite(value)) {
        fputs("null", json->file);
        return;
    }
    json_digits(json->file, value);
}

void json_float(struct json_writer *json, const char *name, double value) {
    json_real(json, name, value);
    if (fabs(value) < 1e15 && floor(value) == value) fputs(".0", json->file);
}

void json_bool(struct json_writer *json, const char *name, bool value) {
    begin_value(json, name);
    fputs(value ? "true" : "false", json->file);
}
