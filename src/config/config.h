/* The settings of a run, as one record.
 *
 * What was *typed* is one thing; the *config* that it is settled to is another: what was typed; then what the
 * checkpoint says that is resumed, or, in a run that begins, the recipe of its model; then the program's
 * defaults. What this process is in a cluster is a third (its role), and is no setting. All is made from the
 * rows of options.def. */
#ifndef TRAINER_CONFIG_CONFIG_H
#define TRAINER_CONFIG_CONFIG_H

#include <stdio.h>
#include "../base/file.h"
#include "../base/option.h"
#include "../device/device.h"

enum { CLUSTER_TASKS = 1024 }; /* of a job, at most */
#define SEED_MOST 4294967295
enum { PREFETCH_AUTO = OPTION_AUTOMATIC };

/* What the choices of their names mean; those of shard-by, links and data-sharding are in the headers that
 * use them. */
enum kernels { KERNELS_AUTO, KERNELS_REFERENCE };
enum stale_rates { STALENESS_IGNORE, STALENESS_DIVIDE };
enum on_loss { ON_LOSS_AUTO, ON_LOSS_STOP, ON_LOSS_CONTINUE };
enum launcher_choice { LAUNCHER_AUTO, LAUNCHER_NONE };
enum homes { HOMES_AUTO, HOMES_CPU, HOMES_GPU };

#define TEXT(field, bytes, ...) char field[bytes];
#define INT(field, ...) int field;
#define LONG(field, ...) long field;
#define REAL(field, ...) double field;
#define FLAG(field, ...) bool field;
#define CHOICE(field, ...) int field; /* the position among the row's choices */
struct config {
#include "options.def"
};

/* As the command line has it: what was not given has the program's default. */
#define TEXT(field, ...) bool field;
#define INT(field, ...) bool field;
#define LONG(field, ...) bool field;
#define REAL(field, ...) bool field;
#define FLAG(field, ...) bool field;
#define CHOICE(field, ...) bool field;
struct typed {
    struct config value;
    struct given {
#include "options.def"
    } given;
};

extern const struct option run_options[];    /* the rows, of a struct typed; ended by {0} */
extern const struct option config_options[]; /* the same of a struct config */

/* Where settings come from that were not typed: a checkpoint's texts, say. */
struct config_source {
    const char *name;                                        /* for the words */
    const char *(*text)(const void *self, const char *name); /* NULL: it does not say */
    const void *self;
};

/* What was typed, then, where it was not, what the source says of the rows that have this flag, then the
 * defaults. Errors: `code`: a value of the source that is none. */
int config_settle(struct config *config, const struct typed *typed, const struct config_source *source,
                  int flag, int code, struct error *error);

/* The same of a run that begins: the source is the recipe of the model that was typed. Errors: ERROR_USAGE:
 * no such model. */
int config_begin(struct config *config, const struct typed *typed, struct error *error);

/* Calls `each` with the name and the value, as it could be typed, of every row with this flag, until it
 * returns something else than OK, which is then returned. */
int config_each(const struct config *config, int flag,
                int (*each)(void *argument, const struct option *row, const char *value), void *argument);
enum { CONFIG_VALUE_BYTES = PLUGIN_TEXT_BYTES }; /* of such a value, at most */

/* " --clip=1 --precision=bf16": rows with this flag whose values are not the default, but those that are
 * named in `without`, "model,dataset". Returns out[bytes]. */
const char *config_unusual(const struct config *config, int flag, const char *without, char *out,
                           size_t bytes);

/* --clip in the numbers that gradients have: one that is too small for them is the smallest; 0: none. */
float config_clip(const struct config *config);

/* Of --no-test and --target-accuracy the one that was typed counts, whatever a checkpoint has of the other.
 */
void config_choose_test(struct config *config, const struct typed *typed);

/* Whether at most one of --batch and --batch-total was typed; the one that was typed counts, whatever the
 * settled config has of the other. Errors: ERROR_USAGE. */
int config_choose_batch(struct config *config, const struct typed *typed, struct error *error);
/* With --batch-total: an even part of it for one of so many workers, in whole micro-batches, one at least. */
int config_part(const struct config *config, int workers);
/* Whether workers may join the run while it trains (--workers). */
bool config_may_be_joined(const struct config *config);
/* Whether the batch can be divided into so many micro-batches, and whether a pipeline has several. Errors:
 * ERROR_USAGE. */
int config_check_microbatches(const struct config *config, struct error *error);

/* What --trace says: of each worker the first *first steps, and every *every-th one (0: none). Errors:
 * ERROR_USAGE. */
int config_trace(const struct config *config, long *first, long *every, struct error *error);

struct device_settings config_device_settings(const struct config *config); /* borrows from it */

#endif
