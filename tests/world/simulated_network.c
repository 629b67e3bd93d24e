/* The simulated network: what bytes take equals the formulas, to the rounding; the same seed gives the same
 * times; and cuts, slow lines and machines that are killed do what they say. */
#include "../check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/world/endpoint.h"
#include "../../src/world/simulated_network.h"

#define LONG_S 1000.0
#define LATENCY_S 0.003
#define RATE 1e6 /* bytes per second */
enum { MESSAGE = 1 << 20, FLOWS = 3, SMALL = 64 };

static const struct simulated_network plain = {.latency_s = LATENCY_S, .bytes_per_s = RATE};
static char bytes[MESSAGE];

/* Two machines, and as many connections between them. */
struct pair {
    struct world *near_world, *far_world;
    struct endpoint *near[FLOWS], *far[FLOWS];
    struct error error;
};

static void open_pair(struct pair *pair, uint64_t seed, const struct simulated_network *settings, int flows) {
    struct error *error = &pair->error;
    struct listener *listener = NULL;
    char address[32];
    memset(pair, 0, sizeof *pair);
    CHECK(world_open_simulated(&pair->near_world, seed, error) == OK &&
              simulated_open_machine(&pair->far_world, pair->near_world, error) == OK &&
              endpoint_listen(pair->far_world, "127.0.0.1:0", &listener, error) == OK,
          "%s", error->words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    for (int i = 0; i < flows; i++) {
        CHECK(endpoint_connect(pair->near_world, address, &pair->near[i], LONG_S, error) == OK &&
                  listener_accept(listener, &pair->far[i], LONG_S, error) == OK,
              "%s", error->words);
        if (!pair->near[i] || !pair->far[i]) exit(check_end());
    }
    listener_close(listener);
    simulated_set_network(pair->near_world, settings);
}

static void close_pair(struct pair *pair) {
    for (int i = 0; i < FLOWS; i++) {
        endpoint_close(pair->near[i]);
        endpoint_close(pair->far[i]);
    }
    world_close(pair->far_world);
    world_close(pair->near_world);
}

/* One who sends or receives, and when it was done. */
struct job {
    struct endpoint *endpoint;
    struct world *world;
    bool sends;
    size_t bytes;
    char *buffer;
    double ended_s;
    struct error error;
};

static void do_job(void *argument) {
    struct job *job = argument;
    const struct piece piece = {bytes, job->bytes};
    if (job->sends)
        endpoint_send(job->endpoint, "bytes", &piece, 1, LONG_S, &job->error);
    else
        endpoint_receive(job->endpoint, "bytes", job->buffer, job->bytes, LONG_S, &job->error);
    job->ended_s = world_now(job->world);
}

/* All at once; fills in when each ended, from the beginning. */
static void do_jobs(struct job *jobs, int count) {
    struct world_thread *threads[2 * FLOWS];
    struct error error = {0};
    const double began = world_now(jobs[0].world);
    for (int i = 0; i < count; i++) {
        if (!jobs[i].sends)
            CHECK(memory_array(&jobs[i].buffer, jobs[i].bytes, "bytes", &error) == OK, "%s", error.words);
        CHECK(world_spawn(jobs[i].world, "job", NULL, do_job, &jobs[i], &threads[i], &error) == OK, "%s",
              error.words);
    }
    for (int i = 0; i < count; i++) {
        world_join(threads[i]);
        jobs[i].ended_s -= began;
        CHECK(jobs[i].error.code == OK, "%s", jobs[i].error.words);
        if (jobs[i].sends) continue;
        CHECK(memcmp(jobs[i].buffer, bytes, jobs[i].bytes) == 0, "other bytes");
        memory_free(jobs[i].buffer);
    }
}

static bool is_near(double a, double b) {
    return fabs(a - b) < 1e-7;
}

/* --- times --- */

static double seconds_of(size_t count) {
    return (double)count / RATE;
}

/* A connection alone: the line's time for all of it, and the latency once. */
static void test_one(size_t count) {
    struct pair pair;
    open_pair(&pair, 1, &plain, 1);
    struct job jobs[] = {{.endpoint = pair.near[0], .world = pair.near_world, .sends = true, .bytes = count},
                         {.endpoint = pair.far[0], .world = pair.far_world, .bytes = count}};
    do_jobs(jobs, 2);
    CHECK(is_near(jobs[1].ended_s, seconds_of(count) + LATENCY_S), "%zu bytes took %.9f s, expected %.9f",
          count, jobs[1].ended_s, seconds_of(count) + LATENCY_S);
    close_pair(&pair);
}

/* Several share the line, fairly: each ends within a turn of all the others. `apart`: they come from one
 * machine and go to another; else each way has its own line, and takes the time of one. */
static void test_shared(bool both_ways) {
    struct pair pair;
    struct job jobs[2 * FLOWS];
    open_pair(&pair, 2, &plain, FLOWS);
    for (int i = 0; i < FLOWS; i++) {
        const bool back = both_ways && i % 2 == 1;
        struct endpoint *ends[] = {pair.near[i], pair.far[i]};
        struct world *worlds[] = {pair.near_world, pair.far_world};
        jobs[2 * i] =
            (struct job){.endpoint = ends[back], .world = worlds[back], .sends = true, .bytes = MESSAGE};
        jobs[2 * i + 1] = (struct job){.endpoint = ends[!back], .world = worlds[!back], .bytes = MESSAGE};
    }
    const int flows = both_ways ? 2 : FLOWS, sharing = both_ways ? 1 : FLOWS;
    do_jobs(jobs, 2 * flows);
    const double all = sharing * seconds_of(MESSAGE) + LATENCY_S, turn = seconds_of(SIMULATED_TURN_BYTES);
    double last = 0.0;
    for (int i = 0; i < flows; i++) {
        const double took = jobs[2 * i + 1].ended_s;
        CHECK(took > all - sharing * turn && took < all + 1e-7, "flow %d took %.9f s, all take %.9f", i, took,
              all);
        last = fmax(last, took);
    }
    CHECK(is_near(last, all), "all took %.9f s, expected %.9f", last, all);
    close_pair(&pair);
}

/* A machine that answers: twice the latency and the two messages. */
static double round_trip(struct pair *pair) {
    const struct piece piece = {bytes, SMALL};
    char got[SMALL];
    const double began = world_now(pair->near_world);
    CHECK(endpoint_send(pair->near[0], "a question", &piece, 1, LONG_S, &pair->error) == OK &&
              endpoint_receive(pair->far[0], "a question", got, SMALL, LONG_S, &pair->error) == OK &&
              endpoint_send(pair->far[0], "an answer", &piece, 1, LONG_S, &pair->error) == OK &&
              endpoint_receive(pair->near[0], "an answer", got, SMALL, LONG_S, &pair->error) == OK,
          "%s", pair->error.words);
    return world_now(pair->near_world) - began;
}

static void test_round_trip(void) {
    const double line_s = seconds_of(SMALL);
    struct pair pair;
    open_pair(&pair, 3, &plain, 1);
    CHECK(is_near(round_trip(&pair), 2.0 * (LATENCY_S + line_s)), "a round trip");
    simulated_slow(pair.far_world, 10.0);
    CHECK(is_near(round_trip(&pair), 20.0 * (LATENCY_S + line_s)), "a slow machine's");
    simulated_slow(pair.far_world, 1.0);
    CHECK(is_near(round_trip(&pair), 2.0 * (LATENCY_S + line_s)), "it has recovered");
    simulated_set_network(pair.near_world, &(struct simulated_network){.loss = 1.0});
    CHECK(is_near(round_trip(&pair), 2.0 * SIMULATED_AGAIN_S), "all is lost once");
    close_pair(&pair);
}

/* Of each machine; connecting takes the way there and back. */
static void test_connecting(void) {
    struct pair pair;
    struct listener *listener = NULL;
    char address[32];
    open_pair(&pair, 4, &plain, 0);
    CHECK(endpoint_listen(pair.far_world, "127.0.0.1:0", &listener, &pair.error) == OK, "%s",
          pair.error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    const double began = world_now(pair.near_world);
    CHECK(endpoint_connect(pair.near_world, address, &pair.near[0], LONG_S, &pair.error) == OK, "%s",
          pair.error.words);
    CHECK(is_near(world_now(pair.near_world) - began, 2.0 * LATENCY_S), "%.9f s",
          world_now(pair.near_world) - began);
    CHECK(listener_accept(listener, &pair.far[0], 0.0, &pair.error) == OK && pair.far[0], "%s",
          pair.error.words);
    listener_close(listener);
    close_pair(&pair);
}

static double jittery_trips(uint64_t seed) {
    struct pair pair;
    double sum = 0.0;
    open_pair(&pair, seed, &(struct simulated_network){.latency_s = LATENCY_S, .jitter_s = LATENCY_S}, 1);
    for (int i = 0; i < 20; i++) {
        const double took = round_trip(&pair);
        CHECK(took >= 2.0 * LATENCY_S && took < 4.0 * LATENCY_S, "%.9f s", took);
        sum = 1.25 * sum + took;
    }
    close_pair(&pair);
    return sum;
}

static void test_seeds(void) {
    const double first = jittery_trips(7);
    CHECK(jittery_trips(7) == first, "the same seed, other times");
    CHECK(jittery_trips(8) != first, "another seed, the same times");
}

/* --- what goes wrong --- */

static void test_cut(void) {
    struct pair pair;
    char got[SMALL];
    const struct piece piece = {bytes, SMALL};
    open_pair(&pair, 5, &plain, 1);
    CHECK(endpoint_send(pair.near[0], "before", &piece, 1, LONG_S, &pair.error) == OK, "%s",
          pair.error.words);
    for (int i = 0; i < 2; i++) simulated_cut(pair.near_world, pair.far_world, true);
    CHECK(endpoint_send(pair.near[0], "meanwhile", &piece, 1, LONG_S, &pair.error) == OK, "%s",
          pair.error.words);
    for (int mended = 0; mended < 2; mended++) { /* there were two cuts */
        if (mended) simulated_cut(pair.near_world, pair.far_world, false);
        pair.error = (struct error){0};
        CHECK(endpoint_receive(pair.far[0], "anything", got, 1, 5.0, &pair.error) == ERROR_PEER &&
                  strstr(pair.error.words, "no byte of anything for 5 s"),
              "%s", pair.error.words);
    }
    pair.error = (struct error){0};
    struct endpoint *another = NULL;
    struct listener *listener = NULL;
    char address[32];
    CHECK(endpoint_listen(pair.far_world, "127.0.0.1:0", &listener, &pair.error) == OK, "%s",
          pair.error.words);
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(pair.near_world, address, &another, 1.0, &pair.error) == ERROR_PEER &&
              strstr(pair.error.words, "not connected after 1 s: Connection timed out"),
          "%s", pair.error.words);
    pair.error = (struct error){0};
    simulated_cut(pair.far_world, pair.near_world, false);
    const double mended = world_now(pair.far_world);
    for (int i = 0; i < 2; i++)
        CHECK(endpoint_receive(pair.far[0], "what was sent", got, SMALL, LONG_S, &pair.error) == OK &&
                  memcmp(got, bytes, SMALL) == 0,
              "%s", pair.error.words);
    CHECK(is_near(world_now(pair.far_world) - mended, LATENCY_S), "%.9f s after it was mended",
          world_now(pair.far_world) - mended);
    simulated_cut(pair.far_world, pair.near_world, false); /* there is none any more */
    simulated_cut(pair.far_world, pair.near_world, true);
    simulated_cut(pair.far_world, pair.near_world, false);
    CHECK(round_trip(&pair) < 1.0, "%s", pair.error.words);
    listener_close(listener);
    close_pair(&pair);
}

static void test_kill(void) {
    struct pair pair;
    char got[SMALL];
    struct endpoint *another = NULL;
    struct listener *listener = NULL;
    const struct piece piece = {bytes, SMALL};
    open_pair(&pair, 6, &plain, 1);
    CHECK(endpoint_send(pair.far[0], "last words", &piece, 1, LONG_S, &pair.error) == OK, "%s",
          pair.error.words);
    world_sleep(pair.far_world, 1.0);
    simulated_kill(pair.far_world);
    CHECK(endpoint_receive(pair.near[0], "last words", got, SMALL, LONG_S, &pair.error) == OK, "%s",
          pair.error.words);
    const double killed = world_now(pair.near_world);
    CHECK(endpoint_receive(pair.near[0], "more", got, 1, LONG_S, &pair.error) == ERROR_PEER &&
              strstr(pair.error.words, "the connection was closed by the peer"),
          "%s", pair.error.words);
    CHECK(is_near(world_now(pair.near_world) - killed, LATENCY_S), "%.9f s", world_now(pair.near_world));
    pair.error = (struct error){0};
    CHECK(endpoint_send(pair.far[0], "words", &piece, 1, LONG_S, &pair.error) == ERROR_PEER,
          "the dead speak");
    pair.error = (struct error){0};
    CHECK(endpoint_listen(pair.near_world, "127.0.0.1:3000", &listener, &pair.error) == OK, "%s",
          pair.error.words);
    CHECK(endpoint_connect(pair.far_world, "127.0.0.1:3000", &another, 1.0, &pair.error) == ERROR_PEER &&
              strstr(pair.error.words, "Network is down"),
          "%s", pair.error.words);
    listener_close(listener);
    close_pair(&pair);
}

static struct endpoint *connect_to(struct world *world, struct listener *listener, struct endpoint **far) {
    struct endpoint *near = NULL;
    struct error error = {0};
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", listener_port(listener));
    CHECK(endpoint_connect(world, address, &near, LONG_S, &error) == OK &&
              listener_accept(listener, far, LONG_S, &error) == OK && *far,
          "%s", error.words);
    if (!near || !*far) exit(check_end());
    return near;
}

/* Of a connection that was closed nothing is left, though its place is free and that of its other end is
 * another's by now. */
static void test_kill_after_close(void) {
    struct pair pair;
    struct world *killed = NULL;
    struct listener *listener = NULL, *early = NULL, *at_killed = NULL;
    struct endpoint *far = NULL;
    open_pair(&pair, 10, &plain, 0);
    CHECK(simulated_open_machine(&killed, pair.near_world, &pair.error) == OK &&
              endpoint_listen(killed, "127.0.0.1:0", &at_killed, &pair.error) == OK &&
              endpoint_listen(pair.far_world, "127.0.0.1:0", &listener, &pair.error) == OK &&
              endpoint_listen(pair.far_world, "127.0.0.1:0", &early, &pair.error) == OK,
          "%s", pair.error.words);
    struct endpoint *near = connect_to(pair.near_world, at_killed, &far);
    endpoint_close(far); /* of `killed`, first */
    endpoint_close(near);
    listener_close(early); /* its place is the first that is free, and the next is that of `near` */
    pair.near[0] = connect_to(pair.near_world, listener, &pair.far[0]);
    simulated_kill(killed);
    CHECK(round_trip(&pair) < 1.0, "another machine was killed: %s", pair.error.words);
    listener_close(listener);
    listener_close(at_killed);
    world_close(killed);
    close_pair(&pair);
}

/* Worlds of one simulation are stopped one by one, and have one clock. */
static void test_beside(void) {
    struct pair pair;
    struct world *beside = NULL;
    open_pair(&pair, 9, &plain, 0);
    world_sleep(pair.near_world, 2.0);
    CHECK(world_open_beside(&beside, pair.far_world, &pair.error) == OK, "%s", pair.error.words);
    CHECK(world_now(beside) == 2.0 && world_now(pair.far_world) == 2.0, "%g", world_now(beside));
    world_stop(beside);
    CHECK(world_stopped(beside) && !world_stopped(pair.far_world) && !world_stopped(pair.near_world),
          "another was stopped");
    world_close(beside);
    close_pair(&pair);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7 + i / 251);
    test_one(1);
    test_one(MESSAGE);
    test_shared(false);
    test_shared(true);
    test_round_trip();
    test_connecting();
    test_seeds();
    test_cut();
    test_kill();
    test_kill_after_close();
    test_beside();
    return check_end();
}
