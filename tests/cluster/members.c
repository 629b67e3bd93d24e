/* Hosts over real connections, where a run would show a fault only by chance: what a follower hands over,
 * slices that do not make one vector, and whose words are believed when one has ended, or none. What a worker
 * makes of its hosts: worker.c. */
#include "../played_hosts.h"

#include <stdlib.h>
#include <string.h>
#include "../../src/base/bytes.h"
#include "../../src/cluster/members.h"

enum { WORKERS = 2, SHARDS = 2 };

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
            tally->staleness.gradients = 10 * (w + 1);
            tally->dropped = w + 1;
            tally->staleness.sum = 5 * (w + 1);
            tally->staleness.max = 3 + s + w;
            tally->staleness.counts[0] = 7;
            tally->staleness.counts[STALENESS_BINS - 1] = 2 + w;
        }
    }
}

static void check_far(const struct side *leader) {
    for (int w = 0; w < WORKERS; w++) {
        const struct tally *far = &leader->members_of.far[w];
        CHECK(far->staleness.gradients == 20 * (w + 1) && far->dropped == 2 * (w + 1),
              "worker %d: %ld updates, %ld dropped", w, far->staleness.gradients, far->dropped);
        CHECK(far->staleness.sum == 10.0 * (w + 1) && far->staleness.max == 4 + w, "worker %d: %g, %ld", w,
              far->staleness.sum, far->staleness.max);
        CHECK(far->staleness.counts[0] == 14 && far->staleness.counts[STALENESS_BINS - 1] == 4 + 2 * w,
              "worker %d", w);
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
    for (int s = 0; s < SHARDS; s++) atomic_store(&leader.shards[s].version, 70 + s);
    for (int turn = 0; turn < 2; turn++) { /* counts are those so far, not those since */
        uint8_t bytes[8 + WORKERS + 1], *const lost = bytes + 8;
        memset(bytes, 9, sizeof bytes);
        struct frame_header header;
        atomic_store(&leader.members[1].active, turn == 0);
        atomic_store(&follower.members[0].active, turn == 0); /* lost, */
        atomic_store(&follower.members[1].active, turn == 0); /* left */
        follower.peers[1].left = turn == 1;
        const uint64_t fetch = ++follower.members_of.fetched;
        CHECK(members_answer(&follower.members_of, &error) == OK, "%s", error.words);
        leader.members_of.failed = turn == 1;
        CHECK(crew.fetch(&leader.members_of, &error) == OK, "%s", error.words);
        check_far(&leader);
        CHECK(crew.lost(&leader.members_of, 0) == (turn == 1) && !crew.lost(&leader.members_of, 1),
              "turn %d: lost there: %d, %d", turn, leader.members_of.host.peers[0].lost_there,
              leader.members_of.host.peers[1].lost_there);
        CHECK(frame_read_header(ends[1], "a fetch", 8 + sizeof bytes, &header, LONG_S, &error) == OK &&
                  turn_receive(ends[1], &header, FRAME_FETCH, fetch, bytes, sizeof bytes, LONG_S, &error) ==
                      OK,
              "%s", error.words);
        CHECK(bytes_little(bytes, 8) == 70 && fetch_bytes(WORKERS) == sizeof bytes, "version %d, %zu bytes",
              (int)bytes_little(bytes, 8), fetch_bytes(WORKERS));
        CHECK(lost[0] == 0 && lost[1] == turn && lost[WORKERS] == turn,
              "who is lost: %d, %d, the run has failed: %d", lost[0], lost[1], lost[WORKERS]);
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

/* Whatever the leader does with it just then: it names who has gone, or says why that one ends. */
static void check_follower_gone(int (*call)(void *crew, struct error *error), const char *why) {
    static struct side leader;
    const char *const expected = why ? "it: the disk is full" : "it has closed the connection";
    struct endpoint *ends[2];
    struct error error = {0};
    int code = OK;
    open_side(&leader, 0.0f);
    open_wire(ends);
    leader.members_of.host.followers = &leader.follower;
    leader.members_of.host.follower_count = 1;
    leader.members_of.counting = true;
    leader.follower = (struct follower){.endpoint = ends[0], .name = "it", .begin = CUT, .end = FLOATS};
    const struct piece piece = {why, why ? strlen(why) : 0};
    if (why)
        CHECK(frame_write(ends[1], FRAME_FAILURE, 0, &piece, 1, LONG_S, &error) == OK, "%s", error.words);
    endpoint_close(ends[1]);
    const double began = world_now(world);
    while (code == OK && world_now(world) - began < LONG_S) code = call(&leader.members_of, &error);
    CHECK(code == ERROR_PEER && strcmp(error.words, expected) == 0, "\"%s\", expected \"%s\"", error.words,
          expected);
    memory_free(leader.members_of.far);
    endpoint_close(ends[0]);
}

static void check_followers_gone(void) {
    const struct cluster cluster = {0};
    const struct members_settings settings = {.cluster = &cluster};
    const struct crew crew = members_crew(&settings);
    for (int says = 0; says < 2; says++) {
        check_follower_gone(crew.go, says ? "the disk is full" : NULL);
        check_follower_gone(crew.fetch, says ? "the disk is full" : NULL);
    }
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
        answer_put(&(struct answer){0.5f, 0.25}, asked, answer);
        const struct piece pieces[] = {{answer, sizeof answer}, {sum, sizeof sum}};
        CHECK(frame_write(ends[1], FRAME_GRADIENT, 0, pieces, 1 + root, LONG_S, &error) == OK, "%s",
              error.words);
        CHECK(peer_compute(&host, &peer, &request, weights, gradient, &loss, FEW, LONG_S, &error) == OK &&
                  loss == 0.5f && peer.computed_s == 0.25,
              "%s", error.words);
        CHECK(gradient[0] == sum[0] * (float)root && gradient[1] == sum[1] * (float)root,
              "root %d: a gradient of %g, %g", root, (double)gradient[0], (double)gradient[1]);
        CHECK(frame_read_header(ends[1], "weights", UINT64_MAX, &header, LONG_S, &error) == OK &&
                  header.flags == FRAME_SUM,
              "weights with flags %u", header.flags);
        for (int e = 0; e < 2; e++) endpoint_close(ends[e]);
    }
}

int main(void) {
    struct error error = {0};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    if (!world) return check_end();
    check_fetch();
    check_leader();
    check_other_follower_gone();
    check_followers_gone();
    check_long_failure();
    check_summed();
    world_close(world);
    return check_end();
}
