/* A parameter server that another one leads: it trains the shards of its slice segment by segment, as the
 * leader says, and hands over the results at each pause. It evaluates nothing and writes nothing; in a
 * mirrored cluster it gets the whole model at the end and keeps a copy. */
#include "follower.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../bridge/lead.h"
#include "../base/memory.h"
#include "../run/open.h"
#include "admission.h"

enum { LOOK_MS = 20 };
#define ASK_S 1.0 /* for the leader's reason, when a worker is gone */

/* For the threads here to end by themselves, when the run has failed elsewhere. In a mirrored cluster the
 * leader does not wait long either (tallies.c). */
#define END_S 1.0
#define MIRRORED_END_S 0.2

#define LEAVE_S 20.0 /* for the leader to end the run: a scheduler gives 30 s */

#define TIMEOUT_TIMES                                                                                        \
    4.0 /* the leader may evaluate, or wait itself, three times the timeout for another slice */

struct led_run {
    struct run *run;
    struct members *members;       /* the crew's own */
    const struct cluster *cluster; /* borrowed */
    uint8_t *lost;                 /* [workers] what the leader says of each; behind it: the run has failed */
    uint8_t *fetch;                /* [fetch_bytes] which that is a part of */
    long leader_at;                /* the version of the leader's slice, as the last fetch says */
    double *lost_s; /* [workers] when it was seen to be lost here, 0: it is not; INFINITY: it was told */
    bool asked;     /* it was told that this process has to go ... */
    double asked_s; /* ... at this time */
    bool begun;     /* the leader has said the first word of the training */
    struct finish finish;
};

/* At the start this process's own; at the end, mirrored, all of what was tested. */
static int receive_slice(struct led_run *led, const struct frame_header *header, bool whole,
                         struct error *error) {
    struct store *store = &led->run->store;
    struct slice slice = members_slice(led->members, store->begin, store->end);
    if (whole)
        slice = (struct slice){.end = led->run->setup.network.graph.layout.floats,
                               .turn = led->members->fetched + 1,
                               .state = {.count = 1, .vector = {{.name = "", .at = store->weights}}}};
    RETURN_IF(
        slice_receive(led->members->host.leader, header, &slice, led->run->setup.config.timeout_s, error));
    store_set_version(store, slice.version);
    return OK;
}

static int read_finish(struct led_run *led, const struct frame_header *header, struct error *error) {
    uint8_t bytes[FINISH_BYTES];
    const char *name = led->cluster->ps.list[0].text;
    if (header->type != FRAME_GOODBYE || header->bytes > sizeof bytes)
        return error_set(error, ERROR_PEER, "the %s 0 (%s): an unexpected frame, %s of %llu bytes",
                         cluster_server(led->cluster), name, frame_type_words(header->type),
                         (unsigned long long)header->bytes);
    RETURN_IF(frame_read_payload(led->members->host.leader, header, bytes, led->run->setup.config.timeout_s,
                                 error));
    struct frame_reader reader = {.bytes = bytes, .length = header->bytes};
    RETURN_IF(finish_get(&led->finish, &reader, name, error));
    if (led->finish.code == OK) return OK;
    if (led->finish.code != ERROR_PEER) atomic_store(&led->members->settings.session->over, true);
    char leader[300];
    snprintf(leader, sizeof leader, "the %s 0 (%s)", cluster_server(led->cluster), name);
    finish_repeat(&led->finish, leader, error);
    if (led->asked && led->finish.code == ERROR_INTERRUPTED) error->code = ERROR_INTERRUPTED;
    return error->code;
}

static int name_leader(const struct led_run *led, int code, struct error *error) {
    return host_blame_leader(&led->members->host, code, error);
}

/* SIGTERM: the leader ends the run while this slice is still there, and says so; where it does not, this
 * process ends by itself. */
static int check_interrupted(struct led_run *led, struct error *error) {
    const double now = world_now(led->run->world);
    struct error ignored = {0};
    if (!world_interrupted()) return OK;
    if (!world_terminated()) return error_set(error, ERROR_INTERRUPTED, "interrupted");
    if (!led->asked) frame_write(led->members->host.leader, FRAME_LEAVE, 0, NULL, 0, ASK_S, &ignored);
    if (!led->asked) led->asked_s = now;
    led->asked = true;
    if (now - led->asked_s < LEAVE_S) return OK;
    return error_set(error, ERROR_INTERRUPTED, "interrupted; the leader has not ended the run within %g s",
                     LEAVE_S);
}

/* To the leader, and to the user, whom the leader does not know to be lost: nobody else can say why. Mostly
 * it finds out by itself. */
static void tell_lost(struct led_run *led, double patience_s) {
    const double now = world_now(led->run->world);
    for (int w = 0; w < led->run->workers; w++) {
        long step = 0;
        const char *words = NULL;
        if (led->lost[w] || !training_lost(&led->run->training, w, &step, &words) ||
            training_left(&led->run->training, w, &step))
            continue;
        if (led->lost_s[w] == 0.0) led->lost_s[w] = now;
        if (now - led->lost_s[w] < patience_s) continue; /* or it was told */
        led->lost_s[w] = INFINITY;
        progress_warn(&led->run->progress, "lost: %s; the leader is told", words);
        follower_tell_lost(&led->members->host, w, ASK_S);
    }
}

/* Its next byte. While it is waited for, an interrupt ends this process. most_s: how long it may take. */
static int await_leader(struct led_run *led, double most_s, bool watches, struct error *error) {
    struct endpoint *leader = led->members->host.leader;
    const double until = world_now(led->run->world) + most_s;
    bool ended = false;
    uint8_t byte;
    while (endpoint_peek(leader, &byte, 1, LOOK_MS / 1e3, &ended) == 0 && !ended) {
        RETURN_IF(check_interrupted(led, error));
        if (watches) RETURN_IF(host_watch(&led->members->host, error));
        if (led->begun) tell_lost(led, ASK_S);
        if (world_now(led->run->world) >= until)
            return name_leader(led, error_set(error, ERROR_PEER, "no word for %g s", most_s), error);
    }
    return OK;
}

/* The leader's next frame. Before the first one it may be waiting for others, and gives signs of life. */
static int read_header(struct led_run *led, struct frame_header *header, struct error *error) {
    const struct config *config = &led->run->setup.config;
    const double most_s = TIMEOUT_TIMES * config->timeout_s;
    const double until = world_now(led->run->world) + config->start_timeout_s + most_s;
    do {
        RETURN_IF(await_leader(led, most_s, !led->begun, error));
        RETURN_IF(name_leader(led,
                              frame_read_header(led->members->host.leader, "the leader's next message",
                                                UINT64_MAX, header, config->timeout_s, error),
                              error));
        if (header->type == FRAME_HEARTBEAT && (led->begun || header->bytes > 0))
            return name_leader(
                led, error_set(error, ERROR_PEER, "a heartbeat, expected a word of the training"), error);
        if (header->type == FRAME_HEARTBEAT && world_now(led->run->world) >= until)
            return name_leader(led,
                               error_set(error, ERROR_PEER, "nothing but heartbeats for %g s",
                                         config->start_timeout_s + most_s),
                               error);
    } while (header->type == FRAME_HEARTBEAT);
    led->begun = true;
    atomic_store(&led->members->settings.session->begun, true);
    return OK;
}

static int read_turn(struct led_run *led, const struct frame_header *header, enum frame_type type,
                     uint64_t turn, uint8_t *bytes, size_t count, struct error *error) {
    return name_leader(led,
                       turn_receive(led->members->host.leader, header, type, turn, bytes, count,
                                    led->run->setup.config.timeout_s, error),
                       error);
}

static int read_fetch(struct led_run *led, const struct frame_header *header, struct error *error) {
    const size_t count = fetch_bytes(led->run->workers);
    led->members->fetched++;
    RETURN_IF(read_turn(led, header, FRAME_FETCH, led->members->fetched, led->fetch, count, error));
    struct frame_reader reader = {.bytes = led->fetch, .length = count};
    const uint64_t version = frame_get_u64(&reader);
    led->leader_at = version < LONG_MAX ? (long)version : LONG_MAX;
    return OK;
}

/* What the leader says in the middle of a segment: a fetch, whose answer waits for the pause; or the end. */
static int hear_leader(struct led_run *led, bool *fetches, struct error *error) {
    struct frame_header header;
    RETURN_IF(read_header(led, &header, error));
    if (header.type == FRAME_GOODBYE) RETURN_IF(read_finish(led, &header, error));
    *fetches = true;
    return read_fetch(led, &header, error);
}

/* Whether the leader, whose run has failed, asks for the rest. */
static bool wants_rest(const struct led_run *led, bool fetches) {
    return fetches && led->lost[led->run->workers] != 0;
}

/* The slice, after a failure here or elsewhere. */
static int answer_rest(struct led_run *led, struct error *error) {
    if (!run_settle_store(led->run, led->leader_at))
        return error_set(error, ERROR_PEER, "the slice is not whole");
    return members_answer(led->members, error);
}

/* The same to a leader that has ended the segment in order: told of a worker that is lost here, it fails as
 * well, and asks again. Of another failure it is told by words alone. */
static int answer_failed(struct led_run *led, const struct error *failure, struct error *error) {
    if (failure->code != ERROR_PEER) return error_set(error, failure->code, "%s", failure->words);
    progress_warn(&led->run->progress, "%s; the leader is told", failure->words);
    return answer_rest(led, error);
}

/* After a failure, when all threads here have ended. It is mostly the leader that knows why, and says it, or
 * that is gone itself; before, it may ask for the slice. */
static int ask_leader(struct led_run *led, bool fetches, struct error *error) {
    struct endpoint *leader = led->members->host.leader;
    const double timeout_s = led->run->setup.config.timeout_s;
    struct error why = {0};
    bool ended = false, answered = false;
    uint8_t byte;
    led->members->blamed = (uint64_t)(1 + training_failing(&led->run->training));
    if (!led->run->training.abandoned) world_resume(led->run->world);
    while (true) {
        const bool rest = wants_rest(led, fetches);
        if (fetches && (rest ? answer_rest(led, &why) : answer_failed(led, error, &why)) != OK)
            return error->code;
        answered = answered || fetches; /* it is there, and writes a checkpoint now */
        if (endpoint_peek(leader, &byte, 1, answered ? timeout_s : ASK_S, &ended) == 0 && !ended)
            return error->code;
        if (hear_leader(led, &fetches, &why) == OK) continue;
        *error = why;
        return why.code;
    }
}

/* The leader's run has failed, and this one will as well, by itself; where it does not, it is ended. */
static int end_segment(struct led_run *led, bool fetches, struct error *error) {
    if (!training_failed(&led->run->training)) world_stop(led->run->world);
    if (training_end(&led->run->training, error) == OK)
        error_set(error, ERROR_PEER, "the %s 0 (%s) has ended the run", cluster_server(led->cluster),
                  led->cluster->ps.list[0].text);
    return ask_leader(led, fetches, error);
}

/* The workers pause, and end, as the leader tells them. *fetches: the leader has asked for the slice
 * already: those it has lost are not waited for. */
static int run_segment(struct led_run *led, bool *fetches, struct error *error) {
    struct world *world = led->run->world;
    bool ended = false;
    uint8_t byte;
    double until = INFINITY;
    *fetches = false;
    training_go(&led->run->training);
    while (!training_wait(&led->run->training, LOOK_MS / 1e3) && world_now(world) < until) {
        RETURN_IF(check_interrupted(led, error));
        if (endpoint_peek(led->members->host.leader, &byte, 1, 0.0, &ended) > 0 || ended)
            RETURN_IF(hear_leader(led, fetches, error));
        if (isinf(until) && wants_rest(led, *fetches))
            until = world_now(world) + (led->cluster->mirrored ? MIRRORED_END_S : END_S);
        for (int w = 0; w < led->run->workers && *fetches; w++)
            if (led->lost[w]) training_give_up(&led->run->training, w);
        tell_lost(led, ASK_S);
    }
    if (!training_failed(&led->run->training) && world_now(world) < until) return OK;
    return end_segment(led, *fetches, error);
}

/* All processes may have been told the same folder: that is the chief's, the others' are in it. */
static int write_model(struct led_run *led, struct error *error) {
    struct run *run = led->run;
    char name[32], folder[PATH_BYTES];
    const struct standing standing = {.workers = run->workers,
                                      .epochs_done = led->finish.epochs,
                                      .final_cost = led->finish.final_cost,
                                      .version = led->finish.version,
                                      .examples = led->finish.examples,
                                      .steps = led->finish.steps,
                                      .test_score = (double)NAN};
    snprintf(name, sizeof name, "worker-%d", led->cluster->task);
    RETURN_IF(file_join(folder, run->setup.config.out, name, error));
    memcpy(run->setup.config.out, folder, sizeof folder);
    RETURN_IF(file_make_folder(folder, error));
    return run_write_model(run, run->store.weights, &standing, error);
}

/* bytes[CHANGE_BYTES + workers], flags[2 * workers]: who takes part, and who of them joins. */
static int apply_change(struct led_run *led, const struct frame_header *header, uint8_t *bytes, bool *flags,
                        struct error *error) {
    struct run *run = led->run;
    struct members *members = led->members;
    struct phase_change change;
    bool *const present = flags, *const joins = flags + run->workers;
    members->changed++;
    RETURN_IF(read_turn(led, header, FRAME_CHANGE, members->changed, bytes,
                        CHANGE_BYTES + (size_t)run->workers, error));
    RETURN_IF(
        name_leader(led, change_get(&change, run->setup.phases.count, run->workers, bytes, error), error));
    for (int w = 0; w < run->workers; w++) present[w] = bytes[CHANGE_BYTES + w] != 0;
    RETURN_IF(members_settle_places(members, present, joins, error));
    for (int w = 0; w < run->workers; w++) {
        if (!joins[w]) continue;
        led->lost[w] = 0; /* as the leader said of the place before */
        led->lost_s[w] = 0.0;
    }
    return run_follow_change(run, &change, present, joins, error);
}

static int read_change(struct led_run *led, const struct frame_header *header, struct error *error) {
    uint8_t *bytes = NULL;
    bool *flags = NULL;
    int code = memory_array(&bytes, CHANGE_BYTES + led->run->workers, "a change", error);
    if (code == OK) code = memory_array(&flags, 2 * led->run->workers, "who takes part", error);
    if (code == OK) code = apply_change(led, header, bytes, flags, error);
    memory_free(bytes);
    memory_free(flags);
    return code;
}

static int answer(struct led_run *led, struct error *error) {
    tell_lost(led, 0.0);
    return wants_rest(led, true) ? answer_rest(led, error) : members_answer(led->members, error);
}

/* Until the leader says goodbye. */
static int follow(struct led_run *led, struct error *error) {
    struct frame_header header;
    bool has_slice = false, fetches = false;
    while (true) {
        RETURN_IF(check_interrupted(led, error));
        RETURN_IF(read_header(led, &header, error));
        switch (header.type) {
        case FRAME_SLICE:
            RETURN_IF(receive_slice(led, &header, has_slice, error)); /* the second is the whole */
            has_slice = true;
            break;
        case FRAME_ADMIT:
            RETURN_IF(name_leader(led, members_keep_places(led->members, &led->run->training, &header, error),
                                  error));
            break;
        case FRAME_GO:
            members_count_present(led->members);
            led->members->went++;
            RETURN_IF(read_turn(led, &header, FRAME_GO, led->members->went, NULL, 0, error));
            RETURN_IF(run_segment(led, &fetches, error));
            if (fetches) RETURN_IF(answer(led, error));
            break;
        case FRAME_CHANGE:
            RETURN_IF(read_change(led, &header, error));
            break;
        case FRAME_FETCH:
            RETURN_IF(read_fetch(led, &header, error));
            RETURN_IF(answer(led, error));
            break;
        default:
            return read_finish(led, &header, error);
        }
    }
}

/* In the middle of a segment they speak to the workers still, who are then told why this process ends. */
static void end_proxies(struct run *run) {
    struct error known = {0};
    world_stop(run->world);
    training_end(&run->training, &known);
}

static int follow_opened(struct run *run, const struct cluster *cluster, struct finish *finish,
                         struct error *error) {
    struct led_run led = {.run = run, .members = run->members, .cluster = cluster};
    RETURN_IF(memory_array(&led.fetch, fetch_bytes(run->workers), "what is fetched", error));
    led.lost = led.fetch + sizeof(uint64_t);
    int code = memory_array(&led.lost_s, run->workers, "who is lost", error);
    if (code == OK) code = follow(&led, error);
    if (code != OK) end_proxies(run);
    if (code == OK && cluster->mirrored) code = write_model(&led, error);
    if (code == OK) run_say_missed_faults(run);
    *finish = led.finish;
    memory_free(led.fetch);
    memory_free(led.lost_s);
    return code;
}

int follow_session(const struct members_settings *settings, struct run_result *result, struct error *error) {
    const struct typed *typed = settings->session->typed;
    struct run *run = NULL;
    struct finish finish = {0};
    *result = (struct run_result){0};
    world_catch_interrupts();
    RETURN_IF(memory_array(&run, 1, "the run", error));
    run->crew = members_crew(settings);
    run->world = settings->session->world;
    run->led = true;
    progress_open(&run->progress, stderr, typed->value.quiet);
    int code = run_open(run, typed, error);
    if (code == OK) code = follow_opened(run, settings->cluster, &finish, error);
    if (run->members) run->crew.finish(run->members, error, &result->summary);
    result->config = run->setup.config;
    result->summary = (struct summary){.metric = finish.metric,
                                       .test_score = finish.test_score,
                                       .views_score = (double)NAN,
                                       .final_cost = finish.final_cost,
                                       .train_seconds = finish.train_seconds};
    run_close(run);
    result->abandoned = run->training.abandoned;
    if (!result->abandoned) memory_free(run);
    return code;
}

static int train(void *argument, struct cluster_session *session, bool *abandoned, struct error *error) {
    const struct members_settings settings = {.cluster = session->cluster, .session = session};
    struct run_result *result = argument;
    follow_session(&settings, result, error);
    *abandoned = result->abandoned;
    return error->code;
}

int follow_train(const struct typed *typed, const struct cluster *cluster, struct world *world,
                 struct run_result *result, struct error *error) {
    bool abandoned;
    *result = (struct run_result){0};
    return sessions_train(typed, cluster, world, train, result, &abandoned, error);
}
