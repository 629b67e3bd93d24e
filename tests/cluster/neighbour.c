/* A hostile neighbour: a relay between a parameter server and its worker, which run whole in this process,
 * that changes, delays, reorders or cuts off what goes over it, or says again what it has recorded. Whatever
 * it does, both end with words, and no run ends well with other weights.
 *
 * Usage: neighbour [STRIDE]: one byte per run is changed, of the session every STRIDE-th; 0: a few of each
 * kind of frame. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../src/base/bytes.h"
#include "../../src/base/crc32c.h"
#include "../../src/base/memory.h"
#include "../../src/base/tree.h"
#include "../../src/bridge/host.h"
#include "../../src/cluster/members.h"
#include "../../src/cluster/worker.h"
#include "../../src/run/run.h"

#define LONG_S 20.0
enum { TO_HOST, TO_WORKER, WAYS, FRAMES = 64, RECORDING_BYTES = 1 << 20 };

static const char *timeout = "10", *network = "softmax";
static char scratch[64] = "/tmp/neighbour.XXXXXX";
static char near_host[32], between[32]; /* where the ps and the relay listen: free ports */

/* --- the relay --- */

/* A frame on its way. */
struct passing {
    int way,
        number; /* TO_HOST or TO_WORKER; from 0, each way by itself; heartbeats have none and just pass */
    struct frame_header header;
    uint8_t *bytes; /* [FRAME_HEADER_BYTES + header.bytes] */
};

struct relay;
/* Changes a frame, or what is to be done with it; false: it goes no further. */
typedef bool meddler(struct relay *relay, struct passing *passing);

struct relay {
    struct world *world;
    struct listener *listener;
    struct endpoint *ends[WAYS]; /* where what goes that way is sent to */
    struct world_thread *threads[WAYS];
    meddler *meddle;
    int way, number; /* which frame it is about, and which byte of it */
    size_t at;
    struct passing held; /* to be sent behind the next one */
    uint8_t *recording;  /* [recorded] all that went to the host; NULL: nobody wants it */
    size_t recorded;
    _Atomic bool done;            /* it has meddled */
    size_t lengths[WAYS][FRAMES]; /* [way][counts[way]] of the frames that went over, the first ones */
    enum frame_type types[WAYS][FRAMES];
    int counts[WAYS];
    struct error error; /* of opening its ways; for close_relay to check */
};

static void note_frame(struct relay *relay, const struct passing *passing, size_t whole) {
    if (passing->number >= FRAMES) return;
    relay->lengths[passing->way][passing->number] = whole;
    relay->types[passing->way][passing->number] = passing->header.type;
    relay->counts[passing->way] = passing->number + 1;
}

static void record(struct relay *relay, const struct passing *passing, size_t whole) {
    if (!relay->recording || passing->way != TO_HOST || relay->recorded + whole > RECORDING_BYTES) return;
    memcpy(relay->recording + relay->recorded, passing->bytes, whole);
    relay->recorded += whole;
}

static int pass_one(struct relay *relay, int way, int *number, struct error *error) {
    struct endpoint *from = relay->ends[1 - way];
    struct passing passing = {.way = way, .number = *number};
    uint8_t head[FRAME_HEADER_BYTES];
    RETURN_IF(endpoint_receive(from, "a header", head, sizeof head, LONG_S, error));
    RETURN_IF(frame_unpack_header(&passing.header, head, 1 << 24, "the relay", error));
    const size_t whole = sizeof head + (size_t)passing.header.bytes;
    const bool counts = passing.header.type != FRAME_HEARTBEAT;
    RETURN_IF(memory_array(&passing.bytes, whole, "a frame", error));
    memcpy(passing.bytes, head, sizeof head);
    int code =
        endpoint_receive(from, "a payload", passing.bytes + sizeof head, whole - sizeof head, LONG_S, error);
    if (counts) note_frame(relay, &passing, whole);
    record(relay, &passing, whole);
    *number += counts;
    const struct piece piece = {passing.bytes, whole};
    if (code == OK && (!counts || !relay->meddle || relay->meddle(relay, &passing)))
        code = endpoint_send(relay->ends[way], "a frame", &piece, 1, LONG_S, error);
    memory_free(passing.bytes);
    return code;
}

static void pass_all(struct relay *relay, int way) {
    struct error over = {0};
    int number = 0;
    while (pass_one(relay, way, &number, &over) == OK) continue;
    for (int w = 0; w < WAYS; w++) endpoint_interrupt(relay->ends[w]);
}

static void pass_to_worker(void *argument) {
    pass_all(argument, TO_WORKER);
}

static int open_ways(struct relay *relay, struct error *error) {
    RETURN_IF(listener_accept(relay->listener, &relay->ends[TO_WORKER], LONG_S, error));
    if (!relay->ends[TO_WORKER]) return error_set(error, ERROR_PEER, "no worker came");
    RETURN_IF(endpoint_connect(relay->world, near_host, &relay->ends[TO_HOST], LONG_S, error));
    return world_spawn(relay->world, "relay", NULL, pass_to_worker, relay, &relay->threads[TO_WORKER], error);
}

static void relay_body(void *argument) {
    struct relay *relay = argument;
    if (open_ways(relay, &relay->error) == OK) pass_all(relay, TO_HOST);
}

static void open_relay(struct relay *relay) {
    struct error error = {0};
    CHECK(world_open_threads(&relay->world, &error) == OK &&
              endpoint_listen(relay->world, between, &relay->listener, &error) == OK &&
              world_spawn(relay->world, "relay", NULL, relay_body, relay, &relay->threads[TO_HOST], &error) ==
                  OK,
          "%s", error.words);
    if (error.code != OK) exit(check_end());
}

static void close_relay(struct relay *relay) {
    world_stop(relay->world);
    for (int w = 0; w < WAYS; w++) world_join(relay->threads[w]);
    CHECK(relay->error.code == OK, "%s", relay->error.words);
    for (int w = 0; w < WAYS; w++) endpoint_close(relay->ends[w]);
    memory_free(relay->held.bytes);
    listener_close(relay->listener);
    world_close(relay->world);
}

/* --- both ends --- */

struct end {
    struct typed typed;
    struct cluster cluster;
    struct error error;
    struct members_settings members;
    _Atomic bool gone; /* the other one has ended */
};

struct session {
    struct end host, worker;
    struct relay relay;
    struct world_thread *thread;
};

static void type(struct typed *typed, const char *name, const char *value) {
    struct error error = {0};
    CHECK(option_set(run_options, typed, "--", name, value, &error) == OK, "%s", error.words);
}

static void open_end(struct end *end, const char *job, const char *host, const char *strategy) {
    struct error error = {0};
    option_defaults(run_options, &end->typed);
    type(&end->typed, "job", job);
    type(&end->typed, "task", "0");
    type(&end->typed, "ps-hosts", host);
    type(&end->typed, "worker-hosts", "127.0.0.1:1");
    type(&end->typed, "devices", "cpu:0");
    type(&end->typed, "threads", "1");
    type(&end->typed, "timeout", timeout);
    type(&end->typed, "start-timeout", "10");
    type(&end->typed, "quiet", "1");
    type(&end->typed, "overlap", "on");
    if (strategy) {
        type(&end->typed, "dataset", "digits:take=48");
        type(&end->typed, "model", network);
        type(&end->typed, "batch", "16");
        type(&end->typed, "epochs", "2");
        type(&end->typed, "strategy", strategy);
        type(&end->typed, "outputs", "none");
        type(&end->typed, "out", scratch);
        type(&end->typed, "replace", "1");
    }
    CHECK(cluster_resolve(&end->cluster, &end->typed.value, NULL, &error) == OK, "%s", error.words);
    end->cluster.tcp_alone = true; /* the relay is of one process with both */
}

static void host_body(void *argument) {
    struct session *session = argument;
    struct end *host = &session->host;
    struct world *world = NULL;
    struct run_result result = {0};
    host->members = (struct members_settings){
        .cluster = &host->cluster, .give_up = &host->gone, .because = &session->worker.error};
    const struct crew crew = members_crew(&host->members);
    if (world_open_threads(&world, &host->error) != OK) return;
    run_train(&host->typed, &crew, world, &result, &host->error);
    atomic_store(&session->worker.gone, true);
    run_result_free(&result);
    world_close(world);
}

/* A whole run, which the relay sees. */
static void train(struct session *session, const char *strategy, meddler *change) {
    struct world *world = NULL;
    struct error error = {0};
    struct finish finish;
    bool abandoned = false;
    session->relay.meddle = change;
    open_relay(&session->relay);
    open_end(&session->host, "ps", near_host, strategy);
    open_end(&session->worker, "worker", between, NULL);
    CHECK(world_open_threads(&world, &error) == OK &&
              world_spawn(world, "host", NULL, host_body, session, &session->thread, &error) == OK,
          "%s", error.words);
    worker_train(&session->worker.typed, &session->worker.cluster, world, NULL, &finish, &abandoned,
                 &session->worker.error);
    atomic_store(&session->host.gone, true);
    world_join(session->thread);
    world_close(world);
    close_relay(&session->relay);
    cluster_free(&session->host.cluster);
    cluster_free(&session->worker.cluster);
}

static uint32_t model_sum(void) {
    char path[PATH_BYTES], *bytes = NULL;
    size_t count = 0;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/model.safetensors", scratch);
    CHECK(file_read_plain(path, 1 << 24, &bytes, &count, &error) == OK, "%s", error.words);
    const uint32_t sum = crc32c(0, bytes, count);
    memory_free(bytes);
    return sum;
}

/* --- bytes that change on the way --- */

static bool change_a_byte(struct relay *relay, struct passing *passing) {
    if (passing->way != relay->way || passing->number != relay->number) return true;
    if (relay->at >= FRAME_HEADER_BYTES + passing->header.bytes) return true;
    passing->bytes[relay->at] ^= (uint8_t)(1 << relay->at % 8);
    atomic_store(&relay->done, true);
    return true;
}

static void check_byte(int way, int number, size_t at, enum frame_type type, uint32_t model) {
    static struct session session;
    session = (struct session){.relay = {.way = way, .number = number, .at = at}};
    train(&session, "sync", change_a_byte);
    const struct error *host = &session.host.error, *worker = &session.worker.error;
    CHECK(atomic_load(&session.relay.done), "byte %zu of %s was not reached", at, frame_type_words(type));
    /* What ends the run is said when all is done. */
    CHECK(host->code == ERROR_PEER || (host->code == OK && model_sum() == model),
          "byte %zu of %s: the host ended with %d: %s", at, frame_type_words(type), host->code, host->words);
    const bool tells = strstr(worker->words, "arrived damaged: checksum") ||
                       strstr(worker->words, "expected a trainer peer") ||
                       strstr(worker->words, "of the protocol");
    CHECK(worker->code == ERROR_PEER && (tells || way == TO_HOST),
          "byte %zu of %s: the worker ended with %d: %s", at, frame_type_words(type), worker->code,
          worker->words);
}

/* The first frame of each kind and way: its length, the first byte that it carries, and its last. */
static uint32_t check_bytes(size_t stride) {
    static const size_t places[] = {12, FRAME_HEADER_BYTES}; /* bridge/frame changes every bit of a header */
    static struct session whole, again;
    bool seen[WAYS][FRAME_TYPE_COUNT] = {{false}};
    train(&whole, "sync", NULL);
    CHECK(whole.host.error.code == OK && whole.worker.error.code == OK, "%s, %s", whole.host.error.words,
          whole.worker.error.words);
    const uint32_t model = model_sum();
    train(&again, "sync", NULL);
    CHECK(model_sum() == model, "two runs leave other weights");
    for (int way = 0; way < WAYS; way++)
        for (int n = 0; n < whole.relay.counts[way]; n++) {
            const enum frame_type type = whole.relay.types[way][n];
            const size_t length = whole.relay.lengths[way][n];
            if (type == FRAME_HEARTBEAT) continue;
            for (size_t at = 0; stride > 0 && at < length; at += stride) check_byte(way, n, at, type, model);
            if (seen[way][type] || stride > 0) continue;
            seen[way][type] = true;
            for (size_t f = 0; f < sizeof places / sizeof *places; f++)
                if (places[f] < length - 1) check_byte(way, n, places[f], type, model);
            check_byte(way, n, length - 1, type, model);
        }
    return model;
}

/* --- a worker that lies --- */

/* As one who knows the format would send it. */
static void reseal(struct passing *passing) {
    passing->header.checksum = crc32c(0, passing->bytes + FRAME_HEADER_BYTES, passing->header.bytes);
    frame_pack_header(passing->bytes, &passing->header);
}

static enum frame_type lied = FRAME_GRADIENT; /* what it is about */

static bool is_lied(struct relay *relay, const struct passing *passing) {
    return passing->way == TO_HOST && passing->header.type == lied && !atomic_exchange(&relay->done, true);
}

static bool send_infinity(struct relay *relay, struct passing *passing) {
    const float infinite = INFINITY;
    if (!is_lied(relay, passing)) return true;
    memcpy(passing->bytes + FRAME_HEADER_BYTES + relay->at, &infinite, sizeof infinite);
    reseal(passing);
    return true;
}

static bool send_twice(struct relay *relay, struct passing *passing) {
    struct error error = {0};
    const struct piece piece = {passing->bytes, FRAME_HEADER_BYTES + (size_t)passing->header.bytes};
    if (is_lied(relay, passing)) endpoint_send(relay->ends[TO_HOST], "it", &piece, 1, LONG_S, &error);
    return true;
}

/* It lives, and nothing comes of it. */
static bool send_heartbeats(struct relay *relay, struct passing *passing) {
    struct error error = {0};
    if (!is_lied(relay, passing)) return true;
    while (error.code == OK && !world_stopped(relay->world)) {
        frame_write(relay->ends[TO_HOST], FRAME_HEARTBEAT, 0, NULL, 0, LONG_S, &error);
        world_sleep(relay->world, 0.02);
    }
    return false;
}

/* Another batch than the worker was told of. */
static bool send_other_weights(struct relay *relay, struct passing *passing) {
    if (passing->way != TO_WORKER || passing->header.type != FRAME_WEIGHTS) return true;
    passing->bytes[FRAME_HEADER_BYTES] ^= 1;
    atomic_store(&relay->done, true);
    reseal(passing);
    return true;
}

/* A number beyond all epochs. */
static bool send_far_batch(struct relay *relay, struct passing *passing) {
    if (passing->way != TO_WORKER || passing->header.type != FRAME_NEXT) return true;
    bytes_put_little(passing->bytes + FRAME_HEADER_BYTES, 8, 900000000000000000u);
    atomic_store(&relay->done, true);
    reseal(passing);
    return true;
}

static void lies(const char *strategy, meddler *change, size_t at, int code, const char *host_says,
                 const char *worker_says) {
    static struct session session;
    struct error error = {0};
    session = (struct session){.relay = {.at = at}};
    CHECK(tree_remove(scratch, &error) == OK, "%s", error.words);
    train(&session, strategy, change);
    const struct error *host = &session.host.error, *worker = &session.worker.error;
    CHECK(atomic_load(&session.relay.done), "%s: nobody lied", strategy);
    CHECK(host->code == code && strstr(host->words, host_says),
          "%s: the host ended with %d: %s, expected %d: %s", strategy, host->code, host->words, code,
          host_says);
    CHECK(worker->code == ERROR_PEER && strstr(worker->words, worker_says),
          "%s: the worker ended with %d: %s, expected %s", strategy, worker->code, worker->words,
          worker_says);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/model.safetensors", scratch);
    CHECK(!file_exists(path), "%s: there is a model of it", strategy);
}

static void check_lies(void) {
    static const char *const ways[] = {"sync", "async-lockfree", "async-lockfree:apply=worker"};
    for (size_t s = 0; s < sizeof ways / sizeof *ways; s++)
        lies(ways[s], send_infinity, LOSS_BYTES + 400, ERROR_DIVERGED,
             "is not finite at step 1 and was not applied", "is not finite");
    lies("local-sgd:every=1", send_infinity, LOSS_BYTES + 400, ERROR_DIVERGED,
         "its own weights are not finite and were not averaged", "are not finite");
    lies("sync", send_twice, 0, ERROR_PEER, "a gradient of batch 0 in step 1, expected batch 1 in step 2",
         "): a gradient of batch 0 in step 1");
    lies("sync", send_other_weights, 0, ERROR_PEER, "weights for batch 1, expected batch 0",
         "weights for batch 1");
    lies("sync", send_far_batch, 0, ERROR_PEER, "which 48 examples do not have", "batch 900000000000000000");
    timeout = "0.6";
    lies("sync", send_heartbeats, 0, ERROR_PEER, ": nothing but heartbeats for 3 s, expected a gradient", "");
    timeout = "10";
}

/* --- frames that come late, in another order, or not at all --- */

/* Longer than a step takes. */
static bool delay(struct relay *relay, struct passing *passing) {
    (void)passing;
    world_sleep(relay->world, 0.02);
    atomic_store(&relay->done, true);
    return true;
}

static bool cut_off(struct relay *relay, struct passing *passing) {
    if (passing->way != relay->way || passing->header.type != (enum frame_type)relay->number) return true;
    atomic_store(&relay->done, true);
    for (int w = 0; w < WAYS; w++) endpoint_interrupt(relay->ends[w]);
    return false;
}

/* The batch's number goes behind the weights. */
static bool reorder(struct relay *relay, struct passing *passing) {
    struct passing *held = &relay->held;
    struct error error = {0};
    if (passing->way != TO_WORKER) return true;
    if (passing->header.type == FRAME_NEXT && !held->bytes) {
        *held = *passing;
        passing->bytes = NULL; /* it is the relay's now */
        return false;
    }
    if (atomic_exchange(&relay->done, held->bytes != NULL) || !held->bytes) return true;
    const struct piece pieces[] = {{passing->bytes, FRAME_HEADER_BYTES + (size_t)passing->header.bytes},
                                   {held->bytes, FRAME_HEADER_BYTES + (size_t)held->header.bytes}};
    endpoint_send(relay->ends[TO_WORKER], "both", pieces, 2, LONG_S, &error);
    return false;
}

static void check_order(uint32_t model) {
    static struct session late;
    late = (struct session){0};
    train(&late, "sync", delay);
    CHECK(late.host.error.code == OK && late.worker.error.code == OK && model_sum() == model, "late: %s, %s",
          late.host.error.words, late.worker.error.words);
    lies("sync", reorder, 0, ERROR_PEER, "weights of ", "weights of ");
    static const struct {
        int way;
        enum frame_type type;
    } cuts[] = {{TO_HOST, FRAME_GRADIENT}, {TO_WORKER, FRAME_WEIGHTS}, {TO_WORKER, FRAME_WELCOME}};
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        static struct session session;
        session = (struct session){.relay = {.way = cuts[c].way, .number = (int)cuts[c].type}};
        train(&session, "sync", cut_off);
        const struct error *host = &session.host.error, *worker = &session.worker.error;
        CHECK(atomic_load(&session.relay.done), "%s: not cut", frame_type_words(cuts[c].type));
        CHECK(host->code == ERROR_PEER && strstr(host->words, "worker 0 (") &&
                  strstr(host->words, "closed by the peer") && worker->code == ERROR_PEER &&
                  strstr(worker->words, "the parameter server 127."),
              "cut off at %s: %s; %s", frame_type_words(cuts[c].type), host->words, worker->words);
    }
}

/* --- gradients that go in parts --- */

static bool lose(struct relay *relay, struct passing *passing) {
    return !is_lied(relay, passing);
}

/* A part of the step before instead of this step's. */
static bool keep_part(struct relay *relay, struct passing *passing) {
    struct passing *held = &relay->held;
    struct error error = {0};
    if (passing->header.type != FRAME_PART || atomic_load(&relay->done)) return true;
    if (!held->bytes) {
        if (memory_array(&held->bytes, FRAME_HEADER_BYTES + (size_t)passing->header.bytes, "a part",
                         &error) == OK)
            memcpy(held->bytes, passing->bytes, FRAME_HEADER_BYTES + (size_t)passing->header.bytes);
        return true;
    }
    memcpy(passing->bytes, held->bytes, FRAME_HEADER_BYTES + (size_t)passing->header.bytes);
    atomic_store(&relay->done, true);
    return true;
}

static void check_parts(void) {
    static struct session whole;
    int n = 0;
    network = "mlp:hidden=1000-300";
    train(&whole, "sync", NULL);
    CHECK(whole.host.error.code == OK && whole.worker.error.code == OK, "%s, %s", whole.host.error.words,
          whole.worker.error.words);
    while (n < whole.relay.counts[TO_HOST] && whole.relay.types[TO_HOST][n] != FRAME_PART) n++;
    CHECK(n < whole.relay.counts[TO_HOST], "no part has gone");
    const size_t places[] = {12, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + LOSS_BYTES + 1000};
    for (size_t f = 0; f < sizeof places / sizeof *places; f++)
        check_byte(TO_HOST, n, places[f], FRAME_PART, model_sum());
    lied = FRAME_PART;
    lies("sync", send_twice, 0, ERROR_PEER, "a part of a gradient of 1213408 bytes, expected at most 260064",
         "): a part of a gradient of 1213408 bytes");
    lies("sync", lose, 0, ERROR_PEER,
         "found a gradient of 260064 bytes, expected a gradient of 1473408 bytes",
         "): found a gradient of 260064 bytes");
    lies("sync", keep_part, 0, ERROR_PEER, "a gradient of batch 0 in step 1, expected batch 1 in step 2",
         "): a gradient of batch 0 in step 1");
    lies("sync", send_infinity, LOSS_BYTES + 400, ERROR_DIVERGED,
         "is not finite at step 1 and was not applied", "is not finite");
    lied = FRAME_GRADIENT;
    network = "softmax";
}

/* --- a session that was recorded --- */

/* Says all of it again to a host, in place of a worker. */
struct again {
    struct world *world;
    struct world_thread *thread;
    const uint8_t *bytes;
    size_t count;
    char words[500];
};

static void again_body(void *argument) {
    struct again *again = argument;
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    static uint8_t payload[1 << 16];
    struct frame_header header;
    const struct piece piece = {again->bytes, again->count};
    if (endpoint_connect(again->world, near_host, &endpoint, LONG_S, &error) != OK) return;
    endpoint_send(endpoint, "a recording", &piece, 1, LONG_S, &error);
    while (frame_read_header(endpoint, "an answer", sizeof payload, &header, LONG_S, &error) == OK &&
           frame_read_payload(endpoint, &header, payload, LONG_S, &error) == OK)
        if (header.type == FRAME_FAILURE)
            snprintf(again->words, sizeof again->words, "%.*s", (int)header.bytes, (const char *)payload);
    endpoint_close(endpoint);
}

/* Its host goes on waiting for one who is there. */
static void check_recording(void) {
    static struct session session;
    static struct again again;
    struct world *world = NULL;
    struct error error = {0};
    uint8_t *bytes = NULL;
    CHECK(memory_array(&bytes, RECORDING_BYTES, "a recording", &error) == OK, "%s", error.words);
    session = (struct session){.relay = {.recording = bytes}};
    train(&session, "sync", NULL);
    again = (struct again){.bytes = bytes, .count = session.relay.recorded};
    CHECK(again.count > 1000 && session.host.error.code == OK, "%zu bytes, %s", again.count,
          session.host.error.words);
    session = (struct session){0};
    open_end(&session.host, "ps", near_host, "sync");
    type(&session.host.typed, "start-timeout", "2");
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    again.world = world;
    CHECK(world_spawn(world, "again", NULL, again_body, &again, &again.thread, &error) == OK, "%s",
          error.words);
    host_body(&session);
    world_join(again.thread);
    CHECK(strstr(again.words, ": a ready of session ") && strstr(again.words, "a recording?"),
          "who said it again heard \"%s\"", again.words);
    CHECK(session.host.error.code == ERROR_PEER &&
              strstr(session.host.error.words, "gave up after 2 s waiting for worker 0"),
          "%d: %s", session.host.error.code, session.host.error.words);
    cluster_free(&session.host.cluster);
    world_close(world);
    memory_free(bytes);
}

/* Any that is free on an address that no other program has. */
static void choose_address(char address[32], unsigned last) {
    struct world *world = NULL;
    struct listener *listener = NULL;
    struct error error = {0};
    const unsigned own = (unsigned)getpid();
    const int used = snprintf(address, 32, "127.%u.%u.%u:", 1 + (own >> 8) % 250, own % 256, last);
    snprintf(address + used, 32 - (size_t)used, "0");
    CHECK(world_open_threads(&world, &error) == OK &&
              endpoint_listen(world, address, &listener, &error) == OK,
          "%s", error.words);
    if (error.code != OK) exit(check_end());
    snprintf(address + used, 32 - (size_t)used, "%d", listener_port(listener));
    listener_close(listener);
    world_close(world);
}

int main(int count, char **arguments) {
    if (!mkdtemp(scratch)) return 1;
    choose_address(near_host, 1);
    choose_address(between, 2);
    const uint32_t model = check_bytes(count > 1 ? (size_t)atol(arguments[1]) : 0);
    check_order(model);
    check_lies();
    check_parts();
    check_recording();
    struct error error = {0};
    CHECK(tree_remove(scratch, &error) == OK, "%s", error.words);
    return check_end();
}
