/* trainer show: pictures. Of a data set its examples, before and after augmentation; of a trained network its
 * filters, its confusion matrix and what it gets wrong. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../config/config.h"
#include "../infer/tested.h"
#include "../pictures/blocks.h"
#include "../pictures/confusion.h"
#include "../pictures/filters.h"
#include "../pictures/png.h"
#include "../pictures/wrong.h"
#include "../record/progress.h"
#include "command.h"

struct show_settings {
    char dataset[1024], checkpoint[PATH_BYTES], data_dir[PATH_BYTES], out[PATH_BYTES];
    int only, part, count, epoch, kernels;
    long seed;
    bool replace, to_terminal, numbers;
};

enum only { ONLY_ALL, ONLY_FILTERS, ONLY_CONFUSION, ONLY_WRONG };
enum { ON_PAPER = 40, FILTERS_ON_PAPER = 100 }; /* tiles */
enum part { PART_AUTO, PART_TEST, PART_TRAIN, PART_VALIDATION };

static const struct option rows[] = {
    OPTION_ROW(TEXT, "dataset", struct show_settings, dataset, .value = "NAME",
               .help = "show examples of this data set; with --checkpoint: test on it"),
    OPTION_ROW(TEXT, "checkpoint", struct show_settings, checkpoint, .value = "PATH",
               .help = "show this network: folder of a run, or a .safetensors file that it wrote"),
    OPTION_ROW(CHOICE, "only", struct show_settings, only, .fallback = "all",
               .choices = "all|filters|confusion|wrong",
               .help = "of a network, only the weights of its first layer, its confusion matrix, or the "
                       "examples it is wrong about"),
    OPTION_ROW(CHOICE, "part", struct show_settings, part, .fallback = "auto",
               .choices = "auto|test|train|validation",
               .help = "which examples; auto: those of the training, and for a network those of its test"),
    OPTION_ROW(INT, "count", struct show_settings, count, .fallback = "0", .least = 0, .most = 2000,
               .unit = "pictures",
               .help = "at most so many on a sheet (0: some dozens, and three rows in the terminal)"),
    OPTION_ROW(LONG, "seed", struct show_settings, seed, .fallback = "1", .least = 1, .most = SEED_MOST,
               .help = "show the examples that a training with this seed begins with"),
    OPTION_ROW(INT, "epoch", struct show_settings, epoch, .fallback = "1", .least = 1, .most = 2000000,
               .help = "the same for a later epoch of it"),
    OPTION_ROW(TEXT, "out", struct show_settings, out, .value = "PATH",
               .help = "the picture (default: the data set's name and .png); of a network the folder of the "
                       "pictures (default: that of the run), or with --only the picture"),
    OPTION_ROW(FLAG, "replace", struct show_settings, replace, .help = "replace pictures that are there"),
    OPTION_ROW(FLAG, "inline", struct show_settings, to_terminal,
               .help = "show them in the terminal instead; in a pipe, or with NO_COLOR, as letters"),
    OPTION_ROW(FLAG, "numbers", struct show_settings, numbers,
               .help = "print the confusion matrix as numbers, and write no pictures"),
    OPTION_ROW(TEXT, "data-dir", struct show_settings, data_dir, .value = "DIR",
               .help = "look for data sets here first"),
    OPTION_ROW(CHOICE, "kernels", struct show_settings, kernels, .fallback = "auto",
               .choices = "auto|reference", .help = "reference: only the plain kernels, without libraries"),
    {0},
};

/* --- where the pictures go --- */

static int check_free(const char *path, const struct show_settings *settings, struct error *error) {
    if (settings->replace || !file_exists(path)) return OK;
    return error_set(error, ERROR_FILE,
                     "%.300s already exists: --replace replaces it, --out=PATH writes elsewhere", path);
}

static int write_picture(const struct canvas *canvas, const char *path, struct error *error) {
    RETURN_IF(png_write(canvas, path, error));
    printf("%s: %d x %d pixels\n", path, canvas->width, canvas->height);
    return OK;
}

static int show_sheet(const struct sheet *sheet, const char *path, const struct show_settings *settings,
                      struct error *error) {
    struct canvas canvas = {0};
    if (settings->to_terminal)
        return sheet_print(sheet, stdout, page_columns(stdout), blocks_coloured(stdout), error);
    int code = sheet_draw(sheet, &canvas, error);
    if (code == OK) code = write_picture(&canvas, path, error);
    canvas_close(&canvas);
    return code;
}

/* How many tiles a sheet has at most. width: of a tile's pictures. */
static int count_of(const struct show_settings *settings, int on_paper, int width) {
    if (settings->count > 0) return settings->count;
    return settings->to_terminal ? sheet_few(width, page_columns(stdout)) : on_paper;
}

/* --- a data set --- */

static int show_examples(const struct show_settings *settings, const struct dataset *dataset,
                         struct error *error) {
    struct example_choice choice = {
        .train = settings->part != PART_TEST, .seed = (uint64_t)settings->seed, .epoch = settings->epoch};
    struct example_sizes sizes;
    char path[PATH_BYTES];
    struct sheet sheet = {0};
    if (settings->part == PART_VALIDATION)
        return error_set(error, ERROR_USAGE,
                         "--part=validation: only a training holds examples out, expected "
                         "--checkpoint=DIR with it");
    if (settings->out[0])
        snprintf(path, sizeof path, "%s", settings->out);
    else
        snprintf(path, sizeof path, "%s.png", dataset->name);
    RETURN_IF(example_sizes(&sizes, dataset, error));
    if (!settings->to_terminal) RETURN_IF(check_free(path, settings, error));
    const int beside = dataset->train.augment.height > 0 ? 1 + sizes.seen[1] : 0;
    choice.count = count_of(settings, ON_PAPER, sizes.stored[1] + beside);
    int code = example_sheet(&sheet, dataset, &choice, error);
    if (code == OK) code = show_sheet(&sheet, path, settings, error);
    sheet_close(&sheet);
    return code;
}

static int show_dataset(const struct show_settings *settings, struct error *error) {
    struct dataset dataset = {0};
    struct choice choice = {0};
    if (settings->numbers || settings->only != ONLY_ALL)
        return error_set(error, ERROR_USAGE, "show: %s is about a network, expected --checkpoint=DIR with it",
                         settings->numbers ? "--numbers" : "--only");
    int code = plugin_choose(&choice, &dataset_kind, settings->dataset, error);
    if (code == OK)
        code = dataset_open(&dataset, &choice, settings->data_dir[0] ? settings->data_dir : NULL, error);
    if (code == OK) progress_warn_of(dataset.notice);
    if (code == OK) code = show_examples(settings, &dataset, error);
    dataset_close(&dataset);
    return code;
}

/* --- a network --- */

struct network_shown {
    const struct show_settings *settings;
    struct restored restored;
    struct tested tested;
    int *said;            /* [examples] */
    float *probabilities; /* [examples][classes] */
    char path[ONLY_WRONG + 1][PATH_BYTES];
};

static const char *const part_names[] = {"test", "training", "validation"};

static bool wants(const struct show_settings *settings, enum only what) {
    if (settings->numbers) return what == ONLY_CONFUSION;
    return settings->only == ONLY_ALL || settings->only == (int)what;
}

/* The folder that the run of the checkpoint has, or the one that its file lies in. */
static void folder_of_run(const char *checkpoint, char folder[PATH_BYTES]) {
    static const char best[] = "/checkpoint/best";
    checkpoint_run(checkpoint, folder);
    const size_t bytes = strlen(folder);
    char *cut =
        checkpoint_is_best(folder) && bytes >= sizeof best ? folder + bytes - (sizeof best - 1) : NULL;
    const char *const ending = ".safetensors";
    if (bytes > strlen(ending) && strcmp(folder + bytes - strlen(ending), ending) == 0) {
        cut = strrchr(folder, '/');
        if (!cut) snprintf(folder, PATH_BYTES, ".");
    }
    if (cut) *cut = '\0';
}

static int choose_paths(struct network_shown *shown, struct error *error) {
    static const char *const names[] = {"", "filters.png", "confusion.png", "wrong.png"};
    const struct show_settings *settings = shown->settings;
    char folder[PATH_BYTES];
    if (settings->to_terminal || settings->numbers) return OK;
    folder_of_run(settings->checkpoint, folder);
    if (settings->out[0]) snprintf(folder, sizeof folder, "%s", settings->out);
    if (settings->out[0] && settings->only == ONLY_ALL) RETURN_IF(file_make_folder(folder, error));
    for (enum only what = ONLY_FILTERS; what <= ONLY_WRONG; what++) {
        if (!wants(settings, what)) continue;
        if (settings->out[0] && settings->only != ONLY_ALL)
            snprintf(shown->path[what], PATH_BYTES, "%s", settings->out);
        else
            RETURN_IF(file_join(shown->path[what], folder, names[what], error));
        RETURN_IF(check_free(shown->path[what], settings, error));
    }
    return OK;
}

static int check_images(const struct network_shown *shown, struct example_sizes *sizes, struct error *error) {
    const struct dataset *dataset = &shown->tested.dataset;
    struct error ignored = {0};
    if (example_sizes(sizes, dataset, &ignored) == OK) return OK;
    return error_set(error, ERROR_USAGE,
                     "%s: not a data set of images, so only --only=confusion can show its networks",
                     dataset->name);
}

/* All else is of classes. */
static int check_filters(const struct network_shown *shown, struct error *error) {
    struct example_sizes sizes = {0};
    struct error ignored = {0};
    if (shown->settings->only == ONLY_FILTERS) return OK;
    if (example_sizes(&sizes, &shown->tested.dataset, &ignored) == OK)
        return error_set(
            error, ERROR_USAGE,
            "%s: expected --only=filters, as the network predicts no classes, which all else is of",
            shown->settings->checkpoint);
    return error_set(error, ERROR_USAGE,
                     "%s: predicts no classes, and its examples are no images: there is nothing to show",
                     shown->settings->checkpoint);
}

static int show_filters(const struct network_shown *shown, const struct example_sizes *sizes,
                        struct error *error) {
    const struct show_settings *settings = shown->settings;
    const struct graph *graph = &shown->restored.evaluator.pass[EVALUATE_WHOLE].network.graph;
    struct sheet sheet = {0};
    int width = 0;
    RETURN_IF(filters_width(&width, graph, sizes->seen, error));
    int code = filters_sheet(&sheet, graph, shown->restored.weights, sizes->seen,
                             count_of(settings, FILTERS_ON_PAPER, width),
                             !settings->to_terminal || blocks_coloured(stdout), error);
    if (code == OK) code = show_sheet(&sheet, shown->path[ONLY_FILTERS], settings, error);
    sheet_close(&sheet);
    return code;
}

static int draw_confusion(const struct confusion *confusion, const char *path, struct error *error) {
    struct canvas canvas = {0};
    int code = confusion_draw(confusion, &canvas, error);
    if (code == OK) code = write_picture(&canvas, path, error);
    canvas_close(&canvas);
    return code;
}

static int show_confusion(const struct network_shown *shown, struct error *error) {
    const struct show_settings *settings = shown->settings;
    const struct tested *tested = &shown->tested;
    const struct dataset *dataset = &tested->dataset;
    const struct page page = page_on(stdout);
    struct confusion confusion = {0};
    int code = confusion_open(&confusion, (const char *const *)dataset->class_names, dataset->classes,
                              tested->examples->labels, shown->said, tested->examples->count, error);
    snprintf(confusion.title, sizeof confusion.title, "%s: %d of %d %s examples are right, %.2f %%",
             dataset->name, confusion.right, confusion.examples, part_names[tested->part],
             100.0 * confusion.right / (confusion.examples > 0 ? confusion.examples : 1));
    if (code == OK && (settings->to_terminal || settings->numbers))
        confusion_print(&confusion, &page);
    else if (code == OK)
        code = draw_confusion(&confusion, shown->path[ONLY_CONFUSION], error);
    confusion_close(&confusion);
    return code;
}

static int show_wrong(const struct network_shown *shown, const struct example_sizes *sizes,
                      struct error *error) {
    const struct show_settings *settings = shown->settings;
    const struct tested *tested = &shown->tested;
    const struct answers answers = {.said = shown->said, .probabilities = shown->probabilities};
    struct sheet sheet = {0};
    int code = wrong_sheet(&sheet, &tested->dataset, tested->examples, part_names[tested->part], &answers,
                           count_of(settings, ON_PAPER, sizes->stored[1]), error);
    if (code == OK) code = show_sheet(&sheet, shown->path[ONLY_WRONG], settings, error);
    sheet_close(&sheet);
    return code;
}

static int predict(struct network_shown *shown, struct error *error) {
    const struct examples *examples = shown->tested.examples;
    const size_t count = (size_t)examples->count;
    RETURN_IF(memory_array(&shown->said, count, "answers", error));
    RETURN_IF(
        memory_array(&shown->probabilities, count * (size_t)shown->restored.classes, "probabilities", error));
    return evaluator_predict(&shown->restored.evaluator, examples, shown->restored.weights,
                             shown->probabilities, shown->said, error);
}

/* In the terminal a blank line stands between the sheets. */
static void leave_room(const struct show_settings *settings) {
    if (settings->to_terminal && settings->only == ONLY_ALL && !settings->numbers) putchar('\n');
}

static int show_all(struct network_shown *shown, const struct example_sizes *sizes, struct error *error) {
    const struct show_settings *settings = shown->settings;
    if (wants(settings, ONLY_FILTERS)) {
        RETURN_IF(show_filters(shown, sizes, error));
        leave_room(settings);
    }
    if (settings->only == ONLY_FILTERS) return OK;
    RETURN_IF(predict(shown, error));
    if (wants(settings, ONLY_CONFUSION)) {
        RETURN_IF(show_confusion(shown, error));
        leave_room(settings);
    }
    return wants(settings, ONLY_WRONG) ? show_wrong(shown, sizes, error) : OK;
}

static int show_network(struct network_shown *shown, struct error *error) {
    const struct show_settings *settings = shown->settings;
    static const enum tested_part parts[] = {[PART_AUTO] = TESTED_TEST,
                                             [PART_TEST] = TESTED_TEST,
                                             [PART_TRAIN] = TESTED_TRAIN,
                                             [PART_VALIDATION] = TESTED_VALIDATION};
    const struct tested_settings test = {.checkpoint = settings->checkpoint,
                                         .dataset = settings->dataset,
                                         .data_dir = settings->data_dir,
                                         .part = parts[settings->part]};
    struct example_sizes sizes = {0};
    if (settings->numbers && settings->only != ONLY_ALL && settings->only != ONLY_CONFUSION)
        return error_set(error, ERROR_USAGE,
                         "show: --numbers prints the confusion matrix, expected no other --only");
    RETURN_IF(
        restored_open(&shown->restored, settings->checkpoint, settings->kernels == KERNELS_REFERENCE, error));
    RETURN_IF(tested_open(&shown->tested, &shown->restored, &test, error));
    if (shown->restored.task != TASK_CLASSES) RETURN_IF(check_filters(shown, error));
    if (wants(settings, ONLY_FILTERS) || wants(settings, ONLY_WRONG))
        RETURN_IF(check_images(shown, &sizes, error));
    RETURN_IF(choose_paths(shown, error));
    return show_all(shown, &sizes, error);
}

static int show_checkpoint(const struct show_settings *settings, struct error *error) {
    struct network_shown *shown = NULL;
    RETURN_IF(memory_array(&shown, 1, "a network", error));
    shown->settings = settings;
    const int code = show_network(shown, error);
    memory_free(shown->said);
    memory_free(shown->probabilities);
    tested_close(&shown->tested);
    restored_close(&shown->restored);
    memory_free(shown);
    return code;
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    (void)arguments, (void)argument_count;
    const struct show_settings *settings = settings_given;
    if (!settings->checkpoint[0] && !settings->dataset[0])
        return error_set(error, ERROR_USAGE, "show: expected --dataset=NAME or --checkpoint=DIR");
    if ((settings->to_terminal || settings->numbers) && settings->out[0])
        return error_set(error, ERROR_USAGE, "show: --out=%.200s: %s writes no pictures", settings->out,
                         settings->numbers ? "--numbers" : "--inline");
    if (!settings->to_terminal && !settings->numbers && png_check(error) != OK)
        return error_prefix(error, "show: without --inline or --numbers: ");
    return settings->checkpoint[0] ? show_checkpoint(settings, error) : show_dataset(settings, error);
}

const struct command command_show = {
    .plugin = {.name = "show",
               .help = "draw examples of a data set; a network's filters and mistakes",
               .options = rows,
               .settings_bytes = sizeof(struct show_settings)},
    .examples = "# examples as the network is given them, in digits.png\n"
                "trainer show --dataset=digits\n"
                "# and in the terminal, before and after augmentation\n"
                "trainer show --dataset=cifar10:augment=distnet --inline\n"
                "# filters.png, confusion.png and wrong.png in the folder of a run\n"
                "trainer --dataset=digits --out=runs/digits\n"
                "trainer show --checkpoint=runs/digits\n"
                "trainer show --checkpoint=runs/digits --numbers\n",
    .run = run,
};
