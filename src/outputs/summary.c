/* summary: summary.json, what the run was and what came of it. */
#include "../base/file.h"
#include "../record/output.h"

struct to_write {
    char path[PATH_BYTES];
};

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct to_write *file = self;
    return scene->folder ? file_join(file->path, scene->folder, "summary.json", error) : OK;
}

static int end(void *self, const struct output_end *end, struct error *error) {
    const struct to_write *file = self;
    return file->path[0] ? summary_write(file->path, end->summary, error) : OK;
}

const struct output output_summary = {
    .plugin = {.name = "summary", .help = "summary.json, what the run was and what came of it"},
    .self_bytes = sizeof(struct to_write),
    .always = true,
    .open = open,
    .end = end,
};
