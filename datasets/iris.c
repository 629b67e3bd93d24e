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

static int iris_open(struct dataset *dataset, const void *settings, const char *const *folders,
                     struct error *error) {
    (void)folders;
    const struct iris_settings *iris = settings;
    const struct csv_format format = {.separator = ',', .header = CSV_HEADER_YES, .label = ""};
    struct csv_table train = {0}, test = {0};
    int code = csv_parse(&train, "iris_training.csv", embedded_iris_training,
                         (size_t)(embedded_iris_training_end - embedded_iris_training), &format, NULL, error);
    if (code == OK)
        code = csv_parse(&test, "iris_test.csv", embedded_iris_test,
                         (size_t)(embedded_iris_test_end - embedded_iris_test), &format, NULL, error);
    if (code == OK && (train.features != MEASUREMENTS || test.features != MEASUREMENTS))
        code = error_set(error, ERROR_INTERNAL, "iris: found %d and %d features, expected %d", train.features,
                         test.features, MEASUREMENTS);
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
