/* Terms: what hosts and workers tell each other is read as it was written, field by field; cut short, or with
 * a number out of its range, it is refused; and of what must be alike each difference has its words. */
#include "../check.h"
#include "../wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/bridge/lane_terms.h"
#include "../../src/bridge/lead.h"
#include "../../src/bridge/terms.h"

static struct hello sample; /* of a leader */

static void make_sample(void) {
    struct error error = {0};
    sample = (struct hello){.leader = true,
                            .program = "1.2.3",
                            .fingerprint = {.examples = 12,
                                            .floats = 13,
                                            .layout = 0xfedcba9876543210u,
                                            .constant_s = 0.25,
                                            .each_s = 0.125},
                            .task = 18,
                            .device = 19,
                            .devices = 20,
                            .device_name = "cpu:3"};
    option_defaults(run_options, &sample.agreed);
    for (const struct option *row = run_options; row->name; row++) {
        char value[CONFIG_VALUE_BYTES];
        if (!(row->flags & OPTION_AGREED)) continue;
        option_text(row, &sample.agreed, value, sizeof value); /* given, with its default */
        CHECK(option_set(run_options, &sample.agreed, "--", row->name, value, &error) == OK, "%s",
              error.words);
    }
}

/* --- every message, whole and cut short at every byte --- */

union message {
    struct hello hello;
    struct welcome welcome;
    struct finish finish;
    struct lane_hello lane_hello;
    struct lane_sweep lane_sweep;
    struct lane_run lane_run;
    struct lane_end lane_end;
};

typedef int put_message(const union message *message, struct frame_writer *writer, struct error *error);
typedef int get_message(union message *message, struct frame_reader *reader, struct error *error);

static int put_hello(const union message *message, struct frame_writer *writer, struct error *error) {
    return hello_put(&message->hello, writer, error);
}
static int get_hello(union message *message, struct frame_reader *reader, struct error *error) {
    return hello_get(&message->hello, reader, "a peer", error);
}
static int put_welcome(const union message *message, struct frame_writer *writer, struct error *error) {
    return welcome_put(&message->welcome, writer, error);
}
static int get_welcome(union message *message, struct frame_reader *reader, struct error *error) {
    return welcome_get(&message->welcome, reader, "a peer", error);
}
static int put_finish(const union message *message, struct frame_writer *writer, struct error *error) {
    return finish_put(&message->finish, writer, error);
}
static int get_finish(union message *message, struct frame_reader *reader, struct error *error) {
    return finish_get(&message->finish, reader, "a peer", error);
}

static int put_lane_hello(const union message *message, struct frame_writer *writer, struct error *error) {
    return lane_hello_put(&message->lane_hello, writer, error);
}
static int get_lane_hello(union message *message, struct frame_reader *reader, struct error *error) {
    return lane_hello_get(&message->lane_hello, reader, "a peer", error);
}
static int put_lane_sweep(const union message *message, struct frame_writer *writer, struct error *error) {
    return lane_sweep_put(&message->lane_sweep, writer, error);
}
static int get_lane_sweep(union message *message, struct frame_reader *reader, struct error *error) {
    return lane_sweep_get(&message->lane_sweep, reader, "a peer", error);
}
static int put_lane_run(const union message *message, struct frame_writer *writer, struct error *error) {
    return lane_run_put(&message->lane_run, writer, error);
}
static int get_lane_run(union message *message, struct frame_reader *reader, struct error *error) {
    return lane_run_get(&message->lane_run, reader, "a peer", error);
}
static int put_lane_end(const union message *message, struct frame_writer *writer, struct error *error) {
    return lane_end_put(&message->lane_end, writer, error);
}
static int get_lane_end(union message *message, struct frame_reader *reader, struct error *error) {
    return lane_end_get(&message->lane_end, reader, "a peer", error);
}

static void check_message(const union message *sent, size_t bytes, size_t room, put_message *put,
                          get_message *get) {
    static uint8_t frame[HELLO_BYTES], again[HELLO_BYTES];
    static union message got;
    struct error error = {0};
    struct frame_writer writer = {.bytes = frame, .room = room};
    CHECK(put(sent, &writer, &error) == OK, "%s", error.words);
    struct frame_reader reader = {.bytes = frame, .length = writer.used};
    CHECK(get(&got, &reader, &error) == OK, "%s", error.words);
    struct frame_writer second = {.bytes = again, .room = room};
    CHECK(put(&got, &second, &error) == OK && second.used == writer.used &&
              memcmp(frame, again, writer.used) == 0,
          "what was read is written as other bytes");
    CHECK(memcmp(&got, sent, bytes) == 0, "what was read is not what was written");
    for (size_t length = 0; length < writer.used; length++) {
        struct frame_reader cut = {.bytes = frame, .length = length};
        CHECK(get(&got, &cut, &error) == ERROR_PEER, "%zu of %zu bytes were taken", length, writer.used);
    }
    struct frame_writer narrow = {.bytes = again, .room = writer.used - 1};
    struct error why = {0};
    CHECK(put(sent, &narrow, &why) == ERROR_USAGE, "written into too little room");
}

/* Compared byte by byte, so what is not a field is zero here, as it is in what was read. */
static void check_messages(void) {
    static union message message;
    message.hello = sample;
    check_message(&message, sizeof message.hello, HELLO_BYTES, put_hello, get_hello);
    memset(&message, 0, sizeof message);
    message.welcome.worker = 1, message.welcome.workers = 2;
    message.welcome.begin = 16, message.welcome.end = 64;
    check_message(&message, sizeof message.welcome, WELCOME_BYTES, put_welcome, get_welcome);
    memset(&message, 0, sizeof message);
    message.finish.code = 5, message.finish.metric = METRIC_RMSE;
    message.finish.test_score = 0.25, message.finish.final_cost = 1.5;
    message.finish.train_seconds = 2.5, message.finish.epochs = 3.5, message.finish.version = 6;
    message.finish.steps = 7, message.finish.examples = 8;
    memset(message.finish.words, 'w', sizeof message.finish.words - 1); /* the longest there may be */
    check_message(&message, sizeof message.finish, FINISH_BYTES, put_finish, get_finish);
}

/* Those of the lanes of a sweep. */
static void check_lanes(void) {
    static union message message;
    memset(&message, 0, sizeof message);
    message.lane_hello = (struct lane_hello){.program = "1.2.3", .device = "gpu:1", .timeout_s = 2.5};
    check_message(&message, sizeof message.lane_hello, LANE_HELLO_BYTES, put_lane_hello, get_lane_hello);
    memset(&message, 0, sizeof message);
    message.lane_sweep.timeout_s = 60.0;
    message.lane_sweep.settings = sample.agreed;
    check_message(&message, sizeof message.lane_sweep, LANE_SETTINGS_BYTES, put_lane_sweep, get_lane_sweep);
    memset(&message, 0, sizeof message);
    message.lane_run.number = 3, message.lane_run.count = 24;
    message.lane_run.stop_after = 9, message.lane_run.files = 7;
    message.lane_run.settings = sample.agreed;
    check_message(&message, sizeof message.lane_run, LANE_SETTINGS_BYTES, put_lane_run, get_lane_run);
    memset(&message, 0, sizeof message);
    message.lane_end.code = 6, message.lane_end.files = 4;
    memset(message.lane_end.words, 'w', sizeof message.lane_end.words - 1);
    check_message(&message, sizeof message.lane_end, LANE_END_BYTES, put_lane_end, get_lane_end);
}

/* A peer's timeout is one that could be typed: with a tiny one, who answers it would do nothing but that. */
static void check_timeouts(void) {
    static const double none[] = {0.0, 1e-300, 0.05, -60.0, 1.1e6, (double)INFINITY, (double)NAN};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct lane_hello hello = {.program = "1.2.3", .device = "cpu:0", .timeout_s = none[i]};
        struct error error = {0};
        uint8_t bytes[LANE_HELLO_BYTES];
        struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
        CHECK(lane_hello_put(&hello, &writer, &error) == OK, "%s", error.words);
        struct frame_reader reader = {.bytes = bytes, .length = writer.used};
        CHECK(lane_hello_get(&hello, &reader, "a peer", &error) == ERROR_PEER &&
                  strstr(error.words, "a timeout out of its range"),
              "a timeout of %g s was taken: %s", none[i], error.words);
    }
}

/* What a lane is told of a run is how it is trained, never where: that is the lane's own. */
static void check_run_settings(void) {
    static struct typed typed, told;
    struct error error = {0};
    uint8_t bytes[LANE_SETTINGS_BYTES];
    option_defaults(run_options, &typed);
    for (const struct option *row = run_options; row->name; row++) {
        char value[CONFIG_VALUE_BYTES];
        option_text(row, &typed, value, sizeof value);
        option_set(run_options, &typed, "--", row->name, value, &error); /* if this build has it */
    }
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    typed_put(&typed, &writer);
    struct frame_reader reader = {.bytes = bytes, .length = writer.used};
    typed_get(&told, &reader);
    CHECK(!reader.wrong && reader.used == writer.used, "%s", reader.wrong ? reader.wrong : "bytes are left");
    CHECK(told.given.model && told.given.early_stop && told.given.outputs && told.given.precision,
          "a setting of the training is missing");
    CHECK(!told.given.devices && !told.given.data_dir && !told.given.out && !told.given.resume &&
              !told.given.weights && !told.given.export_to && !told.given.threads,
          "a lane was told where to train");
    struct frame_writer hostile = {.bytes = bytes, .room = sizeof bytes};
    frame_put_u32(&hostile, 1);
    frame_put_text(&hostile, "export");
    frame_put_text(&hostile, "/etc/passwd");
    struct frame_reader of_hostile = {.bytes = bytes, .length = hostile.used};
    typed_get(&told, &of_hostile);
    CHECK(of_hostile.wrong != NULL, "a lane took --export from a host");
}

static void check_request(void) {
    const struct request sent = {
        .number = 1, .step = 2, .version = 3, .epoch = 4, .batch = 5, .batches = 6, .rate = 0.75};
    struct request got;
    uint8_t bytes[REQUEST_BYTES], again[REQUEST_BYTES];
    struct error error = {0};
    request_put(&sent, bytes);
    CHECK(request_get(&got, bytes, "a peer", &error) == OK, "%s", error.words);
    CHECK(got.number == 1 && got.step == 2 && got.version == 3 && got.epoch == 4 && got.batch == 5 &&
              got.batches == 6 && got.rate == 0.75,
          "what was read is not what was written");
    request_put(&got, again);
    CHECK(memcmp(bytes, again, sizeof again) == 0, "what was read is written as other bytes");
    memset(bytes, 0xff, sizeof bytes);
    CHECK(request_get(&got, bytes, "a peer", &error) == ERROR_PEER, "numbers out of their range");
}

/* An answer is that of its request alone: neither of the batch before, nor the same one twice. */
static void check_answer(void) {
    const struct request sent = {.number = 7, .step = 2, .version = 3};
    const struct request others[] = {{.number = 8, .step = 2}, {.number = 7, .step = 3}};
    uint8_t request[REQUEST_BYTES], bytes[LOSS_BYTES];
    struct error error = {0};
    const struct answer put = {0.75f, 0.125};
    struct answer got = {0};
    request_put(&sent, request);
    answer_put(&put, request, bytes);
    CHECK(answer_get(&got, &sent, bytes, "a peer", &error) == OK && got.loss == put.loss &&
              got.computed_s == put.computed_s,
          "%g, %g s: %s", (double)got.loss, got.computed_s, error.words);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        error = (struct error){0};
        CHECK(answer_get(&got, &others[i], bytes, "a peer", &error) == ERROR_PEER &&
                  strstr(error.words, "a peer: a gradient of batch 7 in step 2, expected batch "),
              "%s", error.words);
    }
    const double no_times[] = {-1.0, (double)NAN, (double)INFINITY};
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        error = (struct error){0};
        answer_put(&(struct answer){0.75f, no_times[i]}, request, bytes);
        CHECK(answer_get(&got, &sent, bytes, "a peer", &error) == ERROR_PEER, "%g s of computing",
              no_times[i]);
    }
}

/* --- what must be alike --- */

static const char us[] = "the parameter server";

static void expect_words(int code, const struct error *error, const char *words) {
    char expected[300];
    snprintf(expected, sizeof expected, "a:1 has %s", words);
    CHECK(code == ERROR_PEER && strcmp(error->words, expected) == 0, "\"%s\", expected \"%s\"", error->words,
          expected);
}

/* Another value than the default, which the row takes. */
static const char *other_value(const struct option *row, char *out, size_t bytes) {
    if (row->type == OPTION_CHOICE)
        snprintf(out, bytes, "%s", strchr(row->choices, '|') + 1);
    else if (row->type == OPTION_TEXT)
        snprintf(out, bytes, "another");
    else
        snprintf(out, bytes, "%g", row->type == OPTION_REAL ? row->least + 0.25 : row->least + 6);
    out[strcspn(out, "|")] = '\0';
    return out;
}

/* Every row that is agreed on: given and different it is refused with both values; not given it is not looked
 * at. */
static void check_rows(void) {
    static struct typed peers;
    int rows = 0;
    for (const struct option *row = run_options; row->name; row++) {
        struct error error = {0};
        char other[64], ours[CONFIG_VALUE_BYTES], words[CONFIG_VALUE_BYTES + 200];
        if (!(row->flags & OPTION_AGREED)) continue;
        option_defaults(run_options, &peers);
        CHECK(settings_agree(&sample.agreed.value, &peers, us, "a:1", &error) == OK, "%s", error.words);
        CHECK(option_set(run_options, &peers, "--", row->name, other_value(row, other, sizeof other),
                         &error) == OK,
              "%s", error.words);
        option_text(row, &sample.agreed, ours, sizeof ours);
        snprintf(words, sizeof words, "--%s %s, the parameter server has %s", row->name, other, ours);
        const int code = settings_agree(&sample.agreed.value, &peers, us, "a:1", &error);
        expect_words(code, &error, words);
        rows++;
    }
    CHECK(rows > 10, "%d rows", rows);
}

/* A row that nobody knows, and a value that none takes, are told apart from what is cut short. */
static void check_strangers(void) {
    static const char *const pairs[][3] = {{"no-such-row", "1", "has an unknown setting"},
                                           {"quiet", "1", "has an unknown setting"},
                                           {"epochs", "none", "has a setting with an invalid value"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        static struct typed got;
        uint8_t bytes[200];
        struct error error = {0};
        struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
        frame_put_u32(&writer, 1);
        frame_put_text(&writer, pairs[i][0]);
        frame_put_text(&writer, pairs[i][1]);
        struct frame_reader reader = {.bytes = bytes, .length = writer.used};
        CHECK(settings_get(&got, &reader, "a peer", &error) == ERROR_PEER && strstr(error.words, pairs[i][2]),
              "\"%s\"", error.words);
    }
}

/* They go into steps.csv. */
static void check_device_names(void) {
    static const char *const names[] = {"gpu:7", "cpu:0+...+cpu:9", "cpu:0,9", "cpu\n",
                                        "=1+1",  "\x1b[2J",         "Cpu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char got[GROUP_NAME_BYTES];
        uint8_t bytes[64];
        struct error error = {0};
        struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
        frame_put_text(&writer, names[i]);
        struct frame_reader reader = {.bytes = bytes, .length = writer.used};
        device_name_get(&reader, got, sizeof got);
        const int code = frame_get_end(&reader, "a hello", "a peer", &error);
        CHECK(i < 2 ? code == OK && strcmp(got, names[i]) == 0
                    : code == ERROR_PEER && strstr(error.words, "has a device with another name") && !got[0],
              "\"%s\": \"%s\"", names[i], error.words);
    }
}

static void check_agreement(void) {
    const struct fingerprint ours = sample.fingerprint;
    struct fingerprint theirs = ours;
    struct error same = {0}, error = {0};
    CHECK(settings_agree(&sample.agreed.value, &sample.agreed, us, "a:1", &same) == OK, "%s", same.words);
    CHECK(fingerprints_agree(&ours, &ours, us, "a:1", &same) == OK, "%s", same.words);
    CHECK(programs_agree(TRAINER_VERSION, us, "a:1", &same) == OK, "%s", same.words);
    expect_words(programs_agree("2.2.3", us, "a:1", &error), &error,
                 "trainer 2.2.3, the parameter server has " TRAINER_VERSION);
    error = (struct error){0}, theirs.examples = 1;
    expect_words(fingerprints_agree(&ours, &theirs, us, "a:1", &error), &error,
                 "training examples: 1, the parameter server has 12");
    error = (struct error){0}, theirs = ours, theirs.floats = 1;
    expect_words(fingerprints_agree(&ours, &theirs, us, "a:1", &error), &error,
                 "a model of floats: 1, the parameter server has 13");
    error = (struct error){0}, theirs = ours, theirs.layout++;
    expect_words(fingerprints_agree(&ours, &theirs, us, "a:1", &error), &error,
                 "a layout with hash fedcba9876543211, the parameter server has fedcba9876543210");
}

/* --- what goes as a frame of its own --- */

static int read_next(struct wire *wire, enum next *next, long *number, int *examples) {
    struct frame_header header;
    RETURN_IF(frame_read_header(wire->far, "a number", 100, &header, LONG_S, &wire->error));
    return next_read(wire->far, &header, next, number, examples, LONG_S, &wire->error);
}

static void check_next(void) {
    struct wire wire;
    enum next next = NEXT_PAUSE;
    long number = 0;
    int examples = 0;
    open_wire(&wire);
    for (int kind = 0; kind < NEXTS; kind++) {
        CHECK(next_write(wire.near, (enum next)kind, 123456789012L, 160, LONG_S, &wire.error) == OK, "%s",
              wire.error.words);
        CHECK(read_next(&wire, &next, &number, &examples) == OK, "%s", wire.error.words);
        CHECK((int)next == kind && number == (kind == NEXT_BATCH ? 123456789012L : 0) &&
                  examples == (kind == NEXT_BATCH ? 160 : 0),
              "%d: %ld, %d examples", (int)next, number, examples);
        CHECK(endpoint_sent(wire.near) % 64 == 0, "%lld bytes, expected whole cache lines: see frame.h",
              endpoint_sent(wire.near));
    }
    CHECK((FRAME_HEADER_BYTES + REQUEST_BYTES) % 64 == 0 && (FRAME_HEADER_BYTES + LOSS_BYTES) % 64 == 0,
          "weights and gradients begin on a cache line");
    CHECK(next_write(wire.near, NEXTS, 0, 0, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(read_next(&wire, &next, &number, &examples) == ERROR_PEER &&
              strstr(wire.error.words, "of kind 3, expected less than 3"),
          "%s", wire.error.words);
    close_wire(&wire);
}

enum { FLOATS = 96 };

static void fill(float *values, float first) {
    for (int i = 0; i < FLOATS; i++) values[i] = first + (float)i;
}

static int receive_slice(struct wire *wire, struct slice *slice) {
    struct frame_header header;
    RETURN_IF(frame_read_header(wire->far, "a slice", 1 << 20, &header, LONG_S, &wire->error));
    return slice_receive(wire->far, &header, slice, LONG_S, &wire->error);
}

static void check_slice(int count) {
    static float sent[STATE_VECTORS][FLOATS], got[STATE_VECTORS][FLOATS];
    struct wire wire;
    struct slice there = {.begin = 16, .end = 48, .turn = 9, .version = 77, .state = {.count = count}};
    struct slice here = {.begin = 16, .end = 48, .turn = 9, .state = {.count = count}};
    open_wire(&wire);
    for (int v = 0; v < STATE_VECTORS; v++) {
        fill(sent[v], 1000.0f * (float)v);
        fill(got[v], -5000.0f);
        there.state.vector[v].at = sent[v];
        here.state.vector[v].at = got[v];
    }
    CHECK(slice_send(wire.near, &there, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_slice(&wire, &here) == OK && here.version == 77, "%s", wire.error.words);
    for (int v = 0; v < STATE_VECTORS; v++)
        for (int i = 0; i < FLOATS; i++) {
            const bool inside = v < count && i >= 16 && i < 48;
            const float expected = inside ? sent[v][i] : -5000.0f + (float)i;
            CHECK(got[v][i] == expected, "vector %d, float %d is %g", v, i, (double)got[v][i]);
        }
    CHECK(slice_send(wire.near, &there, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    here.turn = 10;
    CHECK(receive_slice(&wire, &here) == ERROR_PEER &&
              strstr(wire.error.words, "a slice of turn 9, expected turn 10"),
          "%s", wire.error.words);
    close_wire(&wire);
    open_wire(&wire);
    here.turn = 9;
    CHECK(slice_send(wire.near, &there, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    here.begin = 32, here.end = 64; /* as long, but another one */
    CHECK(receive_slice(&wire, &here) == ERROR_PEER &&
              strstr(wire.error.words, "a slice of floats 16 to 48, expected 32 to 64"),
          "%s", wire.error.words);
    close_wire(&wire);
}

static void check_version(void) {
    struct wire wire;
    struct slice slice = {.begin = 16, .end = 16, .version = 1000000000000001};
    open_wire(&wire);
    CHECK(slice_send(wire.near, &slice, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_slice(&wire, &slice) == ERROR_PEER &&
              strstr(wire.error.words,
                     "a slice of version 1000000000000001, expected at most 1000000000000000"),
          "%s", wire.error.words);
    close_wire(&wire);
}

static int receive_tallies(struct wire *wire, uint64_t got[4]) {
    struct frame_header header;
    RETURN_IF(frame_read_header(wire->far, "tallies", 1 << 20, &header, LONG_S, &wire->error));
    return tallies_receive(wire->far, &header, 7, got, 4, LONG_S, &wire->error);
}

static void check_tallies(void) {
    static const uint64_t sent[] = {0, 1, 1000000000000u, 123456789012u};
    uint64_t got[4] = {0};
    struct wire wire;
    open_wire(&wire);
    CHECK(tallies_send(wire.near, 7, sent, 4, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_tallies(&wire, got) == OK, "%s", wire.error.words);
    CHECK(memcmp(sent, got, sizeof got) == 0, "what was read is not what was written");
    CHECK(tallies_send(wire.near, 6, sent, 4, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_tallies(&wire, got) == ERROR_PEER &&
              strstr(wire.error.words, "tallies of turn 6, expected turn 7"),
          "%s", wire.error.words);
    close_wire(&wire);
    open_wire(&wire);
    const uint64_t many[] = {0, 0, 0, 1000000000001u};
    CHECK(tallies_send(wire.near, 7, many, 4, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_tallies(&wire, got) == ERROR_PEER &&
              strstr(wire.error.words, "tallies with 1000000000001, expected at most 1000000000000"),
          "%s", wire.error.words);
    wire.error = (struct error){0};
    CHECK(tallies_send(wire.near, 7, sent, 3, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_tallies(&wire, got) == ERROR_PEER &&
              strstr(wire.error.words, "tallies of 32 bytes, expected tallies of 40"),
          "%s", wire.error.words);
    close_wire(&wire);
}

/* Whoever has lost another tells of that one, not of itself. */
static void check_repeated(void) {
    struct finish finish = {.code = ERROR_PEER, .words = "worker 1 (x): the connection was closed"};
    struct error error = {0};
    CHECK(finish_repeat(&finish, "the process x", &error) == ERROR_PEER, "code %d", error.code);
    CHECK(strcmp(error.words, finish.words) == 0, "%s", error.words);
    error = (struct error){0};
    finish = (struct finish){.code = ERROR_PEER, .words = "127.0.0.1:1: a slice arrived damaged"};
    CHECK(finish_repeat(&finish, "the process x", &error) == ERROR_PEER, "code %d", error.code);
    CHECK(strcmp(error.words, "the process x ended: 127.0.0.1:1: a slice arrived damaged") == 0, "%s",
          error.words);
    error = (struct error){0};
    finish = (struct finish){.code = ERROR_INTERRUPTED, .words = "interrupted"};
    CHECK(finish_repeat(&finish, "the process x", &error) == ERROR_PEER, "code %d", error.code);
    CHECK(strcmp(error.words, "the process x ended: interrupted") == 0, "%s", error.words);
}

/* What starts a segment, or asks for its results, comes once. */
static int receive_turn(struct wire *wire, enum frame_type type, uint64_t turn, uint8_t got[3]) {
    struct frame_header header;
    wire->error = (struct error){0};
    RETURN_IF(frame_read_header(wire->far, "a turn", 1 << 20, &header, LONG_S, &wire->error));
    return turn_receive(wire->far, &header, type, turn, got, 3, LONG_S, &wire->error);
}

static void check_turns(void) {
    static const uint8_t sent[3] = {4, 5, 6};
    uint8_t got[3] = {0};
    struct wire wire;
    open_wire(&wire);
    for (int twice = 0; twice < 2; twice++)
        CHECK(turn_send(wire.near, FRAME_FETCH, 12, sent, 3, LONG_S, &wire.error) == OK, "%s",
              wire.error.words);
    CHECK(receive_turn(&wire, FRAME_FETCH, 12, got) == OK && memcmp(got, sent, 3) == 0, "%s",
          wire.error.words);
    CHECK(receive_turn(&wire, FRAME_FETCH, 13, got) == ERROR_PEER &&
              strstr(wire.error.words, "a request for weights of turn 12, expected turn 13"),
          "%s", wire.error.words);
    CHECK(turn_send(wire.near, FRAME_GO, 1, sent, 3, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    CHECK(receive_turn(&wire, FRAME_FETCH, 1, got) == ERROR_PEER, "a go is no fetch");
    close_wire(&wire);
}

int main(void) {
    make_sample();
    check_messages();
    check_lanes();
    check_timeouts();
    check_run_settings();
    check_request();
    check_answer();
    check_agreement();
    check_rows();
    check_strangers();
    check_device_names();
    check_next();
    for (int count = 1; count <= STATE_VECTORS; count++) check_slice(count);
    check_version();
    check_tallies();
    check_repeated();
    check_turns();
    return check_end();
}
