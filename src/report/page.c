/* The page around its sections, and what they share. */
#include "page.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/memory.h"
#include "../graph/model.h"
#include "../record/sentence.h"

/* --- pieces --- */

struct table table_begin(struct html *html, const struct column *columns, int count) {
    html_put(html, "<table>\n<thead><tr>");
    for (int i = 0; i < count; i++)
        html_element(html, columns[i].words ? "th scope=\"col\" class=\"words\"" : "th scope=\"col\"", "%s",
                     columns[i].head);
    html_put(html, "</tr></thead>\n<tbody>\n");
    return (struct table){.html = html, .columns = columns, .count = count, .column = count};
}

void table_row(struct table *table) {
    html_put(table->html, "<tr>");
    table->column = 0;
}

void table_cell(struct table *table, const char *format, ...) {
    char words[2048];
    va_list values;
    va_start(values, format);
    vsnprintf(words, sizeof words, format, values);
    va_end(values);
    const struct column *column = &table->columns[table->column];
    if (table->column == 0) {
        html_element(table->html, "th scope=\"row\"", "%s", words);
    } else {
        html_put(table->html, column->words ? "<td class=\"words\" data-label=\"" : "<td data-label=\"");
        html_text(table->html, column->head);
        html_put(table->html, "\"><span>");
        html_text(table->html, words);
        html_put(table->html, "</span></td>");
    }
    if (++table->column == table->count) html_put(table->html, "</tr>\n");
}

void table_end(struct table *table) {
    html_put(table->html, "</tbody></table>\n");
}

void page_tile(struct html *html, const char *value, const char *words) {
    html_put(html, "<div class=\"tile\"><b>");
    html_text(html, value);
    html_put(html, "</b><span>");
    html_text(html, words);
    html_put(html, "</span></div>\n");
}

double value_epoch(const struct epoch_row *row) {
    return row->epoch;
}

double value_seconds(const struct epoch_row *row) {
    return row->time_s;
}

double value_train_loss(const struct epoch_row *row) {
    return row->train_loss;
}

double value_test_loss(const struct epoch_row *row) {
    return row->test_loss;
}

double value_test_score(const struct epoch_row *row) {
    return metric_scale(row->metric) * row->test_score;
}

double value_validation_loss(const struct epoch_row *row) {
    return row->validation_loss;
}

double value_validation_score(const struct epoch_row *row) {
    return metric_scale(row->metric) * row->validation_score;
}

int curve_of_epochs(struct curve *curve, const struct facts *facts, epoch_value *x, epoch_value *y,
                    struct error *error) {
    RETURN_IF(memory_array(&curve->x, facts->epochs.count + 1, "a curve", error));
    RETURN_IF(memory_array(&curve->y, facts->epochs.count + 1, "a curve", error));
    curve->count = facts->epochs.count;
    for (int i = 0; i < curve->count; i++) {
        curve->x[i] = x(&facts->epochs.rows[i]);
        curve->y[i] = y(&facts->epochs.rows[i]);
    }
    return OK;
}

void curve_free(struct curve *curve) {
    memory_free(curve->x);
    memory_free(curve->y);
    *curve = (struct curve){0};
}

const char *facts_title(const struct facts *facts, char out[TITLE_BYTES]) {
    const char *model = facts_setting(facts, "model"), *dataset = facts_setting(facts, "dataset");
    char words[MODEL_SHORT_BYTES];
    if (model && dataset)
        snprintf(out, TITLE_BYTES, "%s on %s", model_short(model, words), dataset);
    else
        snprintf(out, TITLE_BYTES, "The run in %s", facts->folder);
    return out;
}

const char *facts_sentence(const struct facts *facts, char *out, size_t bytes) {
    out[0] = '\0';
    return facts->has_summary ? sentence_of_run(&facts->summary, out, bytes) : out;
}

/* --- the page --- */

/* By which a page of trainer is known, in its first bytes. */
static const char page_type[] = "<!DOCTYPE html>\n",
                  page_generator[] = "<meta name=\"generator\" content=\"trainer\"/>\n";
enum { HEAD_BYTES = 1024 };

static void write_head(struct html *html, const char *title) {
    html_put(html, "%s", page_type);
    html_put(html, "<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                   "<meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
                   "<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    html_put(html, "%s", page_generator);
    html_element(html, "title", "%s", title);
    html_put(html, "<style>\n");
    for (const char *const *piece = page_style; *piece; piece++) fputs(*piece, html->file);
    html_put(html, "</style>\n</head>\n<body>\n");
}

static bool is_there(const struct section *section, const struct report *report) {
    return !section->has || section->has(report);
}

static void write_link(struct html *html, const char *id, const char *title) {
    html_put(html, "<a href=\"#");
    html_text(html, id);
    html_put(html, "\">");
    html_text(html, title);
    html_put(html, "</a>\n");
}

static void write_links(struct html *html, const struct section *sections, const struct report *report) {
    html_put(html, "<nav>\n");
    for (const struct section *section = sections; section->id; section++)
        if (is_there(section, report)) write_link(html, section->id, section->title);
    for (int i = 0; i < report->more_count; i++) write_link(html, report->more[i].id, report->more[i].title);
    html_put(html, "</nav>\n");
}

static void begin_section(struct html *html, const char *id, const char *title) {
    html_put(html, "<section id=\"");
    html_text(html, id);
    html_put(html, "\">\n");
    html_element(html, "h2", "%s", title);
}

static int write_sections(struct html *html, const struct section *sections, const struct report *report,
                          struct error *error) {
    for (const struct section *section = sections; section->id; section++) {
        if (!is_there(section, report)) continue;
        begin_section(html, section->id, section->title);
        RETURN_IF(section->write(html, report, error));
        html_put(html, "</section>\n");
    }
    for (int i = 0; i < report->more_count; i++) {
        begin_section(html, report->more[i].id, report->more[i].title);
        RETURN_IF(report->more[i].write(html, report->more[i].self, error));
        html_put(html, "</section>\n");
    }
    return OK;
}

enum { TITLES_MOST = 3 };

/* Whether an earlier run is about the same. */
static bool is_told(const struct report *report, int run) {
    char title[TITLE_BYTES], other[TITLE_BYTES];
    facts_title(&report->runs[run], title);
    for (int i = 0; i < run; i++)
        if (strcmp(title, facts_title(&report->runs[i], other)) == 0) return true;
    return false;
}

/* What the runs are about: "mlp on mnist and softmax on iris"; of many different ones, how many they are. */
static const char *page_title(const struct report *report, char out[TITLE_BYTES]) {
    struct text text = text_into(out, TITLE_BYTES);
    char title[TITLE_BYTES];
    int different = 0, told = 0;
    for (int i = 0; i < report->count; i++) different += !is_told(report, i);
    for (int i = 0; i < report->count && different <= TITLES_MOST; i++) {
        if (is_told(report, i)) continue;
        text_item(&text, ++told == different ? " and " : ", ", "%s", facts_title(&report->runs[i], title));
    }
    if (different > TITLES_MOST) text_add(&text, "%d runs of %d kinds", report->count, different);
    return out;
}

/* Where a run was. */
static void say_place(struct html *html, const struct facts *facts) {
    char words[TITLE_BYTES];
    const char *strategy = facts_setting(facts, "strategy");
    const int phases = facts->summary.phase_count;
    for (int p = 0; p + 1 < phases; p++) html_say(html, "%s, then ", facts->phases[p].strategy);
    if (phases > 0) strategy = facts->phases[phases - 1].strategy;
    html_say(html, "%s on %s", strategy ? strategy : "-", facts_devices(facts, words, sizeof words));
    if (facts_cluster(facts, words, sizeof words)[0]) html_say(html, ", in %s", words);
}

static void write_title(struct html *html, const struct report *report) {
    char title[TITLE_BYTES];
    const struct facts *facts = &report->runs[0];
    html_put(html, "<header>\n");
    html_element(html, "h1", "%s", page_title(report, title));
    html_put(html, "<p class=\"quiet\">");
    if (report->count > 1) {
        const int groups = report->runs[report->count - 1].group - facts->group + 1;
        if (groups < report->count) html_say(html, "%d contenders, ", groups);
        html_say(html, "%d runs side by side", report->count);
    } else if (facts->has_summary) {
        say_place(html, facts);
    }
    html_put(html, "</p>\n</header>\n");
}

static int write_page(struct html *html, const struct report *report, struct error *error) {
    const struct section *sections = report->count > 1 ? several_runs_sections : one_run_sections;
    char title[TITLE_BYTES];
    write_head(html, page_title(report, title));
    write_title(html, report);
    html_put(html, "<main>\n");
    write_links(html, sections, report);
    RETURN_IF(write_sections(html, sections, report, error));
    html_put(html, "</main>\n<footer>");
    html_say(html, "Written by trainer %s", TRAINER_VERSION);
    if (report->count == 1) html_say(html, " from %s", report->runs[0].folder);
    html_put(html, ".</footer>\n</body>\n</html>\n");
    return OK;
}

/* --- the stretch --- */

static bool leads_group(const struct report *report, int run) {
    return run == 0 || report->runs[run].group != report->runs[run - 1].group;
}

/* Of several runs, what shows the first steps of each. */
static double usual_length(const struct report *report) {
    double length_s = 0.0, shortest = INFINITY;
    for (int i = 0; i < report->count; i++) {
        const double first_s = facts_first_s(&report->runs[i]);
        length_s = fmax(length_s, first_s);
        if (first_s > 0.0) shortest = fmin(shortest, first_s);
    }
    return fmin(length_s, 6 * shortest);
}

/* When the first step of all began, and the last one ended. */
static bool find_ends(const struct report *report, double *begin_s, double *end_s) {
    *begin_s = INFINITY;
    *end_s = 0.0;
    for (int i = 0; i < report->count; i++) {
        const struct step_facts *steps = &report->runs[i].steps;
        if (steps->rows == 0) continue;
        *begin_s = fmin(*begin_s, steps->begin_s);
        *end_s = fmax(*end_s, steps->end_s);
    }
    return *end_s > 0.0;
}

/* All that begin together end together: where the first of them can be drawn no further. */
static void end_together(struct report *report, double from_s) {
    double length_s = INFINITY;
    for (int i = 0; i < report->count; i++) {
        const struct stretch *stretch = &report->runs[i].stretch;
        if (stretch->steps && stretch->from_s == from_s) length_s = fmin(length_s, stretch->length_s);
    }
    for (int i = 0; i < report->count; i++) {
        struct stretch *stretch = &report->runs[i].stretch;
        if (stretch->steps && stretch->from_s == from_s) stretch->length_s = length_s;
    }
}

/* The same stretch of the first run of each group, so that they can be compared: in seconds since the
 * training began, whenever their own first steps did. Only one that would have no step in it, as of a run
 * that was resumed in another folder, begins with its own. */
static int read_stretches(struct report *report, struct error *error) {
    const bool asked = !isnan(report->from_s);
    double begin_s, end_s;
    if (!find_ends(report, &begin_s, &end_s)) return OK;
    if (asked && report->from_s >= end_s)
        return error_set(error, ERROR_USAGE, "--from=%g: the last step of %s ended after %.3g s of training",
                         report->from_s, report->count > 1 ? "all runs" : report->runs[0].folder, end_s);
    const double from_s = asked ? report->from_s : begin_s;
    const double wanted = isnan(report->length_s) ? usual_length(report) : report->length_s;
    const double length_s = fmin(wanted, end_s - from_s);
    for (int i = 0; i < report->count; i++) {
        struct facts *facts = &report->runs[i];
        if (!leads_group(report, i) || facts->steps.rows == 0) continue;
        const bool late = !asked && facts->steps.begin_s >= from_s + length_s;
        RETURN_IF(facts_read_stretch(facts, late ? facts->steps.begin_s : from_s, length_s, error));
    }
    end_together(report, from_s);
    return OK;
}

/* --- the file --- */

static bool is_page(int file) {
    char head[HEAD_BYTES + 1] = "";
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const ssize_t bytes = read(file, head, HEAD_BYTES);
    head[bytes > 0 ? bytes : 0] = '\0';
    return strncmp(head, page_type, strlen(page_type)) == 0 && strstr(head, page_generator) != NULL;
}

int report_check_free(const char *path, struct error *error) {
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return OK;
    const bool replaceable = file >= 0 && is_page(file);
    if (file >= 0) close(file);
    if (replaceable) return OK;
    return error_set(error, ERROR_FILE,
                     "%.300s already exists and is not a page of trainer: --replace replaces it, --out=FILE "
                     "writes elsewhere",
                     path);
}

int report_write(const char *path, struct report *report, struct error *error) {
    struct file_new file = {0};
    RETURN_IF(read_stretches(report, error));
    RETURN_IF(file_create(&file, path, error));
    struct html html = {.file = file.stream};
    int code = write_page(&html, report, error);
    if (code == OK) code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}
