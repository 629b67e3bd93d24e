/* What mixup and cutmix make of a pair of examples: how much each counts, and where. Drawn on the host, by
 * the example's key alone, so that all devices mix alike. */
#ifndef TRAINER_DATA_MIX_H
#define TRAINER_DATA_MIX_H

#include "../device/augment.h"

/* *mix = what the example of this key gets. With both mixup and cutmix, each is taken half of the time. */
void mix_draw(struct augment_mix *mix, const struct augment *augment, uint64_t key);

#endif
