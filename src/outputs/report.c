/* report: report.html, a page about the run, made at its end from what the run has left in its folder. */
#include <math.h>

#include "../base/file.h"
#include "../pictures/example.h"
#include "../record/output.h"
#include "../report/confused.h"
#include "../report/looks_for.h"

struct to_write {
    char path[PATH_BYTES];
    const struct output_scene *scene; /* borrowed */
};

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct to_write *page = self;
    page->scene = scene;
    return scene->folder ? file_join(page->path, scene->folder, "report.html", error) : OK;
}

enum { SECTIONS = 2 };

static int write(const struct to_write *page, const struct report_section *sections, int count,
                 struct error *error) {
    struct facts facts = {0};
    int code = facts_read(&facts, page->scene->folder, FACTS_ALL, error);
    struct report report = {.runs = &facts,
                            .count = 1,
                            .from_s = (double)NAN,
                            .length_s = (double)NAN,
                            .target_accuracy = (double)NAN,
                            .more = sections,
                            .more_count = count};
    if (code == OK) code = report_write(page->path, &report, error);
    facts_free(&facts);
    return code;
}

/* What the network says is only known where somebody asked, which an interrupted run does not. */
static int end(void *self, const struct output_end *end, struct error *error) {
    const struct to_write *page = self;
    const struct dataset *dataset = page->scene->dataset;
    const struct answers answers = {.said = end->said, .probabilities = end->probabilities};
    struct report_section sections[SECTIONS];
    struct confused confused = {0};
    struct looks_for looks_for = {0};
    struct example_sizes sizes;
    struct error none = {0};
    int count = 0, code = OK;
    bool looks = false;
    if (end->said && dataset->classes <= CONFUSION_MOST) {
        code = confused_open(&confused, dataset, &answers, error);
        sections[count++] = confused_section(&confused);
    }
    if (code == OK && example_sizes(&sizes, dataset, &none) == OK)
        code = looks_for_open(&looks_for, sizes.seen, page->scene->graph, end->weights, &looks, error);
    if (looks) sections[count++] = looks_for_section(&looks_for);
    if (code == OK) code = write(page, sections, count, error);
    looks_for_close(&looks_for);
    confused_close(&confused);
    return code;
}

static const char *const files[] = {"report.html", NULL};

const struct output output_report = {
    .plugin = {.name = "report",
               .help = "report.html, a page about the run, made at its end; as trainer report makes one"},
    .self_bytes = sizeof(struct to_write),
    .wants_said = true,
    .files = files,
    .open = open,
    .end = end,
};
