/* trainer sweep: many settings tried, one run per device at a time, and the best of them by the validation
 * part. */
#include "../base/memory.h"
#include "../compare/sweep.h"
#include "../world/world.h"
#include "command.h"

static int typed_vary(void *settings, char *text, size_t bytes, struct error *error) {
    (void)bytes;
    return vary_add(&((struct sweep_settings *)settings)->varied, text, error);
}

#define GIVEN(field) .given = offsetof(struct sweep_settings, given.field)

static const struct option rows[] = {
    OPTION_ROW(TEXT, "vary", struct sweep_settings, vary, .value = "NAME=VALUES", .typed = typed_vary,
               .help = "what the runs differ in, once for each setting: batch=32,64, "
                       "optimizer.rate=log:0.001..1, or model=A|B where values have commas; LEAST..MOST/N "
                       "makes N values"),
    OPTION_ROW(INT, "runs", struct sweep_settings, runs, .fallback = "0", .least = 0, .most = SWEEP_RUNS,
               GIVEN(runs), .unit = "runs", .help = "how many settings are tried (0: 24; of a grid, all)"),
    OPTION_ROW(CHOICE, "method", struct sweep_settings, method, .fallback = "random",
               .choices = "random|grid|halving", GIVEN(method),
               .help = "random: values are drawn by --seed; grid: each with each; halving: drawn, and poor "
                       "runs stop early (ASHA)"),
    OPTION_ROW(CHOICE, "metric", struct sweep_settings, metric, .fallback = "auto",
               .choices = "auto|validation_accuracy|validation_rmse|validation_loss", GIVEN(metric),
               .help =
                   "what the runs are ranked by, at each run's best epoch; auto: accuracy, of numbers the "
                   "RMSE"),
    OPTION_ROW(INT, "keep", struct sweep_settings, keep, .fallback = "3", .least = 2, .most = SWEEP_RUNS,
               GIVEN(keep),
               .help = "of halving: one run in so many goes on at a rung, and rungs grow by this factor"),
    OPTION_ROW(INT, "first-rung", struct sweep_settings, first_rung, .fallback = "1", .least = 1,
               .most = 1000000, .unit = "epochs", GIVEN(first_rung),
               .help = "of halving: where runs are compared first"),
    OPTION_ROW(TEXT, "listen", struct sweep_settings, listen, .value = "HOST:PORT",
               .help = "let other machines join here, whose devices then take runs, too; with --devices=none "
                       "they alone"),
    OPTION_ROW(TEXT, "join", struct sweep_settings, join, .value = "HOST:PORT",
               .help = "lend this machine's --devices to the sweep that listens there, which says all else"),
    OPTION_ROW(TEXT, "out", struct sweep_settings, run.value.out,
               .given = offsetof(struct sweep_settings, run.given.out), .value = "DIR",
               .help = "folder for sweep.csv and the runs (default runs/TIME-MODEL-sweep)"),
    OPTION_ROW(TEXT, "resume", struct sweep_settings, run.value.resume,
               .given = offsetof(struct sweep_settings, run.given.resume), .value = "DIR",
               .help = "go on with the sweep in this folder; nothing else needs to be given"),
    OPTION_ROW(TEXT, "outputs", struct sweep_settings, run.value.outputs, .fallback = "csv",
               .given = offsetof(struct sweep_settings, run.given.outputs), .value = "LIST",
               .help = "how each run is written down; trainer list outputs shows all names"),
    OPTION_ROW(FLAG, "quiet", struct sweep_settings, run.value.quiet,
               .given = offsetof(struct sweep_settings, run.given.quiet),
               .help = "print only the results, no progress"),
    {0},
};

static const struct refusal refused[] = {
    {"replace", "a sweep begins in a folder of its own"},
    {"test", "the test part is used once, for the best run"},
    {"stop-after", "--method=halving stops runs early"},
    {"target-accuracy", "the test part is used once, for the best run"},
    {"export", "trainer export writes the best run's network"},
    {"print-every", "the runs of a sweep print no steps"},
    {"simulate", "a run of a sweep has one device, and trains in real time"},
    {"group", "a run of a sweep has one device"},
    {"place", "a run of a sweep has one device"},
    {"explain", "trainer train --explain shows what a device computes"},
    {"job", "machines take part in a sweep by --join"},
    {"task", "machines take part in a sweep by --join"},
    {"ps-hosts", "machines take part in a sweep by --join"},
    {"worker-hosts", "machines take part in a sweep by --join"},
    {"cluster", "machines take part in a sweep by --join"},
    {"hosts", "machines take part in a sweep by --join"},
    {"ps", "machines take part in a sweep by --join"},
    {"workers", "machines take part in a sweep by --join"},
    {"port", "machines take part in a sweep by --join"},
    {"launcher", "machines take part in a sweep by --join"},
    {"ssh", "machines take part in a sweep by --join"},
    {"overlap", "machines take part in a sweep by --join"},
    {"restart-wait", "a sweep that was killed goes on by --resume"},
    {0},
};

static int run(const void *settings, const char *const *arguments, int argument_count, struct error *error) {
    struct sweep *sweep = NULL;
    const struct sweep_settings *typed = settings;
    (void)arguments, (void)argument_count;
    if (typed->join[0]) return sweep_join(typed, error);
    RETURN_IF(memory_array(&sweep, 1, "the sweep", error));
    int code = sweep_open(sweep, settings, error);
    if (code == OK) code = sweep_do(sweep, error);
    if (code == OK) {
        const struct page page = page_on(stdout);
        world_end_at_interrupt(); /* a reader may stand still */
        code = sweep_print(sweep, &page, error);
    }
    sweep_close(sweep);
    memory_free(sweep);
    return code;
}

const struct command command_sweep = {
    .plugin = {.name = "sweep",
               .help = "try many settings, a run per device at a time, and rank them",
               .options = rows,
               .settings_bytes = sizeof(struct sweep_settings)},
    .shared_options = run_options,
    .refused = refused,
    .examples =
        "# 24 runs of settings drawn at random; each device takes the next one when it is free\n"
        "trainer sweep --vary=optimizer.rate=log:0.001..1 --vary=batch=16,32,64 --epochs=20 "
        "--out=runs/sweep\n"
        "# poor ones stop early\n"
        "trainer sweep --method=halving --vary=optimizer.rate=log:0.001..1 --epochs=27 --out=runs/halving\n"
        "# a sweep that was killed goes on\n"
        "trainer sweep --resume=runs/halving\n"
        "# two machines at one sweep, with the same key\n"
        "trainer keygen sweep.key\n"
        "trainer sweep --vary=optimizer.rate=log:0.001..1 --epochs=20 --out=runs/both --listen=:2222 "
        "--secret-file=sweep.key\n"
        "trainer sweep --join=HOST:2222 --secret-file=sweep.key\n"
        "# ranked, with parallel coordinates\n"
        "trainer report runs/sweep\n",
    .run = run,
};
