/* Checkpoints: weights, optimizer state and position, independent of strategy and number of workers.
 *
 * DIR/checkpoint/state.safetensors holds everything in one file, so that one rename replaces the old
 * state. It has the tensors "<range>" and "<vector>:<range>" (for example "momentum:dense1/kernel";
 * "average:" is the moving average of the weights, "owed:" what compressing has left out of gradients), and
 * the texts below as metadata, with a checksum. `checkpoint_read` accepts DIR, DIR/checkpoint or the file
 * itself. */
#ifndef TRAINER_OUTPUT_CHECKPOINT_H
#define TRAINER_OUTPUT_CHECKPOINT_H

#include "../base/file.h"
#include "../device/update.h"
#include "../graph/layout.h"
#include "safetensors.h"

struct snapshot {
    const struct state *state;
    const struct text_entry *texts; /* [text_count]: settings and position */
    int text_count;
};

/* The last state of a run, in DIR/checkpoint; the one after the best epoch, in DIR/checkpoint/best. */
enum checkpoint_which { CHECKPOINT_LAST, CHECKPOINT_BEST };

/* Writes state.safetensors there (temporary name, fsync, rename). Errors: ERROR_FILE;
 * ERROR_DIVERGED: a number in it is not finite, and what was there before is left alone. */
int checkpoint_write(const char *folder, enum checkpoint_which which, const struct layout *layout,
                     const struct snapshot *snapshot, struct error *error);

/* The run's folder: DIR of DIR, DIR/checkpoint and DIR/checkpoint/state.safetensors; of any other file, the
 * file. */
void checkpoint_run(const char *path, char out[PATH_BYTES]);

/* Whether that is the folder of a run's best epoch, DIR/checkpoint/best. */
bool checkpoint_is_best(const char *path);

/* Reads a checkpoint's file; names and texts can then be looked up with safetensors_tensor and
 * safetensors_text. */
int checkpoint_read(const char *path, struct safetensors *content, struct error *error);

/* Copies named tensors into a flat vector: for each range the tensor "<prefix><range name>". Errors
 * (ERROR_FILE, `path` for the words): one is missing, has another shape (both named), has a number that is
 * not finite, or, when `exact`, one is there that no range has. */
int checkpoint_load(const char *path, const struct safetensors *content, const char *prefix,
                    const struct layout *layout, bool exact, float *values, struct error *error);
/* Whether it could: before memory is taken for the values. The same errors. */
int checkpoint_fits(const char *path, const struct safetensors *content, const char *prefix,
                    const struct layout *layout, bool exact, struct error *error);

/* A number from the texts; `usual` when it is not there, or is no finite number and nothing else. */
long long checkpoint_number(const struct safetensors *checkpoint, const char *name, long long usual);
double checkpoint_real(const struct safetensors *checkpoint, const char *name, double usual);
/* A list of numbers "1,2,3" into values[count]; false when there are not exactly that many, all finite. */
bool checkpoint_reals(const char *text, float *values, int count);
/* The shape of one example, from the texts; false when it is not there, or is none. */
bool checkpoint_shape(const struct safetensors *checkpoint, struct shape *shape);
/* Whether it has the vector of that name, "average", too. */
bool checkpoint_has(const struct safetensors *checkpoint, const char *vector, const struct layout *layout);

/* Writes the model alone: FILE with a tensor a range and the given texts. */
int model_write(const char *path, const struct layout *layout, const float *weights,
                const struct text_entry *texts, int text_count, struct error *error);

#endif
