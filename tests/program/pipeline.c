/* Pipelines: every stage computes each half of each micro-batch once and in order; no more are in flight than
 * it says, and as many at some time; in a simulation of equal halves no stage waits for ever, and the stages
 * idle as long as the formula says. */
#include <math.h>

#include "../../src/program/pipeline.h"
#include "../check.h"

enum { MOST_STAGES = 6, MOST_MICROS = 17 };

static void check_turns(const struct pipeline *pipeline, int stage) {
    const int all = pipeline->microbatches, most = pipeline_in_flight(pipeline, stage);
    int begun = 0, ended = 0, peak = 0;
    for (int i = 0; i < 2 * all; i++) {
        const struct turn turn = pipeline_turn(pipeline, stage, i);
        const int expected = turn.backward ? ended++ : begun++;
        CHECK(turn.micro == expected, "%s, stage %d of %d, turn %d of %d: %s %d, expected %d",
              pipeline_name(pipeline->schedule), stage, pipeline->stages, i, all,
              turn.backward ? "backward" : "forward", turn.micro, expected);
        CHECK(begun >= ended, "turn %d: %d begun, %d ended", i, begun, ended);
        peak = begun - ended > peak ? begun - ended : peak;
    }
    CHECK(begun == all && ended == all, "%d forward and %d backward of %d", begun, ended, all);
    CHECK(peak == most, "%s, stage %d of %d, %d micro-batches: %d in flight, expected %d",
          pipeline_name(pipeline->schedule), stage, pipeline->stages, all, peak, most);
}

static int expected_in_flight(const struct pipeline *pipeline, int stage) {
    const int all = pipeline->microbatches, left = pipeline->stages - stage;
    if (pipeline->schedule == PIPELINE_NONE) return 1;
    return pipeline->schedule == PIPELINE_GPIPE || all < left ? all : left;
}

/* Whether a stage can take a turn: its operand has come. */
static bool is_ready(const struct pipeline *pipeline, int stage, struct turn turn, const int *forward,
                     const int *backward) {
    if (!turn.backward) return stage == 0 || forward[stage - 1] > turn.micro;
    return stage == pipeline->stages - 1 || backward[stage + 1] > turn.micro;
}

/* Clock ticks until all have taken all turns, each of one tick; 0: they never do. */
static int simulate(const struct pipeline *pipeline) {
    int at[MOST_STAGES] = {0}, forward[MOST_STAGES] = {0}, backward[MOST_STAGES] = {0};
    const int turns = 2 * pipeline->microbatches;
    for (int tick = 1;; tick++) {
        int before[2][MOST_STAGES], moved = 0, done = 0;
        for (int s = 0; s < pipeline->stages; s++) before[0][s] = forward[s], before[1][s] = backward[s];
        for (int s = 0; s < pipeline->stages; s++) {
            if (at[s] < turns) {
                const struct turn turn = pipeline_turn(pipeline, s, at[s]);
                if (is_ready(pipeline, s, turn, before[0], before[1])) {
                    *(turn.backward ? &backward[s] : &forward[s]) += 1;
                    at[s]++;
                    moved++;
                }
            }
            done += at[s] == turns;
        }
        if (done == pipeline->stages) return tick;
        if (moved == 0) return 0;
    }
}

int main(void) {
    for (int schedule = PIPELINE_NONE; schedule <= PIPELINE_1F1B; schedule++)
        for (int stages = 1; stages <= MOST_STAGES; stages++)
            for (int micros = 1; micros <= MOST_MICROS; micros++) {
                const struct pipeline pipeline = {(enum pipeline_schedule)schedule, stages, micros};
                for (int stage = 0; stage < stages; stage++) {
                    check_turns(&pipeline, stage);
                    CHECK(pipeline_in_flight(&pipeline, stage) == expected_in_flight(&pipeline, stage),
                          "stage %d of %d, %d micro-batches: %d in flight", stage, stages, micros,
                          pipeline_in_flight(&pipeline, stage));
                }
                const int ticks = simulate(&pipeline);
                const double idle = 1.0 - 2.0 * micros / (double)ticks;
                CHECK(ticks > 0 && fabs(idle - pipeline_bubble(&pipeline)) < 1e-12,
                      "%s, %d stages, %d micro-batches: %d ticks, %g idle, expected %g",
                      pipeline_name(pipeline.schedule), stages, micros, ticks, idle,
                      pipeline_bubble(&pipeline));
            }
    return check_end();
}
