/* A list of strategies with conditions between them, read and asked. See phases.h. */
#include "phases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/memory.h"

enum { EPOCHS_MOST = 1000000, SHOWN_MOST = 60 };

/* A piece of the text. */
struct piece_of {
    const char *at;
    size_t length;
};

static struct piece_of trimmed(const char *at, size_t length) {
    while (length > 0 && *at == ' ') at++, length--;
    while (length > 0 && at[length - 1] == ' ') length--;
    return (struct piece_of){at, length};
}

/* Characters up to the semicolon that ends the phase at the front, or to the end. */
static size_t phase_length(const char *text) {
    bool quoted = false;
    size_t i = 0;
    for (; text[i] && (quoted || text[i] != ';'); i++) quoted = quoted != (text[i] == '"');
    return i;
}

/* Where the word `until` begins in the piece, or its length. */
static size_t until_at(const struct piece_of *piece) {
    static const char word[] = "until";
    const size_t letters = sizeof word - 1;
    bool quoted = false;
    for (size_t i = 0; i + letters <= piece->length; i++) {
        const char *at = piece->at + i;
        quoted = quoted != (*at == '"');
        if (quoted || (i > 0 && at[-1] != ' ') || strncmp(at, word, letters) != 0) continue;
        if (i + letters == piece->length || at[letters] == ' ') return i;
    }
    return piece->length;
}

static int bad_condition(const struct piece_of *condition, const char *found, struct error *error) {
    const int length = condition->length > SHOWN_MOST ? SHOWN_MOST : (int)condition->length;
    return error_set(
        error, ERROR_USAGE,
        "found \"until %.*s\"%s, expected \"until epoch N\", \"until accuracy A\", \"until 90%%\" "
        "or \"until plateau N\"",
        length, condition->at, found);
}

/* All of `number` as a number of epochs. */
static bool read_epochs(const char *number, int *epochs) {
    char *end = NULL;
    const long value = strtol(number, &end, 10);
    if (*number < '0' || *number > '9' || *end != '\0' || value < 1 || value > EPOCHS_MOST) return false;
    *epochs = (int)value;
    return true;
}

/* "0.9" or "90%". A whole number alone might mean epochs. */
static bool read_accuracy(const char *number, bool named, double *accuracy) {
    char *end = NULL;
    const bool digit = (*number >= '0' && *number <= '9') || *number == '.';
    const double value = digit ? strtod(number, &end) : 0.0;
    if (!digit || strpbrk(number, "xXnN")) return false;
    const bool percent = *end == '%' && end[1] == '\0';
    *accuracy = percent ? value / 100.0 : value;
    return (percent || *end == '\0') && *accuracy > 0.0 && *accuracy <= 1.0 &&
           (named || percent || strchr(number, '.') != NULL);
}

static int read_condition(struct strategy_phase *phase, const struct piece_of *condition,
                          struct error *error) {
    char words[SHOWN_MOST + 1];
    const struct {
        const char *name;
        enum until until;
    } kinds[] = {{"epoch ", UNTIL_EPOCH}, {"accuracy ", UNTIL_ACCURACY}, {"plateau ", UNTIL_PLATEAU}};
    if (condition->length > SHOWN_MOST) return bad_condition(condition, "...", error);
    snprintf(words, sizeof words, "%.*s", (int)condition->length, condition->at);
    const char *number = words;
    phase->until = UNTIL_ACCURACY;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(words, kinds[i].name, strlen(kinds[i].name)) == 0) {
            number = words + strlen(kinds[i].name);
            phase->until = kinds[i].until;
        }
    number += strspn(number, " ");
    const bool good = phase->until == UNTIL_ACCURACY
                          ? read_accuracy(number, number != words, &phase->accuracy)
                          : read_epochs(number, &phase->epochs);
    if (good) return OK;
    const bool parts = phase->until == UNTIL_EPOCH && strchr(number, '.') != NULL;
    return bad_condition(condition, parts ? " (a strategy changes where an epoch ends)" : "", error);
}

/* The strategy before `until`, and the condition behind it. *at: where what is wrong begins. */
static int read_phase(struct strategy_phase *phase, const struct piece_of *piece, const char **at,
                      struct error *error) {
    char name[sizeof phase->strategy.text];
    const size_t until = until_at(piece);
    const struct piece_of strategy = trimmed(piece->at, until);
    if (strategy.length == 0)
        return error_set(error, ERROR_USAGE, "found no strategy, expected NAME or \"NAME until CONDITION\"");
    if (strategy.length >= sizeof name)
        return error_set(error, ERROR_USAGE, "strategy \"%.40s...\": %zu characters, expected fewer than %zu",
                         strategy.at, strategy.length, sizeof name);
    memcpy(name, strategy.at, strategy.length);
    name[strategy.length] = '\0';
    RETURN_IF(plugin_choose(&phase->strategy, &strategy_kind, name, error));
    phase->until = UNTIL_END;
    if (until == piece->length) return OK;
    const size_t behind = until + strlen("until");
    const struct piece_of condition = trimmed(piece->at + behind, piece->length - behind);
    *at = piece->at + until;
    return read_condition(phase, &condition, error);
}

/* What a phase must have, and the last must not. */
static int check_end(const struct strategy_phase *phase, bool last, struct error *error) {
    char words[PHASE_WORDS_BYTES];
    const char *name = phase->strategy.plugin->name;
    if (last && phase->until != UNTIL_END)
        return error_set(
            error, ERROR_USAGE,
            "found %s until %s and nothing after it, expected \"; STRATEGY\", which the run goes "
            "on with",
            name, phase_words(phase, words));
    if (!last && phase->until == UNTIL_END)
        return error_set(error, ERROR_USAGE,
                         "found %s without a condition before the semicolon, expected \"%s until epoch N\", "
                         "\"until accuracy A\" or \"until plateau N\"",
                         name, name);
    return OK;
}

/* An epoch that an earlier condition has waited for already cannot be waited for again. */
static int check_order(const struct phases *phases, struct error *error) {
    const struct strategy_phase *now = &phases->list[phases->count - 1];
    for (int i = 0; i < phases->count - 1 && now->until == UNTIL_EPOCH; i++) {
        const struct strategy_phase *before = &phases->list[i];
        if (before->until == UNTIL_EPOCH && before->epochs >= now->epochs)
            return error_set(error, ERROR_USAGE,
                             "found \"until epoch %d\" after \"until epoch %d\", expected a later epoch",
                             now->epochs, before->epochs);
    }
    return OK;
}

/* "sync,ssp": a strategy's name follows a comma. */
static bool is_list(const char *text) {
    for (const char *comma = strchr(text, ','); comma; comma = strchr(comma + 1, ',')) {
        char name[SHOWN_MOST + 1];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(comma + 1, ","), comma + 1);
        if (plugin_named(&strategy_kind, name)) return true;
    }
    return false;
}

static int parse_one(struct phases *phases, const char *text, struct error *error) {
    struct error why = {0};
    phases->count = 1;
    if (plugin_choose(&phases->list[0].strategy, &strategy_kind, text, &why) == OK) return OK;
    if (!is_list(text)) return error_set(error, why.code, "%s", why.words);
    return error_set(error, ERROR_USAGE,
                     "--strategy=%.200s: found several strategies, expected one; did you mean trainer bench "
                     "--strategies=%.200s?",
                     text, text);
}

int phases_parse(struct phases *phases, const char *text, struct error *error) {
    const bool several = phases_several(text);
    *phases = (struct phases){0};
    if (!several) return parse_one(phases, text, error);
    for (const char *rest = text; rest;) {
        const size_t length = phase_length(rest);
        const struct piece_of piece = trimmed(rest, length);
        const bool last = rest[length] == '\0';
        const char *at = piece.at;
        if (phases->count == PHASES_MOST)
            return error_set(error, ERROR_USAGE, "strategy: found more than %d, one after the other",
                             PHASES_MOST);
        struct strategy_phase *phase = &phases->list[phases->count++];
        int code = read_phase(phase, &piece, &at, error);
        if (code == OK) code = check_end(phase, last, error);
        if (code == OK) code = check_order(phases, error);
        if (code != OK)
            return error_prefix(error, "strategy %d, at character %zu: ", phases->count,
                                (size_t)(at - text) + 1);
        rest = last ? NULL : rest + length + 1;
    }
    return OK;
}

int phases_check(const char *text, struct error *error) {
    struct phases *phases = NULL;
    RETURN_IF(memory_array(&phases, 1, "a list of strategies", error));
    const int code = phases_parse(phases, text, error);
    memory_free(phases);
    return code;
}

void phases_of(struct phases *phases, const struct choice *strategy) {
    *phases = (struct phases){.count = 1};
    phases->list[0].strategy = *strategy;
}

bool phases_several(const char *text) {
    const struct piece_of all = trimmed(text, strlen(text));
    return text[phase_length(text)] != '\0' || until_at(&all) < all.length;
}

bool phases_validate(const struct phases *phases) {
    for (int i = 0; i < phases->count; i++)
        if (phases->list[i].until == UNTIL_ACCURACY || phases->list[i].until == UNTIL_PLATEAU) return true;
    return false;
}

bool phase_is_over(const struct strategy_phase *phase, const struct phase_facts *facts) {
    switch (phase->until) {
    case UNTIL_EPOCH:
        return facts->epochs >= phase->epochs;
    case UNTIL_ACCURACY:
        return !isnan(facts->accuracy) && facts->accuracy >= phase->accuracy;
    case UNTIL_PLATEAU:
        return facts->epochs - facts->better >= phase->epochs;
    case UNTIL_END:
        break;
    }
    return false;
}

const char *phase_words(const struct strategy_phase *phase, char out[PHASE_WORDS_BYTES]) {
    out[0] = '\0';
    if (phase->until == UNTIL_EPOCH) snprintf(out, PHASE_WORDS_BYTES, "epoch %d", phase->epochs);
    if (phase->until == UNTIL_ACCURACY) snprintf(out, PHASE_WORDS_BYTES, "accuracy %g", phase->accuracy);
    if (phase->until == UNTIL_PLATEAU) snprintf(out, PHASE_WORDS_BYTES, "plateau %d", phase->epochs);
    return out;
}
