/* A ring with one writer, the feeder, and one reader, its worker: two events count what was filled and what
 * may be filled. See feeder.h. */
#include "feeder.h"

#include <math.h>

#include "../base/memory.h"

/* The next batch, dealt and built in a buffer; or the end of the segment. */
static void build(struct feeder *feeder, int buffer, struct feed *feed) {
    const struct training_settings *settings = feeder->settings;
    *feed = (struct feed){.buffer = buffer};
    if (settings->compute.next)
        feed->code = settings->compute.next(settings->compute.self, feeder->worker, &feed->number,
                                            &feed->pause, &feeder->error);
    else
        feed->pause = !dealer_next(settings->dealer, feeder->worker, &feed->number);
    if (feed->code != OK || feed->pause || feed->number == NO_BATCH) return;
    const struct stream *stream = &settings->dealer->stream;
    const struct picks picks = {.count = stream->batch, .index = feeder->index_of, .key = feeder->key_of};
    stream_batch(stream, feeder->worker, feed->number, feeder->index_of);
    stream_keys(stream, feeder->worker, feed->number, feeder->key_of);
    feed->code = settings->compute.load(settings->compute.self, feeder->worker, buffer, feed->number, &picks,
                                        &feeder->error);
}

/* --- the feeder's thread --- */

static void feed_segment(struct feeder *feeder) {
    const struct feed *feed = NULL;
    do {
        const uint64_t fed = atomic_load(&feeder->fed.count);
        if (event_wait(&feeder->room, fed + 1, INFINITY) != WAIT_DONE) return;
        if (atomic_load(&feeder->ending) || world_stopped(feeder->settings->world)) return;
        const int buffer = (int)(fed % (uint64_t)feeder->buffers);
        build(feeder, buffer, &feeder->feeds[buffer]);
        feed = &feeder->feeds[buffer];
        event_post(&feeder->fed);
    } while (!feed->pause && feed->code == OK);
}

static void feeder_body(void *argument) {
    struct feeder *feeder = argument;
    for (uint64_t segment = 1;
         event_wait(&feeder->begun, segment, INFINITY) == WAIT_DONE && !atomic_load(&feeder->ending);
         segment++)
        feed_segment(feeder);
}

/* --- the worker's side --- */

void feeder_begin(struct feeder *feeder) {
    if (feeder->thread) event_post(&feeder->begun);
}

static bool is_fed(void *argument) {
    const struct feeder *feeder = argument;
    return atomic_load_explicit(&feeder->fed.count, memory_order_acquire) > feeder->taken;
}

int feeder_take(struct feeder *feeder, struct feed *feed, struct error *error) {
    if (feeder->thread) {
        RETURN_IF(wait_patiently(feeder->settings->roster, feeder->worker, &feeder->fed, is_fed, NULL, feeder,
                                 "its feeder's next batch", error));
        *feed = feeder->feeds[feeder->taken++ % (uint64_t)feeder->buffers];
    } else {
        build(feeder, 0, feed);
    }
    return feed->code == OK ? OK : error_set(error, feed->code, "%s", feeder->error.words);
}

void feeder_give_back(struct feeder *feeder) {
    if (feeder->thread) event_post(&feeder->room);
}

/* --- open and close --- */

int feeder_open(struct feeder *feeder, const struct training_settings *settings, int worker,
                struct error *error) {
    void *block = NULL;
    char name[16];
    *feeder = (struct feeder){.settings = settings, .worker = worker, .buffers = settings->prefetch + 1};
    RETURN_IF(memory_zeroed(&block, (size_t)settings->dealer->stream.batch, sizeof(int), "a batch's numbers",
                            error));
    feeder->index_of = block;
    RETURN_IF(memory_zeroed(&block, (size_t)settings->dealer->stream.batch, sizeof(uint64_t),
                            "a batch's keys", error));
    feeder->key_of = block;
    if (settings->prefetch == 0) return OK;
    RETURN_IF(memory_zeroed(&block, (size_t)feeder->buffers, sizeof(struct feed), "a feeder's ring", error));
    feeder->feeds = block;
    event_open(&feeder->begun, settings->world);
    event_open(&feeder->fed, settings->world);
    event_open(&feeder->room, settings->world);
    for (int i = 0; i < feeder->buffers; i++) event_post(&feeder->room);
    snprintf(name, sizeof name, "feeder %d", worker);
    return world_spawn(settings->world, name, NULL, feeder_body, feeder, &feeder->thread, error);
}

void feeder_end(struct feeder *feeder) {
    if (!feeder->thread) return;
    atomic_store(&feeder->ending, true);
    event_post(&feeder->begun);
    event_post(&feeder->room);
}

void feeder_close(struct feeder *feeder) {
    memory_free(feeder->feeds);
    memory_free(feeder->key_of);
    memory_free(feeder->index_of);
    *feeder = (struct feeder){0};
}
