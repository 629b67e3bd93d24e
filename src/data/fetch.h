/* Fetches a data set: downloads its files, checks their SHA-256, unpacks them, and puts them where the
 * readers look. A file gets its name only when it is the right one. */
#ifndef TRAINER_DATA_FETCH_H
#define TRAINER_DATA_FETCH_H

#include "sources.h"
#include "../base/error.h"

enum fetch_event {
    FETCH_THERE,  /* the file is there and right: nothing is downloaded */
    FETCH_WRONG,  /* one of its name is there, but not the right one: it is kept under another name */
    FETCH_RESUME, /* so many bytes of it are here already */
    FETCH_MOVING, /* so many bytes have come */
    FETCH_FAILED, /* one address failed (`name` is its error's words); the next one is tried */
    FETCH_DONE,   /* the file is in its place */
};

struct fetch_report {
    enum fetch_event event;
    const char *name;
    long long bytes, total; /* total: 0 when not known */
    double bytes_per_s;
};

struct fetch {
    const struct source *source;
    const char *folder; /* where the files go; it is made, and not left behind empty */
    const char *from;   /* address of a folder to download from instead of the public ones, or NULL */
    int timeout_s;      /* how long a server may say nothing */
    void (*tell)(void *argument, const struct fetch_report *report);
    void *argument;
};

/* Errors: ERROR_PEER: no server delivered it; ERROR_FILE: the delivered file is wrong, or cannot be
 * written; ERROR_INTERRUPTED. What came of a file stays beside it as NAME.part, and the next call goes on
 * from there; what turned out wrong is removed. */
int fetch_run(const struct fetch *fetch, struct error *error);

#endif
