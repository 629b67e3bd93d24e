/* Training through the library: the same weights as `trainer train`, from a data set or from the program's
 * own arrays; what the program is told, and what it has afterwards; and how it is refused. */
#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../src/base/memory.h"
#include "../../src/data/dataset.h"
#include "../../src/run/run.h"
#include "../library_check.h"

static const char *const settings[][2] = {{"model", "mlp:hidden=12"},
                                          {"strategy", "sync"},
                                          {"devices", "cpu:0,cpu:1"},
                                          {"epochs", "2"},
                                          {"batch", "20"},
                                          {"threads", "1"}};
enum { SETTINGS = sizeof settings / sizeof *settings, EPOCHS = 2, BATCH = 20, WORKERS = 2 };

static struct trainer_training *open_training(void) {
    struct trainer_training *training = NULL;
    GOOD(trainer_training_open(&training, &error));
    for (int i = 0; i < SETTINGS; i++)
        GOOD(trainer_training_set(training, settings[i][0], settings[i][1], &error));
    return training;
}

/* --- the digits that are embedded in the program, as arrays --- */

static struct dataset digits;
static float *features[2]; /* of training and test */

static void open_digits(void) {
    struct choice choice;
    struct error why = {0};
    CHECK(plugin_choose(&choice, &dataset_kind, "digits", &why) == OK &&
              dataset_open(&digits, &choice, NULL, &why) == OK,
          "%s", why.words);
    const struct examples *const parts[] = {&digits.train, &digits.test};
    for (int p = 0; p < 2; p++) {
        const size_t numbers = (size_t)parts[p]->count * (size_t)parts[p]->features;
        features[p] = malloc(numbers * sizeof(float));
        for (size_t i = 0; i < numbers; i++) features[p][i] = parts[p]->scale * (float)parts[p]->bytes[i];
    }
}

static struct trainer_data digits_data(void) {
    return (struct trainer_data){
        .shape = TRAINER_SHAPE(64),
        .task = TRAINER_CLASSES,
        .outputs = 10,
        .train = {.count = digits.train.count, .features = features[0], .labels = digits.train.labels},
        .test = {.count = digits.test.count, .features = features[1], .labels = digits.test.labels}};
}

static const char *read_digit(void *argument, int number, float *out, void *label) {
    (void)argument;
    memcpy(out, features[0] + number * 64, 64 * sizeof(float));
    *(int *)label = digits.train.labels[number];
    return NULL;
}

static const char *read_none(void *argument, int number, float *out, void *label) {
    (void)argument, (void)out, (void)label;
    return number == 3 ? "the disk is empty" : NULL;
}

static void check_same_weights(const struct trainer_training *one, const struct trainer_training *other) {
    struct trainer_shape shape, other_shape;
    const float *values, *other_values;
    int i = 0;
    for (const char *name; (name = trainer_training_weight(one, i, &shape, &values)) != NULL; i++) {
        const char *other_name = trainer_training_weight(other, i, &other_shape, &other_values);
        size_t count = 1;
        for (int axis = 0; axis < shape.rank; axis++) count *= (size_t)shape.dims[axis];
        CHECK(other_name && strcmp(name, other_name) == 0 && memcmp(&shape, &other_shape, sizeof shape) == 0,
              "weight %d", i);
        CHECK(other_name && memcmp(values, other_values, count * sizeof *values) == 0, "%s differs", name);
    }
    CHECK(i == 4 && !trainer_training_weight(other, i, &shape, &values), "%d weights", i);
}

/* --- the same as the program --- */

static void read_file(const char *folder, char **data, size_t *bytes) {
    char path[PATH_BYTES];
    struct error why = {0};
    CHECK(file_join(path, folder, "model.safetensors", &why) == OK &&
              file_read(path, 1 << 20, data, bytes, &why) == OK,
          "%s", why.words);
}

static void test_same_as_the_program(void) {
    struct trainer_training *training = open_training();
    struct trainer_result result;
    struct typed *typed = NULL;
    struct error why = {0};
    struct run_result ran;
    char *data[2] = {NULL};
    size_t bytes[2] = {0};
    GOOD(trainer_training_set(training, "out", "by-library", &error));
    GOOD(trainer_training_run(training, &result, &error));
    CHECK(memory_array(&typed, 1, "settings", &why) == OK, "%s", why.words);
    option_defaults(run_options, typed);
    for (int i = 0; i < SETTINGS; i++)
        CHECK(option_set(run_options, typed, "--", settings[i][0], settings[i][1], &why) == OK, "%s",
              why.words);
    CHECK(option_set(run_options, typed, "--", "out", "by-program", &why) == OK, "%s", why.words);
    typed->value.quiet = true;
    CHECK(run_train_here(typed, &ran, &why) == OK, "%s", why.words);
    CHECK(ran.summary.test_score == result.test_score && ran.summary.updates == result.updates, "%g, %ld",
          result.test_score, result.updates);
    read_file("by-library", &data[0], &bytes[0]);
    read_file("by-program", &data[1], &bytes[1]);
    CHECK(bytes[0] > 1000 && bytes[0] == bytes[1] && memcmp(data[0], data[1], bytes[0]) == 0,
          "the models differ");
    free(data[0]);
    free(data[1]);
    run_result_free(&ran);
    memory_free(typed);
    trainer_training_close(training);
}

/* Arrays and a function give the weights that the data set gives, and no file is written. */
static void test_own_data(void) {
    struct trainer_training *by_name = open_training(), *by_arrays = open_training(),
                            *by_call = open_training();
    struct trainer_data data = digits_data();
    struct sigaction before, after;
    GOOD(trainer_training_run(by_name, NULL, &error));
    GOOD(trainer_training_data(by_arrays, &data, &error));
    sigaction(SIGINT, NULL, &before);
    GOOD(trainer_training_run(by_arrays, NULL, &error));
    sigaction(SIGINT, NULL, &after);
    CHECK(before.sa_handler == after.sa_handler, "the run caught a signal");
    check_same_weights(by_name, by_arrays);
    data.train = (struct trainer_examples){.count = digits.train.count, .read = read_digit};
    data.test = (struct trainer_examples){0};
    GOOD(trainer_training_data(by_call, &data, &error));
    GOOD(trainer_training_run(by_call, NULL, &error));
    check_same_weights(by_name, by_call);
    trainer_training_close(by_name);
    trainer_training_close(by_arrays);
    trainer_training_close(by_call);
    DIR *folder = opendir(".");
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        CHECK(entry->d_name[0] == '.', "%s was written", entry->d_name);
    if (folder) closedir(folder);
}

/* Examples that are held out or left out change the order of a copy, also where it is the checkpoint that
 * holds some out. */
static struct trainer_training *train_on(const struct trainer_data *data, const char *name, const char *value,
                                         const char *resume) {
    struct trainer_training *training = open_training();
    GOOD(trainer_training_set(training, name, value, &error));
    if (data) GOOD(trainer_training_data(training, data, &error));
    if (resume) {
        trainer_training_as_program(training);
        GOOD(trainer_training_set(training, "quiet", "1", &error));
        GOOD(trainer_training_set(training, resume[0] == '+' ? "resume" : "out", resume + 1, &error));
    }
    GOOD(trainer_training_run(training, NULL, &error));
    return training;
}

static void test_borrowed_data(void) {
    static const char *const settings_that_move[][2] = {{"data-slice", "1/2"}, {"validation", "0.2"}};
    const struct trainer_data data = digits_data();
    const size_t bytes = (size_t)digits.train.count * 64 * sizeof(float),
                 label_bytes = (size_t)digits.train.count * sizeof(int);
    float *before = malloc(bytes);
    int *labels = malloc(label_bytes);
    memcpy(before, features[0], bytes);
    memcpy(labels, digits.train.labels, label_bytes);
    for (int i = 0; i < 2; i++) {
        const char *name = settings_that_move[i][0], *value = settings_that_move[i][1];
        struct trainer_training *by_arrays = train_on(&data, name, value, NULL),
                                *by_name = train_on(NULL, name, value, NULL);
        check_same_weights(by_name, by_arrays);
        trainer_training_close(by_arrays);
        trainer_training_close(by_name);
    }
    trainer_training_close(train_on(NULL, "validation", "0.2", "-borrowed"));
    trainer_training_close(train_on(&data, "epochs", "3", "+borrowed"));
    CHECK(memcmp(before, features[0], bytes) == 0 && memcmp(labels, digits.train.labels, label_bytes) == 0,
          "the arrays were changed");
    free(before);
    free(labels);
}

/* --- what it is told, and what it has --- */

struct seen {
    long steps, examples, last[WORKERS];
    int epochs, stop_at;
    bool in_order;
};

static bool see_step(void *argument, const struct trainer_step *step) {
    struct seen *seen = argument;
    seen->in_order = seen->in_order && step->step == ++seen->last[step->worker] && isfinite(step->loss);
    seen->steps++;
    seen->examples += step->examples;
    return true;
}

static bool see_epoch(void *argument, const struct trainer_epoch *epoch) {
    struct seen *seen = argument;
    seen->in_order = seen->in_order && epoch->epoch == ++seen->epochs && epoch->test_score > 0.2;
    return epoch->epoch != seen->stop_at;
}

static void test_watching(void) {
    struct trainer_training *training = open_training();
    struct seen seen = {.in_order = true};
    struct trainer_result result;
    const struct trainer_watcher watcher = {see_step, see_epoch, &seen};
    trainer_training_watch(training, &watcher);
    GOOD(trainer_training_run(training, &result, &error));
    CHECK(seen.in_order && seen.epochs == EPOCHS, "%d epochs", seen.epochs);
    CHECK(seen.examples == result.examples && seen.steps == seen.examples / BATCH, "%ld examples of %lld",
          seen.examples, result.examples);
    seen = (struct seen){.in_order = true, .stop_at = 1};
    GOOD(trainer_training_set(training, "epochs", "1000", &error));
    REFUSED(trainer_training_run(training, &result, &error), TRAINER_STOPPED, "stopped after");
    CHECK(seen.epochs < 100 && result.examples > 0 && trainer_training_outputs(training) == 10, "%d epochs",
          seen.epochs);
    trainer_training_stop(training); /* before the run: it is that one's, and no other one's */
    seen = (struct seen){.in_order = true};
    REFUSED(trainer_training_run(training, &result, &error), TRAINER_STOPPED, "stopped after");
    CHECK(seen.epochs < 100, "%d epochs", seen.epochs);
    seen = (struct seen){.in_order = true};
    GOOD(trainer_training_set(training, "epochs", "1", &error));
    GOOD(trainer_training_run(training, &result, &error));
    trainer_training_close(training);
}

/* A session whose graph has the same layers loads what was learnt, and says the same. */
static void check_in_a_session(const struct trainer_training *training, const float *said) {
    const struct trainer_initial zero = {TRAINER_ZERO, 0, NULL};
    struct trainer_graph *g = NULL;
    struct trainer_session *s = NULL;
    float probabilities[10];
    GOOD(trainer_training_save(training, "weights", &error));
    GOOD(trainer_graph_open(&g, false, 1, &error));
    const trainer_node x = trainer_placeholder(g, "x", TRAINER_FLOAT, TRAINER_SHAPE(1, 64));
    const trainer_node hidden = trainer_sigmoid(g, trainer_dense(g, NULL, x, 12, zero));
    const trainer_node y = trainer_softmax(g, trainer_dense(g, NULL, hidden, 10, zero));
    GOOD(trainer_session_open(&s, g, NULL, &error));
    GOOD(trainer_session_load(s, "weights", &error));
    const struct trainer_feed feed = {x, features[1], 64 * sizeof(float)};
    const struct trainer_fetch fetch = {y, probabilities, sizeof probabilities};
    GOOD(trainer_session_run(s, &feed, 1, &fetch, 1, &error));
    for (int i = 0; i < 10; i++)
        CHECK(fabsf(probabilities[i] - said[i]) < 1e-5f, "class %d: %g, %g", i, (double)probabilities[i],
              (double)said[i]);
    trainer_session_close(s);
    trainer_graph_close(g);
    remove("weights");
}

static void test_predictions(void) {
    struct trainer_training *training = open_training();
    struct trainer_result result;
    const int count = digits.test.count;
    float *said = calloc((size_t)count * 10, sizeof *said);
    int right = 0;
    GOOD(trainer_training_set(training, "shards", "3", &error));
    GOOD(
        trainer_training_set(training, "shard-by", "round-robin", &error)); /* another order of the weights */
    REFUSED(trainer_training_predict(training, features[1], count, said, &error), TRAINER_USAGE,
            "nothing is learnt");
    REFUSED(trainer_training_save(training, "weights", &error), TRAINER_USAGE, "nothing is learnt");
    GOOD(trainer_training_run(training, &result, &error));
    GOOD(trainer_training_predict(training, features[1], count, said, &error));
    CHECK(trainer_training_outputs(training) == 10 && trainer_training_features(training) == 64, "sizes");
    for (int i = 0; i < count; i++) {
        int best = 0;
        for (int c = 1; c < 10; c++)
            if (said[i * 10 + c] > said[i * 10 + best]) best = c;
        right += best == digits.test.labels[i];
    }
    CHECK(fabs((double)right / count - result.test_score) < 1e-9, "%d of %d, told %g", right, count,
          result.test_score);
    check_in_a_session(training, said);
    free(said);
    trainer_training_close(training);
}

/* --- runs, one after the other, and within each other --- */

static bool run_within(void *argument, const struct trainer_epoch *epoch) {
    (void)epoch;
    REFUSED(trainer_training_run(argument, NULL, &error), TRAINER_USAGE, "runs already");
    return true;
}

/* The run before is the training's own, and goes; another one's stays. */
static void test_again(void) {
    struct trainer_training *training = open_training(), *other = open_training();
    const struct trainer_watcher watcher = {.argument = training, .epoch = run_within};
    trainer_training_watch(training, &watcher);
    GOOD(trainer_training_set(training, "out", "again", &error));
    GOOD(trainer_training_set(other, "out", "again", &error));
    for (int run = 0; run < 2; run++) GOOD(trainer_training_run(training, NULL, &error));
    REFUSED(trainer_training_run(other, NULL, &error), TRAINER_FILE, "again has a run");
    trainer_training_close(training);
    trainer_training_close(other);
}

static bool first_epoch(void *argument, const struct trainer_epoch *epoch) {
    (void)argument, (void)epoch;
    return false;
}

/* A run on own data goes on with them, to the bits of one that was not interrupted; nobody else can. */
static void test_own_data_again(void) {
    const struct trainer_data data = digits_data();
    const struct trainer_watcher watcher = {.epoch = first_epoch};
    struct trainer_training *whole = open_training(), *training = NULL;
    GOOD(trainer_training_data(whole, &data, &error));
    GOOD(trainer_training_set(whole, "epochs", "40", &error));
    GOOD(trainer_training_run(whole, NULL, &error));
    for (int part = 0; part < 3; part++) {
        training = part == 0 ? open_training() : NULL;
        if (part > 0) GOOD(trainer_training_open(&training, &error));
        trainer_training_as_program(training);
        GOOD(trainer_training_set(training, "quiet", "1", &error));
        GOOD(trainer_training_set(training, part == 0 ? "out" : "resume", "own", &error));
        if (part != 1) GOOD(trainer_training_data(training, &data, &error));
        if (part == 0) GOOD(trainer_training_set(training, "epochs", "40", &error));
        if (part == 0) trainer_training_watch(training, &watcher);
        if (part == 0)
            REFUSED(trainer_training_run(training, NULL, &error), TRAINER_STOPPED,
                    "this program goes on with the setting resume=own");
        else if (part == 1)
            REFUSED(trainer_training_run(training, NULL, &error), TRAINER_FILE,
                    "own: found a run on data of another program");
        else
            GOOD(trainer_training_run(training, NULL, &error));
        if (part == 2) check_same_weights(whole, training);
        trainer_training_close(training);
    }
    trainer_training_close(whole);
}

/* --- refusals --- */

static void test_wrong_numbers(struct trainer_training *training) {
    float floats[6] = {0, 1, 0, 1, NAN, 1}, values[3] = {0, 1, 2};
    struct trainer_data data = {.shape = TRAINER_SHAPE(2), .task = TRAINER_LABELS, .outputs = 1};
    data.train = (struct trainer_examples){.count = 2, .features = floats, .labels = values};
    data.test = (struct trainer_examples){.count = 3, .features = floats, .labels = values};
    GOOD(trainer_training_data(training, &data, &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE,
            "the test part: example 2: found a number that is not finite");
    floats[4] = 0;
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE,
            "the test part: example 2: found the label 2, expected 0 or 1");
    data.task = TRAINER_VALUES;
    GOOD(trainer_training_data(training, &data, &error));
    GOOD(trainer_training_run(training, NULL, &error));
    data.train.labels = NULL;
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE,
            "found 2 examples, with features and without labels");
    data.train.labels = values;
    data.outputs = 1 << 21;
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE, "expected 1 to 1048576");
    data.shape = TRAINER_SHAPE(1 << 16, 1 << 16);
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE, "at most 2147483647 numbers");
}

static void test_refusals(void) {
    struct trainer_training *training = open_training();
    struct trainer_data data = digits_data();
    int labels[3] = {0, 10, 1};
    REFUSED(trainer_training_set(training, "stratgy", "sync", &error), TRAINER_USAGE, "strategy");
    REFUSED(trainer_training_set(training, "qqqqqqqqqq", "1", &error), TRAINER_USAGE,
            "setting: unknown setting \"qqqqqqqqqq\"; trainer --help=all lists them");
    REFUSED(trainer_training_set(training, "batch", "0", &error), TRAINER_USAGE, "setting: batch=0: ");
    static const char *const of_clusters[] = {"job", "secret-file", "insecure", "shared-memory",
                                              "start-timeout"};
    for (int i = 0; i < 5; i++)
        REFUSED(trainer_training_set(training, of_clusters[i], "1", &error), TRAINER_USAGE,
                "the program `trainer` alone");
    REFUSED(trainer_training_set(training, "resume", "there", &error), TRAINER_USAGE, "resume");
    data.outputs = 1;
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE, "found 1 outputs");
    data.outputs = 10;
    data.shape = TRAINER_SHAPE(0, 3);
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE, "dimensions");
    data.shape = TRAINER_SHAPE(64);
    data.train.features = NULL;
    REFUSED(trainer_training_data(training, &data, &error), TRAINER_USAGE, "train on");
    data.train = (struct trainer_examples){.count = 3, .features = features[0], .labels = labels};
    GOOD(trainer_training_data(training, &data, &error));
    GOOD(trainer_training_set(training, "batch", "1", &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE,
            "the training part: example 1: found class 10, expected 0 to 9");
    test_wrong_numbers(training);
    data.train = (struct trainer_examples){.count = 5, .read = read_none};
    GOOD(trainer_training_data(training, &data, &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_FILE,
            "the training part: example 3: the disk is empty");
    GOOD(trainer_training_set(training, "strategy", "by-magic", &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE, "by-magic");
    GOOD(trainer_training_set(training, "dataset", "digits", &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE, "expected one of them");
    trainer_training_close(training);
    training = open_training();
    GOOD(trainer_training_set(training, "export", "model.onnx", &error));
    REFUSED(trainer_training_run(training, NULL, &error), TRAINER_USAGE, "export: found no out");
    trainer_training_close(training);
    trainer_training_close(NULL);
}

int main(void) {
    char folder[] = "/tmp/library-XXXXXX", command[64];
    if (!mkdtemp(folder) || chdir(folder) != 0) return 1;
    open_digits();
    test_own_data(); /* first: it looks at the folder */
    test_same_as_the_program();
    test_borrowed_data();
    test_watching();
    test_predictions();
    test_again();
    test_own_data_again();
    test_refusals();
    free(features[0]);
    free(features[1]);
    dataset_close(&digits);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s stays", folder);
    return check_end();
}
