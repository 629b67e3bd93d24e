/* Which session follows which (src/cluster/sessions.h), in virtual time: what ends one is played here, by a
 * list. That one who was lost is waited for from then on, that a loss before the training began counts
 * against the time of the start, that an end in order and a refusal are final; and that no two sessions have
 * the same name or settings that were not typed. */
#include "../../src/cluster/sessions.h"

#include <string.h>

#include "../../src/base/memory.h"
#include "../check.h"

enum { SESSIONS_MOST = 8 };

#define WAIT_S 50.0
#define START_S 20.0

/* How a session ends, and after how long. */
struct ending {
    double lasts_s;
    int code;
    bool met, begun, over;
    long seen;
};

struct play {
    struct ending list[SESSIONS_MOST];
    int count; /* so far */
    uint64_t processes[SESSIONS_MOST];
    double start_s[SESSIONS_MOST]; /* what each was told to wait */
    long seen_before[SESSIONS_MOST];
};

static int train(void *argument, struct cluster_session *session, bool *abandoned, struct error *error) {
    struct play *play = argument;
    const struct ending *ending = &play->list[play->count];
    *abandoned = false;
    if (play->count == SESSIONS_MOST) return error_set(error, ERROR_INTERNAL, "too many sessions");
    play->processes[play->count] = session->cluster->process;
    play->start_s[play->count] = session->typed->value.start_timeout_s;
    play->seen_before[play->count] = session->seen_before;
    play->count++;
    session_see(session, ending->seen);
    session_see(session, ending->seen / 2);
    atomic_store(&session->met, ending->met);
    atomic_store(&session->begun, ending->begun);
    atomic_store(&session->over, ending->over);
    world_sleep(session->world, ending->lasts_s);
    return ending->code == OK ? OK : error_set(error, ending->code, "end %d", play->count);
}

/* Its code, and the words into *error. */
static int act(struct play *play, double wait_s, struct error *error) {
    struct world *world = NULL;
    struct typed *typed = NULL;
    const struct cluster cluster = {.process = 4711};
    bool abandoned = true;
    *error = (struct error){0};
    CHECK(world_open_simulated(&world, 1, error) == OK && memory_array(&typed, 1, "settings", error) == OK,
          "%s", error->words);
    option_defaults(run_options, typed);
    typed->value.restart_wait_s = wait_s;
    typed->value.start_timeout_s = START_S;
    const int code = sessions_train(typed, &cluster, world, train, play, &abandoned, error);
    CHECK(!abandoned && code == error->code, "code %d", code);
    CHECK(play->processes[0] == 4711 && play->start_s[0] == START_S, "the first: %g s", play->start_s[0]);
    for (int i = 0; i < play->count; i++)
        for (int j = 0; j < i; j++)
            CHECK(play->processes[i] != play->processes[j], "sessions %d and %d have one name", i, j);
    memory_free(typed);
    world_close(world);
    return code;
}

/* --- the first that does not end so ends all --- */

static void test_one_session(void) {
    const struct ending endings[] = {
        {.lasts_s = 1, .met = true, .begun = true},
        {.lasts_s = 1, .code = ERROR_PEER},
        {.lasts_s = 1, .code = ERROR_PEER, .met = true, .over = true},
        {.lasts_s = 1, .code = ERROR_PEER, .met = true, .begun = true, .over = true},
        {.lasts_s = START_S, .code = ERROR_PEER, .met = true},
        {.lasts_s = 1, .code = ERROR_FILE, .met = true, .begun = true},
        {.lasts_s = 1, .code = ERROR_DIVERGED, .met = true, .begun = true},
        {.lasts_s = 1, .code = ERROR_INTERRUPTED, .met = true, .begun = true}};
    struct error error;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct play play = {.list = {endings[i]}};
        CHECK(act(&play, WAIT_S, &error) == endings[i].code && play.count == 1, "%zu: %d sessions, code %d",
              i, play.count, error.code);
        CHECK(error.code == OK || strcmp(error.words, "end 1") == 0, "%zu: \"%s\"", i, error.words);
    }
    struct play play = {.list = {{.lasts_s = 1, .code = ERROR_PEER, .met = true, .begun = true}}};
    CHECK(act(&play, 0.0, &error) == ERROR_PEER && play.count == 1, "without --restart-wait: %d sessions",
          play.count);
}

/* --- losses --- */

static bool near(double found, double expected) {
    return found > expected - 1.0 && found <= expected;
}

static void test_lost_twice(void) {
    struct error error;
    struct play play = {.list = {{.lasts_s = 500, .code = ERROR_PEER, .met = true, .begun = true, .seen = 70},
                                 {.lasts_s = 10, .code = ERROR_PEER, .met = true},
                                 {.lasts_s = 15, .code = ERROR_PEER},
                                 {.lasts_s = 900, .code = ERROR_PEER, .met = true, .begun = true, .seen = 30},
                                 {.lasts_s = 100, .met = true, .begun = true}}};
    CHECK(act(&play, WAIT_S, &error) == OK && play.count == 5, "%d sessions: %s", play.count, error.words);
    CHECK(near(play.start_s[1], WAIT_S) && near(play.start_s[2], WAIT_S - 10) &&
              near(play.start_s[3], WAIT_S - 25) && near(play.start_s[4], WAIT_S),
          "waited for: %g, %g, %g, %g s", play.start_s[1], play.start_s[2], play.start_s[3], play.start_s[4]);
    CHECK(play.seen_before[0] == 0 && play.seen_before[1] == 70 && play.seen_before[2] == 70 &&
              play.seen_before[3] == 70 && play.seen_before[4] == 30,
          "seen: %ld, %ld, %ld, %ld", play.seen_before[1], play.seen_before[2], play.seen_before[3],
          play.seen_before[4]);
}

static void test_not_back(void) {
    struct error error;
    struct play play = {.list = {{.lasts_s = 500, .code = ERROR_PEER, .met = true, .begun = true},
                                 {.lasts_s = 20, .code = ERROR_PEER},
                                 {.lasts_s = 40, .code = ERROR_PEER}}};
    CHECK(act(&play, WAIT_S, &error) == ERROR_PEER && play.count == 3, "%d sessions", play.count);
    CHECK(strcmp(error.words, "lost: end 1; not all were back within 50 s (--restart-wait): end 3") == 0,
          "\"%s\"", error.words);
}

/* Somebody has gone again before the training began: the process waits for all as long as it would have. */
static void test_lost_before_the_start(void) {
    struct error error;
    struct play play = {.list = {{.lasts_s = 4, .code = ERROR_PEER, .met = true},
                                 {.lasts_s = 5, .code = ERROR_PEER, .met = true},
                                 {.lasts_s = 30, .code = ERROR_PEER, .met = true}}};
    CHECK(act(&play, WAIT_S, &error) == ERROR_PEER && play.count == 3, "%d sessions", play.count);
    CHECK(near(play.start_s[1], START_S - 4) && near(play.start_s[2], START_S - 9), "%g, %g s",
          play.start_s[1], play.start_s[2]);
    CHECK(strcmp(error.words, "end 3") == 0, "\"%s\"", error.words);
}

/* Who is refused by those who have come back need not wait for them. */
static void test_refused_afterwards(void) {
    struct error error;
    struct play play = {.list = {{.lasts_s = 500, .code = ERROR_PEER, .met = true, .begun = true},
                                 {.lasts_s = 1, .code = ERROR_PEER, .over = true}}};
    CHECK(act(&play, WAIT_S, &error) == ERROR_PEER && play.count == 2, "%d sessions", play.count);
    CHECK(strcmp(error.words, "end 2") == 0, "\"%s\"", error.words);
}

int main(void) {
    test_one_session();
    test_lost_twice();
    test_not_back();
    test_lost_before_the_start();
    test_refused_afterwards();
    return check_end();
}
