/* Data sets: one plug-in per file in datasets/. An open data set is constant and shared by all workers. */
#ifndef TRAINER_DATA_DATASET_H
#define TRAINER_DATA_DATASET_H

#include "../base/mapping.h"
#include "../base/option.h"
#include "../device/device.h"
#include "../graph/codes.h"
#include "metric.h"
#include "picture.h"

enum { NOTICE_BYTES = 400 };

struct dataset_taker {
    void *self;
    /* Some rows, as they are stored, behind those before; part 0: training, 1: test. All rows have as many
     * bytes. Labels are in the data set as ever. */
    int (*take)(void *self, int part, const void *rows, size_t count, size_t row_bytes, struct error *error);
};

struct dataset {
    const char *name;
    enum picture_fit fit;      /* how files of pictures became examples; PICTURE_NONE: they were none */
    char notice[NOTICE_BYTES]; /* what its owner should know, in one line for standard error; "": nothing */
    char table[NOTICE_BYTES]; /* how its file was read, in one line for the beginning of a run; "": nothing */
    char *columns;        /* columns_write of a table's columns, owned; NULL: it is no table of the user's */
    struct shape shape;   /* of one example: [64], [784], [24, 24, 3] */
    struct codes codes;   /* which numbers of an example the network embeds; columns 0: none */
    bool measured;        /* the numbers of an example are measurements, no pixels of an image */
    enum task task;       /* what the labels are */
    int classes;          /* or labels, or values of an example: the outputs of a network */
    char **class_names;   /* [classes], owned: one block, made by dataset_class_names */
    char **feature_names; /* [features], owned: one block, made by dataset_feature_names, or NULL */
    struct examples train, test;
    struct examples validation; /* held out of the training part; count 0: none is */
    int block; /* examples that lie side by side and come near each other in training (stream.h); 0: any order
                */
    bool borrowed;           /* the training part's memory is the caller's and stays as it is: blocks[0] and
                                blocks[1] are free for a copy, which is made before examples change places */
    void *blocks[8];         /* memory that the examples point into; freed by dataset_close */
    struct mapping files[4]; /* files that they point into; unmapped by it */
    /* Before `open`, of whoever does not want all examples in memory: takes them as they are read. A data set
     * that can hands its rows over, the training part first, and keeps none: then bytes and floats are NULL.
     * Borrowed; NULL: they are kept. */
    const struct dataset_taker *taker;
    /* csv with standardize=1, and whoever else transforms its features: x' = (x - mean) / deviation; NULL:
     * none. [features], owned. Already applied to train and test; predict applies it to new rows; saved in
     * checkpoints. */
    float *mean, *deviation;
    struct units units; /* of targets that were brought to mean 0 and deviation 1; owned */
};

struct dataset_plugin {
    struct plugin plugin; /* settings begin with a `struct dataset_common` */
    /* Reads everything. `folders` are searched in order for the data set's folder, ended by NULL. On error
     * the caller closes. */
    int (*open)(struct dataset *dataset, const void *settings, const char *const *folders,
                struct error *error);
};

/* First member of every data set's settings; its row is DATASET_COMMON_ROWS. */
struct dataset_common {
    int take; /* use only the first N training examples; 0: all */
};
#define DATASET_COMMON_ROWS                                                                                  \
    OPTION_ROW(INT, "take", struct dataset_common, take, .fallback = "0", .least = 0, .most = 2147483647,    \
               .unit = "examples", .flags = OPTION_ASIDE,                                                    \
               .help = "train on the first N training examples only (0: all)")

extern const struct dataset_plugin *const datasets[]; /* generated, ended by NULL */
extern const struct plugin_kind dataset_kind;         /* generated: the same */

static inline const struct dataset_plugin *dataset_of(const struct choice *choice) {
    return (const struct dataset_plugin *)(const void *)choice->plugin;
}

/* Opens the chosen data set and applies `take`. Looks for files in data_dir (NULL: not given), $TRAINER_DATA,
 * ~/.cache/trainer. */
int dataset_open(struct dataset *dataset, const struct choice *choice, const char *data_dir,
                 struct error *error);
/* The same, for a taker. */
int dataset_open_for(struct dataset *dataset, const struct choice *choice, const char *data_dir,
                     const struct dataset_taker *taker, struct error *error);
/* Takes this share of the training examples, at least one and not all, out into the validation part: always
 * the same ones. What is trained on changes its order. Errors: ERROR_USAGE. */
int dataset_hold_out(struct dataset *dataset, double share, struct error *error);
/* Keeps of the training part one slice of equal ones, "2/4", or "all": always the same ones, chosen at
 * random. After the validation part was taken out. Errors: ERROR_USAGE: it is no slice. */
int dataset_slice(struct dataset *dataset, const char *slice, struct error *error);
/* Whether two choices are one data set with the same settings, however they were typed; those that change no
 * example are not looked at (OPTION_ASIDE). */
bool dataset_same(const struct choice *a, const struct choice *b);
/* Whether its examples and their outputs are such as a network was trained on. Errors: ERROR_USAGE. */
int dataset_expect(const struct dataset *dataset, const struct shape *shape, enum task task, int outputs,
                   struct error *error);
/* Whether its classes and its features have the names, a tab between two, of those that a network was trained
 * on. A class that is called by its number, and texts that are NULL, say nothing. Errors: ERROR_USAGE, with
 * the first that differs. */
int dataset_expect_names(const struct dataset *dataset, const char *classes, const char *features,
                         struct error *error);
/* path = where a data set's files belong: its folder in the first of those places. Errors: ERROR_USAGE: there
 * is none. */
int dataset_folder(char path[1024], const char *dataset, const char *data_dir, struct error *error);
void dataset_close(struct dataset *dataset); /* safe on a zeroed or half-open one */

/* Helpers for the plug-ins. */
/* `labels` are those of the examples: int [count] of classes, else float [count][dataset->classes]. */
void dataset_label(const struct dataset *dataset, struct examples *examples, const void *labels);
/* Brings the targets of both parts, which the data set owns, to mean 0 and deviation 1 over the training
 * part, and keeps both in its `units`. */
int dataset_standardize_targets(struct dataset *dataset, struct error *error);
/* path = the file `name` or `name`.gz in the data set's folder; or in the folder that the official archive
 * unpacks to, in or beside that one (archive NULL: there is none). */
int dataset_find_file(char path[1024], const char *dataset, const char *archive, const char *name,
                      const char *const *folders, struct error *error);
int dataset_class_names(struct dataset *dataset, const char *const *names, int classes,
                        struct error *error); /* names NULL: "0", "1", ... */
/* Of the name of a class or feature: what was expected instead, as in "a name without a tab"; NULL: nothing.
 * Names are kept in lists that tabs separate, in files that are UTF-8: in another encoding two of them could
 * become the same. */
const char *dataset_name_expected(const char *name);
int dataset_feature_names(struct dataset *dataset, const char *const *names, int features,
                          struct error *error);

#endif
