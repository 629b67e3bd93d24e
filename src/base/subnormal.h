/* Subnormal numbers: floats below 1.2e-38, with which a CPU computes ten to a hundred times as slowly.
 *
 * Training arrives there. Where a weight gets no gradient any more, a momentum that shrinks by 0.9 a step
 * is subnormal after some 830 steps, and never 0: a convolution trained with Adam took six times as long per
 * step from its second epoch on. */
#ifndef TRAINER_BASE_SUBNORMAL_H
#define TRAINER_BASE_SUBNORMAL_H

#include <stdint.h>

/* From here on the calling thread takes subnormal operands for 0 and writes 0 where a result would be one.
 * Threads that it starts later do the same, those of libraries too. On x86 and 64-bit ARM; nothing
 * elsewhere. */
void subnormals_flush(void);
/* For a thread that is not ours: how it treats them now, to be set again when ours is done. */
uint64_t subnormals_mode(void);
void subnormals_set(uint64_t mode);

#endif
