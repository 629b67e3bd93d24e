/* The summary, the epochs and the progress: exact bytes, every field, a full disk, terminals of all widths.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../src/base/json.h"
#include "../../src/base/memory.h"
#include "../../src/record/epoch_line.h"
#include "../../src/record/epochs.h"
#include "../../src/record/progress.h"
#include "../../src/record/sentence.h"
#include "../../src/record/summary.h"
#include "../check.h"

static char folder[] = "/tmp/test_output.XXXXXX";

static void check_file(const char *path, const char *wanted) {
    char *text = NULL;
    size_t bytes = 0;
    struct error error = {0};
    CHECK(file_read(path, 1 << 20, &text, &bytes, &error) == OK, "%s", error.words);
    CHECK(text && strcmp(text, wanted) == 0, "\"%s\" instead of \"%s\"", text ? text : "", wanted);
    memory_free(text);
}

/* --- summary --- */

static const double waited_for_each[3] = {0, 1.5, 0.25};
static const struct worker_result two_workers[2] = {{.name = "worker 0 (cpu:0)",
                                                     .device = "cpu:0",
                                                     .steps = 21,
                                                     .examples = 22,
                                                     .input_s = 0.5,
                                                     .pull_s = 0.25,
                                                     .compute_s = 0.125,
                                                     .push_s = 2.5,
                                                     .wait_s = 3.5,
                                                     .waited_at = "a barrier",
                                                     .waited_at_s = 1.25,
                                                     .waited_for = "worker 1 (cpu:1)",
                                                     .waited_for_s = 1.5,
                                                     .recorded_nodes = 13,
                                                     .waited_for_each = waited_for_each,
                                                     .staleness_mean = 4.5,
                                                     .staleness_max = 17,
                                                     .lost = true},
                                                    {.name = "worker 1 (cpu:1)"}};
static struct config config; /* what is shown of it */

static void fill_config(void) {
    static const char *const values[][2] = {{"model", "mlp:hidden=100"},
                                            {"dataset", "mnist"},
                                            {"strategy", "ssp"},
                                            {"optimizer", "adam:rate=0.5"},
                                            {"batch", "18"},
                                            {"batch-total", "96"},
                                            {"schedule", "step:every=\"2\""},
                                            {"decay", "0.375"},
                                            {"clip", "0.75"},
                                            {"average", "0.875"},
                                            {"precision", "bf16"},
                                            {"kernels", "reference"},
                                            {"data-sharding", "split"},
                                            {"seed", "4"},
                                            {"validation", "0.2"},
                                            {"early-stop", "3"},
                                            {"freeze", "conv*"},
                                            {"share", "3,1"},
                                            {"simulate", "20ms"}};
    struct error error = {0};
    option_defaults(config_options, &config);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        CHECK(option_set(config_options, &config, "--", values[i][0], values[i][1], &error) == OK, "%s",
              error.words);
}

static const struct summary_phase two_phases[] = {{"ssp", 0}, {"sync", 3}};

static const long long bytes_of_19[19] = {[0] = 64, [18] = 8000000000}, bytes_of_2[2] = {64, 8000000000};
static const char three_members[3][MEMBER_NAME_BYTES] = {"worker 0 (cpu:0)", "worker 1 (cpu:1)", "server 0"};
static const struct summary_join two_joins[] = {{.worker = 0, .time_s = 1.25, .step = 1, .update = 60},
                                                {.worker = 1, .time_s = 2.5, .step = 41, .update = 120}};

static const struct summary summary = {
    .config = &config,
    .program = "trainer 1",
    .shards = 19,
    .shard_bytes = bytes_of_19,
    .servers = 2,
    .server_bytes = bytes_of_2,
    .homes = "gpu:1",
    .faults = "--slow=cpu:1=3x",
    .first_cost = 1.25,
    .devices = "cpu:0,\"cpu:1\"",
    .machine = "2 cores; \"Xeon\"",
    .workers = 2,
    .members = 3,
    .member_names = three_members,
    .threads = 3,
    .epochs = 5.5,
    .steps = 6,
    .updates = 7,
    .examples = 8000000000,
    .train_seconds = 9.25,
    .examples_per_s = 10.5,
    .test_score = 0.97,
    .test_value = (const double[METRICS]){0.97, 0.99, NAN, NAN, NAN, NAN},
    .test_cost = NAN,
    .views_score = 0.9375,
    .final_cost = INFINITY,
    .staleness = {.mean = 1.5, .p50 = 1, .p99 = 2, .max = 3},
    .wait_share = 0.125,
    .pull_share = 0.25,
    .push_share = 0.0625,
    .compute_share = 0.5,
    .input_share = 0.03125,
    .pipeline_idle = 0.375,
    .pipeline_idle_equal = 0.28125,
    .batch_expected_s = NAN,
    .batch_compute_s = 0.015625,
    .lost_updates = 11,
    .dropped = 13,
    .lost_workers = 1,
    .lost_batches = 14,
    .joins = two_joins,
    .join_count = 2,
    .target_s = 3.75,
    .best_epoch = 4,
    .best_score = 0.98,
    .best_test_score = 0.96,
    .per_worker = two_workers,
    .bytes_moved = 12000000000,
    .wire_sent = 15000000000,
    .wire_received = 16,
    .interrupted = true,
    .cluster_ps = 20,
    .cluster_workers = 21,
    .phases = two_phases,
    .phase_count = 2,
    .verdict = {.learnt_nothing = "nothing was learnt"},
};

static void check_joins(const struct json *json) {
    static const char *const names[] = {"worker", "time_s", "step", "update"};
    static const double values[] = {1, 2.5, 41, 120};
    static const struct json_value none;
    const struct json_value *list = json_member(json, &json->values[0], "joins");
    CHECK(list && list->kind == JSON_ARRAY && list->children == 2, "no list of two who joined");
    const struct json_value *last =
        list && list->children == 2 ? &json->values[json->values[list->first].next] : &none;
    for (int i = 0; i < 4; i++) {
        const struct json_value *member = json_member(json, last, names[i]);
        CHECK(member && member->kind == JSON_NUMBER && member->number == values[i],
              "%s of the second who joined", names[i]);
    }
}

static void check_phases(const struct json *json) {
    static const struct json_value none;
    const struct json_value *list = json_member(json, &json->values[0], "strategies");
    CHECK(list && list->kind == JSON_ARRAY && list->children == 2, "no list of two strategies");
    const struct json_value *last =
        list && list->children == 2 ? &json->values[json->values[list->first].next] : &none;
    const struct json_value *name = json_member(json, last, "strategy"),
                            *from = json_member(json, last, "from_epoch");
    CHECK(name && from && strcmp(name->text, "sync") == 0 && from->number > 2.5,
          "the second strategy is wrong");
}

static void check_members(const struct json *json, const struct json_value *object, int count,
                          const char *const *names, const double *values) {
    CHECK(object->children == count, "%d members, expected %d", object->children, count);
    for (int i = 0; i < count; i++) {
        const struct json_value *member = json_member(json, object, names[i]);
        CHECK(member != NULL, "%s is missing", names[i]);
        if (!member || member->kind == JSON_OBJECT || member->kind == JSON_ARRAY) continue;
        CHECK(member->kind == (isnan(values[i]) ? JSON_NULL : JSON_NUMBER) || member->kind == JSON_TEXT ||
                  member->kind == JSON_BOOL,
              "%s is of kind %d", names[i], (int)member->kind);
        if (member->kind == JSON_NUMBER || member->kind == JSON_BOOL)
            CHECK(member->number == values[i], "%s is %g", names[i], member->number);
    }
}

static void test_summary(const char *path) {
    static const char *const names[] = {"model",
                                        "dataset",
                                        "strategy",
                                        "devices",
                                        "workers",
                                        "threads",
                                        "seed",
                                        "epochs",
                                        "steps",
                                        "updates",
                                        "examples",
                                        "train_seconds",
                                        "test_cost",
                                        "examples_per_s",
                                        "test_accuracy",
                                        "final_cost",
                                        "staleness",
                                        "wait_share",
                                        "pull_share",
                                        "push_share",
                                        "compute_share",
                                        "input_share",
                                        "bytes_moved",
                                        "lost_updates",
                                        "interrupted",
                                        "target_s",
                                        "dropped",
                                        "lost_workers",
                                        "lost_batches",
                                        "per_worker",
                                        "wire_sent",
                                        "wire_received",
                                        "program",
                                        "optimizer",
                                        "schedule",
                                        "precision",
                                        "kernels",
                                        "data_sharding",
                                        "homes",
                                        "faults",
                                        "batch",
                                        "decay",
                                        "clip",
                                        "average",
                                        "shards",
                                        "first_cost",
                                        "validation",
                                        "early_stop",
                                        "best_epoch",
                                        "best_accuracy",
                                        "best_test_accuracy",
                                        "shard_bytes",
                                        "server_bytes",
                                        "server_imbalance",
                                        "machine",
                                        "members",
                                        "shard_staleness",
                                        "cluster_ps",
                                        "cluster_workers",
                                        "diverged",
                                        "learnt_nothing",
                                        "loss",
                                        "label_smoothing",
                                        "metric",
                                        "test_top5",
                                        "freeze",
                                        "data_slice",
                                        "microbatches",
                                        "group",
                                        "place",
                                        "schedule_pipeline",
                                        "pipeline_idle",
                                        "pipeline_idle_equal",
                                        "batch_expected_s",
                                        "batch_compute_s",
                                        "compress",
                                        "share",
                                        "strategies",
                                        "views",
                                        "test_accuracy_by_views",
                                        "joins",
                                        "batch_total",
                                        "simulate"};
    static const double values[] = {
        0,       0,      0,        0,       2,    3,     4,    5.5,    6,
        7,       8e9,    9.25,     NAN,     10.5, 0.97,  NAN,  0,      0.125,
        0.25,    0.0625, 0.5,      0.03125, 12e9, 11,    1,    3.75,   13,
        1,       14,     0,        15e9,    16,   0,     0,    0,      0,
        0,       0,      0,        0,       18,   0.375, 0.75, 0.875,  19,
        1.25,    0.2,    3,        4,       0.98, 0.96,  0,    0,      2 * 8e9 / (8e9 + 64),
        0,       0,      0,        20,      21,   0,     0,    0,      0,
        0,       0.99,   0,        0,       1,    0,     0,    0,      0.375,
        0.28125, NAN,    0.015625, 0,       0,    0,     0,    0.9375, 0,
        96,      0};
    static const char *const texts[][2] = {{"program", "trainer 1"},
                                           {"model", "mlp:hidden=100"},
                                           {"dataset", "mnist"},
                                           {"strategy", "ssp"},
                                           {"optimizer", "adam:rate=0.5"},
                                           {"schedule", "step:every=\"2\""},
                                           {"precision", "bf16"},
                                           {"kernels", "reference"},
                                           {"data_sharding", "split"},
                                           {"freeze", "conv*"},
                                           {"devices", "cpu:0,\"cpu:1\""},
                                           {"homes", "gpu:1"},
                                           {"faults", "--slow=cpu:1=3x"},
                                           {"share", "3,1"},
                                           {"simulate", "20ms"}};
    static const char *const worker_names[] = {
        "name",       "steps",           "examples",       "input_s",        "pull_s",
        "compute_s",  "push_s",          "wait_s",         "waited_at",      "waited_at_s",
        "waited_for", "waited_for_s",    "lost",           "staleness_mean", "staleness_max",
        "device",     "waited_for_each", "recorded_nodes", "not_recorded"};
    static const double worker_values[] = {0, 21,  22, 0.5, 0.25, 0.125, 2.5, 3.5, 0, 1.25,
                                           0, 1.5, 1,  4.5, 17,   0,     0,   13,  0};
    static const char *const staleness_names[] = {"mean", "p50", "p99", "max"};
    static const double staleness_values[] = {1.5, 1, 2, 3};
    struct error error = {0};
    fill_config();
    CHECK(summary_write(path, &summary, &error) == OK, "%s", error.words);
    char *text = NULL;
    size_t bytes = 0;
    struct json json = {0};
    CHECK(file_read(path, 1 << 20, &text, &bytes, &error) == OK, "%s", error.words);
    CHECK(json_parse(&json, text, bytes, &error) == OK, "%s", error.words);
    if (error.code == OK) {
        check_members(&json, &json.values[0], (int)(sizeof names / sizeof *names), names, values);
        const struct json_value *staleness = json_member(&json, &json.values[0], "staleness");
        if (staleness) check_members(&json, staleness, 4, staleness_names, staleness_values);
        const struct json_value *workers = json_member(&json, &json.values[0], "per_worker");
        CHECK(workers && workers->children == 2, "two workers");
        const struct json_value *shards = json_member(&json, &json.values[0], "shard_bytes"),
                                *servers = json_member(&json, &json.values[0], "server_bytes");
        CHECK(shards && shards->children == 19 && json.values[shards->first].number == 64,
              "the shards' sizes");
        CHECK(servers && servers->children == 2 &&
                  json.values[json.values[servers->first].next].number == 8e9,
              "the servers' sizes");
        if (workers) check_members(&json, &json.values[workers->first], 19, worker_names, worker_values);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            const struct json_value *member = json_member(&json, &json.values[0], texts[i][0]);
            CHECK(member && member->kind == JSON_TEXT && strcmp(member->text, texts[i][1]) == 0, "%s: %s",
                  texts[i][0], member ? member->text : "missing");
        }
        const struct json_value *device =
            workers ? json_member(&json, &json.values[workers->first], "device") : NULL;
        CHECK(device && device->kind == JSON_TEXT && strcmp(device->text, "cpu:0") == 0, "a worker's device");
        check_phases(&json);
        check_joins(&json);
        CHECK(bytes > 0 && text[bytes - 1] == '\n', "the last line is not ended");
    }
    json_free(&json);
    memory_free(text);
    error = (struct error){0};
    CHECK(summary_write("/nowhere/summary.json", &summary, &error) == ERROR_FILE, "code %d", error.code);
    CHECK(strstr(error.words, "/nowhere/summary.json") != NULL, "%s", error.words);
    CHECK(unlink(path) == 0, "%s: %s", path, strerror(errno));
}

/* --- epochs --- */

static const char epochs_header[] = "epoch,time_s,train_loss,test_loss,test_accuracy,examples_per_s,"
                                    "validation_loss,validation_accuracy\n";

static void test_epochs(const char *path) {
    struct epochs epochs;
    struct error error = {0};
    const struct epoch_row first = {1, 1.25, 2.302585, 0.5, 0.97, 123456.78, 0.25, 0.98, METRIC_ACCURACY},
                           second = {2, 2.5, INFINITY, NAN, NAN, 0, NAN, NAN, METRIC_ACCURACY},
                           again = {2, 2.25, 0, 0, 1, 5, NAN, NAN, METRIC_ACCURACY};
    char wanted[512];
    for (int run = 0; run < 2; run++) { /* a new run starts anew */
        CHECK(epochs_open(&epochs, path, METRIC_ACCURACY, 0, &error) == OK, "%s", error.words);
        check_file(path, epochs_header);
        CHECK(epochs_add(&epochs, &first, &error) == OK, "%s", error.words);
        snprintf(wanted, sizeof wanted, "%s1,1.250000,2.30258,0.500000,0.970000,123456.8,0.250000,0.980000\n",
                 epochs_header);
        check_file(path, wanted);
        CHECK(epochs_add(&epochs, &second, &error) == OK, "%s", error.words);
        strcat(wanted, "2,2.500000,inf,nan,nan,0.0,nan,nan\n");
        check_file(path, wanted);
        CHECK(epochs_finish(&epochs, &error) == OK && epochs_finish(&epochs, &error) == OK, "%s",
              error.words);
        epochs_close(&epochs);
        epochs_close(&epochs);
    }
    /* Values are judged by another metric, whose digits are its own. */
    struct epoch_row values = first;
    values.metric = METRIC_RMSE;
    values.test_score = 0.000012345;
    CHECK(epochs_open(&epochs, path, METRIC_RMSE, 0, &error) == OK, "%s", error.words);
    CHECK(epochs_add(&epochs, &values, &error) == OK && epochs_finish(&epochs, &error) == OK, "%s",
          error.words);
    check_file(path,
               "epoch,time_s,train_loss,test_loss,test_rmse,examples_per_s,validation_loss,validation_rmse\n"
               "1,1.250000,2.30258,0.500000,1.23450e-05,123456.8,0.250000,0.980000\n");
    CHECK(epochs_open(&epochs, path, METRIC_ACCURACY, 0, &error) == OK, "%s", error.words);
    CHECK(epochs_add(&epochs, &first, &error) == OK && epochs_add(&epochs, &second, &error) == OK &&
              epochs_finish(&epochs, &error) == OK,
          "%s", error.words);
    /* A run that goes on from between the two. */
    char apart[PATH_BYTES];
    long long bytes = 0;
    snprintf(apart, sizeof apart, "%.1000s.1", path);
    CHECK(epochs_rewind(path, METRIC_ACCURACY, 1.25, &bytes, &error) == OK, "%s", error.words);
    CHECK(epochs_open(&epochs, path, METRIC_ACCURACY, bytes, &error) == OK, "%s", error.words);
    CHECK(epochs_add(&epochs, &again, &error) == OK && epochs_finish(&epochs, &error) == OK, "%s",
          error.words);
    snprintf(wanted, sizeof wanted,
             "%s1,1.250000,2.30258,0.500000,0.970000,123456.8,0.250000,0.980000\n"
             "2,2.250000,0,0,1.000000,5.0,nan,nan\n",
             epochs_header);
    check_file(path, wanted);
    snprintf(wanted, sizeof wanted, "%s2,2.500000,inf,nan,nan,0.0,nan,nan\n", epochs_header);
    check_file(apart, wanted);
    CHECK(unlink(apart) == 0, "%s: %s", apart, strerror(errno));
    CHECK(epochs_open(&epochs, "/nowhere/epochs.csv", METRIC_ACCURACY, 0, &error) == ERROR_FILE, "code %d",
          error.code);
    CHECK(strstr(error.words, "/nowhere/epochs.csv") != NULL, "%s", error.words);
    epochs_close(&epochs);
    error = (struct error){0};
    if (access("/dev/full", W_OK) != 0) return;
    CHECK(epochs_open(&epochs, "/dev/full", METRIC_ACCURACY, 0, &error) == ERROR_FILE, "a full disk: code %d",
          error.code);
    CHECK(strstr(error.words, "/dev/full: ") && strstr(error.words, "No space"), "%s", error.words);
    epochs_close(&epochs);
}

/* The disk is full in the middle of the second row: it is not there at all. */
static void test_epochs_full(const char *path) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct epochs epochs;
        struct error error = {0};
        const struct epoch_row row = {1, 1, 1, 1, 1, 1, 1, 1, METRIC_ACCURACY};
        const rlim_t limit = sizeof epochs_header - 1 + 90; /* a row has 59 bytes */
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
        if (epochs_open(&epochs, path, METRIC_ACCURACY, 0, &error) != OK ||
            epochs_add(&epochs, &row, &error) != OK)
            _exit(99);
        const int code = epochs_add(&epochs, &row, &error);
        epochs_close(&epochs);
        _exit(code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ERROR_FILE, "status %d", status);
    char wanted[512];
    snprintf(wanted, sizeof wanted, "%s1,1.000000,1.00000,1.00000,1.000000,1.0,1.00000,1.00000\n",
             epochs_header);
    check_file(path, wanted);
    CHECK(unlink(path) == 0, "%s: %s", path, strerror(errno));
}

/* --- the line of an epoch --- */

static void check_epoch_line(const struct epoch_line *line, const char *wanted) {
    char text[200];
    CHECK(strcmp(epoch_line_text(line, 0, text, sizeof text), wanted) == 0, "\"%s\" instead of \"%s\"", text,
          wanted);
}

static void test_narrow_line(void) {
    static const struct {
        int columns;
        const char *wanted;
    } cases[] = {
        {79, "Epoch   3/200  loss 0.2113  test 95.41 %  412,000 examples/s  2.1 s  (ETA 34 s)"},
        {78, "Epoch   3/200  loss 0.2113  test 95.41 %  412,000 examples/s  2.1 s"},
        {67, "Epoch   3/200  loss 0.2113  test 95.41 %  412,000 examples/s  2.1 s"},
        {66, "Epoch   3/200  loss 0.2113  test 95.41 %  2.1 s"},
        {20, "Epoch   3/200  loss 0.2113  test 95.41 %  2.1 s"},
    };
    const struct epoch_line line = {3, 200, 0.21134, NAN, 0.95412, 412000.4, 2.08, 34.2, METRIC_ACCURACY};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        char text[200];
        CHECK(strcmp(epoch_line_text(&line, cases[c].columns, text, sizeof text), cases[c].wanted) == 0,
              "%d columns: \"%s\"", cases[c].columns, text);
    }
}

static void test_epoch_line(void) {
    struct epoch_line line = {3, 20, 0.21134, NAN, 0.95412, 412000.4, 2.08, 34.2, METRIC_ACCURACY};
    check_epoch_line(&line, "Epoch  3/20  loss 0.2113  test 95.41 %  412,000 examples/s  2.1 s  (ETA 34 s)");
    line.validation_score = 0.95124;
    check_epoch_line(
        &line, "Epoch  3/20  loss 0.2113  val 95.12 %  test 95.41 %  412,000 examples/s  2.1 s  (ETA 34 s)");
    line.metric = METRIC_RMSE;
    check_epoch_line(&line,
                     "Epoch  3/20  loss 0.2113  val RMSE 0.95124  test RMSE 0.95412  412,000 examples/s  "
                     "2.1 s  (ETA 34 s)");
    line.metric = METRIC_ACCURACY;
    line.validation_score = NAN;
    line.left_s = 5 * 3600;
    line.seconds = 0.0012;
    check_epoch_line(&line,
                     "Epoch  3/20  loss 0.2113  test 95.41 %  412,000 examples/s  1.2 ms  (ETA 5.0 h)");
    line.left_s = 0.25;
    line.seconds = 0.034;
    check_epoch_line(&line, "Epoch  3/20  loss 0.2113  test 95.41 %  412,000 examples/s  34 ms  (ETA 0.2 s)");
    line.loss = 1.25e12;
    check_epoch_line(&line,
                     "Epoch  3/20  loss 1.25000e+12  test 95.41 %  412,000 examples/s  34 ms  (ETA 0.2 s)");
    line.left_s = 125;
    line.seconds = 100;
    line.test_score = line.loss = NAN;
    check_epoch_line(&line, "Epoch  3/20  412,000 examples/s  1.7 min  (ETA 2 min)");
    line.epoch = 20;
    line.left_s = 0;
    line.examples_per_s = 0;
    check_epoch_line(&line, "Epoch 20/20  1.7 min");
    line.left_s = NAN;
    line.epoch = 1;
    line.epochs = 1000;
    check_epoch_line(&line, "Epoch    1/1000  1.7 min");
}

/* How many of so many epochs get a line when each takes so long; the first and the last always do. */
static int count_due(int epochs, double seconds) {
    int due = 0;
    double said_s = 0;
    for (int epoch = 1; epoch <= epochs; epoch++) {
        const bool now = epoch_line_due(epoch, epochs, epoch * seconds - said_s);
        CHECK(now || (epoch != 1 && epoch != epochs), "epoch %d of %d has no line", epoch, epochs);
        if (now) said_s = epoch * seconds;
        due += now;
    }
    return due;
}

static void test_epoch_lines_due(void) {
    for (int epochs = 1; epochs <= 20; epochs++)
        CHECK(count_due(epochs, 1e-3) == epochs, "%d lines of %d", count_due(epochs, 1e-3), epochs);
    CHECK(count_due(100, 1e-3) == 21, "%d lines of 100 short epochs", count_due(100, 1e-3));
    CHECK(count_due(100000, 1e-5) == 21, "%d lines of 100,000 short epochs", count_due(100000, 1e-5));
    CHECK(count_due(100, 1.5) == 100, "%d lines of 100 long epochs", count_due(100, 1.5));
    CHECK(count_due(1000, 0.25) == 261, "%d lines of 250 s", count_due(1000, 0.25));
}

/* --- the closing sentence --- */

static void check_sentence(const struct summary *of, const char *wanted) {
    char text[SENTENCE_BYTES];
    CHECK(strcmp(sentence_of_run(of, text, sizeof text), wanted) == 0, "\"%s\"\n    instead of \"%s\"", text,
          wanted);
}

static void test_sentence(void) {
    struct worker_result workers[2] = {{.wait_s = 3,
                                        .waited_at = "the barrier",
                                        .waited_at_s = 2.9,
                                        .waited_for = "worker 1 (cpu:1)",
                                        .waited_for_s = 2.8},
                                       {.wait_s = 0.1}};
    const long long equal[2] = {1000, 1024}, unequal[2] = {3968256, 304936};
    struct summary run = {.workers = 2,
                          .per_worker = workers,
                          .shards = 2,
                          .shard_bytes = equal,
                          .examples_per_s = 123456,
                          .compute_share = 0.96,
                          .wait_share = 0.04};
    check_sentence(&run, "123,456 examples/s, computing takes 96 % of the time.");
    run.pipeline_idle = 0.0812;
    run.pipeline_idle_equal = 1.0 / 17;
    check_sentence(&run, "123,456 examples/s, computing takes 96 % of the time; while it computes, the "
                         "stages of the pipeline idle 8.1 % of the time, equal ones would 5.9 %.");
    run.unfinished_share = 0.25;
    run.pipeline_idle_equal = 0;
    check_sentence(&run, "123,456 examples/s, computing takes 96 % of the time; slower than it could be: 25 "
                         "% of the time went into steps that did not end.");
    run.unfinished_share = 0;
    run.pipeline_idle_equal = 0;
    run.compute_share = 0.5;
    run.wait_share = 0.34;
    run.pull_share = run.push_share = 0.04;
    run.input_share = 0.08;
    check_sentence(
        &run, "123,456 examples/s, computing takes 50 % of the time; slower than it could be: waiting takes "
              "34 % of the time, nearly all at the barrier, mostly for worker 1 (cpu:1); exchanging weights "
              "and gradients takes 8 % of the time; getting batches takes 8 % of the time.");
    workers[1] = (struct worker_result){.wait_s = 4, .waited_at = "the end of the epoch", .waited_at_s = 3.1};
    run.pull_share = run.push_share = run.input_share = 0;
    check_sentence(&run, "123,456 examples/s, computing takes 50 % of the time; slower than it could be: "
                         "waiting takes 34 % of the time, 44 % of that at the end of the epoch.");
    run.pull_share = run.push_share = 0.04;
    run.wait_share = run.input_share = 0.01;
    run.staleness.mean = 1.25;
    run.staleness.max = 7;
    run.updates = 5000;
    run.lost_updates = 3;
    run.lost_workers = 1;
    run.join_count = 2;
    run.shard_bytes = unequal;
    check_sentence(&run, "123,456 examples/s, computing takes 50 % of the time; slower than it could be: "
                         "exchanging weights and gradients takes 8 % of the time; a gradient is 1.2 updates "
                         "old on average, 7 at most; 3 of 5,000 updates lost; 1 worker lost; 2 workers "
                         "joined; of 2 shards the largest holds 92.9 % of the weights, the smallest 7.1 %.");
    run = (struct summary){.workers = 2,
                           .per_worker = workers,
                           .servers = 2,
                           .server_bytes = unequal,
                           .shards = 2,
                           .shard_bytes = unequal,
                           .examples_per_s = 10,
                           .compute_share = 1};
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time; of 2 servers the largest holds "
                         "92.9 % of the weights, the smallest 7.1 %.");
    const long long four[4] = {250, 250, 250, 250};
    run.shard_bytes = four;
    run.shards = 4;
    run.server_bytes = equal;
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time.");
    run.server_bytes = unequal;
    run.shard_bytes = (const long long[4]){3000, 300, 400, 300};
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time; of 2 servers the largest holds "
                         "92.9 % of the weights, the smallest 7.1 %; of 4 shards the largest holds 75.0 % of "
                         "the weights, the smallest 7.5 %.");
    run.servers = run.shards = 0;
    workers[0] = (struct worker_result){.name = "worker 0 (cpu:0)", .steps = 100, .compute_s = 1};
    workers[1] = (struct worker_result){.name = "worker 1 (cpu:1)", .steps = 50, .compute_s = 1};
    static const char slow[] = "10 examples/s, computing takes 100 % of the time; slower than it could be: a "
                               "step of worker 1 (cpu:1) takes 2.0 times as long as one of worker 0 (cpu:0).";
    check_sentence(&run, slow);
    workers[1].steps = 70; /* 1.43 times */
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time.");
    workers[1] = (struct worker_result){.name = "worker 1 (cpu:1)", .steps = 19, .compute_s = 1};
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time.");
    workers[1] =
        (struct worker_result){.name = "worker 1 (cpu:1)", .steps = 50, .compute_s = 1, .lost = true};
    check_sentence(&run, "10 examples/s, computing takes 100 % of the time.");
    run.examples_per_s = 0;
    check_sentence(&run, "");
}

/* --- progress --- */

static void check_text(const char *wanted, int columns, double done, double per_second, double loss) {
    char text[300];
    progress_text(text, sizeof text, columns, done, 1000, per_second, 3, 20, loss);
    CHECK(strcmp(text, wanted) == 0, "\"%s\" instead of \"%s\"", text, wanted);
}

static void test_progress_text(void) {
    check_text("epoch 3/20 [===>    ] 50 %  1,234,567 examples/s  loss 0.3123  0 s left", 71, 500, 1234567,
               0.31234);
    check_text("epoch 3/20 [===>    ] 50 %  10 examples/s  loss 0.3123  50 s left", 65, 500, 10, 0.31234);
    check_text("epoch 3/20 50 %  10 examples/s  loss 0.3123  50 s left", 64, 500, 10, 0.31234);
    check_text("epoch 3/20 50 %  1 examples/s  8 min left", 0, 500, 1, NAN);
    check_text("epoch 3/20 50 %  0 examples/s  13.9 h left", 0, 500, 0.01, NAN);
    check_text("epoch 3/20 0 %", 0, 0, 0, NAN);
    check_text("epoch 3/20 99 %  999 examples/s  0 s left", 0, 999.9, 999, NAN);
    check_text("epoch 3/20 100 %  1,000 examples/s", 0, 1000, 1000, NAN);
    check_text("epoch 3/20 50 %  10 examples/s  loss 0.3123  50 s left", 54, 500, 10, 0.31234);
    check_text("epoch 3/20 50 %  10/s  loss 0.3123  50 s left", 53, 500, 10, 0.31234);
    check_text("50 %  10/s  loss 0.3123  50 s left", 39, 500, 10, 0.31234);
    check_text("50 %  loss 0.3123  50 s left", 33, 500, 10, 0.31234);
    check_text("50 %  50 s left", 19, 500, 10, 0.31234);
    check_text("50 %", 14, 500, 10, 0.31234);
    check_text("50 ", 3, 500, 10, 0.31234);
    check_text("epoch 3/20 [========] 100 %", 27, 1000, 0, NAN);
    char text[300];
    for (int columns = 1; columns < 250; columns++)
        for (int done = 0; done <= 1000; done += 125) {
            progress_text(text, sizeof text, columns, done, 1000, 123456789, 3, 20, 1e-8);
            CHECK(strlen(text) <= (size_t)columns, "%zu of %d columns", strlen(text), columns);
        }
}

static void test_progress_lines(void) {
    FILE *file = tmpfile();
    struct progress progress;
    progress_open(&progress, file, false);
    CHECK(!progress.terminal, "a file is no terminal");
    for (int i = 0; i <= 250; i++) progress_show(&progress, 100 + i * 10, 2600, 0.1 * i, 1 + i / 100, 3, 0.5);
    for (int i = 0; i < 5; i++) progress_show(&progress, 2600, 2600, 25 + i, 3, 3, 0.5);
    progress_say(&progress, "the file %s is %d bytes long", "a\033[31m\n.csv", 5);
    progress_clear(&progress);
    char text[2000] = "";
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    static const char wanted[] = "epoch 2/3 42 %  100 examples/s  loss 0.5  15 s left\n"
                                 "epoch 3/3 80 %  100 examples/s  loss 0.5  5 s left\n"
                                 "epoch 3/3 100 %  100 examples/s  loss 0.5\n"
                                 "trainer: the file a?[31m?.csv is 5 bytes long\n";
    CHECK(strcmp(text, wanted) == 0, "\"%s\" instead of \"%s\"", text, wanted);
    progress_open(&progress, file, true);
    progress_show(&progress, 1, 1, 100, 1, 1, NAN);
    progress_say(&progress, "quiet");
    CHECK((size_t)ftell(file) == sizeof wanted - 1, "quiet, and yet something is written");
    fclose(file);
}

/* Everything that was drawn on a terminal of `columns` columns. */
static size_t draw_on_terminal(int columns, char *out, size_t bytes) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return 0;
    FILE *file = fopen(ptsname(master), "w");
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    ioctl(master, TIOCSWINSZ, &size);
    struct progress progress;
    progress_open(&progress, file, false);
    CHECK(progress.terminal, "a terminal is not seen as one");
    for (int i = 0; i <= 100; i++) progress_show(&progress, i * 10, 1000, 0.01 * i, 1, 1, 0.5);
    progress_say(&progress, "a line");
    size_t count = 0;
    while (poll(&(struct pollfd){.fd = master, .events = POLLIN}, 1, 2000) > 0) {
        const ssize_t got = read(master, out + count, bytes - 1 - count);
        if (got > 0) count += (size_t)got;
        out[count] = 0;
        if (got <= 0 || strstr(out, "a line\r\n")) break;
    }
    fclose(file);
    close(master);
    return count;
}

static void test_progress_terminal(void) {
    static const int widths[] = {0, 10, 40, 60, 80, 200};
    static char drawn[1 << 16];
    setenv("TERM", "xterm", 1);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        if (draw_on_terminal(widths[i], drawn, sizeof drawn) == 0) {
            fprintf(stderr, "no pseudo-terminal here: the bar is not checked\n");
            return;
        }
        int bars = 0;
        bool cleared = false;
        const size_t most = (size_t)(widths[i] == 0 ? 80 : widths[i]) - 1;
        const char *at = drawn;
        for (const char *end; *at == '\r' && (end = strstr(at, "\033[K")) != NULL; at = end + 3) {
            CHECK((size_t)(end - at - 1) <= most, "%zd columns of %zu", end - at - 1, most);
            cleared = end - at == 1;
            bars += !cleared;
        }
        CHECK(bars >= 10 && bars <= 12, "%d bars", bars);
        CHECK(cleared, "the bar stands before the line");
        CHECK(strcmp(at, "trainer: a line\r\n") == 0, "\"%s\" at the end", at);
        if (widths[i] == 80)
            CHECK(strstr(drawn, "\repoch 1/1 [====") != NULL, "no bar on a line of 80 columns");
    }
    setenv("TERM", "dumb", 1);
    struct progress progress;
    progress_open(&progress, stderr, false);
    CHECK(!progress.terminal, "a dumb terminal gets lines");
}

/* Each of a hundred waits for another one: for nobody mostly, though there is no room for all names. */
static void test_many_names(void) {
    static struct worker_result workers[100];
    struct summary run = {.workers = 100,
                          .per_worker = workers,
                          .examples_per_s = 1000.0,
                          .compute_share = 0.5,
                          .wait_share = 0.5,
                          .simulated = true};
    for (int w = 0; w < 100; w++) {
        workers[w] = (struct worker_result){
            .wait_s = 1.0, .waited_at = "the barrier", .waited_at_s = 1.0, .waited_for_s = 1.0};
        snprintf(workers[w].waited_for, sizeof workers[w].waited_for, "worker %d", (w + 1) % 100);
    }
    check_sentence(&run, "1,000 examples/s of virtual time, computing takes 50 % of the time; slower than it "
                         "could be: waiting takes 50 % of the time, nearly all at the barrier.");
    for (int w = 60; w < 100; w++)
        workers[w].wait_s = workers[w].waited_at_s = workers[w].waited_for_s = 100.0;
    for (int w = 60; w < 100; w++) snprintf(workers[w].waited_for, sizeof workers[w].waited_for, "worker 7");
    check_sentence(
        &run, "1,000 examples/s of virtual time, computing takes 50 % of the time; slower than it "
              "could be: waiting takes 50 % of the time, nearly all at the barrier, mostly for worker 7.");
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/file", folder);
    test_summary(path);
    test_epochs(path);
    test_epochs_full(path);
    test_epoch_line();
    test_narrow_line();
    test_epoch_lines_due();
    test_sentence();
    test_many_names();
    test_progress_text();
    test_progress_lines();
    test_progress_terminal();
    CHECK(rmdir(folder) == 0, "%s is not empty", folder);
    return check_end();
}
