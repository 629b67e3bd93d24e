/* Private to the reader of HDF5: places in the file, and the messages of an object's header. */
#ifndef TRAINER_FORMATS_HDF5_PARTS_H
#define TRAINER_FORMATS_HDF5_PARTS_H

#include "hdf5_reader.h"

enum hdf5_message_type {
    HDF5_DATASPACE = 1,
    HDF5_LINKS = 2, /* where a group's names are, unless each is a message */
    HDF5_DATATYPE = 3,
    HDF5_LINK = 6, /* a name in a group */
    HDF5_LAYOUT = 8,
    HDF5_ATTRIBUTE = 12,
    HDF5_CONTINUATION = 16,
    HDF5_GROUP = 17 /* where a group's B-tree and names are */
};

struct hdf5_message {
    int type;
    bool shared; /* what it says is elsewhere */
    const uint8_t *data;
    size_t bytes;
};

/* So many bytes of the file from `at` on, or NULL: it has not as many. */
const uint8_t *hdf5_bytes(const struct hdf5_reader *file, uint64_t at, uint64_t count);

/* Counts a step. Errors: ERROR_FILE: there were too many. */
int hdf5_step(struct hdf5_reader *file, struct error *error);
int hdf5_damaged(const struct hdf5_reader *file, const char *what, struct error *error);

/* Calls `each` with the messages of the object's header until it sets *stop. */
int hdf5_messages(struct hdf5_reader *file, uint64_t object,
                  int (*each)(void *argument, const struct hdf5_message *message, bool *stop,
                              struct error *error),
                  void *argument, struct error *error);

/* --- names in groups that are messages: hdf5_links.c --- */

struct hdf5_wanted {
    const char *name; /* [length] */
    size_t length;
    uint64_t object; /* 0: not found yet */
};

/* Sets wanted->object if the message, or one of those in a heap that has a tree, is of the name. */
int hdf5_link_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes,
                   struct hdf5_wanted *wanted, struct error *error);
int hdf5_links_find(struct hdf5_reader *file, uint64_t heap_at, uint64_t tree_at, struct hdf5_wanted *wanted,
                    struct error *error);

/* --- what a value is: hdf5_values.c --- */

enum hdf5_kind { HDF5_FLOATS, HDF5_INTEGERS, HDF5_FIXED_TEXTS, HDF5_TEXTS, HDF5_OTHER };

struct hdf5_type {
    enum hdf5_kind kind;
    size_t item; /* bytes */
    bool big_endian;
    bool is_signed;   /* of integers */
    const char *what; /* in words: "integers" */
};

/* Of a datatype's and a dataspace's message. Errors: ERROR_FILE. A shape may have sizes of 0. */
int hdf5_type_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes, struct hdf5_type *type,
                   struct error *error);
int hdf5_space_read(const struct hdf5_reader *file, const uint8_t *data, size_t bytes, struct shape *shape,
                    struct error *error);

#endif
