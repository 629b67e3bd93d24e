/* Ranges of devices, as --devices and --slow write them: "cpu:0-9" is cpu:0, cpu:1 and so on to cpu:9. */
#ifndef TRAINER_DEVICE_RANGES_H
#define TRAINER_DEVICE_RANGES_H

#include <stdbool.h>
#include <stddef.h>

enum { RANGE_LABEL_MOST = 1023, RANGE_NAMED = 8 };

struct device_range {
    const char *kind;   /* [kind_length] in the text: "cpu" */
    size_t kind_length; /* at most 15 */
    int first, last;    /* labels, in order; of a single device the same */
};

/* Reads item[length], "cpu:3" or "cpu:0-9". False: it is neither, or a label is above RANGE_LABEL_MOST. */
bool range_read(const char *item, size_t length, struct device_range *range);

/* Whether name[length] is a device of it. */
bool range_has(const struct device_range *range, const char *name, size_t length);

/* Shortens a list of devices, "cpu:0,cpu:1,...", in place: more than RANGE_NAMED of one kind whose labels
 * follow each other become a range. Groups stay as they are. */
void ranges_fold(char *list);

#endif
