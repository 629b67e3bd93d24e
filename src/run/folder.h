/* The folder of a run: its own alone, and never one that has a run already, unless that is asked for. */
#ifndef TRAINER_RUN_FOLDER_H
#define TRAINER_RUN_FOLDER_H

#include <stdbool.h>
#include "../base/file.h"

/* The list of its runs that a comparison leaves when it begins: a line for each strategy, "FOLDER REPEATS",
 * for the runs FOLDER/1 to FOLDER/REPEATS. */
#define FOLDER_COMPARISON ".runs"
/* What a sweep leaves in its folder: what was asked for. */
#define FOLDER_SWEEP "sweep.json"
/* What tells that a folder has a run. */
#define FOLDER_CHECKPOINT "checkpoint/state.safetensors"
#define FOLDER_BEST "checkpoint/best/state.safetensors"

/* What is known of the folder before it is opened. */
struct folder_settings {
    bool named;         /* by the user; else any free name that begins with it will do */
    bool replace;       /* --replace: a run that is there may go */
    const char *resume; /* the run that goes on, which may be there; "": none */
};

/* A name for it: runs/<time>-<model>-<what>. Errors: ERROR_INTERNAL. */
int folder_name(char path[PATH_BYTES], const char *model, const char *what, struct error *error);

/* Whether a folder has neither run nor comparison, sweep or ensemble, so that `what` ("a sweep") can begin
 * there. Errors: ERROR_FILE: it has one. */
int folder_check_free(const char *folder, const char *what, struct error *error);

enum folder_state {
    FOLDER_UNUSED,
    FOLDER_RESUMED, /* the run that goes on is there */
    FOLDER_EARLIER  /* another run is there, which may be replaced */
};

/* Makes the folder, whose name `path` then is, and holds it against other runs until file_release. Errors:
 * ERROR_FILE: it has a run, which the words say how to go on with and how to replace; another run writes
 * there; it has a comparison; it cannot be made. */
int folder_open(char path[PATH_BYTES], const struct folder_settings *settings, void **hold,
                enum folder_state *state, struct error *error);
/* Removes a file of an earlier run or comparison. *was: it was there. Errors: ERROR_FILE. */
int folder_remove(const char *folder, const char *name, bool *was, struct error *error);
/* An earlier run that is to be replaced goes only when the new one has its first checkpoint. Its logs are put
 * aside, under names that end in .replaced; then either all of it is removed, or, where the new run came to
 * nothing, its logs are put back in their place. folder_open puts them back, too, after a run that was
 * killed. */
int folder_set_aside(const char *folder, struct error *error);
int folder_remove_earlier(const char *folder, struct error *error);
int folder_put_back(const char *folder, struct error *error);
/* Removes all that outputs left, under whatever name. Errors: ERROR_FILE. */
int folder_remove_outputs(const char *folder, struct error *error);
/* Keeps the logs of a run that left no checkpoint, as steps.csv.1 and so on, and its event files as
 * events.kept.*. Errors: ERROR_FILE. */
int folder_keep_logs(const char *folder, struct error *error);

#endif
