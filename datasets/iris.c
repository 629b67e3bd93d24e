/* iris: 150 flowers of three species, four measurements in cm each, embedded in the program
 * (datasets/embedded/SOURCE.md), split into 120 for training and 30 for testing as in the TensorFlow
 * tutorials. The files' first row is "rows,features,names of the species". */
#include <stddef.h>
#include "../src/data/csv_examples.h"
#include "../src/data/embedded.h"

EMBED(embedded_iris_training, "datasets/embedded/iris_training.csv");
EMBED(embedded_iris_test, "datasets/embedded/iris_test.csv");

enum { SPECIES = 3, MEASUREMENTS = 4 };

static const char *const species[SPECIES] = {"Setosa", "Versicolor", "Virginica"};
static const char *const measurements[MEASUREMENTS] = {"sepal_length", "sepal_width", "petal_length",
                                                       "petal_width"};

struct iris_settings {
    struct dataset_common common;
    bool standardize;
};

static const struct option options[] = {
    DATASET_COMMON_ROWS,
    OPTION_ROW(FLAG, "standardize", struct iris_settings, standardize, .fallback = "0",
               .help = "bring each measurement to mean 0 and deviation 1 over the training examples"),
    {0}};

/* The rows below the first. */
static int parse(struct csv_table *table, const char *name, const char *begin, const char *end,
                 const struct csv_table *like, struct error *error) {
    const struct csv_format format = {.separator = ',', .decimal = '.', .header = CSV_HEADER_NO, .label = ""};
    while (begin < end && *begin++ != '\n') continue;
    return csv_parse(table, name, begin, (size_t)(end - begin), &format, like, error);
}

static int iris_open(struct dataset *dataset, const void *settings, const char *const *folders,
                     struct error *error) {
    (void)folders;
    const struct iris_settings *iris = settings;
    struct csv_table train = {0}, test = {0};
    int code =
        parse(&train, "iris_training.csv", embedded_iris_training, embedded_iris_training_end, NULL, error);
    if (code == OK)
        code = parse(&test, "iris_test.csv", embedded_iris_test, embedded_iris_test_end, &train, error);
    if (code == OK && train.cells != MEASUREMENTS)
        code = error_set(error, ERROR_INTERNAL, "iris: found %d features, expected %d", train.cells,
                         MEASUREMENTS);
    if (code == OK)
        code = csv_examples(dataset, &(struct csv_part){.table = &train, .rows = train.rows},
                            &(struct csv_part){.table = &test, .rows = test.rows}, iris->standardize, error);
    if (code == OK) code = dataset_class_names(dataset, species, SPECIES, error);
    if (code == OK) code = dataset_feature_names(dataset, measurements, MEASUREMENTS, error);
    dataset->measured = true;
    csv_close(&test);
    csv_close(&train);
    return code;
}

const struct dataset_plugin dataset_iris = {
    .plugin = {.name = "iris",
               .help = "120 training and 30 test flowers of three species; embedded",
               .options = options,
               .settings_bytes = sizeof(struct iris_settings)},
    .open = iris_open,
};
