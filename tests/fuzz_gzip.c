/* Fuzzing of gzip, in memory (data_gunzip) and as a file (file_read): clang -fsanitize=fuzzer,address over
 * this file and the library. By its first byte an input is such a file itself, or is packed first: whole,
 * cut, with a byte changed, or twice in a row. What was packed whole must come out as it was. */
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include "../src/base/file.h"
#include "../src/base/memory.h"
#include "../src/data/gunzip.h"
#include "fuzz.h"

enum { LIMIT = 1 << 14, PACKED_ROOM = 1 << 16, GZIP_WINDOW = 15 + 16 };
enum { MEMORY, PACKED_FILE, PLAIN_FILE };
enum how { AS_IT_IS, WHOLE, CUT, CHANGED, TWICE, HOWS };
static const char *const names[] = {"streams in memory", "packed files", "plain files", NULL};

static size_t pack(uint8_t *out, size_t room, const uint8_t *data, size_t bytes, int level) {
    z_stream stream = {
        .next_in = (z_const Bytef *)data, .avail_in = (uInt)bytes, .next_out = out, .avail_out = (uInt)room};
    fuzz_require(deflateInit2(&stream, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    fuzz_require(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    const size_t used = stream.total_out;
    deflateEnd(&stream);
    return used;
}

/* `plain` is what must come out, NULL: anything; `refused`: nothing may. */
static void check_memory(const uint8_t *file, size_t bytes, const uint8_t *plain, size_t plain_bytes,
                         int refused) {
    char *out = NULL;
    size_t got = 0;
    struct error error = {0};
    if (data_gunzip("f", file, bytes, LIMIT, &out, &got, &error) == OK) {
        fuzz.accepted[MEMORY]++;
        fuzz_require(!refused);
        fuzz_require(got <= LIMIT && out[got] == '\0');
        if (plain) fuzz_require(got == plain_bytes && memcmp(out, plain, got) == 0);
    } else {
        fuzz_require(error.code == ERROR_FILE && *error.words && !out && (!plain || plain_bytes > LIMIT));
    }
    memory_free(out);
}

static void check_file(const uint8_t *file, size_t bytes, const uint8_t *plain, size_t plain_bytes) {
    char path[64], *out = NULL;
    size_t got = 0;
    struct error error = {0};
    const int handle = memfd_create("f", MFD_CLOEXEC);
    fuzz_require(handle >= 0 && write(handle, file, bytes) == (ssize_t)bytes);
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    const int is_packed = bytes >= 2 && file[0] == 0x1f && file[1] == 0x8b;
    if (file_read(path, LIMIT, &out, &got, &error) == OK) {
        fuzz.accepted[is_packed ? PACKED_FILE : PLAIN_FILE]++;
        fuzz_require(got <= LIMIT && out[got] == '\0');
        if (plain) fuzz_require(got == plain_bytes && memcmp(out, plain, got) == 0);
        if (!is_packed) fuzz_require(got == bytes && memcmp(out, file, got) == 0);
    } else {
        fuzz_require(error.code == ERROR_FILE && *error.words && !out && (!plain || plain_bytes > LIMIT));
    }
    memory_free(out);
    close(handle);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static uint8_t file[2 * PACKED_ROOM], twice[2 * PACKED_ROOM];
    fuzz_count(names);
    if (bytes < 3 || bytes > LIMIT + 100) return 0;
    const enum how how = (enum how)(data[0] % HOWS);
    const uint8_t *rest = data + 3;
    const size_t rest_bytes = bytes - 3, place = (size_t)(data[1] << 8 | data[2]);
    if (how == AS_IT_IS) {
        check_memory(rest, rest_bytes, NULL, 0, 0);
        check_file(rest, rest_bytes, NULL, 0);
        return 0;
    }
    size_t used = pack(file, PACKED_ROOM, rest, rest_bytes, data[0] / HOWS % 10);
    if (how == CUT) used = place % used;
    if (how == CHANGED) file[place % used] ^= (uint8_t)(1 << (data[0] >> 5));
    if (how ==
        TWICE) { /* a file may be several streams, one after the other; what is in the program is one */
        memcpy(twice, rest, rest_bytes);
        memcpy(twice + rest_bytes, rest, rest_bytes);
        memcpy(file + used, file, used);
        check_memory(file, 2 * used, NULL, 0, 1);
        check_file(file, 2 * used, twice, 2 * rest_bytes);
        return 0;
    }
    check_memory(file, used, how == WHOLE ? rest : NULL, rest_bytes, how == CUT);
    check_file(file, used, how == WHOLE ? rest : NULL, rest_bytes);
    return 0;
}

/* A packed file as it is, so that its head and its blocks are mutated, too. */
static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    uint8_t plain[64], packed[256];
    for (size_t i = 0; i < sizeof plain; i++) plain[i] = (uint8_t)(i * seed % 7);
    const size_t used = pack(packed, sizeof packed, plain, seed % sizeof plain, (int)(seed / 64 % 10));
    if (used + 3 > most) return 0;
    memset(data, AS_IT_IS, 3);
    memcpy(data + 3, packed, used);
    return used + 3;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed / 16);
        if (made > 0) bytes = made;
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
