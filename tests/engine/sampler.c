/* The sampler: every batch exactly once, in all shardings, with rounds or without, through stops, boundaries
 * of epochs that do not divide, and resuming.
 *
 * One thread plays all workers, in a seeded random order. With rounds the barriers hold a worker back that is
 * two batches ahead of another one, and a prefetcher asks for up to four more in advance. */
#include <stdlib.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/engine/sampler.h"
#include "../../src/world/world.h"
#include "../check.h"

enum { MOST_WORKERS = 5, MOST_BATCHES = 400 };

struct play {
    struct stream stream;
    bool rounds;
    int epochs;
    int lead; /* rounds that a worker may be ahead of another */
    struct sampler sampler;
    int assigned[MOST_WORKERS][MOST_BATCHES]; /* how often; for a shared stream all in row 0 */
    long last[MOST_WORKERS];                  /* number assigned last to this worker, -1: none */
    long taken[MOST_WORKERS];                 /* times that sampler_next said yes, in this sampler */
    uint64_t seed, draws;
    char name[160];
};

static uint32_t draw(struct play *play, uint32_t below) {
    return rng_philox(play->seed, 1, play->draws++).word[0] % below;
}
static bool is_shared(const struct play *play) {
    return play->stream.sharding == SHARDING_SHARED;
}

/* Lets one worker ask. */
static bool ask(struct play *play, int w) {
    long number = -7;
    if (!sampler_next(&play->sampler, w, &number)) return false;
    play->taken[w]++;
    if (number == NO_BATCH) {
        CHECK(play->rounds && is_shared(play), "%s: worker %d was assigned an empty batch", play->name, w);
        return true;
    }
    CHECK(number >= 0 && number < MOST_BATCHES, "%s: worker %d was assigned batch %ld", play->name, w,
          number);
    if (number < 0 || number >= MOST_BATCHES) return true;
    if (!is_shared(play))
        CHECK(number == play->last[w] + 1, "%s: worker %d was assigned %ld after %ld", play->name, w, number,
              play->last[w]);
    CHECK(number > play->last[w], "%s: worker %d was assigned %ld after %ld", play->name, w, number,
          play->last[w]);
    play->last[w] = number;
    play->assigned[is_shared(play) ? 0 : w][number]++;
    return true;
}

static bool is_ahead(const struct play *play, const long *begin, const bool *paused, int w) {
    for (int v = 0; v < play->stream.workers; v++)
        if (!paused[v] && play->taken[w] - begin[w] >= play->taken[v] - begin[v] + play->lead) return true;
    return false;
}

static long furthest(const struct play *play, const long *begin) {
    long most = 0;
    for (int w = 0; w < play->stream.workers; w++)
        if (play->taken[w] - begin[w] > most) most = play->taken[w] - begin[w];
    return most;
}

/* All workers ask in random order until each is told to pause; sampler_stop comes after `stop_after` answers
 * (0: never). */
static long segment(struct play *play, long stop_after) {
    const int workers = play->stream.workers;
    bool paused[MOST_WORKERS] = {false};
    long answers = 0, since_stop = 0, rounds_at_stop = -1;
    long begin[MOST_WORKERS];
    memcpy(begin, play->taken, sizeof begin);
    for (int left = workers; left > 0;) {
        const int w = (int)draw(play, (uint32_t)workers);
        if (paused[w]) continue;
        if (play->rounds && is_ahead(play, begin, paused, w)) continue;
        if (stop_after > 0 && answers == stop_after) {
            rounds_at_stop = furthest(play, begin);
            sampler_stop(&play->sampler);
        }
        if (ask(play, w)) {
            answers++;
            if (stop_after > 0 && answers > stop_after) since_stop++;
        } else {
            paused[w] = true;
            left--;
        }
    }
    /* After a stop nothing is assigned but the rest of the rounds that anybody was assigned before it. */
    if (rounds_at_stop >= 0 && !play->rounds)
        CHECK(since_stop == 0, "%s: %ld batches were assigned after the stop", play->name, since_stop);
    if (rounds_at_stop >= 0 && play->rounds)
        CHECK(furthest(play, begin) == rounds_at_stop, "%s: %ld rounds, stopped in round %ld", play->name,
              furthest(play, begin), rounds_at_stop);
    if (play->rounds)
        for (int w = 0; w < workers; w++)
            CHECK(play->taken[w] - begin[w] == play->taken[0] - begin[0],
                  "%s: worker %d took %ld rounds, worker 0 %ld", play->name, w, play->taken[w] - begin[w],
                  play->taken[0] - begin[0]);
    for (int w = 0; w < workers; w++)
        CHECK(!ask(play, w), "%s: worker %d was assigned a batch after the pause", play->name, w);
    return answers;
}

static long up(long a, long b) {
    return (a + b - 1) / b;
}

/* Examples that worker w goes through in an epoch, counted without the stream. */
static long own_examples(const struct play *play, int w) {
    long count = 0;
    for (int i = 0; i < play->stream.examples; i++)
        if (play->stream.sharding != SHARDING_SPLIT || i % play->stream.workers == w) count++;
    return count;
}

/* Batches of worker w until the end of an epoch; with rounds all go as far as the one that has most. */
static long own_end(const struct play *play, int w, int epoch) {
    long end = up((epoch + 1) * own_examples(play, w), play->stream.batch);
    for (int v = 0; play->rounds && !is_shared(play) && v < play->stream.workers; v++) {
        const long other = up((epoch + 1) * own_examples(play, v), play->stream.batch);
        if (other > end) end = other;
    }
    return end;
}

static long assigned_so_far(const struct play *play) {
    long count = 0;
    for (int w = 0; w < play->stream.workers; w++)
        for (int b = 0; b < MOST_BATCHES; b++) count += play->assigned[w][b];
    return count;
}

static void check_standing(const struct play *play) {
    CHECK(sampler_position(&play->sampler) == assigned_so_far(play), "%s: position %ld after %ld batches",
          play->name, sampler_position(&play->sampler), assigned_so_far(play));
    for (int w = 0; w < play->stream.workers && !is_shared(play); w++)
        CHECK(sampler_own(&play->sampler, w) == play->last[w] + 1,
              "%s: worker %d is at %ld, last assigned %ld", play->name, w, sampler_own(&play->sampler, w),
              play->last[w]);
    for (int epoch = 0; epoch < play->epochs; epoch++) {
        bool reached = !is_shared(play) || assigned_so_far(play) >= own_end(play, 0, epoch);
        for (int w = 0; w < play->stream.workers && !is_shared(play); w++)
            if (play->last[w] + 1 < up((epoch + 1) * own_examples(play, w), play->stream.batch))
                reached = false;
        CHECK(sampler_reached(&play->sampler, epoch) == reached, "%s: epoch %d %s", play->name, epoch,
              reached ? "is complete" : "is not complete");
    }
}

static bool open_at(struct play *play, long base, const long *done) {
    struct error error = {0};
    const int code =
        sampler_open(&play->sampler, &play->stream, play->rounds, play->epochs, base, done, &error);
    CHECK(code == OK, "%s", error.words);
    memset(play->taken, 0, sizeof play->taken);
    return code == OK;
}

/* A new sampler where the old one was: as after a checkpoint. */
static bool resume(struct play *play) {
    long done[MOST_WORKERS];
    const long position = sampler_position(&play->sampler);
    for (int w = 0; w < play->stream.workers; w++) done[w] = sampler_own(&play->sampler, w);
    sampler_close(&play->sampler);
    return open_at(play, is_shared(play) ? position : 0, is_shared(play) ? NULL : done);
}

static void check_end_of_play(struct play *play) {
    const int workers = play->stream.workers;
    long all = 0;
    for (int w = 0; w < (is_shared(play) ? 1 : workers); w++) {
        const long end = own_end(play, w, play->epochs - 1);
        all += end;
        for (int b = 0; b < MOST_BATCHES; b++)
            CHECK(play->assigned[w][b] == (b < end), "%s: batch %d of %d was assigned %d times, of %ld",
                  play->name, b, w, play->assigned[w][b], end);
    }
    CHECK(sampler_total(&play->sampler) == all, "%s: %ld batches in all, expected %ld", play->name,
          sampler_total(&play->sampler), all);
    CHECK(sampler_updates(&play->sampler, play->rounds ? workers : 1) ==
              (play->rounds ? up(all, workers) : all),
          "%s: %ld updates", play->name, sampler_updates(&play->sampler, play->rounds ? workers : 1));
}

/* `stops`: a stop somewhere in each epoch; `resumes`: and then a new sampler. */
static void check_play(struct play *play, bool stops, bool resumes) {
    snprintf(play->name, sizeof play->name, "%d examples by %d, %d workers, sharding %d, %s, %d epochs%s%s",
             play->stream.examples, play->stream.batch, play->stream.workers, (int)play->stream.sharding,
             play->rounds ? "rounds" : "no rounds", play->epochs, stops ? ", stops" : "",
             resumes ? ", resumes" : "");
    for (int w = 0; w < MOST_WORKERS; w++) play->last[w] = -1;
    if (!open_at(play, 0, NULL)) return;
    for (int epoch = 0; epoch < play->epochs; epoch++) {
        sampler_set_limit(&play->sampler, epoch);
        segment(play, stops ? 1 + draw(play, 40) : 0);
        check_standing(play);
        if (resumes && !resume(play)) return;
        check_standing(play);
        sampler_set_limit(&play->sampler, epoch);
        segment(play, 0);
        CHECK(sampler_reached(&play->sampler, epoch), "%s: paused before the end of epoch %d", play->name,
              epoch);
        check_standing(play);
        /* No further than the boundary, but for the rest of a round. */
        const long boundary = own_end(play, 0, epoch),
                   past = is_shared(play) && play->rounds ? play->stream.workers : 1;
        CHECK((is_shared(play) ? sampler_position(&play->sampler) : sampler_own(&play->sampler, 0)) <
                  boundary + past,
              "%s: went on past the end of epoch %d", play->name, epoch);
    }
    check_end_of_play(play);
    sampler_close(&play->sampler);
}

static void check_every_batch_once(void) {
    static const int sizes[][2] = {{64, 8}, {61, 8}, {7, 8}, {90, 7}, {10, 3}};
    static struct play play;
    uint64_t seed = 0;
    for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
        for (int sharding = SHARDING_SHARED; sharding <= SHARDING_ALL; sharding++)
            for (int rounds = 0; rounds < 2; rounds++)
                for (int workers = 1; workers <= MOST_WORKERS; workers++)
                    for (int epochs = 1; epochs <= 3; epochs++)
                        for (int how = 0; how < 6; how++) {
                            memset(&play, 0, sizeof play);
                            play.stream = (struct stream){
                                .seed = 1, .examples = sizes[z][0], .batch = sizes[z][1], .workers = workers};
                            play.stream.sharding = (enum data_sharding)sharding;
                            play.rounds = rounds;
                            play.epochs = epochs;
                            play.lead = 2 + (int)(seed % 5);
                            play.seed = ++seed;
                            check_play(&play, how > 0, how > 3);
                        }
}

/* With rounds, batch r*W+w goes to worker w of round r, counted from where the run was resumed; past the end
 * there are empty ones. */
static void check_rounds(void) {
    struct sampler sampler;
    struct error error = {0};
    const struct stream stream = {.examples = 23, .batch = 1, .workers = 4};
    for (long base = 0; base < 23; base++) {
        CHECK(sampler_open(&sampler, &stream, true, 1, base, NULL, &error) == OK, "%s", error.words);
        sampler_set_limit(&sampler, 0);
        CHECK(sampler_position(&sampler) == base, "resumed at %ld, expected %ld", sampler_position(&sampler),
              base);
        for (long round = 0; round < up(23 - base, 4); round++)
            for (int w = 3; w >= 0; w--) {
                const long expected = base + round * 4 + w;
                long number = -7;
                CHECK(sampler_next(&sampler, w, &number), "round %ld, worker %d: paused", round, w);
                CHECK(number == (expected < 23 ? expected : NO_BATCH), "round %ld, worker %d: batch %ld",
                      round, w, number);
            }
        for (int w = 0; w < 4; w++) CHECK(!sampler_next(&sampler, w, &(long){0}), "a round too many");
        CHECK(sampler_position(&sampler) == 23, "ended at %ld", sampler_position(&sampler));
        sampler_close(&sampler);
    }
}

/* A run without rounds stops anywhere, and one with rounds may resume it, and the other way round. */
static void check_change_of_strategy(void) {
    static struct play play;
    for (int first = 0; first < 2; first++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            memset(&play, 0, sizeof play);
            play.stream = (struct stream){.seed = 1, .examples = 121, .batch = 3, .workers = 3};
            play.epochs = 2;
            play.lead = 3;
            play.seed = seed;
            play.rounds = first;
            snprintf(play.name, sizeof play.name, "from %s", first ? "rounds to none" : "none to rounds");
            for (int w = 0; w < MOST_WORKERS; w++) play.last[w] = -1;
            if (!open_at(&play, 0, NULL)) return;
            sampler_set_limit(&play.sampler, 0);
            segment(&play, 1 + draw(&play, 30));
            play.rounds = !play.rounds;
            if (!resume(&play)) return;
            for (int w = 0; w < MOST_WORKERS; w++) play.last[w] = -1;
            for (int epoch = 0; epoch < 2; epoch++) {
                sampler_set_limit(&play.sampler, epoch);
                segment(&play, 0);
                check_standing(&play);
            }
            check_end_of_play(&play);
            sampler_close(&play.sampler);
        }
}

/* The same without a new sampler, at the end of each epoch, whoever was lost before; in rounds the number is
 * a function of the round again, and of those who are left. */
static void check_change_in_place(void) {
    static struct play play;
    for (int sharding = SHARDING_SHARED; sharding <= SHARDING_ALL; sharding++)
        for (uint64_t seed = 1; seed <= 40; seed++) {
            memset(&play, 0, sizeof play);
            /* 40 examples for each; of a shared stream, epochs and rounds do not divide. */
            play.stream = (struct stream){.seed = 1,
                                          .examples = sharding == SHARDING_SHARED ? 121 : 120,
                                          .batch = sharding == SHARDING_SHARED ? 3 : 4,
                                          .workers = 3,
                                          .sharding = (enum data_sharding)sharding};
            play.epochs = 4;
            play.lead = 3;
            play.seed = seed;
            play.rounds = seed % 2;
            snprintf(play.name, sizeof play.name, "changed in place, sharding %d, seed %d", sharding,
                     (int)seed);
            for (int w = 0; w < MOST_WORKERS; w++) play.last[w] = -1;
            if (!open_at(&play, 0, NULL)) return;
            for (int epoch = 0; epoch < play.epochs; epoch++) {
                sampler_set_limit(&play.sampler, epoch);
                segment(&play, seed % 3 ? 1 + draw(&play, 30) : 0);
                sampler_set_limit(&play.sampler, epoch);
                segment(&play, 0);
                check_standing(&play);
                if (epoch < play.epochs - 1) play.rounds = seed % 5 ? !play.rounds : play.rounds;
                sampler_change(&play.sampler, play.rounds);
                memset(play.taken, 0, sizeof play.taken);
                check_standing(&play);
            }
            check_end_of_play(&play);
            sampler_close(&play.sampler);
        }
}

/* Workers that were at different places, resumed with rounds: the total is divided evenly, and the end is
 * reached. */
static void check_rounds_from_unequal(void) {
    static const long done[] = {17, 9, 4};
    for (int sharding = SHARDING_SPLIT; sharding <= SHARDING_ALL; sharding++) {
        struct sampler sampler;
        struct error error = {0};
        const struct stream stream = {
            .examples = 120, .batch = 3, .workers = 3, .sharding = (enum data_sharding)sharding};
        const long end = sharding == SHARDING_ALL ? 40 : 14; /* of the longest epoch */
        CHECK(sampler_open(&sampler, &stream, true, 1, 0, done, &error) == OK, "%s", error.words);
        sampler_set_limit(&sampler, 0);
        for (int w = 0; w < 3; w++) {
            long number = 0, next = 10;
            while (sampler_next(&sampler, w, &number))
                CHECK(number == next++, "worker %d: batch %ld", w, number);
            CHECK(next >= end, "worker %d ended at batch %ld of %ld", w, next, end);
        }
        CHECK(sampler_reached(&sampler, 0), "the end is not reached");
        sampler_close(&sampler);
    }
}

/* Epoch and place of a batch: epochs of 7 examples in batches of 3 end with batches 3, 5 and 7. */
static void check_places(void) {
    static const struct {
        long number;
        int epoch;
        long place, batches;
    } rows[] = {{0, 0, 0, 3}, {2, 0, 2, 3}, {3, 1, 0, 2}, {4, 1, 1, 2}, {5, 2, 0, 2},
                {6, 2, 1, 2}, {7, 3, 0, 3}, {9, 3, 2, 3}, {10, 4, 0, 2}};
    struct sampler sampler;
    struct error error = {0};
    const struct stream stream = {.examples = 7, .batch = 3, .workers = 2};
    CHECK(sampler_open(&sampler, &stream, false, 5, 0, NULL, &error) == OK, "%s", error.words);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int epoch = -1;
        long place = -1, batches = -1;
        sampler_place(&sampler, 1, rows[i].number, &epoch, &place, &batches);
        CHECK(epoch == rows[i].epoch && place == rows[i].place && batches == rows[i].batches,
              "batch %ld: epoch %d, %ld of %ld", rows[i].number, epoch, place, batches);
    }
    sampler_close(&sampler);
    /* Any sizes: the epochs follow each other, the places count from 0. */
    for (int examples = 1; examples <= 40; examples++)
        for (int batch = 1; batch <= 12; batch++) {
            const struct stream any = {
                .examples = examples, .batch = batch, .workers = 3, .sharding = SHARDING_ALL};
            int before = -1;
            long expected = 0;
            CHECK(sampler_open(&sampler, &any, false, 4, 0, NULL, &error) == OK, "%s", error.words);
            for (long number = 0; number < up(4L * examples, batch); number++, expected++) {
                int epoch = -1;
                long place = -1, batches = -1;
                sampler_place(&sampler, 2, number, &epoch, &place, &batches);
                if (epoch != before) expected = 0;
                CHECK(epoch >= before && place == expected && place < batches,
                      "%d by %d, batch %ld: epoch %d, %ld of %ld", examples, batch, number, epoch, place,
                      batches);
                CHECK((number + 1) * batch > (long)epoch * examples &&
                          number * batch < (epoch + 1L) * examples,
                      "%d by %d: batch %ld has no example of epoch %d", examples, batch, number, epoch);
                before = epoch;
            }
            sampler_close(&sampler);
        }
}

/* --- losses: what the others are assigned then --- */

enum { MOST_TAKEN = 600 };

/* Workers that take batches, of which some are lost: each with the last batch that it came to in hand, and
 * perhaps others assigned in advance. */
struct losses {
    struct play play;
    long taken[MOST_WORKERS][MOST_TAKEN]; /* numbers, in the order in which they were assigned */
    long count[MOST_WORKERS];
    long step[MOST_WORKERS]; /* of who is lost: the one that it had in hand, from 1 */
    bool lost[MOST_WORKERS];
    bool left[MOST_WORKERS];   /* not lost: then `step` is the last one that it has computed */
    bool changes;              /* with every epoch, between rounds and none */
    bool joins;                /* some come again at a pause */
    long before[MOST_BATCHES]; /* times that a batch was met until the last change */
    long in_hand;              /* batches that were lost for good */
};

static bool take(struct losses *losses, int w) {
    long number = -7;
    if (losses->count[w] == MOST_TAKEN || !sampler_next(&losses->play.sampler, w, &number)) return false;
    losses->taken[w][losses->count[w]++] = number;
    return true;
}

/* It has computed all that it was assigned, or gives the last one back. */
static void leave(struct losses *losses, int w, long begin) {
    struct play *play = &losses->play;
    const bool gives = losses->count[w] > begin && draw(play, 2) == 0;
    losses->lost[w] = losses->left[w] = true;
    losses->step[w] = losses->count[w] - gives;
    if (gives) sampler_give_back(&play->sampler, w, losses->taken[w][losses->step[w]]);
    sampler_bar(&play->sampler, w);
    if (play->rounds) sampler_stop(&play->sampler);
}

/* What it was assigned in earlier segments it has computed; of this one, up to `lead` - 1 not yet. */
static void lose(struct losses *losses, int w, long begin) {
    struct play *play = &losses->play;
    const long ahead = losses->count[w] - begin;
    const long behind = ahead > 0 ? draw(play, (uint32_t)(ahead < play->lead ? ahead : play->lead)) : 0;
    losses->lost[w] = true;
    losses->step[w] = losses->count[w] - behind;
    sampler_bar(&play->sampler, w);
    if (play->rounds) sampler_stop(&play->sampler);
    if (losses->step[w] == 0) return;
    const bool again = play->rounds && is_shared(play);
    for (long i = losses->step[w] - 1; i < (again ? losses->step[w] : losses->count[w]); i++)
        losses->in_hand += again || losses->taken[w][i] != NO_BATCH; /* counted though it be empty */
}

/* One segment, in which up to two of the workers are lost. */
static void segment_of_losses(struct losses *losses) {
    struct play *play = &losses->play;
    const int workers = play->stream.workers;
    bool paused[MOST_WORKERS], before[MOST_WORKERS];
    long begin[MOST_WORKERS], left = 0, losses_left = draw(play, 3), alive = 0;
    for (int w = 0; w < workers; w++) {
        begin[w] = losses->count[w];
        play->taken[w] = losses->count[w];
        paused[w] = before[w] = losses->lost[w];
        alive += !losses->lost[w];
    }
    for (left = alive; left > 0;) {
        const int w = (int)draw(play, (uint32_t)workers);
        if (paused[w] || (play->rounds && is_ahead(play, begin, paused, w))) continue;
        if (losses_left > 0 && alive > 1 && draw(play, 12) == 0) {
            (draw(play, 2) ? lose : leave)(losses, w, begin[w]);
            losses_left--;
            alive--;
        }
        if (!losses->lost[w] && take(losses, w)) {
            play->taken[w]++;
            continue;
        }
        CHECK(!take(losses, w), "%s: worker %d was assigned a batch after its last", play->name, w);
        paused[w] = true;
        left--;
    }
    struct error error = {0};
    for (int w = 0; w < workers; w++)
        if (losses->left[w] && !before[w])
            CHECK(sampler_leave(&play->sampler, w, losses->step[w], &error) == OK, "%s", error.words);
        else if (losses->lost[w] && !before[w])
            CHECK(sampler_lose(&play->sampler, w, losses->step[w], &error) == OK, "%s", error.words);
}

/* Times that a batch was computed, or was in the hands of who was lost. */
static long times_met(const struct losses *losses, int worker, long number) {
    const bool again = losses->play.rounds && is_shared(&losses->play);
    long times = losses->before[number];
    for (int w = 0; w < losses->play.stream.workers; w++) {
        if (worker >= 0 && w != worker) continue;
        const long end = losses->left[w] || (losses->lost[w] && again) ? losses->step[w] : losses->count[w];
        for (long i = 0; i < end; i++) times += losses->taken[w][i] == number;
    }
    return times;
}

static void check_losses_standing(const struct losses *losses) {
    const struct play *play = &losses->play;
    const long position = sampler_position(&play->sampler);
    long met = 0;
    for (long b = 0; is_shared(play) && b < sampler_total(&play->sampler); b++)
        met += times_met(losses, -1, b);
    CHECK(!is_shared(play) || position == met, "%s: stands at %ld after %ld batches", play->name, position,
          met);
}

static void count_anew(struct losses *losses) {
    for (long b = 0; b < sampler_total(&losses->play.sampler); b++)
        losses->before[b] = times_met(losses, -1, b);
    memset(losses->count, 0, sizeof losses->count);
    memset(losses->step, 0, sizeof losses->step);
}

/* Of those who are gone some come again: all count anew. */
static void join(struct losses *losses) {
    struct play *play = &losses->play;
    struct error error = {0};
    for (int w = 0; w < play->stream.workers; w++) {
        if (!losses->lost[w] || draw(play, 2) || !sampler_may_join(&play->sampler, w)) continue;
        count_anew(losses);
        CHECK(sampler_join(&play->sampler, w, &error) == OK, "%s", error.words);
        losses->lost[w] = losses->left[w] = false;
        check_losses_standing(losses);
    }
}

/* Under another strategy steps are counted anew. */
static void change(struct losses *losses) {
    struct play *play = &losses->play;
    count_anew(losses);
    play->rounds = !play->rounds;
    sampler_change(&play->sampler, play->rounds);
    check_losses_standing(losses);
}

static void check_losses_of(struct losses *losses) {
    struct play *play = &losses->play;
    const int workers = play->stream.workers;
    snprintf(play->name, sizeof play->name, "losses, %d workers, sharding %d, %s, lead %d, seed %d", workers,
             (int)play->stream.sharding, play->rounds ? "rounds" : "no rounds", play->lead, (int)play->seed);
    if (!open_at(play, 0, NULL)) return;
    for (int epoch = 0; epoch < play->epochs; epoch++) {
        for (int segments = 0; segments < 20 && !sampler_reached(&play->sampler, epoch); segments++) {
            sampler_set_limit(&play->sampler, epoch);
            segment_of_losses(losses);
            check_losses_standing(losses);
            if (losses->joins) join(losses);
        }
        CHECK(sampler_reached(&play->sampler, epoch), "%s: epoch %d did not end", play->name, epoch);
        if (losses->changes && epoch < play->epochs - 1) change(losses);
    }
    for (int w = 0; w < (is_shared(play) ? 1 : workers); w++)
        for (long b = 0; b < stream_epoch_end(&play->stream, w, play->epochs - 1); b++) {
            if (!is_shared(play) && losses->lost[w]) break; /* its slice ends with it */
            const long times = times_met(losses, is_shared(play) ? -1 : w, b);
            CHECK(times == 1, "%s: batch %ld was assigned %ld times", play->name, b, times);
        }
    CHECK(play->sampler.in_flight == losses->in_hand, "%s: %ld batches in flight, expected %ld", play->name,
          play->sampler.in_flight, losses->in_hand);
    sampler_close(&play->sampler);
}

static void check_losses(void) {
    static struct losses losses;
    for (int seed = 1; seed <= 3000; seed++) {
        losses =
            (struct losses){.play = {.rounds = seed % 3 > 0, .epochs = 1 + seed % 2, .lead = 1 + seed % 5}};
        losses.play.seed = (uint64_t)seed;
        losses.play.stream = (struct stream){.seed = 1,
                                             .examples = 61 + seed % 40,
                                             .batch = 2,
                                             .workers = 2 + seed % 4,
                                             .sharding = seed % 7 ? SHARDING_SHARED : SHARDING_SPLIT};
        losses.changes = seed % 11 < 4 && losses.play.stream.sharding == SHARDING_SHARED;
        if (losses.changes) losses.play.epochs = 3;
        losses.joins = seed % 5 < 3 && losses.play.stream.sharding == SHARDING_SHARED;
        check_losses_of(&losses);
    }
}

/* --- real threads at one cursor --- */

enum { MANY = 60000, LONG = 100000000 }; /* LONG: seconds of asking */
struct rush {
    struct sampler sampler;
    _Atomic int ready;
    _Atomic unsigned char assigned[MANY];
};
struct runner {
    struct rush *rush;
    int worker;
};

static void take_many(void *argument) {
    struct runner *runner = argument;
    struct rush *rush = runner->rush;
    long number = 0;
    atomic_fetch_add(&rush->ready, 1);
    while (atomic_load(&rush->ready) < MOST_WORKERS) {
    }
    while (sampler_next(&rush->sampler, runner->worker, &number))
        atomic_fetch_add(&rush->assigned[number], 1);
}

static void check_rush(void) {
    static struct rush rush;
    struct world *world = NULL;
    struct world_thread *threads[MOST_WORKERS];
    struct runner runners[MOST_WORKERS];
    struct error error = {0};
    long wrong = 0;
    const struct stream stream = {.examples = MANY, .batch = 1, .workers = MOST_WORKERS};
    CHECK(world_open_threads(&world, &error) == OK &&
              sampler_open(&rush.sampler, &stream, false, 1, 0, NULL, &error) == OK,
          "%s", error.words);
    sampler_set_limit(&rush.sampler, 0);
    for (int w = 0; w < MOST_WORKERS; w++) {
        runners[w] = (struct runner){.rush = &rush, .worker = w};
        CHECK(world_spawn(world, "rush", NULL, take_many, &runners[w], &threads[w], &error) == OK, "%s",
              error.words);
    }
    for (int w = 0; w < MOST_WORKERS; w++) world_join(threads[w]);
    for (int b = 0; b < MANY; b++) wrong += rush.assigned[b] != 1;
    CHECK(wrong == 0, "%ld of %d batches were not assigned exactly once by %d threads", wrong, MANY,
          MOST_WORKERS);
    sampler_close(&rush.sampler);
    world_close(world);
}

/* A stop while all ask, without barriers: all end after the same round, none before what anybody was
 * assigned. */
static void take_rounds(void *argument) {
    struct runner *runner = argument;
    struct rush *rush = runner->rush;
    long number = 0;
    atomic_fetch_add(&rush->ready, 1);
    while (atomic_load(&rush->ready) < MOST_WORKERS) {
    }
    while (sampler_next(&rush->sampler, runner->worker, &number)) {
    }
}

static void check_stop_in_rush(void) {
    static struct rush rush;
    struct world *world = NULL;
    struct world_thread *threads[MOST_WORKERS];
    struct runner runners[MOST_WORKERS];
    struct error error = {0};
    int begun = 0;
    const struct stream stream = {.examples = MOST_WORKERS * LONG, .batch = 1, .workers = MOST_WORKERS};
    CHECK(world_open_threads(&world, &error) == OK, "%s", error.words);
    for (int again = 0; again < 40; again++) {
        CHECK(sampler_open(&rush.sampler, &stream, true, 1, 0, NULL, &error) == OK, "%s", error.words);
        atomic_store(&rush.ready, 0);
        sampler_set_limit(&rush.sampler, 0);
        for (int w = 0; w < MOST_WORKERS; w++) {
            runners[w] = (struct runner){.rush = &rush, .worker = w};
            CHECK(world_spawn(world, "rush", NULL, take_rounds, &runners[w], &threads[w], &error) == OK, "%s",
                  error.words);
        }
        while (atomic_load(&rush.ready) < MOST_WORKERS) world_sleep(world, 1e-5);
        world_sleep(world, 1e-5 * again);
        sampler_stop(&rush.sampler);
        for (int w = 0; w < MOST_WORKERS; w++) world_join(threads[w]);
        for (int w = 1; w < MOST_WORKERS; w++)
            CHECK(sampler_own(&rush.sampler, w) == sampler_own(&rush.sampler, 0),
                  "worker %d took %ld rounds, not %ld", w, sampler_own(&rush.sampler, w),
                  sampler_own(&rush.sampler, 0));
        CHECK(sampler_position(&rush.sampler) == sampler_own(&rush.sampler, 0) * MOST_WORKERS,
              "stands at %ld", sampler_position(&rush.sampler));
        CHECK(sampler_own(&rush.sampler, 0) < LONG, "the stop was not heard");
        begun += sampler_own(&rush.sampler, 0) > 0;
        sampler_close(&rush.sampler);
    }
    CHECK(begun > 0, "every stop came before the first round");
    world_close(world);
}

/* A worker that has done its round, and waited for the next one when it was lost: it had nothing in hand, and
 * there is nothing to hand out again. The other one takes all that is left. */
static void check_lost_waiting(void) {
    const struct stream stream = {.examples = 12, .batch = 1, .workers = 2};
    struct sampler sampler;
    struct error error = {0};
    long number = -1, sum = 0;
    CHECK(sampler_open(&sampler, &stream, true, 1, 0, NULL, &error) == OK, "%s", error.words);
    sampler_set_limit(&sampler, 0);
    for (int w = 0; w < 2; w++) {
        CHECK(sampler_next(&sampler, w, &number), "worker %d has no batch", w);
        sum += number;
    }
    sampler_bar(&sampler, 1);
    sampler_stop(&sampler);
    CHECK(!sampler_next(&sampler, 0, &number), "batch %ld behind the stop", number);
    CHECK(sampler_lose(&sampler, 1, 2, &error) == OK, "%s", error.words);
    CHECK(sampler.in_flight == 0, "%ld batches were lost, expected none", sampler.in_flight);
    sampler_set_limit(&sampler, 0);
    while (sampler_next(&sampler, 0, &number)) sum += number;
    CHECK(sum == 12 * 11 / 2, "the numbers of all batches add up to %ld", sum);
    sampler_close(&sampler);
}

/* --- shares of different sizes: numbers are places of examples --- */

enum { SHARE_EXAMPLES = 61, SHARE_BATCH = 6, SHARE_EPOCHS = 3, SHARE_PLACES = 400 };

/* Where all are as large as a batch, everything is as without shares, but that a number counts examples. */
static void check_equal_shares(bool rounds) {
    static const int sizes[] = {SHARE_BATCH, SHARE_BATCH, SHARE_BATCH};
    const struct stream plain = {.seed = 3, .examples = SHARE_EXAMPLES, .batch = SHARE_BATCH, .workers = 3};
    struct stream shares = plain;
    struct sampler one, other;
    struct error error = {0};
    shares.sizes = sizes;
    CHECK(sampler_open(&one, &plain, rounds, SHARE_EPOCHS, 2, NULL, &error) == OK &&
              sampler_open(&other, &shares, rounds, SHARE_EPOCHS, 2 * SHARE_BATCH, NULL, &error) == OK,
          "%s", error.words);
    for (int epoch = 0; epoch < SHARE_EPOCHS; epoch++) {
        sampler_set_limit(&one, epoch);
        sampler_set_limit(&other, epoch);
        for (int paused = 0, w = 0; paused < 3; w = (w + 1) % 3) {
            long number = 0, place = 0, at[2], count[2];
            int epochs[2], index[2][SHARE_BATCH + 1];
            uint64_t key[2][SHARE_BATCH + 1];
            const bool goes = sampler_next(&one, w, &number);
            CHECK(sampler_next(&other, w, &place) == goes, "worker %d: one goes on, the other does not", w);
            paused = goes ? 0 : paused + 1;
            if (!goes) continue;
            CHECK(place == (number == NO_BATCH ? NO_BATCH : number * SHARE_BATCH), "place %ld of batch %ld",
                  place, number);
            if (number == NO_BATCH) continue;
            sampler_place(&one, w, number, &epochs[0], &at[0], &count[0]);
            sampler_place(&other, w, place, &epochs[1], &at[1], &count[1]);
            CHECK(epochs[0] == epochs[1] && at[0] == at[1] && count[0] == count[1],
                  "batch %ld: epoch %d, %ld of %ld, not epoch %d, %ld of %ld", number, epochs[1], at[1],
                  count[1], epochs[0], at[0], count[0]);
            stream_batch(&plain, w, number, index[0]);
            stream_batch(&shares, w, place, index[1]);
            stream_keys(&plain, w, number, key[0]);
            stream_keys(&shares, w, place, key[1]);
            stream_next(&plain, w, number, &index[0][SHARE_BATCH], &key[0][SHARE_BATCH]);
            stream_next(&shares, w, place, &index[1][SHARE_BATCH], &key[1][SHARE_BATCH]);
            CHECK(memcmp(index[0], index[1], sizeof index[0]) == 0 &&
                      memcmp(key[0], key[1], sizeof key[0]) == 0,
                  "batch %ld: other examples", number);
        }
        CHECK(sampler_position(&other) == sampler_position(&one) * SHARE_BATCH &&
                  sampler_reached(&other, epoch) && sampler_reached(&one, epoch),
              "epoch %d: at %ld, expected batch %ld", epoch, sampler_position(&other),
              sampler_position(&one));
    }
    CHECK(sampler_updates(&other, rounds ? 3 : 1) == sampler_updates(&one, rounds ? 3 : 1),
          "%ld updates, expected %ld", sampler_updates(&other, rounds ? 3 : 1),
          sampler_updates(&one, rounds ? 3 : 1));
    sampler_close(&other);
    sampler_close(&one);
}

/* What the workers of a round are assigned together is, example for example, the batch of one worker that
 * takes it all. */
static void check_union(const struct stream *shares, long place, int total) {
    struct stream whole = *shares;
    int all[SHARE_PLACES + 1], part[SHARE_PLACES], filled = 0;
    uint64_t all_keys[SHARE_PLACES + 1], part_keys[SHARE_PLACES];
    whole.sizes = NULL;
    whole.batch = total;
    stream_batch(&whole, 0, place / total, all);
    stream_keys(&whole, 0, place / total, all_keys);
    stream_next(&whole, 0, place / total, &all[total], &all_keys[total]);
    for (int w = 0; w < shares->workers; w++) {
        int next = -1;
        uint64_t next_key = 0;
        stream_batch(shares, w, place + filled, part + filled);
        stream_keys(shares, w, place + filled, part_keys + filled);
        stream_next(shares, w, place + filled, &next, &next_key);
        filled += stream_size(shares, w);
        CHECK(next == all[filled] && next_key == all_keys[filled], "what comes behind the part at %ld",
              place);
    }
    CHECK(filled == total && memcmp(all, part, (size_t)total * sizeof *all) == 0 &&
              memcmp(all_keys, part_keys, (size_t)total * sizeof *all_keys) == 0,
          "the parts at %ld are not the whole", place);
}

/* Every example of the stream once, to its end and as far as the last one who began before it; through stops,
 * and new samplers where the old ones were. */
static void check_unequal_shares(const int *sizes, bool rounds, uint64_t seed) {
    static int taken[SHARE_PLACES];
    struct play play = {.seed = seed};
    struct error error = {0};
    int total = 0;
    long last = 0;
    play.stream = (struct stream){
        .seed = 3, .examples = SHARE_EXAMPLES, .batch = SHARE_BATCH, .workers = 3, .sizes = sizes};
    for (int w = 0; w < 3; w++) total += sizes[w];
    memset(taken, 0, sizeof taken);
    CHECK(sampler_open(&play.sampler, &play.stream, rounds, SHARE_EPOCHS, 0, NULL, &error) == OK, "%s",
          error.words);
    for (int segment_number = 0; segment_number < 40 && !sampler_reached(&play.sampler, SHARE_EPOCHS - 1);
         segment_number++) {
        int epoch = 0;
        while (sampler_reached(&play.sampler, epoch)) epoch++;
        sampler_set_limit(&play.sampler, epoch);
        bool paused[3] = {false};
        for (int answers = 0; !paused[0] || !paused[1] || !paused[2]; answers++) {
            const int w = (int)draw(&play, 3);
            long place = 0;
            if (answers == 5 + (int)draw(&play, 9)) sampler_stop(&play.sampler);
            const bool goes = sampler_next(&play.sampler, w, &place);
            paused[w] = !goes;
            for (int i = 0; goes && place != NO_BATCH && i < sizes[w]; i++) taken[place + i]++;
            if (goes && place > last) last = place;
            if (goes && rounds && w == 0 && place != NO_BATCH) check_union(&play.stream, place, total);
        }
        const long position = sampler_position(&play.sampler);
        for (long i = 0; i < SHARE_PLACES; i++)
            CHECK(taken[i] == (i < position), "%d + %d + %d: example %ld was assigned %d times, at %ld",
                  sizes[0], sizes[1], sizes[2], i, taken[i], position);
        sampler_close(&play.sampler);
        CHECK(sampler_open(&play.sampler, &play.stream, rounds, SHARE_EPOCHS, position, NULL, &error) == OK,
              "%s", error.words);
        CHECK(sampler_position(&play.sampler) == position, "resumed at %ld, expected %ld",
              sampler_position(&play.sampler), position);
    }
    CHECK(sampler_reached(&play.sampler, SHARE_EPOCHS - 1) && last < SHARE_EXAMPLES * SHARE_EPOCHS,
          "ended at %ld, the last batch at %ld", sampler_position(&play.sampler), last);
    sampler_close(&play.sampler);
}

static void check_shares(void) {
    static const int sizes[][3] = {{6, 6, 6}, {12, 4, 2}, {1, 1, 16}, {2, 15, 1}};
    for (int rounds = 0; rounds < 2; rounds++) {
        check_equal_shares(rounds);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (uint64_t seed = 1; seed <= 20; seed++) check_unequal_shares(sizes[s], rounds, seed);
    }
}

/* --- a round that is divided anew, as workers come and go --- */

enum { TOTAL = 12, DIVIDED_PLACES = 1200 };

struct divided {
    struct sampler sampler;
    bool there[MOST_WORKERS];
    int taken[DIVIDED_PLACES];
    long steps[MOST_WORKERS]; /* since all were counted anew */
    long rounds, smaller;     /* rounds, and those with fewer examples than they are to have */
};

/* As many of a round for each, the first ones one more. */
static void divide_anew(struct divided *divided) {
    struct error error = {0};
    int sizes[MOST_WORKERS] = {0}, count = 0, next = 0;
    for (int w = 0; w < MOST_WORKERS; w++) count += divided->there[w];
    for (int w = 0; w < MOST_WORKERS; w++)
        if (divided->there[w]) sizes[w] = TOTAL / count + (next++ < TOTAL % count);
    CHECK(sampler_divide(&divided->sampler, sizes, TOTAL / count, &error) == OK, "%s", error.words);
    memset(divided->steps, 0, sizeof divided->steps);
}

/* What it is assigned next; how many examples; -1: a pause. */
static int take_places(struct divided *divided, int w) {
    long place = 0;
    if (!sampler_next(&divided->sampler, w, &place)) return -1;
    divided->steps[w]++;
    if (place == NO_BATCH) return 0;
    const int size = stream_size(&divided->sampler.stream, w);
    for (int i = 0; i < size; i++) divided->taken[place + i]++;
    return size;
}

static void take_round(struct divided *divided) {
    int examples = 0;
    for (int w = 0; w < MOST_WORKERS; w++) {
        if (!divided->there[w]) continue;
        const int own = take_places(divided, w);
        CHECK(own >= 0, "worker %d was assigned nothing", w);
        examples += own;
    }
    CHECK(examples > 0 && examples <= TOTAL, "a round of %d examples", examples);
    divided->rounds++;
    divided->smaller += examples < TOTAL;
}

/* The others are in a round that it does not come to; or, without rounds, it gives back what it has. */
static void go_away(struct divided *divided, int w, bool rounds) {
    struct error error = {0};
    long place = 0;
    divided->there[w] = false;
    if (rounds) {
        take_round(divided);
    } else if (sampler_next(&divided->sampler, w, &place)) {
        sampler_give_back(&divided->sampler, w, place);
    }
    sampler_bar(&divided->sampler, w);
    sampler_stop(&divided->sampler);
    CHECK(sampler_leave(&divided->sampler, w, divided->steps[w], &error) == OK, "%s", error.words);
}

static void come_in(struct divided *divided, int w) {
    struct error error = {0};
    sampler_stop(&divided->sampler);
    if (!sampler_may_join(&divided->sampler, w)) return;
    CHECK(sampler_join(&divided->sampler, w, &error) == OK, "%s", error.words);
    divided->there[w] = true;
}

/* Every place is assigned once, those that somebody left with too; and nothing is lost. */
static void check_divided(bool rounds, uint64_t seed) {
    static struct divided divided;
    static const int first[MOST_WORKERS] = {4, 4, 4};
    const struct stream stream = {
        .seed = 3, .examples = 1000, .batch = 4, .workers = MOST_WORKERS, .sizes = first};
    struct error error = {0};
    long leavings = 0;
    memset(&divided, 0, sizeof divided);
    for (int w = 0; w < 3; w++) divided.there[w] = true;
    CHECK(sampler_open(&divided.sampler, &stream, rounds, 1, 0, NULL, &error) == OK, "%s", error.words);
    sampler_fill(&divided.sampler);
    for (int w = 3; w < MOST_WORKERS; w++) sampler_bar(&divided.sampler, w);
    divide_anew(&divided);
    for (int turn = 0; turn < 12; turn++) {
        const struct rng_block drawn = rng_philox(seed, 2, (uint64_t)turn);
        const int w = (int)(drawn.word[0] % MOST_WORKERS);
        int others = 0;
        sampler_set_limit(&divided.sampler, 0);
        for (uint32_t r = 0; r < 1 + drawn.word[1] % 4; r++) take_round(&divided);
        for (int v = 0; v < MOST_WORKERS; v++) others += v != w && divided.there[v];
        if (divided.there[w] && others > 0) {
            go_away(&divided, w, rounds);
            leavings++;
        } else if (!divided.there[w]) {
            come_in(&divided, w);
        }
        divide_anew(&divided);
    }
    sampler_set_limit(&divided.sampler, 0);
    for (bool goes = true; goes;) { /* to the end, with what is handed out anew */
        goes = false;
        for (int w = 0; w < MOST_WORKERS; w++)
            if (divided.there[w] && take_places(&divided, w) >= 0) goes = true;
    }
    const long position = sampler_position(&divided.sampler);
    CHECK(sampler_reached(&divided.sampler, 0) && position >= 1000 && position < 1000 + TOTAL,
          "seed %d: ended at %ld of 1000", (int)seed, position);
    for (long i = 0; i < DIVIDED_PLACES; i++)
        CHECK(divided.taken[i] == (i < position), "seed %d: example %ld was assigned %d times, at %ld",
              (int)seed, i, divided.taken[i], position);
    CHECK(divided.sampler.in_flight == 0, "%ld are lost", divided.sampler.in_flight);
    if (rounds)
        CHECK(divided.smaller <= 2 * leavings &&
                  sampler_updates_of(&divided.sampler, 1000, divided.sampler.dividing) == 84,
              "%ld of %ld rounds are smaller, after %ld have left; %ld updates in all", divided.smaller,
              divided.rounds, leavings, sampler_updates_of(&divided.sampler, 1000, divided.sampler.dividing));
    sampler_close(&divided.sampler);
}

/* The last round is a whole one, whatever the number of workers. */
static void check_filled(void) {
    static const int sizes[][4] = {{12}, {6, 6}, {4, 4, 4}, {5, 4, 3}, {3, 3, 3, 3}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct stream stream = {.seed = 3, .examples = 61, .sizes = sizes[s]};
        struct sampler sampler;
        struct error error = {0};
        long end = 0;
        while (stream.workers < 4 && sizes[s][stream.workers] > 0) stream.workers++;
        stream.batch = TOTAL / stream.workers;
        CHECK(sampler_open(&sampler, &stream, true, 2, 0, NULL, &error) == OK, "%s", error.words);
        sampler_fill(&sampler);
        for (int epoch = 0; epoch < 2; epoch++) {
            sampler_set_limit(&sampler, epoch);
            for (bool goes = true; goes;)
                for (int w = 0; w < stream.workers; w++) {
                    long place = 0;
                    goes = sampler_next(&sampler, w, &place);
                    if (goes && place + sizes[s][w] > end) end = place + sizes[s][w];
                }
        }
        CHECK(end == 132 && sampler_position(&sampler) == end && sampler_total(&sampler) == end &&
                  sampler_updates(&sampler, stream.workers) == 11,
              "%d workers: ended at %ld, expected 132", stream.workers, end);
        sampler_close(&sampler);
    }
}

static void check_divisions(void) {
    for (uint64_t seed = 1; seed <= 60; seed++) {
        check_divided(true, seed);
        check_divided(false, seed);
    }
    check_filled();
}

/* After a failure, without rounds: so many batches are to be assigned again, and own ones are those that a
 * worker had in hand. */
static void check_in_hand(enum data_sharding sharding, const int *sizes) {
    static const long steps[3] = {4, 6, 3};
    const struct stream stream = {
        .seed = 3, .examples = 1000, .batch = 4, .workers = 3, .sharding = sharding, .sizes = sizes};
    struct sampler sampler;
    struct error error = {0};
    CHECK(sampler_open(&sampler, &stream, false, 1, 0, NULL, &error) == OK, "%s", error.words);
    sampler_set_limit(&sampler, 0);
    for (int i = 0; i < 18; i++) CHECK(sampler_next(&sampler, i % 3, &(long){0}), "nothing to assign");
    const long before = sampler_position(&sampler);
    long left = before;
    for (int w = 0; w < 3; w++) {
        left -= (6 - steps[w]) * (sizes ? sizes[w] : 1);
        sampler_take_in_hand(&sampler, w, steps[w]);
        sampler_take_in_hand(&sampler, w, steps[w]);
        CHECK(sampler_own(&sampler, w) == steps[w], "worker %d: %ld batches", w, sampler_own(&sampler, w));
    }
    CHECK(before == 6 * (sizes ? 15 : 3) && sampler_position(&sampler) == left, "%ld of %ld, expected %ld",
          sampler_position(&sampler), before, left);
    sampler_close(&sampler);
}

int main(void) {
    check_in_hand(SHARDING_SHARED, NULL);
    check_in_hand(SHARDING_SHARED, (const int[]){3, 5, 7});
    check_in_hand(SHARDING_SPLIT, NULL);
    check_shares();
    check_divisions();
    check_rush();
    check_stop_in_rush();
    check_every_batch_once();
    check_rounds();
    check_change_of_strategy();
    check_change_in_place();
    check_rounds_from_unequal();
    check_places();
    check_losses();
    check_lost_waiting();
    sampler_close(&(struct sampler){0});
    return check_end();
}
