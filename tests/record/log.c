/* The log and what it tells: rows come out once, whole, in order of time; the CSV's and the printed line's
 * exact bytes; an output that fails is left out, and named; the numbers' digits. */
#include "../../src/record/output.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "../../src/data/dataset.h"
#include "../../src/record/digits.h"
#include "../../src/record/lines.h"
#include "../../src/record/progress.h"
#include "../../src/record/steps.h"
#include "../check.h"

static const char *const devices[] = {"cpu:0", "cpu:1", "gpu:0", "gpu:1"};
static const char header[] =
    "time_s,worker,device,epoch,step,loss,learning_rate,examples,input_ms,pull_ms,compute_ms,push_ms,wait_ms,"
    "staleness,update,wire_bytes\n";
static char folder[] = "/tmp/test_log.XXXXXX", path[64];

/* The whole file as a text, to be freed. */
static char *contents(FILE *file) {
    char *text = calloc(1, 1 << 22);
    rewind(file);
    text[fread(text, 1, (1 << 22) - 1, file)] = 0;
    return text;
}

static char *contents_of(const char *name) {
    FILE *file = fopen(name, "r");
    char *text = contents(file);
    fclose(file);
    return text;
}

static void test_digits(void) {
    static const struct {
        double value;
        int decimals; /* -1: six significant digits; -2: whole */
        const char *text;
    } cases[] = {{0, 6, "0.000000"},
                 {-0.0000001, 6, "0.000000"},
                 {1.5, 0, "2"},
                 {-12.34567891, 6, "-12.345679"},
                 {0.999999999, 6, "1.000000"},
                 {999999999, 2, "999999999.00"},
                 {0.123456789, 9, "0.123456789"},
                 {1e9, 6, "1.00000e+09"},
                 {0, -1, "0"},
                 {0.1f, -1, "0.100000"},
                 {2.302585, -1, "2.30258"},
                 {999999.4, -1, "999999"},
                 {999999.6, -1, "1.00000e+06"},
                 {0.00009999996, -1, "0.000100000"},
                 {0.00009999994, -1, "9.99999e-05"},
                 {-1.5e-7, -1, "-1.50000e-07"},
                 {5e-324, -1, "4.94066e-324"},
                 {1.7976931348623157e308, -1, "1.79769e+308"},
                 {-9223372036854775807.0 - 1, -2, "-9223372036854775808"},
                 {0, -2, "0"},
                 {1234567, -2, "1234567"}};
    char text[DIGITS_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double value = cases[i].value;
        const char *end = cases[i].decimals == -2   ? digits_whole(text, (long long)value)
                          : cases[i].decimals == -1 ? digits_real(text, value)
                                                    : digits_fixed(text, value, cases[i].decimals);
        CHECK(strcmp(text, cases[i].text) == 0 && *end == 0, "%s instead of %s", text, cases[i].text);
    }
    digits_real(text, NAN);
    CHECK(strcmp(text, "nan") == 0, "%s", text);
    digits_fixed(text, -INFINITY, 6);
    CHECK(strcmp(text, "-inf") == 0, "%s", text);
    /* Floats of all sizes against printf. Both round to the nearest; at a tie of the sixth digit they may
     * differ by one in it. */
    int different = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        const uint32_t bits = i * 2654435761u;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || value == 0) continue;
        char expected[64];
        snprintf(expected, sizeof expected, "%#.6g", (double)value);
        if (expected[strlen(expected) - 1] == '.') expected[strlen(expected) - 1] = 0;
        digits_real(text, (double)value);
        different += strcmp(text, expected) != 0;
        CHECK(fabs(strtod(text, NULL) - (double)value) <= 5.0001e-6 * fabs((double)value), "%s instead of %s",
              text, expected);
    }
    CHECK(different <= 20, "%d of 200000 differ from printf", different);
}

static struct log_row make_row(int worker, long step, double time_s) {
    return (struct log_row){.time_s = time_s,
                            .worker = worker,
                            .epoch = 1 + (int)(step - 1) / 550,
                            .step = step,
                            .batch = 1 + (step - 1) % 550,
                            .batches = 550,
                            .loss = 2.302585f,
                            .learning_rate = 0.01f,
                            .examples = 100,
                            .input_ms = 0.25,
                            .pull_ms = 0.0001,
                            .compute_ms = 12.5,
                            .push_ms = 1e-9,
                            .wait_ms = 1234.5678,
                            .staleness = 3,
                            .version = 2 * step,
                            .wire_bytes = 4096};
}

static struct lines lines;
static struct config config;
static const struct dataset dataset = {.task = TASK_CLASSES};
static struct output_scene scene;
static struct telling telling;
static struct progress progress;

/* Rows go to `path`, and to `printed` unless that is NULL. */
static int start(struct log *log, int workers, int log_every, int print_every, FILE *printed,
                 struct error *error) {
    config = (struct config){.log_every = log_every, .print_every = print_every, .epochs = 2};
    scene = (struct output_scene){
        .folder = folder, .config = &config, .dataset = &dataset, .workers = workers, .devices = devices};
    if (printed) {
        lines_open(&lines, printed, NULL);
        scene.lines = &lines;
    }
    *log = (struct log){0};
    RETURN_IF(telling_open(&telling, "csv", &scene, &progress, error));
    return log_open(log, workers, &telling, error);
}

static void stop(struct log *log) {
    log_drain(log);
    telling_close(&telling);
    log_close(log);
    lines_close(&lines, false);
}

static void test_lines(void) {
    struct log log;
    struct error error = {0};
    FILE *printed = tmpfile();
    CHECK(start(&log, 1, 30, 100, printed, &error) == OK, "%s", error.words);
    char *text = contents_of(path);
    CHECK(strcmp(text, header) == 0, "%s", text);
    free(text);
    int wanted = 0;
    for (long step = 1; step <= 600; step++) {
        const struct log_row row = make_row(0, step, (double)step * 0.0031 + (step > 100 ? 0.2 : 0));
        wanted += log_wants(&log, step);
        if (log_wants(&log, step)) CHECK(log_put(&log, &row), "step %ld", step);
    }
    CHECK(wanted == 24, "%d rows wanted", wanted);
    log_drain(&log);
    text = contents(printed);
    static const char first[] = "Step: 200,  Epoch:  1,  Batch: 100 of 550,  Cost: 2.3026,  AvgTime: "
                                "3.10ms\nStep: 400,  Epoch:  1,  Batch: 200 of 550,  "
                                "Cost: 2.3026,  AvgTime: 5.10ms\n";
    static const char last[] =
        "\nStep: 1200,  Epoch:  2,  Batch:  50 of 550,  Cost: 2.3026,  AvgTime: 3.10ms\n";
    CHECK(strncmp(text, first, sizeof first - 1) == 0, "%s", text);
    CHECK(strstr(text, last) && strlen(strstr(text, last)) == sizeof last - 1, "%s", text);
    free(text);
    text = contents_of(path); /* seen while the run goes on */
    static const char row[] = "0.093000,0,cpu:0,1,30,2.30258,0.0100000,100,0.250000,0.000100,12.500000,0."
                              "000000,1234.567800,3,60,4096\n";
    CHECK(strncmp(text + sizeof header - 1, row, sizeof row - 1) == 0, "%s", text);
    int rows = 0;
    for (const char *c = text; *c; c++) rows += *c == '\n';
    CHECK(rows == 21, "%d lines", rows);
    free(text);
    stop(&log);
    stop(&log);
    fclose(printed);
}

/* A gradient that was dropped made no update: the line has those that there were, the table 0. */
static void test_dropped(void) {
    struct log log;
    struct error error = {0};
    FILE *printed = tmpfile();
    CHECK(start(&log, 1, 1, 1, printed, &error) == OK, "%s", error.words);
    for (long step = 1; step <= 2; step++) {
        struct log_row row = make_row(0, step, (double)step);
        row.read_version = 41;
        if (step == 2) row.version = 0;
        CHECK(log_put(&log, &row), "step %ld", step);
    }
    log_drain(&log);
    char *text = contents(printed);
    CHECK(strcmp(text, "Step: 2,  Epoch:  1,  Batch:   1 of 550,  Cost: 2.3026,  AvgTime: 1000.00ms\n"
                       "Step: 41,  Epoch:  1,  Batch:   2 of 550,  Cost: 2.3026,  AvgTime: 1000.00ms,  "
                       "dropped\n") == 0,
          "%s", text);
    free(text);
    text = contents_of(path);
    CHECK(strlen(text) > 10 && strcmp(text + strlen(text) - 10, ",3,0,4096\n") == 0, "%s", text);
    free(text);
    stop(&log);
    fclose(printed);
}

/* The loss of the progress is that of the epoch so far, of what was taken out. */
static void test_epoch_loss(void) {
    static const struct {
        int epoch, examples;
        float loss;
        double mean[2]; /* of epochs 1 and 2 then; 0: not known */
    } puts[] = {{1, 10, 4.0f, {4.0, 0}},
                {1, 30, 2.0f, {2.5, 0}},
                {2, 10, 1.0f, {0, 1.0}},
                {1, 10, 9.0f, {0, 1.0}},
                {2, 10, 0.5f, {0, 0.75}}};
    struct log log;
    struct error error = {0};
    CHECK(start(&log, 1, 1, 0, NULL, &error) == OK, "%s", error.words);
    CHECK(isnan(log_epoch_loss(&log, 1)), "a loss before the first row");
    for (size_t i = 0; i < sizeof puts / sizeof *puts; i++) {
        struct log_row row = make_row(0, (long)i + 1, (double)i);
        row.epoch = puts[i].epoch;
        row.examples = puts[i].examples;
        row.loss = puts[i].loss;
        CHECK(log_put(&log, &row), "row %zu", i);
        log_drain(&log);
        for (int epoch = 1; epoch <= 2; epoch++) {
            const double loss = log_epoch_loss(&log, epoch), wanted = puts[i].mean[epoch - 1];
            CHECK(wanted > 0 ? fabs(loss - wanted) < 1e-12 : isnan(loss), "row %zu, epoch %d: %g", i, epoch,
                  loss);
        }
    }
    stop(&log);
}

/* Three workers, rows put in no order of time between them. */
static void test_merge(void) {
    struct log log;
    struct error error = {0};
    FILE *printed = tmpfile();
    CHECK(start(&log, 3, 1, 1, printed, &error) == OK, "%s", error.words);
    for (int worker = 2; worker >= 0; worker--)
        for (long step = 1; step <= 5; step++) {
            const struct log_row row = make_row(worker, step, (double)step + 0.25 * worker);
            CHECK(log_put(&log, &row), "step %ld", step);
        }
    log_drain(&log);
    char *text = contents_of(path), *at = text + sizeof header - 1;
    for (int i = 0; i < 15; i++) {
        const double time_s = strtod(at, &at);
        const long worker = strtol(at + 1, &at, 10);
        CHECK(worker == i % 3 && fabs(time_s - (1 + i / 3 + 0.25 * (i % 3))) < 1e-9,
              "row %d: %f of worker %ld", i, time_s, worker);
        at = strchr(at, '\n') + 1;
    }
    CHECK(*at == 0, "more rows: %s", at);
    free(text);
    text = contents(printed);
    CHECK(strncmp(text, "Worker 0: Step: 2,  Epoch:  1,  Batch:   1 of 550,", 50) == 0, "%s", text);
    CHECK(strstr(text, "\nWorker 2: Step: 10,") != NULL, "%s", text);
    free(text);
    stop(&log);
    fclose(printed);
}

/* A run that goes on: the rows up to its checkpoint, then its own; those in between are kept apart, and half
 * a row is nobody's. */
static void test_goes_on(void) {
    struct log log;
    struct error error = {0};
    long long bytes = -1;
    char apart[80], wanted[64];
    snprintf(apart, sizeof apart, "%s.1", path);
    CHECK(start(&log, 1, 1, 0, NULL, &error) == OK, "%s", error.words);
    for (long step = 1; step <= 5; step++) {
        const struct log_row row = make_row(0, step, (double)step);
        CHECK(log_put(&log, &row), "step %ld", step);
    }
    stop(&log);
    FILE *file = fopen(path, "a");
    fputs("6.000000,0,cp", file);
    fclose(file);
    scene.goes_on = true;
    scene.seconds_before = 3.0;
    CHECK(telling_open(&telling, "csv", &scene, &progress, &error) == OK, "%s", error.words);
    CHECK(log_open(&log, 1, &telling, &error) == OK, "%s", error.words);
    const struct log_row row = make_row(0, 4, 3.5);
    CHECK(log_put(&log, &row), "a row");
    stop(&log);
    CHECK(access(apart, F_OK) == 0, "the rows in between are gone");
    if (access(apart, F_OK) != 0) return;
    static const struct {
        int lines;
        const char *last; /* the row's beginning */
    } files[] = {{5, "3.500000,0,cpu:0,1,4,"}, {3, "5.000000,0,cpu:0,1,5,"}};
    for (int i = 0; i < 2; i++) {
        char *text = contents_of(i == 0 ? path : apart);
        const char *last = text;
        int count = 0;
        for (const char *c = text; *c; c++)
            if (*c == '\n' && ++count < files[i].lines) last = c + 1;
        snprintf(wanted, sizeof wanted, "%s", files[i].last);
        CHECK(strncmp(text, header, sizeof header - 1) == 0 && count == files[i].lines, "%s", text);
        CHECK(strncmp(last, wanted, strlen(wanted)) == 0, "%s ends with %s", i == 0 ? "it" : "the rest",
              last);
        free(text);
    }
    CHECK(steps_rewind(path, 9.0, &bytes, &error) == OK && access(apart, F_OK) == 0, "%s", error.words);
    unlink(apart);
    /* Of another version, with other columns. */
    file = fopen(path, "w");
    fputs("time_s,version\n1,1\n", file);
    fclose(file);
    CHECK(steps_rewind(path, 9.0, &bytes, &error) == OK && bytes == 0, "%s: %lld", error.words, bytes);
    char *text = contents_of(apart);
    CHECK(strcmp(text, "time_s,version\n1,1\n") == 0 && access(path, F_OK) != 0, "%s", text);
    free(text);
    unlink(apart);
    CHECK(steps_rewind(path, 9.0, &bytes, &error) == OK && bytes == 0, "none: %s: %lld", error.words, bytes);
}

static void test_full_ring(void) {
    struct log log;
    struct error error = {0};
    CHECK(start(&log, 2, 1, 0, NULL, &error) == OK, "%s", error.words);
    CHECK(log.rows == 4096, "%d rows", log.rows);
    for (int round = 0; round < 3; round++) {
        for (long step = 1; step <= 4096; step++) {
            const struct log_row row = make_row(1, step, (double)step);
            CHECK(log_put(&log, &row), "step %ld", step);
        }
        const struct log_row row = make_row(1, 4097, 4097), other = make_row(0, 1, 1);
        CHECK(!log_put(&log, &row), "a full ring took a row");
        CHECK(log_put(&log, &other), "the other worker's ring is not full");
        log_drain(&log);
    }
    stop(&log);
    char *text = contents_of(path);
    int rows = 0;
    for (const char *c = text; *c; c++) rows += *c == '\n';
    CHECK(rows == 1 + 3 * 4097, "%d lines", rows);
    free(text);
}

static void test_errors(void) {
    struct log log;
    struct error error = {0};
    struct steps steps;
    CHECK(steps_open(&steps, "/nowhere/steps.csv", 0, devices, &error) == ERROR_FILE, "code %d", error.code);
    CHECK(strstr(error.words, "/nowhere/steps.csv") && strstr(error.words, "No such file"), "%s",
          error.words);
    steps_close(&steps);
    error = (struct error){0};
    CHECK(start(&log, 1, 0, 1, NULL, &error) == OK && !log_wants(&log, 1),
          "no CSV, no lines: nothing is wanted");
    stop(&log);
    for (int i = 0; i < 3; i++) {
        static const char *const lists[] = {"csv,csv", "csv,tables", "csv,"};
        error = (struct error){0};
        CHECK(telling_check(lists[i], &error) == ERROR_USAGE, "%s: code %d", lists[i], error.code);
    }
    error = (struct error){0};
    CHECK(telling_check("none", &error) == OK, "%s", error.words);
    if (access("/dev/full", W_OK) != 0) return;
    CHECK(steps_open(&steps, "/dev/full", 0, devices, &error) == ERROR_FILE, "a full disk: code %d",
          error.code);
    CHECK(strstr(error.words, "/dev/full: ") && strstr(error.words, "No space"), "%s", error.words);
    steps_close(&steps);
    error = (struct error){0};
    FILE *full = fopen("/dev/full", "w");
    const struct log_row row = make_row(0, 1, 1);
    CHECK(start(&log, 1, 0, 1, full, &error) == OK, "%s", error.words);
    CHECK(log_put(&log, &row), "a row");
    log_drain(&log);
    CHECK(ferror(full) != 0, "lines to a full disk: nobody will notice");
    stop(&log);
    fclose(full);
}

/* A table that can grow no more is cut off after a whole row, is named once, and keeps no other output from
 * what it is told. */
static void test_failing(void) {
    struct log log;
    struct error error = {0};
    FILE *said = tmpfile();
    const struct rlimit none = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    progress_open(&progress, said, false);
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(start(&log, 1, 1, 100, NULL, &error) == OK, "%s", error.words);
    setrlimit(RLIMIT_FSIZE, &none);
    for (long step = 1; step <= 40; step++) {
        const struct log_row row = make_row(0, step, (double)step);
        CHECK(log_put(&log, &row), "step %ld", step);
        log_drain(&log);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    stop(&log);
    char *text = contents(said);
    CHECK(strstr(text, "steps.csv: the log of steps cannot be written: File too large; the training goes on "
                       "without csv\n") &&
              strchr(text, '\n')[1] == '\0',
          "%s", text);
    free(text);
    text = contents_of(path);
    const size_t length = strlen(text);
    CHECK(length > 700 && length <= 1000 && text[length - 1] == '\n', "%zu bytes: %s", length, text);
    free(text);
    progress = (struct progress){0};
    fclose(said);
}

enum { WRITERS = 3, STEPS = 20000 };
struct writer {
    struct log *log;
    int worker;
    _Atomic bool *done;
};

static void *write_rows(void *argument) {
    const struct writer *writer = argument;
    for (long step = 1; step <= STEPS; step++) {
        const struct log_row row = make_row(writer->worker, step, (double)step);
        while (!log_put(writer->log, &row)) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    atomic_store(writer->done, true);
    return NULL;
}

/* Workers put rows while the coordinator drains: every row once, each worker's in order. */
static void test_threads(void) {
    struct log log;
    struct error error = {0};
    pthread_t threads[WRITERS];
    _Atomic bool done[WRITERS] = {false};
    struct writer writers[WRITERS];
    CHECK(start(&log, WRITERS, 1, 0, NULL, &error) == OK, "%s", error.words);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.log = &log, .worker = i, .done = &done[i]};
        pthread_create(&threads[i], NULL, write_rows, &writers[i]);
    }
    while (!done[0] || !done[1] || !done[2]) {
        log_drain(&log);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);
    stop(&log);
    FILE *csv = fopen(path, "r");
    char line[512];
    long next[WRITERS] = {1, 1, 1}, wrong = 0;
    CHECK(fgets(line, sizeof line, csv) && strcmp(line, header) == 0, "%s", line);
    while (fgets(line, sizeof line, csv)) {
        int worker = -1;
        long step = 0, version = 0;
        const int fields = sscanf(line, "%*f,%d,%*[^,],%*d,%ld,%*f,%*f,100,%*f,%*f,%*f,%*f,%*f,3,%ld\n",
                                  &worker, &step, &version);
        wrong +=
            fields != 3 || worker < 0 || worker >= WRITERS || step != next[worker]++ || version != 2 * step;
    }
    fclose(csv);
    CHECK(wrong == 0, "%ld rows are wrong", wrong);
    for (int i = 0; i < WRITERS; i++) CHECK(next[i] == STEPS + 1, "worker %d: %ld rows", i, next[i] - 1);
}

/* Not a check: what a row costs the coordinator. */
static void show_cost(void) {
    struct log log;
    struct error error = {0};
    struct timespec begin, end;
    CHECK(start(&log, 1, 1, 0, NULL, &error) == OK, "%s", error.words);
    double seconds = 0;
    for (int round = 0; round < 10; round++) {
        for (long step = 1; step <= 4096; step++) {
            const struct log_row row = make_row(0, step, (double)step * 0.0031);
            CHECK(log_put(&log, &row), "step %ld", step);
        }
        clock_gettime(CLOCK_MONOTONIC, &begin);
        log_drain(&log);
        clock_gettime(CLOCK_MONOTONIC, &end);
        seconds += (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    }
    printf("a row of the log costs %.3f us\n", seconds / (10 * 4096) * 1e6);
    stop(&log);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/steps.csv", folder);
    test_digits();
    test_lines();
    test_dropped();
    test_epoch_loss();
    test_merge();
    test_goes_on();
    test_full_ring();
    test_errors();
    test_failing();
    test_threads();
    show_cost();
    unlink(path);
    snprintf(path, sizeof path, "%s/epochs.csv", folder);
    unlink(path);
    rmdir(folder);
    return check_end();
}
