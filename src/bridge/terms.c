/* Writing the terms into frames and reading them out of frames: field by field, in one order. */
#include "terms.h"

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

int hello_put(const struct hello *hello, struct frame_writer *writer, struct error *error) {
    frame_put_text(writer, hello->terms.program);
    frame_put_text(writer, hello->terms.model);
    frame_put_text(writer, hello->terms.dataset);
    put_whole(writer, hello->terms.batch);
    put_whole(writer, hello->terms.examples);
    frame_put_u64(writer, hello->terms.layout);
    frame_put_u64(writer, hello->terms.floats);
    put_whole(writer, hello->task);
    put_whole(writer, hello->device);
    put_whole(writer, hello->devices);
    frame_put_text(writer, hello->device_name);
    return frame_put_end(writer, "a hello", error);
}

int hello_get(struct hello *hello, struct frame_reader *reader, const char *peer, struct error *error) {
    *hello = (struct hello){0};
    frame_get_text(reader, hello->terms.program, sizeof hello->terms.program);
    frame_get_text(reader, hello->terms.model, sizeof hello->terms.model);
    frame_get_text(reader, hello->terms.dataset, sizeof hello->terms.dataset);
    hello->terms.batch = (int)get_whole(reader, MOST);
    hello->terms.examples = (int)get_whole(reader, MOST);
    hello->terms.layout = frame_get_u64(reader);
    hello->terms.floats = frame_get_u64(reader);
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
    return frame_put_end(writer, "a welcome", error);
}

int welcome_get(struct welcome *welcome, struct frame_reader *reader, const char *peer, struct error *error) {
    *welcome = (struct welcome){0};
    welcome->worker = (int)get_whole(reader, MOST);
    welcome->workers = (int)get_whole(reader, MOST);
    welcome->seed = frame_get_u64(reader);
    welcome->sharding = (int)get_whole(reader, 2);
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

int finish_put(const struct finish *finish, struct frame_writer *writer, struct error *error) {
    put_whole(writer, finish->code);
    frame_put_text(writer, finish->words);
    frame_put_f64(writer, finish->test_accuracy);
    frame_put_f64(writer, finish->final_cost);
    frame_put_f64(writer, finish->train_seconds);
    return frame_put_end(writer, "a goodbye", error);
}

int finish_get(struct finish *finish, struct frame_reader *reader, const char *peer, struct error *error) {
    *finish = (struct finish){0};
    finish->code = (int)get_whole(reader, 255);
    frame_get_text(reader, finish->words, sizeof finish->words);
    finish->test_accuracy = frame_get_f64(reader);
    finish->final_cost = frame_get_f64(reader);
    finish->train_seconds = frame_get_f64(reader);
    return frame_get_end(reader, "a goodbye", peer, error);
}

static int differ(const char *peer, const char *what, const char *worker, const char *host,
                  struct error *error) {
    return error_set(error, ERROR_PEER, "%s has %s %s, the parameter server has %s", peer, what, worker,
                     host);
}

static int differ_in_number(const char *peer, const char *what, long long worker, long long host,
                            struct error *error) {
    return error_set(error, ERROR_PEER, "%s has %s %lld, the parameter server has %lld", peer, what, worker,
                     host);
}

int terms_agree(const struct terms *host, const struct terms *worker, const char *peer, struct error *error) {
    if (strcmp(host->program, worker->program) != 0)
        return differ(peer, "trainer", worker->program, host->program, error);
    if (strcmp(host->model, worker->model) != 0)
        return differ(peer, "--model", worker->model, host->model, error);
    if (strcmp(host->dataset, worker->dataset) != 0)
        return differ(peer, "--dataset", worker->dataset, host->dataset, error);
    if (host->batch != worker->batch)
        return differ_in_number(peer, "--batch", worker->batch, host->batch, error);
    if (host->examples != worker->examples)
        return differ_in_number(peer, "training examples:", worker->examples, host->examples, error);
    if (host->floats != worker->floats)
        return differ_in_number(peer, "a model of floats:", (long long)worker->floats,
                                (long long)host->floats, error);
    if (host->layout != worker->layout)
        return error_set(error, ERROR_PEER,
                         "%s has a layout with hash %016llx, the parameter server has %016llx", peer,
                         (unsigned long long)worker->layout, (unsigned long long)host->layout);
    return OK;
}
