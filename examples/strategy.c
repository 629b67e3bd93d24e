/* A strategy of the program's own: all workers step together on the mean of their gradients, as with `sync`,
 * whose weights it gives bit for bit. A worker leaves its gradient, waits until all have, and steps its share
 * of the weights; when all shares are stepped, it goes on. */
#include <stdio.h>
#include <string.h>
#include <trainer.h>

enum { CONTRIBUTED, STEPPED };
static const char *const barriers[] = {"the barrier where all gradients are in",
                                       "the barrier where all shares are stepped", NULL};

static int push(void *argument, const struct trainer_exchange *at, struct trainer_error *error) {
    (void)argument;
    const int code = trainer_shard_contribute(at, error);
    return code != TRAINER_OK ? code : trainer_barrier_arrive(at, CONTRIBUTED, at->step, error);
}

/* The round that is over when the worker takes its next weights: that of its last step. */
static int pull(void *argument, const struct trainer_exchange *at, long *version,
                struct trainer_error *error) {
    const long round = at->step - 1;
    const bool over = round < 0 || trainer_barrier_is_open(at, STEPPED, round);
    int shares = 0, code = TRAINER_OK;
    (void)argument;
    if (round < 0) *version = trainer_shard_version(at);
    if (over) return TRAINER_OK;
    if ((code = trainer_barrier_wait(at, CONTRIBUTED, round, error)) != TRAINER_OK) return code;
    const long before = trainer_shard_version(at);
    const int share = trainer_barrier_rank(at, CONTRIBUTED, at->worker, round, &shares);
    if ((code = trainer_shard_step_share(at, share, shares, error)) != TRAINER_OK) return code;
    if ((code = trainer_barrier_arrive(at, STEPPED, round, error)) != TRAINER_OK) return code;
    if ((code = trainer_barrier_wait(at, STEPPED, round, error)) != TRAINER_OK) return code;
    if (share == 0) trainer_shard_end_round(at);
    *version = before + 1;
    return trainer_shard_done(at, at->worker, before, error);
}

static const struct trainer_strategy together = {
    .name = "together", .rounds = true, .merged = true, .barriers = barriers, .push = push, .pull = pull};

static int train(struct trainer_training **training, const struct trainer_strategy *strategy,
                 struct trainer_error *error) {
    static const char *const settings[][2] = {
        {"dataset", "digits"}, {"model", "mlp:hidden=20"}, {"devices", "cpu:0,cpu:1"}, {"epochs", "3"}};
    int code = trainer_training_open(training, error);
    for (int i = 0; i < 4 && code == TRAINER_OK; i++)
        code = trainer_training_set(*training, settings[i][0], settings[i][1], error);
    if (strategy && code == TRAINER_OK) code = trainer_training_strategy(*training, strategy, error);
    return code == TRAINER_OK ? trainer_training_run(*training, NULL, error) : code;
}

int main(void) {
    struct trainer_training *own = NULL, *usual = NULL;
    struct trainer_error error = {0};
    struct trainer_shape shape;
    const float *ours, *theirs;
    if (train(&own, &together, &error) != TRAINER_OK || train(&usual, NULL, &error) != TRAINER_OK) goto end;
    for (int i = 0; trainer_training_weight(own, i, &shape, &ours); i++) {
        const char *name = trainer_training_weight(usual, i, &shape, &theirs);
        size_t numbers = 1;
        for (int axis = 0; axis < shape.rank; axis++) numbers *= (size_t)shape.dims[axis];
        printf("%s: %zu numbers, %s\n", name, numbers,
               memcmp(ours, theirs, numbers * sizeof *ours) == 0 ? "the same as with sync" : "others");
    }
end:
    if (error.code != TRAINER_OK) fprintf(stderr, "strategy: %s\n", error.words);
    trainer_training_close(own);
    trainer_training_close(usual);
    return error.code;
}
