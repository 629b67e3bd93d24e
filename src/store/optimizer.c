/* From the choice of an optimizer to the description of its step that a backend gets. */
#include "optimizer.h"

struct update optimizer_update(const struct choice *choice, long number) {
    const struct optimizer *optimizer = optimizer_of(choice);
    struct update update = {.moments = optimizer->moments, .step = optimizer->step};
    while (optimizers[update.rule] && optimizers[update.rule] != optimizer) update.rule++;
    if (optimizer->constants) optimizer->constants(choice->settings, &update, number);
    return update;
}
