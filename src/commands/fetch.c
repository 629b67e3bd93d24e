/* trainer fetch: downloads data sets to where the program looks for them. */
#include <stdio.h>
#include <string.h>

#include "../base/file.h"
#include "../base/text.h"
#include "../data/dataset.h"
#include "../data/fetch.h"
#include "../outputs/digits.h"
#include "../outputs/progress.h"
#include "../world/world.h"
#include "command.h"

enum { ADDRESS_BYTES = 1024, LINE_BYTES = 600, LINES_EVERY_S = 10 };

struct fetch_settings {
    char data_dir[PATH_BYTES], from[ADDRESS_BYTES];
    int timeout;
    bool quiet;
};

static const struct option rows[] = {
    OPTION_ROW(TEXT, "data-dir", struct fetch_settings, data_dir,
               .help = "where to put them (default: $TRAINER_DATA, else ~/.cache/trainer), each in a folder "
                       "of its name"),
    OPTION_ROW(TEXT, "from", struct fetch_settings, from,
               .help = "address of a folder to download from instead of the public ones"),
    OPTION_ROW(INT, "timeout", struct fetch_settings, timeout, .fallback = "60", .least = 1, .most = 3600,
               .unit = "s", .help = "how long a server may say nothing"),
    OPTION_ROW(FLAG, "quiet", struct fetch_settings, quiet, .fallback = "0", .help = "no progress"),
    {0},
};

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
        printf("%s: is there, SHA-256 right\n", report->name);
        return;
    case FETCH_DONE:
        progress_clear(progress);
        printf("%s: %s bytes, SHA-256 right\n", report->name, bytes);
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
    struct audience audience = {0};
    if (argument_count == 0) return find_source(NULL, &source, error);
    for (int i = 0; i < argument_count; i++) RETURN_IF(find_source(arguments[i], &source, error));
    if (settings->from[0] && strncmp(settings->from, "http://", 7) && strncmp(settings->from, "https://", 8))
        return error_set(error, ERROR_USAGE,
                         "--from=%s: expected an address that begins with http:// or https://",
                         settings->from);
    world_catch_interrupts();
    progress_open(&audience.progress, stderr, settings->quiet);
    int code = OK;
    for (int i = 0; i < argument_count && code == OK; i++) {
        code = find_source(arguments[i], &source, error);
        if (code == OK)
            code = dataset_folder(folder, source->dataset, settings->data_dir[0] ? settings->data_dir : NULL,
                                  error);
        const struct fetch fetch = {.source = source,
                                    .folder = folder,
                                    .from = settings->from[0] ? settings->from : NULL,
                                    .timeout_s = settings->timeout,
                                    .tell = tell,
                                    .argument = &audience};
        if (code == OK) code = fetch_run(&fetch, error);
        progress_clear(&audience.progress);
        if (code == OK) printf("%s is in %s\n", source->dataset, folder);
    }
    return code;
}

const struct command command_fetch = {
    .plugin = {.name = "fetch",
               .help = "download data sets, checked by their SHA-256",
               .options = rows,
               .settings_bytes = sizeof(struct fetch_settings)},
    .arguments = "DATASET...",
    .examples = "  trainer fetch mnist\n"
                "  trainer fetch cifar10 --data-dir=data && trainer --dataset=cifar10 --data-dir=data\n",
    .run = run,
};
