/* The validation part: what is held out and what is left are the training part, each example once and with
 * its label; the same ones every time; the test part is left alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/data/dataset.h"
#include "../check.h"

/* --- every data set that is embedded --- */

struct row {
    uint64_t hash;
    long label; /* as wide as the hash: rows are compared byte by byte, and have no gaps */
};

static size_t row_bytes(const struct examples *examples) {
    const struct augment *a = &examples->augment;
    if (!examples->bytes) return (size_t)examples->features * sizeof(float);
    if (a->height > 0) return (size_t)(a->height * a->width * a->channels);
    return (size_t)examples->features;
}

static uint64_t hash_row(const struct examples *examples, int i) {
    const size_t bytes = row_bytes(examples);
    const unsigned char *row =
        (examples->bytes ? examples->bytes : (const unsigned char *)examples->floats) + (size_t)i * bytes;
    uint64_t hash = 14695981039346656037u;
    for (size_t b = 0; b < bytes; b++) hash = (hash ^ row[b]) * 1099511628211u;
    return hash;
}

static int compare(const void *one, const void *other) {
    const struct row *a = one, *b = other;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return (a->label > b->label) - (a->label < b->label);
}

/* rows[count], from `first` on, sorted. */
static void list_rows(const struct examples *examples, struct row *rows) {
    for (int i = 0; i < examples->count; i++)
        rows[i] = (struct row){.hash = hash_row(examples, i), .label = examples->labels[i]};
}

static bool same_rows(struct row *one, struct row *other, int count) {
    qsort(one, (size_t)count, sizeof *one, compare);
    qsort(other, (size_t)count, sizeof *other, compare);
    for (int i = 0; i < count; i++)
        if (compare(&one[i], &other[i]) != 0) return false;
    return true;
}

static void open_text(struct dataset *dataset, const char *text) {
    struct choice choice;
    struct error error = {0};
    CHECK(plugin_choose(&choice, &dataset_kind, text, &error) == OK, "%s", error.words);
    CHECK(dataset_open(dataset, &choice, NULL, &error) == OK, "%s", error.words);
}

static void check_parts(const char *text, double share, int held) {
    static struct row whole[2000], parts[2000], again[2000], test[2][2000];
    struct dataset plain = {0}, cut[2] = {{0}};
    struct error error = {0};
    open_text(&plain, text);
    const int count = plain.train.count, tests = plain.test.count;
    list_rows(&plain.train, whole);
    list_rows(&plain.test, test[0]);
    for (int i = 0; i < 2; i++) {
        open_text(&cut[i], text);
        CHECK(dataset_hold_out(&cut[i], share, &error) == OK, "%s: %s", text, error.words);
        CHECK(cut[i].validation.count == held && cut[i].train.count == count - held,
              "%s, %g: %d held out, %d left", text, share, cut[i].validation.count, cut[i].train.count);
        struct row *rows = i == 0 ? parts : again;
        list_rows(&cut[i].train, rows);
        list_rows(&cut[i].validation, rows + cut[i].train.count);
        list_rows(&cut[i].test, test[1]);
        CHECK(memcmp(test[0], test[1], (size_t)tests * sizeof **test) == 0, "%s: the test part changed",
              text);
    }
    CHECK(memcmp(parts, again, (size_t)count * sizeof *parts) == 0, "%s: other examples the second time",
          text);
    const int last = count - held;
    bool moved = false;
    for (int i = 0; i < held; i++) moved = moved || parts[last + i].hash != whole[last + i].hash;
    CHECK(moved || held < 3, "%s: the last examples are held out, in whatever order the file has", text);
    CHECK(same_rows(whole, parts, count), "%s, %g: the parts are not the whole", text, share);
    dataset_close(&plain);
    for (int i = 0; i < 2; i++) dataset_close(&cut[i]);
}

/* Targets go where their examples go; `units` of the data set say nothing of it. */
static void check_targets(void) {
    enum { COUNT = 20, HELD = 6 };
    static float rows[COUNT * 3], targets[COUNT * 2];
    struct dataset dataset = {.name = "values", .task = TASK_VALUES, .classes = 2};
    struct error error = {0};
    bool seen[COUNT] = {false};
    for (int i = 0; i < COUNT; i++) {
        for (int f = 0; f < 3; f++) rows[i * 3 + f] = (float)i;
        for (int o = 0; o < 2; o++) targets[i * 2 + o] = (float)(i + 100 * o);
    }
    dataset.train = (struct examples){.count = COUNT, .features = 3, .floats = rows};
    dataset_label(&dataset, &dataset.train, targets);
    CHECK(dataset_hold_out(&dataset, 0.3, &error) == OK, "%s", error.words);
    const struct examples *const parts[] = {&dataset.train, &dataset.validation};
    CHECK(parts[0]->count == COUNT - HELD && parts[1]->count == HELD, "%d and %d", parts[0]->count,
          parts[1]->count);
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < parts[p]->count; i++) {
            const int which = (int)parts[p]->floats[i * 3];
            seen[which] = true;
            for (int o = 0; o < 2; o++)
                CHECK(parts[p]->targets[i * 2 + o] == (float)(which + 100 * o),
                      "example %d has the target %g", which, (double)parts[p]->targets[i * 2 + o]);
        }
    for (int i = 0; i < COUNT; i++) CHECK(seen[i], "example %d is gone", i);
}

static void check_share(const char *text, double share, const char *words) {
    struct dataset dataset = {0};
    struct error error = {0};
    open_text(&dataset, text);
    CHECK(dataset_hold_out(&dataset, share, &error) == ERROR_USAGE && strcmp(error.words, words) == 0, "%s",
          error.words);
    CHECK(dataset.validation.count == 0, "it was held out");
    dataset_close(&dataset);
}

int main(void) {
    check_parts("digits", 0.1, 144);
    check_parts("digits:take=7", 0.5, 4);
    check_parts("iris", 0.25, 30);
    check_parts("iris:standardize=1,take=2", 0.5, 1);
    check_targets();
    check_share(
        "iris", 0.001,
        "--validation=0.001: found 0 of 120 training examples of iris, expected at least one on either side");
    check_share(
        "iris:take=1", 0.5,
        "--validation=0.5: found 1 of 1 training examples of iris, expected at least one on either side");
    return check_end();
}
