/* The table of a comparison: how fast and how well, then where the time goes, then the sentences. Plain
 * characters only, and lines of at most COLUMNS: it is read in logs as often as on terminals. */
#include <math.h>
#include <string.h>
#include "bench.h"
#include "../base/text.h"
#include "../outputs/digits.h"

enum { COLUMNS = 100, NAME_LEAST = 10, NAME_MOST = 28, CELL_BYTES = 64 };

/* --- cells: right-aligned, each with a blank in front; what is not known is "-" --- */

static void print_cell(FILE *file, int width, const char *text) {
    fprintf(file, " %*s", width - 1, text);
}

static void print_real(FILE *file, int width, int decimals, double value) {
    char text[CELL_BYTES];
    snprintf(text, sizeof text, "%.*f", decimals, value);
    print_cell(file, width, isfinite(value) ? text : "-");
}

/* A cost that ran away needs no decimals. */
static void print_cost(FILE *file, int width, double value) {
    char text[CELL_BYTES];
    snprintf(text, sizeof text, value < 99.5 ? "%.4f" : "%.1e", value);
    print_cell(file, width, isfinite(value) ? text : "-");
}

static void print_thousands(FILE *file, int width, double value) {
    char text[DIGITS_BYTES];
    digits_thousands(text, value);
    print_cell(file, width, isfinite(value) ? text : "-");
}

static void print_target(FILE *file, int width, const struct bench *bench, const struct bench_row *row) {
    char text[CELL_BYTES];
    const struct statistic *target = &row->target_s;
    snprintf(text, sizeof text, "%.3g s", statistic_mean(target));
    if (target->count < row->finished)
        snprintf(text, sizeof text, "%.3g s (%ld/%d)", statistic_mean(target), target->count, row->finished);
    if (target->count == 0) snprintf(text, sizeof text, "not reached");
    if (isnan(bench->target_accuracy)) snprintf(text, sizeof text, "-");
    print_cell(file, width, text);
}

/* --- blocks --- */

static int name_width(const struct bench *bench) {
    int width = NAME_LEAST;
    for (int i = 0; i < bench->count; i++) {
        const int length = (int)strlen(bench->rows[i].name);
        if (length > width) width = length < NAME_MOST ? length : NAME_MOST;
    }
    return width;
}

/* A name that is too long has a line of its own. Returns whether figures follow: a row without a finished
 * run has none. */
static bool begin_row(FILE *file, int width, const struct bench_row *row) {
    if ((int)strlen(row->name) > width)
        fprintf(file, "%s\n%-*s", row->name, width, "");
    else
        fprintf(file, "%-*s", width, row->name);
    if (row->finished > 0) return true;
    fprintf(file, "  %s\n", row->failed > 0 ? "failed" : "not run");
    return false;
}

static double percent(const struct statistic *statistic) {
    return 100 * statistic_mean(statistic);
}

static void print_speed(FILE *file, const struct bench *bench, int width) {
    fprintf(file, "\n%-*s %10s %4s %5s %5s %11s %8s %5s %7s %7s\n", width, "", "examples/s", "sd", "x one",
            "x all", "to target", "accuracy", "sd", "cost", "sd");
    for (int i = 0; i < bench->count; i++) {
        const struct bench_row *row = &bench->rows[i];
        if (!begin_row(file, width, row)) continue;
        const double speed = statistic_mean(&row->examples_per_s);
        print_thousands(file, 11, speed);
        print_real(file, 5, 0, 100 * statistic_deviation(&row->examples_per_s) / speed);
        print_real(file, 6, 2, row->speedup_one);
        print_real(file, 6, 2, row->speedup_all);
        print_target(file, 12, bench, row);
        print_real(file, 9, 2, percent(&row->test_accuracy));
        print_real(file, 6, 2, 100 * statistic_deviation(&row->test_accuracy));
        print_cost(file, 8, statistic_mean(&row->test_cost));
        print_cost(file, 8, statistic_deviation(&row->test_cost));
        fputc('\n', file);
    }
    fprintf(file, "  x one: times as fast as one device with %d thread%s", bench->threads,
            bench->threads == 1 ? "" : "s");
    if (bench->cores > 0) fprintf(file, "; x all: as one device with all %d cores", bench->cores);
    fprintf(file, "\n  accuracy (%%) and cost: of the test set; sd: over the runs, of examples/s in %%\n");
    if (!isnan(bench->target_accuracy))
        fprintf(file, "  to target: seconds of training until the accuracy is %.6g %%\n",
                100 * bench->target_accuracy);
}

static void print_shares(FILE *file, const struct bench *bench, int width) {
    fprintf(file, "\n%-*s %7s %5s %8s %7s %5s %4s %4s %9s %6s %7s\n", width, "", "compute", "input",
            "exchange", "waiting", "stale", "p99", "max", "updates", "lost", "dropped");
    for (int i = 0; i < bench->count; i++) {
        const struct bench_row *row = &bench->rows[i];
        if (!begin_row(file, width, row)) continue;
        print_real(file, 8, 0, percent(&row->compute_share));
        print_real(file, 6, 0, percent(&row->input_share));
        print_real(file, 9, 0, percent(&row->pull_share) + percent(&row->push_share));
        print_real(file, 8, 0, percent(&row->wait_share));
        print_real(file, 6, 2, statistic_mean(&row->staleness_mean));
        print_real(file, 5, 0, statistic_mean(&row->staleness_p99));
        print_thousands(file, 5, (double)row->staleness_max);
        print_thousands(file, 10, statistic_mean(&row->updates));
        print_thousands(file, 7, statistic_mean(&row->lost_updates));
        print_thousands(file, 8, statistic_mean(&row->dropped));
        fputc('\n', file);
    }
    fputs("  of the workers' time in %: exchange takes weights and gives gradients; waiting: for\n"
          "    others, and at the end of epochs\n"
          "  stale: updates since a gradient's weights were read, when it is applied; mean, p99 and max\n"
          "  lost: updates that another worker overwrote; dropped: gradients thrown away as too late\n",
          file);
}

/* --- sentences --- */

/* Writes words within COLUMNS, continuing on lines that begin with two blanks. */
static void print_wrapped(FILE *file, const char *text) {
    int column = 0;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (strncmp(text + length, " %", 2) == 0) length += 2; /* a number and its unit stay together */
        if (column > 0 && column + 1 + length > COLUMNS)
            column = fprintf(file, "\n  ") - 1;
        else if (column > 0)
            column += fprintf(file, " ");
        column += fprintf(file, "%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    fputc('\n', file);
}

static void print_sentences(FILE *file, const struct bench *bench) {
    fputc('\n', file);
    for (int i = 0; i < bench->count; i++) {
        const struct bench_row *row = &bench->rows[i];
        char sentence[1200], line[BENCH_NAME_BYTES + sizeof sentence + 4];
        if (row->failed == 0 && (row->baseline || row->finished == 0)) continue; /* nothing to say */
        snprintf(line, sizeof line, "%s: %s.", row->name,
                 bench_sentence(row, bench->target_accuracy, sentence, sizeof sentence));
        print_wrapped(file, line);
    }
}

void bench_print(FILE *file, const struct bench *bench) {
    const int width = name_width(bench);
    char line[4096];
    struct text text = text_into(line, sizeof line);
    const char *plural = bench->repeats == 1 ? "" : "s";
    text_add(&text, "%s on %s: %d epoch%s, batch %d a worker, %s, %s, on %s%s%s; %d run%s each, seed%s %ld",
             bench->model, bench->dataset, bench->epochs, bench->epochs == 1 ? "" : "s", bench->batch,
             bench->optimizer, bench->schedule, bench->devices, bench->faults[0] ? ", with " : "",
             bench->faults, bench->repeats, plural, plural, bench->seed);
    if (bench->repeats > 1) text_add(&text, " to %ld", bench->seed + bench->repeats - 1);
    print_wrapped(file, line);
    print_speed(file, bench, width);
    print_shares(file, bench, width);
    print_sentences(file, bench);
}
