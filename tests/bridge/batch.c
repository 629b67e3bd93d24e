/* Weights and gradients that move while a worker computes, between a worker and two hosts, all on this
 * machine: the worker goes on with what has come and no further; parts of the gradient are there before the
 * answer is; all of it arrives exactly. What is damaged is found before anything of it goes back. A host that
 * is sent parts out of turn says so, and takes none of them. */
#include <math.h>

#include "../played_hosts.h"

#include <string.h>

#include "../../src/base/memory.h"
#include "../../src/bridge/host.h"
#include "../../src/world/endpoint_parts.h"

enum { HOSTS = 2, MIDDLE = 300000, ALL = 3500000 /* more than a kernel holds */, ROUNDS = 3, CHUNK = 500000 };

static const size_t ends_of[HOSTS + 1] = {0, MIDDLE, ALL};

/* A worker's end, without a meeting; and the hosts' ends. */
struct both {
    struct remote remote;
    struct remote_host hosts[HOSTS];
    struct transfer transfers[HOSTS], sends[HOSTS];
    struct remote_settings settings;
    struct addresses addresses;
    struct address list[HOSTS];
    struct host host[HOSTS];
    struct peer peers[HOSTS];
    float *weights, *sent, *gradient, *taken; /* [ALL] the worker's, then the hosts' */
};

static float *floats_of(uint64_t seed) {
    float *all = NULL;
    struct error error = {0};
    CHECK(memory_array(&all, ALL, "floats", &error) == OK, "%s", error.words);
    for (int i = 0; all && i < ALL; i++) all[i] = (float)((uint64_t)i * 31 % 1009 + seed) / 512.0f;
    return all;
}

static void open_both(struct both *both) {
    memset(both, 0, sizeof *both);
    both->addresses = (struct addresses){.list = both->list, .count = HOSTS};
    both->settings = (struct remote_settings){.world = world, .hosts = &both->addresses};
    both->remote = (struct remote){.settings = both->settings,
                                   .world = world,
                                   .hosts = both->hosts,
                                   .transfers = both->transfers,
                                   .sends = both->sends,
                                   .count = HOSTS,
                                   .server = "server",
                                   .timeout_s = LONG_S,
                                   .beat_s = LONG_S,
                                   .number = 7};
    for (int h = 0; h < HOSTS; h++) {
        struct endpoint *ends[2];
        open_wire(ends);
        both->hosts[h].endpoint = ends[0];
        both->hosts[h].welcome =
            (struct welcome){.workers = 1, .root = -1, .begin = ends_of[h], .end = ends_of[h + 1]};
        both->peers[h] = (struct peer){.endpoint = ends[1], .name = "it"};
        both->host[h] = (struct host){.settings = {.world = world}, .peers = &both->peers[h], .count = 1};
    }
    both->sent = floats_of(1);
    both->weights = floats_of(2);
    both->gradient = floats_of(3);
    both->taken = floats_of(4);
    CHECK(remote_may_overlap(&both->remote, OVERLAP_ON), "it pays");
    remote_overlap(&both->remote, both->gradient);
}

static void close_both(struct both *both) {
    for (int h = 0; h < HOSTS; h++) {
        endpoint_close(both->hosts[h].endpoint);
        endpoint_close(both->peers[h].endpoint);
    }
    float *const all[] = {both->weights, both->sent, both->gradient, both->taken};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) memory_free(all[i]);
}

/* --- both ends as they are --- */

struct computing {
    struct both *both;
    int index;
    struct request request;
    float loss;
    struct error error;
};

static void compute_body(void *argument) {
    struct computing *computing = argument;
    struct both *both = computing->both;
    const size_t begin = ends_of[computing->index], floats = ends_of[computing->index + 1] - begin;
    peer_compute(&both->host[computing->index], &both->peers[computing->index], &computing->request,
                 both->sent + begin, both->taken + begin, &computing->loss, floats, LONG_S,
                 &computing->error);
}

static void expect_floats(const float *found, const float *expected, size_t begin, size_t end,
                          const char *words) {
    CHECK(memcmp(found + begin, expected + begin, (end - begin) * sizeof *found) == 0, "%s: others", words);
}

static void wait_until(struct endpoint *endpoint, long long received) {
    const double until = world_now(world) + LONG_S;
    while (endpoint_received(endpoint) < received && world_now(world) < until) world_sleep(world, 1e-3);
    CHECK(endpoint_received(endpoint) >= received, "%lld bytes, expected %lld", endpoint_received(endpoint),
          received);
}

static void check_rounds(void) {
    static struct both both;
    struct error error = {0};
    open_both(&both);
    for (int round = 0; round < ROUNDS; round++) {
        static struct computing hosts[HOSTS];
        struct world_thread *threads[HOSTS];
        struct request request;
        struct finish finish;
        bool over = false;
        long long before[HOSTS];
        for (int i = 0; i < ALL; i++) {
            both.sent[i] += 1.0f;
            both.gradient[i] -= 1.0f;
            both.weights[i] = both.taken[i] = NAN;
        }
        for (int h = 0; h < HOSTS; h++) {
            before[h] = endpoint_received(both.peers[h].endpoint);
            hosts[h] = (struct computing){
                .both = &both, .index = h, .request = {.number = 7, .step = 1 + round, .version = 3}};
            CHECK(world_spawn(world, "host", NULL, compute_body, &hosts[h], &threads[h], &error) == OK, "%s",
                  error.words);
        }
        struct remote *remote = &both.remote;
        CHECK(remote_weights(remote, &request, both.weights, &over, &finish, &error) == OK && !over &&
                  request.step == 1 + round && request.version == 3,
              "%s", error.words);
        static const size_t untils[] = {1, 1000, MIDDLE - 1, MIDDLE, MIDDLE + 1, ALL};
        for (size_t i = 0; i < sizeof untils / sizeof *untils && error.code == OK; i++) {
            CHECK(remote_step(remote, untils[i], ALL, &error) == OK, "%s", error.words);
            expect_floats(both.weights, both.sent, 0, untils[i], "weights");
        }
        /* The last host gets a part at once, which is as good as all of its slice, and the first one some. */
        const size_t froms[] = {ALL - 10, MIDDLE + 10, MIDDLE, MIDDLE - 100000, MIDDLE - 100010};
        for (size_t i = 0; i < sizeof froms / sizeof *froms && error.code == OK; i++)
            CHECK(remote_step(remote, ALL, froms[i], &error) == OK, "%s", error.words);
        const long long most = (ALL - MIDDLE - 10) * (long long)sizeof(float),
                        some = 100000LL * sizeof(float);
        for (int i = 0; i < 100 && error.code == OK; i++) { /* as more of the gradient is computed */
            CHECK(remote_step(remote, ALL, MIDDLE - 100010, &error) == OK, "%s", error.words);
            world_sleep(world, 1e-3);
        }
        wait_until(both.peers[0].endpoint, before[0] + some);
        wait_until(both.peers[1].endpoint, before[1] + most);
        CHECK(both.hosts[0].part == 1 && both.hosts[1].part == 1, "%u and %u parts", both.hosts[0].part,
              both.hosts[1].part);
        CHECK(both.hosts[0].left == MIDDLE - 100000 && both.hosts[1].left == 10, "%zu and %zu are left",
              both.hosts[0].left, both.hosts[1].left);
        CHECK(remote_answer(remote, &(struct answer){.loss = 0.25f}, both.gradient, false, &error) == OK,
              "%s", error.words);
        for (int h = 0; h < HOSTS; h++) {
            world_join(threads[h]);
            CHECK(hosts[h].error.code == OK && hosts[h].loss == 0.25f, "%s", hosts[h].error.words);
        }
        expect_floats(both.taken, both.gradient, 0, ALL, "the gradient");
    }
    close_both(&both);
}

/* Few weights, or none that leave the machine. */
static void check_may(void) {
    static struct both both;
    open_both(&both);
    both.hosts[1].welcome.end = (1 << 18) - 1;
    CHECK(!remote_may_overlap(&both.remote, OVERLAP_ON), "few weights");
    both.hosts[1].welcome.end++;
    CHECK(remote_may_overlap(&both.remote, OVERLAP_ON), "enough weights");
    CHECK(!remote_may_overlap(&both.remote, OVERLAP_AUTO), "on this machine");
    CHECK(!remote_may_overlap(&both.remote, OVERLAP_OFF), "off");
    both.hosts[1].endpoint->loopback = false;
    CHECK(remote_may_overlap(&both.remote, OVERLAP_AUTO), "to another machine");
    CHECK(!remote_may_overlap(&both.remote, OVERLAP_OFF), "off, to another machine");
    close_both(&both);
}

/* --- a host that is played --- */

/* The frame of a host's weights: memory_free its bytes. */
static uint8_t *frame_of(const struct both *both, int h, size_t *bytes) {
    const size_t slice = (ends_of[h + 1] - ends_of[h]) * sizeof(float);
    const struct request request = {.number = 7, .step = 1};
    struct error error = {0};
    uint8_t *all = NULL;
    *bytes = FRAME_HEADER_BYTES + REQUEST_BYTES + slice;
    CHECK(memory_array(&all, *bytes, "a frame", &error) == OK, "%s", error.words);
    request_put(&request, all + FRAME_HEADER_BYTES);
    memcpy(all + FRAME_HEADER_BYTES + REQUEST_BYTES, both->sent + ends_of[h], slice);
    const struct piece piece = {all + FRAME_HEADER_BYTES, *bytes - FRAME_HEADER_BYTES};
    struct frame_header header = {.type = FRAME_WEIGHTS};
    frame_seal(&header, both->hosts[h].endpoint, &piece, 1);
    frame_pack_header(all, &header);
    return all;
}

static void send_bytes(struct both *both, int h, const uint8_t *bytes, size_t begin, size_t end) {
    struct error error = {0};
    const struct piece piece = {bytes + begin, end - begin};
    CHECK(endpoint_send(both->peers[h].endpoint, "bytes", &piece, 1, LONG_S, &error) == OK, "%s",
          error.words);
}

/* The next frames of the worker to a host are a part and one of this type. */
static void expect_behind_part(struct both *both, int h, enum frame_type type) {
    struct error error = {0};
    struct frame_header header;
    for (int i = 0; i < 2 && error.code == OK; i++) {
        uint8_t *payload = NULL;
        CHECK(frame_read_header(both->peers[h].endpoint, "a frame", 1 << 24, &header, LONG_S, &error) == OK &&
                  memory_array(&payload, (size_t)header.bytes + 1, "a payload", &error) == OK &&
                  frame_read_payload(both->peers[h].endpoint, &header, payload, LONG_S, &error) == OK,
              "%s", error.words);
        CHECK(header.type == (i == 0 ? FRAME_PART : type), "%s", frame_type_words(header.type));
        memory_free(payload);
    }
}

/* What is played, after the first weights of each host have come. */
enum hosts_do {
    ANSWERED, /* all is well, but the second host takes nothing any more */
    FAILED,   /* likewise, and the worker fails */
    DAMAGED,  /* a bit of the last weight has changed: the worker sends nothing */
    SILENT,   /* no more comes */
    ENDED,    /* the second one goes; the first one says why, behind its weights */
    HOSTS_DO
};

static void end_hosts(struct both *both, uint8_t *const *bytes, const size_t *counts, size_t some) {
    struct error error = {0};
    const struct piece words = {"the disk is full", 16};
    send_bytes(both, 0, bytes[0], some, counts[0]);
    CHECK(frame_write(both->peers[0].endpoint, FRAME_FAILURE, 0, &words, 1, LONG_S, &error) == OK, "%s",
          error.words);
    endpoint_close(both->peers[1].endpoint);
    both->peers[1].endpoint = NULL;
    CHECK(remote_step(&both->remote, 1001, ALL, &error) == ERROR_PEER &&
              strstr(error.words, "refuses: the disk is full"),
          "%s", error.words);
}

/* All weights come, and parts of the gradient go. */
static void send_rest(struct both *both, uint8_t *const *bytes, const size_t *counts, size_t some,
                      bool damaged) {
    struct error error = {0};
    bool ended = false;
    uint8_t byte;
    send_bytes(both, 0, bytes[0], some, counts[0]);
    CHECK(remote_step(&both->remote, MIDDLE, 0, &error) == OK, "%s", error.words);
    expect_floats(both->weights, both->sent, 0, MIDDLE, "a slice");
    CHECK(endpoint_peek(both->peers[0].endpoint, &byte, 1, 0.05, &ended) == 0,
          "a part before all weights are right");
    for (size_t at = some; at < counts[1]; at += CHUNK) {
        send_bytes(both, 1, bytes[1], at, at + CHUNK < counts[1] ? at + CHUNK : counts[1]);
        if (at + CHUNK < counts[1])
            CHECK(remote_step(&both->remote, MIDDLE, 0, &error) == OK, "%s", error.words);
    }
    const int code = remote_step(&both->remote, ALL, 0, &error);
    CHECK(damaged ? code == ERROR_PEER && strstr(error.words, "weights arrived damaged") != NULL : code == OK,
          "%s", error.words);
    CHECK((endpoint_peek(both->peers[0].endpoint, &byte, 1, damaged ? 0.05 : LONG_S, &ended) == 0) == damaged,
          "a part, damaged %d", damaged);
}

static void check_played(enum hosts_do what) {
    static struct both both;
    struct error error = {0};
    struct request request;
    struct finish finish;
    uint8_t *bytes[HOSTS];
    size_t counts[HOSTS];
    bool over = false;
    open_both(&both);
    for (int h = 0; h < HOSTS; h++) bytes[h] = frame_of(&both, h, &counts[h]);
    if (what == DAMAGED) bytes[1][counts[1] - 1] ^= 1;
    const size_t some = FRAME_HEADER_BYTES + REQUEST_BYTES + 4000;
    for (int h = 0; h < HOSTS; h++) send_bytes(&both, h, bytes[h], 0, some);
    CHECK(remote_weights(&both.remote, &request, both.weights, &over, &finish, &error) == OK && !over, "%s",
          error.words);
    CHECK(remote_step(&both.remote, 1000, ALL, &error) == OK, "%s", error.words);
    expect_floats(both.weights, both.sent, 0, 1000, "the first weights");
    if (what == ENDED) end_hosts(&both, bytes, counts, some);
    if (what < SILENT) send_rest(&both, bytes, counts, some, what == DAMAGED);
    both.remote.timeout_s = 0.05;
    if (what == SILENT)
        CHECK(remote_step(&both.remote, 1001, ALL, &error) == ERROR_PEER &&
                  strstr(error.words, "only 4000 of 4004 bytes of weights") &&
                  both.remote.moved_s >= both.remote.timeout_s,
              "%s", error.words);
    if (what == ANSWERED) { /* the first host does not wait for the second */
        CHECK(remote_answer(&both.remote, &(struct answer){0}, both.gradient, false, &error) == ERROR_PEER &&
                  strstr(error.words, "bytes of a part of a gradient, then none for 0.05 s"),
              "%s", error.words);
        expect_behind_part(&both, 0, FRAME_GRADIENT);
    }
    if (what == FAILED) {
        remote_fail(&both.remote, &(struct error){.code = ERROR_DEVICE, .words = "it is ill"});
        expect_behind_part(&both, 0, FRAME_FAILURE);
    }
    for (int h = 0; h < HOSTS; h++) memory_free(bytes[h]);
    close_both(&both);
}

/* --- a worker that is played --- */

enum { PART = PART_BYTES / (int)sizeof(float), FEW = 8 * PART + 100 };

struct part {
    enum frame_type type;
    uint32_t flags;
    size_t bytes; /* of numbers */
    long step;    /* that it answers */
};

/* The first frames of an answer to step 1 with FEW floats, and what the host makes of them. */
static void expect_parts(const struct part *parts, int count, bool sums, const char *words) {
    static struct peer peer;
    static struct host host;
    static float weights[FEW], gradient[FEW], numbers[2 * FEW];
    const struct request request = {.number = 7, .step = 1};
    struct endpoint *ends[2];
    struct error error = {0};
    float loss = 0.0f;
    open_wire(ends);
    peer = (struct peer){.endpoint = ends[1], .name = "it", .sums = sums};
    host = (struct host){.settings = {.world = world}, .peers = &peer, .count = 1};
    for (int i = 0; i < FEW; i++) gradient[i] = 5.0f;
    for (int i = 0, at = FEW; i < count; i++) {
        const struct request answered = {.number = 7, .step = parts[i].step};
        uint8_t asked[REQUEST_BYTES], answer[LOSS_BYTES];
        at -= (int)(parts[i].bytes / sizeof(float));
        for (int f = 0; f < FEW; f++) numbers[f] = (float)(at + f);
        request_put(&answered, asked);
        answer_put(&(struct answer){0}, asked, answer);
        const struct piece pieces[] = {{answer, sizeof answer}, {numbers, parts[i].bytes}};
        const struct piece failure = {"it is ill", 9};
        CHECK(frame_write(ends[0], parts[i].type, parts[i].flags,
                          parts[i].type == FRAME_FAILURE ? &failure : pieces,
                          parts[i].type == FRAME_FAILURE ? 1 : 2, LONG_S, &error) == OK,
              "%s", error.words);
    }
    const int code = peer_compute(&host, &peer, &request, weights, gradient, &loss, FEW, 1.0, &error);
    CHECK(words ? code == ERROR_PEER && strstr(error.words, words) != NULL : code == OK, "%s, expected %s",
          error.words, words ? words : "none");
    for (int i = 0; i < FEW && !words; i++)
        CHECK(gradient[i] == (float)i, "gradient[%d] is %g", i, (double)gradient[i]);
    for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
}

static void check_parts(void) {
    const size_t part = PART_BYTES, all = FEW * sizeof(float), rest = all - 2 * part;
    const struct part good[] = {
        {FRAME_PART, 1, part, 1}, {FRAME_PART, 2, part, 1}, {FRAME_GRADIENT, 0, rest, 1}};
    expect_parts(good, 3, false, NULL);
    const struct part none[] = {{FRAME_PART, 1, all, 1}, {FRAME_GRADIENT, 0, 0, 1}};
    expect_parts(none, 2, false, NULL);
    const struct part twice[] = {{FRAME_PART, 1, part, 1}, {FRAME_PART, 1, part, 1}};
    expect_parts(twice, 2, false, "part 1 of a gradient, expected part 2");
    const struct part swapped[] = {{FRAME_PART, 2, part, 1}, {FRAME_PART, 1, part, 1}};
    expect_parts(swapped, 2, false, "part 2 of a gradient, expected part 1");
    const struct part lost[] = {{FRAME_PART, 1, part, 1}, {FRAME_GRADIENT, 0, rest, 1}};
    expect_parts(lost, 2, false, "found a gradient of 1573328 bytes, expected a gradient of 1835472 bytes");
    const struct part stale[] = {{FRAME_PART, 1, part, 2}};
    expect_parts(stale, 1, false, "a gradient of batch 7 in step 2, expected batch 7 in step 1");
    /* In small parts a worker could keep all others waiting. */
    const struct part odd[] = {{FRAME_PART, 1, part + 1, 1}}, small[] = {{FRAME_PART, 1, part - 4, 1}},
                      much[] = {{FRAME_PART, 1, part, 1}, {FRAME_PART, 2, all, 1}};
    expect_parts(odd, 1, false, "part 1 of a gradient has 262209 bytes, expected 64 and whole numbers");
    expect_parts(small, 1, false,
                 "part 1 of a gradient has 262204 bytes, expected 64 and whole numbers, 262144");
    expect_parts(much, 2, false, "a part of a gradient of 2097616 bytes, expected at most 1835472");
    expect_parts(good, 3, true, "part 1 of a gradient, expected none");
    const struct part ill[] = {{FRAME_PART, 1, part, 1}, {FRAME_FAILURE, 0, 0, 1}};
    expect_parts(ill, 2, false, "it: it is ill");
    expect_parts(good, 1, false, "no byte of a gradient for 1 s");
}

int main(void) {
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (!world) return check_end();
    endpoint_keep_to_tcp(world); /* where frames have checksums, and it pays */
    check_rounds();
    check_may();
    for (enum hosts_do what = ANSWERED; what < HOSTS_DO; what++) check_played(what);
    check_parts();
    world_close(world);
    return check_end();
}
