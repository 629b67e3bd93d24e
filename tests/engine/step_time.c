/* How long a step takes in virtual time: what the option says, and what is drawn. */
#include <math.h>
#include <string.h>

#include "../../src/engine/step_time.h"
#include "../check.h"

static void check_words(const char *text, const char *words) {
    struct step_time time;
    struct error error = {0};
    char said[STEP_TIME_BYTES];
    CHECK(step_time_parse(&time, text, &error) == OK, "%s: %s", text, error.words);
    step_time_words(&time, said, sizeof said);
    CHECK(strcmp(said, words) == 0, "%s: \"%s\", expected \"%s\"", text, said, words);
}

static void test_what_it_says(void) {
    check_words("", "");
    check_words("20ms", "a step takes 20 ms of virtual time");
    check_words("500us", "a step takes 500 us of virtual time");
    check_words("1.5s", "a step takes 1.5 s of virtual time");
    check_words("0.25s:spread=0", "a step takes 250 ms of virtual time");
    check_words("20ms:spread=0.3",
                "a step takes 20 ms of virtual time in the mean, with a deviation of 30 %");
    check_words("20ms:0.3", "a step takes 20 ms of virtual time in the mean, with a deviation of 30 %");
}

static void test_what_is_none(void) {
    static const char *const none[] = {"20",
                                       "ms",
                                       "0ms",
                                       "-20ms",
                                       "20 ms",
                                       "20min",
                                       "0.5us",
                                       "1001s",
                                       "infs",
                                       "nans",
                                       "1e3ms",
                                       "20msx",
                                       "2.0.ms",
                                       "20ms,spread=0.3",
                                       "20ms:",
                                       "20ms:x=1",
                                       "20ms:spread=",
                                       "20ms:spread=spread=1",
                                       "20ms:spread=-1",
                                       "20ms:spread=11",
                                       "20ms:spread=1,x=2"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct step_time time;
        struct error error = {0};
        CHECK(step_time_parse(&time, none[i], &error) == ERROR_USAGE, "%s is taken", none[i]);
        CHECK(strstr(error.words, none[i]) && strstr(error.words, "expected"), "%s: %s", none[i],
              error.words);
    }
}

enum { DRAWS = 100000 };

/* A mean of so many has a deviation of 0.5 / sqrt(DRAWS) = 0.0016. */
static void test_what_is_drawn(void) {
    const struct step_time time = {.mean_s = 0.02, .spread = 0.5, .seed = 7};
    double sum = 0.0, squares = 0.0, beside = 0.0, least = INFINITY;
    for (long step = 1; step <= DRAWS; step++) {
        const double one = step_time_of(&time, 3, step) / time.mean_s;
        const double other = step_time_of(&time, 4, step) / time.mean_s;
        sum += one;
        squares += (one - 1.0) * (one - 1.0);
        beside += (one - 1.0) * (other - 1.0);
        least = fmin(least, one);
    }
    CHECK(fabs(sum / DRAWS - 1.0) < 0.01, "the mean is %g", sum / DRAWS);
    CHECK(fabs(sqrt(squares / DRAWS) - 0.5) < 0.02, "the deviation is %g", sqrt(squares / DRAWS));
    CHECK(fabs(beside / DRAWS) < 0.01, "two workers go together: %g", beside / DRAWS);
    CHECK(least > 0.0, "a step takes %g", least);
}

static void test_seeds(void) {
    const struct step_time one = {.mean_s = 1.0, .spread = 0.3, .seed = 1};
    const struct step_time two = {.mean_s = 1.0, .spread = 0.3, .seed = 2};
    const struct step_time even = {.mean_s = 0.25, .seed = 1};
    CHECK(step_time_of(&one, 0, 1) == step_time_of(&one, 0, 1), "the same step takes another time");
    CHECK(step_time_of(&one, 0, 1) != step_time_of(&two, 0, 1), "another seed takes the same time");
    CHECK(step_time_of(&one, 0, 1) != step_time_of(&one, 1, 1), "another worker takes the same time");
    CHECK(step_time_of(&one, 0, 1) != step_time_of(&one, 0, 2), "another step takes the same time");
    CHECK(step_time_of(&even, 5, 9) == 0.25, "with equal times, a step takes %g", step_time_of(&even, 5, 9));
}

int main(void) {
    test_what_it_says();
    test_what_is_none();
    test_what_is_drawn();
    test_seeds();
    return check_end();
}
