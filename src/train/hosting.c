/* A batch is computed by sending it away. See hosting.h. */
#include "hosting.h"

int hosting_open(struct hosting *hosting, struct host *host, const struct store *store,
                 const struct dealer *dealer, const struct roster *roster, double patience_s,
                 struct error *error) {
    void *block = NULL;
    *hosting = (struct hosting){
        .host = host, .store = store, .dealer = dealer, .roster = roster, .patience_s = patience_s};
    RETURN_IF(memory_zeroed(&block, (size_t)host->count, sizeof(long), "batches in hand", error));
    hosting->numbers = block;
    return OK;
}

void hosting_close(struct hosting *hosting) {
    memory_free(hosting->numbers);
    *hosting = (struct hosting){0};
}

/* The peer has the data, too: the number is enough. */
static int load(void *self, int worker, int buffer, long number, const int *index, struct error *error) {
    struct hosting *hosting = self;
    (void)buffer, (void)index, (void)error;
    hosting->numbers[worker] = number;
    return OK;
}

static int run(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
               struct error *error) {
    struct hosting *hosting = self;
    const long number = hosting->numbers[worker], version = store_version(hosting->store);
    struct request request = {.number = number,
                              .step = atomic_load(&hosting->roster->members[worker].step),
                              .version = version + 1,
                              .rate = (double)store_rate(hosting->store, version)};
    (void)buffer;
    dealer_place(hosting->dealer, worker, number, &request.epoch, &request.batch, &request.batches);
    request.epoch++;
    request.batch++;
    return peer_compute(&hosting->host->peers[worker], &request, weights, gradient, loss,
                        hosting->store->settings.layout->floats, hosting->patience_s, error);
}

struct compute hosting_compute(struct hosting *hosting) {
    return (struct compute){.load = load, .run = run, .self = hosting};
}
