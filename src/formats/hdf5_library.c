/* See hdf5_library.h. */
#include "hdf5_library.h"

#include <dlfcn.h>
#include <string.h>

static int missing(struct error *error) {
    return error_set(error, ERROR_FILE,
                     "%s; expected the libhdf5 that the program was built with (libhdf5-dev)", dlerror());
}

static int find(void *library, const char *name, void **at, struct error *error) {
    *at = dlsym(library, name);
    return *at ? OK : missing(error);
}

int hdf5_load(struct hdf5_library *h5, struct error *error) {
    void *library = dlopen(TRAINER_HDF5_FILE, RTLD_NOW | RTLD_LOCAL), *at = NULL;
    if (!library) return missing(error);
#define FIND_FUNCTION(name)                                                                                  \
    RETURN_IF(find(library, #name, &at, error));                                                             \
    memcpy(&h5->name, &at, sizeof at);
    HDF5_FUNCTIONS(FIND_FUNCTION)
    if (h5->H5open() < 0) return error_set(error, ERROR_FILE, "%s: cannot be used", TRAINER_HDF5_FILE);
#define FIND_ID(name)                                                                                        \
    RETURN_IF(find(library, #name, &at, error));                                                             \
    h5->name = *(const hid_t *)at; /* which H5open has set */
    HDF5_IDS(FIND_ID)
    return OK;
}
