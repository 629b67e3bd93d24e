/* A batch is computed by sending its number to a member. See members.h. */
#include "members.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../bridge/door.h"
#include "../bridge/joins.h"
#include "../bridge/means.h"
#include "admission.h"

/* What waits for a peer that may be waiting itself, or evaluates, has so many times the timeout. */
#define TIMEOUT_TIMES 3.0

static void say(void *argument, const char *words) {
    const struct crew_site *site = argument;
    site->say(site->argument, words);
}

static int wait_for_all(struct members *members, struct error *error) {
    const struct crew_site *site = members->site;
    const struct cluster *cluster = members->settings.cluster;
    const struct layout *layout = &site->network->graph.layout;
    char words[440];
    int least = 0;
    members->fingerprint = (struct fingerprint){.examples = (uint64_t)site->dataset->train.count,
                                                .floats = layout->floats,
                                                .layout = layout_hash(layout)};
    RETURN_IF(joins_read(site->config, cluster, &least, error));
    char range[40] = "";
    if (least > 0) snprintf(range, sizeof range, "%s%d of ", cluster->mirrored ? "the first " : "", least);
    snprintf(words, sizeof words, "the %s %s waits for %s%d worker%s%s%s", cluster_server(cluster),
             cluster->ps.list[cluster->task].text, range, cluster->workers.count,
             cluster->workers.count == 1 ? "" : "s", cluster_by(cluster).words,
             cluster->secret.there ? "; all that they send is encrypted"
             : cluster->ucx        ? "; what they send goes over UCX"
                                   : "");
    const struct host_settings settings = {.world = site->world,
                                           .cluster = cluster,
                                           .config = site->config,
                                           .fingerprint = &members->fingerprint,
                                           .least = least,
                                           .start_s = site->config->start_timeout_s,
                                           .timeout_s = site->config->timeout_s,
                                           .give_up = members->settings.give_up,
                                           .because = members->settings.because,
                                           .say = say,
                                           .argument = (void *)site,
                                           .waits = words};
    return host_open(&members->host, &settings, error);
}

static int open_members(void **self, const void *settings, const struct crew_site *site, int *workers,
                        struct error *error) {
    struct members *members = NULL;
    RETURN_IF(memory_array(&members, 1, "the members of a cluster", error));
    *self = members;
    members->site = site;
    members->settings = *(const struct members_settings *)settings;
    members->timeout_s = site->config->timeout_s;
    members->fetch_s = TIMEOUT_TIMES * site->config->timeout_s;
    if (members->settings.session) atomic_store(&members->settings.session->met, true);
    RETURN_IF(wait_for_all(members, error));
    *workers = members->host.count;
    RETURN_IF(memory_array(&members->numbers, *workers, "batches in hand", error));
    RETURN_IF(memory_array(&members->taking, *workers, "who takes a place", error));
    return memory_array(&members->far, *workers, "tallies", error);
}

static bool close_members(void *self) {
    struct members *members = self;
    if (!members) return true;
    struct cluster_session *session = members->settings.session;
    if (session && members->host.refused)
        atomic_store(&session->over, true); /* waiting would change nothing */
    const int count = members->host.count;
    host_close(&members->host);
    for (int w = 0; members->copies && w < count; w++) memory_free(members->copies[w]); /* they were sent */
    memory_free(members->copies);
    memory_free(members->numbers);
    memory_free(members->far);
    memory_free(members->taking);
    memory_free(members);
    return true;
}

static void member(const void *self, int worker, struct crew_member *member) {
    const struct peer *peer = &((const struct members *)self)->host.peers[worker];
    memcpy(member->name, peer->name, sizeof member->name);
    memcpy(member->device, peer->device_name, sizeof member->device);
    member->absent = !peer->endpoint;
}

static void pace(const void *self, int worker, struct pace *pace) {
    const struct fingerprint *built = &((const struct members *)self)->host.peers[worker].built;
    *pace = (struct pace){built->constant_s, built->each_s};
}

/* --- a proxy --- */

/* Of a worker's batches: from the leader, which is the one that has settled it. */
static int hear_size(const struct members *members, const struct peer *peer, int worker,
                     struct error *error) {
    const struct crew_site *site = members->site;
    if (peer->examples == 0) return OK;
    if (!site->sampler->sizes || peer->examples > site->sampler->whole)
        return error_set(error, ERROR_PEER, "%s: a batch of %d examples, expected %d", peer->name,
                         peer->examples, site->config->batch);
    sampler_hear_size(site->sampler, worker, peer->examples);
    return OK;
}

/* The worker's copies of this process's slice. */
static struct state own_slice(const struct store *store, int worker) {
    struct state own = *store->workers[worker].own;
    for (int v = 0; v < own.count; v++) own.vector[v].at += store->begin;
    return own;
}

/* What the worker has stepped since it gave its copies back, where they may be wanted now. */
static int take_back(struct members *members, int worker, struct error *error) {
    const struct store *store = members->site->store;
    struct worker_slots *slots = &store->workers[worker];
    if (!store->settings.far || !slots->own_behind) return OK;
    const struct state own = own_slice(store, worker);
    slots->own_behind = false;
    return peer_hear_own(&members->host, &members->host.peers[worker], &own, store->end - store->begin,
                         members->timeout_s, error);
}

/* Told before the weights are there, so the worker builds its batch while this side waits for them. */
static int next(void *self, int worker, long *number, bool *pause, struct error *error) {
    struct members *members = self;
    struct peer *peer = &members->host.peers[worker];
    enum next what = NEXT_BATCH;
    if (!members->host.leader) RETURN_IF(peer_look(&members->host, peer, members->timeout_s, error));
    if (members->host.leader) {
        RETURN_IF(peer_hear_next(&members->host, peer, &what, number, members->timeout_s, error));
        *pause = what == NEXT_PAUSE;
        RETURN_IF(hear_size(members, peer, worker, error));
        if (what == NEXT_BATCH)
            RETURN_IF(stream_check(&members->site->sampler->stream, worker, *number, peer->name, error));
        if (what == NEXT_EMPTY) *number = NO_BATCH;
        if (what != NEXT_BATCH) RETURN_IF(take_back(members, worker, error));
        return *pause ? peer_hear_owed(&members->host, peer, members->timeout_s, error) : OK;
    }
    *pause = !sampler_next(members->site->sampler, worker, number);
    what = *pause ? NEXT_PAUSE : *number == NO_BATCH ? NEXT_EMPTY : NEXT_BATCH;
    peer->examples = members->site->sampler->sizes ? members->site->sampler->sizes[worker] : 0;
    RETURN_IF(peer_tell_next(&members->host, peer, what, *number, members->timeout_s, error));
    if (what != NEXT_BATCH) RETURN_IF(take_back(members, worker, error));
    return *pause ? peer_hear_owed(&members->host, peer, members->timeout_s, error) : OK;
}

/* The peer has the data, too: the number is enough. */
static int load(void *self, int worker, int buffer, long number, const struct indices *indices,
                struct error *error) {
    struct members *members = self;
    (void)buffer, (void)indices, (void)error;
    members->numbers[worker] = number;
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

/* Weights that others step in place, while they are sent, would not be those that the checksum is of. */
static const float *still(const struct members *members, int worker, const float *weights) {
    const struct store *store = members->site->store;
    const struct device here = device_processor();
    if (!members->moves) return weights + store->begin;
    here.backend->vectors->copy_racy(members->copies[worker], weights + store->begin,
                                     store->end - store->begin, store->world);
    return members->copies[worker];
}

/* The worker steps the copies that it has. */
static int run_far(struct members *members, int worker, const struct request *request, float *gradient,
                   float *loss, struct error *error) {
    const struct store *store = members->site->store;
    const struct strategy *strategy = strategy_of(store->settings.strategy);
    struct worker_slots *slots = &store->workers[worker];
    const struct state own = own_slice(store, worker);
    const bool takes = slots->own_written, gives = strategy->shares(&store->shards[0], worker);
    slots->own_written = false;
    slots->own_behind = !gives;
    return peer_step(&members->host, &members->host.peers[worker], request, &own, takes, gives,
                     gradient + store->begin, loss, store->end - store->begin, members->timeout_s, error);
}

/* Whether the strategy takes one mean of all workers' gradients, which are not its own weights'. */
static bool makes_means(const struct members *members) {
    const struct traits *traits = members->site->traits;
    return traits->rounds && traits->merged && !traits->own_weights;
}

/* Whether every worker has a batch in the round of this one: else some would not come to the sum. */
static bool is_whole(const struct members *members, int worker, long number) {
    const struct sampler *sampler = members->site->sampler;
    return sampler->stream.sharding != SHARDING_SHARED ||
           number - worker + members->host.count <= sampler_total(sampler);
}

static bool left(const void *self, int worker) {
    return ((const struct members *)self)->host.peers[worker].left;
}

static int run(void *self, int worker, int buffer, float *weights, float *gradient, float *loss,
               struct error *error) {
    struct members *members = self;
    const struct store *store = members->site->store;
    const long number = members->numbers[worker],
               step = atomic_load(&members->site->roster->members[worker].step);
    const long version = version_of(store, worker, step);
    struct request request = {
        .number = number, .step = step, .version = version + 1, .rate = (double)store_rate(store, version)};
    (void)buffer;
    int code;
    sampler_place(members->site->sampler, worker, number, &request.epoch, &request.batch, &request.batches);
    members->host.peers[worker].sums =
        members->sums && makes_means(members) && is_whole(members, worker, number);
    request.epoch++;
    request.batch++;
    atomic_store_explicit(&members->host.epoch, request.epoch, memory_order_relaxed);
    atomic_store_explicit(&members->host.step, request.step, memory_order_relaxed);
    if (store->settings.far)
        code = run_far(members, worker, &request, gradient, loss, error);
    else
        code = peer_compute(&members->host, &members->host.peers[worker], &request,
                            still(members, worker, weights), gradient + store->begin, loss,
                            store->end - store->begin, members->timeout_s, error);
    if (code != OK && left(self, worker) && !members->host.leader)
        sampler_give_back(members->site->sampler, worker, number);
    return code;
}

static long long wire(const void *self, int worker) {
    const struct endpoint *endpoint = ((const struct members *)self)->host.peers[worker].endpoint;
    return endpoint_sent(endpoint) + endpoint_received(endpoint);
}

static double computed(const void *self, int worker) {
    return ((const struct members *)self)->host.peers[worker].computed_s;
}

/* It hears of it by the end of the connection, and so do the followers, from it. */
static void lose(void *self, int worker) {
    struct host *host = &((struct members *)self)->host;
    endpoint_interrupt(host->peers[worker].endpoint);
    joins_release(host, worker);
}

static int open_copies(struct members *members, struct error *error) {
    const struct traits *traits = members->site->traits;
    const struct store *store = members->site->store;
    members->moves = !traits->own_weights && !(traits->rounds && traits->merged);
    if (!members->moves || members->copies) return OK;
    RETURN_IF(memory_array(&members->copies, members->host.count, "copies of the weights", error));
    for (int w = 0; w < members->host.count; w++)
        RETURN_IF(
            memory_array(&members->copies[w], store->end - store->begin, "a copy of the weights", error));
    return OK;
}

int members_open_packed(struct members *members, int worker, struct error *error) {
    const struct store *store = members->site->store;
    const float *owed = state_find(&store->kept, "owed");
    struct peer *peer = &members->host.peers[worker];
    peer->owed = owed ? owed + store->begin : NULL;
    return packed_open(&peer->packed, &members->compressor, store->settings.layout, store->begin, store->end,
                       error);
}

static int open_packed(struct members *members, struct error *error) {
    RETURN_IF(plugin_choose(&members->compressor, &compressor_kind, members->site->config->compress, error));
    for (int w = 0; w < members->host.count; w++) RETURN_IF(members_open_packed(members, w, error));
    return OK;
}

static int compute(void *self, struct compute *compute, struct error *error) {
    struct members *members = self;
    RETURN_IF(open_copies(members, error));
    RETURN_IF(open_packed(members, error));
    members->host.roster = members->site->roster;
    *compute = (struct compute){
        .next = next, .load = load, .run = run, .lose = lose, .left = left, .wire = wire, .self = self};
    compute->computed = computed;
    return OK;
}

/* --- leader and followers --- */

static int followers_of(const struct members *members) {
    return members->host.follower_count;
}

struct slice members_slice(const struct members *members, size_t begin, size_t end) {
    const struct store *store = members->site->store;
    return (struct slice){.begin = begin,
                          .end = end,
                          .turn = members->fetched,
                          .version = store_version(store),
                          .state = store->kept};
}

/* What was tested, of all slices; the turn behind the last fetch. */
static struct slice whole_of(const struct members *members) {
    const struct store *store = members->site->store;
    return (struct slice){.end = store->settings.layout->floats,
                          .turn = members->fetched + 1,
                          .version = store_version(store),
                          .state = {.count = 1, .vector = {{.name = "", .at = store_tested(store)}}}};
}

static int spread(struct members *members, bool whole, struct error *error) {
    for (int f = 0; f < followers_of(members); f++) {
        const struct follower *follower = &members->host.followers[f];
        const struct slice slice =
            whole ? whole_of(members) : members_slice(members, follower->begin, follower->end);
        RETURN_IF(follower_blame(&members->host, follower,
                                 slice_send(follower->endpoint, &slice, members->timeout_s, error), error));
    }
    return OK;
}

/* Why the workers' devices cannot add their gradients, whatever they are; "": and nobody expects it. */
static const char *sum_obstacle(const struct members *members) {
    const struct cluster *cluster = members->settings.cluster;
    if (!cluster->mirrored) return "";
    if (members->host.settings.least > 0) return "with --workers they come and go";
    if (!makes_means(members)) return "the strategy makes no mean of all workers' gradients";
    if (members->site->sampler->sizes) return "the workers have parts of different sizes";
    if (compress_is_on(&members->compressor)) return "--compress is for what the bridge sends";
    if (cluster->secret.there) return "it would not be encrypted";
    return NULL;
}

static int begin(void *self, struct error *error) {
    struct members *members = self;
    const struct store *store = members->site->store;
    struct welcome welcome = {.begin = store->begin, .end = store->end};
    struct cluster_session *session = members->settings.session;
    members->sums = means_agree(&members->host, sum_obstacle(members), &welcome);
    RETURN_IF(host_welcome(&members->host, &welcome, error));
    if (session && !members->host.leader) atomic_store(&session->begun, true);
    return spread(members, false, error);
}

static bool asked(void *self) {
    return followers_ask(&((struct members *)self)->host);
}

void members_count_present(struct members *members) {
    if (members->host.joins) members->host.present = roster_active_workers(members->site->roster);
}

static int go(void *self, struct error *error) {
    struct members *members = self;
    if (!members->counting) { /* the first batch */
        members->sent_before = host_sent(&members->host);
        members->received_before = host_received(&members->host);
        members->counting = true;
    }
    members_count_present(members);
    members->went++;
    for (int f = 0; f < followers_of(members); f++) {
        const struct follower *follower = &members->host.followers[f];
        RETURN_IF(follower_blame(
            &members->host, follower,
            turn_send(follower->endpoint, FRAME_GO, members->went, NULL, 0, members->timeout_s, error),
            error));
    }
    return OK;
}

static bool joining(void *self) {
    return joins_wait(&((struct members *)self)->host);
}

static int tell_change(struct members *members, const uint8_t *bytes, size_t count, struct error *error) {
    members->changed++;
    for (int f = 0; f < followers_of(members); f++) {
        const struct follower *follower = &members->host.followers[f];
        RETURN_IF(follower_blame(&members->host, follower,
                                 turn_send(follower->endpoint, FRAME_CHANGE, members->changed, bytes, count,
                                           members->timeout_s, error),
                                 error));
    }
    return OK;
}

/* Followers change as the leader does, and go on with the same workers. */
static int change(void *self, const struct phase_change *change, struct error *error) {
    struct members *members = self;
    const size_t workers = (size_t)members->host.count;
    uint8_t *bytes;
    RETURN_IF(open_copies(members, error));
    if (followers_of(members) == 0) return OK;
    RETURN_IF(memory_array(&bytes, CHANGE_BYTES + workers, "a change", error));
    change_put(change, bytes);
    for (size_t w = 0; w < workers; w++) {
        bytes[CHANGE_BYTES + w] = atomic_load(&members->site->roster->members[w].active);
        members->taking[w] = 0;
    }
    const int code = tell_change(members, bytes, CHANGE_BYTES + workers, error);
    memory_free(bytes);
    return code;
}

/* --- the end --- */

static bool lost(const void *self, int worker) {
    return ((const struct members *)self)->host.peers[worker].lost_there;
}

static void tally(const void *self, int worker, struct tally *sum) {
    tally_add(sum, &((const struct members *)self)->far[worker]);
}

static void totals(const void *self, struct crew_totals *totals) {
    const struct members *members = self;
    const struct cluster *cluster = members->settings.cluster;
    *totals = (struct crew_totals){.ps = cluster->mirrored ? 0 : cluster->ps.count,
                                   .workers = cluster->workers.count,
                                   .seen_before = host_seen(&members->host),
                                   .lost_updates = members->far_lost_updates,
                                   .sent = host_sent(&members->host) - members->sent_before,
                                   .received = host_received(&members->host) - members->received_before,
                                   .idle = NAN,
                                   .idle_equal = NAN};
}

/* Whether this process begins another session, unless it is killed: what it says last is for now. */
static bool returns(const struct members *members, const struct error *error) {
    const struct cluster_session *session = members->settings.session;
    return error->code == ERROR_PEER && members->site->config->restart_wait_s > 0.0 && session &&
           session_is_followed(session, world_now(members->site->world));
}

/* The workers print what the run ended with; in a mirrored cluster each process keeps the model, too. */
static void finish(void *self, const struct error *error, const struct summary *summary) {
    struct members *members = self;
    struct error ignored = {0};
    struct finish last = {.code = error->code,
                          .metric = summary->metric,
                          .test_score = summary->test_score,
                          .final_cost = summary->final_cost,
                          .train_seconds = summary->train_seconds,
                          .epochs = summary->epochs,
                          .version = summary->updates,
                          .steps = summary->steps,
                          .examples = summary->examples,
                          .returns = returns(members, error)};
    if (members->host.count == 0 && !members->host.leader && followers_of(members) == 0) return;
    if (members->settings.cluster->mirrored && error->code == OK) spread(members, true, &ignored);
    snprintf(last.words, sizeof last.words, "%s", error->words);
    if (members->host.joins) door_close(&members->host);
    host_finish(&members->host, &last);
}

struct crew members_crew(const struct members_settings *settings) {
    const struct cluster *cluster = settings->cluster;
    return (struct crew){.part = cluster->task,
                         .parts = cluster->ps.count,
                         .mirrored = cluster->mirrored,
                         .elsewhere = true,
                         .open = open_members,
                         .settings = settings,
                         .member = member,
                         .pace = pace,
                         .compute = compute,
                         .begin = begin,
                         .go = go,
                         .joining = joining,
                         .admit = members_admit,
                         .asked = asked,
                         .watch = members_watch,
                         .change = change,
                         .fetch = members_fetch,
                         .fetch_rest = members_fetch_rest,
                         .lost = lost,
                         .tally = tally,
                         .totals = totals,
                         .finish = finish,
                         .close = close_members};
}
