/* JSON, reading: a recursive descent over an owned copy of the text. Texts are unescaped in place, where they
 * only get shorter. */
#include "json.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "memory.h"
#include "utf8.h"

enum { LEVELS_MOST = 64, VALUES_MOST = 2000000, FIRST_VALUES = 64 };

struct parser {
    struct json *json;
    char *at, *end; /* in json->text; *end is 0 */
    int room;       /* values that fit */
    int line;       /* from 1, for the words */
    char *line_start;
    struct error *error;
};

static int fail(const struct parser *parser, const char *expected) {
    char found[24] = "the end";
    const unsigned char byte = (unsigned char)*parser->at;
    if (parser->at < parser->end && byte > 0x20 && byte < 0x7f) snprintf(found, sizeof found, "'%c'", byte);
    if (parser->at < parser->end && (byte <= 0x20 || byte >= 0x7f))
        snprintf(found, sizeof found, "byte 0x%02x", byte);
    return error_set(parser->error, ERROR_FILE, "JSON line %d, column %td: found %s, expected %s",
                     parser->line, parser->at - parser->line_start + 1, found, expected);
}

static void skip_blanks(struct parser *parser) {
    for (; *parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r';
         parser->at++)
        if (*parser->at == '\n') {
            parser->line++;
            parser->line_start = parser->at + 1;
        }
}

/* Four hexadecimal digits; -1 when they are not. */
static int hex_digits(const char *text) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

/* \uXXXX, or two of them for a character beyond the first 65536; at the u. Writes UTF-8 and moves on. */
static int parse_code_point(struct parser *parser, char **out) {
    int32_t code = hex_digits(parser->at + 1);
    if (code < 0) return fail(parser, "\\u and four hexadecimal digits");
    if (code == 0) return fail(parser, "a character other than \\u0000");
    size_t length = 5;
    if (code >= 0xD800 && code < 0xE000) {
        const int32_t low = parser->at[5] == '\\' && parser->at[6] == 'u' ? hex_digits(parser->at + 7) : -1;
        if (code >= 0xDC00 || low < 0xDC00 || low >= 0xE000) return fail(parser, "a pair of surrogates");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        length = 11;
    }
    *out += utf8_write(*out, code);
    parser->at += length;
    return OK;
}

/* After the opening quote; *text is the unescaped text, ended by 0 at the latest where the closing quote was.
 */
static int parse_text(struct parser *parser, const char **text) {
    char *out = parser->at;
    *text = out;
    while (*parser->at != '"') {
        if (*parser->at == '\\') {
            parser->at++;
            const char *const names = "\"\\/bfnrt", *const values = "\"\\/\b\f\n\r\t";
            const char *name = *parser->at == '\0' ? NULL : strchr(names, *parser->at);
            if (name != NULL) {
                *out++ = values[name - names];
                parser->at++;
            } else if (*parser->at == 'u') {
                RETURN_IF(parse_code_point(parser, &out));
            } else {
                return fail(parser, "one of \" \\ / b f n r t u after a backslash");
            }
            continue;
        }
        if ((unsigned char)*parser->at < 0x20)
            return fail(parser, "a closing quote, and control characters escaped");
        const size_t length = utf8_length(parser->at);
        if (length == 0) return fail(parser, "UTF-8");
        memmove(out, parser->at, length);
        out += length;
        parser->at += length;
    }
    parser->at++;
    *out = '\0';
    return OK;
}

static int skip_digits(struct parser *parser) {
    if (*parser->at < '0' || *parser->at > '9') return fail(parser, "a digit");
    while (*parser->at >= '0' && *parser->at <= '9') parser->at++;
    return OK;
}

static int parse_number(struct parser *parser, double *number) {
    char *const start = parser->at;
    if (*parser->at == '-') parser->at++;
    if (*parser->at == '0')
        parser->at++;
    else
        RETURN_IF(skip_digits(parser));
    if (*parser->at == '.') {
        parser->at++;
        RETURN_IF(skip_digits(parser));
    }
    if (*parser->at == 'e' || *parser->at == 'E') {
        parser->at++;
        if (*parser->at == '+' || *parser->at == '-') parser->at++;
        RETURN_IF(skip_digits(parser));
    }
    *number = strtod(start, NULL);
    if (isfinite(*number)) return OK;
    parser->at = start;
    return fail(parser, "a number below 1.8e308");
}

static int parse_value(struct parser *parser, int level, int *index);

/* Members or elements, after the opening bracket, up to and with the closing one. */
static int parse_children(struct parser *parser, int level, int parent, bool named, char closing) {
    int last = -1;
    skip_blanks(parser);
    if (*parser->at == closing) {
        parser->at++;
        return OK;
    }
    for (;;) {
        const char *name = NULL;
        int child;
        if (named) {
            skip_blanks(parser);
            if (*parser->at != '"') return fail(parser, "a name in double quotes");
            parser->at++;
            RETURN_IF(parse_text(parser, &name));
            skip_blanks(parser);
            if (*parser->at != ':') return fail(parser, "':'");
            parser->at++;
        }
        RETURN_IF(parse_value(parser, level, &child));
        struct json_value *const values = parser->json->values;
        values[child].name = name;
        *(last < 0 ? &values[parent].first : &values[last].next) = child;
        values[parent].children++;
        last = child;
        skip_blanks(parser);
        const char found = *parser->at;
        if (found != ',' && found != closing) return fail(parser, named ? "',' or '}'" : "',' or ']'");
        parser->at++;
        if (found == closing) return OK;
    }
}

/* A new value at the end of the array. */
static int add_value(struct parser *parser, int *index) {
    struct json *json = parser->json;
    if (json->count == VALUES_MOST) return fail(parser, "at most 2000000 values");
    if (json->count == parser->room) {
        const int room = parser->room == 0 ? FIRST_VALUES : 2 * parser->room;
        RETURN_IF(memory_grow(&json->values, json->count, room, "JSON values", parser->error));
        parser->room = room;
    }
    *index = json->count++;
    json->values[*index] = (struct json_value){.first = -1, .next = -1};
    return OK;
}

static int parse_word(struct parser *parser, struct json_value *value) {
    const struct {
        const char *word;
        enum json_kind kind;
        double number;
    } words[] = {{"true", JSON_BOOL, 1}, {"false", JSON_BOOL, 0}, {"null", JSON_NULL, 0}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i].word);
        if (strncmp(parser->at, words[i].word, length) != 0) continue;
        value->kind = words[i].kind;
        value->number = words[i].number;
        parser->at += length;
        return OK;
    }
    return fail(parser, "a value");
}

static int parse_value(struct parser *parser, int level, int *index) {
    skip_blanks(parser);
    RETURN_IF(add_value(parser, index));
    struct json_value *const value = &parser->json->values[*index]; /* until the next one is added */
    const char c = *parser->at;
    if (c == '{' || c == '[') {
        if (level == LEVELS_MOST) return fail(parser, "at most 64 levels of brackets");
        value->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        parser->at++;
        return parse_children(parser, level + 1, *index, c == '{', c == '{' ? '}' : ']');
    }
    if (c == '"') {
        value->kind = JSON_TEXT;
        parser->at++;
        return parse_text(parser, &value->text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        value->kind = JSON_NUMBER;
        return parse_number(parser, &value->number);
    }
    return parse_word(parser, value);
}

int json_parse(struct json *json, const char *text, size_t bytes, struct error *error) {
    *json = (struct json){0};
    RETURN_IF(memory_array(&json->text, bytes + 1, "a JSON text", error));
    memcpy(json->text, text, bytes);
    struct parser parser = {.json = json,
                            .at = json->text,
                            .end = json->text + bytes,
                            .line = 1,
                            .line_start = json->text,
                            .error = error};
    int root;
    int code = parse_value(&parser, 0, &root);
    if (code == OK) {
        skip_blanks(&parser);
        if (parser.at != parser.end) code = fail(&parser, "nothing after the value");
    }
    if (code != OK) json_free(json);
    return code;
}

void json_free(struct json *json) {
    memory_free(json->values);
    memory_free(json->text);
    *json = (struct json){0};
}

const struct json_value *json_member(const struct json *json, const struct json_value *object,
                                     const char *name) {
    if (object == NULL || object->kind != JSON_OBJECT) return NULL;
    for (int i = object->first; i >= 0; i = json->values[i].next)
        if (strcmp(json->values[i].name, name) == 0) return &json->values[i];
    return NULL;
}
