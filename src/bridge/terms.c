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
    if (!reader->wrong) reader->wrong = "a number out of its range";
    return 0;
}

enum { MOST = 1000000000 };
static const long most_long = 1000000000000000000L;

static void put_rules(struct frame_writer *writer, const struct rules *rules) {
    frame_put_text(writer, rules->strategy);
    frame_put_text(writer, rules->optimizer);
    frame_put_text(writer, rules->schedule);
    put_whole(writer, rules->shards);
    put_whole(writer, rules->shard_by);
    put_whole(writer, rules->slots);
    put_whole(writer, rules->epochs);
    put_whole(writer, rules->sharding);
    frame_put_u64(writer, rules->seed);
    frame_put_f64(writer, rules->decay);
    frame_put_f64(writer, rules->average);
}

static void get_rules(struct frame_reader *reader, struct rules *rules) {
    frame_get_text(reader, rules->strategy, sizeof rules->strategy);
    frame_get_text(reader, rules->optimizer, sizeof rules->optimizer);
    frame_get_text(reader, rules->schedule, sizeof rules->schedule);
    rules->shards = (int)get_whole(reader, MOST);
    rules->shard_by = (int)get_whole(reader, 2);
    rules->slots = (int)get_whole(reader, MOST);
    rules->epochs = (int)get_whole(reader, MOST);
    rules->sharding = (int)get_whole(reader, 2);
    rules->seed = frame_get_u64(reader);
    rules->decay = frame_get_f64(reader);
    rules->average = frame_get_f64(reader);
}

int hello_put(const struct hello *hello, struct frame_writer *writer, struct error *error) {
    put_whole(writer, hello->leader);
    frame_put_text(writer, hello->terms.program);
    frame_put_text(writer, hello->terms.model);
    frame_put_text(writer, hello->terms.dataset);
    put_whole(writer, hello->terms.batch);
    put_whole(writer, hello->terms.examples);
    frame_put_u64(writer, hello->terms.layout);
    frame_put_u64(writer, hello->terms.floats);
    put_rules(writer, &hello->rules);
    put_whole(writer, hello->task);
    put_whole(writer, hello->device);
    put_whole(writer, hello->devices);
    frame_put_text(writer, hello->device_name);
    return frame_put_end(writer, "a hello", error);
}

int hello_get(struct hello *hello, struct frame_reader *reader, const char *peer, struct error *error) {
    *hello = (struct hello){0};
    hello->leader = get_whole(reader, 1) == 1;
    frame_get_text(reader, hello->terms.program, sizeof hello->terms.program);
    frame_get_text(reader, hello->terms.model, sizeof hello->terms.model);
    frame_get_text(reader, hello->terms.dataset, sizeof hello->terms.dataset);
    hello->terms.batch = (int)get_whole(reader, MOST);
    hello->terms.examples = (int)get_whole(reader, MOST);
    hello->terms.layout = frame_get_u64(reader);
    hello->terms.floats = frame_get_u64(reader);
    get_rules(reader, &hello->rules);
    hello->task = (int)get_whole(reader, MOST);
    hello->device = (int)get_whole(reader, MOST);
    hello->devices = (int)get_whole(reader, MOST);
    frame_get_text(reader, hello->device_name, sizeof hello->device_name);
    return frame_get_end(reader, "a hello", peer, error);
}

int welcome_put(const struct welcome *welcome, struct frame_writer *writer, struct error *error) {
    put_whole(writer, welcome->worker);
    put_whole(writer, welcome->workers);
    frame_put_u64(writer, welcome->seed);
    put_whole(writer, welcome->sharding);
    frame_put_f64(writer, welcome->clip);
    frame_put_u64(writer, welcome->begin);
    frame_put_u64(writer, welcome->end);
    return frame_put_end(writer, "a welcome", error);
}

int welcome_get(struct welcome *welcome, struct frame_reader *reader, const char *peer, struct error *error) {
    *welcome = (struct welcome){0};
    welcome->worker = (int)get_whole(reader, MOST);
    welcome->workers = (int)get_whole(reader, MOST);
    welcome->seed = frame_get_u64(reader);
    welcome->sharding = (int)get_whole(reader, 2);
    welcome->clip = frame_get_f64(reader);
    welcome->begin = frame_get_u64(reader);
    welcome->end = frame_get_u64(reader);
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
    request->version = get_whole(&reader, most_long);
    request->epoch = (int)get_whole(&reader, MOST);
    request->batch = get_whole(&reader, most_long);
    request->batches = get_whole(&reader, most_long);
    request->rate = frame_get_f64(&reader);
    return frame_get_end(&reader, "weights", peer, error);
}

enum { NEXT_BYTES = 8 };

int next_write(struct endpoint *endpoint, enum next next, long number, double patience_s,
               struct error *error) {
    uint8_t bytes[NEXT_BYTES];
    struct frame_writer writer = {.bytes = bytes, .room = sizeof bytes};
    put_whole(&writer, next == NEXT_BATCH ? number : 0);
    const struct piece piece = {bytes, sizeof bytes};
    return frame_write(endpoint, FRAME_NEXT, (uint32_t)next, &piece, 1, patience_s, error);
}

int next_read(struct endpoint *endpoint, const struct frame_header *header, enum next *next, long *number,
              double patience_s, struct error *error) {
    uint8_t bytes[NEXT_BYTES];
    struct frame_reader reader = {.bytes = bytes, .length = sizeof bytes};
    RETURN_IF(frame_expect(endpoint, header, FRAME_NEXT, sizeof bytes, error));
    if (header->flags >= NEXTS)
        return error_set(error, ERROR_PEER, "%s: a batch's number of kind %u, expected less than %d",
                         endpoint_name(endpoint), (unsigned)header->flags, NEXTS);
    RETURN_IF(frame_read_payload(endpoint, header, bytes, patience_s, error));
    *next = (enum next)header->flags;
    *number = get_whole(&reader, most_long);
    return frame_get_end(&reader, "a batch's number", endpoint_name(endpoint), error);
}

int finish_put(const struct finish *finish, struct frame_writer *writer, struct error *error) {
    put_whole(writer, finish->code);
    frame_put_text(writer, finish->words);
    frame_put_f64(writer, finish->test_accuracy);
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
    finish->test_accuracy = frame_get_f64(reader);
    finish->final_cost = frame_get_f64(reader);
    finish->train_seconds = frame_get_f64(reader);
    finish->epochs = frame_get_f64(reader);
    finish->version = get_whole(reader, most_long);
    finish->steps = get_whole(reader, most_long);
    finish->examples = get_whole(reader, most_long);
    return frame_get_end(reader, "a goodbye", peer, error);
}

/* --- what must be alike --- */

/* Who is compared, in words. */
struct pair {
    const char *peer, *us;
};

static int differ(const struct pair *pair, const char *what, const char *theirs, const char *ours,
                  struct error *error) {
    return error_set(error, ERROR_PEER, "%s has %s %s, %s has %s", pair->peer, what, theirs, pair->us, ours);
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

static int same_real(const struct pair *pair, const char *what, double theirs, double ours,
                     struct error *error) {
    char found[40], expected[40];
    snprintf(found, sizeof found, "%.17g", theirs);
    snprintf(expected, sizeof expected, "%.17g", ours);
    return same_text(pair, what, found, expected, error);
}

int terms_agree(const struct terms *host, const struct terms *peers, const char *us, const char *peer,
                struct error *error) {
    const struct pair pair = {.peer = peer, .us = us};
    RETURN_IF(same_text(&pair, "trainer", peers->program, host->program, error));
    RETURN_IF(same_text(&pair, "--model", peers->model, host->model, error));
    RETURN_IF(same_text(&pair, "--dataset", peers->dataset, host->dataset, error));
    RETURN_IF(same_number(&pair, "--batch", peers->batch, host->batch, error));
    RETURN_IF(same_number(&pair, "training examples:", peers->examples, host->examples, error));
    RETURN_IF(
        same_number(&pair, "a model of floats:", (long long)peers->floats, (long long)host->floats, error));
    if (host->layout != peers->layout)
        return error_set(error, ERROR_PEER, "%s has a layout with hash %016llx, %s has %016llx", peer,
                         (unsigned long long)peers->layout, us, (unsigned long long)host->layout);
    return OK;
}

int rules_agree(const struct rules *host, const struct rules *peers, const char *us, const char *peer,
                struct error *error) {
    const struct pair pair = {.peer = peer, .us = us};
    static const char *const shard_by[] = {"bytes", "tensor", "round-robin"};
    static const char *const shardings[] = {"shared", "split", "all"};
    RETURN_IF(same_text(&pair, "--strategy", peers->strategy, host->strategy, error));
    RETURN_IF(same_text(&pair, "--optimizer", peers->optimizer, host->optimizer, error));
    RETURN_IF(same_text(&pair, "--schedule", peers->schedule, host->schedule, error));
    RETURN_IF(same_number(&pair, "shards:", peers->shards, host->shards, error));
    RETURN_IF(same_number(&pair, "--slots", peers->slots, host->slots, error));
    RETURN_IF(same_number(&pair, "--epochs", peers->epochs, host->epochs, error));
    RETURN_IF(same_number(&pair, "--seed", (long long)peers->seed, (long long)host->seed, error));
    RETURN_IF(same_real(&pair, "--decay", peers->decay, host->decay, error));
    RETURN_IF(same_real(&pair, "--average", peers->average, host->average, error));
    RETURN_IF(same_text(&pair, "--shard-by", shard_by[peers->shard_by], shard_by[host->shard_by], error));
    return same_text(&pair, "--data-sharding", shardings[peers->sharding], shardings[host->sharding], error);
}
