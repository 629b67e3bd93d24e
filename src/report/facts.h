/* What a run left in its folder, read for a page about it: summary.json, the texts of the checkpoint,
 * epochs.csv, and of steps.csv what fits in a picture, whatever its length. Any of them may be missing. */
#ifndef TRAINER_REPORT_FACTS_H
#define TRAINER_REPORT_FACTS_H

#include "../base/file.h"
#include "../base/json.h"
#include "../record/epochs.h"
#include "../record/summary.h"
#include "stale.h"

enum {
    FACTS_BINS = 96,       /* of time, at most */
    FACTS_EPOCHS = 1024,   /* points of a curve, about */
    FACTS_STRETCH = 2000,  /* steps in a timeline, at most */
    FACTS_WORKERS = 4096,  /* that are told apart */
    FACTS_FIRST_STEPS = 8, /* of a worker, in a timeline that begins with the run */
    FACTS_LABEL = PATH_BYTES
};

/* The five times of a step, in the order of the columns. */
enum part { PART_INPUT, PART_PULL, PART_COMPUTE, PART_PUSH, PART_WAIT, PARTS };

/* A setting as it could be typed. */
struct setting {
    char name[64]; /* without the dashes */
    char *value;   /* owned */
};

struct epoch_facts {
    struct epoch_row *rows; /* [count] owned: all epochs, or every second, fourth, ... and the last */
    int count;
    enum metric metric; /* that the scores are of */
    double best_score;  /* of all epochs; NAN: there is none */
    long unreadable;
};

struct worker_steps {
    char device[GROUP_NAME_BYTES];
    long rows, first_step, last_step;  /* as the rows count: from 1 */
    double first_s;                    /* when the last of its first steps ended */
    double seconds[FACTS_BINS][PARTS]; /* how its time was spent, in each bin */
    struct stale stale;                /* of its gradients that were applied */
};

struct step_facts {
    struct worker_steps *workers; /* [count] owned; NULL: no step was read */
    int count;
    long rows, dropped, unreadable;
    double begin_s;          /* of the first step */
    double end_s;            /* of the last step */
    double bin_s;            /* length of a bin; bin b begins at b * bin_s */
    double loss[FACTS_BINS]; /* sum over the steps that ended in the bin */
    long losses[FACTS_BINS]; /* how many they are */
    bool sampled;            /* not every step has a row */
};

/* A stretch of time, step by step. */
struct stretch {
    double from_s, length_s,
        asked_s; /* asked_s: length_s, before it ended with the last step that is drawn */
    struct stretch_step {
        int worker;
        long step, staleness;
        double end_s, ms[PARTS];
    } * steps; /* [count] owned */
    int count;
    long left_out; /* steps beyond the most */
};

struct facts {
    char folder[PATH_BYTES];
    char label[FACTS_LABEL];  /* how several runs are told apart */
    char *sentence;           /* owned; what bench.csv says of all runs of its group, NULL: nothing */
    char *failure;            /* owned; why it failed, as the table beside it says, NULL: nothing */
    int repeat;               /* of its group in a comparison, from 1; 0: of none */
    int group;                /* runs of the same contender have the same, from 0 */
    struct setting *settings; /* [setting_count] owned, in the order of a run's options */
    int setting_count;
    bool has_summary;
    struct summary summary; /* but for its config, which is NULL */
    struct epoch_facts epochs;
    struct step_facts steps;
    struct stretch stretch;
    /* Owned memory behind the summary. */
    struct json json;
    struct summary_phase phases[SUMMARY_PHASES]; /* [summary.phase_count] */
    struct worker_result *workers;
    long long *shard_bytes, *server_bytes;
    char (*member_names)[MEMBER_NAME_BYTES];   /* [summary.members] */
    double *waited_for;                        /* [summary.workers][summary.members] */
    struct summary_staleness *shard_staleness; /* [summary.shards_here] */
    struct summary_join *joins;                /* [summary.join_count] */
};

struct page; /* base/page.h */

enum facts_parts { FACTS_CURVES, FACTS_ALL }; /* without steps.csv, or with it */

/* Whether a folder has something of a run. */
bool facts_there(const char *folder);
/* Errors: ERROR_FILE: no run there; one of its files is damaged; ERROR_DEVICE (memory). */
int facts_read(struct facts *facts, const char *folder, enum facts_parts parts, struct error *error);
/* The steps between from_s and from_s + length_s, into facts->stretch. Errors: as above. */
int facts_read_stretch(struct facts *facts, double from_s, double length_s, struct error *error);
/* From its first step on, how long the first ones of its workers took; 0: none was read. */
double facts_first_s(const struct facts *facts);
void facts_free(struct facts *facts); /* safe on a zeroed or half-read one */
/* Prints where the time of the run in a folder went, as sentence_of_run: "Run 3: 4,190 examples/s, ...";
 * nothing where it has no summary. Errors: those of facts_read. */
int facts_print_sentence(const char *folder, const char *name, int number, const struct page *page,
                         struct error *error);

/* The value of a setting, or NULL. */
const char *facts_setting(const struct facts *facts, const char *name);
/* Whether it says what is kept of a run, and nothing of the training. */
bool setting_is_of_files(const char *name);
/* Epochs that were gone through: whole ones, but where the run was interrupted. */
double facts_epochs(const struct facts *facts);
int facts_epochs_wanted(const struct facts *facts); /* 0: not known */
/* The summary is about the last part of a run that was resumed, the tables are about all of it. */
bool facts_resumed(const struct facts *facts);
/* "cpu:0, cpu:1", "(cpu:0+cpu:1), (cpu:2+cpu:3)"; of many, "16 devices, cpu:0 to cpu:15". Returns out[bytes].
 */
const char *facts_devices(const struct facts *facts, char *out, size_t bytes);
/* "a cluster of 1 parameter server and 2 workers"; "": it was none. Returns out[bytes]. */
const char *facts_cluster(const struct facts *facts, char *out, size_t bytes);
/* When the first epoch with this test accuracy was over; NAN: none had it. */
double facts_target_s(const struct facts *facts, double accuracy);
/* "worker 1 (cpu:1)", into out[bytes]; returns it. */
const char *facts_worker(const struct facts *facts, int worker, char *out, size_t bytes);

/* For the files that facts are read by. */
int settings_read(struct facts *facts, struct error *error);
int summary_read(struct facts *facts, struct error *error);
int epochs_read(struct facts *facts, const char *path, struct error *error);
int steps_read(struct facts *facts, const char *path, struct error *error);

#endif
