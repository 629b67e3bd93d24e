/* ONNX files for the tests, from a text of their own. A statement per node, between semicolons:
 *
 *     Conv x w[8,3,3,3] - -> y pads=1,1,1,1 auto_pad="SAME_UPPER" epsilon=0.5
 *
 * An input is a value's name; - for one that is left out; name[2,3] for a tensor of floats, which count up
 * from 1 by 1/64, or of float16 where the name ends with ~ (at most 64 of these); name<file[2,3] for one
 * whose data are in another file; {1,-1} for one of whole numbers; (0.5) for a float; an attribute of one
 * whole number in a list ends with a comma. The network's input is x, its output the first that the last node
 * makes.
 */
#ifndef TRAINER_TESTS_ONNX_SAMPLE_H
#define TRAINER_TESTS_ONNX_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLE_BYTES = 1 << 18, SAMPLE_PART = 1 << 16 };

struct sample_bytes {
    size_t used, room;
    uint8_t *at; /* [room] */
};

static inline void sample_put(struct sample_bytes *to, const void *bytes, size_t count) {
    if (count > to->room - to->used) abort();
    if (count > 0) memcpy(to->at + to->used, bytes, count);
    to->used += count;
}

static inline void sample_varint(struct sample_bytes *to, uint64_t n) {
    for (; n > 127; n >>= 7) sample_put(to, (uint8_t[]){(uint8_t)(n | 128)}, 1);
    sample_put(to, (uint8_t[]){(uint8_t)n}, 1);
}

static inline void sample_whole(struct sample_bytes *to, int field, int64_t n) {
    sample_varint(to, (uint64_t)field << 3);
    sample_varint(to, (uint64_t)n);
}

static inline void sample_field(struct sample_bytes *to, int field, const void *bytes, size_t count) {
    sample_varint(to, (uint64_t)field << 3 | 2);
    sample_varint(to, count);
    sample_put(to, bytes, count);
}

static inline void sample_text(struct sample_bytes *to, int field, const char *text) {
    sample_field(to, field, text, strlen(text));
}

static inline void sample_float(struct sample_bytes *to, int field, float number) {
    sample_varint(to, (uint64_t)field << 3 | 5);
    sample_put(to, &number, sizeof number);
}

/* A message under way, as a field of another one. */
#define SAMPLE_PART_OF(name)                                                                                 \
    uint8_t name##_bytes[SAMPLE_PART];                                                                       \
    struct sample_bytes name = {.room = sizeof name##_bytes, .at = name##_bytes}

/* Numbers between commas; returns how many. */
static inline int sample_numbers(const char *text, double *out, int most) {
    int count = 0;
    for (char *end; count < most && *text; text = end + (*end == ',')) {
        out[count] = strtod(text, &end);
        if (end == text) break;
        count++;
    }
    return count;
}

/* Where the data of a tensor are: in a file, from byte 8 on. */
static inline void sample_location(struct sample_bytes *tensor, const char *file) {
    static const char *const keys[] = {"location", "offset"};
    for (int i = 0; i < 2; i++) {
        SAMPLE_PART_OF(entry);
        sample_text(&entry, 1, keys[i]);
        sample_text(&entry, 2, i == 0 ? file : "8");
        sample_field(tensor, 13, entry.at, entry.used);
    }
    sample_whole(tensor, 14, 1);
}

/* The tensor that an input's word describes; its name into name[40]. */
static inline void sample_tensor(struct sample_bytes *graph, const char *word, char *name) {
    static float floats[SAMPLE_PART / 8];
    double numbers[16];
    const size_t length = strcspn(word, "[{(");
    const int count = sample_numbers(word + length + 1, numbers, 16);
    SAMPLE_PART_OF(tensor);
    size_t total = 1;
    snprintf(name, 40, "%.*s", (int)(word[length] == '[' ? length : strlen(word)), word);
    if (word[length] == '{') sample_whole(&tensor, 1, count);
    for (int i = 0; word[length] == '[' && i < count; i++) {
        sample_whole(&tensor, 1, (int64_t)numbers[i]);
        total *= (size_t)numbers[i];
    }
    const bool halves = length > 0 && word[length - 1] == '~';
    sample_whole(&tensor, 2, word[length] == '{' ? 7 : halves ? 10 : 1);
    sample_text(&tensor, 8, name);
    if (strchr(name, '<')) {
        sample_location(&tensor, strchr(name, '<') + 1);
    } else if (word[length] == '{') {
        int64_t whole[16];
        for (int i = 0; i < count; i++) whole[i] = (int64_t)numbers[i];
        sample_field(&tensor, 9, whole, (size_t)count * sizeof *whole);
    } else if (word[length] == '(') {
        floats[0] = (float)numbers[0];
        sample_field(&tensor, 9, floats, sizeof *floats);
    } else if (halves) {
        uint16_t bits[64];
        for (size_t i = 0; i < total && i < 64; i++) bits[i] = (uint16_t)(0x3c00 + 16 * i);
        sample_field(&tensor, 9, bits, (total < 64 ? total : 64) * sizeof *bits);
    } else {
        for (size_t i = 0; i < total && i < SAMPLE_PART / 8; i++) floats[i] = 1.0f + (float)i / 64.0f;
        sample_field(&tensor, 9, floats, total * sizeof *floats);
    }
    sample_field(graph, 5, tensor.at, tensor.used);
}

/* key=1,2 or key=0.5 or key="WORD" */
static inline void sample_attribute(struct sample_bytes *to, const char *word) {
    const size_t length = strcspn(word, "=");
    const char *value = word + length + 1;
    double numbers[16];
    SAMPLE_PART_OF(attribute);
    sample_field(&attribute, 1, word, length);
    const int count = sample_numbers(value, numbers, 16);
    if (*value == '"')
        sample_field(&attribute, 4, value + 1, strlen(value) - 2);
    else if (strchr(value, '.'))
        sample_float(&attribute, 2, (float)numbers[0]);
    else if (count == 1 && !strchr(value, ','))
        sample_whole(&attribute, 3, (int64_t)numbers[0]);
    else
        for (int i = 0; i < count; i++) sample_whole(&attribute, 8, (int64_t)numbers[i]);
    sample_field(to, 5, attribute.at, attribute.used);
}

/* One statement; the name of what it makes into made[40]. */
static inline void sample_node(struct sample_bytes *graph, char *text, char *made) {
    SAMPLE_PART_OF(part);
    char *next = NULL, *word = strtok_r(text, " \n", &next);
    bool is_output = false;
    int outputs = 0;
    sample_text(&part, 4, word);
    while ((word = strtok_r(NULL, " \n", &next))) {
        char name[40];
        if (strcmp(word, "->") == 0) {
            is_output = true;
        } else if (is_output && strchr(word, '=')) {
            sample_attribute(&part, word);
        } else if (is_output) {
            sample_text(&part, 2, word);
            if (outputs++ == 0) snprintf(made, 40, "%s", word);
        } else {
            snprintf(name, sizeof name, "%s", strcmp(word, "-") == 0 ? "" : word);
            if (strpbrk(word, "[{(")) sample_tensor(graph, word, name);
            sample_text(&part, 1, name);
        }
    }
    sample_field(graph, 1, part.at, part.used);
}

/* Name and shape of an input or output, whose batch is any; "11:4" is of another type of element than 1. */
static inline void sample_value(struct sample_bytes *graph, int field, const char *name, const char *shape) {
    double dims[16];
    const char *type_end = strchr(shape, ':');
    const int rank = sample_numbers(type_end ? type_end + 1 : shape, dims, 16);
    SAMPLE_PART_OF(list);
    SAMPLE_PART_OF(tensor);
    SAMPLE_PART_OF(type);
    SAMPLE_PART_OF(value);
    sample_field(&list, 1, "\022\001N", 3); /* dim_param "N" */
    for (int i = 0; i < rank; i++) {
        SAMPLE_PART_OF(dim);
        sample_whole(&dim, 1, (int64_t)dims[i]);
        sample_field(&list, 1, dim.at, dim.used);
    }
    sample_whole(&tensor, 1, type_end ? atoi(shape) : 1);
    sample_field(&tensor, 2, list.at, list.used);
    sample_field(&type, 1, tensor.at, tensor.used);
    sample_text(&value, 1, name);
    sample_field(&value, 2, type.at, type.used);
    sample_field(graph, field, value.at, value.used);
}

/* Writes a model into out[SAMPLE_BYTES]; returns its bytes. `shape` is that of an example: "3,8,8". Opset -3
 * is opset 3 of the domain ai.onnx.ml alone. */
static inline size_t sample_model(uint8_t *out, const char *shape, const char *nodes, int opset) {
    static uint8_t graph_bytes[SAMPLE_BYTES - 100];
    struct sample_bytes graph = {.room = sizeof graph_bytes, .at = graph_bytes};
    struct sample_bytes model = {.room = SAMPLE_BYTES, .at = out};
    char text[4000], made[40] = "", *next = NULL;
    SAMPLE_PART_OF(version);
    snprintf(text, sizeof text, "%s", nodes);
    for (char *one = strtok_r(text, ";", &next); one; one = strtok_r(NULL, ";", &next))
        sample_node(&graph, one, made);
    sample_value(&graph, 11, "x", shape);
    sample_text(&graph, 2, "sample");
    sample_value(&graph, 12, made, "1");
    sample_whole(&model, 1, 8);
    sample_field(&model, 7, graph.at, graph.used);
    if (opset < 0) sample_text(&version, 1, "ai.onnx.ml");
    sample_whole(&version, 2, abs(opset));
    sample_field(&model, 8, version.at, version.used);
    return model.used;
}

#endif
