/* Packs: each data set that the program has, packed and opened again, is the same in all that training sees;
 * what is damaged is found when it is used; what is made up is refused, with its words. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../../src/base/memory.h"
#include "../../src/data/light.h"
#include "../../src/data/pack.h"
#include "../../src/device/gather.h"
#include "../check.h"
#include "../npz_sample.h"
#include "../pack_sample.h"
#include "../picture_files.h"

enum { TEXT = 400 };

static char root[64] = "/dev/shm/pack.XXXXXX"; /* in memory, where there is such a place: packs are synced */

static void write_file(const char *name, const void *bytes, size_t count) {
    char path[TEXT / 2];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, count, file) == count && fclose(file) == 0, "%s", path);
}

static void make_folder(const char *name) {
    char path[TEXT / 2];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CHECK(mkdir(path, 0700) == 0, "%s", path);
}

/* --- files for those that need some --- */

static void make_mnist(void) {
    static const char *const names[2][2] = {
        {"mnist/train-images-idx3-ubyte", "mnist/train-labels-idx1-ubyte"},
        {"mnist/t10k-images-idx3-ubyte", "mnist/t10k-labels-idx1-ubyte"}};
    enum { PIXELS = 28 * 28, MOST = 6 };
    make_folder("mnist");
    for (int part = 0; part < 2; part++) {
        const uint8_t count = part == 0 ? MOST : 3;
        uint8_t images[16 + MOST * PIXELS] = {0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28},
                                   labels[8 + MOST] = {0, 0, 8, 1, 0, 0, 0, count, 3, 1, 4, 1, 5, 9};
        for (int i = 0; i < count * PIXELS; i++) images[16 + i] = (uint8_t)(i * 7 + i / PIXELS);
        write_file(names[part][0], images, 16 + (size_t)count * PIXELS);
        write_file(names[part][1], labels, 8 + (size_t)count);
    }
}

static void make_cifar10(void) {
    enum { RECORD = 3073, RECORDS = 10000 };
    struct error error = {0};
    uint8_t *bytes = NULL;
    make_folder("cifar10");
    CHECK(memory_array(&bytes, RECORDS * RECORD, "records", &error) == OK, "%s", error.words);
    for (int r = 0; r < 100; r++)
        for (int i = 0; i < RECORD; i++) bytes[r * RECORD + i] = (uint8_t)(i == 0 ? r % 10 : r * i + i / 5);
    write_file("cifar10/data_batch_1.bin", bytes, (size_t)RECORDS * RECORD);
    write_file("cifar10/test_batch.bin", bytes, (size_t)RECORDS * RECORD);
    memory_free(bytes);
}

static void make_arrays(void) {
    uint8_t bytes[2000], values[480];
    float floats[120];
    for (int i = 0; i < 480; i++) values[i] = (uint8_t)(i * 11);
    for (int i = 0; i < 120; i++) floats[i] = (float)i * 0.37f - 3.0f;
    write_file("images.npy", bytes,
               sample_npy(bytes, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (20, 4, 3, 2), }",
                          values, sizeof values));
    write_file("floats.npy", bytes,
               sample_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 3, 2), }", floats,
                          sizeof floats));
    write_file("table.npy", bytes,
               sample_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 6), }", floats,
                          sizeof floats));
    for (int i = 0; i < 20; i++) values[i] = (uint8_t)(i % 3);
    write_file(
        "labels.npy", bytes,
        sample_npy(bytes, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (20,), }", values, 20));
    write_file("prices.npy", bytes,
               sample_npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 2), }",
                          floats + 20, 40 * sizeof *floats));
    for (int i = 0; i < 60; i++) values[i] = i % 4 == 1;
    write_file(
        "tags.npy", bytes,
        sample_npy(bytes, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (20, 3), }", values, 60));
}

static void make_table(void) {
    char text[2000];
    size_t used = (size_t)snprintf(text, sizeof text, "l\xc3\xa4nge,br\"eite,farbe,art\n");
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d.%d,%d,%s,%s\n", i, i * 3 % 7,
                                 i * i % 11, i % 3 ? "rot" : "blau", i % 2 ? "rose" : "daisy");
    write_file("table.csv", text, used);
}

static void make_pictures(void) {
    enum { SIDE = 5, BYTES = SIDE * SIDE * 3 };
    uint8_t pixels[BYTES], bytes[BMP_HEAD + BYTES + 3 * SIDE];
    make_folder("pictures");
    make_folder("pictures/a");
    make_folder("pictures/b");
    for (int i = 0; i < 12; i++) {
        char name[40];
        for (int p = 0; p < BYTES; p++) pixels[p] = (uint8_t)(p * i);
        snprintf(name, sizeof name, "pictures/%c/%d.bmp", "ab"[i % 2], i);
        write_file(name, bytes, make_bmp(bytes, SIDE, SIDE, pixels));
    }
}

/* Of every data set at least one; %s is the folder. */
static const char *const samples[] = {
    "digits",
    "digits:brightness=50,rotate=10,mixup=0.5",
    "iris",
    "iris:standardize=1,take=100",
    "mnist",
    "mnist:flip=1,pad=2,brightness=30",
    "cifar10:take=30",
    "cifar10:take=30,augment=distnet,crop=20,contrast=0.5-1.5,whiten=1",
    "csv:file=%s/table.csv",
    "csv:file=%s/table.csv,target=br\"eite",
    "npz:x=%s/images.npy,y=%s/labels.npy",
    "npz:x=%s/images.npy,y=%s/labels.npy,standardize=image,cutmix=1",
    "npz:x=%s/floats.npy,y=%s/labels.npy",
    "npz:x=%s/table.npy,y=%s/labels.npy",
    "npz:x=%s/table.npy,y=%s/labels.npy,standardize=0",
    "npz:x=%s/table.npy,y=%s/prices.npy",
    "npz:x=%s/floats.npy,y=%s/prices.npy,standardize=0,take=7",
    "npz:x=%s/images.npy,y=%s/tags.npy,flip=1",
#if TRAINER_STB
    "pictures:dir=%s/pictures,size=6x4",
    "pictures:dir=%s/pictures,size=4x6,fit=squash,flip=1,crop=3,pad=1,cutout=1,channels=1",
#endif
    NULL};

static void check_registry(void) {
    for (int i = 0; datasets[i]; i++) {
        const char *name = datasets[i]->plugin.name;
        bool found = strcmp(name, "pack") == 0 || (!TRAINER_STB && strcmp(name, "pictures") == 0);
        for (int s = 0; samples[s]; s++) found = found || strncmp(samples[s], name, strlen(name)) == 0;
        CHECK(found, "no sample of %s", name);
    }
}

/* --- the same --- */

static void same_part(const struct examples *a, const struct examples *b, const char *what) {
    CHECK(a->count == b->count && a->features == b->features && !a->bytes == !b->bytes,
          "%s: %d of %d, %d of %d", what, b->count, b->features, a->count, a->features);
    CHECK(!a->bytes || !(a->scale < b->scale || a->scale > b->scale), "%s: scale", what);
    CHECK(memcmp(&a->augment, &b->augment, sizeof a->augment) == 0, "%s: augmentation", what);
    if (a->count != b->count || examples_row_bytes(a) != examples_row_bytes(b)) return;
    CHECK(memcmp(examples_rows(a), examples_rows(b), (size_t)a->count * examples_row_bytes(a)) == 0,
          "%s: rows", what);
    CHECK(!a->targets == !b->targets && a->outputs == b->outputs, "%s: %d and %d targets", what, a->outputs,
          b->outputs);
    if (!a->targets != !b->targets || a->outputs != b->outputs) return;
    CHECK(memcmp(examples_labels(a), examples_labels(b), (size_t)a->count * examples_label_bytes(a)) == 0,
          "%s: labels", what);
}

static void same_names(char **a, char **b, int count, const char *what) {
    CHECK(!a == !b, "%s: names", what);
    for (int i = 0; a && b && i < count; i++)
        CHECK(strcmp(a[i], b[i]) == 0, "%s: \"%s\" became \"%s\"", what, a[i], b[i]);
}

static void same_floats(const float *a, const float *b, int count, const char *what) {
    CHECK(!a == !b && (!a || memcmp(a, b, (size_t)count * sizeof *a) == 0), "%s", what);
}

static void same_set(const struct dataset *a, const struct dataset *b, const char *what) {
    CHECK(shape_equal(&a->shape, &b->shape), "%s: shape", what);
    CHECK(a->fit == b->fit && a->measured == b->measured && a->classes == b->classes && a->task == b->task,
          "%s: facts", what);
    if (a->classes != b->classes || a->train.features != b->train.features) return;
    same_names(a->class_names, b->class_names, a->classes, what);
    same_names(a->feature_names, b->feature_names, a->train.features, what);
    CHECK(!a->columns == !b->columns && (!a->columns || strcmp(a->columns, b->columns) == 0), "%s: columns",
          what);
    same_floats(a->mean, b->mean, a->train.features, what);
    same_floats(a->deviation, b->deviation, a->train.features, what);
    same_floats(a->units.mean, b->units.mean, a->classes, what);
    same_floats(a->units.deviation, b->units.deviation, a->classes, what);
    same_part(&a->train, &b->train, what);
    same_part(&a->test, &b->test, what);
}

static int open_text(struct dataset *dataset, const char *text, struct error *error) {
    struct choice choice;
    *error = (struct error){0};
    *dataset = (struct dataset){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    return dataset_open(dataset, &choice, root, error);
}

static int pack_text(const char *text, const char *path, struct error *error) {
    struct choice choice;
    struct pack_made made;
    struct stat status;
    *error = (struct error){0};
    RETURN_IF(plugin_choose(&choice, &dataset_kind, text, error));
    RETURN_IF(pack_write(path, &choice, root, &made, error));
    CHECK(stat(path, &status) == 0 && (size_t)status.st_size == made.bytes, "%s: %zu bytes", text,
          made.bytes);
    return OK;
}

static void check_same(const char *sample) {
    char text[TEXT], path[TEXT / 2], packed[TEXT];
    struct dataset dataset, pack;
    struct error error = {0};
    snprintf(text, sizeof text, sample, root, root);
    snprintf(path, sizeof path, "%s/a.pack", root);
    snprintf(packed, sizeof packed, "pack:file=%s", path);
    CHECK(pack_text(text, path, &error) == OK, "%s: %s", text, error.words);
    CHECK(open_text(&dataset, text, &error) == OK, "%s: %s", text, error.words);
    if (open_text(&pack, packed, &error) == OK) {
        same_set(&dataset, &pack, text);
        CHECK(pack_check(&pack, &error) == OK, "%s: %s", text, error.words);
        CHECK(dataset_hold_out(&dataset, 0.3, &error) == OK && dataset_hold_out(&pack, 0.3, &error) == OK,
              "%s: %s", text, error.words);
        same_part(&dataset.validation, &pack.validation, text);
        same_part(&dataset.train, &pack.train, text);
    } else {
        CHECK(false, "%s: %s", text, error.words);
    }
    dataset_close(&pack);
    dataset_close(&dataset);
}

/* --- without memory for all of them --- */

#if TRAINER_STB
struct pieces {
    size_t most, all[2];
};

static int take_piece(void *self, int part, const void *rows, size_t count, size_t row_bytes,
                      struct error *error) {
    struct pieces *pieces = self;
    const size_t bytes = count * row_bytes;
    (void)rows, (void)error;
    if (bytes > pieces->most) pieces->most = bytes;
    pieces->all[part] += bytes;
    return OK;
}

/* 12 pictures of 12 MB are taken six at a time, and none is kept. */
static void check_pieces(void) {
    enum { ROW = 2000 * 2000 * 3, TRAIN = 10, TEST = 2 };
    struct pieces pieces = {0};
    const struct dataset_taker taker = {&pieces, take_piece};
    char text[TEXT];
    struct choice choice;
    struct dataset set;
    struct error error = {0};
    snprintf(text, sizeof text, "pictures:dir=%s/pictures,size=2000x2000", root);
    CHECK(plugin_choose(&choice, &dataset_kind, text, &error) == OK, "%s", error.words);
    CHECK(dataset_open_for(&set, &choice, root, &taker, &error) == OK, "%s", error.words);
    CHECK(pieces.most <= (64 << 20) + ROW && pieces.all[0] == (size_t)TRAIN * ROW &&
              pieces.all[1] == (size_t)TEST * ROW,
          "pieces of %zu bytes, %zu and %zu in all", pieces.most, pieces.all[0], pieces.all[1]);
    CHECK(set.train.count == TRAIN && !set.train.bytes && set.train.labels[0] + set.train.labels[1] < 3,
          "kept");
    dataset_close(&set);
}
#else
static void check_pieces(void) {}
#endif

/* --- settings of images --- */

static void check_augment(const char *settings, const char *same_as, const char *what) {
    char text[TEXT];
    struct dataset a, b;
    struct error error;
    snprintf(text, sizeof text, "pack:file=%s/a.pack%s", root, settings);
    CHECK(open_text(&a, same_as, &error) == OK, "%s: %s", same_as, error.words);
    CHECK(open_text(&b, text, &error) == OK, "%s: %s", text, error.words);
    same_set(&a, &b, what);
    dataset_close(&b);
    dataset_close(&a);
}

static void check_settings(void) {
    char path[TEXT / 2], text[TEXT];
    struct dataset set;
    struct error error = {0};
    snprintf(path, sizeof path, "%s/a.pack", root);
    CHECK(pack_text("cifar10:take=30,crop=20,flip=0", path, &error) == OK, "%s", error.words);
    check_augment("", "cifar10:take=30,crop=20,flip=0", "as packed");
    check_augment(",flip=1", "cifar10:take=30,crop=20,flip=1", "one of them typed");
    check_augment(",augment=none", "cifar10:take=30,augment=none", "none of them");
    check_augment(",augment=distnet", "cifar10:take=30,augment=distnet", "others");
    CHECK(pack_text("digits", path, &error) == OK, "%s", error.words);
    snprintf(text, sizeof text, "pack:file=%s,flip=1", path);
    CHECK(open_text(&set, text, &error) == ERROR_USAGE && strstr(error.words, "has no images of bytes"), "%s",
          error.words);
    snprintf(text, sizeof text, "pack:file=%s,augment=none", path);
    CHECK(open_text(&set, text, &error) == OK, "%s", error.words);
    dataset_close(&set);
}

/* --- damage --- */

static int read_sample(uint8_t *bytes, size_t length, struct error *error) {
    struct dataset dataset = {0};
    struct pack_images images;
    *error = (struct error){0};
    int code = pack_read(&dataset, &images, "f", bytes, length, error);
    if (code == OK) {
        dataset.train.augment.height = 0; /* rows are as long as features: the shape is the image's */
        code = pack_check(&dataset, error);
    }
    dataset_close(&dataset);
    return code;
}

static void check_damage(void) {
    uint8_t data[SAMPLE_DATA], *bytes = NULL;
    struct error error = {0};
    CHECK(memory_array(&bytes, 3 * SAMPLE_PAGE, "a pack", &error) == OK, "%s", error.words);
    size_t length = 0;
    for (int s = PACK_SAMPLES - 1; s >= 0; s--) {
        sample_data(data, pack_samples[s]);
        length = sample_pack(bytes, pack_samples[s], strlen(pack_samples[s]), data, sizeof data);
        CHECK(read_sample(bytes, length, &error) == OK, "sample %d: %s", s, error.words);
    }
    for (size_t i = 0; i < length; i = i + 1 == PACK_HEAD ? PACK_PAGE : i + 1) {
        bytes[i] ^= 0x20;
        const bool padding = i >= length - 8 && i < length - 4 && bytes[i] == 0x20;
        CHECK(read_sample(bytes, length, &error) == ERROR_FILE || padding, "byte %zu: %s", i, error.words);
        bytes[i] ^= 0x20;
    }
    for (size_t cut = 0; cut < length; cut += cut < 100 || cut > 4000 ? 1 : 97)
        CHECK(read_sample(bytes, cut, &error) == ERROR_FILE, "cut at %zu", cut);
    CHECK(read_sample(bytes, length + 1, &error) == ERROR_FILE && strstr(error.words, "expected"),
          "a byte more: %s", error.words);
    memory_free(bytes);
}

/* A block that is damaged is found when it is used, and not before. */
static void check_late(void) {
    enum { ROWS = 3000, WIDTH = 1000, BLOCK = PACK_BLOCK / WIDTH * WIDTH };
    char path[TEXT / 2], text[TEXT];
    struct error error = {0};
    struct dataset pack;
    struct light light;
    uint8_t *bytes = NULL, *labels = NULL;
    char head[200];
    CHECK(memory_array(&bytes, ROWS * WIDTH + 400, "rows", &error) == OK, "%s", error.words);
    CHECK(memory_array(&labels, ROWS + 400, "labels", &error) == OK, "%s", error.words);
    uint8_t *values = NULL;
    CHECK(memory_array(&values, ROWS * WIDTH, "rows", &error) == OK, "%s", error.words);
    for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (uint8_t)(i % 251);
    snprintf(head, sizeof head, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 10, 100), }", ROWS);
    write_file("many.npy", bytes, sample_npy(bytes, 1, head, values, (size_t)ROWS * WIDTH));
    snprintf(head, sizeof head, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", ROWS);
    write_file("which.npy", labels, sample_npy(labels, 1, head, values, ROWS));
    snprintf(text, sizeof text, "npz:x=%s/many.npy,y=%s/which.npy,x_test=%s/many.npy,y_test=%s/which.npy",
             root, root, root, root);
    snprintf(path, sizeof path, "%s/b.pack", root);
    CHECK(pack_text(text, path, &error) == OK, "%s", error.words);
    const int handle = open(path, O_WRONLY);
    CHECK(pwrite(handle, "\xff", 1, PACK_PAGE + 2 * BLOCK + 5) == 1 && close(handle) == 0, "%s", path);
    snprintf(text, sizeof text, "pack:file=%s", path);
    CHECK(open_text(&pack, text, &error) == OK, "%s", error.words);
    const int before = 2 * BLOCK / WIDTH - 1, in = before + 1;
    CHECK(examples_use_one(&pack.train, 0, &error) == OK, "%s", error.words);
    CHECK(examples_use_one(&pack.train, before, &error) == OK, "%s", error.words);
    CHECK(examples_use_one(&pack.train, in, &error) == ERROR_FILE &&
              strstr(error.words, "b.pack: damaged: bytes 2100096 to 3148095 have the check sum"),
          "%s", error.words);
    error = (struct error){0};
    CHECK(light_of_dataset(&light, &pack, &error) == ERROR_FILE && strstr(error.words, "b.pack: damaged"),
          "the light of damaged images: %s", error.words);
    error = (struct error){0};
    CHECK(dataset_hold_out(&pack, 0.5, &error) == ERROR_FILE, "held out without a look");
    error = (struct error){0};
    CHECK(pack_check(&pack, &error) == ERROR_FILE, "all was checked");
    dataset_close(&pack);
    memory_free(values);
    memory_free(labels);
    memory_free(bytes);
}

/* --- made up --- */

/* The sample that has `from` in its description, with `to` instead. */
static void refused(const char *from, const char *to, const char *words) {
    _Alignas(64) static uint8_t bytes[4 * SAMPLE_PAGE];
    uint8_t data[SAMPLE_DATA];
    char about[4000];
    struct error error = {0};
    const char *sample = NULL, *at = NULL;
    for (int s = 0; s < PACK_SAMPLES && !at; s++) at = strstr(sample = pack_samples[s], from);
    CHECK(at != NULL, "%s is not in a sample", from);
    if (!at) return;
    sample_data(data, sample);
    snprintf(about, sizeof about, "%.*s%s%s", (int)(at - sample), sample, to, at + strlen(from));
    const size_t length = sample_pack(bytes, about, strlen(about), data, sizeof data);
    const int code = read_sample(bytes, length, &error);
    CHECK(code == ERROR_FILE && strstr(error.words, words), "%s: code %d: %s; expected %s", to, code,
          error.words, words);
}

static void check_made_up(void) {
    const char *const bounds = "values and labels within the data";
    refused("\"examples\":4", "\"examples\":400", bounds);
    refused("\"examples\":4", "\"examples\":2147483647", bounds);
    refused("\"examples\":4", "\"examples\":0", "examples, and where");
    refused("\"examples\":4", "\"examples\":1e300", "examples, and where");
    refused("\"examples\":4", "\"examples\":2.5", "examples, and where");
    refused("\"values\":4096", "\"values\":0", bounds);
    refused("\"values\":4096", "\"values\":4100", bounds);
    refused("\"values\":4096", "\"values\":999999999999936", bounds);
    refused("\"labels\":4224", "\"labels\":4352", bounds);
    refused("\"labels\":4224", "\"labels\":4225", bounds);
    refused("\"labels\":4224", "\"labels\":-4224", "examples, and where");
    refused("\"labels\":4224", "\"labels\":4096", "of example 0, expected 0 to 1");
    refused("\"values\":4096", "\"values\":4160", "that share no bytes"); /* those of the test part */
    refused("\"labels\":4224", "\"labels\":4288", "that share no bytes");
    refused("\"test\"", "\"tent\"", "test: expected examples");
    refused("\"bytes\"", "\"words\"", "bytes or floats");
    refused("\"bytes\"", "\"floats\"", "the bytes of an image");
    refused("0.5", "1e39", "scale: expected a number above 0");
    refused("0.5", "0", "scale: expected a number above 0");
    refused("0.5", "-1", "scale: expected a number above 0");
    refused("[1,2,3]", "[]", "shape: expected sizes");
    refused("[1,2,3]", "[65536,65536]", "shape: expected sizes");
    refused("[1,2,3]", "[1,1,1,1,1,1,6]", "shape: expected sizes");
    refused("\"settings\"", "\"mean\":[1,2,3,4,5,6],\"deviation\":[1,2,3,4,5,6],\"settings\"",
            "none of them, of images");
    refused("\"image\":[1,2,3]", "\"image\":[6]", "height, width and channels");
    refused("\"image\":[1,2,3]", "\"image\":[1,1,6]", "the bytes of an image");
    refused("\"crop\"", "\"cup\"", "none, crop or squash");
    refused("\"flip\":\"1\"", "\"flip\":\"2\"", "flip");
    refused("\"flip\":\"1\"", "\"file\":\"x\"", "file");
    refused("\"flip\":\"1\"", "\"flip\":1", "flip: expected a text");
    refused("\"b\"]", "\"b\\tc\"]", "classes: expected a name without a tab");
    refused("[\"a\",\"b\"]", "[]", "classes: expected a list");
    refused("\"u\"]", "\"u\",\"v\"]", "features: expected a list");
    refused("5,6]", "5]", "mean: expected a number for each feature");
    refused("5,6]", "5,true]", "mean: expected numbers");
    refused("1,2]", "1,0]", "numbers above 0");
    refused("\"mean\"", "\"men\"", "mean: expected both means and deviations, or none");
    refused("\"mean\"", "\"columns\":\"none\",\"mean\"", "columns: expected those of a table");
    refused("\"task\":\"labels\"", "\"task\":\"words\"", "task: expected classes, labels or values");
    refused("\"task\":\"labels\"", "\"task\":1", "task: expected classes, labels or values");
    refused("\"task\":\"labels\"", "\"task\":\"classes\"", "values and labels are");
    refused("\"labels\":4224", "\"targets\":4224", "values and labels are");
    refused("\"targets\":4224", "\"labels\":4224", "values and targets are");
    refused("\"targets\":4224", "\"targets\":4324", bounds);
    refused("\"targets\":4224", "\"targets\":4096", "of example 0, expected 0 or 1");
    refused("\"targets\":4224", "\"targets\":4280", "that share no bytes"); /* those of the test part */
    refused("\"settings\":{}}", "\"settings\":{},\"target_mean\":[1,2],\"target_deviation\":[1,2]}",
            "none of them, of classes and labels");
    refused("[0.5,7]", "[0.5]", "target_mean: expected a number for each value");
    refused("[2,3]", "[2,-3]", "target_deviation: expected numbers above 0");
    refused("\"target_mean\"", "\"men\"", "target_mean: expected both means and deviations, or none");
    refused("{\"made_of\"", "[{\"made_of\"", "JSON line 1");
    refused(sample_images, "[]", "its description: expected an object");
}

static void check_not_a_pack(void) {
    char text[TEXT];
    struct dataset set;
    struct error error;
    write_file("c.pack", "PK\3\4", 4);
    snprintf(text, sizeof text, "pack:file=%s/c.pack", root);
    CHECK(open_text(&set, text, &error) == ERROR_FILE &&
              strstr(error.words, "not a pack, expected a file that"),
          "%s", error.words);
    CHECK(open_text(&set, "pack", &error) == ERROR_USAGE && strstr(error.words, "pack:file=FILE"), "%s",
          error.words);
}

int main(void) {
    char command[TEXT];
    if (!mkdtemp(root) && !mkdtemp(strcpy(root, "/tmp/pack.XXXXXX"))) return 1;
    make_mnist();
    make_cifar10();
    make_arrays();
    make_table();
    make_pictures();
    check_registry();
    for (int i = 0; samples[i]; i++) check_same(samples[i]);
    check_settings();
    check_pieces();
    check_damage();
    check_late();
    check_made_up();
    check_not_a_pack();
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0, "%s", command);
    return check_end();
}
