/* A worker's process and its devices: each has a thread and a connection of its own, and they share what is
 * built once. worker.c has the process, remote_device.c the thread. */
#ifndef TRAINER_CLUSTER_REMOTE_RUN_H
#define TRAINER_CLUSTER_REMOTE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "../bridge/remote.h"
#include "../engine/replica.h"
#include "../record/lines.h"
#include "../record/output.h"
#include "../record/progress.h"
#include "../run/setup.h"
#include "far.h"
#include "ranks.h"
#include "sessions.h"

struct remote_run {
    struct cluster_session *session; /* borrowed, as the next three */
    const struct typed *typed;       /* the session's */
    const struct cluster *cluster;
    const _Atomic bool *give_up;
    struct setup setup;
    struct network_settings network_settings; /* of its network */
    struct pace *paces;                       /* [setup.device_count] for --share=auto; or NULL */
    struct replicas replicas;
    struct groups groups;           /* of its devices, where they are groups */
    struct fingerprint fingerprint; /* of what was built */
    struct world *world;            /* borrowed */
    const char **names;             /* [setup.device_count] of the devices' own threads */
    struct log log;
    struct output_scene scene;
    struct telling telling; /* of the lines alone */
    struct progress progress;
    struct lines lines; /* of the steps, on standard output */
    struct lock say;    /* around progress, and around the lines with the log that they are of */
    struct lock build;  /* around what all devices share, which the first that is told builds */
    bool built;         /* or it failed: then for all, with these words */
    struct error unbuilt;
    struct event ended; /* one post per device that has ended */
    atomic_bool begun;  /* all have come, and the training begins */
    atomic_int failed;  /* the device that failed first, whose error is complete; -1: none */
    struct remote_device {
        struct remote_run *run;
        int index;
        struct world_thread *thread;
        char name[GROUP_NAME_BYTES];
        struct hello hello;
        struct remote remote;
        struct finish finish;
        double began_s; /* when all had come */
        struct error error;
        struct far far;
        struct ranked ranked;
        float *own;                /* [layout floats] NULL where far has them: */
        float *weights, *gradient; /* [layout floats] */
        struct fingerprint built;  /* of what was built, and this device's pace */
        struct stream stream;      /* once all have come */
        int size;                  /* examples of its batches; 0: it is not known yet, so the next ones: */
        int *sizes;                /* [workers] all `size`, where it has a share; else NULL */
        int *numbers;              /* [size + 1] examples, and the next one */
        uint64_t *keys;            /* [size + 1] what they are augmented by */
        int *soon;                 /* [stream_soon_room] what is read meanwhile */
    } * remotes;                   /* [setup.device_count] */
};

/* Of a device's thread: meets all hosts, builds, and computes batches until the leader ends the training, or
 * until something fails: then device->error says what. Posts run->ended. */
void remote_device_body(void *device);
/* Any thread: prints the lines of the steps so far. */
void remote_run_print(struct remote_run *run);
/* Whether SIGTERM lets this process leave in order; and whether it, or Ctrl-C, ends it instead. */
bool remote_run_leaves(const struct remote_run *run);
bool remote_run_is_interrupted(const struct remote_run *run);

#endif
