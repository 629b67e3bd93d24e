/* The files of a folder and of the folders in it, by their names from there: "summary.json",
 * "checkpoint/best/state.safetensors". For folders that a program of ours wrote: few files, plain names. */
#ifndef TRAINER_BASE_TREE_H
#define TRAINER_BASE_TREE_H

#include <stdbool.h>
#include "error.h"

enum { TREE_FILES = 64, TREE_NAME_BYTES = 128 };

struct tree {
    char names[TREE_FILES][TREE_NAME_BYTES]; /* [count] in their order */
    int count;
};

/* Lists the regular files, but those that are still being written (NAME.part), and what has names that
 * tree_is_name does not allow, which nobody of us gave. A folder that is not there has none. Errors:
 * ERROR_FILE: it cannot be read; more than TREE_FILES files. */
int tree_list(struct tree *tree, const char *folder, struct error *error);

/* Whether it can be the name of a file: up to four words of letters, digits and ._=-, joined by '/', none of
 * which begins with a dot, and not NAME.part. So it leads to nowhere else. */
bool tree_is_name(const char *name);

/* Removes these files and those that are still being written, and the folders that are empty then, itself
 * too. Errors: as tree_list; ERROR_FILE: one cannot be removed. */
int tree_remove(const char *folder, struct error *error);

#endif
