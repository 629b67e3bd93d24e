/* A parameter server that another one leads: it trains the shards of its window segment by segment, as the
 * leader says, and hands over what came of it at each pause. It evaluates nothing and writes nothing; in a
 * mirrored cluster it gets the whole model at the end and keeps a copy. */
#include <math.h>
#include <string.h>

#include "../bridge/lead.h"
#include "run_parts.h"

enum { LOOK_MS = 20 };
#define ASK_S 1.0 /* for the leader's reason, when a worker is gone */

/* At the start this process's own; at the end, mirrored, all of what was tested. */
static int receive_window(struct run *run, const struct frame_header *header, bool whole,
                          struct error *error) {
    struct store *store = &run->store;
    struct window window = hosting_window(&run->hosting, store->begin, store->end);
    if (whole)
        window =
            (struct window){.end = run->network.graph.layout.floats, .count = 1, .vectors = {store->weights}};
    RETURN_IF(window_receive(run->host.leader, header, &window, run->settings.timeout_s, error));
    store_set_version(store, window.version);
    return OK;
}

static int read_finish(struct run *run, const struct frame_header *header, struct finish *finish,
                       struct error *error) {
    uint8_t bytes[FINISH_BYTES];
    const char *name = run->settings.hosted->ps.list[0].text;
    if (header->type != FRAME_GOODBYE || header->bytes > sizeof bytes)
        return error_set(error, ERROR_PEER, "the %s 0 (%s): an unexpected frame, %s of %llu bytes",
                         cluster_server(run->settings.hosted), name, frame_type_words(header->type),
                         (unsigned long long)header->bytes);
    RETURN_IF(frame_read_payload(run->host.leader, header, bytes, run->settings.timeout_s, error));
    struct frame_reader reader = {.bytes = bytes, .length = header->bytes};
    RETURN_IF(finish_get(finish, &reader, name, error));
    if (finish->code == OK) return OK;
    return error_set(error, ERROR_PEER, "the %s 0 (%s) ended: %s", cluster_server(run->settings.hosted), name,
                     finish->words);
}

/* The leader's next word; meanwhile an interrupt ends this process. */
static int read_header(struct run *run, struct frame_header *header, struct error *error) {
    struct endpoint *leader = run->host.leader;
    const double until = world_now(run->world) + run->settings.patience_s;
    bool ended = false;
    uint8_t byte;
    while (endpoint_peek(leader, &byte, 1, LOOK_MS / 1e3, &ended) == 0 && !ended &&
           world_now(run->world) < until)
        if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
    const int code =
        frame_read_header(leader, "a word of the leader", UINT64_MAX, header, LOOK_MS / 1e3, error);
    return code == OK ? OK
                      : error_prefix(error, "the %s 0 (%s): ", cluster_server(run->settings.hosted),
                                     run->settings.hosted->ps.list[0].text);
}

/* lost[workers]: what the leader says of each. */
static int read_fetch(struct run *run, const struct frame_header *header, uint8_t *lost,
                      struct error *error) {
    RETURN_IF(frame_expect(run->host.leader, header, FRAME_FETCH, (uint64_t)run->workers, error));
    return frame_read_payload(run->host.leader, header, lost, run->settings.timeout_s, error);
}

/* What the leader says in the middle of a segment: a fetch, whose answer waits for the pause; or the end. */
static int hear_leader(struct run *run, bool *fetches, uint8_t *lost, struct finish *finish,
                       struct error *error) {
    struct frame_header header;
    RETURN_IF(read_header(run, &header, error));
    if (header.type == FRAME_GOODBYE) RETURN_IF(read_finish(run, &header, finish, error));
    *fetches = true;
    return read_fetch(run, &header, lost, error);
}

/* When a worker is gone, it is mostly the leader that knows why, and says it, or that is gone itself. */
static int ask_leader(struct run *run, int code, uint8_t *lost, struct finish *finish, struct error *error) {
    struct error why = {0};
    bool ended = false, fetches = false;
    uint8_t byte;
    while (endpoint_peek(run->host.leader, &byte, 1, ASK_S, &ended) > 0 || ended)
        if (hear_leader(run, &fetches, lost, finish, &why) != OK) {
            *error = why;
            return why.code;
        }
    return code;
}

/* The workers pause, and end, as the leader tells them. *fetches: the leader has asked for the window
 * already: those it has lost are not waited for. */
static int run_segment(struct run *run, bool *fetches, uint8_t *lost, struct finish *finish,
                       struct error *error) {
    bool ended = false;
    uint8_t byte;
    *fetches = false;
    training_go(&run->training);
    while (!training_wait(&run->training, LOOK_MS / 1e3)) {
        if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
        if (endpoint_peek(run->host.leader, &byte, 1, 0.0, &ended) > 0 || ended)
            RETURN_IF(hear_leader(run, fetches, lost, finish, error));
        for (int w = 0; w < run->workers && *fetches; w++)
            if (lost[w]) training_give_up(&run->training, w);
    }
    if (!training_failed(&run->training)) return OK;
    return ask_leader(run, training_end(&run->training, error), lost, finish, error);
}

static int write_model(struct run *run, const struct finish *finish, struct error *error) {
    char path[PATH_BYTES];
    struct resume_texts texts = {0};
    const struct standing standing = {.workers = run->workers,
                                      .epochs_done = finish->epochs,
                                      .final_cost = finish->final_cost,
                                      .version = finish->version,
                                      .examples = finish->examples,
                                      .steps = finish->steps,
                                      .train_seconds = finish->train_seconds};
    RETURN_IF(file_make_folder(run->settings.out, error));
    RETURN_IF(file_join(path, run->settings.out, "model.safetensors", error));
    int code = resume_texts_make(&texts, &run->settings, &run->dataset, &standing, error);
    if (code == OK)
        code = model_write(path, &run->network.graph.layout, run->store.weights, texts.entries, texts.count,
                           error);
    resume_texts_free(&texts);
    return code;
}

/* Until the leader says goodbye. */
static int follow(struct run *run, uint8_t *lost, struct finish *finish, struct error *error) {
    struct frame_header header;
    bool has_window = false, fetches = false;
    while (true) {
        if (world_interrupted()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
        RETURN_IF(read_header(run, &header, error));
        switch (header.type) {
        case FRAME_WINDOW:
            RETURN_IF(receive_window(run, &header, has_window, error)); /* the second is the whole */
            has_window = true;
            break;
        case FRAME_GO:
            RETURN_IF(run_segment(run, &fetches, lost, finish, error));
            if (fetches) RETURN_IF(hosting_answer(&run->hosting, error));
            break;
        case FRAME_FETCH:
            RETURN_IF(read_fetch(run, &header, lost, error));
            RETURN_IF(hosting_answer(&run->hosting, error));
            break;
        default:
            return read_finish(run, &header, finish, error);
        }
    }
}

int run_follow(struct run *run, struct finish *finish, struct error *error) {
    void *block = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)run->workers, 1, "who is lost", error));
    int code = follow(run, block, finish, error);
    memory_free(block);
    if (code == OK && run->settings.mirrored) code = write_model(run, finish, error);
    return code;
}
