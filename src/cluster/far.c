/* See far.h. */
#include "far.h"

#include "../base/finite.h"
#include "../bridge/compress.h"

int far_open(struct far *far, const struct setup *setup, struct world *world, struct error *error) {
    const struct choices *choices = &setup->choices;
    *far = (struct far){0};
    bool shares = false;
    for (int p = 0; p < setup->phases.count; p++)
        shares = shares || strategy_of(&setup->phases.list[p].strategy)->shares;
    if (!shares || compress_is_on(&choices->compressor)) return OK;
    RETURN_IF(roster_open(&far->roster, world, 1, 0, setup->config.timeout_s, error));
    const struct store_settings settings = {.layout = &setup->network.graph.layout,
                                            .roster = &far->roster,
                                            .shards = 1,
                                            .strategy = &choices->strategy,
                                            .optimizer = &choices->optimizer,
                                            .schedule = &choices->schedule,
                                            .total_updates = 1, /* the host says the rate */
                                            .average = setup->config.average};
    far->is_on = true;
    return store_open(&far->store, &settings, error);
}

void far_close(struct far *far) {
    if (far->is_on) store_close(&far->store);
    if (far->is_on) roster_close(&far->roster);
    *far = (struct far){0};
}

bool far_step(struct far *far, const float *gradient, long number, double rate) {
    if (!all_finite(gradient, far->store.settings.layout->floats)) return false;
    store_step_far(&far->store, &far->store.host, gradient, (float)rate, number);
    return true;
}
