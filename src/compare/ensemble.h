/* An ensemble (`trainer ensemble`): members with other seeds, other settings or other slices of the data,
 * each trained on one device, then asked together. Its folder has ensemble.json, what was asked for;
 * ensemble.csv, a row for each member, which is written anew whenever one has ended; and the members,
 * ordinary runs named 1, 2, ... An ensemble that was killed goes on from these three. */
#ifndef TRAINER_COMPARE_ENSEMBLE_H
#define TRAINER_COMPARE_ENSEMBLE_H

#include "../base/page.h"
#include "../infer/ensemble.h"
#include "../record/progress.h"
#include "lanes.h"

enum { MEMBER_TEXT_BYTES = 4096, MEMBERS_TYPED = 32 };

/* Filled from the rows of the command. */
struct ensemble_settings {
    struct typed run;                             /* first: the rows of a run fill it */
    char member[MEMBER_TEXT_BYTES];               /* the last one that was typed */
    char typed[MEMBERS_TYPED][MEMBER_TEXT_BYTES]; /* [typed_count] all of them: "model=cnn batch=64" */
    int typed_count;
    int members; /* 0: as many as were typed, or one for each device */
};
/* Adds one that was typed. Errors: ERROR_USAGE: too many. */
int ensemble_add(struct ensemble_settings *settings, const char *text, struct error *error);

struct ensemble_member {
    bool done;
    double seconds, score; /* of training; on the test part; NAN: not yet */
    double took;           /* its lane's own: `seconds`, before all may read it */
    bool found;            /* the same: there was a run in its folder, which it goes on with */
    struct error failure;
};

struct ensemble_run {
    struct ensemble_settings settings;
    char out[PATH_BYTES];
    struct ensemble_member *members; /* [count] */
    int count, next;
    bool resumed;
    enum metric metric; /* of the scores */
    struct lanes lanes;
    struct typed *typed;  /* [lanes] of the member in hand */
    struct error stopped; /* what ends it: a file that cannot be written */
    struct progress progress;
    void *hold;
    struct ensemble_result result;
};

/* A new one, or, where settings->run.value.resume names an ensemble, that one. Errors: ERROR_USAGE: settings
 * that cannot be had; ERROR_FILE: the folder. */
int ensemble_begin(struct ensemble_run *run, const struct ensemble_settings *settings, struct error *error);
/* Trains all, then tests each and all. A member that fails is a row, and the others are the ensemble. Errors:
 * ERROR_INTERRUPTED; ERROR_FILE; that of the first member, where all have failed. */
int ensemble_train(struct ensemble_run *run, struct error *error);
int ensemble_print(const struct ensemble_run *run, const struct page *page, struct error *error);
void ensemble_end(struct ensemble_run *run); /* safe on a half-open one */

/* --- ensemble_files.c --- */

int ensemble_save(const struct ensemble_run *run, struct error *error); /* ensemble.json */
/* Fills in what was not typed. Errors: ERROR_USAGE: what was typed differs; ERROR_FILE. */
int ensemble_load(struct ensemble_settings *settings, const char *folder, struct error *error);
int ensemble_write(const struct ensemble_run *run, struct error *error); /* ensemble.csv */
int ensemble_read(struct ensemble_run *run, struct error *error);        /* which members have ended */
const char *ensemble_typed(const struct ensemble_run *run, int member);  /* by --member, "": nothing */

#endif
