/* safetensors, reading: everything that a file says about itself is checked before a pointer into it is
 * returned. The header's JSON is parsed, its names and texts are copied into one block, and the data stay
 * where they are unless floats would not be aligned there. */
#include "safetensors.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "../base/file.h"
#include "../base/json.h"
#include "../base/memory.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are taken from the file as they are");

enum {
    PREFIX_BYTES = 8,
    HEADER_MOST = 100000000,
    BLOCK_FILE = 0,
    BLOCK_DATA = 1,
    BLOCK_ENTRIES = 2,
    CHECKSUM_DIGITS = 8
};
static const size_t file_most = (size_t)1 << 40;
static const double whole_most = 9007199254740992.0; /* 2^53: below it every whole number is a double */

/* Where a tensor's values lie, counted from the first byte behind the header. */
struct window {
    size_t begin, end;
    int tensor;
};

struct reader {
    const char *path; /* for the words */
    const char *data; /* [data_bytes] behind the header */
    size_t data_bytes;
    struct json json;       /* the header */
    struct window *windows; /* [tensor_count] */
    const char **names;     /* [names] for finding doubles */
    struct safetensors *content;
};

static int order_of_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int order_of_windows(const void *a, const void *b) {
    const struct window *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : 0;
}

static const struct json_value *sibling(const struct json *json, const struct json_value *value) {
    return value->next < 0 ? NULL : &json->values[value->next];
}

static const struct json_value *child(const struct json *json, const struct json_value *value) {
    return value->first < 0 ? NULL : &json->values[value->first];
}

/* A whole number in 0 .. most. */
static bool is_whole(const struct json_value *value, double most) {
    return value->kind == JSON_NUMBER && value->number >= 0 && value->number <= most &&
           value->number == (double)(uint64_t)value->number;
}

static int read_shape(const struct reader *r, const char *name, const struct json_value *dims,
                      struct shape *shape, size_t *bytes, struct error *error) {
    if (dims->children > MAX_RANK)
        return error_set(error, ERROR_FILE, "%s: %.80s has %d dimensions, expected at most %d", r->path, name,
                         dims->children, MAX_RANK);
    bool empty = false;
    for (const struct json_value *dim = child(&r->json, dims); dim; dim = sibling(&r->json, dim)) {
        if (!is_whole(dim, INT_MAX))
            return error_set(error, ERROR_FILE,
                             "%s: dimension %d of %.80s is not a whole number from 0 to %d", r->path,
                             shape->rank, name, INT_MAX);
        shape->dims[shape->rank] = (int)dim->number;
        empty = empty || shape->dims[shape->rank] == 0;
        shape->rank++;
    }
    *bytes = empty ? 0 : sizeof(float);
    for (int i = 0; i < shape->rank && !empty; i++) {
        const size_t dim = (size_t)shape->dims[i];
        if (*bytes > file_most / dim)
            return error_set(error, ERROR_FILE, "%s: the shape of %.80s has more than %zu bytes", r->path,
                             name, file_most);
        *bytes *= dim;
    }
    return OK;
}

static int read_tensor(struct reader *r, const struct json_value *value, int index, struct error *error) {
    const struct json_value *dtype = json_member(&r->json, value, "dtype");
    const struct json_value *dims = json_member(&r->json, value, "shape");
    const struct json_value *offsets = json_member(&r->json, value, "data_offsets");
    const char *name = value->name;
    if (value->children != 3 || !dtype || !dims || !offsets)
        return error_set(error, ERROR_FILE, "%s: %.80s is not described by dtype, shape and data_offsets",
                         r->path, name);
    if (dtype->kind != JSON_TEXT || strcmp(dtype->text, "F32") != 0)
        return error_set(error, ERROR_FILE, "%s: %.80s has dtype %.20s, expected F32", r->path, name,
                         dtype->kind == JSON_TEXT ? dtype->text : "(not a text)");
    if (dims->kind != JSON_ARRAY || offsets->kind != JSON_ARRAY || offsets->children != 2)
        return error_set(error, ERROR_FILE, "%s: shape or data_offsets of %.80s is not an array as expected",
                         r->path, name);
    struct shape shape = {0};
    size_t bytes = 0;
    RETURN_IF(read_shape(r, name, dims, &shape, &bytes, error));
    const struct json_value *begin = child(&r->json, offsets), *end = sibling(&r->json, begin);
    if (!is_whole(begin, whole_most) || !is_whole(end, whole_most) || begin->number > end->number ||
        end->number > (double)r->data_bytes)
        return error_set(error, ERROR_FILE,
                         "%s: %.80s lies at [%.0f, %.0f), expected inside the %zu bytes of data", r->path,
                         name, begin->number, end->number, r->data_bytes);
    const struct window window = {
        .begin = (size_t)begin->number, .end = (size_t)end->number, .tensor = index};
    if (window.end - window.begin != bytes) {
        char text[128];
        return error_set(error, ERROR_FILE, "%s: %.80s has %zu bytes of data, expected %zu for the shape %s",
                         r->path, name, window.end - window.begin, bytes,
                         shape_text(&shape, text, sizeof text));
    }
    r->windows[index] = window;
    r->content->tensors[index].shape = shape;
    return OK;
}

/* Counts what there is and makes room for it. */
static int make_entries(struct reader *r, char **characters, struct error *error) {
    const struct json_value *root = &r->json.values[0];
    size_t tensors = 0, texts = 0, bytes = 0;
    for (const struct json_value *value = child(&r->json, root); value; value = sibling(&r->json, value)) {
        if (value->kind != JSON_OBJECT)
            return error_set(error, ERROR_FILE, "%s: %.80s is not an object as expected", r->path,
                             value->name);
        if (strcmp(value->name, "__metadata__") != 0) {
            tensors++;
            bytes += strlen(value->name) + 1;
            continue;
        }
        for (const struct json_value *text = child(&r->json, value); text; text = sibling(&r->json, text)) {
            if (text->kind != JSON_TEXT)
                return error_set(error, ERROR_FILE, "%s: __metadata__ %.80s is not a text as expected",
                                 r->path, text->name);
            texts++;
            bytes += strlen(text->name) + strlen(text->text) + 2;
        }
    }
    const size_t all = tensors * sizeof(struct tensor_entry) + texts * sizeof(struct text_entry) + bytes;
    RETURN_IF(memory_zeroed(&r->content->blocks[BLOCK_ENTRIES], all, 1, "the names of tensors", error));
    r->content->tensors = r->content->blocks[BLOCK_ENTRIES];
    r->content->texts = (struct text_entry *)(r->content->tensors + tensors);
    *characters = (char *)(r->content->texts + texts);
    RETURN_IF(memory_array(&r->windows, tensors, "the windows of tensors", error));
    RETURN_IF(memory_array(&r->names, (size_t)root->children + texts, "the order of names", error));
    return OK;
}

static int find_doubles(struct reader *r, size_t count, struct error *error) {
    qsort(r->names, count, sizeof *r->names, order_of_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(r->names[i - 1], r->names[i]) == 0)
            return error_set(error, ERROR_FILE, "%s: %.80s is there twice, expected once", r->path,
                             r->names[i]);
    return OK;
}

static const char *keep(char **characters, const char *text) {
    const char *kept = *characters;
    *characters = stpcpy(*characters, text) + 1;
    return kept;
}

static int read_entries(struct reader *r, char *characters, struct error *error) {
    struct safetensors *content = r->content;
    const struct json_value *root = &r->json.values[0];
    size_t names = 0;
    for (const struct json_value *value = child(&r->json, root); value; value = sibling(&r->json, value)) {
        r->names[names++] = value->name;
        if (strcmp(value->name, "__metadata__") == 0) {
            for (const struct json_value *text = child(&r->json, value); text;
                 text = sibling(&r->json, text)) {
                struct text_entry *entry = &content->texts[content->text_count++];
                entry->name = keep(&characters, text->name);
                entry->text = keep(&characters, text->text);
            }
        } else {
            const int index = content->tensor_count++;
            content->tensors[index].name = keep(&characters, value->name);
            RETURN_IF(read_tensor(r, value, index, error));
        }
    }
    RETURN_IF(find_doubles(r, names, error));
    for (names = 0; names < (size_t)content->text_count; names++)
        r->names[names] = content->texts[names].name;
    return find_doubles(r, names, error);
}

/* The windows have to follow each other from the first byte to the last. */
static int place_values(struct reader *r, struct error *error) {
    struct safetensors *content = r->content;
    const size_t count = (size_t)content->tensor_count;
    qsort(r->windows, count, sizeof *r->windows, order_of_windows);
    size_t end = 0;
    for (size_t i = 0; i < count; i++) {
        const struct window *window = &r->windows[i];
        if (window->begin != end)
            return error_set(error, ERROR_FILE, "%s: %.80s begins at byte %zu of the data, %s, expected %zu",
                             r->path, content->tensors[window->tensor].name, window->begin,
                             window->begin < end ? "inside another" : "after a gap", end);
        end = window->end;
    }
    if (end != r->data_bytes)
        return error_set(error, ERROR_FILE, "%s: %zu bytes of data, expected %zu", r->path, r->data_bytes,
                         end);
    const char *data = r->data;
    if ((uintptr_t)data % _Alignof(float) != 0) {
        RETURN_IF(memory_zeroed(&content->blocks[BLOCK_DATA], r->data_bytes, 1, "tensors", error));
        memcpy(content->blocks[BLOCK_DATA], data, r->data_bytes);
        data = content->blocks[BLOCK_DATA];
    }
    for (size_t i = 0; i < count; i++)
        content->tensors[r->windows[i].tensor].values =
            (const float *)(const void *)(data + r->windows[i].begin);
    return OK;
}

/* The eight digits of the checksum in the header, or NULL. A quote behind a bracket or comma begins a name
 * (inside a text it would carry a backslash), and a name "checksum" with a text for its value can stand in
 * __metadata__ alone, once. */
static const char *find_digits(const char *header, size_t bytes) {
    static const char mark[] = "\"checksum\":\"";
    const size_t mark_bytes = sizeof mark - 1;
    const char *at = header + 1, *end = header + bytes;
    while ((at = memmem(at, (size_t)(end - at), mark, mark_bytes)) != NULL) {
        if (at[-1] == '{' || at[-1] == ',')
            return end - at >= (ptrdiff_t)mark_bytes + CHECKSUM_DIGITS ? at + mark_bytes : NULL;
        at++;
    }
    return NULL;
}

static int check_checksum(const struct reader *r, const char *file, size_t header_bytes, size_t bytes,
                          struct error *error) {
    const char *text = safetensors_text(r->content, "checksum");
    if (!text) return OK;
    const char *digits = find_digits(file + PREFIX_BYTES, header_bytes);
    if (!digits || strlen(text) != CHECKSUM_DIGITS || memcmp(digits, text, CHECKSUM_DIGITS) != 0)
        return error_set(error, ERROR_FILE,
                         "%s: the checksum is \"%.20s\", expected eight digits without spaces before them",
                         r->path, text);
    uLong crc = crc32_z(0, (const Bytef *)file, (z_size_t)(digits - file));
    crc = crc32_z(crc, (const Bytef *)"00000000", CHECKSUM_DIGITS);
    crc = crc32_z(crc, (const Bytef *)digits + CHECKSUM_DIGITS,
                  bytes - (size_t)(digits - file) - CHECKSUM_DIGITS);
    char computed[CHECKSUM_DIGITS + 1];
    snprintf(computed, sizeof computed, "%08x", (unsigned)crc);
    if (strcmp(computed, text) != 0)
        return error_set(error, ERROR_FILE, "%s: damaged: its checksum is %s, expected %s", r->path, computed,
                         text);
    return OK;
}

/* By its name a network of another program. */
static bool is_import(const char *path) {
    static const char *const suffixes[] = {".onnx", ".keras", ".h5", ".npz", ".pt", ".pth", ".pb"};
    const char *suffix = strrchr(path, '.');
    for (size_t s = 0; suffix && s < sizeof suffixes / sizeof *suffixes; s++)
        if (strcmp(suffix, suffixes[s]) == 0) return true;
    return false;
}

static int read_header(struct reader *r, const char *file, size_t bytes, struct error *error) {
    if (bytes < PREFIX_BYTES)
        return error_set(error, ERROR_FILE, "%s: %zu bytes, expected at least %d", r->path, bytes,
                         PREFIX_BYTES);
    uint64_t header_bytes;
    memcpy(&header_bytes, file, sizeof header_bytes);
    const uint64_t most = bytes - PREFIX_BYTES < HEADER_MOST ? bytes - PREFIX_BYTES : HEADER_MOST;
    const bool bad = header_bytes < 2 || header_bytes > most;
    if (bad && is_import(r->path))
        return error_set(error, ERROR_FILE,
                         "%s: expected a run's folder or a .safetensors file; `trainer import` makes a run "
                         "of a Keras or ONNX "
                         "file",
                         r->path);
    if (bad && (bytes == PREFIX_BYTES || file[PREFIX_BYTES] != '{')) /* else it is cut off */
        return error_set(error, ERROR_FILE,
                         "%s: found another kind of file, expected a run's folder or a .safetensors file",
                         r->path);
    if (bad && header_bytes > bytes - PREFIX_BYTES)
        return error_set(error, ERROR_FILE,
                         "%s: found %zu bytes, expected a header of %llu in them, as its first %d say",
                         r->path, bytes, (unsigned long long)header_bytes, PREFIX_BYTES);
    if (bad)
        return error_set(error, ERROR_FILE, "%s: a header of %llu bytes, expected 2 to %llu", r->path,
                         (unsigned long long)header_bytes, (unsigned long long)most);
    const char *header = file + PREFIX_BYTES;
    if (*header != '{')
        return error_set(error, ERROR_FILE, "%s: the header begins with 0x%02x, expected {", r->path,
                         (unsigned)(unsigned char)*header);
    if (json_parse(&r->json, header, header_bytes, error) != OK)
        return error_prefix(error, "%s: header: ", r->path);
    r->data = header + header_bytes;
    r->data_bytes = bytes - PREFIX_BYTES - header_bytes;
    char *characters = NULL;
    RETURN_IF(make_entries(r, &characters, error));
    RETURN_IF(read_entries(r, characters, error));
    RETURN_IF(place_values(r, error));
    return check_checksum(r, file, header_bytes, bytes, error);
}

int safetensors_parse(const char *name, const char *data, size_t bytes, struct safetensors *content,
                      struct error *error) {
    *content = (struct safetensors){0};
    struct reader r = {.path = name, .content = content};
    const int code = read_header(&r, data, bytes, error);
    memory_free(r.names);
    memory_free(r.windows);
    json_free(&r.json);
    if (code != OK) safetensors_free(content);
    return code;
}

int safetensors_read(const char *path, struct safetensors *content, struct error *error) {
    *content = (struct safetensors){0};
    char *data = NULL;
    size_t bytes = 0;
    RETURN_IF(file_read_plain(path, file_most, &data, &bytes, error));
    const int code = safetensors_parse(path, data, bytes, content, error);
    if (code != OK)
        memory_free(data);
    else
        content->blocks[BLOCK_FILE] = data;
    return code;
}

void safetensors_free(struct safetensors *content) {
    for (size_t i = 0; i < sizeof content->blocks / sizeof *content->blocks; i++)
        memory_free(content->blocks[i]);
    *content = (struct safetensors){0};
}

const struct tensor_entry *safetensors_tensor(const struct safetensors *content, const char *name) {
    for (int i = 0; i < content->tensor_count; i++)
        if (strcmp(content->tensors[i].name, name) == 0) return &content->tensors[i];
    return NULL;
}

const char *safetensors_text(const struct safetensors *content, const char *name) {
    for (int i = 0; i < content->text_count; i++)
        if (strcmp(content->texts[i].name, name) == 0) return content->texts[i].text;
    return NULL;
}
