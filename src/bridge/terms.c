/* Writing the terms into frames and reading them out of frames: field by field, in one order. */
#include "terms.h"

#include <stdio.h>
#include <string.h>

static void put_whole(struct frame_writer *writer, long value) {
    frame_put_u64(writer, (uint64_t)value);
}

/* A number that must not be negative, nor more than `most`. */
static long get_whole(struct frame_reader *reader, long most) {
    const uint64_t value = frame_get_u64(reader);
    if (value <= (uint64_t)most) return (long)value;
    if (!reader->wrong) reader->wrong = "has a number out of its range";
    return 0;
}

void device_name_get(struct frame_reader *reader, char *name, size_t room) {
    frame_get_text(reader, name, room);
    if (name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789:+._-")] == '\0') return;
    name[0] = '\0';
    if (!reader->wrong) reader->wrong = "has a device with another name than such as cpu:0";
}

enum { MOST = 1000000000 };
static const long most_long = 1000000000000000000L;
static const long most_updates = 1000000000000L; /* as a checkpoint can have them */

/* --- settings: how many rows, then name and value of each --- */

struct rows {
    struct frame_writer *writer;
    const struct given *given; /* NULL: all */
    int count;
};

static bool is_given(const struct rows *rows, const struct option *row) {
    const struct option *typed = option_find(run_options, row->name);
    bool given = true;
    if (rows->given && typed)
        memcpy(&given, (const char *)rows->given + typed->given - offsetof(struct typed, given),
               sizeof given);
    return given;
}

static int count_row(void *argument, const struct option *row, const char *value) {
    struct rows *rows = argument;
    (void)value;
    rows->count += is_given(rows, row);
    return OK;
}

static int put_row(void *argument, const struct option *row, const char *value) {
    struct rows *rows = argument;
    if (!is_given(rows, row)) return OK;
    frame_put_text(rows->writer, row->name);
    frame_put_text(rows->writer, value);
    return OK;
}

/* flags: of the rows that take part. */
static void put_settings(const struct config *config, const struct given *given, int flags,
                         struct frame_writer *writer) {
    struct rows rows = {.writer = writer, .given = given};
    config_each(config, flags, count_row, &rows);
    frame_put_u32(writer, (uint32_t)rows.count);
    config_each(config, flags, put_row, &rows);
}

static void get_settings(struct typed *agreed, int flags, struct frame_reader *reader) {
    option_defaults(run_options, agreed);
    const uint32_t count = frame_get_u32(reader);
    for (uint32_t i = 0; i < count && !reader->wrong; i++) {
        char name[64], value[CONFIG_VALUE_BYTES];
        struct error ignored = {0};
        frame_get_text(reader, name, sizeof name);
        frame_get_text(reader, value, sizeof value);
        if (reader->wrong) return;
        const struct option *row = option_find(run_options, name);
        if (!row || !(row->flags & flags))
            reader->wrong = "has an unknown setting";
        else if (option_set(run_options, agreed, "--", name, value, &ignored) != OK)
            reader->wrong = "has a setting with an invalid value";
    }
}

int settings_put(const struct config *config, struct frame_writer *writer, struct error *error) {
    put_settings(config, NULL, OPTION_AGREED, writer);
    return frame_put_end(writer, "the settings", error);
}

int settings_get(struct typed *agreed, struct frame_reader *reader, const char *peer, struct error *error) {
    get_settings(agreed, OPTION_AGREED, reader);
    return frame_get_end(reader, "the settings", peer, error);
}

/* What a run has in its checkpoint too: how its network is trained, and how it is written down. */
enum { OF_A_RUN = OPTION_AGREED | OPTION_SAVED };

void typed_put(const struct typed *typed, struct frame_writer *writer) {
    put_settings(&typed->value, &typed->given, OF_A_RUN, writer);
}

void typed_get(struct typed *typed, struct frame_reader *reader) {
    *typed = (struct typed){0};
    get_settings(typed, OF_A_RUN, reader);
}

/* --- the others --- */

void fingerprint_put(const struct fingerprint *fingerprint, struct frame_writer *writer) {
    frame_put_u64(writer, fingerprint->examples);
    frame_put_u64(writer, fingerprint->floats);
    frame_put_u64(writer, fingerprint->layout);
    frame_put_f64(writer, fingerprint->constant_s);
    frame_put_f64(writer, fingerprint->each_s);
}

static double get_seconds(struct frame_reader *reader) {
    const double seconds = frame_get_f64(reader);
    if (seconds >= 0.0 && seconds <= 1e9) return seconds;
    if (!reader->wrong) reader->wrong = "has a time out of its range";
    return 0.0;
}

static void get_fingerprint(struct fingerprint *fingerprint, struct frame_reader *reader) {
    fingerprint->examples = frame_get_u64(reader);
    fingerprint->floats = frame_get_u64(reader);
    fingerprint->layout = frame_get_u64(reader);
    fingerprint->constant_s = get_seconds(reader);
    fingerprint->each_s = get_seconds(reader);
}

int fingerprint_get(struct fingerprint *fingerprint, struct frame_reader *reader, const char *peer,
                    struct error *error) {
    get_fingerprint(fingerprint, reader);
    return frame_get_end(reader, "a ready", peer, error);
}

static void put_words(const uint64_t *words, int count, struct frame_writer *writer) {
    for (int i = 0; i < count; i++) frame_put_u64(writer, words[i]);
}

static void get_words(uint64_t *words, int count, struct frame_reader *reader) {
    for (int i = 0; i < count; i++) words[i] = frame_get_u64(reader);
}

static void put_offer(const struct rank_offer *offer, struct frame_writer *writer) {
    put_whole(writer, offer->able);
    frame_put_text(writer, offer->words);
    put_words(offer->device, 2, writer);
    put_words(offer->id, COLLECTIVE_ID_WORDS, writer);
}

static void get_offer(struct rank_offer *offer, struct frame_reader *reader) {
    offer->able = get_whole(reader, 1) == 1;
    frame_get_text(reader, offer->words, sizeof offer->words);
    get_words(offer->device, 2, reader);
    get_words(offer->id, COLLECTIVE_ID_WORDS, reader);
}

int hello_put(const struct hello *hello, struct frame_writer *writer, struct error *error) {
    put_whole(writer, hello->leader);
    frame_put_text(writer, hello->program);
    put_settings(&hello->agreed.value, hello->leader ? NULL : &hello->agreed.given, OPTION_AGREED, writer);
    fingerprint_put(&hello->fingerprint, writer);
    put_whole(writer, hello->task);
    put_whole(writer, hello->device);
    put_whole(writer, hello->devices);
    frame_put_u64(writer, hello->process);
    frame_put_text(writer, hello->device_name);
    put_whole(writer, hello->seen);
    put_offer(&hello->offer, writer);
    return frame_put_end(writer, "a hello", error);
}

int hello_get(struct hello *hello, struct frame_reader *reader, const char *peer, struct error *error) {
    *hello = (struct hello){0};
    hello->leader = get_whole(reader, 1) == 1;
    frame_get_text(reader, hello->program, sizeof hello->program);
    get_settings(&hello->agreed, OPTION_AGREED, reader);
    get_fingerprint(&hello->fingerprint, reader);
    hello->task = (int)get_whole(reader, MOST);
    hello->device = (int)get_whole(reader, MOST);
    hello->devices = (int)get_whole(reader, MOST);
    hello->process = frame_get_u64(reader);
    device_name_get(reader, hello->device_name, sizeof hello->device_name);
    hello->seen = get_whole(reader, most_updates);
    get_offer(&hello->offer, reader);
    return frame_get_end(reader, "a hello", peer, error);
}

int welcome_put(const struct welcome *welcome, struct frame_writer *writer, struct error *error) {
    put_whole(writer, welcome->worker);
    put_whole(writer, welcome->workers);
    frame_put_u64(writer, welcome->begin);
    frame_put_u64(writer, welcome->end);
    put_whole(writer, welcome->root + 1);
    frame_put_text(writer, welcome->means);
    put_words(welcome->id, COLLECTIVE_ID_WORDS, writer);
    return frame_put_end(writer, "a welcome", error);
}

int welcome_get(struct welcome *welcome, struct frame_reader *reader, const char *peer, struct error *error) {
    *welcome = (struct welcome){0};
    welcome->worker = (int)get_whole(reader, DEVICES_OF_ALL - 1);
    welcome->workers = (int)get_whole(reader, DEVICES_OF_ALL);
    welcome->begin = frame_get_u64(reader);
    welcome->end = frame_get_u64(reader);
    welcome->root = (int)get_whole(reader, DEVICES_OF_ALL) - 1;
    frame_get_text(reader, welcome->means, sizeof welcome->means);
    get_words(welcome->id, COLLECTIVE_ID_WORDS, reader);
    return frame_get_end(reader, "a welcome", peer, error);
}

void request_put(const struct request *request, uint8_t bytes[REQUEST_BYTES]) {
    struct frame_writer writer = {.bytes = bytes, .room = REQUEST_BYTES};
    memset(bytes, 0, REQUEST_BYTES);
    put_whole(&writer, request->number);
    put_whole(&writer, request->step);
    put_whole(&writer, request->version);
    put_whole(&writer, request->epoch);
    put_whole(&writer, request->batch);
    put_whole(&writer, request->batches);
    frame_put_f64(&writer, request->rate);
}

int request_get(struct request *request, const uint8_t bytes[REQUEST_BYTES], const char *peer,
                struct error *error) {
    struct frame_reader reader = {.bytes = bytes, .length = REQUEST_BYTES - 8};
    *request = (struct request){0};
    request->number = get_whole(&reader, most_long);
    request->step = get_whole(&reader, most_long);
    request->version = get_whole(&reader, most_updates);
    request->epoch = (int)get_whole(&reader, MOST);
    request->batch = get_whole(&reader, most_long);
    request->batches = get_whole(&reader, most_long);
    request->rate = frame_get_f64(&reader);
    return frame_get_end(&reader, "weights", peer, error);
}

enum { NEXT_BYTES = 64, NUMBER_BYTES = 16 }; /* a cache line; what is used of it */

void answer_put(const struct answer *answer, const uint8_t request[REQUEST_BYTES],
                uint8_t bytes[LOSS_BYTES]) {
    struct frame_writer writer = {.bytes = bytes, .room = LOSS_BYTES};
    memset(bytes, 0, LOSS_BYTES);
    frame_put_f64(&writer, (double)answer->loss);
    frame_put_f64(&writer, answer->computed_s);
    memcpy(bytes + writer.used, request, ANSWERED_BYTES);
}

int answer_get(struct answer *answer, const struct request *request, const uint8_t bytes[LOSS_BYTES],
               const char *peer, struct error *error) {
    struct frame_reader reader = {.bytes = bytes, .length = 2 * sizeof(uint64_t) + ANSWERED_BYTES};
    answer->loss = (float)frame_get_f64(&reader);
    answer->computed_s = get_seconds(&reader);
    const long number = get_whole(&reader, most_long), step = get_whole(&reader, most_long);
    RETURN_IF(frame_get_end(&reader, "a gradient", peer, error));
    if (number == request->number && step == request->step) return OK;
    return error_set(error, ERROR_PEER,
                     "%s: a gradient of batch %ld in step %ld, expected batch %ld in step %ld", peer, number,
                     step, request->number, request->step);
}

int next_write(struct endpoint *endpoint, enum next next, long number, int examples, double timeout_s,
               struct error *error) {
    uint8_t bytes[NEXT_BYTES] = {0};
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    put_whole(&writer, next == NEXT_BATCH ? number : 0);
    put_whole(&writer, next == NEXT_BATCH ? examples : 0);
    const struct piece piece = {bytes, sizeof bytes};
    return frame_write(endpoint, FRAME_NEXT, (uint32_t)next, &piece, 1, timeout_s, error);
}

int next_read(struct endpoint *endpoint, const struct frame_header *header, enum next *next, long *number,
              int *examples, double timeout_s, struct error *error) {
    uint8_t bytes[NEXT_BYTES];
    struct frame_reader reader = {.bytes = bytes, .length = NUMBER_BYTES};
    RETURN_IF(frame_expect(endpoint, header, FRAME_NEXT, sizeof bytes, error));
    if (header->flags >= NEXTS)
        return error_set(error, ERROR_PEER, "%s: a batch's number of kind %u, expected less than %d",
                         endpoint_name(endpoint), (unsigned)header->flags, NEXTS);
    RETURN_IF(frame_read_payload(endpoint, header, bytes, timeout_s, error));
    *next = (enum next)header->flags;
    *number = get_whole(&reader, most_long);
    *examples = (int)get_whole(&reader, MOST);
    return frame_get_end(&reader, "a batch's number", endpoint_name(endpoint), error);
}

int finish_put(const struct finish *finish, struct frame_writer *writer, struct error *error) {
    put_whole(writer, finish->code);
    frame_put_text(writer, finish->words);
    put_whole(writer, finish->metric);
    frame_put_f64(writer, finish->test_score);
    frame_put_f64(writer, finish->final_cost);
    frame_put_f64(writer, finish->train_seconds);
    frame_put_f64(writer, finish->epochs);
    put_whole(writer, finish->version);
    put_whole(writer, finish->steps);
    put_whole(writer, (long)finish->examples);
    return frame_put_end(writer, "a goodbye", error);
}

int finish_get(struct finish *finish, struct frame_reader *reader, const char *peer, struct error *error) {
    *finish = (struct finish){0};
    finish->code = (int)get_whole(reader, 255);
    frame_get_text(reader, finish->words, sizeof finish->words);
    finish->metric = (enum metric)get_whole(reader, METRICS - 1);
    finish->test_score = frame_get_f64(reader);
    finish->final_cost = frame_get_f64(reader);
    finish->train_seconds = frame_get_f64(reader);
    finish->epochs = frame_get_f64(reader);
    finish->version = get_whole(reader, most_long);
    finish->steps = get_whole(reader, most_long);
    finish->examples = get_whole(reader, most_long);
    return frame_get_end(reader, "a goodbye", peer, error);
}

bool finish_names(const struct finish *finish) {
    return finish->code == ERROR_PEER &&
           (strncmp(finish->words, "worker ", 7) == 0 || strncmp(finish->words, "the ", 4) == 0);
}

int finish_repeat(const struct finish *finish, const char *who, struct error *error) {
    if (finish_names(finish)) return error_set(error, ERROR_PEER, "%s", finish->words);
    return error_set(error, ERROR_PEER, "%s ended: %s", who, finish->words);
}

/* --- what must be alike --- */

/* Who is compared, in words. */
struct pair {
    const char *peer, *us;
};

static int differ(const struct pair *pair, const char *what, const char *theirs, const char *ours,
                  struct error *error) {
    return error_set(error, ERROR_PEER, "%s has %s %.180s, %s has %.180s", pair->peer, what, theirs, pair->us,
                     ours);
}

static int same_text(const struct pair *pair, const char *what, const char *theirs, const char *ours,
                     struct error *error) {
    return strcmp(theirs, ours) == 0 ? OK : differ(pair, what, theirs, ours, error);
}

static int same_number(const struct pair *pair, const char *what, long long theirs, long long ours,
                       struct error *error) {
    char found[32], expected[32];
    snprintf(found, sizeof found, "%lld", theirs);
    snprintf(expected, sizeof expected, "%lld", ours);
    return same_text(pair, what, found, expected, error);
}

struct agreement {
    const struct pair *pair;
    const struct typed *peers;
    struct error *error;
};

static int same_row(void *argument, const struct option *row, const char *value) {
    const struct agreement *agreement = argument;
    const struct rows rows = {.given = &agreement->peers->given};
    char theirs[CONFIG_VALUE_BYTES], what[64];
    if (!is_given(&rows, row)) return OK;
    option_text(row, &agreement->peers->value, theirs, sizeof theirs);
    snprintf(what, sizeof what, "--%s", row->name);
    return same_text(agreement->pair, what, theirs, value, agreement->error);
}

int settings_agree(const struct config *host, const struct typed *peers, const char *us, const char *peer,
                   struct error *error) {
    const struct pair pair = {.peer = peer, .us = us};
    struct agreement agreement = {&pair, peers, error};
    return config_each(host, OPTION_AGREED, same_row, &agreement);
}

int programs_agree(const char *peers, const char *us, const char *peer, struct error *error) {
    const struct pair pair = {.peer = peer, .us = us};
    return same_text(&pair, "trainer", peers, TRAINER_VERSION, error);
}

int fingerprints_agree(const struct fingerprint *host, const struct fingerprint *peers, const char *us,
                       const char *peer, struct error *error) {
    const struct pair pair = {.peer = peer, .us = us};
    RETURN_IF(same_number(&pair, "training examples:", (long long)peers->examples, (long long)host->examples,
                          error));
    RETURN_IF(
        same_number(&pair, "a model of floats:", (long long)peers->floats, (long long)host->floats, error));
    if (host->layout == peers->layout) return OK;
    return error_set(error, ERROR_PEER, "%s has a layout with hash %016llx, %s has %016llx", peer,
                     (unsigned long long)peers->layout, us, (unsigned long long)host->layout);
}
