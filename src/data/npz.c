/* Archives of arrays. See npz.h. */
#include "npz.h"

#include <stdio.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "csv_rows.h"

static const char ENDING[] = ".npy";
enum { ENDING_BYTES = sizeof ENDING - 1 };

/* Bytes of the array's name; 0: the member is none. */
static size_t name_bytes(const struct zip_member *member) {
    if (member->name_bytes <= ENDING_BYTES) return 0;
    const size_t bytes = member->name_bytes - ENDING_BYTES;
    return memcmp(member->name + bytes, ENDING, ENDING_BYTES) == 0 ? bytes : 0;
}

const struct zip_member *npz_find(const struct zip *zip, const char *name) {
    const size_t bytes = strlen(name);
    for (int i = 0; i < zip->count && bytes > 0; i++)
        if (name_bytes(&zip->members[i]) == bytes && memcmp(zip->members[i].name, name, bytes) == 0)
            return &zip->members[i];
    return NULL;
}

/* The name as a word, short enough and printable. */
static const char *shown_name(const struct zip_member *member, char out[CSV_SHOWN_BYTES]) {
    char name[CSV_SHOWN_BYTES + 16];
    snprintf(name, sizeof name, "%.*s",
             name_bytes(member) < sizeof name ? (int)name_bytes(member) : (int)sizeof name, member->name);
    return csv_shown(name, out);
}

const char *npz_names(const struct zip *zip, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    char shown[CSV_SHOWN_BYTES];
    for (int i = 0; i < zip->count; i++) {
        if (name_bytes(&zip->members[i]) == 0) continue;
        if (text.used + CSV_SHOWN_BYTES + 8 > bytes) {
            text_add(&text, ", ...");
            break;
        }
        text_item(&text, ", ", "%s", shown_name(&zip->members[i], shown));
    }
    if (text.used == 0) text_add(&text, "no array");
    return out;
}

/* Whether the array may be unpacked, before anything is asked for: what it says of itself is what the
 * directory says, and no more than so few bytes may become. */
static int check_size(const struct npz_array *array, const struct zip_member *member, size_t head,
                      struct error *error) {
    const struct npy *npy = &array->npy;
    const uint64_t bytes = head + npy->count * (uint64_t)npy->item;
    char text[100];
    if (bytes != member->unpacked)
        return error_set(error, ERROR_FILE, "%s: found %llu bytes in the directory, expected %llu for %s",
                         array->name, (unsigned long long)member->unpacked, (unsigned long long)bytes,
                         npy_text(npy, text, sizeof text));
    if (bytes > NPZ_UNPACKED_FREE && bytes / NPZ_UNPACKED_TIMES > member->packed)
        return error_set(
            error, ERROR_FILE,
            "%s: found %llu bytes packed into %llu, expected at most %d times as many: save it with np.savez",
            array->name, (unsigned long long)bytes, (unsigned long long)member->packed, NPZ_UNPACKED_TIMES);
    return OK;
}

/* Its beginning, in `start`[NPY_HEAD_MOST], then the rest behind it. */
static int unpack(struct npz_array *array, struct zip_reader *reader, uint8_t *start, struct error *error) {
    size_t got, head, rest;
    RETURN_IF(zip_read(reader, start, NPY_HEAD_MOST, &got, error));
    RETURN_IF(npy_header(&array->npy, array->name, start, got, &head, error));
    RETURN_IF(check_size(array, reader->member, head, error));
    const size_t bytes = (size_t)reader->member->unpacked;
    if (got > bytes) got = bytes; /* zip_finish will say it */
    RETURN_IF(memory_zeroed(&array->block, bytes, 1, array->name, error));
    memcpy(array->block, start, got);
    RETURN_IF(zip_read(reader, (uint8_t *)array->block + got, bytes - got, &rest, error));
    RETURN_IF(zip_finish(reader, error));
    return npy_parse(&array->npy, array->name, array->block, bytes, error);
}

static int open_packed(struct npz_array *array, const struct zip *zip, const struct zip_member *member,
                       struct error *error) {
    struct zip_reader reader;
    uint8_t *start = NULL;
    int code = zip_reader_open(&reader, zip, member, array->name, error);
    if (code == OK) code = memory_array(&start, NPY_HEAD_MOST, "the beginning of an array", error);
    if (code == OK) code = unpack(array, &reader, start, error);
    memory_free(start);
    zip_reader_close(&reader);
    return code;
}

/* An array of another order is copied, and the copy is what counts from then on. */
static int put_in_order(struct npz_array *array, struct error *error) {
    void *block;
    RETURN_IF(npy_to_c_order(&array->npy, &block, error));
    if (!block) return OK;
    memory_free(array->block);
    array->block = block;
    return OK;
}

int npz_open(struct npz_array *array, const struct zip *zip, const struct zip_member *member,
             struct error *error) {
    char shown[CSV_SHOWN_BYTES];
    const uint8_t *data;
    *array = (struct npz_array){0};
    snprintf(array->name, sizeof array->name, "%.380s: %s", zip->name, shown_name(member, shown));
    if (member->method == ZIP_DEFLATED) {
        RETURN_IF(open_packed(array, zip, member, error));
    } else {
        RETURN_IF(zip_stored(&data, zip, member, array->name, error));
        RETURN_IF(npy_parse(&array->npy, array->name, data, (size_t)member->packed, error));
    }
    return put_in_order(array, error);
}

int npz_open_file(struct npz_array *array, const char *path, const uint8_t *bytes, size_t length,
                  struct error *error) {
    *array = (struct npz_array){0};
    snprintf(array->name, sizeof array->name, "%.440s", path);
    RETURN_IF(npy_parse(&array->npy, array->name, bytes, length, error));
    return put_in_order(array, error);
}

void npz_close(struct npz_array *array) {
    memory_free(array->block);
    *array = (struct npz_array){0};
}
