/* Clusters in the simulated world before the training begins, and as it ends, where somebody is no trainer,
 * or a very slow or dead one: who is real gets in, whatever others do; nobody waits past a deadline because
 * of signs of life alone; and each end is told to all by its name. */
#include "../simulated_cluster.h"

#include <ctype.h>

static const struct simulated_network network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e8};

#define LONG_S 20.0
#define LATEST_S 1000.0 /* those who are played here go then */

static struct simulated_cluster all;

/* --- who is played here --- */

struct player {
    struct world *world;
    struct world_thread *thread;
    int task, devices;
    struct endpoint *endpoint;
    double took_s;
};

static void play(struct player *player, world_body *body) {
    struct error error = {0};
    CHECK(simulated_open_machine(&player->world, all.world, &error) == OK &&
              world_spawn(player->world, "player", NULL, body, player, &player->thread, &error) == OK,
          "%s", error.words);
}

static void end_play(struct player *player) {
    world_join(player->thread);
    endpoint_close(player->endpoint);
    world_close(player->world);
}

static struct endpoint *connect_to(struct world *world, int index) {
    char address[NAME];
    struct endpoint *endpoint = NULL;
    struct error error = {0};
    snprintf(address, sizeof address, "127.0.0.1:%d", 2222 + index);
    CHECK(endpoint_connect(world, address, &endpoint, LONG_S, &error) == OK, "%s", error.words);
    if (!endpoint) exit(check_end());
    return endpoint;
}

static uint32_t session; /* that the settings came with last */

static void put(struct endpoint *endpoint, enum frame_type type, const struct frame_writer *writer) {
    struct error ignored = {0};
    const struct piece piece = {writer->bytes, writer->used};
    frame_write(endpoint, type, type == FRAME_READY ? session : 0, &piece, 1, LONG_S, &ignored);
}

static void say_hello(struct endpoint *endpoint, int task, int device, int devices) {
    static struct hello hello;
    uint8_t bytes[HELLO_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    hello = (struct hello){.task = task, .device = device, .devices = devices, .process = 77};
    option_defaults(run_options, &hello.agreed);
    memset(&hello.agreed.given, 0, sizeof hello.agreed.given);
    snprintf(hello.program, sizeof hello.program, "%s", TRAINER_VERSION);
    snprintf(hello.device_name, sizeof hello.device_name, "cpu:0");
    CHECK(hello_put(&hello, &writer, &error) == OK, "%s", error.words);
    put(endpoint, FRAME_HELLO, &writer);
}

static void say_settings(struct endpoint *endpoint) {
    static struct config config;
    uint8_t bytes[SETTINGS_BYTES];
    struct error error = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    option_defaults(config_options, &config);
    CHECK(settings_put(&config, &writer, &error) == OK, "%s", error.words);
    put(endpoint, FRAME_CONFIG, &writer);
}

static bool say_beat(struct endpoint *endpoint) {
    struct error ignored = {0};
    return frame_write(endpoint, FRAME_HEARTBEAT, 0, NULL, 0, LONG_S, &ignored) == OK;
}

/* The next frame but heartbeats. */
static enum frame_type hear(struct endpoint *endpoint, char words[SETTINGS_BYTES + 1]) {
    struct frame_header header;
    struct error error = {0};
    do {
        memset(words, 0, SETTINGS_BYTES + 1);
        if (frame_read_header(endpoint, "an answer", SETTINGS_BYTES, &header, LONG_S, &error) != OK ||
            frame_read_payload(endpoint, &header, words, LONG_S, &error) != OK)
            return FRAME_NONE;
    } while (header.type == FRAME_HEARTBEAT);
    if (header.type == FRAME_CONFIG) session = header.flags;
    return header.type;
}

static void check_all_well(const char *what) {
    for (int i = 0; i < all.count; i++)
        CHECK(all.scenario.own[i].absent || all.processes[i].error.code == OK, "%s: %s: %s", what,
              all.processes[i].name, all.processes[i].error.words);
}

/* It has ended before then, and this is what it said. */
static void check_end_of(const char *what, int index, double seconds, const char *words) {
    const struct process *process = &all.processes[index];
    CHECK(process->ended && process->ended_s < seconds && process->error.code == ERROR_PEER &&
              strstr(process->error.words, words),
          "%s: %s ended after %g s: \"%s\", expected \"%s\" before %g s", what, process->name,
          process->ended_s, process->error.words, words, seconds);
}

/* --- a crowd of strangers --- */

enum { CROWD = 4000, AT_ONCE = 40 };

/* On the parameter server's own machine, so that they are faster than any worker. */
static void crowd_body(void *argument) {
    struct player *player = argument;
    static struct endpoint *crowd[CROWD];
    world_sleep(player->world, 0.02);
    for (int i = 0; i < CROWD; i++) {
        crowd[i] = connect_to(player->world, 0);
        if (i % AT_ONCE == AT_ONCE - 1) world_sleep(player->world, 5e-4);
    }
    world_sleep(player->world, 10.0);
    for (int i = 0; i < CROWD; i++) endpoint_close(crowd[i]);
}

static void test_crowd(void) {
    struct player player = {0};
    struct error error = {0};
    struct scenario scenario = {
        .strategy = "sync", .servers = 1, .workers = 2, .seed = 1, .network = network};
    for (int i = 1; i < 3; i++) scenario.own[i].begins_s = 0.03;
    cluster_start(&all, &scenario);
    CHECK(world_open_beside(&player.world, all.processes[0].world, &error) == OK &&
              world_spawn(player.world, "crowd", NULL, crowd_body, &player, &player.thread, &error) == OK,
          "%s", error.words);
    cluster_join(&all);
    check_all_well("a crowd");
    end_play(&player);
    cluster_close(&all);
}

/* --- a worker that is dead, and whose place is taken still --- */

static void dead_body(void *argument) {
    struct player *player = argument;
    player->endpoint = connect_to(player->world, 0);
    say_hello(player->endpoint, 0, 0, 1);
    world_sleep(player->world, 50.0);
}

static void test_dead_worker(void) {
    struct player player = {0};
    struct scenario scenario = {
        .strategy = "sync", .servers = 1, .workers = 2, .seed = 2, .network = network};
    scenario.own[1].begins_s = 1.0;
    cluster_start(&all, &scenario);
    play(&player, dead_body);
    cluster_join(&all);
    check_all_well("a dead worker");
    CHECK(all.processes[1].ended_s < 25.0, "its place was free after %g s", all.processes[1].ended_s);
    end_play(&player);
    cluster_close(&all);
}

/* --- parameter servers that are not there hold up nobody --- */

static void hasty_body(void *argument) {
    static char words[SETTINGS_BYTES + 1];
    struct player *player = argument;
    world_sleep(player->world, 0.5);
    for (int i = 0; i < 10; i++) {
        const double began = world_now(player->world);
        struct endpoint *one = connect_to(player->world, 0);
        say_hello(one, 0, i, 10);
        CHECK(hear(one, words) == FRAME_CONFIG, "%s", words);
        player->took_s = fmax(player->took_s, world_now(player->world) - began);
        endpoint_close(one);
        world_sleep(player->world, 0.17);
    }
}

static void test_absent_servers(void) {
    struct player player = {0};
    struct scenario scenario = {.strategy = "sync",
                                .servers = 4,
                                .workers = 1,
                                .seed = 3,
                                .network = network,
                                .settings = {{"start-timeout", "5"}}};
    for (int i = 1; i < 5; i++) scenario.own[i].absent = true;
    cluster_start(&all, &scenario);
    play(&player, hasty_body);
    cluster_join(&all);
    end_play(&player);
    CHECK(player.took_s < 0.1, "a hello was answered after %g s", player.took_s);
    check_end_of("absent servers", 0, 6.0, "waiting for the parameter server 1");
    cluster_close(&all);
}

/* --- signs of life, and nothing else --- */

/* A host: tells all but the leader the settings. */
static void beating_body(void *argument) {
    struct player *player = argument;
    struct listener *listener = NULL;
    struct endpoint *guests[4] = {0};
    struct error error = {0};
    char address[NAME];
    int count = 0;
    snprintf(address, sizeof address, "127.0.0.1:%d", 2222 + player->task);
    CHECK(endpoint_listen(player->world, address, &listener, &error) == OK, "%s", error.words);
    while (listener && world_now(player->world) < LATEST_S) {
        uint8_t bytes[HELLO_BYTES];
        struct frame_header header;
        struct endpoint *guest = NULL;
        static struct hello hello;
        if (count < 4) listener_accept(listener, &guest, 0.5, &error);
        if (!guest) world_sleep(player->world, 0.5);
        bool beats = false;
        for (int i = 0; i < count; i++) beats |= say_beat(guests[i]);
        if (count > 0 && !beats) break; /* all have gone */
        if (!guest) continue;
        guests[count++] = guest;
        if (frame_read_header(guest, "a hello", sizeof bytes, &header, LONG_S, &error) != OK ||
            frame_read_payload(guest, &header, bytes, LONG_S, &error) != OK)
            continue;
        struct frame_reader reader = {.bytes = bytes, .length = header.bytes};
        if (hello_get(&hello, &reader, "it", &error) == OK && !hello.leader) say_settings(guest);
    }
    for (int i = 0; i < count; i++) endpoint_close(guests[i]);
    listener_close(listener);
}

/* The two have 60 s to come and a timeout of 20 s, of which a worker waits for three. */
static void test_beats_alone(int servers) {
    struct player player = {.task = servers - 1};
    struct scenario scenario = {.strategy = "sync",
                                .servers = servers,
                                .workers = 1,
                                .seed = 4,
                                .network = network,
                                .settings = {{"dataset", "iris"}}};
    scenario.own[servers - 1].absent = true;
    cluster_start(&all, &scenario);
    play(&player, beating_body);
    cluster_join(&all);
    end_play(&player);
    if (servers > 1) check_end_of("heartbeats", 0, 70.0, "waiting for the parameter server 1");
    if (servers > 1) check_end_of("heartbeats", servers, 70.0, "waiting for the parameter server 1");
    if (servers == 1) check_end_of("heartbeats", 1, 130.0, "expected a welcome within 120 s, there was none");
    cluster_close(&all);
}

/* --- a leader that was recorded --- */

static struct {
    uint8_t hello[HELLO_BYTES], ready[HELLO_BYTES];
    struct piece pieces[2];
    uint32_t session;
} recording;

/* A follower that tells a session, and goes when all of what a leader says to it is there. */
static void recording_body(void *argument) {
    struct player *player = argument;
    struct listener *listener = NULL;
    struct frame_header header;
    struct error error = {0};
    CHECK(endpoint_listen(player->world, "127.0.0.1:2223", &listener, &error) == OK &&
              listener_accept(listener, &player->endpoint, LONG_S, &error) == OK && player->endpoint,
          "%s", error.words);
    recording.session = 0x7777;
    for (int i = 0; i < 2; i++) {
        uint8_t *const bytes = i == 0 ? recording.hello : recording.ready;
        do
            CHECK(frame_read_header(player->endpoint, "a word", HELLO_BYTES, &header, LONG_S, &error) == OK &&
                      frame_read_payload(player->endpoint, &header, bytes, LONG_S, &error) == OK,
                  "%s", error.words);
        while (error.code == OK && header.type == FRAME_HEARTBEAT);
        CHECK(header.type == (i == 0 ? FRAME_HELLO : FRAME_READY), "%s", frame_type_words(header.type));
        recording.pieces[i] = (struct piece){bytes, (size_t)header.bytes};
        if (i == 0) frame_write(player->endpoint, FRAME_CONFIG, recording.session, NULL, 0, LONG_S, &error);
    }
    CHECK(header.flags == recording.session, "a ready of session %08x", (unsigned)header.flags);
    listener_close(listener);
}

static char heard[SETTINGS_BYTES + 1];

static void repeating_body(void *argument) {
    struct player *player = argument;
    struct error ignored = {0};
    player->endpoint = connect_to(player->world, 1);
    frame_write(player->endpoint, FRAME_HELLO, 0, &recording.pieces[0], 1, LONG_S, &ignored);
    hear(player->endpoint, heard);
    frame_write(player->endpoint, FRAME_READY, recording.session, &recording.pieces[1], 1, LONG_S, &ignored);
    hear(player->endpoint, heard);
}

/* It is refused, and the leader that comes later leads. */
static void test_recording(void) {
    struct player recorder = {0}, repeater = {0};
    struct scenario scenario = {
        .strategy = "sync", .servers = 2, .workers = 1, .seed = 7, .network = network};
    scenario.own[1].absent = scenario.own[2].absent = true;
    scenario.own[0].name = "start-timeout";
    scenario.own[0].value = "5";
    cluster_start(&all, &scenario);
    play(&recorder, recording_body);
    cluster_join(&all);
    end_play(&recorder);
    cluster_close(&all);
    memset(scenario.own, 0, sizeof scenario.own);
    scenario.own[0].begins_s = 1.0;
    cluster_start(&all, &scenario);
    play(&repeater, repeating_body);
    cluster_join(&all);
    end_play(&repeater);
    CHECK(strstr(heard, ": a ready of session 00007777, expected ") && strstr(heard, ": a recording?"),
          "heard \"%s\"", heard);
    check_all_well("a recorded leader");
    cluster_close(&all);
}

/* --- a worker that has come to one parameter server, and goes before it has come to the other --- */

/* What is expected of it, by the words with which it is refused. */
static struct fingerprint learn(struct world *world, int devices) {
    static char words[SETTINGS_BYTES + 1];
    struct fingerprint known = {0};
    for (int turn = 0; turn < 3; turn++) {
        uint8_t bytes[READY_BYTES];
        struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
        struct endpoint *one = connect_to(world, 0);
        say_hello(one, 1, 0, devices);
        CHECK(hear(one, words) == FRAME_CONFIG, "%s", words);
        fingerprint_put(&known, &writer);
        put(one, FRAME_READY, &writer);
        CHECK(hear(one, words) == FRAME_FAILURE, "%s", words);
        const char *last = strrchr(words, ' ');
        if (last && turn == 0) known.examples = strtoull(last, NULL, 10);
        if (last && turn == 1) known.floats = strtoull(last, NULL, 10);
        if (last && turn == 2) known.layout = strtoull(last, NULL, 16);
        endpoint_close(one);
    }
    return known;
}

static void half_body(void *argument) {
    static char words[SETTINGS_BYTES + 1];
    struct player *player = argument;
    uint8_t bytes[READY_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    const struct fingerprint known = learn(player->world, 1);
    struct endpoint *leader = connect_to(player->world, 0);
    player->endpoint = connect_to(player->world, 1);
    say_hello(leader, 1, 0, 1);
    say_hello(player->endpoint, 1, 0, 1);
    CHECK(hear(leader, words) == FRAME_CONFIG, "%s", words);
    fingerprint_put(&known, &writer);
    put(leader, FRAME_READY, &writer);
    for (int i = 0; i < 6; i++) {
        say_beat(leader);
        say_beat(player->endpoint);
        world_sleep(player->world, 0.5);
    }
    endpoint_close(leader);
    while (say_beat(player->endpoint) && world_now(player->world) < LATEST_S) world_sleep(player->world, 1.0);
}

static void test_gone_between(void) {
    struct player player = {0};
    struct scenario scenario = {
        .strategy = "sync", .servers = 2, .workers = 2, .seed = 5, .network = network};
    scenario.own[3].absent = true;
    cluster_start(&all, &scenario);
    play(&player, half_body);
    cluster_join(&all);
    end_play(&player);
    check_end_of("gone between", 0, 5.0, "worker 1 (127.0.0.1:");
    check_end_of("gone between", 2, 5.0, "worker 1 (127.0.0.1:");
    cluster_close(&all);
}

/* --- who ends before anybody has come says why --- */

static void test_end_without_workers(void) {
    struct scenario scenario = {
        .strategy = "sync", .servers = 2, .workers = 1, .seed = 6, .network = network};
    scenario.own[1].name = "start-timeout";
    scenario.own[1].value = "5";
    scenario.own[2].absent = true;
    cluster_start(&all, &scenario);
    cluster_join(&all);
    check_end_of("without workers", 0, 10.0, "gave up after 5 s waiting for worker 0");
    check_end_of("without workers", 1, 10.0, "gave up after 5 s waiting for worker 0");
    cluster_close(&all);
    scenario.servers = 1;
    scenario.workers = 2;
    scenario.own[0].name = "start-timeout";
    scenario.own[0].value = "5";
    scenario.own[1].name = NULL;
    cluster_start(&all, &scenario);
    cluster_join(&all);
    for (int i = 0; i < 2; i++) {
        const char *must = "; --workers=1.. begins without";
        const char *words = all.processes[i].error.words;
        check_end_of("one of two", i, 10.0, "gave up after 5 s waiting for worker 1");
        CHECK(strlen(words) > strlen(must) && strcmp(words + strlen(words) - strlen(must), must) == 0,
              "one of two: %s", words);
    }
    cluster_close(&all);
}

/* --- a follower hears of the first batch from a worker before the leader's slice has come --- */

static void test_late_slice(int turn) {
    const struct scenario scenario = {
        .strategy = "sync", .servers = 2, .workers = 2, .seed = (uint64_t)turn, .network = network};
    cluster_start(&all, &scenario);
    world_sleep(all.world, 0.114 + 2e-3 * turn); /* they begin at 0.12 s or so */
    simulated_cut(all.processes[0].world, all.processes[1].world, true);
    world_sleep(all.world, 3.0);
    simulated_cut(all.processes[0].world, all.processes[1].world, false);
    cluster_join(&all);
    check_all_well("a late slice");
    cluster_close(&all);
}

/* --- who computes as the run fails hears the reason --- */

/* Only the one whose weights are on their way as the host ends is not told: it names the host. */
static void test_reason(uint64_t seed, int servers, const char *strategy, const char *model) {
    struct scenario scenario = {.strategy = strategy,
                                .servers = servers,
                                .workers = 3,
                                .seed = seed,
                                .network = {.latency_s = 1e-3, .jitter_s = 1e-3, .bytes_per_s = 1e7},
                                .settings = {{"model", model}, {"on-loss", "stop"}, {"epochs", "1000"}}};
    const int victim = servers + 1;
    cluster_start(&all, &scenario);
    world_sleep(all.world, 0.4 + 0.013 * (double)seed);
    simulated_kill(all.processes[victim].world);
    cluster_join(&all);
    for (int i = 0; i < all.count; i++) {
        const char *words = all.processes[i].error.words;
        if (i == victim) continue;
        const bool is_cut = i > servers - 1 && strstr(words, "bytes of weights were received)");
        check_end_of(strategy, i, 30.0,
                     is_cut ? "the parameter server 127.0.0.1:222" : "worker 1 (127.0.0.1:");
        CHECK(!strstr(words, "damaged") && !strstr(words, "unexpected frame") &&
                  !strstr(words, "expected a trainer peer"),
              "seed %d: two wrote at once: %s", (int)seed, words);
    }
    cluster_close(&all);
}

int main(void) {
    test_crowd();
    test_dead_worker();
    test_absent_servers();
    test_beats_alone(1);
    test_beats_alone(2);
    test_recording();
    test_gone_between();
    test_end_without_workers();
    for (int turn = 0; turn < 20; turn++) test_late_slice(turn);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        test_reason(seed, 1, "sync", "mlp:hidden=8");
        test_reason(seed, 1, "async-lockfree", "mlp:hidden=4000");
        test_reason(seed, 2, "async-lockfree", "mlp:hidden=4000");
    }
    return check_end();
}
