/* trainer bench: strategies side by side, on the same model with the same seeds and data order. */
#include "../compare/compare.h"
#include "../world/world.h"
#include "command.h"

struct bench_settings {
    struct typed run; /* first: the rows of a run fill it */
    char strategies[4096];
    int repeats;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "strategies", struct bench_settings, strategies, .fallback = "all", .value = "LIST",
               .help =
                   "strategies to compare, separated by commas, each with its settings as in ssp:bound=5"),
    OPTION_ROW(INT, "repeats", struct bench_settings, repeats, .fallback = "3", .least = 1, .most = 10000,
               .unit = "runs",
               .help = "runs of each strategy: the first with --seed, each later one with the next seed"),
    OPTION_ROW(TEXT, "out", struct bench_settings, run.value.out,
               .given = offsetof(struct bench_settings, run.given.out), .value = "DIR",
               .help =
                   "folder for bench.csv, runs.csv and one folder per run (default runs/TIME-MODEL-bench)"),
    OPTION_ROW(TEXT, "outputs", struct bench_settings, run.value.outputs, .fallback = "csv",
               .given = offsetof(struct bench_settings, run.given.outputs), .value = "LIST",
               .help = "how each run is written down; trainer list outputs shows all names"),
    OPTION_ROW(FLAG, "quiet", struct bench_settings, run.value.quiet,
               .help = "print only the results, no progress"),
    {0},
};

static const struct refusal refused[] = {
    {"strategy", "expected --strategies=A,B, what is to be compared"},
    {"resume", "every run of a comparison starts afresh"},
    {"weights", "every run of a comparison starts from its seed's weights"},
    {"checkpoint-every", "a run of a comparison writes its checkpoint at its end"},
    {"print-every", "the runs of a comparison print no steps"},
    {"explain", "trainer train --explain shows what a device computes"},
    {"job", "a comparison is made in one process"},
    {"task", "a comparison is made in one process"},
    {"ps-hosts", "a comparison is made in one process"},
    {"worker-hosts", "a comparison is made in one process"},
    {"cluster", "a comparison is made in one process"},
    {"hosts", "a comparison is made in one process"},
    {"ps", "a comparison is made in one process"},
    {"workers", "a comparison is made in one process"},
    {"port", "a comparison is made in one process"},
    {"launcher", "a comparison is made in one process"},
    {"ssh", "a comparison is made in one process"},
    {"secret-file", "a comparison is made in one process"},
    {"tls-cert", "a comparison is made in one process"},
    {"tls-key", "a comparison is made in one process"},
    {"tls-ca", "a comparison is made in one process"},
    {"insecure", "a comparison is made in one process"},
    {"link", "a comparison is made in one process"},
    {"shared-memory", "a comparison is made in one process"},
    {"overlap", "a comparison is made in one process"},
    {"start-timeout", "a comparison is made in one process"},
    {"restart-wait", "every run of a comparison starts afresh"},
    {0},
};

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct bench_settings *settings = settings_given;
    struct comparison comparison;
    (void)arguments;
    (void)argument_count;
    int code = compare_open(&comparison, &settings->run, settings->strategies, settings->repeats, error);
    if (code == OK) code = compare_run(&comparison, error);
    if (comparison.ended > 0) {
        const struct page page = page_on(stdout);
        world_end_at_interrupt(); /* a reader may stand still */
        bench_print(&page, &comparison.bench);
        printf("\nbench.csv, runs.csv and all runs are in %s\n", comparison.typed.value.out);
    }
    compare_close(&comparison);
    return code;
}

const struct command command_bench = {
    .plugin = {.name = "bench",
               .help = "compare strategies: speed, waiting, staleness, accuracy",
               .options = rows,
               .settings_bytes = sizeof(struct bench_settings)},
    .shared_options = run_options,
    .refused = refused,
    .examples =
        "# all strategies, three runs each\n"
        "trainer bench --epochs=5\n"
        "trainer bench --strategies=sync,async-lockfree:apply=worker --repeats=5 --target-accuracy=0.9\n"
        "# with one slow device\n"
        "trainer bench --strategies=sync,ssp,backup --devices=cpu:0,cpu:1 --slow=cpu:1=3x\n",
    .run = run,
};
