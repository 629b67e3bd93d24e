/* The event files of a run: in its folder and in those of its workers, worker-0 and so on, each named
 * events.out.tfevents.<seconds since 1970>.trainer. TensorBoard reads every file of a folder whose name has
 * "tfevents", in the order of their names. Files of other programs are never touched. Errors: ERROR_FILE. */
#ifndef TRAINER_FORMATS_EVENT_FILES_H
#define TRAINER_FORMATS_EVENT_FILES_H

#include <stdio.h>
#include "../base/file.h"

/* Makes and opens a new one in the folder (NULL: that failed), later than all that are there. */
int event_file_next(FILE **file, char path[PATH_BYTES], const char *folder, long long utc_seconds,
                    struct error *error);

/* The path of the one that is there now and was begun last; "": there is none. */
int event_file_last(char path[PATH_BYTES], const char *folder, struct error *error);

/* Whether the folder itself has one. */
bool event_files_are_in(const char *folder);

/* Under names that TensorBoard does not read: until the run is replaced, or for good. */
int event_files_set_aside(const char *folder, struct error *error);
int event_files_keep(const char *folder, struct error *error);
/* Of those that were set aside: back under their names, instead of what is there now; or removed. */
int event_files_put_back(const char *folder, struct error *error);
int event_files_drop(const char *folder, struct error *error);
/* All of them, and the workers' folders where nothing else is in them. */
int event_files_remove(const char *folder, struct error *error);

#endif
