/* Downloads over HTTP and HTTPS, by libcurl. Bytes that the file has already are not requested again, a
 * broken connection is resumed, and no wait is longer than the caller's timeout. */
#ifndef TRAINER_WORLD_DOWNLOAD_H
#define TRAINER_WORLD_DOWNLOAD_H

#include <stdio.h>
#include "../base/error.h"

struct downloader; /* keeps connections open between downloads */

int downloader_open(struct downloader **out, struct error *error);
void downloader_close(struct downloader *downloader); /* NULL is fine */

struct download {
    const char *address; /* http:// or https:// */
    FILE *file;       /* borrowed; for reading and writing, not buffered; what it holds are the first bytes */
    const char *name; /* of that file, for the words */
    long long bytes;  /* size that the whole must have; 0: not known */
    long long most;   /* never more than this */
    int timeout_s;    /* how long a server may say nothing */
    /* Called now and then, some ten times a second at most. bytes: in the file; total: 0 when not known. */
    void (*progress)(void *argument, long long bytes, long long total, double bytes_per_s);
    void *argument;
};

/* Adds to the file what it lacks. A server that sends the whole instead of the rest makes it begin anew.
 * *kept = bytes that were there before and still are. Errors: ERROR_PEER: no connection, a server that is
 * silent, or one that cuts the connection without having sent anything; ERROR_FILE: another status than "here
 * it is", a wrong size, or the file cannot be written; ERROR_INTERRUPTED. After each of them the file holds
 * what came, to go on with. */
int download_run(struct downloader *downloader, const struct download *download, long long *kept,
                 struct error *error);

#endif
