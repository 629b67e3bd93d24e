/* Names that other programs have for what is called otherwise here, so that who types them is told the whole
 * option. */
#ifndef TRAINER_BASE_HABITS_H
#define TRAINER_BASE_HABITS_H

#include <stddef.h>

/* Writes into out[bytes] what to type instead of `typed`, which is unknown here, with its value (NULL: none).
 * `kind`: "option", or the name of a kind of plug-ins. Returns out, or NULL when nothing is known of it. */
const char *habit_instead(const char *kind, const char *typed, const char *value, char *out, size_t bytes);

#endif
