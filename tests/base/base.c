/* Errors keep the first words on one line; memory is aligned, zeroed and fails when told to; files are read
 * whole, plain or gzip, and appear whole or not at all; what stays true is said ever less often. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/base/reminder.h"
#include "../../src/base/text.h"
#include "../check.h"

static void test_error(void) {
    struct error error = {0};
    CHECK(error_prefix(&error, "nothing: ") == OK && error.words[0] == '\0', "\"%s\"", error.words);
    CHECK(error_set(&error, ERROR_FILE, "magic %d, expected %d", 1, 2) == ERROR_FILE, "code %d", error.code);
    CHECK(error_set(&error, ERROR_USAGE, "second") == ERROR_FILE, "the first failure is reported");
    CHECK(strcmp(error.words, "magic 1, expected 2") == 0, "\"%s\"", error.words);
    CHECK(error_prefix(&error, "%s: ", "a.idx") == ERROR_FILE, "code");
    CHECK(strcmp(error.words, "a.idx: magic 1, expected 2") == 0, "\"%s\"", error.words);
    struct error lines = {0};
    error_set(&lines, ERROR_FILE, "a%sb", "\n\x1b");
    CHECK(strcmp(lines.words, "a  b") == 0, "\"%s\"", lines.words);
    char text[1200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct error wordy = {0};
    error_set(&wordy, ERROR_FILE, "%s", text);
    CHECK(strlen(wordy.words) == sizeof wordy.words - 1, "%zu", strlen(wordy.words));
    error_prefix(&wordy, "%s", text);
    CHECK(strlen(wordy.words) == sizeof wordy.words - 1, "%zu", strlen(wordy.words));
}

static void test_memory(void) {
    struct error error = {0};
    const size_t counts[] = {0, 1, 7, 64, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        void *block = NULL;
        CHECK(memory_zeroed(&block, counts[i], 4, "a test", &error) == OK, "%s", error.words);
        if (block == NULL) continue;
        CHECK((uintptr_t)block % CACHE_LINE == 0, "%p", block);
        const unsigned char *bytes = block;
        unsigned sum = 0;
        for (size_t b = 0; b < (counts[i] == 0 ? CACHE_LINE : counts[i] * 4); b++) sum |= bytes[b];
        CHECK(sum == 0, "not zeroed");
        memory_free(block);
    }
    void *block = &error;
    CHECK(memory_zeroed(&block, SIZE_MAX / 2, 4, "too much", &error) == ERROR_DEVICE && block == NULL,
          "overflow");
    CHECK(strstr(error.words, "too much") != NULL, "\"%s\"", error.words);

    struct error none = {0};
    int *grown = NULL;
    CHECK(memory_grow(&grown, 0, 10, "ints", &none) == OK, "%s", none.words);
    for (int i = 0; i < 10; i++) grown[i] = i + 1;
    CHECK(memory_grow(&grown, 10, 1000, "ints", &none) == OK, "%s", none.words);
    CHECK(grown[9] == 10 && grown[10] == 0 && grown[999] == 0, "grown");
    CHECK(memory_grow(&grown, 1000, 3, "ints", &none) == OK && grown[2] == 3, "shrunk");
    memory_free(grown);
    memory_free(NULL);
    char *text = NULL;
    CHECK(memory_text(&text, "hello", &none) == OK && strcmp(text, "hello") == 0, "text");
    memory_free(text);
    CHECK(memory_probe(1 << 20, "a library", &none) == OK, "%s", none.words);
    CHECK(memory_probe(SIZE_MAX / 2, "a library", &none) == ERROR_DEVICE, "more than there is");
    CHECK(strcmp(none.words, "memory: no 9223372036854775807 bytes left for a library") == 0, "%s",
          none.words);
}

/* The third request from here on fails, and only that one. */
static void test_failing_memory(void) {
    struct error errors[5] = {{0}};
    setenv("TRAINER_FAIL_ALLOCATION", "3", 1);
    for (int i = 0; i < 5; i++) {
        void *block = NULL;
        const int code = memory_zeroed(&block, 8, 8, "a tensor", &errors[i]);
        CHECK(code == (i == 2 ? ERROR_DEVICE : OK) && (block == NULL) == (i == 2), "request %d: %d", i + 1,
              code);
        memory_free(block);
    }
    CHECK(strcmp(errors[2].words, "memory: no 64 bytes left for a tensor") == 0, "\"%s\"", errors[2].words);
    unsetenv("TRAINER_FAIL_ALLOCATION");
}

static char *test_bytes(size_t bytes) {
    char *data = malloc(bytes);
    for (size_t i = 0; data != NULL && i < bytes; i++) data[i] = (char)(i * 2654435761u >> 13);
    return data;
}

static void check_read(const char *path, size_t limit, const char *want, size_t want_bytes) {
    struct error error = {0};
    char *data = NULL;
    size_t bytes = 0;
    const int code = file_read(path, limit, &data, &bytes, &error);
    CHECK(code == OK, "%s", error.words);
    if (code != OK) return;
    CHECK(bytes == want_bytes && memcmp(data, want, bytes) == 0 && data[bytes] == '\0', "%s: %zu bytes", path,
          bytes);
    memory_free(data);
}

static void check_refused(const char *path, size_t limit, const char *words) {
    struct error error = {0};
    char *data = NULL;
    size_t bytes = 0;
    const int code = file_read(path, limit, &data, &bytes, &error);
    CHECK(code == ERROR_FILE && data == NULL, "%s: code %d, %s", path, code, error.words);
    CHECK(strstr(error.words, words) != NULL && strstr(error.words, path) != NULL, "\"%s\"", error.words);
    memory_free(data);
}

static void write_plain(const char *path, const char *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(data, 1, bytes, file) == bytes, "%s", path);
    if (file != NULL) fclose(file);
}

static void write_gzip(const char *path, const char *mode, const char *data, size_t bytes) {
    gzFile file = gzopen(path, mode);
    CHECK(file != NULL && (bytes == 0 || gzwrite(file, data, (unsigned)bytes) == (int)bytes), "%s", path);
    if (file != NULL) gzclose(file);
}

static void test_read(const char *folder) {
    struct error error = {0};
    char path[PATH_BYTES], zipped[PATH_BYTES];
    file_join(path, folder, "plain", &error);
    file_join(zipped, folder, "zipped.gz", &error);
    const size_t sizes[] = {0, 1, 2, 65535, 65536, 65537, 1000003};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *data = test_bytes(sizes[i] + 1);
        write_plain(path, data, sizes[i]);
        check_read(path, sizes[i], data, sizes[i]);
        check_read(path, SIZE_MAX / 4, data, sizes[i]);
        if (sizes[i] > 0) check_refused(path, sizes[i] - 1, "more than");
        write_gzip(zipped, "wb", data, sizes[i]);
        check_read(zipped, sizes[i], data, sizes[i]);
        if (sizes[i] > 0) check_refused(zipped, sizes[i] - 1, "more than");
        free(data);
    }
    char *data = test_bytes(100000);
    write_gzip(zipped, "wb", data, 40000);
    write_gzip(zipped, "ab", data + 40000, 60000); /* two members, as `cat a.gz b.gz` makes */
    check_read(zipped, 100000, data, 100000);
    write_gzip(zipped, "wb", data, 100000);
    char *raw = NULL;
    size_t raw_bytes = 0;
    struct stat status = {0};
    CHECK(stat(zipped, &status) == 0, "stat");
    raw_bytes = (size_t)status.st_size;
    raw = malloc(raw_bytes);
    FILE *file = fopen(zipped, "rb");
    CHECK(file != NULL && fread(raw, 1, raw_bytes, file) == raw_bytes, "raw");
    if (file != NULL) fclose(file);
    const size_t cuts[] = {2, 9, 1000, raw_bytes / 2, raw_bytes - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        write_plain(path, raw, cuts[i]);
        check_refused(path, 1 << 20, "too early");
    }
    raw[raw_bytes - 6] ^= 1; /* the checksum */
    write_plain(path, raw, raw_bytes);
    check_refused(path, 1 << 20, "damaged");
    check_refused(folder, 1 << 20, "a folder");
    unlink(path);
    check_refused(path, 1 << 20, "No such file");
    unlink(zipped);
    free(raw);
    free(data);
}

/* A gzip file of `noise` bytes that do not get smaller, and zeros. */
static void write_bomb(const char *path, size_t noise, size_t zeros) {
    char *block = calloc(1, 1 << 20), *bytes = malloc(noise + 1);
    gzFile file = gzopen(path, "wb1");
    CHECK(file != NULL && block != NULL && bytes != NULL, "%s", path);
    uint64_t state = 1;
    for (size_t i = 0; i < noise; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(state >> 56);
    }
    if (noise > 0) gzwrite(file, bytes, (unsigned)noise);
    for (; zeros > 1 << 20; zeros -= 1 << 20) gzwrite(file, block, 1 << 20);
    gzwrite(file, block, (unsigned)zeros);
    gzclose(file);
    free(block);
    free(bytes);
}

/* What a gzip file may become: 64 MB, or a hundred times its size. */
static void test_bombs(const char *folder) {
    const size_t most = 64 << 20, million = 1000000;
    struct error error = {0};
    char path[PATH_BYTES], *data = NULL;
    size_t bytes = 0;
    file_join(path, folder, "bomb.gz", &error);
    write_bomb(path, 0, most);
    CHECK(file_read(path, 1 << 30, &data, &bytes, &error) == OK && bytes == most, "%s", error.words);
    memory_free(data);
    CHECK(file_read_plain(path, 1 << 30, &data, &bytes, &error) == ERROR_FILE && data == NULL, "unpacked");
    CHECK(strstr(error.words, ": a gzip file, expected one that is not packed"), "%s", error.words);
    write_bomb(path, 0, most + 1);
    check_refused(path, 1 << 30, ": more than 67108864 bytes when unpacked");
    write_bomb(path, million, most); /* some 1.3 million bytes */
    error = (struct error){0};
    CHECK(file_read(path, 1 << 30, &data, &bytes, &error) == OK && bytes == most + million, "%s",
          error.words);
    memory_free(data);
    unlink(path);
}

static void test_plain(const char *folder) {
    struct error error = {0};
    char path[PATH_BYTES], *data = NULL;
    size_t bytes = 0;
    file_join(path, folder, "plain", &error);
    for (size_t size = 0; size < 5; size++) {
        write_plain(path, "\x1f\x8a\x1f\x8b", size); /* nearly gzip's mark */
        CHECK(file_read_plain(path, 4, &data, &bytes, &error) == OK && bytes == size, "%s", error.words);
        memory_free(data);
    }
    CHECK(file_read_plain(path, 3, &data, &bytes, &error) == ERROR_FILE && data == NULL, "beyond the limit");
    unlink(path);
}

/* What somebody's link points to is never written into. */
static void check_victim(const char *victim, const char *what) {
    char text[16] = "";
    FILE *file = fopen(victim, "r");
    CHECK(file != NULL && fgets(text, sizeof text, file) != NULL && strcmp(text, "precious") == 0,
          "%s: \"%s\"", what, text);
    if (file) fclose(file);
}

static void test_links(const char *folder) {
    struct error error = {0};
    char victim[PATH_BYTES], path[PATH_BYTES], part[PATH_BYTES];
    struct file_new file = {0};
    file_join(victim, folder, "victim", &error);
    file_join(path, folder, "new", &error);
    file_join(part, folder, "new.part", &error);
    write_plain(victim, "precious", 8);
    for (int hard = 0; hard < 2; hard++) {
        CHECK((hard ? link : symlink)(victim, part) == 0, "no link");
        CHECK(file_create(&file, path, &error) == OK, "%s", error.words);
        if (file.stream) fprintf(file.stream, "new");
        CHECK(file_commit(&file, &error) == OK, "%s", error.words);
        check_victim(victim, "file_create");
        check_read(path, 3, "new", 3);
        unlink(part);
    }
    CHECK(symlink(victim, part) == 0, "no link");
    CHECK(file_continue(&file, path, &error) == ERROR_FILE && file.stream == NULL, "a link is gone on with");
    CHECK(strstr(error.words, "new.part: cannot be written: a symbolic link, expected a file"), "%s",
          error.words);
    file_abandon(&file);
    unlink(path);
    unlink(part);
    CHECK(symlink(victim, path) == 0, "no link");
    FILE *stream = NULL;
    error = (struct error){0};
    CHECK(file_overwrite(&stream, path, &error) == ERROR_FILE && stream == NULL, "a link is written through");
    CHECK(strstr(error.words, "new: cannot be written: a symbolic link, expected a file"), "%s", error.words);
    check_victim(victim, "file_overwrite");
    unlink(path);
    error = (struct error){0};
    for (int round = 0; round < 2; round++) { /* a file that was there is emptied */
        CHECK(file_overwrite(&stream, path, &error) == OK, "%s", error.words);
        if (stream) fprintf(stream, round == 0 ? "longer" : "new");
        if (stream) fclose(stream);
    }
    check_read(path, 3, "new", 3);
    unlink(path);
    unlink(victim);
}

static void test_write(const char *folder) {
    struct error error = {0};
    char path[PATH_BYTES], part[PATH_BYTES], deep[PATH_BYTES];
    CHECK(file_join(deep, folder, "a/b/c", &error) == OK && file_make_folder(deep, &error) == OK, "%s",
          error.words);
    CHECK(file_make_folder(deep, &error) == OK, "again: %s", error.words);
    CHECK(file_join(path, deep, "new", &error) == OK && file_join(part, deep, "new.part", &error) == OK,
          "join");
    struct file_new file = {0};
    file_abandon(&file);
    for (int round = 0; round < 2; round++) {
        CHECK(file_create(&file, path, &error) == OK, "%s", error.words);
        fprintf(file.stream, "round %d", round);
        CHECK(access(path, F_OK) == (round == 0 ? -1 : 0), "the old one stays until commit");
        CHECK(file_commit(&file, &error) == OK && file.stream == NULL, "%s", error.words);
        check_read(path, 100, round == 0 ? "round 0" : "round 1", 7);
        CHECK(access(part, F_OK) == -1, "part left");
        file_abandon(&file);
    }
    CHECK(file_create(&file, path, &error) == OK, "%s", error.words);
    fprintf(file.stream, "never");
    file_abandon(&file);
    check_read(path, 100, "round 1", 7);
    CHECK(access(part, F_OK) == -1, "part left");

    struct error full = {0}, blocked = {0}, too_long = {0}, no_folder = {0};
    CHECK(file_create(&file, path, &error) == OK, "%s", error.words);
    if (access("/dev/full", W_OK) == 0 && freopen("/dev/full", "wb", file.stream) != NULL) {
        fprintf(file.stream, "does not fit");
        CHECK(file_commit(&file, &full) == ERROR_FILE, "a full disk is not seen");
        CHECK(strstr(full.words, "No space left") != NULL, "\"%s\"", full.words);
        check_read(path, 100, "round 1", 7);
    }
    file_abandon(&file);
    CHECK(file_join(deep, path, "below", &error) == OK, "join");
    CHECK(file_make_folder(deep, &blocked) == ERROR_FILE, "a file in the way");
    CHECK(strstr(blocked.words, "expected a folder") != NULL, "\"%s\"", blocked.words);
    CHECK(file_create(&file, deep, &no_folder) == ERROR_FILE && file.stream == NULL, "\"%s\"",
          no_folder.words);
    char name[PATH_BYTES];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK(file_join(deep, folder, name, &too_long) == ERROR_FILE && deep[0] == '\0', "\"%s\"",
          too_long.words);
    unlink(path);
}

static void test_join(void) {
    struct error error = {0};
    char out[PATH_BYTES];
    const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b", "/b"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK(file_join(out, cases[i][0], cases[i][1], &error) == OK && strcmp(out, cases[i][2]) == 0, "%s",
              out);
}

/* An existing file is kept under the first free name; what was kept before stays. */
static void check_keep(void) {
    struct error error = {0};
    char folder[] = "/tmp/trainer-keep-XXXXXX", path[64], kept[96], text[8] = "";
    CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof path, "%s/log", folder);
    CHECK(file_keep(path, &error) == OK, "nothing to keep: %s", error.words);
    for (int n = 1; n <= 3; n++) {
        FILE *file = fopen(path, "w");
        CHECK(file != NULL && fprintf(file, "%d", n) == 1 && fclose(file) == 0, "not written");
        CHECK(file_keep(path, &error) == OK && access(path, F_OK) != 0, "%s", error.words);
        for (int k = 1; k <= n; k++) {
            snprintf(kept, sizeof kept, "%s.%d", path, k);
            file = fopen(kept, "r");
            CHECK(file != NULL && fgets(text, sizeof text, file) != NULL && atoi(text) == k, "%s has %s",
                  kept, text);
            if (file) fclose(file);
            if (n == 3) remove(kept);
        }
    }
    remove(folder);
}

static void test_words(void) {
    static const char *const words[][2] = {{"runs/a-1.2", "runs/a-1.2"}, {"runs/my run", "'runs/my run'"},
                                           {"it's", "'it'\\''s'"},       {"", "''"},
                                           {"$HOME", "'$HOME'"},         {"~/a", "'~/a'"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(strcmp(TEXT_WORD(words[i][0]), words[i][1]) == 0, "%s: %s", words[i][0],
              TEXT_WORD(words[i][0]));
}

static void test_text(void) {
    char small[8];
    struct text cut = text_into(small, sizeof small);
    CHECK(small[0] == '\0', "an empty text ends with a 0");
    text_add(&cut, "%d,", 12);
    CHECK(!cut.cut && strcmp(small, "12,") == 0 && cut.used == 3, "\"%s\"", small);
    text_add(&cut, "%s", "345678");
    CHECK(cut.cut && strcmp(small, "12,3456") == 0 && cut.used == 7, "\"%s\"", small);
    text_add(&cut, "9");
    CHECK(strcmp(small, "12,3456") == 0 && text_end(&cut) == OK, "\"%s\"", small);
    struct error error = {0};
    struct text grown = text_growing(&error);
    CHECK(grown.bytes == NULL && text_end(&grown) == OK, "nothing was added yet");
    for (int i = 0; i < 1000; i++) text_add(&grown, "%03d ", i);
    text_add_bytes(&grown, "end", 3);
    CHECK(grown.used == 4003 && strcmp(grown.bytes + 3996, "999 end") == 0, "%zu characters", grown.used);
    CHECK(text_end(&grown) == OK && !grown.cut, "%s", error.words);
    memory_free(grown.bytes);
}

static void test_reminder(void) {
    static const double expected[] = {0.0, 5.0, 15.0, 35.0, 75.0, 135.0, 195.0, 200.0, 205.0};
    enum { EXPECTED = sizeof expected / sizeof expected[0], RENEWED_AT = 197 };
    struct reminder reminder = {0}, first = {.due_s = INFINITY};
    int said = 0;
    for (int now = 0; now < 215; now++) {
        if (now == RENEWED_AT) reminder_renew(&reminder, now - 2.0);
        if (!reminder_is_due(&reminder, now)) continue;
        CHECK(said < EXPECTED && now == (int)expected[said], "line %d at %d s", said, now);
        said++;
    }
    CHECK(said == EXPECTED, "%d lines", said);
    for (int now = 0; now < 5; now++) reminder_renew(&first, now); /* news does not put it off */
    CHECK(!reminder_is_due(&first, 4.9) && reminder_is_due(&first, 5.0), "the first line");
}

int main(void) {
    test_words();
    char folder[] = "/tmp/test_base.XXXXXX", command[64];
    test_failing_memory(); /* first: it counts from the first request of the process */
    test_error();
    test_memory();
    test_text();
    test_join();
    test_reminder();
    if (mkdtemp(folder) == NULL) return 1;
    test_read(folder);
    test_bombs(folder);
    test_plain(folder);
    test_write(folder);
    test_links(folder);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s", command);
    check_keep();
    return check_end();
}
