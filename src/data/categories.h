/* The different values of a column of texts, each with a number. */
#ifndef TRAINER_DATA_CATEGORIES_H
#define TRAINER_DATA_CATEGORIES_H

#include <stdbool.h>
#include "../base/error.h"

struct category {
    char *text; /* owned */
    int line;   /* of the file, where it was first met */
};

struct categories {
    struct category *at; /* [count] in the order in which they were met, until they are sorted */
    int count, room;
    int *slots; /* [2 * room] places in `at` plus 1, by hash; 0: free */
};

/* The number of the value, or -1. */
int categories_find(const struct categories *categories, const char *text);
/* The same, after adding it if it is new. Errors: memory. */
int categories_add(struct categories *categories, const char *text, int line, int *number,
                   struct error *error);
/* Numbers the values anew: by value if all are whole numbers ("9" before "10"), else by their bytes.
 * place[count] = the new number of each old one; of those that are not `kept` (NULL: all are), which are
 * taken out, -1. Errors: memory. */
int categories_sort(struct categories *categories, const bool *kept, int *place, struct error *error);
void categories_close(struct categories *categories); /* safe on a zeroed one */

#endif
