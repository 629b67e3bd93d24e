/* The stream: every epoch is a permutation, batches are windows of one sequence, and nothing but the seed
 * decides it. */
#include "../../src/data/stream.h"

#include <string.h>
#include "../../src/base/memory.h"
#include "../check.h"

enum { MOST = 4096 };

/* Goes through `epochs` epochs of one worker's sequence, batch by batch, and counts how often each example
 * came in each of them. */
static void count_epochs(const struct stream *stream, int worker, int epochs, int *seen) {
    int index[MOST];
    const int examples = stream_epoch_examples(stream, worker);
    const long batches = stream_epoch_end(stream, worker, epochs - 1);
    long position = 0;
    for (long number = 0; number < batches; number++) {
        stream_batch(stream, worker, number, index);
        for (int i = 0; i < stream->batch; i++, position++) {
            const long epoch = position / examples;
            if (epoch >= epochs) return;
            CHECK(index[i] >= 0 && index[i] < stream->examples, "example %d", index[i]);
            seen[epoch * stream->examples + index[i]]++;
        }
    }
    CHECK(position == (long)epochs * examples, "ended at %ld", position);
}

/* Every example `times` times an epoch over all workers. */
static void check_epochs(enum data_sharding sharding, int examples, int batch, int workers) {
    enum { EPOCHS = 3 };
    int seen[EPOCHS * MOST];
    const struct stream stream = {
        .seed = 7, .examples = examples, .batch = batch, .workers = workers, .sharding = sharding};
    memset(seen, 0, sizeof seen);
    const int sequences = sharding == SHARDING_SHARED ? 1 : workers;
    for (int w = 0; w < sequences; w++) count_epochs(&stream, w, EPOCHS, seen);
    const int times = sharding == SHARDING_ALL ? workers : 1;
    for (int i = 0; i < EPOCHS * examples; i++)
        CHECK(seen[i] == times,
              "sharding %d, %d examples, batch %d, %d workers: example %d of epoch %d seen %d times",
              sharding, examples, batch, workers, i % examples, i / examples, seen[i]);
}

static void check_all_epochs(void) {
    const int examples[] = {1, 2, 5, 10, 97, 256, 1437}, batches[] = {1, 7, 32, 100}, workers[] = {1, 2, 3};
    for (int s = SHARDING_SHARED; s <= SHARDING_ALL; s++)
        for (int e = 0; e < 7; e++)
            for (int b = 0; b < 4; b++)
                for (int w = 0; w < 3; w++)
                    if (s != SHARDING_SPLIT || examples[e] >= workers[w])
                        check_epochs((enum data_sharding)s, examples[e], batches[b], workers[w]);
}

/* Batches of any size are windows of one sequence; those of 25 straddle epochs of 10. */
static void check_windows(void) {
    int whole[1000], part[25];
    for (int s = SHARDING_SHARED; s <= SHARDING_ALL; s++) {
        struct stream stream = {
            .seed = 3, .examples = 20, .batch = 1000, .workers = 2, .sharding = (enum data_sharding)s};
        stream_batch(&stream, 1, 0, whole);
        stream.batch = 25;
        for (long number = 39; number >= 0; number--) { /* backwards: any batch without those before it */
            stream_batch(&stream, 1, number, part);
            CHECK(memcmp(part, whole + 25 * number, sizeof part) == 0, "sharding %d, batch %ld", s, number);
        }
    }
}

static void check_split(void) {
    const struct stream stream = {
        .seed = 3, .examples = 11, .batch = 4, .workers = 3, .sharding = SHARDING_SPLIT};
    const int sizes[] = {4, 4, 3};
    for (int w = 0; w < 3; w++) {
        int index[4];
        CHECK(stream_epoch_examples(&stream, w) == sizes[w], "%d", stream_epoch_examples(&stream, w));
        for (long number = 0; number < 10; number++) {
            stream_batch(&stream, w, number, index);
            for (int i = 0; i < 4; i++) CHECK(index[i] % 3 == w, "worker %d got example %d", w, index[i]);
        }
    }
}

/* Who asks and how many there are does not matter for one stream; it does for streams of their own. */
static void check_workers(void) {
    int a[64], b[64];
    struct stream one = {.seed = 5, .examples = 1000, .batch = 64, .workers = 1}, many = one;
    many.workers = 8;
    for (long number = 0; number < 50; number++) {
        stream_batch(&one, 0, number, a);
        stream_batch(&many, 5, number, b);
        CHECK(memcmp(a, b, sizeof a) == 0, "batch %ld differs with the number of workers", number);
    }
    many.sharding = SHARDING_ALL;
    stream_batch(&many, 0, 0, a);
    stream_batch(&many, 1, 0, b);
    CHECK(memcmp(a, b, sizeof a) != 0, "two workers have one order");
    many.sharding = SHARDING_SPLIT;
    stream_batch(&many, 0, 0, a);
    stream_batch(&many, 1, 0, b);
    int same = 0;
    for (int i = 0; i < 64; i++) same += a[i] + 1 == b[i];
    CHECK(same < 32, "two workers go through their slices in one order");
    one.seed = 6;
    stream_batch(&one, 0, 0, a);
    one.seed = 5;
    stream_batch(&one, 0, 0, b);
    CHECK(memcmp(a, b, sizeof a) != 0, "two seeds give one order");
}

static void check_orders(void) {
    int first[100], second[100], straight = 0, same = 0;
    const struct stream stream = {.seed = 1, .examples = 100, .batch = 100, .workers = 1};
    stream_batch(&stream, 0, 0, first);
    stream_batch(&stream, 0, 1, second);
    for (int i = 0; i < 100; i++) {
        straight += first[i] == i;
        same += first[i] == second[i];
    }
    CHECK(straight < 15, "%d of 100 stay in their place", straight);
    CHECK(same < 15, "two epochs agree in %d of 100 places", same);
    /* Far out: 10^12 batches of 100 are beyond 32 bits, and epochs too. */
    stream_batch(&stream, 0, 1000000000000L, first);
    for (int i = 0; i < 100; i++) CHECK(first[i] >= 0 && first[i] < 100, "%d", first[i]);
}

static void check_epoch_ends(void) {
    const struct stream shared = {.examples = 10, .batch = 4, .workers = 3};
    const struct stream split = {.examples = 10, .batch = 4, .workers = 3, .sharding = SHARDING_SPLIT};
    const struct stream all = {.examples = 10, .batch = 4, .workers = 3, .sharding = SHARDING_ALL};
    const long shared_ends[] = {3, 5, 8, 10}, first_ends[] = {1, 2, 3, 4}, last_ends[] = {1, 2, 3, 3};
    for (int e = 0; e < 4; e++) {
        CHECK(stream_epoch_end(&shared, 0, e) == shared_ends[e], "epoch %d", e);
        CHECK(stream_epoch_end(&all, 2, e) == shared_ends[e], "epoch %d", e);
        CHECK(stream_epoch_end(&split, 0, e) == first_ends[e], "epoch %d", e);
        CHECK(stream_epoch_end(&split, 2, e) == last_ends[e], "epoch %d", e);
    }
    const struct stream large = {.examples = 2000000000, .batch = 1, .workers = 1};
    CHECK(stream_epoch_end(&large, 0, 99) == 200000000000L, "%ld", stream_epoch_end(&large, 0, 99));
}

/* Fixed for ever: a run with the same seed sees the same examples in every version of the program. */
static void check_golden(void) {
    const int golden[3][8] = {{77, 841, 307, 1032, 31, 259, 1003, 1383},
                              {1091, 833, 697, 811, 985, 647, 701, 541},
                              {254, 730, 778, 506, 291, 420, 1253, 888}};
    for (int s = SHARDING_SHARED; s <= SHARDING_ALL; s++) {
        int index[8];
        const struct stream stream = {
            .seed = 1, .examples = 1437, .batch = 8, .workers = 2, .sharding = (enum data_sharding)s};
        stream_batch(&stream, 1, 0, index);
        for (int i = 0; i < 8; i++)
            CHECK(index[i] == golden[s][i], "sharding %d, place %d: %d, was %d", s, i, index[i],
                  golden[s][i]);
    }
}

/* --- blocks --- */

static const int block_examples[] = {1, 5, 97, 1437, 4096}, block_sizes[] = {1, 3, 16, 5000};

/* Every epoch is a permutation with blocks, too. */
static void check_block_epochs(void) {
    enum { TIMES = 2 };
    static int seen[TIMES * MOST];
    for (int s = SHARDING_SHARED; s <= SHARDING_ALL; s++)
        for (int e = 1; e < 5; e++)
            for (int b = 0; b < 4; b++) {
                const struct stream stream = {.seed = 9,
                                              .examples = block_examples[e],
                                              .batch = 13,
                                              .workers = 2,
                                              .sharding = (enum data_sharding)s,
                                              .block = block_sizes[b]};
                memset(seen, 0, sizeof seen);
                for (int w = 0; w < (s == SHARDING_SHARED ? 1 : 2); w++)
                    count_epochs(&stream, w, TIMES, seen);
                const int times = s == SHARDING_ALL ? 2 : 1;
                for (int i = 0; i < TIMES * stream.examples; i++)
                    CHECK(seen[i] == times, "sharding %d, blocks of %d: example %d of %d seen %d times", s,
                          stream.block, i, stream.examples, seen[i]);
            }
}

enum { BLOCK = 3, EXAMPLES = 1000, BLOCKS = (EXAMPLES - 1) / BLOCK + 1, EPOCHS = 3 };
enum { WINDOW = STREAM_WINDOW * BLOCK, WINDOWS = (EXAMPLES - 1) / WINDOW + 1, FEW = 8, MANY = 120 };
enum { ALL_EPOCHS = EPOCHS + 1 }; /* blocks of the last one are named before it begins */

/* window_of[epoch][block]: while a window is gone through, no block of another one is touched. */
static void check_block_windows(int window_of[ALL_EPOCHS][BLOCKS]) {
    const struct stream stream = {
        .seed = 4, .examples = EXAMPLES, .batch = EXAMPLES * ALL_EPOCHS, .workers = 1, .block = BLOCK};
    static int index[EXAMPLES * ALL_EPOCHS];
    int moved = 0;
    stream_batch(&stream, 0, 0, index);
    memset(window_of, -1, sizeof(int) * ALL_EPOCHS * BLOCKS);
    for (int position = 0; position < ALL_EPOCHS * EXAMPLES; position++) {
        const int place = position % EXAMPLES, block = index[position] / BLOCK;
        int *window = &window_of[position / EXAMPLES][block];
        CHECK(*window < 0 || *window == place / WINDOW, "block %d is in windows %d and %d", block, *window,
              place / WINDOW);
        *window = place / WINDOW;
        moved += index[position] != place;
    }
    CHECK(moved > ALL_EPOCHS * EXAMPLES * 9 / 10, "%d examples moved", moved);
}

/* Each block is named once, while the window before its own is gone through, which may be an epoch's last;
 * the first window's by the first batch. It is named once more while the window after its own is gone
 * through. */
static void check_soon(int window_of[ALL_EPOCHS][BLOCKS], int batch) {
    const struct stream stream = {
        .seed = 4, .examples = EXAMPLES, .batch = batch, .workers = 1, .block = BLOCK};
    int named[BLOCKS] = {0}, used[BLOCKS] = {0}, *first = NULL;
    struct error error = {0};
    CHECK(memory_array(&first, stream_soon_room(batch), "blocks", &error) == OK, "%s", error.words);
    for (int position = 0; position < EPOCHS * EXAMPLES; position += batch) {
        const int window = position % EXAMPLES / WINDOW, next = (window + 1) % WINDOWS,
                  epoch = position / EXAMPLES + (next == 0), before = (window + WINDOWS - 1) % WINDOWS,
                  epoch_before = position / EXAMPLES - (window == 0);
        struct soon soon;
        stream_soon(&stream, 0, position / batch, &soon, first);
        CHECK(soon.length == BLOCK, "length %d", soon.length);
        for (int n = 0; n < soon.count; n++) {
            const int block = first[n] / BLOCK;
            CHECK(first[n] % BLOCK == 0 && block < BLOCKS, "from %d on", first[n]);
            CHECK(batch == MANY || window_of[epoch][block] == next ||
                      (position == 0 && window_of[0][block] == 0),
                  "window %d of epoch %d names block %d of window %d", window, position / EXAMPLES, block,
                  window_of[epoch][block]);
            named[block]++;
        }
        for (int n = soon.count; n < soon.count + soon.used; n++) {
            const int block = first[n] / BLOCK;
            CHECK(first[n] % BLOCK == 0 && block < BLOCKS, "used from %d on", first[n]);
            CHECK(batch == MANY || window_of[epoch_before][block] == before,
                  "window %d of epoch %d has used block %d of window %d", window, position / EXAMPLES, block,
                  window_of[epoch_before][block]);
            used[block]++;
        }
    }
    for (int b = 0; b < BLOCKS; b++) {
        int expected = window_of[0][b] == 0, expected_used = 0;
        for (int e = 0; e < EPOCHS; e++) {
            expected += (window_of[e][b] > 0) + (window_of[e + 1][b] == 0);
            expected_used += (window_of[e][b] < WINDOWS - 1) + (e > 0 && window_of[e - 1][b] == WINDOWS - 1);
        }
        CHECK(named[b] == expected, "batches of %d: block %d is named %d times, expected %d", batch, b,
              named[b], expected);
        CHECK(used[b] == expected_used, "batches of %d: block %d is used %d times, expected %d", batch, b,
              used[b], expected_used);
    }
    memory_free(first);
}

static void check_block_golden(void) {
    const struct stream stream = {.seed = 1, .examples = 100000, .batch = 8, .workers = 2, .block = 100};
    const int golden[8] = {31459, 53663, 73237, 4378, 31737, 77886, 18301, 24245};
    int index[8];
    stream_batch(&stream, 0, 0, index);
    for (int i = 0; i < 8; i++) CHECK(index[i] == golden[i], "place %d: %d, was %d", i, index[i], golden[i]);
}

int main(void) {
    static int window_of[ALL_EPOCHS][BLOCKS];
    check_block_epochs();
    check_block_windows(window_of);
    check_soon(window_of, FEW);  /* windows and epochs are whole batches */
    check_soon(window_of, MANY); /* they are not */
    check_block_golden();
    check_all_epochs();
    check_windows();
    check_split();
    check_workers();
    check_orders();
    check_epoch_ends();
    check_golden();
    return check_end();
}
