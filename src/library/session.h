/* Private to src/library: what a session is made of. */
#ifndef TRAINER_LIBRARY_SESSION_H
#define TRAINER_LIBRARY_SESSION_H

#include "../program/partition.h"
#include "parts.h"
#include "team.h"

enum { COMPILED = 16 }; /* lists of fetches that are kept compiled; then the oldest goes */

/* What one list of fetches needs. */
struct compiled {
    node *fetches; /* [count] */
    int count;
    bool *needed; /* [nodes] */
    int nodes;    /* of the graph, when it was compiled */
    bool ready;   /* the rest is there */
    /* On one device. */
    struct program *program;
    struct arena *arena;
    /* On several: the graph may get nodes while parts of it run, so they have it as it was. */
    struct graph graph; /* nodes are its own copy */
    struct partition *partition;
    struct rendezvous *rendezvous;
    int here; /* the part that the calling thread runs; NONE */
};

/* A device's memory. */
struct slabs {
    float *weights;   /* [floats] */
    float *gradients; /* [floats] where fetched gradients of variables arrive */
    bool own;         /* else it is that of an earlier device */
};

struct trainer_session {
    const struct graph *graph; /* borrowed */
    struct device *devices;    /* [device_count] */
    int device_count;
    size_t floats;       /* of the variables, when it was opened */
    struct slabs *slabs; /* [device_count] */
    int *home;           /* [layout.count] the device that has the value of each variable */
    struct team *team;   /* NULL: one device */
    int *pins;           /* [pin_count] by node: the number of its device, from 1; 0: none */
    int pin_count;
    char *layers; /* as placement.layers */
    struct compiled compiled[COMPILED];
    int next;                   /* of them, to be replaced */
    const struct compiled *ran; /* the last run; NULL: there was none */
    bool stale; /* what is compiled was placed otherwise, or failed: it goes at the next run */
};

/* place.c: on several devices. compile: partition and rendezvous of a compiled, which has its fetches. */
int session_compile_parts(const struct trainer_session *s, struct compiled *compiled, struct error *error);
void session_forget_parts(struct compiled *compiled);
/* Runs the parts, and all variables are then where they are computed. */
int session_run_parts(struct trainer_session *s, const struct compiled *compiled, struct error *error);

#endif
