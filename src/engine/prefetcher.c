/* A ring with one writer, the prefetcher, and one reader, its worker: two events count the filled buffers
 * and the free ones. See prefetcher.h. */
#include "prefetcher.h"

#include <math.h>

#include "../base/memory.h"

/* The next batch, assigned and built in a buffer; or the end of the segment. */
static void build(struct prefetcher *prefetcher, int buffer, struct feed *feed) {
    const struct training_settings *settings = prefetcher->settings;
    *feed = (struct feed){.buffer = buffer};
    if (settings->compute.next)
        feed->code = settings->compute.next(settings->compute.self, prefetcher->worker, &feed->number,
                                            &feed->pause, &prefetcher->error);
    else
        feed->pause = !sampler_next(settings->sampler, prefetcher->worker, &feed->number);
    if (feed->code != OK || feed->pause || feed->number == NO_BATCH) return;
    const struct stream *stream = &settings->sampler->stream;
    const int size = stream_size(stream, prefetcher->worker);
    struct indices indices = {.count = size, .index = prefetcher->index_of, .key = prefetcher->key_of};
    stream_soon(stream, prefetcher->worker, feed->number, &indices.soon, prefetcher->soon_of);
    stream_batch(stream, prefetcher->worker, feed->number, prefetcher->index_of);
    stream_keys(stream, prefetcher->worker, feed->number, prefetcher->key_of);
    stream_next(stream, prefetcher->worker, feed->number, &prefetcher->index_of[size],
                &prefetcher->key_of[size]);
    feed->code = settings->compute.load(settings->compute.self, prefetcher->worker, buffer, feed->number,
                                        &indices, &prefetcher->error);
}

/* --- the prefetcher's thread --- */

static void feed_segment(struct prefetcher *prefetcher) {
    const struct feed *feed = NULL;
    do {
        const uint64_t fed = atomic_load(&prefetcher->fed.count);
        if (event_wait(&prefetcher->room, fed + 1, INFINITY) != WAIT_DONE) return;
        if (atomic_load(&prefetcher->ending) || world_stopped(prefetcher->settings->world)) return;
        const int buffer = (int)(fed % (uint64_t)prefetcher->buffers);
        build(prefetcher, buffer, &prefetcher->feeds[buffer]);
        feed = &prefetcher->feeds[buffer];
        event_post(&prefetcher->fed);
    } while (!feed->pause && feed->code == OK);
}

static void prefetcher_body(void *argument) {
    struct prefetcher *prefetcher = argument;
    for (uint64_t segment = 1;
         event_wait(&prefetcher->begun, segment, INFINITY) == WAIT_DONE && !atomic_load(&prefetcher->ending);
         segment++)
        feed_segment(prefetcher);
}

/* --- the worker's side --- */

void prefetcher_begin(struct prefetcher *prefetcher) {
    if (prefetcher->thread) event_post(&prefetcher->begun);
}

static bool is_fed(void *argument) {
    const struct prefetcher *prefetcher = argument;
    return atomic_load_explicit(&prefetcher->fed.count, memory_order_acquire) > prefetcher->taken;
}

int prefetcher_take(struct prefetcher *prefetcher, struct feed *feed, struct error *error) {
    if (prefetcher->thread) {
        RETURN_IF(wait_with_timeout(prefetcher->settings->roster, prefetcher->worker, &prefetcher->fed,
                                    is_fed, NULL, prefetcher, "its prefetcher's next batch", error));
        *feed = prefetcher->feeds[prefetcher->taken++ % (uint64_t)prefetcher->buffers];
    } else {
        build(prefetcher, 0, feed);
    }
    return feed->code == OK ? OK : error_set(error, feed->code, "%s", prefetcher->error.words);
}

void prefetcher_give_back(struct prefetcher *prefetcher) {
    if (prefetcher->thread) event_post(&prefetcher->room);
}

/* --- open and close --- */

int prefetcher_open(struct prefetcher *prefetcher, const struct training_settings *settings, int worker,
                    struct error *error) {
    char name[16];
    *prefetcher =
        (struct prefetcher){.settings = settings, .worker = worker, .buffers = settings->prefetch + 1};
    const struct stream *stream = &settings->sampler->stream;
    /* They may change, up to all of a round for one. */
    const int round = stream->sizes ? settings->sampler->whole : stream->batch,
              size = settings->batch_most > 0 ? settings->batch_most : round;
    const size_t count = (size_t)size + 1;
    RETURN_IF(memory_array(&prefetcher->index_of, count, "a batch's numbers", error));
    RETURN_IF(memory_array(&prefetcher->key_of, count, "a batch's keys", error));
    RETURN_IF(memory_array(&prefetcher->soon_of, stream_soon_room(size), "numbers of later batches", error));
    if (settings->prefetch == 0) return OK;
    RETURN_IF(memory_array(&prefetcher->feeds, prefetcher->buffers, "a prefetcher's ring", error));
    event_open(&prefetcher->begun, settings->world);
    event_open(&prefetcher->fed, settings->world);
    event_open(&prefetcher->room, settings->world);
    for (int i = 0; i < prefetcher->buffers; i++) event_post(&prefetcher->room);
    snprintf(name, sizeof name, "prefetcher %d", worker);
    return world_spawn(settings->world, name, NULL, prefetcher_body, prefetcher, &prefetcher->thread, error);
}

void prefetcher_end(struct prefetcher *prefetcher) {
    if (!prefetcher->thread) return;
    atomic_store(&prefetcher->ending, true);
    event_post(&prefetcher->begun);
    event_post(&prefetcher->room);
}

void prefetcher_close(struct prefetcher *prefetcher) {
    memory_free(prefetcher->feeds);
    memory_free(prefetcher->soon_of);
    memory_free(prefetcher->key_of);
    memory_free(prefetcher->index_of);
    *prefetcher = (struct prefetcher){0};
}
