/* worst: the highest loss of any step, in worst.txt. An output of which the program knows nothing:
 * tests/project/stranger.sh copies this file into src/outputs/ of a copy of the sources. */
#include "../record/output.h"

struct worst {
    char path[PATH_BYTES];
    double loss;
};

static int every(const struct output_scene *scene) {
    return scene->workers > 0; /* the rows of all steps */
}

static int open(void *self, const struct output_scene *scene, struct error *error) {
    struct worst *worst = self;
    return file_join(worst->path, scene->folder, "worst.txt", error);
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct worst *worst = self;
    (void)error;
    for (int i = 0; i < count; i++)
        if ((double)rows[i].loss > worst->loss) worst->loss = (double)rows[i].loss;
    return OK;
}

static int end(void *self, const struct output_end *end, struct error *error) {
    const struct worst *worst = self;
    struct file_new file = {0};
    (void)end;
    RETURN_IF(file_create(&file, worst->path, error));
    fprintf(file.stream, "%.5f\n", worst->loss);
    const int code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

const struct output output_worst = {
    .plugin = {.name = "worst", .help = "worst.txt, the highest loss of any step"},
    .self_bytes = sizeof(struct worst),
    .every = every,
    .open = open,
    .steps = steps,
    .end = end,
};
