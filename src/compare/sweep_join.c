/* This machine's devices lent to a sweep that another process holds (`trainer sweep --join`). Each device is
 * a lane with a connection of its own: one thread talks with the host, another one, on the device's cores,
 * trains the run in hand. A run is trained in a folder of this machine, which goes when it was sent back. */
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/reminder.h"
#include "../bridge/addresses.h"
#include "../bridge/lane_terms.h"
#include "../bridge/run_files.h"
#include "../run/folder.h"
#include "../run/run.h"
#include "data.h"
#include "sweep.h"

#define TRY_S 1.0       /* between two looks for an interrupt while nobody listens there */
#define LOOK_S 0.02     /* for the host's next word, at a time */
#define LAST_WORD_S 2.0 /* for the host to take it */

/* What all lanes share. */
struct joined {
    const struct sweep_settings *settings; /* borrowed */
    struct config config;
    struct lanes lanes;
    char out[PATH_BYTES];
    struct progress progress;
    struct lock say;   /* around progress */
    struct lock build; /* around the data set, which the first lane that is told opens */
    bool compared;     /* it was opened, or not, for these reasons */
    atomic_bool ends;  /* a lane could not begin, so all of them end */
    atomic_bool over;  /* a lane was told that the sweep has ended; what another one found then is no fault */
    struct fingerprint data;
    struct error no_data;
};

struct joined_lane {
    struct joined *joined;
    int number;
    struct world_thread *thread, *trainer;
    struct endpoint *endpoint;
    struct lane_link link;
    struct lane_sweep sweep;
    struct lane_run run;  /* the one in hand */
    struct event trained; /* one post per run */
    atomic_bool stop;     /* asks the run in hand for an end */
    struct error run_failure, error;
    int runs; /* trained here */
};

static const struct device *device_of(const struct joined_lane *lane) {
    return &lane->joined->lanes.devices[lane->number];
}

static void say(struct joined *joined, const char *words) {
    lock_take(&joined->say);
    progress_say(&joined->progress, "%s", words);
    lock_release(&joined->say);
}

static bool must_end(const struct joined *joined) {
    return world_interrupted() || atomic_load(&joined->ends);
}

static int interrupted(struct error *error) {
    return error_set(error, ERROR_INTERRUPTED, "interrupted");
}

/* --- joining --- */

/* `why` is of the last try alone; the time is that of all. */
static int fail_connecting(const struct joined *joined, const struct error *why, struct error *error) {
    const char *reason = strrchr(why->words, ':');
    if (why->code != ERROR_PEER || !reason) return error_set(error, why->code, "%s", why->words);
    return error_set(error, ERROR_PEER, "%s: not connected after %g s%s", joined->settings->join,
                     joined->config.start_timeout_s, reason);
}

static int connect_lane(struct joined_lane *lane, struct error *error) {
    struct joined *joined = lane->joined;
    struct world *world = joined->lanes.world;
    const char *address = joined->settings->join;
    char words[400];
    const double until = world_now(world) + joined->config.start_timeout_s;
    struct reminder reminder = {0};
    while (!lane->endpoint) {
        struct error why = {0};
        const double left = until - world_now(world);
        const int code = endpoint_connect(world, address, &lane->endpoint, left < TRY_S ? left : TRY_S, &why);
        if (must_end(joined)) return interrupted(error);
        if (atomic_load(&joined->over)) return error_set(error, ERROR_PEER, "the sweep has ended");
        if (code != OK && (code != ERROR_PEER || left <= TRY_S)) return fail_connecting(joined, &why, error);
        if (code == OK || lane->number > 0 || !reminder_is_due(&reminder, world_now(world))) continue;
        snprintf(words, sizeof words, "waiting for the sweep at %s", address);
        say(joined, words);
    }
    lane_link_begin(&lane->link, world, lane->endpoint, joined->config.timeout_s, joined->config.timeout_s);
    return OK;
}

/* The next frame of the host. */
static int await(struct joined_lane *lane, uint64_t limit, struct frame_header *header, struct error *error) {
    do {
        if (must_end(lane->joined)) return interrupted(error);
        RETURN_IF(lane_link_hear(&lane->link, LOOK_S, limit, header, error));
    } while (header->type == FRAME_NONE);
    if (header->type == FRAME_GOODBYE) atomic_store(&lane->joined->over, true);
    return OK;
}

static int unexpected(const struct joined_lane *lane, const struct frame_header *header,
                      enum frame_type expected, struct error *error) {
    return error_set(error, ERROR_PEER, "%s: %s, expected %s", endpoint_name(lane->endpoint),
                     frame_type_words(header->type), frame_type_words(expected));
}

static int say_hello(struct joined_lane *lane, struct error *error) {
    struct lane_hello hello = {.timeout_s = lane->joined->config.timeout_s};
    uint8_t bytes[LANE_HELLO_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    snprintf(hello.program, sizeof hello.program, "%s", TRAINER_VERSION);
    snprintf(hello.device, sizeof hello.device, "%s", device_of(lane)->name);
    RETURN_IF(lane_hello_put(&hello, &writer, error));
    return lane_link_say(&lane->link, FRAME_JOIN, bytes, writer.used, error);
}

/* What this machine has of the sweep's data set. */
static int compare_data(struct joined *joined, const struct typed *typed, struct error *error) {
    struct config *config = NULL;
    struct dataset *dataset = NULL;
    RETURN_IF(memory_array(&config, 1, "settings", error));
    int code = memory_array(&dataset, 1, "a data set", error);
    if (code == OK) {
        *config = typed->value;
        snprintf(config->data_dir, sizeof config->data_dir, "%s", joined->config.data_dir);
        code = data_open(dataset, config, error);
        if (code == OK) code = data_fingerprint(dataset, &joined->data, error);
        dataset_close(dataset);
    }
    memory_free(dataset);
    memory_free(config);
    return code;
}

static int compare_once(struct joined_lane *lane, struct error *error) {
    struct joined *joined = lane->joined;
    lock_take(&joined->build);
    if (!joined->compared) compare_data(joined, &lane->sweep.settings, &joined->no_data);
    joined->compared = true;
    lock_release(&joined->build);
    return joined->no_data.code == OK ? OK
                                      : error_set(error, joined->no_data.code, "%s", joined->no_data.words);
}

static int join(struct joined_lane *lane, struct error *error) {
    struct frame_header header;
    uint8_t bytes[LANE_SETTINGS_BYTES], ready[READY_BYTES];
    struct frame_writer writer = {.bytes = ready, .room = sizeof ready};
    const double timeout_s = lane->link.timeout_s;
    RETURN_IF(say_hello(lane, error));
    RETURN_IF(await(lane, sizeof bytes, &header, error));
    if (header.type != FRAME_CONFIG) return unexpected(lane, &header, FRAME_CONFIG, error);
    RETURN_IF(frame_read_payload(lane->endpoint, &header, bytes, timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    RETURN_IF(lane_sweep_get(&lane->sweep, &reader, endpoint_name(lane->endpoint), error));
    lane_link_begin(&lane->link, lane->link.world, lane->endpoint, timeout_s, lane->sweep.timeout_s);
    RETURN_IF(compare_once(lane, error));
    fingerprint_put(&lane->joined->data, &writer);
    RETURN_IF(lane_link_say(&lane->link, FRAME_READY, ready, writer.used, error));
    RETURN_IF(await(lane, 0, &header, error));
    return header.type == FRAME_WELCOME ? OK : unexpected(lane, &header, FRAME_WELCOME, error);
}

/* --- a run --- */

/* On the cores of the device. */
static void train(void *argument) {
    struct joined_lane *lane = argument;
    const struct embedding embedding = {.stop = &lane->stop};
    struct run_result result = {0};
    run_train_embedded(&lane->run.settings, &embedding, &result, &lane->run_failure);
    run_result_free(&result);
    event_post(&lane->trained);
}

/* How this machine computes is its own. */
static int settle(struct joined_lane *lane, const char *folder, struct error *error) {
    const struct config *own = &lane->joined->config;
    struct config *config = &lane->run.settings.value;
    RETURN_IF(sweep_settle(&lane->run.settings, folder, lane->run.stop_after, error));
    snprintf(config->data_dir, sizeof config->data_dir, "%s", own->data_dir);
    snprintf(config->without_kernel, sizeof config->without_kernel, "%s", own->without_kernel);
    config->kernels = own->kernels;
    config->deterministic = own->deterministic;
    config->no_soft_placement = own->no_soft_placement;
    lanes_settings(&lane->joined->lanes, lane->number, config);
    return OK;
}

/* Until it has ended. A host that is gone, and an interrupt, ask it to end. */
static int watch(struct joined_lane *lane, struct error *error) {
    struct frame_header header;
    int code = OK;
    lane->runs++;
    while (atomic_load(&lane->trained.count) < (uint64_t)lane->runs) {
        if (must_end(lane->joined) || code != OK) atomic_store(&lane->stop, true);
        if (code != OK) {
            event_wait(&lane->trained, (uint64_t)lane->runs, INFINITY);
            break;
        }
        code = lane_link_hear(&lane->link, LOOK_S, 0, &header, error);
        if (code == OK && header.type != FRAME_NONE)
            code = error_set(error, ERROR_PEER, "%s: %s in the middle of a run",
                             endpoint_name(lane->endpoint), frame_type_words(header.type));
    }
    return code;
}

static int train_and_watch(struct joined_lane *lane, struct error *error) {
    const struct device *device = device_of(lane);
    lane->run_failure = (struct error){0};
    atomic_store(&lane->stop, false);
    RETURN_IF(
        world_spawn(lane->link.world, device->name, &device->cores, train, lane, &lane->trainer, error));
    const int code = watch(lane, error);
    world_join(lane->trainer);
    lane->trainer = NULL;
    return code;
}

static int send_back(struct joined_lane *lane, const char *folder, struct error *error) {
    struct lane_end end = {.code = lane->run_failure.code};
    struct tree *tree = NULL;
    uint8_t bytes[LANE_END_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    memcpy(end.words, lane->run_failure.words, sizeof end.words);
    RETURN_IF(memory_array(&tree, 1, "the files of a run", error));
    int code = tree_list(tree, folder, error);
    end.files = tree->count;
    if (code == OK) code = lane_end_put(&end, &writer, error);
    if (code == OK) code = lane_link_say(&lane->link, FRAME_ENDED, bytes, writer.used, error);
    if (code == OK)
        code = run_files_send(lane->endpoint, folder, tree, FOLDER_CHECKPOINT, lane->link.timeout_s, error);
    memory_free(tree);
    return code;
}

/* A full disk or a device that fails is no fault of the run, so it goes to another machine; this lane would
 * spoil the next one, too. */
static int check_failure(struct joined_lane *lane, struct error *error) {
    const struct error *why = &lane->run_failure;
    char words[600];
    if (why->code == OK || why->code == ERROR_DIVERGED || why->code == ERROR_USAGE ||
        why->code == ERROR_INTERRUPTED)
        return OK;
    snprintf(words, sizeof words, "%s ends: %s", device_of(lane)->name, why->words);
    if (lane->joined->lanes.count > 1) say(lane->joined, words);
    return error_set(error, why->code, "%s", why->words);
}

/* Of this lane alone: a run that was taken from it may be another one's while it still writes. */
static int lane_folder(const struct joined_lane *lane, char path[PATH_BYTES], struct error *error) {
    char name[32];
    snprintf(name, sizeof name, "%d", lane->number + 1);
    return file_join(path, lane->joined->out, name, error);
}

static int do_run(struct joined_lane *lane, const struct frame_header *header, struct error *error) {
    uint8_t bytes[LANE_SETTINGS_BYTES];
    char name[32], own[PATH_BYTES], folder[PATH_BYTES], words[100];
    struct error ignored = {0};
    const double timeout_s = lane->link.timeout_s;
    RETURN_IF(frame_read_payload(lane->endpoint, header, bytes, timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = header->bytes};
    RETURN_IF(lane_run_get(&lane->run, &reader, endpoint_name(lane->endpoint), error));
    snprintf(name, sizeof name, "%d", lane->run.number);
    RETURN_IF(lane_folder(lane, own, error));
    RETURN_IF(file_join(folder, own, name, error));
    int code = run_files_receive(lane->endpoint, folder, lane->run.files, timeout_s, error);
    if (code == OK) code = settle(lane, folder, error);
    if (code == OK) code = train_and_watch(lane, error);
    if (code == OK) code = check_failure(lane, error);
    if (code == OK) code = send_back(lane, folder, error);
    tree_remove(folder, &ignored);
    file_remove_empty(own, strlen(lane->joined->out));
    RETURN_IF(code);
    snprintf(words, sizeof words, "run %d of %d: trained on %s", lane->run.number, lane->run.count,
             device_of(lane)->name);
    if (lane->run_failure.code == OK) say(lane->joined, words);
    return must_end(lane->joined) ? interrupted(error) : OK;
}

static int do_runs(struct joined_lane *lane, struct error *error) {
    while (true) {
        struct frame_header header;
        RETURN_IF(await(lane, LANE_SETTINGS_BYTES, &header, error));
        if (header.type == FRAME_GOODBYE) return OK;
        if (header.type != FRAME_RUN) return unexpected(lane, &header, FRAME_RUN, error);
        RETURN_IF(do_run(lane, &header, error));
    }
}

static void lane_body(void *argument) {
    struct joined_lane *lane = argument;
    struct error *error = &lane->error, ignored = {0};
    int code = connect_lane(lane, error);
    if (code == OK) code = join(lane, error);
    if (code == OK) code = do_runs(lane, error);
    if (code == ERROR_PEER) error_prefix(error, "the sweep at ");
    if (code == OK || !lane->endpoint) return;
    lane_link_say(&lane->link, FRAME_FAILURE, error->words, strlen(error->words), &ignored);
    endpoint_finish(lane->endpoint, LAST_WORD_S);
}

/* --- the process --- */

/* What is trained is said by the sweep; a machine says where it is and how it computes. */
static int check_typed(const struct sweep_settings *settings, struct error *error) {
    static const char *const own[] = {
        "devices",  "threads",  "kernels", "deterministic", "without-kernel", "no-soft-placement",
        "data-dir", "out",      "quiet",   "secret-file",   "tls-cert",       "tls-key",
        "tls-ca",   "insecure", "timeout", "start-timeout", "shared-memory",  "link"};
    const char *found = settings->listen[0] ? "listen" : sweep_own_typed(settings);
    for (const struct option *row = run_options; row->name && !found; row++) {
        bool given, is_own = false;
        memcpy(&given, (const char *)&settings->run + row->given, sizeof given);
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            is_own = is_own || strcmp(own[i], row->name) == 0;
        if (given && !is_own) found = row->name;
    }
    if (!found) return OK;
    return error_set(error, ERROR_USAGE, "--%s: expected none beside --join: the sweep at %.200s has its own",
                     found, settings->join);
}

/* A new one, so that nothing that was there is taken for a run, or removed. existing: what of its path was
 * there before, and stays. */
static int open_folder(struct joined *joined, size_t *existing, struct error *error) {
    const char *out = joined->config.out;
    if (out[0])
        RETURN_IF(file_join(joined->out, out, "joined", error));
    else
        RETURN_IF(folder_name(joined->out, "sweep", "joined", error));
    *existing = file_existing(joined->out);
    return file_make_new_folder(joined->out, error);
}

/* Returns the error of the first lane that has one. */
static int run_lanes(struct joined *joined, struct joined_lane *lanes, struct error *error) {
    const int count = joined->lanes.count;
    int code = OK, runs = 0;
    for (int i = 0; i < count && code == OK; i++) {
        lanes[i].joined = joined;
        lanes[i].number = i;
        event_open(&lanes[i].trained, joined->lanes.world);
        code = world_spawn(joined->lanes.world, "lane", NULL, lane_body, &lanes[i], &lanes[i].thread, error);
    }
    if (code != OK) {
        atomic_store(&joined->ends, true);
        say(joined, error->words);
    }
    for (int i = 0; i < count; i++) {
        world_join(lanes[i].thread);
        endpoint_close(lanes[i].endpoint);
        runs += lanes[i].runs;
    }
    RETURN_IF(code);
    for (int i = 0; i < count && !atomic_load(&joined->over); i++)
        if (lanes[i].error.code != OK)
            return error_set(error, lanes[i].error.code, "%s", lanes[i].error.words);
    progress_say(&joined->progress, "the sweep has ended; runs trained here: %d", runs);
    return OK;
}

static int lend(struct joined *joined, struct error *error) {
    const char *address = joined->settings->join;
    struct joined_lane *lanes = NULL;
    struct addresses addresses = {0};
    int code = addresses_add(&addresses, address, strlen(address), "--join", ERROR_USAGE, error);
    addresses_free(&addresses);
    RETURN_IF(code);
    RETURN_IF(config_begin(&joined->config, &joined->settings->run, error));
    RETURN_IF(lanes_open(&joined->lanes, &joined->config, error));
    RETURN_IF(lane_use_secret(&joined->config, joined->lanes.world, error));
    RETURN_IF(memory_array(&lanes, joined->lanes.count, "the lanes", error));
    lock_open(&joined->say, joined->lanes.world);
    lock_open(&joined->build, joined->lanes.world);
    world_catch_interrupts();
    progress_open(&joined->progress, stderr, joined->config.quiet);
    size_t existing = 0;
    code = open_folder(joined, &existing, error);
    if (code == OK) code = run_lanes(joined, lanes, error);
    file_remove_empty(joined->out, existing);
    memory_free(lanes);
    return code;
}

int sweep_join(const struct sweep_settings *settings, struct error *error) {
    struct joined *joined = NULL;
    RETURN_IF(check_typed(settings, error));
    RETURN_IF(memory_array(&joined, 1, "the lanes", error));
    joined->settings = settings;
    const int code = lend(joined, error);
    lanes_close(&joined->lanes);
    memory_free(joined);
    return code;
}
