/* How far a run has come. See sampler.h. */
#include "sampler_rounds.h"

long sampler_longest_own(const struct sampler *sampler, int epoch) {
    long most = 0;
    for (int w = 0; w < sampler->stream.workers; w++) {
        const long end = stream_epoch_end(&sampler->stream, w, epoch);
        if (end > most) most = end;
    }
    return most;
}

long sampler_own(const struct sampler *sampler, int worker) {
    return sampler->lines[worker].base + atomic_load(&sampler->lines[worker].done);
}

/* Where the last round ends, which goes over the total to `position`: whose part would begin behind the total
 * was assigned nothing. */
static long end_of_last(const struct sampler *sampler, long position) {
    const int e = atomic_load(&sampler->generation_count) - 1;
    const long begin = position - sampler_round_numbers(sampler, e);
    if (!sampler->stream.sizes) return sampler->total;
    for (int w = 0; w < sampler->stream.workers; w++) {
        const long at = begin + sampler_numbers_before(sampler, e, w);
        if (at >= sampler->total) return at;
    }
    return position;
}

long sampler_position(const struct sampler *sampler) {
    if (shared(sampler) && !sampler->rounds)
        return atomic_load(&sampler->cursor) - atomic_load(&sampler->given_back);
    if (shared(sampler)) {
        const long from = sampler->generations[atomic_load(&sampler->generation_count) - 1].from;
        const long opened = sampler_rounds_opened(sampler);
        const struct sampler_reach reach = sampler_reach_of(sampler, opened);
        const long position = reach.fresh - reach.owed;
        const bool whole = position <= sampler->total || (sampler->stream.sizes && opened == from);
        return (whole ? position : end_of_last(sampler, position)) - atomic_load(&sampler->given_back);
    }
    long sum = 0;
    for (int w = 0; w < sampler->stream.workers; w++) sum += sampler_own(sampler, w);
    return sum;
}

/* Whether something is to be handed out again: then batches before the position are missing, and later ones
 * are there. */
static bool owes_batches(const struct sampler *sampler) {
    const struct sampler_generation *generation =
        &sampler->generations[atomic_load(&sampler->generation_count) - 1];
    return sampler->rounds &&
           sampler_reach_of(sampler, sampler_rounds_opened(sampler)).past < generation->again_count;
}

bool sampler_reached(const struct sampler *sampler, int epoch) {
    if (shared(sampler) && owes_batches(sampler)) return false;
    if (shared(sampler)) return sampler_position(sampler) >= stream_epoch_end(&sampler->stream, 0, epoch);
    for (int w = 0; w < sampler->stream.workers; w++)
        if (!atomic_load(&sampler->lines[w].gone) &&
            sampler_own(sampler, w) < stream_epoch_end(&sampler->stream, w, epoch))
            return false;
    return true;
}

long sampler_total(const struct sampler *sampler) {
    if (shared(sampler)) return sampler->total;
    long sum = 0;
    for (int w = 0; w < sampler->stream.workers; w++)
        sum += sampler->rounds ? sampler_longest_own(sampler, sampler->epochs - 1)
                               : stream_epoch_end(&sampler->stream, w, sampler->epochs - 1);
    return sum;
}

/* Of parts of different sizes, so many make as much of a round as they are of its workers. */
long sampler_updates_of(const struct sampler *sampler, long numbers, int batches_in_one) {
    if (!sampler->sizes) return up(numbers, batches_in_one);
    return up(numbers * sampler->dividing, (long)sampler->whole * batches_in_one);
}

long sampler_updates(const struct sampler *sampler, int batches_in_one) {
    return sampler_updates_of(sampler, sampler_total(sampler), batches_in_one);
}

long sampler_batches(const struct sampler *sampler, long numbers) {
    return sampler->stream.sizes ? up(numbers, sampler->stream.batch) : numbers;
}

void sampler_place(const struct sampler *sampler, int worker, long number, int *epoch, long *place,
                   long *batches) {
    const long long examples = stream_epoch_examples(&sampler->stream, worker);
    long long e = (long long)number * stream_unit(&sampler->stream) / examples;
    if (e >= sampler->epochs) e = sampler->epochs - 1; /* the rest of the last round */
    const long begin =
        e > 0 ? sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, (int)e - 1)) : 0;
    *epoch = (int)e;
    *batches = sampler_batches(sampler, stream_epoch_end(&sampler->stream, worker, (int)e)) - begin;
    *place = sampler_batches(sampler, number) - begin;
    if (*place >= *batches) *place = *batches - 1;
}
