/* trainer fetch: downloads data sets to where the program looks for them. In a build without libcurl it says
 * what to download from where, where to put it, and what the build lacks. */
#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/text.h"
#include "../data/dataset.h"
#include "../data/fetch.h"
#include "../record/digits.h"
#include "../record/progress.h"
#include "../world/world.h"
#include "command.h"

#if TRAINER_CURL
#    define WHAT "download data sets, and check their SHA-256"
#else
#    define WHAT "say where to download data sets, and where to put them"
#endif

enum { ADDRESS_BYTES = 1024, LINE_BYTES = 600, LINES_EVERY_S = 10 };

struct fetch_settings {
    char data_dir[PATH_BYTES], from[ADDRESS_BYTES];
    int timeout;
    bool quiet;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "data-dir", struct fetch_settings, data_dir, .value = "DIR",
               .help = "where to put them, each in a folder of its name (default: $TRAINER_DATA, else "
                       "~/.cache/trainer)"),
    OPTION_ROW(TEXT, "from", struct fetch_settings, from, .value = "URL",
               .help = "folder to download from, instead of the public servers"),
    OPTION_ROW(INT, "timeout", struct fetch_settings, timeout, .fallback = "60", .least = 1, .most = 3600,
               .unit = "s", .help = "give up when a server sends nothing for this long"),
    OPTION_ROW(FLAG, "quiet", struct fetch_settings, quiet, .fallback = "0", .help = "print no progress"),
    {0},
};

#if TRAINER_CURL

/* Who is told. */
struct audience {
    struct progress progress;
    long long
        next_s; /* of the clock of world_utc_seconds: when the next line is due where there is no terminal */
};

/* In the bar's place; a line now and then where there is no terminal. */
static void show_moving(struct audience *audience, const struct fetch_report *report) {
    const long long now_s = world_utc_seconds();

    char have[DIGITS_BYTES], rate[DIGITS_BYTES], line[LINE_BYTES], share[16] = "", left[32] = "";
    digits_thousands(have, (double)report->bytes);
    digits_thousands(rate, report->bytes_per_s);
    if (report->total > 0)
        snprintf(share, sizeof share, "  %d %%", (int)(100 * report->bytes / report->total));
    if (report->total > 0 && report->bytes_per_s > 0)
        snprintf(left, sizeof left, "  %.0f s left",
                 (double)(report->total - report->bytes) / report->bytes_per_s);
    snprintf(line, sizeof line, "%s%s  %s bytes  %s bytes/s%s", report->name, share, have, rate, left);
    progress_status(&audience->progress, line);
    if (audience->next_s == 0) audience->next_s = now_s + LINES_EVERY_S;
    if (audience->progress.terminal || now_s < audience->next_s) return;
    audience->next_s = now_s + LINES_EVERY_S;
    progress_say(&audience->progress, "%s", line);
}

static void tell(void *argument, const struct fetch_report *report) {
    struct audience *audience = argument;
    struct progress *progress = &audience->progress;
    char bytes[DIGITS_BYTES];
    digits_thousands(bytes, (double)report->bytes);
    switch (report->event) {
    case FETCH_MOVING:
        show_moving(audience, report);
        return;
    case FETCH_THERE:
        progress_clear(progress);
        printf("%s: present, SHA-256 matches\n", report->name);
        return;
    case FETCH_DONE:
        progress_clear(progress);
        printf("%s: %s bytes, SHA-256 matches\n", report->name, bytes);
        return;
    case FETCH_RESUME:
        progress_say(progress, "%s: %s bytes are here already", report->name, bytes);
        return;
    case FETCH_WRONG:
        progress_warn(progress, "%s: not the published file; kept under another name", report->name);
        return;
    case FETCH_FAILED:
        progress_say(progress, "%s; trying the next address", report->name);
        return;
    }
}

static int fetch_into(const struct source *source, const char *folder, const struct fetch_settings *settings,
                      struct error *error) {
    struct audience audience = {0};
    const struct fetch fetch = {.source = source,
                                .folder = folder,
                                .from = settings->from[0] ? settings->from : NULL,
                                .timeout_s = settings->timeout,
                                .tell = tell,
                                .argument = &audience};
    progress_open(&audience.progress, stderr, settings->quiet);
    const int code = fetch_run(&fetch, error);
    progress_clear(&audience.progress);
    if (code == OK) printf("%s is in %s\n", source->dataset, folder);
    return code;
}

#else

/* What to download, and where to put it: there the readers look for the files, plain or as .gz, and for the
 * folder that an archive unpacks to. */
static int fetch_into(const struct source *source, const char *folder, const struct fetch_settings *settings,
                      struct error *error) {
    const char *from = settings->from[0] ? settings->from : source->addresses[0];
    const char *slash = from[strlen(from) - 1] == '/' ? "" : "/";
    (void)error;
    if (source->archive != NULL) {
        printf("%s: download this archive, and unpack it in %s\n  %s%s%s\n", source->dataset, folder, from,
               slash, source->archive);
        return OK;
    }
    printf("%s: download these files, and put them in %s\n", source->dataset, folder);
    for (const struct source_file *file = source->files; file->name != NULL; file++)
        printf("  %s%s%s\n", from, slash, file->name);
    return OK;
}

#endif

enum { MOST_NAMES = 16 };

/* The data sets that can be fetched, as a list and in words: "cifar10, iris, mnist". */
static void name_sources(const char *names[MOST_NAMES], char *list, size_t bytes) {
    struct text text = text_into(list, bytes);
    memset(names, 0, MOST_NAMES * sizeof *names);
    for (size_t i = 0; sources[i].dataset != NULL && i < MOST_NAMES - 1; i++) {
        names[i] = sources[i].dataset;
        text_item(&text, ", ", "%s", names[i]);
    }
}

/* name: NULL where none was given. */
static int find_source(const char *name, const struct source **source, struct error *error) {
    const char *names[MOST_NAMES];
    char list[200];
    name_sources(names, list, sizeof list);
    if (name == NULL)
        return error_set(error, ERROR_USAGE, "fetch: expected the name of a data set (one of %s)", list);
    *source = source_find(name);
    if (*source != NULL) return OK;
    for (int i = 0; datasets[i]; i++)
        if (strcmp(datasets[i]->plugin.name, name) == 0)
            return error_set(error, ERROR_USAGE, "fetch: \"%s\": nothing to download: %s (one of %s)", name,
                             datasets[i]->plugin.help, list);
    const char *nearest = option_nearest(name, names);
    return error_set(error, ERROR_USAGE, "fetch: \"%s\": unknown%s%s%s (one of %s)", name,
                     nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "\"?" : "", list);
}

static int run(const void *settings_given, const char *const *arguments, int argument_count,
               struct error *error) {
    const struct fetch_settings *settings = settings_given;
    const struct source *source;
    char folder[PATH_BYTES];
    if (argument_count == 0) return find_source(NULL, &source, error);
    for (int i = 0; i < argument_count; i++) RETURN_IF(find_source(arguments[i], &source, error));
    if (settings->from[0] && strncmp(settings->from, "http://", 7) && strncmp(settings->from, "https://", 8))
        return error_set(error, ERROR_USAGE,
                         "--from=%s: expected an address that begins with http:// or https://",
                         settings->from);
    world_catch_interrupts();
    int code = OK;
    for (int i = 0; i < argument_count && code == OK; i++) {
        code = find_source(arguments[i], &source, error);
        if (code == OK)
            code = dataset_folder(folder, source->dataset, settings->data_dir[0] ? settings->data_dir : NULL,
                                  error);
        if (code == OK) code = fetch_into(source, folder, settings, error);
    }
    if (code != OK || TRAINER_CURL) return code;
    return error_set(error, ERROR_USAGE,
                     "fetch: this build cannot download: it needs libcurl and OpenSSL (on Debian and Ubuntu: "
                     "apt-get install libcurl4-openssl-dev libssl-dev, then make)");
}

const struct command command_fetch = {
    .plugin = {.name = "fetch",
               .help = WHAT,
               .options = rows,
               .settings_bytes = sizeof(struct fetch_settings)},
    .arguments = "DATASET...",
    .examples = "trainer fetch mnist\n"
                "trainer fetch cifar10 --data-dir=data\n"
                "trainer --dataset=cifar10 --data-dir=data --model=alexnet --epochs=1\n",
    .completes = "DATASET",
    .run = run,
};
