/* Rounds, and the generations of workers that they belong to. See sampler.h. */
#include "sampler_rounds.h"

/* In a round of generation `e`: who takes part and stands before `worker`; how many take part. */
static int members_before(const struct sampler *sampler, int e, int worker) {
    int members = worker;
    for (int i = 1; i <= e; i++) members -= sampler->generations[i].lost < worker;
    return members;
}

static int members_of(const struct sampler *sampler, int e) {
    return members_before(sampler, e, sampler->stream.workers);
}

/* The same of the numbers that they take. */
long sampler_numbers_before(const struct sampler *sampler, int e, int worker) {
    if (!sampler->widths) return members_before(sampler, e, worker);
    long numbers = 0;
    for (int w = 0; w < worker; w++) numbers += sampler_width_of(sampler, w);
    for (int i = 1; i <= e; i++) {
        const int lost = sampler->generations[i].lost;
        if (lost < worker) numbers -= sampler_width_of(sampler, lost);
    }
    return numbers;
}

long sampler_round_numbers(const struct sampler *sampler, int e) {
    return sampler_numbers_before(sampler, e, sampler->stream.workers);
}

long sampler_rounds_again(const struct sampler *sampler, int e) {
    const int members = members_of(sampler, e); /* none, once all are lost */
    return sampler->widths && members > 0 ? up(sampler->generations[e].again_count, members) : 0;
}

struct sampler_piece sampler_piece_of(const struct sampler *sampler, int worker, long round) {
    int e = atomic_load(&sampler->generation_count) - 1;
    while (sampler->generations[e].from > round) e--;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long r = round - generation->from, first = sampler_rounds_again(sampler, e);
    if (r < first) {
        const long i = r * members_of(sampler, e) + members_before(sampler, e, worker);
        return i < generation->again_count ? generation->again[i] : (struct sampler_piece){NO_BATCH, 0};
    }
    const long k =
        (r - first) * sampler_round_numbers(sampler, e) + sampler_numbers_before(sampler, e, worker);
    if (sampler->widths)
        return (struct sampler_piece){generation->fresh + k, sampler_width_of(sampler, worker)};
    return k < generation->again_count
               ? generation->again[k]
               : (struct sampler_piece){generation->fresh + k - generation->again_count, 1};
}

struct sampler_reach sampler_reach_of(const struct sampler *sampler, long round) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    const struct sampler_generation *generation = &sampler->generations[e];
    const long rounds = round - generation->from, first = sampler_rounds_again(sampler, e);
    const long assigned =
        rounds * (sampler->widths ? members_of(sampler, e) : sampler_round_numbers(sampler, e));
    struct sampler_reach reach = {.past =
                                      assigned < generation->again_count ? assigned : generation->again_count,
                                  .fresh = generation->fresh};
    for (long i = reach.past; i < generation->again_count; i++) reach.owed += generation->again[i].width;
    if (!sampler->widths)
        reach.fresh += assigned - reach.past;
    else if (rounds > first)
        reach.fresh += (rounds - first) * sampler_round_numbers(sampler, e);
    return reach;
}

long sampler_rounds_opened(const struct sampler *sampler) {
    const long opened = atomic_load(&sampler->opened);
    return opened < 0 ? ~opened : opened;
}
