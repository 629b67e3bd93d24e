/* Strategies one after the other, as text: what is read of it, what is wrong with it and where, and when each
 * is over. */
#include "../../src/store/phases.h"

#include <math.h>
#include <string.h>

#include "../check.h"

static struct phases phases;

/* --- what is read --- */

struct expected {
    const char *text;
    int count;
    struct {
        const char *strategy, *until;
    } phase[PHASES_MOST];
};

static const struct expected right[] = {
    {"sync", 1, {{"sync", ""}}},
    {"ssp:bound=5", 1, {{"ssp:bound=5", ""}}},
    {"ssp:5", 1, {{"ssp:bound=5", ""}}},
    {"backup:1 until epoch 2;ssp:3 until 0.5; sync",
     3,
     {{"backup:backups=1", "epoch 2"}, {"ssp:bound=3", "accuracy 0.5"}, {"sync", ""}}},
    {"sync until epoch 2; sync", 2, {{"sync", "epoch 2"}, {"sync", ""}}},
    {"async-lockfree:apply=worker   until  0.9 ;ssp:bound=0",
     2,
     {{"async-lockfree:apply=worker", "accuracy 0.9"}, {"ssp:bound=0", ""}}},
    {"sync until 90%; sync", 2, {{"sync", "accuracy 0.9"}, {"sync", ""}}},
    {"sync until 100%; sync", 2, {{"sync", "accuracy 1"}, {"sync", ""}}},
    {"sync until .5;sync", 2, {{"sync", "accuracy 0.5"}, {"sync", ""}}},
    {"sync until accuracy 1; sync", 2, {{"sync", "accuracy 1"}, {"sync", ""}}},
    {"sync until accuracy 85.5%; sync", 2, {{"sync", "accuracy 0.855"}, {"sync", ""}}},
    {"sync until plateau 3; sync", 2, {{"sync", "plateau 3"}, {"sync", ""}}},
    {"sync until epoch 3;ssp until 0.5; local-sgd:every=4 until plateau 2; ssp until epoch 4; sync",
     5,
     {{"sync", "epoch 3"},
      {"ssp", "accuracy 0.5"},
      {"local-sgd:every=4", "plateau 2"},
      {"ssp", "epoch 4"},
      {"sync", ""}}},
};

static void check_right(const struct expected *expected) {
    struct error error = {0};
    char until[PHASE_WORDS_BYTES];
    CHECK(phases_parse(&phases, expected->text, &error) == OK, "%s: %s", expected->text, error.words);
    CHECK(phases.count == expected->count, "%s: %d strategies", expected->text, phases.count);
    CHECK(phases_several(expected->text) == (expected->count > 1), "%s: several, or not", expected->text);
    for (int p = 0; p < phases.count; p++) {
        const struct strategy_phase *phase = &phases.list[p];
        CHECK(strcmp(phase->strategy.text, expected->phase[p].strategy) == 0 &&
                  strcmp(phase_words(phase, until), expected->phase[p].until) == 0,
              "%s: %d is %s until %s", expected->text, p, phase->strategy.text, until);
    }
}

/* --- what is wrong, and where --- */

static const struct {
    const char *text, *words;
} wrong[] = {
    {"snyc", "strategy \"snyc\": unknown; did you mean \"sync\""},
    {"", "strategy \"\": unknown"},
    {"sync until", "strategy 1, at character 6: found \"until \""},
    {"sync until epoch 2", "strategy 1, at character 6: found sync until epoch 2 and nothing after it"},
    {"sync until 0.5", "strategy 1, at character 6: found sync until accuracy 0.5 and nothing after it"},
    {"sync until epoch 2; ssp until plateau 3", "found ssp until plateau 3 and nothing after it"},
    {"sync until epoch 2;", "strategy 2, at character 20: found no strategy"},
    {"; sync", "strategy 1, at character 1: found no strategy"},
    {"sync until 0.5; ; sync", "strategy 2, at character 17: found no strategy"},
    {"until 0.5; sync", "strategy 1, at character 1: found no strategy"},
    {"sync; ssp", "strategy 1, at character 1: found sync without a condition"},
    {"sync until 0.5; snyc",
     "strategy 2, at character 17: strategy \"snyc\": unknown; did you mean \"sync\""},
    {"ssp:bounds=1 until 0.5; sync", "strategy 1, at character 1: ssp: unknown setting \"bounds\""},
    {"sync until 5; ssp", "strategy 1, at character 6: found \"until 5\", expected"},
    {"sync until 1; ssp", "strategy 1, at character 6: found \"until 1\", expected"},
    {"sync until 1.5; ssp", "found \"until 1.5\", expected"},
    {"sync until 0.0; ssp", "found \"until 0.0\", expected"},
    {"sync until -0.5; ssp", "found \"until -0.5\", expected"},
    {"sync until 0x.8; ssp", "found \"until 0x.8\", expected"},
    {"sync until nan; ssp", "found \"until nan\", expected"},
    {"sync until 101%; ssp", "found \"until 101%\", expected"},
    {"sync until 0.5 %; ssp", "found \"until 0.5 %\", expected"},
    {"sync until accuracy; ssp", "found \"until accuracy\", expected"},
    {"sync until accuracy 90; ssp", "found \"until accuracy 90\", expected"},
    {"sync until epoch; ssp", "found \"until epoch\", expected"},
    {"sync until epoch 0; ssp", "found \"until epoch 0\", expected"},
    {"sync until epoch 2.5; ssp", "found \"until epoch 2.5\" (a strategy changes where an epoch ends)"},
    {"sync until epoch 2 3; ssp", "found \"until epoch 2 3\", expected"},
    {"sync until epoch 9999999999; ssp", "found \"until epoch 9999999999\", expected"},
    {"sync until plateau 0; ssp", "found \"until plateau 0\", expected"},
    {"sync until 0.5 until 0.6; ssp", "found \"until 0.5 until 0.6\", expected"},
    {"sync until 0.5; ssp:bound=\"1; 2 until 3\" until 0.6; sync",
     "strategy 2, at character 17: ssp: bound=1; 2 until 3: expected a whole number"},
    {"sync until epoch 2; ssp until epoch 2; sync",
     "strategy 2, at character 25: found \"until epoch 2\" after \"until epoch 2\", expected a later epoch"},
    {"sync until epoch 3; ssp until 0.5; ssp until epoch 2; sync", "expected a later epoch"},
    {"sync until epoch 1; sync until epoch 2; sync until epoch 3; sync until epoch 4; sync until epoch 5; "
     "sync until epoch 6; sync until epoch 7; sync until epoch 8; sync",
     "found more than 8"},
};

static void check_wrong(const char *text, const char *words) {
    struct error error = {0};
    const int code = phases_parse(&phases, text, &error);
    CHECK(code == ERROR_USAGE && strstr(error.words, words), "\"%s\": %d: %s, expected: %s", text, code,
          error.words, words);
    CHECK(strlen(error.words) < 250, "\"%s\": %s", text, error.words);
}

/* --- when it is over --- */

static const struct {
    struct strategy_phase phase;
    struct phase_facts facts;
    bool over;
} ends[] = {
    {{.until = UNTIL_EPOCH, .epochs = 3}, {.epochs = 2}, false},
    {{.until = UNTIL_EPOCH, .epochs = 3}, {.epochs = 3}, true},
    {{.until = UNTIL_EPOCH, .epochs = 3}, {.epochs = 4}, true},
    {{.until = UNTIL_ACCURACY, .accuracy = 0.5}, {.epochs = 9, .accuracy = NAN}, false},
    {{.until = UNTIL_ACCURACY, .accuracy = 0.5}, {.epochs = 9, .accuracy = 0.49}, false},
    {{.until = UNTIL_ACCURACY, .accuracy = 0.5}, {.epochs = 1, .accuracy = 0.5}, true},
    {{.until = UNTIL_PLATEAU, .epochs = 2}, {.epochs = 4, .better = 3, .accuracy = 1}, false},
    {{.until = UNTIL_PLATEAU, .epochs = 2}, {.epochs = 5, .better = 3}, true},
    {{.until = UNTIL_END}, {.epochs = 1000, .accuracy = 1}, false},
};

int main(void) {
    struct error error = {0};
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) check_right(&right[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) check_wrong(wrong[i].text, wrong[i].words);
    CHECK(!phases_several("ssp:bound=\"1; 2\"") && !phases_several("ssp:bound=\"1 until 2\""), "in quotes");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        CHECK(phase_is_over(&ends[i].phase, &ends[i].facts) == ends[i].over, "end %zu", i);
    CHECK(phases_parse(&phases, "sync until epoch 2; ssp", &error) == OK && !phases_validate(&phases), "%s",
          error.words);
    CHECK(phases_parse(&phases, "sync until epoch 2; ssp until 0.5; ssp", &error) == OK &&
              phases_validate(&phases),
          "%s", error.words);
    return check_end();
}
