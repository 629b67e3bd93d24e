/* A lane of another machine, as the sweep that it has joined sees it: a thread that takes runs like a lane of
 * this machine, sends them there, and puts what comes back into the sweep's folder. A run whose lane is lost
 * comes back to the table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/run_files.h"
#include "../run/folder.h"
#include "sweep_host.h"

#define LOOK_S 0.02     /* for a lane's next word, at a time */
#define LAST_WORD_S 2.0 /* for a lane to take it */

/* --- a lane comes --- */

/* The next frame within so many seconds, while the sweep goes on. */
static int await(struct guest *guest, enum frame_type type, double seconds, uint64_t limit,
                 struct frame_header *header, struct error *error) {
    struct sweep_host *host = guest->host;
    const double until = world_now(guest->link.world) + seconds;
    while (world_now(guest->link.world) < until) {
        if (host_must_end(host)) return error_set(error, ERROR_INTERRUPTED, "the sweep was interrupted");
        if (atomic_load(&host->over)) return error_set(error, ERROR_INTERRUPTED, "the sweep has ended");
        RETURN_IF(lane_link_hear(&guest->link, LOOK_S, limit, header, error));
        if (header->type == type) return OK;
        if (header->type != FRAME_NONE)
            return error_set(error, ERROR_PEER, "%s: %s, expected %s", guest->name,
                             frame_type_words(header->type), frame_type_words(type));
    }
    return error_set(error, ERROR_PEER, "%s: waited %g s for %s", guest->name, seconds,
                     frame_type_words(type));
}

static int tell_sweep(struct guest *guest, struct error *error) {
    const struct sweep *sweep = guest->host->sweep;
    struct lane_sweep *told = NULL;
    uint8_t bytes[LANE_SETTINGS_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(memory_array(&told, 1, "settings", error));
    *told = (struct lane_sweep){.timeout_s = guest->link.timeout_s, .settings = sweep->settings.run};
    int code = lane_sweep_put(told, &writer, error);
    memory_free(told);
    if (code == OK) code = lane_link_say(&guest->link, FRAME_CONFIG, bytes, writer.used, error);
    return code;
}

static int compare_data(const struct guest *guest, const struct fingerprint *theirs, struct error *error) {
    const struct fingerprint *ours = &guest->host->sweep->data;
    const char *dataset = guest->host->sweep->settings.run.value.dataset;
    if (theirs->examples != ours->examples || theirs->floats != ours->floats)
        return error_set(
            error, ERROR_PEER, "%s has %llu examples of %llu features in %.150s, the sweep has %llu of %llu",
            guest->name, (unsigned long long)theirs->examples, (unsigned long long)theirs->floats, dataset,
            (unsigned long long)ours->examples, (unsigned long long)ours->floats);
    if (theirs->layout == ours->layout) return OK;
    return error_set(
        error, ERROR_PEER, "%s has other examples in %.150s: their hash is %016llx, the sweep's %016llx",
        guest->name, dataset, (unsigned long long)theirs->layout, (unsigned long long)ours->layout);
}

static int welcome(struct guest *guest, struct error *error) {
    const struct config *config = &guest->host->sweep->settings.run.value;
    struct frame_header header;
    struct fingerprint theirs;
    uint8_t bytes[READY_BYTES];
    lane_link_begin(&guest->link, guest->host->sweep->lanes.world, guest->endpoint, config->timeout_s,
                    guest->hello.timeout_s);
    RETURN_IF(programs_agree(guest->hello.program, "the sweep", guest->name, error));
    RETURN_IF(tell_sweep(guest, error));
    guest->link.silent_s = -config->start_timeout_s; /* it opens its data set, and says nothing meanwhile */
    RETURN_IF(await(guest, FRAME_READY, config->start_timeout_s, READY_BYTES, &header, error));
    RETURN_IF(frame_expect(guest->endpoint, &header, FRAME_READY, READY_BYTES, error));
    RETURN_IF(frame_read_payload(guest->endpoint, &header, bytes, HELLO_S, error));
    struct frame_reader reader = {.bytes = bytes, .length = sizeof bytes};
    RETURN_IF(fingerprint_get(&theirs, &reader, guest->name, error));
    RETURN_IF(compare_data(guest, &theirs, error));
    return lane_link_say(&guest->link, FRAME_WELCOME, "", 0, error);
}

/* --- a run goes there and comes back --- */

/* Its settings, and the files that it has so far, if it goes on. */
static int send_run(struct guest *guest, int number, const char *folder, struct error *error) {
    const struct sweep *sweep = guest->host->sweep;
    struct lane_run *run = &guest->run;
    struct tree *tree = NULL;
    char checkpoint[PATH_BYTES];
    uint8_t bytes[LANE_SETTINGS_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    RETURN_IF(sweep_typed(sweep, number, &run->settings, error));
    run->number = number + 1;
    run->count = sweep->count;
    run->stop_after = sweep->rung_epochs[sweep->runs[number].rungs];
    RETURN_IF(file_join(checkpoint, folder, FOLDER_CHECKPOINT, error));
    RETURN_IF(memory_array(&tree, 1, "the files of a run", error));
    int code = file_exists(checkpoint) ? tree_list(tree, folder, error) : OK;
    run->files = tree->count;
    if (code == OK) code = lane_run_put(run, &writer, error);
    if (code == OK) code = lane_link_say(&guest->link, FRAME_RUN, bytes, writer.used, error);
    if (code == OK)
        code = run_files_send(guest->endpoint, folder, tree, FOLDER_CHECKPOINT, guest->link.timeout_s, error);
    memory_free(tree);
    return code;
}

/* failure: how the run ended. */
static int receive_run(struct guest *guest, const char *folder, struct error *failure, struct error *error) {
    struct frame_header header;
    struct lane_end end;
    uint8_t bytes[LANE_END_BYTES];
    RETURN_IF(await(guest, FRAME_ENDED, (double)INFINITY, sizeof bytes, &header, error));
    RETURN_IF(frame_read_payload(guest->endpoint, &header, bytes, guest->link.timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
    RETURN_IF(lane_end_get(&end, &reader, guest->name, error));
    RETURN_IF(run_files_receive(guest->endpoint, folder, end.files, guest->link.timeout_s, error));
    if (end.code != OK) error_set(failure, end.code, "%s", end.words);
    return OK;
}

/* A run that did not come back is no fault of its lane where this machine could not keep its files: then the
 * sweep ends. */
static int lose_run(struct guest *guest, int number, const struct error *why, struct error *error) {
    struct sweep *sweep = guest->host->sweep;
    const bool ends = host_must_end(guest->host);
    struct error interrupted = {0};
    error_set(&interrupted, ERROR_INTERRUPTED, "the sweep was interrupted");
    lanes_hold(guest->host->shared);
    if (why->code == ERROR_FILE)
        sweep_stop(sweep, number, why);
    else
        guest->failed = !sweep_lose(sweep, number, ends ? &interrupted : why);
    lanes_release(guest->host->shared);
    lanes_tell(guest->host->shared);
    if (why->code == ERROR_FILE) return error_set(error, ERROR_INTERRUPTED, "the sweep cannot go on");
    return error_set(error, ends ? ERROR_INTERRUPTED : why->code, "%s", why->words);
}

static int do_run(struct guest *guest, int number, struct error *error) {
    struct sweep_host *host = guest->host;
    struct error failure = {0}, why = {0};
    char folder[PATH_BYTES];
    int code = sweep_folder(host->sweep, number, folder, &why);
    if (code == OK) code = send_run(guest, number, folder, &why);
    if (code == OK) code = receive_run(guest, folder, &failure, &why);
    if (code != OK) return lose_run(guest, number, &why, error);
    lanes_hold(host->shared);
    sweep_ended(host->sweep, number, &failure);
    lanes_release(host->shared);
    lanes_tell(host->shared);
    if (failure.code == ERROR_INTERRUPTED)
        return error_set(error, ERROR_PEER, "%s: interrupted there", guest->name);
    guest->run.number = 0;
    return OK;
}

/* --- a lane's thread --- */

/* Runs for as long as there are some. The question is asked anew only when something has changed. */
static int work_with(struct guest *guest, struct error *error) {
    struct sweep_host *host = guest->host;
    uint64_t asked = UINT64_MAX;
    while (true) {
        const uint64_t told = lanes_told(host->shared);
        enum lane_answer answer = LANE_WAIT;
        struct frame_header header;
        int number = 0;
        if (host_must_end(host)) return error_set(error, ERROR_INTERRUPTED, "the sweep was interrupted");
        lanes_hold(host->shared);
        if (told != asked) answer = sweep_take(host->sweep, &number);
        lanes_release(host->shared);
        asked = told;
        if (answer == LANE_END) return lane_link_say(&guest->link, FRAME_GOODBYE, "", 0, error);
        if (answer == LANE_TAKE) {
            RETURN_IF(do_run(guest, number, error));
            continue;
        }
        RETURN_IF(lane_link_hear(&guest->link, LOOK_S, 0, &header, error));
        if (header.type != FRAME_NONE)
            return error_set(error, ERROR_PEER, "%s: %s, expected none", guest->name,
                             frame_type_words(header.type));
    }
}

static void count_here(struct sweep_host *host, int more) {
    lanes_hold(host->shared);
    host->here += more;
    lanes_release(host->shared);
}

static void say_end(struct guest *guest, bool joined, const struct error *why) {
    char words[700], run[80] = "";
    if (guest->run.number > 0)
        snprintf(run, sizeof run, "; run %d of %d %s", guest->run.number, guest->run.count,
                 guest->failed ? "has failed: it was lost too often" : "goes to another lane");
    snprintf(words, sizeof words, "%s: %s%s", joined ? "lost" : "refused", why->words, run);
    host_say(guest->host, true, words);
}

void guest_body(void *argument) {
    struct guest *guest = argument;
    struct error why = {0}, ignored = {0};
    char words[150];
    int code = welcome(guest, &why);
    const bool joined = code == OK;
    if (joined) {
        snprintf(words, sizeof words, "%s has joined", guest->name);
        host_say(guest->host, false, words);
        count_here(guest->host, 1);
        code = work_with(guest, &why);
        count_here(guest->host, -1);
    }
    if (code == ERROR_INTERRUPTED && !host_must_end(guest->host)) { /* it came too late */
        lane_link_say(&guest->link, FRAME_GOODBYE, "", 0, &ignored);
    } else if (code != OK) {
        if (code != ERROR_INTERRUPTED) say_end(guest, joined, &why);
        lane_link_say(&guest->link, FRAME_FAILURE, why.words, strlen(why.words), &ignored);
    }
    endpoint_finish(guest->endpoint, LAST_WORD_S);
    atomic_store(&guest->ended, true);
}
