/* Texts put together piece by piece, so that nobody counts bytes beside snprintf.
 *
 *     char names[200];
 *     struct text text = text_into(names, sizeof names);
 *     for (int i = 0; i < count; i++) text_item(&text, ", ", "%s", name[i]);
 *
 * A text in somebody's array is cut where the array ends. One that grows (text_growing) is never cut; the
 * first failure is remembered, so only the end is to be checked. Both always end with a 0. */
#ifndef TRAINER_BASE_TEXT_H
#define TRAINER_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include "error.h"

struct text {
    char *bytes;         /* [room] the array, or owned: memory_free */
    size_t room, used;   /* used: without the 0 */
    bool grows, cut;     /* cut: something did not fit, or could not be had */
    struct error *error; /* of one that grows */
};

struct text text_into(char *array, size_t bytes);
struct text text_growing(struct error *error);

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);
void text_add_bytes(struct text *text, const char *bytes, size_t count);

/* Of a list: the separator goes first, unless the text is empty. */
__attribute__((format(printf, 3, 4))) void text_item(struct text *text, const char *separator,
                                                     const char *format, ...);

/* Of one that grows: OK, or the code of what failed. */
int text_end(const struct text *text);

/* As a shell takes it for one word: itself, or in single quotes, in out[bytes], cut where that ends. */
const char *text_word(const char *text, char *out, size_t bytes);
/* The same of a path, for a message. */
enum { TEXT_WORD_BYTES = 220 };
#define TEXT_WORD(text) text_word(text, (char[TEXT_WORD_BYTES]){0}, TEXT_WORD_BYTES)

#endif
