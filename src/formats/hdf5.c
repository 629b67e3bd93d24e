/* See hdf5.h. Files are of HDF5 1.8's format, which every reader knows. */
#include "hdf5.h"

#include <string.h>

#include "../base/memory.h"
#include "hdf5_library.h"

enum { INCREMENT = 1 << 20, ATTRIBUTE_MOST = 64000 };

struct hdf5 {
    struct hdf5_library h5;
    hid_t file, links; /* links: property list that makes groups on the way */
};

/* Of what libhdf5 returned: less than 0 is a failure, of which it says nothing by itself. */
static int check(long long result, const char *what, struct error *error) {
    return result >= 0 ? OK : error_set(error, ERROR_FILE, "HDF5: %s: cannot be made", what);
}

int hdf5_ready(struct error *error) {
    struct hdf5_library h5;
    return hdf5_load(&h5, error);
}

int hdf5_open(struct hdf5 **out, struct error *error) {
    struct hdf5_library loaded;
    struct hdf5 *file = NULL;
    *out = NULL;
    RETURN_IF(hdf5_load(&loaded, error));
    RETURN_IF(memory_array(&file, 1, "an HDF5 file", error));
    file->h5 = loaded;
    const struct hdf5_library *h5 = &file->h5;
    h5->H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const hid_t access = h5->H5Pcreate(h5->H5P_CLS_FILE_ACCESS_ID_g);
    file->links = h5->H5Pcreate(h5->H5P_CLS_LINK_CREATE_ID_g);
    h5->H5Pset_create_intermediate_group(file->links, 1);
    h5->H5Pset_fapl_core(access, INCREMENT, 0); /* never on a disk */
    h5->H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
    file->file = h5->H5Fcreate("network", H5F_ACC_TRUNC, H5P_DEFAULT, access);
    h5->H5Pclose(access);
    *out = file;
    return check(file->file, "a file", error);
}

int hdf5_group(struct hdf5 *file, const char *path, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    const hid_t group = h5->H5Gcreate2(file->file, path, file->links, H5P_DEFAULT, H5P_DEFAULT);
    RETURN_IF(check(group, path, error));
    h5->H5Gclose(group);
    return OK;
}

/* Of a type that is closed here. */
static int put_attribute(const struct hdf5 *file, const char *path, const char *name, hid_t type, hid_t space,
                         const void *value, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    const hid_t group = h5->H5Oopen(file->file, *path ? path : "/", H5P_DEFAULT);
    const hid_t attribute =
        group < 0 ? -1 : h5->H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool written = attribute >= 0 && h5->H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0) h5->H5Aclose(attribute);
    if (group >= 0) h5->H5Oclose(group);
    h5->H5Sclose(space);
    h5->H5Tclose(type);
    return written ? OK
                   : error_set(error, ERROR_FILE, "HDF5: %s of %s: cannot be made", name,
                               *path ? path : "the file");
}

static hid_t text_type(const struct hdf5_library *h5, size_t bytes) {
    const hid_t type = h5->H5Tcopy(h5->H5T_C_S1_g);
    h5->H5Tset_size(type, bytes);
    h5->H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

int hdf5_text(struct hdf5 *file, const char *path, const char *name, const char *text, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    return put_attribute(file, path, name, text_type(h5, H5T_VARIABLE), h5->H5Screate(H5S_SCALAR), &text,
                         error);
}

int hdf5_texts(struct hdf5 *file, const char *path, const char *name, const char *const *texts, int count,
               struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    size_t longest = 1;
    char *all = NULL;
    const hsize_t dims[] = {(hsize_t)count};
    for (int i = 0; i < count; i++)
        if (strlen(texts[i]) + 1 > longest) longest = strlen(texts[i]) + 1;
    if (longest * (size_t)count > ATTRIBUTE_MOST)
        return error_set(error, ERROR_FILE, "HDF5: %s: found %zu bytes, expected at most %d", name,
                         longest * (size_t)count, ATTRIBUTE_MOST);
    RETURN_IF(memory_array(&all, longest * (size_t)count + 1, "names in an HDF5 file", error));
    for (int i = 0; i < count; i++) memcpy(all + (size_t)i * longest, texts[i], strlen(texts[i]));
    const int code = put_attribute(file, path, name, text_type(h5, longest),
                                   h5->H5Screate_simple(1, dims, NULL), all, error);
    memory_free(all);
    return code;
}

/* `space` is closed here. */
static int put_values(struct hdf5 *file, const char *path, hid_t space, hid_t kept_type, hid_t type,
                      const void *values, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    const hid_t array =
        h5->H5Dcreate2(file->file, path, kept_type, space, file->links, H5P_DEFAULT, H5P_DEFAULT);
    const bool written = array >= 0 && h5->H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0;
    if (array >= 0) h5->H5Dclose(array);
    h5->H5Sclose(space);
    return check(written ? 0 : -1, path, error);
}

int hdf5_array(struct hdf5 *file, const char *path, const struct shape *shape, const float *values,
               struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    hsize_t dims[MAX_RANK];
    for (int i = 0; i < shape->rank; i++) dims[i] = (hsize_t)shape->dims[i];
    const hid_t space =
        shape->rank > 0 ? h5->H5Screate_simple(shape->rank, dims, NULL) : h5->H5Screate(H5S_SCALAR);
    return put_values(file, path, space, h5->H5T_IEEE_F32LE_g, h5->H5T_NATIVE_FLOAT_g, values, error);
}

int hdf5_number(struct hdf5 *file, const char *path, long long value, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    return put_values(file, path, h5->H5Screate(H5S_SCALAR), h5->H5T_STD_I64LE_g, h5->H5T_NATIVE_LLONG_g,
                      &value, error);
}

int hdf5_image(struct hdf5 *file, void **bytes, size_t *count, struct error *error) {
    const struct hdf5_library *h5 = &file->h5;
    *bytes = NULL;
    RETURN_IF(check(h5->H5Fflush(file->file, H5F_SCOPE_GLOBAL), "a file", error));
    const ssize_t size = h5->H5Fget_file_image(file->file, NULL, 0);
    RETURN_IF(check(size, "a file", error));
    RETURN_IF(memory_zeroed(bytes, (size_t)size, 1, "an HDF5 file", error));
    *count = (size_t)size;
    if (h5->H5Fget_file_image(file->file, *bytes, *count) == size) return OK;
    memory_free(*bytes);
    *bytes = NULL;
    return check(-1, "a file", error);
}

void hdf5_close(struct hdf5 *file) {
    if (!file) return;
    const struct hdf5_library *h5 = &file->h5;
    if (file->file >= 0) h5->H5Fclose(file->file);
    h5->H5Pclose(file->links);
    memory_free(file);
}
