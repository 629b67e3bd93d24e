/* Tables become a data set's examples. The classes are collected from the training part by binary search in a
 * sorted list; when all of them are integers the list is put in the order of their values ("10" after "9").
 */
#include "csv_examples.h"

#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "standardize.h"

typedef int compare_function(const char *a, const char *b);

struct classes {
    const char **names; /* [count] in the order of `compare`, owned; texts in the table */
    int count;
    compare_function *compare;
};

static bool is_integer(const char *text) {
    enum { MOST_DIGITS = 18 }; /* fits a long long */
    if (*text == '-' || *text == '+') text++;
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && digits <= MOST_DIGITS && text[digits] == 0;
}

/* By value, then by text, so that "1" and "01" stay two classes. */
static int compare_integers(const char *a, const char *b) {
    const long long x = strtoll(a, NULL, 10), y = strtoll(b, NULL, 10);
    return x != y ? (x > y) - (x < y) : strcmp(a, b);
}

static int compare_entries(const void *a, const void *b) {
    return compare_integers(*(const char *const *)a, *(const char *const *)b);
}

/* Where `label` is or would stand; *found says which. */
static int find_class(const struct classes *classes, const char *label, bool *found) {
    int low = 0, high = classes->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (classes->compare(classes->names[middle], label) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < classes->count && strcmp(classes->names[low], label) == 0;
    return low;
}

static int collect_classes(struct classes *classes, const struct csv_part *part, struct error *error) {
    const struct csv_table *table = part->table;
    const char *name = table->source.name;
    *classes = (struct classes){.compare = strcmp};
    RETURN_IF(memory_array(&classes->names, CSV_MAX_CLASSES, "class names", error));
    bool found, integers = true;
    for (int row = part->first; row < part->first + part->rows; row++) {
        const char *label = table->labels[row];
        const int at = find_class(classes, label, &found);
        if (found) continue;
        char place[128];
        if (classes->count == CSV_MAX_CLASSES)
            return error_set(error, ERROR_FILE,
                             "%s: %s: found label number %d, expected at most %d different ones", name,
                             csv_place(table, table->lines[row], table->label, place, sizeof place),
                             CSV_MAX_CLASSES + 1, CSV_MAX_CLASSES);
        memmove(classes->names + at + 1, classes->names + at,
                (size_t)(classes->count - at) * sizeof *classes->names);
        classes->names[at] = label;
        classes->count++;
        integers = integers && is_integer(label);
    }
    char shown[CSV_SHOWN_BYTES];
    if (classes->count < 2)
        return error_set(error, ERROR_FILE,
                         "%s: found one class, \"%s\", in all %d training rows, expected at least two", name,
                         csv_shown(classes->names[0], shown), part->rows);
    if (integers) {
        qsort(classes->names, (size_t)classes->count, sizeof *classes->names, compare_entries);
        classes->compare = compare_integers;
    }
    return OK;
}

/* *block = the class number of each row of the part. */
static int number_labels(void **block, const struct classes *classes, const struct csv_part *part,
                         struct error *error) {
    const struct csv_table *table = part->table;
    RETURN_IF(memory_zeroed(block, (size_t)part->rows, sizeof(int), "labels", error));
    for (int i = 0; i < part->rows; i++) {
        bool found;
        const char *label = table->labels[part->first + i];
        char place[128], shown[CSV_SHOWN_BYTES];
        ((int *)*block)[i] = find_class(classes, label, &found);
        if (!found)
            return error_set(
                error, ERROR_FILE, "%s: %s: found \"%s\", expected one of the %d labels of the training part",
                table->source.name,
                csv_place(table, table->lines[part->first + i], table->label, place, sizeof place),
                csv_shown(label, shown), classes->count);
    }
    return OK;
}

/* The header's names, without the label's. */
static int name_features(struct dataset *dataset, const struct csv_table *table, struct error *error) {
    if (!table->names) return OK;
    const char **names;
    RETURN_IF(memory_array(&names, table->columns, "feature names", error));
    int count = 0;
    for (int c = 0; c < table->columns; c++)
        if (c != table->label) names[count++] = table->names[c];
    const int code = dataset_feature_names(dataset, names, count, error);
    memory_free(names);
    return code;
}

static float *part_floats(const struct csv_part *part) {
    return part->table->floats + (size_t)part->first * (size_t)part->table->features;
}

static struct examples part_examples(const struct csv_part *part, const int *labels) {
    return (struct examples){.count = part->rows,
                             .features = part->table->features,
                             .floats = part_floats(part),
                             .scale = 1,
                             .labels = labels};
}

static int standardize_parts(struct dataset *dataset, const struct csv_part *train,
                             const struct csv_part *test, struct error *error) {
    const int features = train->table->features;
    RETURN_IF(memory_array(&dataset->mean, features, "means", error));
    RETURN_IF(memory_array(&dataset->deviation, features, "deviations", error));
    float *mean = dataset->mean, *deviation = dataset->deviation;
    standardize_measure(part_floats(train), train->rows, features, mean, deviation);
    standardize_apply(part_floats(train), train->rows, features, mean, deviation);
    standardize_apply(part_floats(test), test->rows, features, mean, deviation);
    return OK;
}

int csv_examples(struct dataset *dataset, const struct csv_part *train, const struct csv_part *test,
                 bool standardize, struct error *error) {
    struct classes classes = {0};
    int code = collect_classes(&classes, train, error);
    if (code == OK) code = number_labels(&dataset->blocks[2], &classes, train, error);
    if (code == OK) code = number_labels(&dataset->blocks[3], &classes, test, error);
    if (code == OK) code = dataset_class_names(dataset, classes.names, classes.count, error);
    memory_free(classes.names);
    RETURN_IF(code);
    RETURN_IF(name_features(dataset, train->table, error));
    if (standardize) RETURN_IF(standardize_parts(dataset, train, test, error));
    dataset->shape = SHAPE(train->table->features);
    dataset->train = part_examples(train, dataset->blocks[2]);
    dataset->test = part_examples(test, dataset->blocks[3]);
    dataset->blocks[0] = train->table->floats;
    if (test->table != train->table) dataset->blocks[1] = test->table->floats;
    train->table->floats = test->table->floats = NULL; /* the data set owns them now */
    return OK;
}
