/* npz: the weights by name, as numpy.load reads them. */
#include <string.h>

#include "../base/text.h"
#include "../formats/zip_write.h"
#include "../infer/arrays.h"

enum { HEADER_BYTES = 256, HEADER_ALIGNMENT = 64, PREAMBLE_BYTES = 10 };

/* The header of a .npy file, version 1.0: padded with blanks, so that the numbers begin on a boundary. */
static size_t npy_header(const struct shape *shape, char header[HEADER_BYTES]) {
    struct text text = text_into(header + PREAMBLE_BYTES, HEADER_BYTES - PREAMBLE_BYTES);
    text_add(&text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < shape->rank; i++)
        text_add(&text, i + 1 < shape->rank ? "%d, " : "%d,", shape->dims[i]);
    text_add(&text, "), }");
    while ((PREAMBLE_BYTES + text.used + 1) % HEADER_ALIGNMENT != 0) text_add(&text, " ");
    text_add(&text, "\n");
    memcpy(header, "\x93NUMPY\x01", 7);
    header[7] = 0;
    header[8] = (char)(text.used & 0xff);
    header[9] = (char)(text.used >> 8);
    return PREAMBLE_BYTES + text.used;
}

static int write_array(struct zip_writing *zip, const struct array *array, struct error *error) {
    char header[HEADER_BYTES], name[sizeof array->name + sizeof ".npy"];
    const struct zip_piece pieces[] = {{header, npy_header(&array->shape, header)},
                                       {array->values, shape_count(&array->shape) * sizeof *array->values}};
    snprintf(name, sizeof name, "%s.npy", array->name);
    return zip_add(zip, name, pieces, 2, error);
}

static int write(FILE *file, const struct exported *exported, struct error *error) {
    struct arrays arrays = {0};
    struct zip_writing zip = {.file = file};
    int code = arrays_open(&arrays, exported, error);
    for (int i = 0; code == OK && i < arrays.count; i++) code = write_array(&zip, &arrays.arrays[i], error);
    if (code == OK) code = zip_end(&zip, error);
    zip_close(&zip);
    arrays_close(&arrays);
    return code;
}

const struct format format_npz = {
    .plugin = {.name = "npz", .help = "the weights by name, for NumPy"},
    .arrays = true,
    .write = write,
};
