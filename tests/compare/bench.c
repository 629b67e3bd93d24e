/* A comparison without its runs: the statistics, the list of strategies, how runs add up to rows, the
 * sentence of a row word by word, and table and files of rows that were made up. */
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/base/option.h"
#include "../../src/record/digits.h"
#include "../../src/record/progress.h"
#include "../../src/store/strategy.h"
#include "../../src/compare/rows.h"
#include "../../src/compare/strategy_list.h"
#include "../check.h"

/* --- statistics --- */

static struct statistic of(int count, const double *values) {
    struct statistic statistic = {0};
    for (int i = 0; i < count; i++) statistic_add(&statistic, values[i]);
    return statistic;
}

/* `count` times the same: that mean, no spread. */
static struct statistic same(double value) {
    return of(3, (const double[]){value, value, value});
}

static void test_statistic(void) {
    const struct statistic none = {0}, one = of(1, (const double[]){7}),
                           some = of(5, (const double[]){2, 4, NAN, 4, 6}),
                           far = of(3, (const double[]){1e9 + 1, 1e9 + 2, 1e9 + 3});
    CHECK(isnan(statistic_mean(&none)) && isnan(statistic_deviation(&none)), "of nothing");
    CHECK(statistic_mean(&one) == 7 && isnan(statistic_deviation(&one)), "of one number");
    CHECK(some.count == 4 && statistic_mean(&some) == 4, "%ld, mean %g", some.count, statistic_mean(&some));
    CHECK(fabs(statistic_deviation(&some) - sqrt(8.0 / 3)) < 1e-15, "%g", statistic_deviation(&some));
    CHECK(statistic_mean(&far) == 1e9 + 2 && statistic_deviation(&far) == 1, "%.9g",
          statistic_deviation(&far));
}

static void test_thousands(void) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},
                 {12, "12"},
                 {999.6, "1,000"},
                 {123456, "123,456"},
                 {1234567, "1,234,567"},
                 {-1000, "1,000"},
                 {1e15, "1,000,000,000,000,000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[DIGITS_BYTES];
        const char *end = digits_thousands(text, cases[i].value);
        CHECK(strcmp(text, cases[i].text) == 0, "%g became %s", cases[i].value, text);
        CHECK(end == text + strlen(text), "%s: the end is %d too far", text, (int)(end - text));
    }
}

/* --- lists of strategies --- */

/* The first registered strategy that has variants, to be typed with settings. */
static const struct strategy *with_settings(void) {
    for (int i = 0; strategies[i]; i++)
        if (strategies[i]->variants) return strategies[i];
    return NULL;
}

static void check_list(const char *text, int count, const char *const *wanted) {
    struct strategy_list list;
    struct error error = {0};
    CHECK(strategy_list_parse(&list, text, &error) == OK, "%s: %s", text, error.words);
    CHECK(list.count == count, "%s: %d strategies, expected %d", text, list.count, count);
    for (int i = 0; i < count && i < list.count; i++)
        CHECK(strcmp(list.texts[i], wanted[i]) == 0, "%s: number %d is \"%s\", expected \"%s\"", text, i,
              list.texts[i], wanted[i]);
    strategy_list_free(&list);
    strategy_list_free(&list);
}

static void check_refused(const char *text, const char *words) {
    struct strategy_list list;
    struct error error = {0};
    CHECK(strategy_list_parse(&list, text, &error) == ERROR_USAGE, "\"%s\": code %d", text, error.code);
    CHECK(strstr(error.words, words) != NULL, "\"%s\": %s", text, error.words);
    strategy_list_free(&list);
}

static void test_lists(void) {
    const struct strategy *set = with_settings();
    const char *plain = strategies[0]->plugin.name, *name = set->plugin.name, *key = set->variants[0];
    char one[300], text[1400];
    check_list(plain, 1, &plain);
    snprintf(one, sizeof one, "%s:%s", name, key);
    snprintf(text, sizeof text, "%s,%s,%s", one, plain, name);
    check_list(text, 3, (const char *const[]){one, plain, name});
    /* A setting after a comma is the same strategy's. */
    check_list("adasync:k=2,adapt=none,sync", 2, (const char *const[]){"adasync:k=2,adapt=none", "sync"});
    check_refused("adasync:k=2,adapt=none,k=3,sync", "adasync: found k twice, expected each setting once");

    int variants = 0;
    struct strategy_list all;
    struct error error = {0};
    for (int i = 0; strategies[i]; i++)
        for (int v = 0; v == 0 || (strategies[i]->variants && strategies[i]->variants[v]); v++) variants++;
    CHECK(strategy_list_parse(&all, "all", &error) == OK, "%s", error.words);
    CHECK(all.count == variants, "all are %d, expected %d", all.count, variants);
    for (int i = 0; i < all.count; i++) check_list(all.texts[i], 1, (const char *const[]){all.texts[i]});
    strategy_list_free(&all);

    check_refused("", "found an empty name");
    check_refused(",", "found an empty name");
    check_refused("x=1", "\"x=1\": unknown");
    snprintf(text, sizeof text, "%s,%sx", plain, plain);
    snprintf(one, sizeof one, "did you mean \"%s\"", plain);
    check_refused(text, one);
    snprintf(text, sizeof text, "%s,", plain);
    check_refused(text, "found an empty name");
    snprintf(text, sizeof text, "%s,no=1", plain);
    check_refused(text, "unknown");
    snprintf(text, sizeof text, "%s:%s,no=1", name, key);
    check_refused(text, "unknown setting \"no\"");
    snprintf(text, sizeof text, "%s:no=%01000d", plain, 0);
    check_refused(text, "characters");
}

/* --- rows --- */

static struct run_result result_of(double speed, double accuracy, struct worker_result *workers) {
    return (struct run_result){.summary = {.workers = 2,
                                           .examples_per_s = speed,
                                           .test_score = accuracy,
                                           .target_s = NAN,
                                           .staleness = {.mean = 1.5, .p99 = 3, .max = (long)speed / 10},
                                           .updates = (long)(10 * speed),
                                           .wait_share = 0.5},
                               .workers = workers};
}

static void test_rows(void) {
    struct worker_result workers[2] = {{.wait_s = 3,
                                        .waited_at = "barrier a",
                                        .waited_at_s = 2,
                                        .waited_for = "worker 1",
                                        .waited_for_s = 3},
                                       {.wait_s = 1,
                                        .waited_at = "barrier b",
                                        .waited_at_s = 1,
                                        .waited_for = "worker 0",
                                        .waited_for_s = 1.5}};
    struct bench_row rows[3];
    struct wait_sums sums[3] = {0};
    const double speeds[3][2] = {{100, 100}, {200, 200}, {70, 50}}, accuracies[3] = {0.75, 0.5, 0.875};
    for (int i = 0; i < 3; i++) {
        row_open(&rows[i], 3);
        rows[i].baseline = i < 2;
        for (int run = 0; run < 2; run++) {
            const struct run_result result = result_of(speeds[i][run], accuracies[i], workers);
            row_add_run(&rows[i], &sums[i], &result);
        }
        row_add_failure(&rows[i], &(struct error){.code = ERROR_DIVERGED, .words = "first"});
        row_add_failure(&rows[i], &(struct error){.code = ERROR_PEER, .words = "second"});
    }
    rows_set_beside(rows, 3);
    const struct bench_row *row = &rows[2];
    CHECK(row->finished == 2 && row->failed == 2, "%d finished, %d failed", row->finished, row->failed);
    CHECK(row->failure == ERROR_DIVERGED && strcmp(row->failure_words, "first") == 0, "%s",
          row->failure_words);
    CHECK(row->speedup_one == 0.6 && row->speedup_all == 0.3, "%g and %g", row->speedup_one,
          row->speedup_all);
    CHECK(fabs(row->speedup_one_sd - sqrt(200) / 100) < 1e-12, "%g", row->speedup_one_sd);
    CHECK(rows[0].speedup_one == 1 && rows[0].speedup_all == 0.5 && rows[1].speedup_one == 2, "baselines");
    CHECK(row->score_apart == 12.5, "%g points", row->score_apart);
    CHECK(row->updates_ratio == 0.6, "%g", row->updates_ratio);
    CHECK(row->staleness_max == 7, "%ld", row->staleness_max);
    CHECK(row->target_s.count == 0 && statistic_mean(&row->staleness_p99) == 3, "target and p99");
    CHECK(strcmp(row->waited_at, "barrier a") == 0 && row->waited_at_share == 4 / 9.0, "%s %g",
          row->waited_at, row->waited_at_share);
    CHECK(strcmp(row->waited_for, "worker 1") == 0 && row->waited_for_share == 6 / 9.0, "%s %g",
          row->waited_for, row->waited_for_share);

    /* Without a second baseline nothing is compared with all cores; without a finished run nothing at all. */
    rows[1].baseline = false;
    rows[0].examples_per_s = (struct statistic){0};
    row_open(&rows[2], 1);
    rows_set_beside(rows, 3);
    CHECK(isnan(rows[1].speedup_one) && isnan(rows[2].speedup_all) && isnan(rows[2].score_apart), "unknown");
}

/* --- sentences --- */

static struct bench_row quiet_row(void) {
    struct bench_row row;
    row_open(&row, 3);
    row.finished = 3;
    row.examples_per_s = same(123456);
    row.speedup_one = 1.75;
    row.speedup_one_sd = 0.03125;
    row.speedup_all = 1.25;
    row.speedup_all_sd = 0.125;
    row.score_apart = 0.5;
    row.updates_ratio = 0.5;
    row.target_s = row.staleness_mean = row.staleness_p99 = same(0.5);
    row.compute_share = same(0.7);
    row.input_share = row.push_share = row.pull_share = same(0.05);
    row.wait_share = same(0.2);
    row.updates = same(3000);
    row.lost_updates = row.dropped = same(0);
    return row;
}

static void check_sentence(const struct bench_row *row, const char *wanted) {
    char sentence[1200];
    bench_sentence(row, 0.9, sentence, sizeof sentence);
    CHECK(strcmp(sentence, wanted) == 0, "\"%s\"\n    instead of \"%s\"", sentence, wanted);
    for (size_t bytes = 1; bytes < 40; bytes++) {
        bench_sentence(row, 0.9, sentence, bytes);
        CHECK(strlen(sentence) < bytes && strncmp(sentence, wanted, strlen(sentence)) == 0, "cut: \"%s\"",
              sentence);
    }
}

static void check_speeds(double one, double one_sd, double all, double all_sd, const char *wanted) {
    struct bench_row row = quiet_row();
    row.speedup_one = one;
    row.speedup_one_sd = one_sd;
    row.speedup_all = all;
    row.speedup_all_sd = all_sd;
    check_sentence(&row, wanted);
}

static void test_speed_sentences(void) {
    check_speeds(1.75, 0.1, 1.25, 0.1,
                 "1.75 times as fast as one device and 1.25 times as fast as one with all cores");
    check_speeds(
        1.75, 0.1, 0.75, 0.07,
        "1.75 times as fast as one device, but slower than one with all cores (0.75 times its speed)");
    check_speeds(0.75, 0.07, 0.5, 0.05,
                 "slower than one device (0.75 times its speed) and than one with all cores (0.50)");
    check_speeds(1.04, 0, 0.96, 0,
                 "about as fast as one device (1.04 times) and as one with all cores (0.96)");
    check_speeds(
        1.75, 0.8, 1.25, 0.5,
        "1.75 +- 0.80 times as fast as one device and 1.25 +- 0.50 times as fast as one with all cores");
    check_speeds(1.75, 0.1, 0.9, 0.2,
                 "1.75 times as fast as one device and 0.90 +- 0.20 times as fast as one with all cores");
    /* A large spread is said beside a verdict, too. */
    check_speeds(
        1.69, 0.49, 2.03, 0.6,
        "1.69 +- 0.49 times as fast as one device and 2.03 +- 0.60 times as fast as one with all cores");
    check_speeds(
        0.75, 0.2, 0.5, 0.3,
        "slower than one device (0.75 +- 0.20 times its speed) and than one with all cores (0.50 +- 0.30)");
    check_speeds(
        1.04, 0.3, 0.96, 0.01,
        "1.04 +- 0.30 times as fast as one device and about as fast as one with all cores (0.96 times)");
    check_speeds(1.75, NAN, NAN, NAN, "1.75 times as fast as one device");
    check_speeds(0.5, NAN, NAN, NAN, "slower than one device (0.50 times its speed)");
    check_speeds(NAN, NAN, NAN, NAN, "123,456 examples/s");
}

static void test_waiting_sentences(void) {
    struct bench_row row = quiet_row();
    row.speedup_one = 0.5;
    row.speedup_all = NAN;
    row.wait_share = same(0.61);
    row.waited_at = "the barrier";
    row.waited_for = "worker 1";
    row.waited_at_share = row.waited_for_share = 0.95;
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, "
                         "nearly all at the barrier, mostly for worker 1");
    row.may_share = true;
    check_sentence(&row,
                   "slower than one device (0.50 times its speed): waiting takes 61 % of the time, nearly "
                   "all at the barrier, mostly for worker 1; --share=auto would give it fewer examples");
    row.wait_share = same(0.19);
    check_sentence(&row, "slower than one device (0.50 times its speed)");
    row.wait_share = same(0.61);
    row.may_share = false;
    row.waited_at_share = 0.7;
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, "
                         "mostly for worker 1 and at the barrier");
    row.waited_for_share = 0.5;
    row.may_share = true;
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, "
                         "mostly at the barrier");
    row.waited_at_share = 1;
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, "
                         "nearly all at the barrier");
    /* The place that names the server does not name it twice. */
    row.waited_at = "the server, for its own gradient to be applied";
    row.waited_for = "server 0";
    row.waited_for_share = 0.7;
    check_sentence(
        &row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, nearly all at "
              "server 0, for its own gradient to be applied; --share=auto would give it fewer examples");
    row.waited_at_share = 0.7;
    row.may_share = false;
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time, "
                         "mostly at server 0, for its own gradient to be applied");
    row.waited_at = row.waited_for = NULL;
    row.pull_share = same(0.25);
    check_sentence(&row, "slower than one device (0.50 times its speed): waiting takes 61 % of the time; "
                         "exchanging weights and gradients takes 30 % of the time");
    row.wait_share = same(0.1);
    check_sentence(&row, "slower than one device (0.50 times its speed): exchanging weights and gradients "
                         "takes 30 % of the time");
    row.speedup_one = 1.5;
    row.wait_share = same(0.61);
    check_sentence(&row, "1.50 times as fast as one device; waiting takes 61 % of the time; exchanging "
                         "weights and gradients takes 30 % of the time");
}

static void test_cost_sentences(void) {
    struct bench_row row = quiet_row();
    row.speedup_one = 0.5;
    row.speedup_all = NAN;
#define SLOWER "slower than one device (0.50 times its speed); "
    row.staleness_mean = same(1.25);
    row.staleness_max = 44;
    check_sentence(&row, SLOWER "a gradient is 1.2 updates old on average, 44 at most");
    row.staleness_mean = same(0);
    row.score_apart = -0.84;
    check_sentence(&row, SLOWER "0.8 points below one worker, with 0.50 times as many updates");
    row.updates_ratio = 1;
    row.score_apart = 0.84;
    check_sentence(&row, SLOWER "0.8 points above one worker");
    row.score_apart = NAN;
    row.target_s = of(2, (const double[]){1, 2});
    check_sentence(&row, SLOWER "reaches the target accuracy in 2 of 3 runs");
    row.target_s = (struct statistic){0};
    check_sentence(&row, SLOWER "never reaches the target accuracy");
    row.target_s = same(1);
    row.lost_updates = same(1234);
    check_sentence(&row, SLOWER "1,234 of 3,000 updates lost");
    row.lost_updates = of(3, (const double[]){1, 0, 0});
    check_sentence(&row, SLOWER "0.33 of 3,000 updates lost");
    row.lost_updates = same(0);
    row.dropped = same(17.6);
    check_sentence(&row, SLOWER "18 gradients dropped");
    row.dropped = same(1);
    check_sentence(&row, SLOWER "1 gradient dropped");
    row.dropped = same(0);
    row.lost_workers = 1;
    check_sentence(&row, SLOWER "1 worker lost in 3 runs");
    row.lost_workers = 0;
    row.finished = 2;
    row.target_s = of(2, (const double[]){1, 2});
    check_sentence(&row, SLOWER "only 2 of 3 runs");
    row_add_failure(&row, &(struct error){.code = ERROR_DIVERGED, .words = "the loss is nan"});
    check_sentence(&row, SLOWER "failed in 1 of 3 runs: the loss is nan");
    row.baseline = true;
    check_sentence(&row, "failed in 1 of 3 runs: the loss is nan");
    row.baseline = false;
    row.finished = 0;
    check_sentence(&row, "failed in 1 of 3 runs: the loss is nan");
    row_open(&row, 3);
    check_sentence(&row, "not run");
}

/* --- table and files --- */

static const char long_name[] = "a-strategy-with-a-long-name:and=settings";

static struct bench made_up(struct bench_row rows[4]) {
    for (int i = 0; i < 4; i++) {
        rows[i] = quiet_row();
        rows[i].devices = i == 0 ? "cpu:0 x1" : "cpu:0 x1, cpu:1 x1";
        rows[i].workers = i == 0 ? 1 : 2;
        rows[i].threads = 1;
        rows[i].test_score = of(3, (const double[]){0.5, 0.625, 0.75});
        rows[i].test_cost = same(i == 2 ? 1885017.77 : 0.25);
        rows[i].final_cost = (struct statistic){0};
    }
    strcpy(rows[0].name, "one device");
    rows[0].baseline = true;
    strcpy(rows[1].name, long_name);
    rows[1].target_s = of(1, (const double[]){1.5});
    strcpy(rows[2].name, "a:x=1,say=\"y\"");
    rows[2].waited_at = "the barrier";
    rows[2].waited_at_share = 0.75;
    row_open(&rows[3], 3);
    strcpy(rows[3].name, "bad");
    rows[3].devices = "cpu:0 x1, cpu:1 x1";
    row_add_failure(&rows[3], &(struct error){.code = ERROR_DIVERGED, .words = "the loss is nan"});
    return (struct bench){.model = "mlp",
                          .dataset = "digits",
                          .devices = "cpu:0 x1, cpu:1 x1",
                          .faults = "--slow=cpu:1=3x",
                          .simulated = "",
                          .optimizer = "sgd:rate=0.5",
                          .schedule = "constant",
                          .epochs = 2,
                          .batch = 32,
                          .batch_of = "per worker",
                          .repeats = 3,
                          .threads = 1,
                          .seed = 5,
                          .target_accuracy = 0.9,
                          .rows = rows,
                          .count = 4};
}

/* The lines of a text that have this beginning, one after the other, with single blanks. */
static void join_lines(const char *text, const char *begin, char *out, size_t bytes) {
    struct text joined = text_into(out, bytes);
    bool wanted = false;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const bool indented = line[0] == ' ' && line[2] == ' ';
        wanted = strncmp(line, begin, strlen(begin)) == 0 || (wanted && indented);
        for (const char *word = line; wanted && *word && *word != '\n';) {
            const size_t length = strcspn(word, " \n");
            if (length > 0) text_item(&joined, " ", "%.*s", (int)length, word);
            word += length + (word[length] == ' ');
        }
    }
}

static void check_row(const char *text, const char *begin, const char *wanted) {
    char found[2000];
    join_lines(text, begin, found, sizeof found);
    CHECK(strcmp(found, wanted) == 0, "%s\n instead of %s\n in\n%s", found, wanted, text);
}

/* On pages of several widths: the same figures in the same order, in as many blocks as it takes. */
static void test_table(int columns, int blocks, bool long_name_fits) {
    struct bench_row rows[4];
    const struct bench bench = made_up(rows);
    FILE *file = tmpfile();
    char text[12000] = "", row[300];
    const struct page page = {.file = file, .columns = columns};
    bench_print(&page, &bench);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    int found = 0, longest = 0;
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        CHECK(end - line <= columns, "%d columns: %.*s", (int)(end - line), (int)(end - line), line);
        found += strncmp(line, "one device ", 11) == 0;
        if (end - line > longest) longest = (int)(end - line);
    }
    CHECK(found == blocks, "%d columns: %d blocks, expected %d:\n%s", columns, found, blocks, text);
    CHECK(longest > columns - 15, "%d columns are not used: %d\n%s", columns, longest, text);
    if (blocks == 2) {
        check_row(text, "one device",
                  "one device 123,456 0 1.75 1.25 0.5 62.50 12.50 0.2500 0.0000 "
                  "one device 70 5 10 20 0.50 0 0 3,000 0 0");
        snprintf(
            row, sizeof row,
            "%s 123,456 0 1.75 1.25 1.5 (1/3) 62.50 12.50 0.2500 0.0000 %s 70 5 10 20 0.50 0 0 3,000 0 0 "
            "%s: 1.75 times",
            long_name, long_name, long_name);
        char joined[2000];
        join_lines(text, long_name, joined, sizeof joined);
        CHECK(strncmp(joined, row, strlen(row)) == 0, "%s\n instead of %s", joined, row);
    } else {
        check_row(text, "one device",
                  "one device 123,456 0 1.75 1.25 0.5 one device 62.50 12.50 0.2500 0.0000 "
                  "one device 70 5 10 20 0.50 0 0 one device 3,000 0 0");
    }
    CHECK(strstr(text, "62.50") && strstr(text, "1.9e+06") && strstr(text, "never") == NULL, "%s", text);
    snprintf(row, sizeof row, "\n%s ", long_name);
    CHECK((strstr(text, row) != NULL) == long_name_fits, "%d columns: the long name:\n%s", columns, text);
    static const char *const wanted[] = {"mlp on digits: 2 epochs, batch 32 per worker, sgd:rate=0.5,",
                                         "seeds 5 to 7\n\n",
                                         "\nbad: failed in 1 of 3 runs: the loss is nan.\n"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        CHECK(strstr(text, wanted[i]) != NULL || columns == 60, "no\n%sin\n%s", wanted[i], text);
    CHECK(strstr(text, "\nbad   ") && strstr(text, " failed\n") && strstr(text, "  to target: seconds of "),
          "%s", text);
}

static void check_csv(const char *path, int lines, const char *const *wanted, int wanted_count) {
    char *text = NULL;
    size_t bytes = 0;
    struct error error = {0};
    CHECK(file_read(path, 1 << 20, &text, &bytes, &error) == OK, "%s", error.words);
    if (!text) return;
    int found = 0, columns = 0, header = 0;
    bool quoted = false;
    for (const char *c = text, *line = text; *c; c++) {
        if (*c == '"') quoted = !quoted;
        columns += *c == ',' && !quoted;
        if (*c != '\n') continue;
        if (line == text) header = columns;
        CHECK(columns == header, "%d columns after a header of %d: %.*s", columns + 1, header + 1,
              (int)(c - line), line);
        columns = 0;
        found++;
        line = c + 1;
    }
    CHECK(found == lines, "%s has %d lines, expected %d", path, found, lines);
    for (int i = 0; i < wanted_count; i++)
        CHECK(strstr(text, wanted[i]) != NULL, "no \"%s\" in\n%s", wanted[i], text);
    memory_free(text);
}

static void test_files(void) {
    struct bench_row rows[4];
    const struct bench bench = made_up(rows);
    char folder[] = "/tmp/test_bench.XXXXXX", path[100];
    struct error error = {0};
    CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof path, "%s/bench.csv", folder);
    CHECK(bench_write(path, &bench, &error) == OK, "%s", error.words);
    static const char *const in_bench[] = {
        "strategy,baseline,devices,workers,threads,runs,failed,examples_per_s,examples_per_s_sd,speedup_one,",
        "\none device,1,cpu:0 x1,1,1,3,0,123456,0,1.75,0.03125,1.25,0.125,",
        "\n\"a:x=1,say=\"\"y\"\"\",0,\"cpu:0 x1, cpu:1 x1\",2,1,3,0,", ",the barrier,0.75,,nan,0,0,",
        ",0.625,0.125,0.25,0,nan,nan,0.5,0.5,0,0.7,0.05,0.05,0.05,0.2,3000,0,0,nan,"};
    check_csv(path, 5, in_bench, sizeof in_bench / sizeof *in_bench);
    unlink(path);

    struct bench_runs runs;
    const struct summary summary = {.examples_per_s = 10.5, .target_s = NAN, .updates = 3};
    snprintf(path, sizeof path, "%s/runs.csv", folder);
    CHECK(bench_runs_open(&runs, path, &error) == OK, "%s", error.words);
    check_csv(path, 1, NULL, 0);
    CHECK(bench_runs_add(&runs, "a,b", 1, 5, &summary, &(struct error){0}, &error) == OK, "%s", error.words);
    check_csv(path, 2, (const char *const[]){"\n\"a,b\",1,5,0,,10.5,0,nan,"}, 1); /* at once */
    const struct error failure = {.code = ERROR_DIVERGED, .words = "the loss, of step 3, is nan"};
    CHECK(bench_runs_add(&runs, "c", 2, 6, NULL, &failure, &error) == OK, "%s", error.words);
    CHECK(bench_runs_finish(&runs, &error) == OK && bench_runs_finish(&runs, &error) == OK, "%s",
          error.words);
    check_csv(path, 3, (const char *const[]){"\nc,2,6,6,\"the loss, of step 3, is nan\",nan,nan,"}, 1);
    bench_runs_close(&runs);
    unlink(path);
    rmdir(folder);
    CHECK(bench_runs_open(&runs, path, &error) == ERROR_FILE && strstr(error.words, path), "%s", error.words);
    bench_runs_close(&runs);
    error = (struct error){0};
    CHECK(bench_write(path, &bench, &error) == ERROR_FILE, "code %d", error.code);
    if (access("/dev/full", W_OK) != 0) return;
    error = (struct error){0};
    CHECK(bench_runs_open(&runs, "/dev/full", &error) == ERROR_FILE, "a full disk: code %d", error.code);
    bench_runs_close(&runs);
}

/* --- the line that says which run is on --- */

static void test_status(void) {
    char drawn[500] = "";
    FILE *plain = tmpfile();
    struct progress progress;
    progress_open(&progress, plain, false);
    progress_status(&progress, "run 1 of 2");
    progress_clear(&progress);
    CHECK(ftell(plain) == 0, "a file got a line for terminals");
    fclose(plain);

    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return;
    FILE *file = fopen(ptsname(master), "w");
    setenv("TERM", "xterm", 1);
    ioctl(master, TIOCSWINSZ, &(struct winsize){.ws_row = 24, .ws_col = 20});
    progress_open(&progress, file, false);
    progress_status(&progress, "run 1 of 2: a-strategy, seed 1");
    progress_status(&progress, "run 2 of 2");
    progress_clear(&progress);
    size_t count = 0;
    static const char wanted[] = "\rrun 1 of 2: a-strat\033[K\rrun 2 of 2\033[K\r\033[K";
    while (count + 1 < sizeof wanted && poll(&(struct pollfd){.fd = master, .events = POLLIN}, 1, 2000) > 0) {
        const ssize_t got = read(master, drawn + count, sizeof drawn - 1 - count);
        if (got <= 0) break;
        count += (size_t)got;
    }
    CHECK(strcmp(drawn, wanted) == 0, "drawn: %s", drawn);
    fclose(file);
    close(master);
}

int main(void) {
    test_statistic();
    test_thousands();
    test_lists();
    test_rows();
    test_speed_sentences();
    test_waiting_sentences();
    test_cost_sentences();
    test_table(60, 4, false);
    test_table(80, 2, false);
    test_table(100, 2, false);
    test_table(160, 2, true);
    test_files();
    test_status();
    return check_end();
}
