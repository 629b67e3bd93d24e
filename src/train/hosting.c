/* A batch is computed by sending it away. See hosting.h. */
#include "hosting.h"

#include <string.h>

#include "../bridge/lead.h"

int hosting_open(struct hosting *hosting, const struct hosting *from, struct error *error) {
    void *block = NULL;
    *hosting = *from;
    hosting->numbers = NULL;
    hosting->far = NULL;
    RETURN_IF(memory_zeroed(&block, (size_t)hosting->host->count, sizeof(long), "batches in hand", error));
    hosting->numbers = block;
    RETURN_IF(memory_zeroed(&block, (size_t)hosting->host->count, sizeof(struct tally), "tallies", error));
    hosting->far = block;
    return OK;
}

void hosting_close(struct hosting *hosting) {
    memory_free(hosting->numbers);
    memory_free(hosting->far);
    *hosting = (struct hosting){0};
}

/* --- a proxy --- */

/* Told before the weights are there, so the worker builds its batch while this side waits for them. */
static int next(void *self, int worker, long *number, bool *pause, struct error *error) {
    struct hosting *hosting = self;
    struct peer *peer = &hosting->host->peers[worker];
    enum next what = NEXT_BATCH;
    if (hosting->host->leader) {
        RETURN_IF(peer_hear_next(hosting->host, peer, &what, number, hosting->patience_s, error));
        *pause = what == NEXT_PAUSE;
        if (what == NEXT_EMPTY) *number = NO_BATCH;
        return OK;
    }
    *pause = !dealer_next(hosting->dealer, worker, number);
    what = *pause ? NEXT_PAUSE : *number == NO_BATCH ? NEXT_EMPTY : NEXT_BATCH;
    return peer_tell_next(peer, what, *number, hosting->patience_s, error);
}

/* The peer has the data, too: the number is enough. */
static int load(void *self, int worker, int buffer, long number, const struct picks *picks,
                struct error *error) {
    struct hosting *hosting = self;
    (void)buffer, (void)picks, (void)error;
    hosting->numbers[worker] = number;
    return OK;
}

/* Of the weights that this step computes on. The shards' own may have gone on, or not have been written yet.
 */
static long version_of(const struct store *store, int worker, long step) {
    const struct gradient *gradient =
        &store->workers[worker].gradients[(step - 1) % (store->settings.slots + 1)];
    long least = gradient->version[0];
    for (int s = 1; s < store->settings.shards; s++)
        if (gradient->version[s] < least) least = gradient->version[s];
    return least;
}

static int run(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
               struct error *error) {
    struct hosting *hosting = self;
    const struct store *store = hosting->store;
    const long number = hosting->numbers[worker], step = atomic_load(&hosting->roster->members[worker].step);
    const long version = version_of(store, worker, step);
    struct request request = {
        .number = number, .step = step, .version = version + 1, .rate = (double)store_rate(store, version)};
    (void)buffer;
    dealer_place(hosting->dealer, worker, number, &request.epoch, &request.batch, &request.batches);
    request.epoch++;
    request.batch++;
    return peer_compute(hosting->host, &hosting->host->peers[worker], &request, weights + store->begin,
                        gradient + store->begin, loss, store->end - store->begin, hosting->patience_s, error);
}

/* It hears of it by the end of the connection, and so do the followers, from it. */
static void lose(void *self, int worker) {
    endpoint_interrupt(((struct hosting *)self)->host->peers[worker].endpoint);
}

struct compute hosting_compute(struct hosting *hosting) {
    return (struct compute){.next = next, .load = load, .run = run, .lose = lose, .self = hosting};
}

/* --- leader and followers --- */

static int followers_of(const struct hosting *hosting) {
    return hosting->host ? hosting->host->follower_count : 0;
}

struct window hosting_window(const struct hosting *hosting, size_t begin, size_t end) {
    const struct store *store = hosting->store;
    float *const vectors[] = {store->weights, store->moments[0], store->moments[1], store->average};
    struct window window = {.begin = begin, .end = end, .version = store_version(store)};
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
        if (vectors[v]) window.vectors[window.count++] = vectors[v];
    return window;
}

/* What was tested, of all windows. */
static struct window whole_of(const struct hosting *hosting) {
    const struct store *store = hosting->store;
    return (struct window){.end = store->settings.layout->floats,
                           .version = store_version(store),
                           .count = 1,
                           .vectors = {store_tested(store)}};
}

/* What an endpoint says names an address; this says whose it is. */
static int named(const struct follower *follower, int code, struct error *error) {
    return code == OK ? OK : error_prefix(error, "%s: ", follower->name);
}

int hosting_spread(struct hosting *hosting, bool whole, struct error *error) {
    for (int f = 0; f < followers_of(hosting); f++) {
        const struct follower *follower = &hosting->host->followers[f];
        const struct window window =
            whole ? whole_of(hosting) : hosting_window(hosting, follower->begin, follower->end);
        RETURN_IF(
            named(follower, window_send(follower->endpoint, &window, hosting->patience_s, error), error));
    }
    return OK;
}

int hosting_go(struct hosting *hosting, struct error *error) {
    for (int f = 0; f < followers_of(hosting); f++) {
        const struct follower *follower = &hosting->host->followers[f];
        RETURN_IF(named(follower,
                        frame_write(follower->endpoint, FRAME_GO, 0, NULL, 0, hosting->patience_s, error),
                        error));
    }
    return OK;
}

enum { TALLY_VALUES = STALENESS_BINS + 4 };

static void put_tally(uint64_t *values, const struct tally *tally) {
    *values++ = (uint64_t)tally->updates;
    *values++ = (uint64_t)tally->dropped;
    *values++ = (uint64_t)tally->staleness_sum;
    *values++ = (uint64_t)tally->staleness_max;
    for (int b = 0; b < STALENESS_BINS; b++) *values++ = (uint64_t)tally->staleness[b];
}

static struct tally get_tally(const uint64_t *values) {
    struct tally tally = {.updates = (long)values[0],
                          .dropped = (long)values[1],
                          .staleness_sum = (double)values[2],
                          .staleness_max = (long)values[3]};
    for (int b = 0; b < STALENESS_BINS; b++) tally.staleness[b] = (long)values[4 + b];
    return tally;
}

/* All workers' tallies, then the lost updates. */
static int open_values(const struct hosting *hosting, uint64_t **values, int *count, struct error *error) {
    void *block = NULL;
    *count = hosting->host->count * TALLY_VALUES + 1;
    RETURN_IF(memory_zeroed(&block, (size_t)*count, sizeof **values, "tallies", error));
    *values = block;
    return OK;
}

int hosting_answer(struct hosting *hosting, struct error *error) {
    const struct store *store = hosting->store;
    const struct window window = hosting_window(hosting, store->begin, store->end);
    uint64_t *values = NULL;
    int count = 0;
    RETURN_IF(open_values(hosting, &values, &count, error));
    for (int w = 0; w < hosting->host->count; w++) {
        struct tally tally = {0};
        store_tally(store, w, &tally);
        put_tally(values + (size_t)w * TALLY_VALUES, &tally);
    }
    values[count - 1] = (uint64_t)store_lost_updates(store);
    int code = tallies_send(hosting->host->leader, values, count, hosting->patience_s, error);
    if (code == OK) code = window_send(hosting->host->leader, &window, hosting->patience_s, error);
    memory_free(values);
    return code;
}

static int fetch_one(struct hosting *hosting, struct follower *follower, uint64_t *values, int count,
                     struct error *error) {
    struct window window = hosting_window(hosting, follower->begin, follower->end);
    struct frame_header header;
    RETURN_IF(follower_hear(follower, "tallies", &header, hosting->fetch_s, error));
    RETURN_IF(named(follower,
                    tallies_receive(follower->endpoint, &header, values, count, hosting->patience_s, error),
                    error));
    RETURN_IF(follower_hear(follower, "a window", &header, hosting->fetch_s, error));
    RETURN_IF(named(follower,
                    window_receive(follower->endpoint, &header, &window, hosting->patience_s, error), error));
    for (int w = 0; w < hosting->host->count; w++) {
        const struct tally tally = get_tally(values + (size_t)w * TALLY_VALUES);
        tally_add(&hosting->far[w], &tally);
    }
    hosting->far_lost_updates += (long)values[count - 1];
    return OK;
}

/* With who is lost: a follower may not have noticed yet. */
static int send_fetch(struct hosting *hosting, const struct follower *follower, struct error *error) {
    void *block = NULL;
    const size_t workers = (size_t)hosting->host->count;
    RETURN_IF(memory_zeroed(&block, workers, 1, "who is lost", error));
    uint8_t *lost = block;
    for (size_t w = 0; w < workers; w++) lost[w] = !atomic_load(&hosting->roster->members[w].active);
    const struct piece piece = {lost, workers};
    const int code = frame_write(follower->endpoint, FRAME_FETCH, 0, &piece, 1, hosting->patience_s, error);
    memory_free(block);
    return named(follower, code, error);
}

int hosting_fetch(struct hosting *hosting, struct error *error) {
    const struct host *host = hosting->host;
    uint64_t *values = NULL;
    int count = 0;
    if (followers_of(hosting) == 0) return OK;
    for (int f = 0; f < host->follower_count; f++) RETURN_IF(send_fetch(hosting, &host->followers[f], error));
    RETURN_IF(open_values(hosting, &values, &count, error));
    memset(hosting->far, 0, (size_t)host->count * sizeof *hosting->far);
    hosting->far_lost_updates = 0;
    int code = OK;
    for (int f = 0; f < host->follower_count && code == OK; f++)
        code = fetch_one(hosting, &host->followers[f], values, count, error);
    memory_free(values);
    return code;
}

long long hosting_sent(const struct hosting *hosting) {
    return host_sent(hosting->host) - hosting->sent_before;
}

long long hosting_received(const struct hosting *hosting) {
    return host_received(hosting->host) - hosting->received_before;
}
