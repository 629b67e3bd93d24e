/* A worker at hosts that are played here, over real connections: what it makes of slices that are not one
 * vector, to whom it says that it waits, that it builds, and that it is ready, whose words it believes when
 * one has ended, or none; that it comes again where it was turned away, and goes when it is asked to. */
#include "../played_hosts.h"

#include <string.h>

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
    bool over; /* in place of weights it was at the end */
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

enum leader_does { GOES, SPEAKS, IS_SILENT };

/* The leader goes, too. */
static void goer_body(void *argument) {
    struct worker *worker = argument;
    world_sleep(world, 0.5);
    endpoint_close(worker->hosts[0]);
    worker->hosts[0] = NULL;
}

/* The leader says why, after the time that any other host has for its last word. */
static void leader_body(void *argument) {
    struct worker *worker = argument;
    static const char why[] = "worker 3 has gone";
    const struct piece piece = {why, sizeof why - 1};
    struct error ignored = {0}; /* then the worker does not hear it */
    world_sleep(world, 1.5);
    frame_write(worker->hosts[0], FRAME_FAILURE, 0, &piece, 1, LONG_S, &ignored);
}

/* One host has gone while another one, the leader, is awaited. A leader that is silent is waited for, but not
 * as long as --timeout may be. */
static void check_other_host_gone(enum leader_does leader) {
    static void (*const bodies[])(void *) = {goer_body, leader_body};
    static const double least_s[] = {0.5, 1.5, 11.5}, most_s[] = {1.25, 3.0, 14.0};
    static struct worker worker;
    struct finish finish;
    enum next next;
    long number;
    bool over;
    struct error error = {0};
    open_worker(&worker, halves);
    endpoint_close(worker.hosts[1]);
    worker.hosts[1] = NULL;
    const double began = world_now(world);
    if (leader != IS_SILENT)
        CHECK(world_spawn(world, "leader", NULL, bodies[leader], &worker, &worker.thread, &error) == OK, "%s",
              error.words);
    CHECK(remote_next(&worker.remote, &next, &number, &over, &finish, &worker.error) == ERROR_PEER &&
              strstr(worker.error.words, leader == SPEAKS ? "worker 3 has gone" : "closed by the peer") &&
              (leader == SPEAKS || strstr(worker.error.words, worker.list[1].text)),
          "%s", worker.error.words);
    const double took = world_now(world) - began;
    CHECK(took >= least_s[leader] && took < most_s[leader], "that took %g s", took);
    if (leader != IS_SILENT) world_join(worker.thread);
    close_worker(&worker);
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

/* The leader, which has sent its weights, ends while another host is waited for: its reason is the one, and
 * names by itself who was lost. */
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

static void weights_body(void *argument) {
    struct worker *worker = argument;
    struct finish finish;
    struct request request;
    float weights[FLOATS];
    remote_weights(&worker->remote, &request, weights, &worker->over, &finish, &worker->error);
}

/* Asked to go while one host is silent, it tells both that it does: it has computed nothing yet. */
static void check_leaves(int silent) {
    static const uint8_t weights[REQUEST_BYTES + CUT * sizeof(float)];
    static struct worker worker;
    struct error error = {0};
    const struct piece frame = {weights, sizeof weights};
    int beats = 0;
    open_worker(&worker, halves);
    worker.remote.settings.may_leave = true;
    for (int h = 0; h < silent; h++)
        CHECK(frame_write(worker.hosts[h], FRAME_WEIGHTS, 0, &frame, 1, LONG_S, &error) == OK, "%s",
              error.words);
    world_dismiss(world);
    CHECK(world_spawn(world, "weights", NULL, weights_body, &worker, &worker.thread, &error) == OK, "%s",
          error.words);
    for (int h = 0; h < 2; h++) {
        const enum frame_type word = next_word(worker.hosts[h], &beats, LONG_S);
        CHECK(word == FRAME_LEAVE, "host %d, where host %d is silent, hears %s", h, silent,
              frame_type_words(word));
        endpoint_finish(worker.hosts[h], 0.0);
    }
    world_join(worker.thread);
    CHECK(worker.error.code == OK && worker.over && worker.remote.left, "it has not left: %s",
          worker.error.words);
    close_worker(&worker);
}

/* --- a leader that does not come --- */

struct absence {
    struct world *world;
    int said;
    struct error error;
};

static void count_said(void *argument, const char *words) {
    struct absence *absence = argument;
    CHECK(strcmp(words, "waiting for the parameter server 0 (127.0.0.1:2222)") == 0, "said: %s", words);
    absence->said++;
}

static void absence_body(void *argument) {
    struct absence *absence = argument;
    static const struct hello hello = {.devices = 1};
    static struct address list[1] = {{.text = "127.0.0.1:2222"}};
    const struct addresses hosts = {.list = list, .count = 1};
    struct remote remote = {0};
    const struct remote_settings settings = {.world = absence->world,
                                             .hosts = &hosts,
                                             .server = "parameter server",
                                             .hello = &hello,
                                             .start_s = 21.0,
                                             .timeout_s = 1.0,
                                             .beat_s = 0.3,
                                             .say = count_said,
                                             .argument = absence};
    remote_open(&remote, &settings, &absence->error);
    remote_close(&remote);
}

/* It is said ever less often, in simulated time here. */
static void check_absent_leader(void) {
    struct absence absence = {0};
    struct world_thread *thread = NULL;
    struct error error = {0};
    CHECK(world_open_simulated(&absence.world, 1, &error) == OK &&
              world_spawn(absence.world, "worker", NULL, absence_body, &absence, &thread, &error) == OK,
          "%s", error.words);
    world_join(thread);
    CHECK(absence.said == 3, "said %d times in 21 s, expected 3: after one second, then after 5 and 10",
          absence.said);
    CHECK(absence.error.code == ERROR_PEER, "ended with %d: %s", absence.error.code, absence.error.words);
    world_close(absence.world);
}

int main(void) {
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (!world) return check_end();
    check_absent_leader();
    check_slices();
    check_timeout();
    check_last_words();
    check_building();
    for (int does = GOES; does <= IS_SILENT; does++) check_other_host_gone((enum leader_does)does);
    leader_hears("all", true);
    leader_hears("1..3", false);
    endpoint_keep_to_tcp(world); /* whose connections are made before anybody looks */
    check_comes_again();
    for (int silent = 0; silent < 2; silent++) check_leaves(silent); /* the world stays dismissed */
    world_close(world);
    return check_end();
}
