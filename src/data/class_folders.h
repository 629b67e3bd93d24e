/* A folder with one folder of pictures per class: which classes and files there are. */
#ifndef TRAINER_DATA_CLASS_FOLDERS_H
#define TRAINER_DATA_CLASS_FOLDERS_H

#include "../base/file.h"

enum { CLASS_FOLDERS_MOST = 10000 };

struct class_file {
    char *name; /* owned */
    int class;  /* the place of its folder among the classes */
    int label;  /* the same, or in the list that has the classes */
};

struct class_folders {
    char folder[PATH_BYTES];
    char **classes; /* [class_count] names, owned, in the order of their bytes */
    int class_count;
    struct class_file *files; /* [count] by class, then in the order of their names' bytes */
    int count, room;
    int others; /* what lies there and is not used: other suffixes, folders within a class */
    char first_other[PATH_BYTES]; /* its path */
};

/* Whether it is a folder, or a symbolic link to one. */
bool class_folders_is_folder(const char *path);

/* Lists them. Symbolic links are followed; hidden entries, whose names begin with a dot, are left out; a
 * folder within a class is not entered. `like`, when not NULL, has the classes: then some may be missing or
 * empty. Errors: ERROR_FILE: a folder cannot be read, a name that no list can hold (dataset_name_expected),
 * fewer than two classes or more than CLASS_FOLDERS_MOST, one without a picture, a class that `like` does not
 * have. On error the caller closes. */
int class_folders_open(struct class_folders *folders, const char *path, const struct class_folders *like,
                       struct error *error);
void class_folders_close(struct class_folders *folders); /* safe on a zeroed or half-open one */

/* path = where a file is. Errors: ERROR_FILE: too long. */
int class_folders_path(const struct class_folders *folders, int file, char path[PATH_BYTES],
                       struct error *error);

#endif
