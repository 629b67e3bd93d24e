/* When bytes arrive at another machine of a simulation, and what goes wrong on the way. See
 * simulated_network.h.
 *
 * The time of arrival is fixed when a piece is sent. What is under way when a cut comes, or is sent after it,
 * arrives at INFINITY; mending gives it a time. */
#include "simulated_parts.h"

#include <math.h>
#include "../base/memory.h"
#include "../base/rng.h"

static bool is_cut(const struct simulation *sim, int from, int to) {
    return sim->machines[from].cuts[to] > 0;
}

static double slowness(const struct simulation *sim, int from, int to) {
    return fmax(sim->machines[from].slowness, sim->machines[to].slowness);
}

static double random_unit(struct simulation *sim) {
    return (double)rng_unit(rng_philox(sim->seed, 1, sim->delays++).word[0]);
}

double sim_delay(struct simulation *sim, int from, int to) {
    const struct simulated_network *settings = &sim->settings;
    if (from == to) return 0.0;
    double seconds = settings->latency_s * slowness(sim, from, to);
    if (settings->jitter_s > 0.0) seconds += settings->jitter_s * random_unit(sim);
    if (settings->loss > 0.0 && random_unit(sim) < settings->loss) seconds += SIMULATED_AGAIN_S;
    return seconds;
}

double sim_arrival(struct simulation *sim, int from, int to) {
    return is_cut(sim, from, to) ? INFINITY : sim->now + sim_delay(sim, from, to);
}

double sim_arrival_of(struct simulation *sim, int from, int to, size_t bytes, double *leaves) {
    struct sim_machine *sender = &sim->machines[from], *receiver = &sim->machines[to];
    double seconds = 0.0;
    if (from != to && sim->settings.bytes_per_s > 0.0)
        seconds = (double)bytes / sim->settings.bytes_per_s * slowness(sim, from, to);
    *leaves = from == to ? sim->now : fmax(sim->now, sender->out_free_s) + seconds;
    if (from != to) sender->out_free_s = *leaves;
    if (is_cut(sim, from, to)) return INFINITY;
    const double first = *leaves - seconds + sim_delay(sim, from, to);
    if (from == to) return first;
    receiver->in_free_s = fmax(first, receiver->in_free_s) + seconds;
    return receiver->in_free_s;
}

void sim_damage(struct simulation *sim, int from, int to, void *bytes, size_t count) {
    if (from == to || count == 0 || sim->settings.damage <= 0.0) return;
    if (random_unit(sim) >= sim->settings.damage) return;
    const size_t bit = (size_t)(random_unit(sim) * 8.0 * (double)count);
    ((unsigned char *)bytes)[bit / 8 % count] ^= (unsigned char)(1u << bit % 8);
}

/* --- what goes wrong --- */

void simulated_set_network(struct world *world, const struct simulated_network *settings) {
    sim_of(world)->sim->settings = *settings;
}

/* Something under way from one to the other, where it has not arrived yet. */
static void hold(const struct simulation *sim, double *arrives) {
    if (*arrives > sim->now) *arrives = INFINITY;
}

static void send_again(struct simulation *sim, double *arrives, int from, int to) {
    if (isinf(*arrives)) *arrives = sim->now + sim_delay(sim, from, to);
}

/* All that is under way to a socket from the other machine. */
static void change_path(struct simulation *sim, struct sim_socket *socket, bool cut) {
    const int from = socket->far_machine, to = socket->machine;
    double *times[] = {&socket->arrives, &socket->breaks};
    for (int i = 0; i < 2; i++)
        if (cut)
            hold(sim, times[i]);
        else
            send_again(sim, times[i], from, to);
    double last = -INFINITY;
    for (struct segment *segment = socket->first; segment; segment = segment->next) {
        if (cut)
            hold(sim, &segment->arrives);
        else
            send_again(sim, &segment->arrives, from, to);
        last = segment->arrives = fmax(last, segment->arrives); /* they stay in their order */
    }
}

void simulated_cut(struct world *one, struct world *other, bool cut) {
    struct simulation *sim = sim_of(one)->sim;
    const int a = sim_of(one)->machine, b = sim_of(other)->machine;
    const bool was_cut = is_cut(sim, a, b);
    if (a == b || (!cut && !was_cut)) return;
    sim->machines[a].cuts[b] += cut ? 1 : -1;
    sim->machines[b].cuts[a] += cut ? 1 : -1;
    if (is_cut(sim, a, b) == was_cut) return;
    for (int s = 0; s < sim->socket_room; s++) {
        struct sim_socket *socket = &sim->sockets[s];
        if (socket->state != CLOSED && ((socket->machine == a && socket->far_machine == b) ||
                                        (socket->machine == b && socket->far_machine == a)))
            change_path(sim, socket, cut);
    }
    sim_network_changed(sim);
}

void simulated_slow(struct world *machine, double times) {
    sim_of(machine)->sim->machines[sim_of(machine)->machine].slowness = fmax(times, 1.0);
}

void simulated_kill(struct world *machine) {
    struct simulation *sim = sim_of(machine)->sim;
    sim->machines[sim_of(machine)->machine].dead = true;
    for (int s = 0; s < sim->socket_room; s++)
        if (sim->sockets[s].state != CLOSED && sim->sockets[s].machine == sim_of(machine)->machine)
            sim_socket_break(sim, s);
    sim_network_changed(sim);
}
