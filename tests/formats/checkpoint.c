/* Checkpoints: what was written comes back bit for bit; any damage is refused; a write that fails leaves the
 * old one. */
#include "../../src/formats/checkpoint.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../src/base/file.h"
#include "../check.h"

enum { FLOATS = 64, RANGES = 3 };

/* 16-float lines: kernel [3, 5] and its padding, bias [16], scale (a scalar) and its padding, a line of
 * padding more. */
static struct range ranges[RANGES] = {
    {.name = "dense1/kernel", .shape = {.rank = 2, .dims = {3, 5}}, .begin = 0, .floats = 15},
    {.name = "dense1/bias", .shape = {.rank = 1, .dims = {16}}, .begin = 16, .floats = 16},
    {.name = "scale", .shape = {.rank = 0}, .begin = 32, .floats = 1},
};
static const struct layout layout = {.ranges = ranges, .count = RANGES, .floats = FLOATS, .parameters = 32};

static char folder[] = "/tmp/test_checkpoint.XXXXXX";
static char state[PATH_BYTES];

/* Finite values of all kinds in the ranges, something in the padding that must not come back. */
static void fill(float *values, uint32_t seed) {
    static const uint32_t awkward[] = {0x80000000, 0x7f7fffff, 0xff7fffff, 0x00000001, 0x00800000};
    for (uint32_t i = 0; i < FLOATS; i++) {
        uint32_t bits = i % 6 == 0 ? awkward[i / 6 % 5] : seed * 2654435761u + i * 40503u;
        if ((bits & 0x7f800000u) == 0x7f800000u) bits &= ~0x00800000u;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static void without_padding(const float *values, float *out) {
    memset(out, 0, FLOATS * sizeof *out);
    for (int i = 0; i < RANGES; i++)
        memcpy(out + ranges[i].begin, values + ranges[i].begin, ranges[i].floats * sizeof *out);
}

static enum checkpoint_which which = CHECKPOINT_LAST;

static int write_noted(uint32_t seed, const char *note, struct error *error) {
    float weights[FLOATS], first[FLOATS], second[FLOATS];
    fill(weights, seed);
    fill(first, seed + 1);
    fill(second, seed + 2);
    const struct text_entry texts[] = {{"model", "mlp:hidden=3"}, {"position", "17"}, {"note", note}};
    const struct state vectors = {.count = 3,
                                  .vector = {{"", weights}, {"momentum", first}, {"variance", second}}};
    const struct snapshot snapshot = {.state = &vectors, .texts = texts, .text_count = note ? 3 : 2};
    *error = (struct error){0};
    return checkpoint_write(folder, which, &layout, &snapshot, error);
}

static int write_one(uint32_t seed, struct error *error) {
    return write_noted(seed, NULL, error);
}

static void check_vector(const struct safetensors *content, const char *prefix, uint32_t seed) {
    float written[FLOATS], wanted[FLOATS], found[FLOATS];
    struct error error = {0};
    fill(written, seed);
    without_padding(written, wanted);
    memset(found, 0x55, sizeof found);
    CHECK(checkpoint_load("DIR", content, prefix, &layout, true, found, &error) == OK, "%s", error.words);
    CHECK(memcmp(found, wanted, sizeof found) == 0, "the vector \"%s\" of %u", prefix, seed);
}

/* The checkpoint is that of `seed`, and nothing but it is in the folder. */
static void check_one(const char *path, uint32_t seed) {
    struct safetensors content;
    struct error error = {0};
    CHECK(checkpoint_read(path, &content, &error) == OK, "%s", error.words);
    if (error.code != OK) return;
    check_vector(&content, "", seed);
    check_vector(&content, "momentum:", seed + 1);
    check_vector(&content, "variance:", seed + 2);
    const char *text = safetensors_text(&content, "position");
    CHECK(text && strcmp(text, "17") == 0, "position %s", text ? text : "missing");
    safetensors_free(&content);
}

static int files_in_checkpoint(void) {
    char inner[PATH_BYTES];
    struct error error = {0};
    if (file_join(inner, folder, "checkpoint", &error) != OK) return -1;
    DIR *opened = opendir(inner);
    if (!opened) return -1;
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(opened)) != NULL;) count += entry->d_name[0] != '.';
    closedir(opened);
    return count;
}

static void test_round_trip(void) {
    struct error error;
    CHECK(write_one(1, &error) == OK, "%s", error.words);
    CHECK(write_one(100, &error) == OK, "%s", error.words);
    char inner[PATH_BYTES];
    CHECK(file_join(inner, folder, "checkpoint", &error) == OK, "%s", error.words);
    check_one(folder, 100);
    check_one(inner, 100);
    check_one(state, 100);
    CHECK(files_in_checkpoint() == 1, "%d files", files_in_checkpoint());
    /* The same state is the same file. */
    char *once = NULL, *twice = NULL;
    size_t bytes = 0, bytes_twice = 0;
    CHECK(file_read(state, 1 << 20, &once, &bytes, &error) == OK, "%s", error.words);
    CHECK(write_one(100, &error) == OK, "%s", error.words);
    CHECK(file_read(state, 1 << 20, &twice, &bytes_twice, &error) == OK, "%s", error.words);
    CHECK(bytes == bytes_twice && memcmp(once, twice, bytes) == 0, "another file");
    free(once);
    free(twice);
}

/* Whatever is not finite, wherever it is: the checkpoint that is there stays, and one that was written
 * elsewhere is not taken. */
static void test_not_finite(void) {
    const float bad[] = {(float)NAN, INFINITY, -INFINITY};
    struct error error = {0};
    CHECK(write_one(100, &error) == OK, "%s", error.words);
    for (int b = 0; b < 3; b++)
        for (int r = 0; r < RANGES; r++) {
            const size_t last = ranges[r].begin + ranges[r].floats - 1;
            float weights[FLOATS], moments[FLOATS];
            struct state vectors = {.count = 2, .vector = {{"", weights}, {"momentum", moments}}};
            const struct snapshot snapshot = {.state = &vectors};
            fill(weights, 3);
            fill(moments, 4);
            *(b == 1 ? &moments[last] : &weights[last]) = bad[b];
            error = (struct error){0};
            CHECK(checkpoint_write(folder, CHECKPOINT_LAST, &layout, &snapshot, &error) == ERROR_DIVERGED,
                  "code %d: %s", error.code, error.words);
            CHECK(strstr(error.words, ranges[r].name) && strstr(error.words, "is not finite"), "%s",
                  error.words);
            check_one(folder, 100);
        }
    float weights[FLOATS], found[FLOATS];
    fill(weights, 3);
    struct tensor_entry tensors[RANGES];
    for (int r = 0; r < RANGES; r++)
        tensors[r] = (struct tensor_entry){
            .name = ranges[r].name, .shape = ranges[r].shape, .values = weights + ranges[r].begin};
    const struct safetensors content = {.tensors = tensors, .tensor_count = RANGES};
    error = (struct error){0};
    CHECK(checkpoint_load("DIR", &content, "", &layout, true, found, &error) == OK, "%s", error.words);
    error = (struct error){0};
    weights[ranges[1].begin] = (float)NAN;
    CHECK(checkpoint_load("DIR", &content, "", &layout, true, found, &error) == ERROR_FILE &&
              strcmp(error.words,
                     "DIR: dense1/bias has numbers that are not finite: its training diverged") == 0,
          "%s", error.words);
}

/* The best one stands beside the last one, and neither is in the way of the other. */
static void test_best(void) {
    char inner[PATH_BYTES], best[PATH_BYTES];
    struct error error = {0};
    CHECK(write_one(100, &error) == OK, "%s", error.words);
    which = CHECKPOINT_BEST;
    CHECK(write_one(7, &error) == OK, "%s", error.words);
    which = CHECKPOINT_LAST;
    CHECK(file_join(inner, folder, "checkpoint", &error) == OK, "%s", error.words);
    CHECK(file_join(best, inner, "best", &error) == OK, "%s", error.words);
    check_one(folder, 100);
    check_one(inner, 100);
    check_one(best, 7);
    char path[PATH_BYTES];
    CHECK(file_join(path, best, "state.safetensors", &error) == OK, "%s", error.words);
    CHECK(unlink(path) == 0 && rmdir(best) == 0, "more than one file in %s", best);
}

static void test_model(void) {
    char path[PATH_BYTES];
    struct error error = {0};
    float weights[FLOATS], found[FLOATS], wanted[FLOATS];
    fill(weights, 7);
    without_padding(weights, wanted);
    const struct text_entry text = {"model", "mlp"};
    CHECK(file_join(path, folder, "model.safetensors", &error) == OK, "%s", error.words);
    CHECK(model_write(path, &layout, weights, &text, 1, &error) == OK, "%s", error.words);
    struct safetensors content;
    CHECK(checkpoint_read(path, &content, &error) == OK, "%s", error.words);
    CHECK(content.tensor_count == RANGES && content.text_count == 2, "%d tensors, %d texts",
          content.tensor_count, content.text_count);
    CHECK(checkpoint_load(path, &content, "", &layout, true, found, &error) == OK, "%s", error.words);
    CHECK(memcmp(found, wanted, sizeof found) == 0, "other weights");
    safetensors_free(&content);
    unlink(path);
}

/* What a data set's text meant in a program that augmented nothing unless it was asked to. */
static void test_earlier(void) {
    static const struct {
        const char *written, *augment, *read;
    } known[] = {{"cifar10", NULL, "cifar10:augment=none"},
                 {"cifar10:crop=24,take=100", NULL, "cifar10:crop=24,take=100,augment=none"},
                 {"cifar10:augment=distnet", NULL, "cifar10:augment=distnet"},
                 {"cifar10:crop=24", "flip 1", "cifar10:crop=24"},
                 {"digits:take=20", NULL, "digits:take=20"},
                 {"unheard-of", NULL, "unheard-of"}};
    char path[PATH_BYTES];
    struct error error = {0};
    float weights[FLOATS];
    fill(weights, 7);
    CHECK(file_join(path, folder, "model.safetensors", &error) == OK, "%s", error.words);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct text_entry texts[] = {{"dataset", known[i].written}, {"augment", known[i].augment}};
        CHECK(model_write(path, &layout, weights, texts, known[i].augment ? 2 : 1, &error) == OK, "%s",
              error.words);
        struct safetensors content;
        CHECK(checkpoint_read(path, &content, &error) == OK, "%s", error.words);
        const char *text = safetensors_text(&content, "dataset");
        CHECK(text && strcmp(text, known[i].read) == 0, "%s is read as %s, expected %s", known[i].written,
              text ? text : "nothing", known[i].read);
        safetensors_free(&content);
    }
    unlink(path);
}

/* Loads into a layout with one range more or another shape; the words, and that nothing was written. */
static void check_words(const struct layout *other, const char *prefix, bool exact, const char *words) {
    struct safetensors content;
    struct error error = {0};
    float found[FLOATS], untouched[FLOATS];
    memset(found, 0x55, sizeof found);
    memset(untouched, 0x55, sizeof untouched);
    CHECK(checkpoint_read(folder, &content, &error) == OK, "%s", error.words);
    const int code = checkpoint_load("DIR", &content, prefix, other, exact, found, &error);
    CHECK(code == (words ? ERROR_FILE : OK), "code %d", code);
    if (words) CHECK(strcmp(error.words, words) == 0, "\"%s\" instead of \"%s\"", error.words, words);
    if (words) CHECK(memcmp(found, untouched, sizeof found) == 0, "values were written");
    safetensors_free(&content);
}

static void test_mismatch(void) {
    struct error error;
    struct range others[RANGES + 1];
    struct layout other = {.ranges = others, .count = RANGES, .floats = FLOATS};
    CHECK(write_one(1, &error) == OK, "%s", error.words);
    memcpy(others, ranges, sizeof ranges);
    others[0].shape = SHAPE(5, 3);
    check_words(&other, "", true, "DIR: dense1/kernel is [3, 5] here, [5, 3] in the model");
    check_words(&other, "momentum:", true, "DIR: momentum:dense1/kernel is [3, 5] here, [5, 3] in the model");
    memcpy(others, ranges, sizeof ranges);
    others[RANGES] = (struct range){.name = "dense2/bias", .shape = SHAPE(4), .begin = 48, .floats = 4};
    other.count = RANGES + 1;
    check_words(&other, "", true, "DIR: dense2/bias is missing here, [4] in the model");
    check_words(&other, "", false, "DIR: dense2/bias is missing here, [4] in the model");
    other.count = RANGES - 2;
    check_words(&other, "", true, "DIR: dense1/bias is [16] here, not in the model");
    check_words(&other, "variance:", true, "DIR: variance:dense1/bias is [16] here, not in the model");
    check_words(&other, "", false, NULL);
    check_words(&layout, "nobody:", true, "DIR: nobody:dense1/kernel is missing here, [3, 5] in the model");
}

static void put_file(const char *bytes, size_t count) {
    FILE *file = fopen(state, "wb");
    CHECK(file != NULL && fwrite(bytes, 1, count, file) == count, "%s cannot be written", state);
    if (file) fclose(file);
}

static void put_byte(int file, size_t at, int byte) {
    const char value = (char)byte;
    CHECK(pwrite(file, &value, 1, (off_t)at) == 1, "byte %zu cannot be written", at);
}

/* Every byte of a checkpoint changed in several ways; every length shorter, one longer. */
static void test_damage(void) {
    struct error error;
    char *bytes = NULL;
    size_t count = 0;
    CHECK(write_one(1, &error) == OK, "%s", error.words);
    CHECK(file_read(state, 1 << 20, &bytes, &count, &error) == OK, "%s", error.words);
    struct safetensors content;
    static const unsigned char flips[] = {0x01, 0x20, 0x80};
    const int file = open(state, O_RDWR);
    for (size_t i = 0; i < count * sizeof flips; i++) {
        const size_t at = i / sizeof flips;
        put_byte(file, at, bytes[at] ^ flips[i % sizeof flips]);
        error = (struct error){0};
        const int code = checkpoint_read(folder, &content, &error);
        CHECK(code == ERROR_FILE, "byte %zu flipped by 0x%02x: code %d", at, flips[i % sizeof flips], code);
        CHECK(strstr(error.words, state) != NULL, "the words \"%s\" do not name the file", error.words);
        safetensors_free(&content);
        put_byte(file, at, bytes[at]);
    }
    close(file);
    check_one(folder, 1);
    for (size_t cut = count; cut-- > 0;) {
        CHECK(truncate(state, (off_t)cut) == 0, "%s cannot be cut", state);
        error = (struct error){0};
        CHECK(checkpoint_read(folder, &content, &error) == ERROR_FILE, "cut to %zu bytes", cut);
    }
    put_file(bytes, count + 1); /* the 0 byte that file_read puts behind the last */
    error = (struct error){0};
    CHECK(checkpoint_read(folder, &content, &error) == ERROR_FILE, "a byte more");
    put_file(bytes, count);
    check_one(folder, 1);
    free(bytes);
    unlink(state);
    error = (struct error){0};
    CHECK(checkpoint_read(folder, &content, &error) == ERROR_FILE && strstr(error.words, state),
          "no file: %s", error.words);
}

/* A child that may write only `limit` bytes to a file writes another checkpoint (longer than a stream's
 * buffer), and tells its code. With the signal at its default it is killed in the middle instead. */
static int write_limited(rlim_t limit, bool killed) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        struct error error;
        signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
        char note[6000] = "";
        memset(note, 'n', sizeof note - 1);
        const int code = write_noted(500, note, &error);
        _exit(code != OK && strstr(error.words, "checkpoint/state.safetensors") == NULL ? 99 : code);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_full_disk(void) {
    struct error error;
    CHECK(write_one(1, &error) == OK, "%s", error.words);
    rlim_t limit = 0; /* the file's length is a multiple of 64 */
    int code = ERROR_FILE;
    for (; limit < 16384 && (code = write_limited(limit, false)) != OK; limit += 64) {
        CHECK(code == ERROR_FILE, "at most %llu bytes: code %d", (unsigned long long)limit, code);
        check_one(folder, 1);
        CHECK(files_in_checkpoint() == 1, "%d files", files_in_checkpoint());
    }
    CHECK(code == OK && limit > 6000, "it has %llu bytes", (unsigned long long)limit);
    check_one(folder, 500);
    CHECK(write_one(2, &error) == OK, "%s", error.words);
    CHECK(write_limited(limit - 1, false) == ERROR_FILE, "one byte too few");
    CHECK(write_limited(limit / 2, true) == -SIGXFSZ, "not killed");
    check_one(folder, 2);
    CHECK(write_limited(limit, false) == OK, "enough room, and a temporary file that was left over");
    check_one(folder, 500);
    CHECK(files_in_checkpoint() == 1, "%d files", files_in_checkpoint());
}

int main(void) {
    struct error error = {0};
    if (!mkdtemp(folder)) return 1;
    char inner[PATH_BYTES];
    if (file_join(inner, folder, "checkpoint", &error) != OK ||
        file_join(state, inner, "state.safetensors", &error) != OK)
        return 1;
    test_round_trip();
    test_not_finite();
    test_best();
    test_model();
    test_earlier();
    test_mismatch();
    test_damage();
    test_full_disk();
    unlink(state);
    rmdir(inner);
    CHECK(rmdir(folder) == 0, "%s is not empty", folder);
    return check_end();
}
