/* --share: its text and whole numbers from it, by hand and for many weights; and the sizes with which workers
 * take equally long, where how long they take is a line. */
#include <math.h>
#include <string.h>

#include "../../src/base/rng.h"
#include "../../src/engine/paces.h"
#include "../../src/engine/shares.h"
#include "../check.h"

static void check_texts(void) {
    static const struct {
        const char *text;
        int weights; /* -1: it is none */
    } rows[] = {{"even", 0},
                {"auto", 0},
                {"3,1", 2},
                {"7", 1},
                {"2000000000,1,1", 3},
                {"", -1},
                {"3,", -1},
                {",3", -1},
                {"3,,1", -1},
                {"0,1", -1},
                {"-1,1", -1},
                {"2000000001,1", -1},
                {"3 ,1", -1},
                {" 3,1", -1},
                {"3;1", -1},
                {"1.5,1", -1},
                {"evens", -1},
                {"99999999999999999999", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        int weights = -7;
        const int code = shares_check(rows[i].text, &weights, &error);
        CHECK((code == OK) == (rows[i].weights >= 0), "'%s': %s", rows[i].text, error.words);
        if (code == OK) CHECK(weights == rows[i].weights, "'%s': %d weights", rows[i].text, weights);
    }
}

static void check_sizes(void) {
    static const struct {
        const char *text;
        int workers, batch, microbatches, sizes[4];
    } rows[] = {{"even", 3, 10, 1, {10, 10, 10}},   {"3,1", 2, 32, 1, {48, 16}},
                {"1,1", 2, 9, 1, {9, 9}},           {"4,1", 2, 100, 1, {160, 40}},
                {"160,40", 2, 100, 1, {160, 40}},   {"2,1", 2, 10, 1, {13, 7}},
                {"1,1,1", 3, 5, 5, {5, 5, 5}},      {"1000,1,1", 3, 4, 1, {10, 1, 1}},
                {"1,1000,1", 3, 4, 2, {2, 8, 2}},   {"5,3", 2, 12, 4, {16, 8}},
                {"1,2,3,4", 4, 7, 1, {3, 6, 8, 11}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        int sizes[4] = {0};
        CHECK(shares_cut(rows[i].text, rows[i].workers, rows[i].batch, rows[i].microbatches, sizes, &error) ==
                  OK,
              "%s", error.words);
        for (int w = 0; w < rows[i].workers; w++)
            CHECK(sizes[w] == rows[i].sizes[w], "--share=%s --batch=%d: worker %d has %d, expected %d",
                  rows[i].text, rows[i].batch, w, sizes[w], rows[i].sizes[w]);
    }
    struct error error = {0};
    int sizes[3];
    CHECK(shares_cut("3,1", 3, 10, 1, sizes, &error) == ERROR_USAGE &&
              strstr(error.words, "found 2 weights, expected 3"),
          "two weights for three: %s", error.words);
}

/* Whoever is missing has nothing, and the others have it all. */
static void check_missing(void) {
    static const struct {
        const char *text;
        bool there[3];
        int total, sizes[3];
    } rows[] = {{"1,2,3", {true, true, true}, 36, {6, 12, 18}},
                {"1,2,3", {true, false, true}, 24, {6, 0, 18}},
                {"1,2,3", {false, true, false}, 12, {0, 12, 0}},
                {"even", {true, false, true}, 11, {6, 0, 5}},
                {"9,1000,1", {true, false, true}, 3, {2, 0, 1}}};
    const struct pace paces[] = {{0.0, 1.0}, {0.0, 0.0}, {0.0, 3.0}};
    struct error error = {0};
    int sizes[3];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK(shares_divide(rows[i].text, 3, rows[i].there, rows[i].total, 1, sizes, &error) == OK, "%s",
              error.words);
        for (int w = 0; w < 3; w++)
            CHECK(sizes[w] == rows[i].sizes[w], "row %d: worker %d has %d, expected %d", (int)i, w, sizes[w],
                  rows[i].sizes[w]);
    }
    CHECK(paces_cut(paces, 3, rows[1].there, 40, 1, sizes, &error) == OK && sizes[0] == 30 && sizes[1] == 0 &&
              sizes[2] == 10,
          "%d, %d and %d of 40, where the second is missing", sizes[0], sizes[1], sizes[2]);
}

/* They are W * batch together, each within one micro-batch's worth of its exact part unless that is less than
 * one; and what is written for them gives them back. */
static void check_many(void) {
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        const struct rng_block drawn = rng_philox(9, 0, seed), more = rng_philox(9, 1, seed);
        const int workers = 1 + (int)(drawn.word[0] % 9), parts = 1 + (int)(drawn.word[1] % 4);
        const int batch = parts * (1 + (int)(drawn.word[2] % 300));
        char text[SHARES_BYTES], again[SHARES_BYTES];
        int weights[9], sizes[9], back[9];
        long sum = 0, all = 0;
        struct error error = {0};
        for (int w = 0; w < workers; w++) {
            weights[w] = 1 + (int)(rng_philox(seed, 2, (uint64_t)w).word[0] % (1 + more.word[0] % 5000));
            sum += weights[w];
        }
        CHECK(shares_write(weights, workers, text, sizeof text, &error) == OK &&
                  shares_cut(text, workers, batch, parts, sizes, &error) == OK,
              "%s", error.words);
        for (int w = 0; w < workers; w++) {
            const double exact = (double)weights[w] * workers * batch / (double)sum;
            bool least = false;
            for (int v = 0; v < workers; v++) least = least || sizes[v] == parts;
            all += sizes[w];
            CHECK(sizes[w] >= parts && sizes[w] % parts == 0 && (least || fabs(sizes[w] - exact) < parts),
                  "%s: %d in %d parts: worker %d has %d, exactly %g", text, batch, parts, w, sizes[w], exact);
        }
        CHECK(all == (long)workers * batch, "%s: %ld examples, expected %d times %d", text, all, workers,
              batch);
        CHECK(shares_write(sizes, workers, again, sizeof again, &error) == OK &&
                  shares_cut(again, workers, batch, parts, back, &error) == OK &&
                  memcmp(sizes, back, (size_t)workers * sizeof *sizes) == 0,
              "%s became %s, which is something else", text, again);
    }
}

/* Two workers with a constant and a part for each example: 1 + n and 4 + 4n take as long for 160.6 and 39.4,
 * also where four measurements are one too long and one too short. A part that is too small, as noise makes
 * it, is half of the time; and a clock that stands still is even. */
static void check_paces(void) {
    static const struct {
        struct measurements measured[2];
        int sizes[2];
    } rows[] = {
        {{{2, {50, 100}, {51, 101}}, {2, {50, 100}, {204, 404}}}, {161, 39}},
        {{{4, {100, 150, 170, 180}, {101, 152, 169, 182}}, {4, {100, 50, 30, 20}, {404, 204, 124, 84}}},
         {161, 39}},
        {{{1, {100}, {1}}, {1, {100}, {4}}}, {160, 40}},
        {{{2, {100, 100}, {2, 1}}, {2, {100, 100}, {9, 4}}}, {162, 38}},
        {{{2, {50, 100}, {2, 2}}, {2, {50, 100}, {2, 2}}}, {100, 100}},
        {{{2, {50, 100}, {1, 2}}, {2, {50, 100}, {8, 4}}}, {183, 17}},
        {{{2, {50, 100}, {0, 0}}, {2, {50, 100}, {0, 0}}}, {100, 100}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error error = {0};
        struct pace paces[2];
        int sizes[2];
        for (int w = 0; w < 2; w++) paces[w] = paces_line(&rows[i].measured[w]);
        CHECK(paces_cut(paces, 2, NULL, 200, 1, sizes, &error) == OK, "%s", error.words);
        for (int w = 0; w < 2; w++)
            CHECK(sizes[w] == rows[i].sizes[w], "row %d: worker %d has %d, expected %d", (int)i, w, sizes[w],
                  rows[i].sizes[w]);
    }
}

int main(void) {
    check_texts();
    check_sizes();
    check_missing();
    check_many();
    check_paces();
    return check_end();
}
