/* From what a launcher says to a cluster. See launch.h. */
#include "launch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../base/memory.h"
#include "../base/rng.h"
#include "../world/world.h"
#include "launchers.h"

/* Ports that nobody is given by the kernel on most machines; a job has so many next to each other. */
enum { PORTS_FROM = 10240, PORTS_EACH = 128, PORT_BLOCKS = 176 };

static const char loopback[] = "127.0.0.1";

/* --- where everybody is --- */

bool launch_is_loopback(const char *host) {
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

static int missing_addresses(const struct started *started, struct error *error) {
    if (started->local_size == 0 && !started->master)
        return error_set(error, ERROR_USAGE,
                         "%s: %d processes, and nothing says where they are; expected %s, the host of the "
                         "first one, with --ps=1; or --hosts (--launcher=none: alone)",
                         started->by, started->size, started->master_variable);
    if (!started->master)
        return error_set(error, ERROR_USAGE,
                         "%s: %d processes on several machines, and nothing says which; expected --hosts, or "
                         "--ps=1 and %s, the host of the first one",
                         started->by, started->size, started->master_variable);
    return error_set(error, ERROR_USAGE,
                     "%s: only the host of the first process is known (%s=%.60s); expected --ps=1, which has "
                     "it serve the others, or --hosts",
                     started->by, started->master_variable, started->master);
}

/* One machine needs no names; workers that nobody connects to need none either. */
static int find_places(struct started *started, const struct config *settings, struct error *error) {
    struct places *places = &started->places;
    const int size = started->size;
    if (settings->hosts[0]) {
        places_free(places);
        RETURN_IF(places_read_slots(places, settings->hosts, "--hosts", error));
        if (places->count == size) return OK;
        return error_set(error, ERROR_USAGE, "--hosts: found places for %d processes, %s has started %d",
                         places->count, started->by, size);
    }
    if (places->count == size) return OK;
    if (started->local_size == size || (started->master && launch_is_loopback(started->master)))
        return places_add(places, loopback, size, started->by, error);
    if (!started->master || settings->ps != 1) return missing_addresses(started, error);
    RETURN_IF(places_add(places, started->master, 1, started->master_variable, error));
    for (int rank = 1; rank < size; rank++) {
        char name[32];
        snprintf(name, sizeof name, "rank-%d", rank);
        RETURN_IF(places_add(places, name, 1, started->by, error));
    }
    return OK;
}

int launch_port(uint64_t job) {
    return PORTS_FROM + PORTS_EACH * (int)(rng_mix(job, 0) % PORT_BLOCKS);
}

/* The first port. On one machine the launcher's own process is known to all that it has started. */
static int find_port(const struct started *started, const struct config *settings, int *port,
                     struct error *error) {
    const uint64_t job = started->job ? started->job : (uint64_t)getppid();
    const bool is_known = started->job || started->local_size == started->size;
    *port = settings->port > 0 ? settings->port : started->port;
    if (*port == 0 && !is_known)
        return error_set(error, ERROR_USAGE, "%s: nothing says which ports to use, expected --port=N",
                         started->by);
    if (*port == 0) *port = launch_port(job);
    if (*port + started->size - 1 <= 65535) return OK;
    return error_set(error, ERROR_USAGE, "%s: %d ports from %d on, expected 65535 at most (--port=N)",
                     started->by, started->size, *port);
}

void launch_address(const char *host, int port, char out[LAUNCH_ADDRESS_BYTES]) {
    snprintf(out, LAUNCH_ADDRESS_BYTES, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

static int add_address(struct addresses *addresses, const char *host, int port, struct error *error) {
    char text[LAUNCH_ADDRESS_BYTES];
    launch_address(host, port, text);
    return addresses_add(addresses, text, strlen(text), "hosts", ERROR_USAGE, error);
}

static int add_addresses(struct cluster *cluster, struct started *started, const struct config *settings,
                         struct error *error) {
    int port;
    RETURN_IF(find_places(started, settings, error));
    RETURN_IF(find_port(started, settings, &port, error));
    for (int rank = 0; rank < started->size; rank++)
        RETURN_IF(add_address(rank < settings->ps ? &cluster->ps : &cluster->workers,
                              started->places.host[rank], port + rank, error));
    return OK;
}

/* --- who this process is --- */

/* What is known of this machine from the hosts of all. */
static void count_here(struct cluster *cluster) {
    const struct addresses *workers = &cluster->workers;
    struct cores all;
    world_cores_of_parent(&all);
    cluster->cores = all.count;
    if (cluster->role == CLUSTER_PS) return;
    for (int w = 0; w < cluster->task; w++)
        if (strcasecmp(workers->list[w].host, workers->list[cluster->task].host) == 0) cluster->turn++;
}

/* Where the others' hosts are not known: the ranks of a machine follow each other. */
static void count_local(struct cluster *cluster, const struct started *started, int ps) {
    const int first = started->rank - (started->local_rank > 0 ? started->local_rank : 0);
    const int servers = first < ps ? ps - first : 0;
    cluster->here = started->local_size > servers ? started->local_size - servers : 1;
    cluster->turn = started->rank - first - servers;
}

static int find_role(struct cluster *cluster, const struct started *started, const struct config *settings,
                     struct error *error) {
    const int rank = started->rank, ps = settings->ps;
    const bool named = strncmp(started->places.host[started->size - 1], "rank-", 5) != 0;
    cluster->by = started->by;
    cluster->role = rank < ps ? CLUSTER_PS : rank == ps ? CLUSTER_CHIEF : CLUSTER_WORKER;
    cluster->task = rank < ps ? rank : rank - ps;
    count_here(cluster);
    if (!named && rank >= ps) count_local(cluster, started, ps);
    return secret_draw(&cluster->process, sizeof cluster->process, error);
}

static int resolve_started(struct cluster *out, struct started *started, const struct config *settings,
                           struct error *error) {
    const int ps = settings->ps;
    if (started->size < 2 && ps == 0) return settings->hosts[0] ? find_places(started, settings, error) : OK;
    if (ps >= started->size)
        return error_set(error, ERROR_USAGE,
                         "--ps=%d: %s has started %d process%s, expected one more at least", ps, started->by,
                         started->size, started->size == 1 ? "" : "es");
    RETURN_IF(add_addresses(out, started, settings, error));
    return find_role(out, started, settings, error);
}

/* --- what is typed --- */

static int count_hosts(const char *list) {
    int count = list[0] != '\0';
    for (; *list != '\0'; list++) count += *list == ',';
    return count;
}

/* Typed addresses without --job: the rank says which of them is this process's. */
static int resolve_typed(struct cluster *out, const struct config *settings, const struct started *started,
                         const char *tf_config, struct error *error) {
    const int ps = count_hosts(settings->ps_hosts), all = ps + count_hosts(settings->worker_hosts);
    const bool ranked = started->by && ps < all && settings->job[0] == '\0' && settings->task < 0;
    struct config *ready = NULL;
    if (settings->ps > 0)
        return error_set(error, ERROR_USAGE, "--ps=%d: the list of addresses says already who serves",
                         settings->ps);
    if (!ranked || tf_config) return cluster_resolve(out, settings, tf_config, error);
    if (all != started->size)
        return error_set(error, ERROR_USAGE, "found addresses of %d processes, %s has started %d", all,
                         started->by, started->size);
    RETURN_IF(memory_array(&ready, 1, "the settings", error));
    *ready = *settings;
    ready->task = started->rank < ps ? started->rank : started->rank - ps;
    snprintf(ready->job, sizeof ready->job, "%s", started->rank < ps ? "ps" : "worker");
    const int code = cluster_resolve(out, ready, NULL, error);
    if (code == OK) out->by = started->by;
    if (code == OK) count_here(out);
    memory_free(ready);
    return code;
}

static bool has_typed(const struct config *settings) {
    return settings->ps_hosts[0] || settings->worker_hosts[0] || settings->cluster[0] || settings->job[0] ||
           settings->task >= 0;
}

/* --hosts is no third list of addresses, and whom it starts has to know that it was started. */
static int check_hosts(const struct config *settings, struct error *error) {
    const char *other = settings->launcher == LAUNCHER_NONE ? "--launcher=none"
                        : settings->cluster[0]              ? "--cluster"
                        : settings->ps_hosts[0]             ? "--ps-hosts"
                        : settings->worker_hosts[0]         ? "--worker-hosts"
                        : settings->job[0]                  ? "--job"
                                                            : NULL;
    if (!settings->hosts[0] || !other) return OK;
    return error_set(error, ERROR_USAGE, "--hosts and %s: expected one of them", other);
}

int launch_resolve(struct cluster *out, const struct config *settings, launch_variable *variable,
                   struct error *error) {
    const bool heeds = settings->launcher == LAUNCHER_AUTO;
    const char *tf_config = heeds ? variable("TF_CONFIG") : NULL;
    struct started started = {0};
    *out = (struct cluster){.role = CLUSTER_NONE, .task = -1};
    int code = check_hosts(settings, error);
    if (code == OK && heeds) code = launchers_find(&started, variable, error);
    if (code == OK && has_typed(settings)) {
        code = resolve_typed(out, settings, &started, tf_config, error);
    } else if (code == OK) {
        code = cluster_resolve(out, settings, tf_config, error);
        if (code == OK && out->role == CLUSTER_NONE && started.by)
            code = resolve_started(out, &started, settings, error);
        else if (code == OK && settings->ps > 0)
            code = error_set(error, ERROR_USAGE,
                             out->role == CLUSTER_NONE
                                 ? "--ps=%d: there is no cluster, expected mpirun, srun, torchrun or --hosts"
                                 : "--ps=%d: TF_CONFIG says already who serves",
                             settings->ps);
    }
    launchers_free(&started);
    if (code != OK) cluster_free(out);
    return code;
}

bool launch_starts(const struct config *settings, launch_variable *variable) {
    struct started started = {0};
    struct error ignored = {0};
    if (!settings->hosts[0] || has_typed(settings) || settings->launcher == LAUNCHER_NONE) return false;
    const bool found = launchers_find(&started, variable, &ignored) == OK && !started.by;
    launchers_free(&started);
    return found;
}
