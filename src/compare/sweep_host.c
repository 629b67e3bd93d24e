/* Lets machines join a sweep. Who connects says hello first (sweep_arrivals.c); then it has a thread
 * (sweep_guest.c), which takes runs like a lane of this machine. Here they are accepted, counted and closed.
 */
#include "sweep_host.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"
#include "../base/text.h"

#define ACCEPT_S 0.1 /* for somebody to come, at a time */
#define SPEAK_S 1e-3 /* the same while one of those who came is still to speak */
#define LOOK_S 0.01  /* for a lane's thread to end, at a time */
#define END_S 3.0    /* for all of them to end; then they are cut off */

int sweep_host_open(struct sweep *sweep, struct error *error) {
    const struct sweep_settings *settings = &sweep->settings;
    if (!settings->listen[0]) return OK;
    if (settings->run.value.weights[0])
        return error_set(error, ERROR_USAGE,
                         "--listen and --weights: expected one of them: machines that join "
                         "lack the file");
    for (int v = 0; v < sweep->variation_count; v++)
        if (strncmp(sweep->variations[v].name, "dataset", 7) == 0)
            return error_set(error, ERROR_USAGE,
                             "--vary=%s: expected one data set for all runs with --listen, which machines "
                             "that join are compared by",
                             sweep->variations[v].name);
    RETURN_IF(memory_array(&sweep->host, 1, "the host of the sweep", error));
    sweep->host->sweep = sweep;
    arrivals_open(&sweep->host->arrivals);
    RETURN_IF(lane_use_secret(&settings->run.value, sweep->lanes.world, error));
    return endpoint_listen(sweep->lanes.world, settings->listen, &sweep->host->listener, error);
}

void sweep_host_close(struct sweep_host *host) {
    if (host) listener_close(host->listener);
    if (host) arrivals_close(&host->arrivals);
    memory_free(host);
}

/* --- what its lanes ask --- */

void host_say(struct sweep_host *host, bool always, const char *words) {
    lanes_hold(host->shared);
    if (always)
        progress_warn(&host->sweep->progress, "%s", words);
    else
        progress_say(&host->sweep->progress, "%s", words);
    lanes_release(host->shared);
}

bool host_must_end(const struct sweep_host *host) {
    lanes_hold(host->shared);
    const bool stopped = host->sweep->stopped.code != OK;
    lanes_release(host->shared);
    return stopped || world_interrupted();
}

/* --- all of them --- */

static void close_guest(struct guest **guest) {
    world_join((*guest)->thread);
    endpoint_close((*guest)->endpoint);
    memory_free(*guest);
    *guest = NULL;
}

/* Returns how many are left. */
static int close_ended(struct sweep_host *host) {
    int left = 0;
    for (int g = 0; g < GUESTS; g++) {
        if (host->guests[g] && atomic_load(&host->guests[g]->ended)) close_guest(&host->guests[g]);
        left += host->guests[g] != NULL;
    }
    return left;
}

/* Who is in the middle of a long word has some time to end it, but not all of --timeout. */
static void end_guests(struct sweep_host *host) {
    struct world *world = host->sweep->lanes.world;
    const double until = world_now(world) + END_S;
    while (close_ended(host) > 0 && world_now(world) < until) world_sleep(world, LOOK_S);
    for (int g = 0; g < GUESTS; g++)
        if (host->guests[g]) endpoint_interrupt(host->guests[g]->endpoint);
    for (int g = 0; g < GUESTS; g++)
        if (host->guests[g]) close_guest(&host->guests[g]);
}

/* Takes the endpoint over, unless there is no room. */
static int begin_guest(struct sweep_host *host, struct endpoint *endpoint, const struct lane_hello *hello,
                       struct error *error) {
    const char *name = endpoint_name(endpoint);
    struct guest *guest = NULL;
    int place = 0;
    while (place < GUESTS && host->guests[place]) place++;
    if (place == GUESTS)
        return error_set(error, ERROR_DEVICE, "%s: no room for more than %d lanes", name, GUESTS);
    int code = memory_array(&guest, 1, "a lane of another machine", error);
    if (code == OK) {
        *guest = (struct guest){.host = host, .endpoint = endpoint, .hello = *hello};
        snprintf(guest->name, sizeof guest->name, "%.60s %s", name, hello->device);
        code = world_spawn(host->sweep->lanes.world, "lane", NULL, guest_body, guest, &guest->thread, error);
    }
    if (code == OK)
        host->guests[place] = guest;
    else
        memory_free(guest);
    return code == OK ? OK : error_prefix(error, "%s: no room: ", name);
}

/* What goes at once; who does not take it is not waited for. */
static void refuse(struct sweep_host *host, struct endpoint *endpoint, const char *why) {
    const struct piece piece = {why, strlen(why)};
    struct error ignored = {0};
    char words[600];
    snprintf(words, sizeof words, "refused: %s", why);
    host_say(host, true, words);
    frame_write(endpoint, FRAME_FAILURE, 0, &piece, 1, 0.0, &ignored);
    endpoint_finish(endpoint, 0.0);
    endpoint_close(endpoint);
}

static void hear_arrivals(struct sweep_host *host) {
    const double now = world_now(host->sweep->lanes.world);
    while (true) {
        struct lane_hello hello;
        struct error why = {0};
        struct endpoint *endpoint = arrivals_hear(&host->arrivals, now, &hello, &why);
        if (!endpoint) return;
        if (why.code == OK) begin_guest(host, endpoint, &hello, &why);
        if (why.code != OK) refuse(host, endpoint, why.words);
    }
}

/* A machine that lacks memory or descriptors trains on: it is said once, and who was silent longest goes. */
static void accept_one(struct sweep_host *host) {
    struct world *world = host->sweep->lanes.world;
    struct endpoint *endpoint = NULL;
    struct error why = {0};
    const double seconds = host->arrivals.count > 0 ? SPEAK_S : ACCEPT_S;
    if (listener_accept(host->listener, &endpoint, seconds, &why) != OK) {
        if (strcmp(host->no_room, why.words) != 0) host_say(host, true, why.words);
        snprintf(host->no_room, sizeof host->no_room, "%s", why.words);
        arrivals_make_room(&host->arrivals);
        world_sleep(world, ACCEPT_S);
    }
    if (listener_is_crowded(host->listener)) arrivals_make_room(&host->arrivals);
    if (endpoint) arrivals_add(&host->arrivals, endpoint, world_now(world));
    hear_arrivals(host);
}

/* Whether nobody is left to compute, since when. */
static int check_alone(const struct sweep_host *host, double *since_s, struct error *error) {
    const struct sweep *sweep = host->sweep;
    const double now = world_now(sweep->lanes.world), most_s = sweep->settings.run.value.start_timeout_s;
    lanes_hold(host->shared);
    const bool alone = host->here == 0 && sweep->lanes.count == 0;
    lanes_release(host->shared);
    if (!alone) *since_s = now;
    if (now - *since_s < most_s) return OK;
    return error_set(
        error, ERROR_PEER,
        "no machine has joined for %g s (--start-timeout); go on with: trainer sweep --resume=%s", most_s,
        TEXT_WORD(sweep->out));
}

static bool is_over(struct sweep_host *host, uint64_t *asked) {
    const uint64_t told = lanes_told(host->shared);
    int run;
    if (host_must_end(host)) return true;
    if (told == *asked) return false;
    *asked = told;
    lanes_hold(host->shared);
    const bool over = sweep_next(host->sweep, &run) == LANE_END;
    lanes_release(host->shared);
    return over;
}

static int accept_guests(struct sweep_host *host, struct error *error) {
    const char *listen = host->sweep->settings.listen;
    double since_s = world_now(host->sweep->lanes.world);
    uint64_t asked = UINT64_MAX;
    char words[SWEEP_ADDRESS_BYTES + 50];
    snprintf(words, sizeof words, "machines join this sweep at %.*s:%d", (int)(strrchr(listen, ':') - listen),
             listen, listener_port(host->listener));
    host_say(host, false, words);
    while (!is_over(host, &asked)) {
        accept_one(host);
        close_ended(host);
        RETURN_IF(check_alone(host, &since_s, error));
    }
    return OK;
}

void sweep_host_serve(void *self, struct shared_lanes *shared) {
    struct sweep *sweep = self;
    struct sweep_host *host = sweep->host;
    struct error why = {0};
    host->shared = shared;
    if (accept_guests(host, &why) != OK) {
        lanes_hold(shared);
        if (sweep->stopped.code == OK) sweep->stopped = why;
        lanes_release(shared);
        lanes_tell(shared);
    }
    atomic_store(&host->over, true);
    listener_close(host->listener); /* so nobody waits for an answer while the best run is tested */
    host->listener = NULL;
    arrivals_close(&host->arrivals);
    end_guests(host);
}
