/* Event files: read back record by record, with check sums, by a decoder that knows only the wire format of
 * protocol buffers; then what becomes of the files of a folder. */
#include "../../src/formats/events.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/crc32c.h"
#include "../../src/base/memory.h"
#include "../../src/formats/event_files.h"
#include "../check.h"

enum { FILE_MOST = 1 << 20 };
static const double noon = 1.75e9 + 0.25;

/* --- a plain decoder --- */

struct field {
    uint64_t number, value; /* of kinds 0, 1 and 5 */
    int kind;
    const unsigned char *bytes; /* of kind 2 */
    size_t count;
};

/* A message, or a whole file: what is not yet read of it. */
struct wire {
    const unsigned char *at, *end;
};

static uint64_t little(const unsigned char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static uint64_t varint(struct wire *wire) {
    uint64_t value = 0;
    for (int shift = 0; wire->at < wire->end; shift += 7) {
        const unsigned char byte = *wire->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}

static bool next_field(struct wire *wire, struct field *field) {
    if (wire->at >= wire->end) return false;
    const uint64_t key = varint(wire);
    *field = (struct field){.number = key >> 3, .kind = (int)(key & 7)};
    if (field->kind == 0) {
        field->value = varint(wire);
    } else if (field->kind == 2) {
        field->count = varint(wire);
        field->bytes = wire->at;
        wire->at += field->count;
    } else {
        const int bytes = field->kind == 1 ? 8 : 4;
        field->value = little(wire->at, bytes);
        wire->at += bytes;
    }
    CHECK(wire->at <= wire->end, "field %" PRIu64 " goes beyond its message", field->number);
    return true;
}

/* The n-th field (from 0) with the last number of the path, in the messages that the others lead to. */
static struct field find(struct wire wire, const int *path, int n) {
    struct field field, none = {0};
    while (next_field(&wire, &field)) {
        if (field.number != (uint64_t)path[0] || (path[1] == 0 && n-- > 0)) continue;
        if (path[1] == 0) return field;
        return find((struct wire){field.bytes, field.bytes + field.count}, path + 1, n);
    }
    return none;
}
#define FIND(wire, n, ...) find((wire), (const int[]){__VA_ARGS__, 0}, (n))

static struct wire inside(const struct field *field) {
    return (struct wire){field->bytes, field->bytes + field->count};
}

static double real(const struct field *field) {
    double value;
    memcpy(&value, &field->value, sizeof value);
    return value;
}

static float small(const struct field *field) {
    const uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool is_text(const struct field *field, const char *text) {
    return field->kind == 2 && field->count == strlen(text) && memcmp(field->bytes, text, field->count) == 0;
}

/* The next record of a file, its check sums checked. */
static bool next_event(struct wire *file, struct wire *event) {
    if (file->at >= file->end) return false;
    const uint64_t bytes = little(file->at, 8);
    CHECK(bytes + 16 <= (uint64_t)(file->end - file->at), "a record of %" PRIu64 " bytes", bytes);
    const unsigned char *data = file->at + 12;
    const uint32_t sums[] = {crc32c(0, file->at, 8), crc32c(0, data, bytes)};
    const uint64_t found[] = {little(file->at + 8, 4), little(data + bytes, 4)};
    for (int i = 0; i < 2; i++)
        CHECK((uint32_t)found[i] == (uint32_t)(((sums[i] >> 15) | (sums[i] << 17)) + 0xA282EAD8u),
              "check sum %d is %" PRIx64, i, found[i]);
    *event = (struct wire){data, data + bytes};
    file->at = data + bytes + 4;
    return true;
}

/* --- what is written --- */

static unsigned char content[FILE_MOST];

static struct wire read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    const size_t bytes = file ? fread(content, 1, sizeof content, file) : 0;
    CHECK(bytes > 0, "%s cannot be read", path);
    if (file) fclose(file);
    return (struct wire){content, content + bytes};
}

static void add_graph(struct graph *g) {
    const struct initial zero = {.kind = INITIAL_ZERO};
    graph_open(g, true, 1);
    const node x = graph_placeholder(g, "x", TYPE_FLOAT, SHAPE(32, 5));
    const node labels = graph_placeholder(g, "labels", TYPE_INT, SHAPE(32));
    const node hidden = graph_sigmoid(g, graph_dense(g, x, 7, zero, zero));
    const node logits = graph_dense(g, hidden, 3, zero, zero);
    const node loss = graph_reduce_mean(g, graph_softmax_cross_entropy(g, logits, labels), ALL_AXES, false);
    const node kernel = graph_find(g, "dense1/kernel");
    node gradient;
    graph_gradients(g, loss, &kernel, 1, &gradient);
}

static void write_all(const char *folder) {
    static const struct events_setting settings[] = {
        {.name = "model", .kind = SETTING_TEXT, .text = "mlp", .first = true},
        {.name = "rate", .kind = SETTING_NUMBER, .number = 0.5},
        {.name = "nesterov", .kind = SETTING_FLAG, .flag = false}};
    static const struct events_metric metrics[] = {{"test/accuracy", "accuracy"}};
    static const struct events_scalar scalars[] = {{"a", 0.0}, {"unknown", NAN}, {"b", -1.5}};
    static const struct events_bucket buckets[] = {{-1, 0, 3}, {0, 1, 4}};
    const struct events_image image = {.height = 2, .width = 3, .channels = 1, .png = "PNG", .bytes = 3};
    struct events events = {0};
    struct error error = {0};
    struct graph graph;
    add_graph(&graph);
    CHECK(events_open(&events, folder, 1750000000, 5, &error) == OK, "%s", error.words);
    CHECK(events_scalars(&events, noon, 6, scalars, 3, &error) == OK, "%s", error.words);
    CHECK(events_histogram(&events, noon, 7, "h", buckets, 2, &error) == OK, "%s", error.words);
    CHECK(events_image(&events, noon, 8, "i", &image, &error) == OK, "%s", error.words);
    CHECK(events_text(&events, noon, 1L << 40, "t", "**bold**", &error) == OK, "%s", error.words);
    CHECK(events_graph(&events, noon, &graph, "cpu:1", &error) == OK, "%s", error.words);
    CHECK(events_settings(&events, noon, settings, 3, metrics, 1, &error) == OK, "%s", error.words);
    CHECK(events_settings_end(&events, noon, true, &error) == OK, "%s", error.words);
    CHECK(events_flush(&events, &error) == OK, "%s", error.words);
    struct stat status;
    CHECK(stat(events.path, &status) == 0 && status.st_size == events.flushed,
          "%lld bytes in the file, %lld written", (long long)status.st_size, events.flushed);
    events_close(&events);
    graph_close(&graph);
}

/* --- what is read --- */

static void check_event(struct wire *file, struct wire *event, long step) {
    CHECK(next_event(file, event), "no event for step %ld", step);
    const struct field found = FIND(*event, 0, 2);
    CHECK(found.value == (uint64_t)step, "step %" PRIu64 ", expected %ld", found.value, step);
}

static void check_values(struct wire *file) {
    struct wire event;
    struct field f, g;
    check_event(file, &event, 6);
    f = FIND(event, 0, 1);
    CHECK(real(&f) == noon, "time %f", real(&f));
    f = FIND(event, 0, 5, 1);
    g = FIND(inside(&f), 0, 1);
    CHECK(is_text(&g, "a"), "the first tag is not a");
    g = FIND(inside(&f), 0, 2);
    CHECK(g.kind == 5 && small(&g) == 0.0f, "a scalar that is 0 is not there");
    struct field summary = FIND(event, 0, 5);
    f = FIND(inside(&summary), 1, 1);
    g = FIND(inside(&f), 0, 1);
    CHECK(is_text(&g, "b"), "what is not known was written");
    g = FIND(inside(&f), 0, 2);
    CHECK(small(&g) == -1.5f, "b is %g", (double)small(&g));
    check_event(file, &event, 7);
    f = FIND(event, 0, 5, 1, 9, 1, 1);
    CHECK(is_text(&f, "histograms"), "not for the page of histograms");
    f = FIND(event, 0, 5, 1, 8, 4);
    CHECK(f.count == 48, "a histogram of %zu bytes", f.count);
    const double expected[] = {-1, 0, 3, 0, 1, 4};
    CHECK(f.count == 48 && memcmp(f.bytes, expected, 48) == 0, "other buckets");
    check_event(file, &event, 8);
    f = FIND(event, 0, 5, 1, 4);
    const uint64_t sizes[] = {2, 3, 1};
    for (int i = 0; i < 3; i++) {
        g = FIND(inside(&f), 0, i + 1);
        CHECK(g.value == sizes[i], "size %d of the picture: %" PRIu64, i, g.value);
    }
    g = FIND(inside(&f), 0, 4);
    CHECK(is_text(&g, "PNG"), "another picture");
    check_event(file, &event, 1L << 40);
    f = FIND(event, 0, 5, 1, 8, 8);
    CHECK(is_text(&f, "**bold**"), "another text");
}

/* Name, op, first input and device of a node. */
static void check_node(struct wire graph, const char *name, const char *op, const char *input) {
    for (int n = 0;; n++) {
        const struct field f = FIND(graph, n, 1);
        if (f.kind == 0) break;
        const struct field found = FIND(inside(&f), 0, 1), of = FIND(inside(&f), 0, 2),
                           from = FIND(inside(&f), 0, 3), device = FIND(inside(&f), 0, 4);
        if (!is_text(&found, name)) continue;
        CHECK(is_text(&of, op), "%s is a %.*s, expected %s", name, (int)of.count, (const char *)of.bytes, op);
        CHECK(!input || is_text(&from, input), "%s is of %.*s, expected %s", name, (int)from.count,
              (const char *)from.bytes, input);
        CHECK(is_text(&device, "cpu:1"), "%s is elsewhere", name);
        return;
    }
    CHECK(false, "no node %s", name);
}

static void check_graph(struct wire *file) {
    struct wire event;
    check_event(file, &event, 0);
    const struct field f = FIND(event, 0, 4);
    const struct wire graph = inside(&f);
    check_node(graph, "x", "Placeholder", NULL);
    check_node(graph, "dense1/kernel", "VariableV2", NULL);
    check_node(graph, "dense1/matmul", "matmul", "x");
    check_node(graph, "dense1/add", "add", "dense1/matmul");
    check_node(graph, "dense1/sigmoid", "sigmoid", "dense1/add");
    check_node(graph, "dense2/matmul", "matmul", "dense1/sigmoid");
    check_node(graph, "loss/softmax_cross_entropy", "softmax_cross_entropy", "dense2/add");
    check_node(graph, "loss/reduce_mean", "reduce_mean", "loss/softmax_cross_entropy");
    check_node(graph, "gradients/dense1/matmul", "matmul", NULL);
    const struct field first = FIND(graph, 0, 1);
    bool shaped = false;
    for (int n = 0; n < 2; n++) {
        const struct field attr = FIND(inside(&first), n, 5), key = FIND(inside(&attr), 0, 1);
        if (!is_text(&key, "_output_shapes")) continue;
        const struct field rows = FIND(inside(&attr), 0, 2, 1, 7, 2, 1);
        shaped = rows.value == 32;
    }
    CHECK(shaped, "the first node has no shape of 32 rows");
}

static void check_settings(struct wire *file) {
    struct wire event;
    struct field f, g;
    check_event(file, &event, 0);
    f = FIND(event, 0, 5, 1, 1);
    CHECK(is_text(&f, "_hparams_/experiment"), "no experiment");
    f = FIND(event, 0, 5, 1, 9, 1, 2, 2, 5, 1, 2);
    CHECK(is_text(&f, "test/accuracy"), "another metric");
    f = FIND(event, 0, 5, 1, 9, 1, 2, 2, 4, 7);
    CHECK(f.value == 1, "the model is not shown first");
    check_event(file, &event, 0);
    struct field start = FIND(event, 0, 5, 1, 9, 1, 2, 3);
    f = FIND(inside(&start), 0, 1);
    g = FIND(inside(&f), 0, 2, 3);
    CHECK(is_text(&g, "mlp"), "another model");
    f = FIND(inside(&start), 1, 1);
    g = FIND(inside(&f), 0, 2, 2);
    CHECK(real(&g) == 0.5, "rate %g", real(&g));
    f = FIND(inside(&start), 2, 1);
    g = FIND(inside(&f), 0, 2, 4);
    CHECK(f.kind == 2 && g.number == 4 && g.value == 0, "a flag that is false is not there");
    check_event(file, &event, 0);
    f = FIND(event, 0, 5, 1, 9, 1, 2, 4, 1);
    CHECK(f.value == 1, "ended as %" PRIu64, f.value);
}

static void check_file(const char *path) {
    struct wire file = read_file(path), event;
    check_event(&file, &event, 0);
    struct field f = FIND(event, 0, 3);
    CHECK(is_text(&f, "brain.Event:2"), "the first record has no version");
    check_event(&file, &event, 5);
    f = FIND(event, 0, 7, 1);
    CHECK(f.value == 1, "the second record begins nothing");
    check_values(&file);
    check_graph(&file);
    check_settings(&file);
    CHECK(!next_event(&file, &event), "more than was written");
}

/* --- buckets --- */

static void check_buckets(void) {
    struct events_bucket buckets[EVENTS_BUCKETS];
    const float values[] = {-1.0f, NAN, 2.0f, INFINITY, 0.5f, 2.0f};
    CHECK(events_buckets(buckets, values, 6) == EVENTS_BUCKETS, "not all buckets");
    CHECK(buckets[0].left == -1 && buckets[EVENTS_BUCKETS - 1].right == 2, "from %g to %g", buckets[0].left,
          buckets[EVENTS_BUCKETS - 1].right);
    double count = 0;
    for (int i = 0; i < EVENTS_BUCKETS; i++) {
        CHECK(i == 0 || buckets[i].left == buckets[i - 1].right, "a gap before bucket %d", i);
        count += buckets[i].count;
    }
    CHECK(count == 4 && buckets[0].count == 1 && buckets[EVENTS_BUCKETS - 1].count == 2, "%g values", count);
    CHECK(events_buckets(buckets, values + 1, 1) == 0, "buckets of what is no number");
    CHECK(events_buckets(buckets, values + 2, 1) == 1 && buckets[0].left < 2 && buckets[0].right > 2 &&
              buckets[0].count == 1,
          "one value has no bucket around it");
}

/* --- files --- */

static void make(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct error error = {0};
    CHECK(file_make_folder(folder, &error) == OK && file_join(path, folder, name, &error) == OK, "%s",
          error.words);
    FILE *file = fopen(path, "wb");
    CHECK(file, "%s cannot be made", path);
    if (file) fclose(file);
}

static bool is_there(const char *folder, const char *name) {
    char path[PATH_BYTES];
    struct error error = {0};
    return file_join(path, folder, name, &error) == OK && file_exists(path);
}

#define AT(when) "events.out.tfevents." when ".trainer"
#define ASIDE(when) "events.replaced." when ".trainer"

/* A run is replaced by one that comes to nothing; then by one that stays. */
static void check_files(const char *folder) {
    char worker[PATH_BYTES], name[PATH_BYTES];
    struct error error = {0};
    FILE *file;
    snprintf(worker, sizeof worker, "%.900s/worker-12", folder);
    make(folder, AT("0000000100"));
    make(folder, "events.out.tfevents.0000000100.elsewhere");
    make(worker, AT("0000000100"));
    CHECK(event_files_are_in(folder), "no files");
    CHECK(event_file_next(&file, name, folder, 50, &error) == OK, "%s", error.words);
    if (file) fclose(file);
    CHECK(is_there(folder, AT("0000000101")), "a file of an earlier time does not go behind the others");
    CHECK(event_files_set_aside(folder, &error) == OK, "%s", error.words);
    CHECK(!event_files_are_in(folder) && !event_files_are_in(worker), "not all are aside");
    make(folder, AT("0000000200"));
    make(worker, AT("0000000200"));
    CHECK(event_files_put_back(folder, &error) == OK, "%s", error.words);
    CHECK(is_there(folder, AT("0000000100")) && is_there(worker, AT("0000000100")), "not all are back");
    CHECK(!is_there(folder, AT("0000000200")) && !is_there(worker, AT("0000000200")),
          "what came to nothing is there");
    CHECK(event_files_set_aside(folder, &error) == OK, "%s", error.words);
    make(folder, AT("0000000300"));
    CHECK(event_files_drop(folder, &error) == OK, "%s", error.words);
    CHECK(!is_there(folder, ASIDE("0000000100")) && !file_exists(worker), "what was replaced is there");
    CHECK(is_there(folder, AT("0000000300")), "the new one is gone");
    CHECK(event_files_put_back(folder, &error) == OK && is_there(folder, AT("0000000300")),
          "the new one is gone, and nothing was aside");
    CHECK(event_files_keep(folder, &error) == OK && !event_files_are_in(folder) &&
              is_there(folder, "events.kept.0000000300.trainer"),
          "a file of a run that failed is not kept");
    CHECK(event_files_put_back(folder, &error) == OK && !event_files_are_in(folder),
          "what is kept came back");
    CHECK(event_files_remove(folder, &error) == OK && !is_there(folder, "events.kept.0000000300.trainer"),
          "%s", error.words);
    CHECK(is_there(folder, "events.out.tfevents.0000000100.elsewhere"), "somebody else's file is gone");
}

int main(void) {
    char folder[] = "/tmp/trainer-events-XXXXXX", path[PATH_BYTES], run[PATH_BYTES];
    if (!mkdtemp(folder)) return 1;
    snprintf(run, sizeof run, "%s/run", folder);
    write_all(run);
    snprintf(path, sizeof path, "%.900s/%s", run, AT("1750000000"));
    check_file(path);
    check_buckets();
    unlink(path);
    rmdir(run);
    check_files(folder);
    snprintf(path, sizeof path, "%s/events.out.tfevents.0000000100.elsewhere", folder);
    unlink(path);
    CHECK(rmdir(folder) == 0, "something is left in %s", folder);
    return check_end();
}
