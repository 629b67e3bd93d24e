/* The table of a comparison: how fast and how well, then where the time goes, then the sentences. Plain
 * characters only, in the columns of the page: it is read in logs as often as on terminals. */
#include <math.h>
#include <string.h>
#include "bench.h"
#include "../base/text.h"
#include "../record/digits.h"

enum { NAME_LEAST = 14, NAME_MOST = 60, CELL_BYTES = 64, COLUMNS_MOST = 12, NOTE_INDENT = 4 };

/* --- cells: what is not known is "-" --- */

static void real_cell(char *out, int decimals, double value) {
    snprintf(out, CELL_BYTES, "%.*f", decimals, value);
    if (!isfinite(value)) snprintf(out, CELL_BYTES, "-");
}

/* A cost that ran away needs no decimals; its size, where it has no room. */
static void cost_cell(char *out, double value) {
    snprintf(out, CELL_BYTES, value < 99.5 ? "%.4f" : value < 99999.5 ? "%.0f" : "%.1e", value);
    if (!isfinite(value)) snprintf(out, CELL_BYTES, "-");
}

static void thousands_cell(char *out, double value) {
    snprintf(out, CELL_BYTES, "-");
    if (isfinite(value)) digits_thousands(out, value);
}

static double percent(const struct statistic *statistic) {
    return 100 * statistic_mean(statistic);
}

/* One column: its title, and what it says of a row. Columns that belong together stay side by side: the first
 * of them `begins`. That of the score is called after its metric. */
struct column {
    const char *title;
    bool begins;
    void (*cell)(char out[CELL_BYTES], const struct bench_row *row);
};

static void speed(char *out, const struct bench_row *row) {
    thousands_cell(out, statistic_mean(&row->examples_per_s));
}

static void speed_sd(char *out, const struct bench_row *row) {
    real_cell(out, 0, 100 * statistic_deviation(&row->examples_per_s) / statistic_mean(&row->examples_per_s));
}

static void speedup_one(char *out, const struct bench_row *row) {
    real_cell(out, 2, row->speedup_one);
}

static void speedup_all(char *out, const struct bench_row *row) {
    real_cell(out, 2, row->speedup_all);
}

static void target(char *out, const struct bench_row *row) {
    const struct statistic *seconds = &row->target_s;
    if (seconds->count == 0)
        snprintf(out, CELL_BYTES, "never");
    else if (seconds->count < row->finished)
        snprintf(out, CELL_BYTES, "%.3g (%ld/%d)", statistic_mean(seconds), seconds->count, row->finished);
    else
        snprintf(out, CELL_BYTES, "%.3g", statistic_mean(seconds));
}

/* Shares in per cent. */
static void score_cell(char *out, const struct bench_row *row, double value) {
    const bool share = metric_rows[row->metric].share;
    if (share)
        real_cell(out, 2, 100 * value);
    else
        snprintf(out, CELL_BYTES, isfinite(value) ? "%.4g" : "-", value);
}

static void score(char *out, const struct bench_row *row) {
    score_cell(out, row, statistic_mean(&row->test_score));
}

static void score_sd(char *out, const struct bench_row *row) {
    score_cell(out, row, statistic_deviation(&row->test_score));
}

static void cost(char *out, const struct bench_row *row) {
    cost_cell(out, statistic_mean(&row->test_cost));
}

static void cost_sd(char *out, const struct bench_row *row) {
    cost_cell(out, statistic_deviation(&row->test_cost));
}

static void compute(char *out, const struct bench_row *row) {
    real_cell(out, 0, percent(&row->compute_share));
}

static void input(char *out, const struct bench_row *row) {
    real_cell(out, 0, percent(&row->input_share));
}

static void exchange(char *out, const struct bench_row *row) {
    real_cell(out, 0, percent(&row->pull_share) + percent(&row->push_share));
}

static void waiting(char *out, const struct bench_row *row) {
    real_cell(out, 0, percent(&row->wait_share));
}

static void stale(char *out, const struct bench_row *row) {
    real_cell(out, 2, statistic_mean(&row->staleness_mean));
}

static void stale_p99(char *out, const struct bench_row *row) {
    real_cell(out, 0, statistic_mean(&row->staleness_p99));
}

static void stale_max(char *out, const struct bench_row *row) {
    thousands_cell(out, (double)row->staleness_max);
}

static void updates(char *out, const struct bench_row *row) {
    thousands_cell(out, statistic_mean(&row->updates));
}

static void lost(char *out, const struct bench_row *row) {
    thousands_cell(out, statistic_mean(&row->lost_updates));
}

static void dropped(char *out, const struct bench_row *row) {
    thousands_cell(out, statistic_mean(&row->dropped));
}

static const struct column speed_columns[] = {
    {"examples/s", true, speed},  {"sd", false, speed_sd}, {"x one", true, speedup_one},
    {"x all", true, speedup_all}, {"score", true, score},  {"sd", false, score_sd},
    {"cost", true, cost},         {"sd", false, cost_sd},  {0},
};

static const struct column target_columns[] = {
    {"examples/s", true, speed},  {"sd", false, speed_sd},
    {"x one", true, speedup_one}, {"x all", true, speedup_all},
    {"to target", true, target},  {"score", true, score},
    {"sd", false, score_sd},      {"cost", true, cost},
    {"sd", false, cost_sd},       {0},
};

static const struct column share_columns[] = {
    {"compute", true, compute},
    {"input", false, input},
    {"exchange", false, exchange},
    {"waiting", false, waiting},
    {"stale", true, stale},
    {"p99", false, stale_p99},
    {"max", false, stale_max},
    {"updates", true, updates},
    {"lost", true, lost},
    {"dropped", true, dropped},
    {0},
};

/* --- blocks --- */

/* Of a finished run. */
static const struct metric_row *metric_of_bench(const struct bench *bench) {
    int row = 0;
    while (row < bench->count - 1 && bench->rows[row].finished == 0) row++;
    return &metric_rows[bench->count > 0 ? bench->rows[row].metric : METRIC_ACCURACY];
}

static const char *title_of(const struct bench *bench, const struct column *column) {
    return column->cell == score ? metric_of_bench(bench)->words : column->title;
}

static int column_width(const struct bench *bench, const struct column *column) {
    int width = (int)strlen(title_of(bench, column));
    for (int i = 0; i < bench->count; i++) {
        char cell[CELL_BYTES];
        if (bench->rows[i].finished == 0) continue;
        column->cell(cell, &bench->rows[i]);
        if ((int)strlen(cell) > width) width = (int)strlen(cell);
    }
    return width;
}

static int longest_name(const struct bench *bench) {
    int longest = 0;
    for (int i = 0; i < bench->count; i++) {
        const int length = (int)strlen(bench->rows[i].name);
        if (length > longest) longest = length < NAME_MOST ? length : NAME_MOST;
    }
    return longest;
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

/* `count` columns of these widths, right-aligned, each behind `gap` blanks. */
static void print_columns(FILE *file, const struct bench *bench, const struct column *columns,
                          const int *widths, int count, int name_width, int gap) {
    fprintf(file, "\n%-*s", name_width, "");
    for (int c = 0; c < count; c++) fprintf(file, "%*s", widths[c] + gap, title_of(bench, &columns[c]));
    fputc('\n', file);
    for (int i = 0; i < bench->count; i++) {
        const struct bench_row *row = &bench->rows[i];
        if (!begin_row(file, name_width, row)) continue;
        for (int c = 0; c < count; c++) {
            char cell[CELL_BYTES];
            columns[c].cell(cell, row);
            fprintf(file, "%*s", widths[c] + gap, cell);
        }
        fputc('\n', file);
    }
}

/* All columns in one block where the page has room for them, else in as many as it takes. */
static void print_blocks(const struct page *page, const struct bench *bench, const struct column *columns) {
    const int longest = longest_name(bench), least = longest < NAME_LEAST ? longest : NAME_LEAST;
    while (columns->title != NULL) {
        int widths[COLUMNS_MOST], count = 0, fitting = 0, sum = 0, taken = 0;
        for (; columns[count].title != NULL && count < COLUMNS_MOST; count++) {
            widths[count] = column_width(bench, &columns[count]);
            if (columns[count].begins && count > 0) fitting = count, taken = sum;
            if (fitting > 0 && least + sum + widths[count] + 1 > page->columns) break;
            sum += widths[count] + 1;
        }
        if (columns[count].title == NULL) fitting = count, taken = sum;
        const int gap = longest + taken + fitting <= page->columns ? 2 : 1;
        const int room = page->columns - taken - (gap - 1) * fitting;
        print_columns(page->file, bench, columns, widths, fitting,
                      longest < room ? longest
                      : room > least ? room
                                     : least,
                      gap);
        columns += fitting;
    }
}

/* --- what the columns mean --- */

static void print_note(const struct page *page, const char *note) {
    fputs("  ", page->file);
    page_words(page, 2, NOTE_INDENT, note);
}

static bool drops_some(const struct bench *bench) {
    for (int i = 0; i < bench->count; i++)
        if (statistic_mean(&bench->rows[i].dropped) > 0.0) return true; /* NAN: of none is known */
    return false;
}

static void print_speed(const struct page *page, const struct bench *bench) {
    const bool has_target = !isnan(bench->target_accuracy);
    char line[200];
    struct text text = text_into(line, sizeof line);
    print_blocks(page, bench, has_target ? target_columns : speed_columns);
    text_add(&text, "x one: times as fast as one device with %d thread%s", bench->threads,
             bench->threads == 1 ? "" : "s");
    if (bench->cores > 0) text_add(&text, "; x all: as one device with all %d cores", bench->cores);
    print_note(page, line);
    snprintf(line, sizeof line, "%s%s and cost: of the test set; sd: over the runs, of examples/s in %%",
             metric_of_bench(bench)->words, metric_of_bench(bench)->share ? " (%)" : "");
    print_note(page, line);
    if (drops_some(bench)) print_note(page, "examples/s: with those of the gradients that were thrown away");
    if (!has_target) return;
    snprintf(line, sizeof line,
             "to target: seconds of training until the accuracy is %.6g %%, and how many runs got there",
             100 * bench->target_accuracy);
    print_note(page, line);
}

static void print_shares(const struct page *page, const struct bench *bench) {
    print_blocks(page, bench, share_columns);
    print_note(page, "of the workers' time in %: exchange: taking weights and giving gradients; waiting: for "
                     "others, and at the end of epochs");
    print_note(page,
               "stale: updates between reading a gradient's weights and applying it: mean, p99 and max");
    print_note(page,
               "lost: updates that another worker overwrote; dropped: gradients thrown away as too late");
}

/* --- sentences --- */

static void print_sentences(const struct page *page, const struct bench *bench) {
    fputc('\n', page->file);
    for (int i = 0; i < bench->count; i++) {
        const struct bench_row *row = &bench->rows[i];
        char sentence[1200], line[BENCH_NAME_BYTES + sizeof sentence + 4];
        if (row->failed == 0 && (row->baseline || row->finished == 0)) continue; /* nothing to say */
        snprintf(line, sizeof line, "%s: %s.", row->name,
                 bench_sentence(row, bench->target_accuracy, sentence, sizeof sentence));
        page_words(page, 0, 2, line);
    }
}

void bench_print(const struct page *page, const struct bench *bench) {
    char line[4096];
    struct text text = text_into(line, sizeof line);
    const char *plural = bench->repeats == 1 ? "" : "s";
    text_add(&text, "%s on %s: %d epoch%s, batch %d %s, %s, %s, on %s%s%s; %d run%s each, seed%s %ld",
             bench->model, bench->dataset, bench->epochs, bench->epochs == 1 ? "" : "s", bench->batch,
             bench->batch_of, bench->optimizer, bench->schedule, bench->devices,
             bench->faults[0] ? ", with " : "", bench->faults, bench->repeats, plural, plural, bench->seed);
    if (bench->repeats > 1) text_add(&text, " to %ld", bench->seed + bench->repeats - 1);
    page_words(page, 0, 2, line);
    if (bench->simulated[0]) {
        snprintf(line, sizeof line, "simulated: %s; all times and speeds are virtual", bench->simulated);
        page_words(page, 0, 2, line);
    }
    print_speed(page, bench);
    print_shares(page, bench);
    print_sentences(page, bench);
}
