/* Hosts and their workers over real connections, where a run would show a fault only by chance: what a
 * follower hands over, slices that do not make one vector, who is told that a worker still waits, and that it
 * is ready, and whose words are believed when one has ended, or none; and that a worker which is turned away
 * comes again. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>
#include "../../src/bridge/lead.h"
#include "../../src/bridge/remote.h"
#include "../../src/cluster/members.h"

#define LONG_S 20.0

enum { FLOATS = 64, CUT = 32, WORKERS = 2, SHARDS = 2 };

static struct world *world;

static struct listener *open_listener(struct address *address) {
    struct listener *listener = NULL;
    struct error error = {0};
    CHECK(endpoint_listen(world, "127.0.0.1:0", &listener, &error) == OK, "%s", error.words);
    if (!listener) exit(check_end());
    snprintf(address->text, sizeof address->text, "127.0.0.1:%d", listener_port(listener));
    return listener;
}

static struct endpoint *let_in(struct listener *listener) {
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    CHECK(listener_accept(listener, &endpoint, LONG_S, &error) == OK && endpoint, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static void open_wire(struct endpoint *ends[2]) {
    struct address address;
    struct error error = {0};
    struct listener *listener = open_listener(&address);
    CHECK(endpoint_connect(world, address.text, &ends[0], LONG_S, &error) == OK, "%s", error.words);
    if (!ends[0]) exit(check_end());
    ends[1] = let_in(listener);
    listener_close(listener);
}

/* --- a fetch --- */

/* A parameter server with no more of a store than is handed over. */
struct side {
    struct follower follower;
    struct member members[WORKERS];
    struct roster roster;
    float weights[FLOATS], moment[FLOATS], average[FLOATS];
    struct device processor;
    struct home home;
    struct shard shards[SHARDS];
    struct tally tallies[SHARDS][WORKERS];
    double witness[SHARDS];
    struct store store;
    struct crew_site site;
    struct peer peers[WORKERS];
    struct members members_of;
};

static void open_side(struct side *side, float first) {
    struct error error = {0};
    memset(side, 0, sizeof *side);
    side->members_of.host.count = WORKERS;
    side->roster.members = side->members;
    for (int w = 0; w < WORKERS; w++) atomic_store(&side->members[w].active, true);
    for (int i = 0; i < FLOATS; i++) {
        side->weights[i] = first + (float)i;
        side->moment[i] = -side->weights[i];
        side->average[i] = 2.0f * side->weights[i];
    }
    side->roster.workers = WORKERS;
    side->store.settings.shards = SHARDS;
    side->store.settings.roster = &side->roster;
    side->store.weights = side->weights;
    side->store.host = (struct state){
        .count = 3, .vector = {{"", side->weights}, {"momentum", side->moment}, {"average", side->average}}};
    side->store.kept = side->store.host;
    side->processor = device_processor();
    side->home.device = &side->processor;
    side->store.shards = side->shards;
    for (int s = 0; s < SHARDS; s++) {
        side->shards[s].tallies = side->tallies[s];
        side->shards[s].witness = &side->witness[s];
        side->shards[s].home = &side->home;
    }
    static const struct traits traits = {.rounds = false};
    side->site = (struct crew_site){.store = &side->store, .roster = &side->roster, .traits = &traits};
    side->members_of.host.settings = (struct host_settings){.world = world, .timeout_s = LONG_S};
    side->members_of.site = &side->site;
    side->members_of.host.peers = side->peers;
    side->members_of.timeout_s = side->members_of.fetch_s = LONG_S;
    CHECK(memory_array(&side->members_of.far, WORKERS, "tallies", &error) == OK, "%s", error.words);
}

static void count(struct side *side) {
    for (int s = 0; s < SHARDS; s++) {
        atomic_store(&side->shards[s].version, 40 + s);
        atomic_store(&side->shards[s].racy_updates, 100);
        side->witness[s] = 100.0 - (s + 1); /* 3 were lost */
        for (int w = 0; w < WORKERS; w++) {
            struct tally *tally = &side->tallies[s][w];
            tally->updates = 10 * (w + 1);
            tally->dropped = w + 1;
            tally->staleness_sum = 5 * (w + 1);
            tally->staleness_max = 3 + s + w;
            tally->staleness[0] = 7;
            tally->staleness[STALENESS_BINS - 1] = 2 + w;
        }
    }
}

static void check_far(const struct side *leader) {
    for (int w = 0; w < WORKERS; w++) {
        const struct tally *far = &leader->members_of.far[w];
        CHECK(far->updates == 20 * (w + 1) && far->dropped == 2 * (w + 1),
              "worker %d: %ld updates, %ld dropped", w, far->updates, far->dropped);
        CHECK(far->staleness_sum == 10.0 * (w + 1) && far->staleness_max == 4 + w, "worker %d: %g, %ld", w,
              far->staleness_sum, far->staleness_max);
        CHECK(far->staleness[0] == 14 && far->staleness[STALENESS_BINS - 1] == 4 + 2 * w, "worker %d", w);
    }
    CHECK(leader->members_of.far_lost_updates == 3, "%ld lost updates", leader->members_of.far_lost_updates);
}

static void check_fetch(void) {
    static struct side leader, follower;
    const struct cluster cluster = {0};
    const struct members_settings settings = {.cluster = &cluster};
    const struct crew crew = members_crew(&settings);
    struct endpoint *ends[2];
    struct error error = {0};
    open_wire(ends);
    open_side(&leader, 1000.0f);
    open_side(&follower, 5000.0f);
    leader.members_of.host.followers = &leader.follower;
    leader.members_of.host.follower_count = 1;
    leader.follower = (struct follower){.endpoint = ends[0], .name = "it", .begin = CUT, .end = FLOATS};
    follower.members_of.host.leader = ends[1];
    follower.store.begin = CUT, follower.store.end = FLOATS;
    count(&follower);
    for (int turn = 0; turn < 2; turn++) { /* counts are those so far, not those since */
        uint8_t lost[WORKERS] = {9, 9};
        struct frame_header header;
        atomic_store(&leader.members[1].active, turn == 0);
        atomic_store(&follower.members[0].active, turn == 0); /* lost, */
        atomic_store(&follower.members[1].active, turn == 0); /* left */
        follower.peers[1].left = turn == 1;
        const uint64_t fetch = ++follower.members_of.fetched;
        CHECK(members_answer(&follower.members_of, &error) == OK, "%s", error.words);
        CHECK(crew.fetch(&leader.members_of, &error) == OK, "%s", error.words);
        check_far(&leader);
        CHECK(crew.lost(&leader.members_of, 0) == (turn == 1) && !crew.lost(&leader.members_of, 1),
              "turn %d: lost there: %d, %d", turn, leader.members_of.host.peers[0].lost_there,
              leader.members_of.host.peers[1].lost_there);
        CHECK(frame_read_header(ends[1], "a fetch", 8 + WORKERS, &header, LONG_S, &error) == OK &&
                  turn_receive(ends[1], &header, FRAME_FETCH, fetch, lost, WORKERS, LONG_S, &error) == OK,
              "%s", error.words);
        CHECK(lost[0] == 0 && lost[1] == turn, "who is lost: %d, %d", lost[0], lost[1]);
    }
    for (int i = 0; i < FLOATS; i++) {
        const float expected = i < CUT ? 1000.0f + (float)i : 5000.0f + (float)i;
        CHECK(leader.weights[i] == expected && leader.moment[i] == -expected &&
                  leader.average[i] == 2.0f * expected,
              "float %d: %g, %g, %g", i, (double)leader.weights[i], (double)leader.moment[i],
              (double)leader.average[i]);
    }
    memory_free(leader.members_of.far);
    memory_free(follower.members_of.far);
    for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
}

/* --- slices that do not make one vector --- */

static void send_welcome(struct endpoint *endpoint, const struct welcome *welcome) {
    uint8_t bytes[WELCOME_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    CHECK(welcome_put(welcome, &writer, &error) == OK, "%s", error.words);
    const struct piece piece = {bytes, writer.used};
    CHECK(frame_write(endpoint, FRAME_WELCOME, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
}

static void send_settings(struct endpoint *endpoint, const char *workers) {
    static struct config config;
    uint8_t bytes[SETTINGS_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    option_defaults(config_options, &config);
    snprintf(config.workers, sizeof config.workers, "%s", workers);
    CHECK(settings_put(&config, &writer, &error) == OK, "%s", error.words);
    const struct piece piece = {bytes, writer.used};
    CHECK(frame_write(endpoint, FRAME_CONFIG, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
}

/* What the leader, which calls itself so, makes of a follower's to process 0. */
static void leader_takes(struct welcome theirs, uint64_t process, const char *words) {
    const struct welcome own = {.begin = 0, .end = CUT};
    const struct cluster cluster = {.process = process};
    static const struct fingerprint fingerprint = {.floats = FLOATS};
    struct follower follower = {.name = "it"};
    static struct host host;
    host = (struct host){.settings = {.world = world,
                                      .cluster = &cluster,
                                      .fingerprint = &fingerprint,
                                      .start_s = LONG_S,
                                      .timeout_s = LONG_S},
                         .followers = &follower,
                         .follower_count = 1};
    struct endpoint *ends[2];
    struct error error = {0};
    open_wire(ends);
    follower.endpoint = ends[0];
    send_welcome(ends[1], &theirs);
    const int code = host_welcome(&host, &own, &error);
    CHECK(words ? code == ERROR_PEER && strcmp(error.words, words) == 0 : code == OK, "%d: %s", code,
          error.words);
    for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
}

static void check_leader(void) {
    leader_takes((struct welcome){.begin = CUT, .end = FLOATS}, 0, NULL);
    leader_takes((struct welcome){.begin = CUT, .end = FLOATS}, 0x1234,
                 "it: a welcome of process 00000000, expected 00001234: a recording?");
    leader_takes((struct welcome){.begin = CUT, .end = FLOATS, .workers = 1}, 0,
                 "it has floats 32 to 64 of 64 for 1 workers, expected from 32 for 0");
    leader_takes((struct welcome){.begin = 48, .end = FLOATS}, 0,
                 "it has floats 48 to 64 of 64 for 0 workers, expected from 32 for 0");
    leader_takes((struct welcome){.begin = CUT, .end = CUT}, 0,
                 "it has floats 32 to 32 of 64 for 0 workers, expected from 32 for 0");
    leader_takes((struct welcome){.begin = CUT, .end = FLOATS + 16}, 0,
                 "it has floats 32 to 80 of 64 for 0 workers, expected from 32 for 0");
}

/* A worker on a thread of its own, at two hosts that are played here. */
struct worker {
    struct listener *listeners[2];
    struct address list[2];
    struct addresses addresses;
    struct endpoint *hosts[2];
    struct remote remote;
    struct world_thread *thread;
    struct error error;
    double builds_s;
};

static void say_nothing(void *argument, const char *words) {
    (void)argument, (void)words;
}

static void worker_body(void *argument) {
    struct worker *worker = argument;
    static const struct hello hello = {.devices = 1};
    const struct fingerprint fingerprint = {.floats = FLOATS};
    const struct remote_settings settings = {.world = world,
                                             .hosts = &worker->addresses,
                                             .server = "parameter server",
                                             .hello = &hello,
                                             .start_s = LONG_S,
                                             .timeout_s = 1.0,
                                             .beat_s = 0.3,
                                             .say = say_nothing};
    if (remote_open(&worker->remote, &settings, &worker->error) != OK) return;
    world_sleep(world, worker->builds_s);
    remote_ready(&worker->remote, &fingerprint, &worker->error);
}

static const struct welcome halves[2] = {{.workers = 1, .begin = 0, .end = CUT},
                                         {.workers = 1, .begin = CUT, .end = FLOATS}};

/* At two hosts, which have its hellos. */
static void begin_worker(struct worker *worker, double builds_s) {
    struct error error = {0};
    memset(worker, 0, sizeof *worker);
    worker->builds_s = builds_s;
    worker->addresses = (struct addresses){.list = worker->list, .count = 2};
    for (int h = 0; h < 2; h++) worker->listeners[h] = open_listener(&worker->list[h]);
    CHECK(world_spawn(world, "worker", NULL, worker_body, worker, &worker->thread, &error) == OK, "%s",
          error.words);
    for (int h = 0; h < 2; h++) {
        uint8_t bytes[HELLO_BYTES];
        struct frame_header header;
        worker->hosts[h] = let_in(worker->listeners[h]);
        CHECK(frame_read_header(worker->hosts[h], "a hello", sizeof bytes, &header, LONG_S, &error) == OK &&
                  frame_read_payload(worker->hosts[h], &header, bytes, LONG_S, &error) == OK,
              "%s", error.words);
    }
}

/* The next word that is more than a sign of life; FRAME_NONE: there is none for so long. */
static enum frame_type next_word(struct endpoint *endpoint, int *beats, double seconds) {
    const double until = world_now(world) + seconds;
    while (world_now(world) < until) {
        uint8_t bytes[READY_BYTES], byte;
        struct frame_header header;
        struct error error = {0};
        if (endpoint_peek(endpoint, &byte, 1, until - world_now(world), &(bool){false}) == 0) break;
        CHECK(frame_read_header(endpoint, "a word", sizeof bytes, &header, LONG_S, &error) == OK &&
                  frame_read_payload(endpoint, &header, bytes, LONG_S, &error) == OK,
              "%s", error.words);
        if (error.code != OK) break;
        if (header.type != FRAME_HEARTBEAT) return header.type;
        ++*beats;
    }
    return FRAME_NONE;
}

/* Returns how many heartbeats the first host has had before the worker was ready. */
static int open_slow_worker(struct worker *worker, const struct welcome *welcomes, double builds_s) {
    int beats[2] = {0};
    begin_worker(worker, builds_s);
    for (int h = 0; h < 2; h++) send_settings(worker->hosts[h], "all");
    for (int h = 0; h < 2; h++) {
        CHECK(next_word(worker->hosts[h], &beats[h], LONG_S) == FRAME_READY, "host %d: not ready", h);
        send_welcome(worker->hosts[h], &welcomes[h]);
    }
    world_join(worker->thread);
    return beats[0];
}

static void open_worker(struct worker *worker, const struct welcome *welcomes) {
    open_slow_worker(worker, welcomes, 0.0);
}

static void close_worker(struct worker *worker) {
    remote_close(&worker->remote);
    for (int h = 0; h < 2; h++) endpoint_close(worker->hosts[h]), listener_close(worker->listeners[h]);
}

/* The second host has not let it in yet: the leader hears that it is ready, but where it may join a training,
 * which it could begin without that host. */
static void leader_hears(const char *workers, bool at_once) {
    static struct worker worker;
    int beats = 0;
    begin_worker(&worker, 0.0);
    send_settings(worker.hosts[0], workers);
    const enum frame_type first = next_word(worker.hosts[0], &beats, 0.5);
    CHECK(first == (at_once ? FRAME_READY : FRAME_NONE), "--workers=%s: the leader was told %s", workers,
          frame_type_words(first));
    send_settings(worker.hosts[1], workers);
    for (int h = at_once ? 1 : 0; h < 2; h++)
        CHECK(next_word(worker.hosts[h], &beats, LONG_S) == FRAME_READY, "--workers=%s, host %d: not ready",
              workers, h);
    for (int h = 0; h < 2; h++) send_welcome(worker.hosts[h], &halves[h]);
    world_join(worker.thread);
    CHECK(worker.error.code == OK, "%s", worker.error.words);
    close_worker(&worker);
}

/* What a worker makes of the second host's. */
static void worker_takes(struct welcome theirs, const char *words) {
    static struct worker worker;
    const struct welcome welcomes[2] = {halves[0], theirs};
    open_worker(&worker, welcomes);
    CHECK(words ? worker.error.code == ERROR_PEER && strstr(worker.error.words, words)
                : worker.error.code == OK,
          "\"%s\", expected \"%s\"", worker.error.words, words ? words : "");
    close_worker(&worker);
}

/* What it makes of a place that both hosts give it. */
static void worker_is_welcomed(struct welcome place, const char *words) {
    static struct worker worker;
    struct welcome welcomes[2] = {place, place};
    welcomes[0].end = welcomes[1].begin = CUT;
    welcomes[1].end = FLOATS;
    open_worker(&worker, welcomes);
    CHECK(worker.error.code == ERROR_PEER && strstr(worker.error.words, words), "\"%s\", expected \"%s\"",
          worker.error.words, words);
    close_worker(&worker);
}

static void check_slices(void) {
    worker_takes(halves[1], NULL);
    worker_takes((struct welcome){.workers = 1, .begin = 48, .end = FLOATS},
                 "has floats 48 to 64 of 64 for worker 0 of 1, expected from 32 for worker 0 of 1");
    worker_takes((struct welcome){.workers = 1, .begin = 16, .end = FLOATS}, "has floats 16 to 64 of 64");
    worker_takes((struct welcome){.workers = 1, .begin = CUT, .end = CUT}, "has floats 32 to 32 of 64");
    worker_takes((struct welcome){.workers = 1, .begin = CUT, .end = 80}, "has floats 32 to 80 of 64");
    worker_takes((struct welcome){.workers = 2, .begin = CUT, .end = FLOATS}, "for worker 0 of 2");
    worker_takes((struct welcome){.worker = 1, .workers = 1, .begin = CUT, .end = FLOATS},
                 "for worker 1 of 1");
    worker_is_welcomed((struct welcome){.worker = 1, .workers = 1}, ": a welcome as worker 1 of 1");
    worker_is_welcomed((struct welcome){.worker = 0, .workers = 0}, ": a welcome as worker 0 of 0");
    worker_takes((struct welcome){.workers = 1, .begin = CUT, .end = 48},
                 "all together have 48 floats, expected 64");
}

/* --- a worker that waits --- */

static int heartbeats(struct endpoint *endpoint) {
    struct frame_header header;
    struct error error = {0};
    bool ended = false;
    uint8_t byte;
    int heard = 0;
    while (endpoint_peek(endpoint, &byte, 1, 0.0, &ended) > 0) {
        CHECK(frame_read_header(endpoint, "a heartbeat", 0, &header, LONG_S, &error) == OK &&
                  header.type == FRAME_HEARTBEAT,
              "%s", error.words);
        heard++;
    }
    return heard;
}

/* For the leader longer than for the other, who is to be blamed first; who is not waited for is told. */
static void check_timeout(void) {
    static struct worker worker;
    struct finish finish;
    struct request request;
    float weights[FLOATS];
    enum next next;
    long number;
    bool over;
    char expected[400];
    open_worker(&worker, halves);
    CHECK(remote_next(&worker.remote, &next, &number, &over, &finish, &worker.error) == ERROR_PEER,
          "no error");
    snprintf(expected, sizeof expected, "the parameter server %s: no byte of a batch's number for 1.33333 s",
             worker.list[0].text);
    CHECK(strcmp(worker.error.words, expected) == 0, "%s", worker.error.words);
    const int told = heartbeats(worker.hosts[1]), leader_told = heartbeats(worker.hosts[0]);
    CHECK(told >= 1 && told <= 4 && leader_told == 0, "%d and %d heartbeats", told, leader_told);
    close_worker(&worker);

    open_worker(&worker, halves);
    struct error error = {0};
    CHECK(frame_write(worker.hosts[0], FRAME_HEARTBEAT, 0, NULL, 0, LONG_S, &error) == OK, "%s", error.words);
    CHECK(remote_weights(&worker.remote, &request, weights, &over, &finish, &worker.error) == ERROR_PEER,
          "no error");
    snprintf(expected, sizeof expected, "the parameter server %s: no byte of weights for 1 s",
             worker.list[1].text);
    CHECK(strcmp(worker.error.words, expected) == 0, "%s", worker.error.words);
    CHECK(heartbeats(worker.hosts[0]) >= 1, "the leader was not told");
    close_worker(&worker);
}

/* It builds for long, and says meanwhile that it lives. */
static void check_building(void) {
    static struct worker worker;
    const int beats = open_slow_worker(&worker, halves, 1.2);
    CHECK(beats >= 2 && beats <= 5, "%d heartbeats while it was building", beats);
    close_worker(&worker);
}

/* One host has gone while another one is awaited. */
static void check_other_host_gone(void) {
    static struct worker worker;
    struct finish finish;
    enum next next;
    long number;
    bool over;
    open_worker(&worker, halves);
    endpoint_close(worker.hosts[1]);
    worker.hosts[1] = NULL;
    const double began = world_now(world);
    CHECK(remote_next(&worker.remote, &next, &number, &over, &finish, &worker.error) == ERROR_PEER &&
              strstr(worker.error.words, worker.list[1].text) &&
              strstr(worker.error.words, "closed by the peer"),
          "%s", worker.error.words);
    CHECK(world_now(world) - began < 1.25, "that took %g s", world_now(world) - began);
    close_worker(&worker);
}

static void check_other_follower_gone(void) {
    static struct side leader;
    static struct follower followers[2];
    const struct cluster cluster = {0};
    const struct members_settings settings = {.cluster = &cluster};
    const struct crew crew = members_crew(&settings);
    struct endpoint *ends[2][2];
    struct error error = {0};
    open_side(&leader, 0.0f);
    for (int f = 0; f < 2; f++) {
        open_wire(ends[f]);
        followers[f] = (struct follower){.endpoint = ends[f][0], .begin = CUT, .end = FLOATS};
        snprintf(followers[f].name, sizeof followers[f].name, "number %d", f);
    }
    leader.members_of.host.followers = followers;
    leader.members_of.host.follower_count = 2;
    endpoint_close(ends[1][1]);
    const double began = world_now(world);
    CHECK(crew.fetch(&leader.members_of, &error) == ERROR_PEER && strstr(error.words, "number 1"), "%s",
          error.words);
    CHECK(world_now(world) - began < 5.0, "that took %g s", world_now(world) - began);
    memory_free(leader.members_of.far);
    for (int f = 0; f < 2; f++) endpoint_close(ends[f][0]);
    endpoint_close(ends[0][1]);
}

/* Of a peer whose gradient is shorter. */
static void check_long_failure(void) {
    static struct peer peer;
    static struct host host;
    enum { FEW = 8 };
    float weights[FEW] = {0}, gradient[FEW], loss;
    char words[LAST_WORDS_BYTES + 1];
    const struct request request = {.number = 1, .step = 1};
    struct endpoint *ends[2];
    struct error error = {0};
    open_wire(ends);
    memset(words, 'x', LAST_WORDS_BYTES);
    words[LAST_WORDS_BYTES] = '\0';
    peer = (struct peer){.endpoint = ends[0], .name = "it"};
    host = (struct host){.settings = {.world = world}, .peers = &peer, .count = 1};
    const struct piece piece = {words, LAST_WORDS_BYTES};
    CHECK(frame_write(ends[1], FRAME_FAILURE, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
    CHECK(peer_compute(&host, &peer, &request, weights, gradient, &loss, FEW, LONG_S, &error) == ERROR_PEER &&
              strstr(error.words, "it: xxxxxxxx"),
          "%s", error.words);
    for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
}

/* Where the workers' devices add the gradients, one of them has the sum, and the others nothing: none of what
 * was there before. */
static void check_summed(void) {
    enum { FEW = 8 };
    static struct peer peer;
    static struct host host;
    struct error error = {0};
    for (int root = 0; root < 2; root++) {
        float weights[FEW] = {0}, sum[FEW] = {1.0f, 2.0f}, gradient[FEW] = {3.0f, 3.0f}, loss = 0.0f;
        const struct request request = {.number = 1, .step = 1};
        uint8_t asked[REQUEST_BYTES], answer[LOSS_BYTES];
        struct frame_header header;
        struct endpoint *ends[2];
        open_wire(ends);
        peer = (struct peer){.endpoint = ends[0], .name = "it", .sums = true, .root = root};
        host = (struct host){.settings = {.world = world}, .peers = &peer, .count = 1};
        request_put(&request, asked);
        answer_put(0.5f, asked, answer);
        const struct piece pieces[] = {{answer, sizeof answer}, {sum, sizeof sum}};
        CHECK(frame_write(ends[1], FRAME_GRADIENT, 0, pieces, 1 + root, LONG_S, &error) == OK, "%s",
              error.words);
        CHECK(peer_compute(&host, &peer, &request, weights, gradient, &loss, FEW, LONG_S, &error) == OK &&
                  loss == 0.5f,
              "%s", error.words);
        CHECK(gradient[0] == sum[0] * (float)root && gradient[1] == sum[1] * (float)root,
              "root %d: a gradient of %g, %g", root, (double)gradient[0], (double)gradient[1]);
        CHECK(frame_read_header(ends[1], "weights", UINT64_MAX, &header, LONG_S, &error) == OK &&
                  header.flags == FRAME_SUM,
              "weights with flags %u", header.flags);
        for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
    }
}

/* A host that has no room for it closes without a word, or says that its place is taken for now. */
static void check_comes_again(void) {
    static struct worker worker;
    struct error error = {0};
    static const char busy[] = "not now";
    memset(&worker, 0, sizeof worker);
    worker.addresses = (struct addresses){.list = worker.list, .count = 1};
    worker.listeners[0] = open_listener(&worker.list[0]);
    CHECK(world_spawn(world, "worker", NULL, worker_body, &worker, &worker.thread, &error) == OK, "%s",
          error.words);
    for (int turn = 0; turn < 3; turn++) {
        const struct piece piece = {busy, sizeof busy - 1};
        uint8_t bytes[HELLO_BYTES];
        struct frame_header header;
        struct endpoint *guest = let_in(worker.listeners[0]);
        if (turn > 0)
            CHECK(frame_read_header(guest, "a hello", sizeof bytes, &header, LONG_S, &error) == OK &&
                      frame_read_payload(guest, &header, bytes, LONG_S, &error) == OK,
                  "%s", error.words);
        if (turn > 0)
            CHECK(frame_write(guest, FRAME_FAILURE, turn == 1 ? FAILURE_FOR_NOW : 0, &piece, 1, LONG_S,
                              &error) == OK,
                  "%s", error.words);
        if (turn == 1) endpoint_finish(guest, LONG_S);
        if (turn == 2) world_join(worker.thread);
        endpoint_close(guest);
    }
    CHECK(strstr(worker.error.words, "refuses: not now"), "%s", worker.error.words);
    remote_close(&worker.remote);
    listener_close(worker.listeners[0]);
}

/* The leader, which has sent its weights, ends while another host is waited for: its reason is the one. */
static void check_last_words(void) {
    static const uint8_t weights[REQUEST_BYTES + CUT * sizeof(float)];
    static struct worker worker;
    struct finish finish = {.code = ERROR_PEER, .words = "because"};
    struct error error = {0};
    struct request request;
    float got[FLOATS];
    bool over;
    uint8_t bytes[FINISH_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    open_worker(&worker, halves);
    CHECK(finish_put(&finish, &writer, &error) == OK, "%s", error.words);
    const struct piece frame = {weights, sizeof weights}, last = {bytes, writer.used};
    CHECK(frame_write(worker.hosts[0], FRAME_WEIGHTS, 0, &frame, 1, LONG_S, &error) == OK &&
              frame_write(worker.hosts[0], FRAME_GOODBYE, 0, &last, 1, LONG_S, &error) == OK,
          "%s", error.words);
    endpoint_close(worker.hosts[0]);
    worker.hosts[0] = NULL;
    CHECK(remote_weights(&worker.remote, &request, got, &over, &finish, &worker.error) == ERROR_PEER &&
              strstr(worker.error.words, "ended: because"),
          "%s", worker.error.words);
    close_worker(&worker);
}

int main(void) {
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (!world) return check_end();
    check_fetch();
    check_leader();
    check_slices();
    check_timeout();
    check_last_words();
    check_summed();
    check_building();
    check_other_host_gone();
    check_other_follower_gone();
    check_long_failure();
    leader_hears("all", true);
    leader_hears("1..3", false);
    endpoint_keep_to_tcp(world); /* whose connections are made before anybody looks */
    check_comes_again();
    world_close(world);
    return check_end();
}
