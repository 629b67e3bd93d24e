/* Memory: one way to get it, with a written contract.
 *
 * `memory_zeroed` gives `count * bytes` zeroed bytes on a 64-byte boundary; it fails with ERROR_DEVICE and
 * words that name what was wanted. Nothing is allocated inside the training loop. For tests, the environment
 * variable TRAINER_FAIL_ALLOCATION=N makes the N-th call (from 1) of the process fail. */
#ifndef TRAINER_BASE_MEMORY_H
#define TRAINER_BASE_MEMORY_H

#include <stddef.h>
#include "error.h"

enum { CACHE_LINE = 64, LINE_FLOATS = CACHE_LINE / (int)sizeof(float) };

/* For the beginning of the program: where its addresses are limited (ulimit -v), all threads share one heap.
 * A heap of a thread's own takes 128 MB of them for a moment, and 64 MB for good, which others then lack. */
void memory_heed_limit(void);

/* *out = count * bytes zeroed bytes (at least one line); what = what it is for, for the words. */
int memory_zeroed(void **out, size_t count, size_t bytes, const char *what, struct error *error);

/* The same, typed: `struct point *points; RETURN_IF(memory_array(&points, n, "the points", error));` */
#define memory_array(out, count, what, error)                                                                \
    memory_array_of((out), (size_t)(count), sizeof **(out), (what), (error))
int memory_array_of(void *out, size_t count, size_t bytes, const char *what, struct error *error);

/* Grows (or makes, when *array is NULL) an array from old_count to new_count elements; new ones are 0. */
#define memory_grow(array, old_count, new_count, what, error)                                                \
    memory_grow_of((array), (size_t)(old_count), (size_t)(new_count), sizeof **(array), (what), (error))
int memory_grow_of(void *array, size_t old_count, size_t new_count, size_t bytes, const char *what,
                   struct error *error);

/* Whether so many bytes can be had just now; none are kept. For a library that cannot say when it finds none:
 * called before it, what it needs is left for it. Counts as a request. Errors: ERROR_DEVICE. */
int memory_probe(size_t bytes, const char *what, struct error *error);

/* Bytes that this process may hope for at most: the memory of the machine, or less where its control group
 * has less (cgroup.h), or its addresses are limited (ulimit -v). */
size_t memory_at_most(void);

/* A copy of a text. */
int memory_text(char **out, const char *text, struct error *error);

/* Frees and is safe with NULL. */
void memory_free(void *block);

#endif
