/* Lets machines join a sweep. A thread for each connection (sweep_guest.c) takes runs like a lane of this
 * machine; here they are accepted, counted and closed. */
#include "sweep_host.h"

#include <stdio.h>
#include <string.h>

#include "../base/memory.h"

#define ACCEPT_S 0.1 /* for somebody to come, at a time */

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
    RETURN_IF(lane_use_secret(&settings->run.value, sweep->lanes.world, error));
    return endpoint_listen(sweep->lanes.world, settings->listen, &sweep->host->listener, error);
}

void sweep_host_close(struct sweep_host *host) {
    if (host) listener_close(host->listener);
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

static void close_ended(struct sweep_host *host) {
    for (int g = 0; g < GUESTS; g++)
        if (host->guests[g] && atomic_load(&host->guests[g]->ended)) close_guest(&host->guests[g]);
}

/* Takes the endpoint over. Where there is no room, it is closed. */
static int begin_guest(struct sweep_host *host, struct endpoint *endpoint, struct error *error) {
    int place = 0;
    while (place < GUESTS && host->guests[place]) place++;
    struct guest *guest = NULL;
    int code = place == GUESTS ? OK : memory_array(&guest, 1, "a lane of another machine", error);
    if (!guest) {
        endpoint_close(endpoint);
        return code;
    }
    guest->host = host;
    guest->endpoint = endpoint;
    snprintf(guest->name, sizeof guest->name, "%s", endpoint_name(endpoint));
    code = world_spawn(host->sweep->lanes.world, "lane", NULL, guest_body, guest, &guest->thread, error);
    if (code == OK) {
        host->guests[place] = guest;
        return OK;
    }
    endpoint_close(endpoint);
    memory_free(guest);
    return code;
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
        sweep->out);
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
        struct endpoint *endpoint = NULL;
        RETURN_IF(listener_accept(host->listener, &endpoint, ACCEPT_S, error));
        close_ended(host);
        if (endpoint) RETURN_IF(begin_guest(host, endpoint, error));
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
    for (int g = 0; g < GUESTS; g++)
        if (host->guests[g]) close_guest(&host->guests[g]);
}
