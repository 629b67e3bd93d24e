/* Private to hdf5.c: libhdf5, loaded when a file is first written. It brings libraries of its own (in Debian
 * 13 curl and GnuTLS), for which a program that writes no such file has neither memory nor time.
 *
 * The functions are called by their own names through the table: h5->H5Fcreate(...). None of them is linked,
 * so a call that goes around the table is an error of the linker's. */
#ifndef TRAINER_FORMATS_HDF5_LIBRARY_H
#define TRAINER_FORMATS_HDF5_LIBRARY_H

#include <hdf5.h>

#include "../base/error.h"

/* The header's constants call functions on their way, as the library might not be open yet; here it is. */
#undef H5CHECK
#undef H5OPEN
#define H5CHECK
#define H5OPEN

#define HDF5_FUNCTIONS(X)                                                                                    \
    X(H5Aclose)                                                                                              \
    X(H5Acreate2)                                                                                            \
    X(H5Awrite)                                                                                              \
    X(H5Dclose)                                                                                              \
    X(H5Dcreate2)                                                                                            \
    X(H5Dwrite)                                                                                              \
    X(H5Eset_auto2)                                                                                          \
    X(H5Fclose)                                                                                              \
    X(H5Fcreate)                                                                                             \
    X(H5Fflush)                                                                                              \
    X(H5Fget_file_image)                                                                                     \
    X(H5Gclose)                                                                                              \
    X(H5Gcreate2)                                                                                            \
    X(H5Oclose)                                                                                              \
    X(H5Oopen)                                                                                               \
    X(H5Pclose)                                                                                              \
    X(H5Pcreate)                                                                                             \
    X(H5Pset_create_intermediate_group)                                                                      \
    X(H5Pset_fapl_core)                                                                                      \
    X(H5Pset_libver_bounds)                                                                                  \
    X(H5Sclose)                                                                                              \
    X(H5Screate)                                                                                             \
    X(H5Screate_simple)                                                                                      \
    X(H5Tclose)                                                                                              \
    X(H5Tcopy)                                                                                               \
    X(H5Tset_cset)                                                                                           \
    X(H5Tset_size)                                                                                           \
    X(H5open)
/* What macros of the header stand for: H5T_NATIVE_FLOAT is H5T_NATIVE_FLOAT_g. */
#define HDF5_IDS(X)                                                                                          \
    X(H5P_CLS_FILE_ACCESS_ID_g)                                                                              \
    X(H5P_CLS_LINK_CREATE_ID_g)                                                                              \
    X(H5T_C_S1_g)                                                                                            \
    X(H5T_IEEE_F32LE_g)                                                                                      \
    X(H5T_STD_I64LE_g)                                                                                       \
    X(H5T_NATIVE_LLONG_g)                                                                                    \
    X(H5T_NATIVE_FLOAT_g)

struct hdf5_library {
#define HDF5_FUNCTION(name) __typeof__(&name) name;
#define HDF5_ID(name) hid_t name;
    HDF5_FUNCTIONS(HDF5_FUNCTION)
    HDF5_IDS(HDF5_ID)
#undef HDF5_FUNCTION
#undef HDF5_ID
};

/* Fills the table; the library stays loaded. It is that of the headers that the program was built with.
 * Errors: ERROR_FILE: "libhdf5.so.103: cannot open shared object file: ...; expected the libhdf5 ..." */
int hdf5_load(struct hdf5_library *h5, struct error *error);

#endif
