/* Roster, timeout, barrier and mailbox, in both worlds. */
#include "../check.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/memory.h"
#include "../../src/base/rng.h"
#include "../../src/world/waits.h"

enum { MOST = 8 };

static struct world *open_world(bool simulated, uint64_t seed) {
    struct world *world = 0;
    struct error error = {0};
    const int code =
        simulated ? world_open_simulated(&world, seed, &error) : world_open_threads(&world, &error);
    CHECK(code == OK, "%s", error.words);
    return world;
}

static struct world_thread *spawn(struct world *world, world_body *body, void *argument) {
    struct world_thread *thread = 0;
    struct error error = {0};
    CHECK(world_spawn(world, "waits", 0, body, argument, &thread, &error) == OK, "%s", error.words);
    return thread;
}

static void open_roster(struct roster *roster, struct world *world, int workers, int servers,
                        double timeout_s) {
    struct error error = {0};
    CHECK(roster_open(roster, world, workers, servers, timeout_s, &error) == OK, "%s", error.words);
    for (int i = 0; i < workers; i++) {
        char name[sizeof roster->members[i].name];
        snprintf(name, sizeof name, "%.20s (cpu:%d)", roster->members[i].name, i);
        memcpy(roster->members[i].name, name, sizeof name);
    }
}

static void test_roster(bool simulated) {
    struct world *world = open_world(simulated, 1);
    struct roster roster;
    struct error error = {0};
    CHECK(roster_open(&roster, world, 3, 2, 60, &error) == OK, "%s", error.words);
    CHECK(roster.count == 5 && roster.workers == 3, "%d members", roster.count);
    CHECK(strcmp(roster.members[2].name, "worker 2") == 0, "%s", roster.members[2].name);
    CHECK(strcmp(roster.members[4].name, "server 1") == 0, "%s", roster.members[4].name);
    CHECK(roster_active_workers(&roster) == 3, "%d", roster_active_workers(&roster));
    world_sleep(world, 0.001);
    const double now = roster_phase(&roster, 1, PHASE_PUSH);
    CHECK(now > 0 && roster.members[1].since == now && roster.members[1].phase == PHASE_PUSH, "at %g", now);
    roster_leave(&roster, 3, PHASE_DONE);
    CHECK(roster_active_workers(&roster) == 3, "a server left, no worker did");
    roster_leave(&roster, 0, PHASE_FAILED);
    CHECK(roster_active_workers(&roster) == 2, "%d", roster_active_workers(&roster));
    CHECK(roster.members[0].phase == PHASE_FAILED && !roster.members[0].active, "it left as failed");
    for (int phase = 0; phase < PHASES; phase++)
        CHECK(phase_name((enum phase)phase)[0] != 0, "phase %d has no name", phase);
    roster_close(&roster);
    roster_close(&roster);
    world_close(world);
}

/* --- mailbox --- */

static void test_mailbox_alone(void) {
    struct mailbox box;
    struct error error = {0};
    struct mail mail;
    for (int capacity = 1; capacity <= 9; capacity++) {
        CHECK(mailbox_open(&box, capacity, &error) == OK, "%s", error.words);
        CHECK(box.capacity >= (uint64_t)capacity && (box.capacity & (box.capacity - 1)) == 0, "%d", capacity);
        int sent = 0, received = 0;
        for (int round = 0; round < 5; round++) {
            while (sent < received + 99 && mailbox_send(&box, (struct mail){.worker = 7, .slot = sent}))
                sent++;
            CHECK((uint64_t)(sent - received) == box.capacity, "full with %d of %d", sent - received,
                  capacity);
            for (int i = 0; i <= round && mailbox_receive(&box, &mail); i++, received++)
                CHECK(mail.worker == 7 && mail.slot == received, "mail %d, expected %d", mail.slot, received);
        }
        CHECK(mailbox_has_mail(&box) == (sent > received), "%d sent, %d received", sent, received);
        for (; mailbox_receive(&box, &mail); received++) CHECK(mail.slot == received, "mail %d", mail.slot);
        CHECK(sent == received && !mailbox_has_mail(&box), "sent %d, received %d", sent, received);
        mailbox_close(&box);
    }
    mailbox_close(&box);
}

enum { SENDERS = 4, MAILS = 2000, SLOTS = 3 };
struct post_office {
    struct world *world;
    struct mailbox box;
    struct event mail, room;
    struct sender {
        struct post_office *office;
        int number, refused;
        long sent;
        _Atomic long taken;
        long contents[SLOTS]; /* plain: what the mail is about */
    } senders[SENDERS];
};

static bool has_room(void *argument) {
    const struct sender *sender = argument;
    return sender->sent - atomic_load(&sender->taken) < SLOTS;
}

static void send_all(void *argument) {
    struct sender *sender = argument;
    struct post_office *office = sender->office;
    for (; sender->sent < MAILS; sender->sent++) {
        if (event_wait_until(&office->room, has_room, sender, INFINITY) != WAIT_DONE) break;
        const int slot = (int)(sender->sent % SLOTS);
        sender->contents[slot] = sender->sent * SENDERS + sender->number;
        if (!mailbox_send(&office->box, (struct mail){.worker = sender->number, .slot = slot}))
            sender->refused++;
        event_post(&office->mail);
        if (sender->sent % 97 == sender->number) world_work(office->world, 0.001);
    }
}

static bool has_mail(void *argument) {
    return mailbox_has_mail(&((struct post_office *)argument)->box);
}

static void test_mailbox_many(bool simulated) {
    static struct post_office office;
    memset(&office, 0, sizeof office);
    office.world = open_world(simulated, 2);
    struct error error = {0};
    CHECK(mailbox_open(&office.box, SENDERS * SLOTS, &error) == OK, "%s", error.words);
    event_open(&office.mail, office.world);
    event_open(&office.room, office.world);
    struct world_thread *threads[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        office.senders[i].office = &office;
        office.senders[i].number = i;
        threads[i] = spawn(office.world, send_all, &office.senders[i]);
    }
    long next[SENDERS] = {0};
    for (int i = 0; i < SENDERS * MAILS; i++) {
        const enum wait_result result =
            event_wait_until(&office.mail, has_mail, &office, world_now(office.world) + 20);
        struct mail mail = {0};
        if (result != WAIT_DONE || !mailbox_receive(&office.box, &mail)) {
            CHECK(false, "mail %d of %d did not come, result %d", i, SENDERS * MAILS, (int)result);
            world_stop(office.world);
            break;
        }
        struct sender *sender = &office.senders[mail.worker];
        const long expected = next[mail.worker]++;
        CHECK(sender->contents[mail.slot] == expected * SENDERS + mail.worker &&
                  mail.slot == expected % SLOTS,
              "sender %d: %ld in slot %d, expected mail %ld", mail.worker, sender->contents[mail.slot],
              mail.slot, expected);
        atomic_fetch_add(&sender->taken, 1);
        event_post(&office.room);
    }
    CHECK(!mailbox_has_mail(&office.box), "more mail than was sent");
    for (int i = 0; i < SENDERS; i++) {
        world_join(threads[i]);
        CHECK(next[i] == MAILS && office.senders[i].refused == 0, "sender %d: %ld mails", i, next[i]);
    }
    mailbox_close(&office.box);
    world_close(office.world);
}

/* Senders that never pause: the most contention there can be at the tail. */
enum { BURST = 20000 };

static void send_burst(void *argument) {
    struct sender *sender = argument;
    struct post_office *office = sender->office;
    event_wait(&office->room, 1, INFINITY);
    for (int slot = 0; slot < BURST; slot++)
        sender->refused += !mailbox_send(&office->box, (struct mail){.worker = sender->number, .slot = slot});
    event_post(&office->mail);
}

static void test_mailbox_burst(void) {
    static struct post_office office;
    memset(&office, 0, sizeof office);
    office.world = open_world(false, 0);
    struct error error = {0};
    CHECK(mailbox_open(&office.box, SENDERS * BURST, &error) == OK, "%s", error.words);
    event_open(&office.mail, office.world);
    event_open(&office.room, office.world);
    struct world_thread *threads[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        office.senders[i].office = &office;
        office.senders[i].number = i;
        threads[i] = spawn(office.world, send_burst, &office.senders[i]);
    }
    event_post(&office.room);
    int next[SENDERS] = {0}, wrong = 0;
    event_wait(&office.mail, SENDERS, INFINITY); /* asleep: the cores are the senders' */
    for (struct mail mail = {0}; mailbox_receive(&office.box, &mail);)
        wrong += mail.slot != next[mail.worker]++;
    CHECK(wrong == 0, "%d mails were out of order", wrong);
    for (int i = 0; i < SENDERS; i++) {
        world_join(threads[i]);
        CHECK(next[i] == BURST && office.senders[i].refused == 0, "sender %d: %d mails of %d", i, next[i],
              BURST);
    }
    mailbox_close(&office.box);
    world_close(office.world);
}

/* --- barrier --- */

struct hall {
    struct roster roster;
    struct barrier barrier;
    long rounds;
    int leaver; /* leaves before round leave_round; -1: nobody */
    long leave_round;
    double work_s; /* one unit of uneven work */
    struct visitor {
        _Alignas(64) struct hall *hall;
        int number;
        long wrong;
        long plain[2]; /* written before the barrier of an even and an odd round, read by all after it */
        _Atomic long arrived;
        struct error error;
        int code;
    } visitors[MOST];
};

static void dawdle(struct hall *hall, int number, long round) {
    const uint32_t bits = rng_philox(77, (uint64_t)number, (uint64_t)round).word[0];
    world_work(hall->roster.world, (double)(bits % 8) * 0.001 * number);
    const uint32_t turns = bits % 64 == 0 ? 50000u : bits % 500;
    for (_Atomic uint32_t i = 0; i < turns;) i++;
}

static void check_round(struct visitor *self, long round) {
    struct hall *hall = self->hall;
    for (int other = 0; other < hall->roster.workers; other++) {
        struct visitor *visitor = &hall->visitors[other];
        if (other == hall->leaver && round >= hall->leave_round) continue;
        const long arrived = atomic_load(&visitor->arrived);
        if (arrived < round + 1 || arrived > round + 2) self->wrong++; /* too early, or two rounds ahead */
        if (visitor->plain[round % 2] != round * 100 + other) self->wrong++;
    }
}

static void visit(void *argument) {
    struct visitor *self = argument;
    struct hall *hall = self->hall;
    for (long round = 0; round < hall->rounds && !self->code; round++) {
        dawdle(hall, self->number, round);
        if (self->number == hall->leaver && round == hall->leave_round) break;
        self->plain[round % 2] = round * 100 + self->number;
        atomic_store(&self->arrived, round + 1);
        barrier_arrive(&hall->barrier, self->number, round);
        self->code = barrier_wait(&hall->barrier, self->number, round, &self->error);
        if (!self->code) check_round(self, round);
    }
    roster_leave(&hall->roster, self->number, PHASE_DONE);
}

static void test_barrier(bool simulated, int workers, long rounds, int leaver) {
    static struct hall hall;
    memset(&hall, 0, sizeof hall);
    struct world *world = open_world(simulated, 3);
    struct error error = {0};
    open_roster(&hall.roster, world, workers, 1, 20);
    CHECK(barrier_open(&hall.barrier, &hall.roster, "the barrier of the test", &error) == OK, "%s",
          error.words);
    hall.rounds = rounds;
    hall.leaver = leaver;
    hall.leave_round = rounds / 2;
    struct world_thread *threads[MOST];
    for (int i = 0; i < workers; i++) {
        hall.visitors[i].hall = &hall;
        hall.visitors[i].number = i;
    }
    const double start = world_now(world);
    for (int i = 0; i < workers; i++) threads[i] = spawn(world, visit, &hall.visitors[i]);
    for (int i = 0; i < workers; i++) world_join(threads[i]);
    CHECK(world_now(world) - start < 15, "%g s for %ld rounds", world_now(world) - start, rounds);
    for (int i = 0; i < workers; i++) {
        const struct visitor *visitor = &hall.visitors[i];
        CHECK(visitor->code == OK, "%s", visitor->error.words);
        CHECK(visitor->wrong == 0, "W=%d: worker %d passed wrongly %ld times", workers, i, visitor->wrong);
        CHECK(visitor->arrived == (i == leaver ? rounds / 2 : rounds), "worker %d: %ld rounds", i,
              atomic_load(&visitor->arrived));
    }
    barrier_close(&hall.barrier);
    barrier_close(&hall.barrier);
    roster_close(&hall.roster);
    world_close(world);
}

static void test_barrier_alone(void) {
    struct world *world = open_world(false, 0);
    struct roster roster;
    struct barrier barrier;
    struct error error = {0};
    open_roster(&roster, world, 2, 0, 60);
    CHECK(barrier_open(&barrier, &roster, "a barrier", &error) == OK, "%s", error.words);
    barrier_arrive(&barrier, 0, 0);
    CHECK(!barrier_is_open(&barrier, 0) && barrier.event.count == 0, "one of two");
    barrier_arrive(&barrier, 1, 0);
    CHECK(barrier_is_open(&barrier, 0) && barrier.event.count == 1, "the last one opens and posts once");
    CHECK(!barrier_is_open(&barrier, 1), "the next round is open already");
    const double since = roster.members[0].since;
    CHECK(barrier_wait(&barrier, 0, 0, &error) == OK, "%s", error.words);
    CHECK(roster.members[0].since == since && roster.members[0].waited_s == 0,
          "an open barrier leaves no trace");
    world_stop(world);
    CHECK(barrier_wait(&barrier, 0, 0, &error) == OK, "an open barrier lets pass in a stopped world too");
    barrier_close(&barrier);
    roster_close(&roster);
    world_close(world);
}

/* Whoever arrived for a round counts in it, also when it has left since; whoever left before does not. */
static void test_barrier_rank(void) {
    struct world *world = open_world(false, 0);
    struct roster roster;
    struct barrier barrier;
    struct error error = {0};
    int arrived = 0;
    open_roster(&roster, world, 4, 0, 60);
    CHECK(barrier_open(&barrier, &roster, "a barrier", &error) == OK, "%s", error.words);
    barrier_arrive(&barrier, 0, 0);
    barrier_arrive(&barrier, 2, 0);
    barrier_arrive(&barrier, 3, 0);
    CHECK(!barrier_is_open(&barrier, 0), "one is missing");
    roster_leave(&roster, 1, PHASE_FAILED);
    CHECK(barrier_is_open(&barrier, 0), "nobody is missing any more");
    roster_leave(&roster, 2, PHASE_FAILED);
    CHECK(barrier_rank(&barrier, 0, 0, &arrived) == 0 && arrived == 3, "the first of %d", arrived);
    CHECK(barrier_rank(&barrier, 3, 0, &arrived) == 2 && arrived == 3, "the last of %d", arrived);
    CHECK(barrier_has(&barrier, 2, 0) && !barrier_has(&barrier, 1, 0) && !barrier_has(&barrier, 2, 1),
          "who has arrived");
    barrier_close(&barrier);
    roster_close(&roster);
    world_close(world);
}

static void test_expelling(void) {
    struct world *world = open_world(false, 0);
    struct roster roster;
    open_roster(&roster, world, 2, 0, 60);
    CHECK(roster_enter(&roster, 1), "a member may exchange");
    CHECK(!roster_expel(&roster, 1) && !roster_expelled(&roster, 1), "expelled in the middle of an exchange");
    roster_alone(&roster, 1);
    CHECK(roster_expel(&roster, 1) && roster_expelled(&roster, 1), "not expelled while it is alone");
    CHECK(!roster_expel(&roster, 1), "expelled twice");
    CHECK(!roster_enter(&roster, 1), "it exchanges after it was expelled");
    CHECK(roster_enter(&roster, 0), "another was expelled too");
    roster_close(&roster);
    world_close(world);
}

/* --- timeout --- */

struct scene {
    struct roster roster;
    struct barrier barrier;
    int lives;         /* phase changes that worker 1 makes before it hangs */
    double life_s;     /* seconds between them */
    bool arrives;      /* after them it arrives at the barrier */
    bool seen_waiting; /* worker 1 saw worker 0 wait at its place */
    struct error errors[3];
    int codes[3];
};
struct role {
    struct scene *scene;
    int number;
};

static void wait_at_barrier(void *argument) {
    const struct role *role = argument;
    struct scene *scene = role->scene;
    roster_phase(&scene->roster, role->number, PHASE_PULL);
    if (role->number == 2 && scene->life_s > 0) /* so that worker 0 waits for it, too */
        world_sleep(scene->roster.world, scene->life_s / 4);
    barrier_arrive(&scene->barrier, role->number, 0);
    scene->codes[role->number] = barrier_wait(&scene->barrier, role->number, 0, &scene->errors[role->number]);
}

static void hang(void *argument) {
    struct scene *scene = ((const struct role *)argument)->scene;
    struct world *world = scene->roster.world;
    scene->roster.members[1].step = 51;
    roster_phase(&scene->roster, 1, PHASE_COMPUTE);
    for (int life = 0; life < scene->lives; life++) {
        world_sleep(world, scene->life_s);
        roster_phase(&scene->roster, 1, life % 2 ? PHASE_COMPUTE : PHASE_INPUT);
    }
    const struct member *first = &scene->roster.members[0];
    scene->seen_waiting = first->phase == PHASE_WAIT && first->place == scene->barrier.place;
    if (scene->arrives)
        barrier_arrive(&scene->barrier, 1, 0);
    else
        world_sleep(world, 1e6); /* until the world is stopped */
}

/* The server, whom nobody waits for, is as lively as can be, which must not make the others more patient. */
static void be_busy(void *argument) {
    struct scene *scene = ((const struct role *)argument)->scene;
    for (int turn = 0; turn < 40 && !world_stopped(scene->roster.world); turn++) {
        roster_phase(&scene->roster, 3, turn % 2 ? PHASE_APPLY : PHASE_IDLE);
        world_sleep(scene->roster.world, scene->roster.timeout_s / 7);
    }
}

static void play(struct scene *scene, bool simulated, double timeout_s) {
    struct world *world = open_world(simulated, 4);
    struct error error = {0};
    open_roster(&scene->roster, world, 3, 1, timeout_s);
    CHECK(barrier_open(&scene->barrier, &scene->roster, "the barrier of shard 0", &error) == OK, "%s",
          error.words);
    struct role roles[4] = {{scene, 0}, {scene, 1}, {scene, 2}, {scene, 3}};
    world_body *const bodies[4] = {wait_at_barrier, hang, wait_at_barrier, be_busy};
    struct world_thread *threads[4];
    for (int i = 0; i < 4; i++) threads[i] = spawn(world, bodies[i], &roles[i]);
    world_join(threads[0]);
    world_join(threads[2]);
    for (int i = 0; i < 3; i += 2) {
        CHECK(scene->roster.members[i].phase == PHASE_PULL, "the phase before is back");
        CHECK(scene->roster.members[i].place == 0, "no place any more");
    }
    world_stop(world);
    world_join(threads[1]);
    world_join(threads[3]);
}

static void end(struct scene *scene) {
    struct world *world = scene->roster.world;
    barrier_close(&scene->barrier);
    roster_close(&scene->roster);
    world_close(world);
}

static void test_gives_up(void) {
    struct scene scene = {0};
    play(&scene, true, 60);
    CHECK(scene.codes[0] == ERROR_PEER && scene.codes[2] == ERROR_PEER, "codes %d %d", scene.codes[0],
          scene.codes[2]);
    const char *expected =
        "worker 0 (cpu:0) gave up after 60 s at the barrier of shard 0: waiting for worker 1 (cpu:1), "
        "computing for 60.0 s at step 51; arrived: worker 0 (cpu:0), worker 2 (cpu:2)";
    CHECK(strcmp(scene.errors[0].words, expected) == 0, "%s", scene.errors[0].words);
    CHECK(fabs(scene.roster.members[0].waited_s - 60) < 1e-6, "waited %g s",
          scene.roster.members[0].waited_s);
    end(&scene);

    scene = (struct scene){0};
    play(&scene, false, 0.2);
    const char *must = "worker 2 (cpu:2) gave up after 0.2 s at the barrier of shard 0: waiting for worker 1 "
                       "(cpu:1), computing";
    CHECK(strncmp(scene.errors[2].words, must, strlen(must)) == 0, "%s", scene.errors[2].words);
    const double waited = scene.roster.members[2].waited_s;
    CHECK(waited >= 0.19 && waited < 10, "waited %g s", waited);
    end(&scene);
}

static void test_signs_of_life(bool simulated) {
    const double timeout_s = simulated ? 60 : 0.2;
    struct scene scene = {.lives = 4, .life_s = timeout_s * (simulated ? 0.9 : 0.5), .arrives = true};
    play(&scene, simulated, timeout_s);
    CHECK(scene.codes[0] == OK && scene.codes[2] == OK, "%s", scene.errors[0].words);
    CHECK(scene.seen_waiting, "a waiter shows that it waits, and where");
    const double waited = scene.roster.members[0].waited_s, least = 4 * scene.life_s;
    CHECK(simulated ? fabs(waited - least) < 1e-6 : waited > least * 0.9, "waited %g s of %g", waited, least);
    /* All of it is put down to the one that came last, and to the place. */
    const struct member *first = &scene.roster.members[0];
    CHECK(fabs(first->waited_for[1] - waited) < 1e-9 && fabs(first->waited_for[2]) < 1e-9,
          "of %g s, %g for worker 1 and %g for worker 2", waited, first->waited_for[1], first->waited_for[2]);
    CHECK(first->waited_at[0].place && strcmp(first->waited_at[0].place, "the barrier of shard 0") == 0 &&
              fabs(first->waited_at[0].seconds - waited) < 1e-9 && !first->waited_at[1].place,
          "%g s at %s", first->waited_at[0].seconds, first->waited_at[0].place);
    end(&scene);

    if (!simulated) return;
    scene = (struct scene){.lives = 3, .life_s = 50}; /* then it hangs: 150 s of life and 60 of timeout */
    play(&scene, simulated, 60);
    CHECK(scene.codes[0] == ERROR_PEER, "code %d", scene.codes[0]);
    CHECK(fabs(scene.roster.members[0].waited_s - 210) < 1e-6, "waited %g s",
          scene.roster.members[0].waited_s);
    end(&scene);
}

static void stop_later(void *argument) {
    struct world *world = argument;
    world_sleep(world, 0.02);
    world_stop(world);
}

static void test_stopped(bool simulated) {
    struct scene scene = {0};
    struct world *world = open_world(simulated, 5);
    struct error error = {0};
    open_roster(&scene.roster, world, 3, 0, 60);
    CHECK(barrier_open(&scene.barrier, &scene.roster, "the barrier of shard 0", &error) == OK, "%s",
          error.words);
    struct role role = {&scene, 0};
    struct world_thread *waiter = spawn(world, wait_at_barrier, &role);
    struct world_thread *stopper = spawn(world, stop_later, world);
    world_join(waiter);
    world_join(stopper);
    const char *expected = "worker 0 (cpu:0) was stopped while waiting at the barrier of shard 0";
    CHECK(scene.codes[0] == ERROR_PEER && strcmp(scene.errors[0].words, expected) == 0, "%s",
          scene.errors[0].words);
    const double waited = scene.roster.members[0].waited_s;
    CHECK(simulated ? waited == 0.02 : waited > 0 && waited < 5, "waited %g s", waited);
    end(&scene);
}

/* A thousand members fit into the words: some are named, the rest counted. */
static void test_many_words(void) {
    struct world *world = open_world(true, 6);
    struct roster roster;
    struct barrier barrier;
    struct error error = {0};
    open_roster(&roster, world, 1000, 0, 60);
    CHECK(barrier_open(&barrier, &roster, "the barrier of shard 0", &error) == OK, "%s", error.words);
    roster_leave(&roster, 999, PHASE_FAILED);
    for (int worker = 0; worker < 500; worker++) barrier_arrive(&barrier, worker, 0);
    CHECK(barrier_wait(&barrier, 0, 0, &error) == ERROR_PEER, "499 never come");
    CHECK(strstr(error.words, "worker 500 (cpu:500), starting for 60.0 s at step 0") != 0, "%s", error.words);
    CHECK(strstr(error.words, "; and 496 more; arrived: worker 0 (cpu:0), worker 1") != 0, "%s", error.words);
    CHECK(strcmp(error.words + strlen(error.words) - 13, " and 495 more") == 0, "%s", error.words);
    barrier_close(&barrier);
    roster_close(&roster);
    world_close(world);
}

/* Two that wait for each other: waiting is no sign of life. */
struct pair {
    struct roster roster;
    struct event event;
    struct error errors[2];
    int codes[2];
};
struct half {
    struct pair *pair;
    int number;
};

static bool not_ready(void *argument) {
    (void)argument;
    return false;
}
static bool is_other(void *argument, int member) {
    return member != ((const struct half *)argument)->number;
}

static void wait_for_other(void *argument) {
    struct half *half = argument;
    struct pair *pair = half->pair;
    const int self = half->number;
    pair->codes[self] =
        wait_with_timeout(&pair->roster, self, &pair->event, not_ready, is_other, half,
                          self ? "the mailbox of shard 0" : "the reply of shard 0", &pair->errors[self]);
}

static void test_mutual(void) {
    struct pair pair = {0};
    struct world *world = open_world(true, 7);
    open_roster(&pair.roster, world, 1, 1, 60);
    event_open(&pair.event, world);
    struct half halves[2] = {{&pair, 0}, {&pair, 1}};
    struct world_thread *threads[2];
    for (int i = 0; i < 2; i++) threads[i] = spawn(world, wait_for_other, &halves[i]);
    for (int i = 0; i < 2; i++) world_join(threads[i]);
    CHECK(pair.codes[0] == ERROR_PEER || pair.codes[1] == ERROR_PEER, "both are still waiting");
    const char *first =
        "worker 0 (cpu:0) gave up after 60 s at the reply of shard 0: waiting for server 0, waiting at "
        "the mailbox of shard 0 for 60.0 s at step 0";
    const char *second =
        "server 0 gave up after 60 s at the mailbox of shard 0: waiting for worker 0 (cpu:0), waiting "
        "at the reply of shard 0 for 60.0 s at step 0; arrived: nobody";
    CHECK(strcmp(pair.errors[0].words, first) == 0 || strcmp(pair.errors[1].words, second) == 0, "%s / %s",
          pair.errors[0].words, pair.errors[1].words);
    roster_close(&pair.roster);
    world_close(world);
}

/* A wait for a lock counts, at its place; and a wait is put down to whom it was for, not to who acted last.
 */
struct desk {
    struct roster roster;
    struct lock lock;
    struct event event;
    _Atomic bool ready;
};

static void hold_lock(void *argument) {
    struct desk *desk = argument;
    for (int turn = 0; turn < 3; turn++) {
        lock_take(&desk->lock);
        world_sleep(desk->roster.world, 2.0);
        lock_release(&desk->lock);
        world_sleep(desk->roster.world, 2.0);
    }
    roster_phase(&desk->roster, 1, PHASE_PUSH);
    atomic_store(&desk->ready, true);
    event_post(&desk->event);
}

static void act(void *argument) {
    struct desk *desk = argument;
    world_sleep(desk->roster.world, 11.5);
    roster_phase(&desk->roster, 2, PHASE_PUSH);
    world_sleep(desk->roster.world, 0.5);
    roster_phase(&desk->roster, 2, PHASE_PULL);
}

static bool is_ready(void *argument) {
    return atomic_load(&((struct desk *)argument)->ready);
}
static bool is_first(void *argument, int member) {
    (void)argument;
    return member == 1;
}

static void wait_at_desk(void *argument) {
    static const char *const places[] = {"one lock", "another lock", "one lock"};
    struct desk *desk = argument;
    struct error error = {0};
    const struct member *self = &desk->roster.members[0];
    roster_phase(&desk->roster, 0, PHASE_PULL);
    for (int turn = 0; turn < 3; turn++) {
        world_sleep(desk->roster.world, turn == 0 ? 0.5 : 2.5);
        lock_take_as(&desk->lock, &desk->roster, 0, places[turn]);
        lock_release(&desk->lock);
        CHECK(fabs(self->waited_s - 1.5 * (turn + 1)) < 1e-6 && self->phase == PHASE_PULL,
              "waited %g s for the lock, is %s", self->waited_s, phase_name((enum phase)self->phase));
    }
    CHECK(wait_with_timeout(&desk->roster, 0, &desk->event, is_ready, is_first, desk, "the end", &error) ==
              OK,
          "%s", error.words);
}

static void test_whom_and_where(void) {
    static struct desk desk;
    struct world *world = open_world(true, 8);
    open_roster(&desk.roster, world, 3, 0, 60);
    lock_open(&desk.lock, world);
    event_open(&desk.event, world);
    world_body *const bodies[] = {hold_lock, wait_at_desk, act};
    struct world_thread *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = spawn(world, bodies[i], &desk);
    for (int i = 0; i < 3; i++) world_join(threads[i]);
    const struct member *self = &desk.roster.members[0];
    CHECK(strcmp(self->waited_at[0].place, "one lock") == 0 && fabs(self->waited_at[0].seconds - 3.0) < 1e-6,
          "%g s at %s", self->waited_at[0].seconds, self->waited_at[0].place);
    CHECK(self->waited_at[1].place && strcmp(self->waited_at[1].place, "another lock") == 0 &&
              fabs(self->waited_at[1].seconds - 1.5) < 1e-6,
          "%g s at the second place", self->waited_at[1].seconds);
    CHECK(self->waited_for[1] > 1.9 && self->waited_for[1] < 2.1 && fabs(self->waited_for[2]) < 1e-9,
          "waited %g s for worker 1 and %g for worker 2", self->waited_for[1], self->waited_for[2]);
    roster_close(&desk.roster);
    world_close(world);
}

int main(void) {
    test_mailbox_alone();
    for (int i = 0; i < 3; i++) test_mailbox_burst();
    test_barrier_alone();
    test_barrier_rank();
    test_expelling();
    for (int simulated = 0; simulated <= 1; simulated++) {
        test_roster(simulated);
        test_mailbox_many(simulated);
        test_barrier(simulated, 1, 300, -1);
        test_barrier(simulated, 2, 1000, -1);
        test_barrier(simulated, 3, 500, -1);
        test_barrier(simulated, 8, 200, -1);
        test_barrier(simulated, 3, 100, 2);
        test_barrier(simulated, 2, 100, 0);
        test_signs_of_life(simulated);
        test_stopped(simulated);
    }
    test_gives_up();
    test_many_words();
    test_mutual();
    test_whom_and_where();
    return check_end();
}
