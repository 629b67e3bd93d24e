/* The header of an array. It is a Python dictionary of three keys, of which just that is understood; nothing
 * it says is believed before it is held against the length of what is there. */
#include "npy.h"

#include <limits.h>
#include <string.h>
#include "../base/bytes.h"
#include "../base/text.h"

static const char MAGIC[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, PREFIX_BYTES = 10, PREFIX_2_BYTES = 12, DTYPE_BYTES = 24 };

/* What is left of the header. */
struct scan {
    const char *name, *at, *end;
    struct error *error;
};

static int unreadable(const struct scan *scan, const char *expected) {
    enum { SHOWN = 24 };
    char found[SHOWN + 1] = "";
    size_t bytes = (size_t)(scan->end - scan->at);
    if (bytes > SHOWN) bytes = SHOWN;
    while (bytes > 0 && (scan->at[bytes - 1] == ' ' || scan->at[bytes - 1] == '\n')) bytes--;
    for (size_t i = 0; i < bytes; i++) found[i] = scan->at[i] >= ' ' && scan->at[i] < 127 ? scan->at[i] : '?';
    return error_set(scan->error, ERROR_FILE, "%s: header: found \"%s\", expected %s", scan->name, found,
                     expected);
}

static void skip_blanks(struct scan *scan) {
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n')) scan->at++;
}

static bool take(struct scan *scan, char wanted) {
    skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != wanted) return false;
    scan->at++;
    return true;
}

static bool take_word(struct scan *scan, const char *word) {
    const size_t bytes = strlen(word);
    skip_blanks(scan);
    if ((size_t)(scan->end - scan->at) < bytes || memcmp(scan->at, word, bytes) != 0) return false;
    scan->at += bytes;
    return true;
}

/* A text in quotes, without escapes. */
static int take_text(struct scan *scan, char *out, size_t bytes, const char *expected) {
    skip_blanks(scan);
    const char *begin = scan->at;
    const char quote = begin < scan->end ? *begin : 0;
    if (quote != '\'' && quote != '"') return unreadable(scan, expected);
    const char *close = memchr(begin + 1, quote, (size_t)(scan->end - begin - 1));
    if (!close || (size_t)(close - begin) > bytes) return unreadable(scan, expected);
    memcpy(out, begin + 1, (size_t)(close - begin - 1));
    out[close - begin - 1] = 0;
    scan->at = close + 1;
    return OK;
}

/* '<f4': byte order, kind, bytes. */
static int take_dtype(struct scan *scan, struct npy *npy) {
    static const char *const taken[] = {"f2", "f4", "f8", "i1", "i2", "i4",
                                        "i8", "u1", "u2", "u4", "u8", "b1"};
    char dtype[DTYPE_BYTES];
    skip_blanks(scan);
    if (scan->at < scan->end && *scan->at == '[')
        return error_set(scan->error, ERROR_FILE, "%s: found records (a dtype of fields), expected numbers",
                         scan->name);
    RETURN_IF(take_text(scan, dtype, sizeof dtype, "a dtype such as '<f4'"));
    const char *type = dtype + (*dtype && strchr("<>|=", *dtype) ? 1 : 0);
    if (*type == 'O')
        return error_set(scan->error, ERROR_FILE,
                         "%s: found Python objects (dtype object), expected numbers: save it with a dtype of "
                         "numbers, astype('float32')",
                         scan->name);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(type, taken[i]) != 0) continue;
        npy->kind = type[0];
        npy->item = type[1] - '0';
        npy->big_endian = *dtype == '>';
        if (npy->item == 1 || *dtype == '<' || *dtype == '>') return OK;
    }
    return error_set(scan->error, ERROR_FILE,
                     "%s: found dtype '%s', expected bytes, integers, floats or bools of 1 to 8 bytes",
                     scan->name, dtype);
}

static int take_dimension(struct scan *scan, int *size) {
    long value = 0;
    const char *begin = scan->at;
    for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++)
        if (value <= INT_MAX) value = 10 * value + (*scan->at - '0');
    if (scan->at == begin) return unreadable(scan, "a size");
    if (value < 1 || value > INT_MAX)
        return error_set(scan->error, ERROR_FILE, "%s: shape: found size %.*s, expected 1 to %d", scan->name,
                         scan->at - begin < 30 ? (int)(scan->at - begin) : 30, begin, INT_MAX);
    *size = (int)value;
    if (scan->at < scan->end && *scan->at == 'L') scan->at++; /* Python 2's long */
    return OK;
}

static int take_shape(struct scan *scan, struct shape *shape) {
    if (!take(scan, '(')) return unreadable(scan, "a shape in parentheses");
    while (!take(scan, ')')) {
        if (shape->rank == MAX_RANK)
            return error_set(scan->error, ERROR_FILE, "%s: found more than %d dimensions, expected 1 to %d",
                             scan->name, MAX_RANK, MAX_RANK);
        RETURN_IF(take_dimension(scan, &shape->dims[shape->rank++]));
        if (take(scan, ',')) {
            skip_blanks(scan);
            continue;
        }
        if (!take(scan, ')')) return unreadable(scan, "')' after the shape");
        break;
    }
    if (shape->rank == 0)
        return error_set(scan->error, ERROR_FILE, "%s: found a single number, expected an array", scan->name);
    return OK;
}

static int take_order(struct scan *scan, bool *fortran) {
    *fortran = take_word(scan, "True");
    return *fortran || take_word(scan, "False") ? OK : unreadable(scan, "True or False");
}

static int take_dictionary(struct scan *scan, struct npy *npy) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    enum { ALL = 7 };
    int seen = 0;
    if (!take(scan, '{')) return unreadable(scan, "'{'");
    while (!take(scan, '}')) {
        char key[16];
        int k = 0;
        RETURN_IF(take_text(scan, key, sizeof key, "a key"));
        while (k < 3 && strcmp(key, keys[k]) != 0) k++;
        if (k == 3 || (seen & 1 << k) || !take(scan, ':'))
            return error_set(scan->error, ERROR_FILE,
                             "%s: header: found key '%s', expected descr, fortran_order and shape, once each",
                             scan->name, key);
        seen |= 1 << k;
        if (k == 0) RETURN_IF(take_dtype(scan, npy));
        if (k == 1) RETURN_IF(take_order(scan, &npy->fortran));
        if (k == 2) RETURN_IF(take_shape(scan, &npy->shape));
        if (!take(scan, ',') && (scan->at == scan->end || *scan->at != '}'))
            return unreadable(scan, "',' or '}'");
    }
    skip_blanks(scan);
    if (scan->at != scan->end) return unreadable(scan, "the end of the header");
    return seen == ALL ? OK : unreadable(scan, "descr, fortran_order and shape");
}

/* *begin, *head = where the dictionary begins, and ends. */
static int find_dictionary(const char *name, const uint8_t *bytes, size_t length, size_t *begin, size_t *head,
                           struct error *error) {
    if (length >= 4 && memcmp(bytes, "PK\3\4", 4) == 0)
        return error_set(error, ERROR_FILE, "%s: a zip archive, expected an array (npz:file=FILE takes it)",
                         name);
    if (length < PREFIX_2_BYTES || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return error_set(error, ERROR_FILE,
                         "%s: found no array as NumPy saves it (no magic at its beginning)", name);
    const int major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return error_set(error, ERROR_FILE, "%s: found version %d.%d of the format, expected 1.0, 2.0 or 3.0",
                         name, major, minor);
    const size_t said = (size_t)bytes_little(bytes + 8, major > 1 ? 4 : 2);
    *begin = major == 1 ? PREFIX_BYTES : PREFIX_2_BYTES;
    *head = *begin + said;
    if (*head > NPY_HEAD_MOST)
        return error_set(error, ERROR_FILE, "%s: found a header of %zu bytes, expected at most %d", name,
                         said, NPY_HEAD_MOST - PREFIX_2_BYTES);
    if (*head > length)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes, expected a header of %zu", name, length,
                         *head);
    return OK;
}

int npy_header(struct npy *npy, const char *name, const uint8_t *bytes, size_t length, size_t *head,
               struct error *error) {
    *npy = (struct npy){.name = name};
    size_t begin = 0;
    RETURN_IF(find_dictionary(name, bytes, length, &begin, head, error));
    struct scan scan = {
        .name = name, .at = (const char *)bytes + begin, .end = (const char *)bytes + *head, .error = error};
    RETURN_IF(take_dictionary(&scan, npy));
    npy->count = 1;
    for (int d = 0; d < npy->shape.rank; d++) {
        const size_t size = (size_t)npy->shape.dims[d];
        if (npy->count > (size_t)INT64_MAX / 16 / size) { /* 16: they may become wider */
            char text[80];
            return error_set(error, ERROR_FILE, "%s: found shape %s, more than can be addressed", name,
                             shape_text(&npy->shape, text, sizeof text));
        }
        npy->count *= size;
    }
    return OK;
}

int npy_parse(struct npy *npy, const char *name, const uint8_t *bytes, size_t length, struct error *error) {
    size_t head;
    char text[100];
    RETURN_IF(npy_header(npy, name, bytes, length, &head, error));
    if (length - head != npy->count * (size_t)npy->item)
        return error_set(error, ERROR_FILE, "%s: found %zu bytes of items, expected %zu, %s", name,
                         length - head, npy->count * (size_t)npy->item, npy_text(npy, text, sizeof text));
    npy->values = bytes + head;
    return OK;
}

const char *npy_text(const struct npy *npy, char *out, size_t bytes) {
    char shape[80];
    struct text text = text_into(out, bytes);
    text_add(&text, "%c%c%d %s",
             npy->item == 1    ? '|'
             : npy->big_endian ? '>'
                               : '<',
             npy->kind, npy->item, shape_text(&npy->shape, shape, sizeof shape));
    return out;
}
