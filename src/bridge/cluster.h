/* The cluster: which processes it has, where they are, and which one this process is.
 *
 * Named as in TensorFlow, in one of three ways: lists of addresses on the command line, a JSON file, or
 * the environment variable TF_CONFIG (docs/cluster.md). A `ps` holds a part of the store, a `worker`
 * trains. The chief is worker 0; it may also be a separate job, before the workers. Without a ps the
 * cluster is mirrored: the workers' processes hold the store between them.
 *
 * Addresses come as a whole from the first source that has any: the options, then TF_CONFIG. Job and task
 * come, each, from the first of options, file and TF_CONFIG. */
#ifndef TRAINER_BRIDGE_CLUSTER_H
#define TRAINER_BRIDGE_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include "../base/error.h"
#include "../base/file.h"
#include "../config/config.h"
#include "addresses.h"
#include "secret.h"

enum cluster_role {
    CLUSTER_NONE,   /* there is no cluster: this process is alone */
    CLUSTER_PS,     /* has a part of the store */
    CLUSTER_WORKER, /* any but worker 0 */
    CLUSTER_CHIEF,  /* worker 0, whether it was called chief or worker */
};

/* --link: in the order of its choices. */
enum link_choice { LINK_AUTO, LINK_TCP, LINK_SHM, LINK_UCX };

struct cluster {
    struct addresses ps, workers; /* both empty: no cluster; else at least one worker */
    bool chief_is_job; /* the chief is workers[0] in any case; task N of the job `worker` is workers[N + 1] */
    bool mirrored;     /* the ps are in the processes of the first workers, with their addresses */
    enum cluster_role role;
    int task;             /* of this process: its place in ps or in workers; -1 without a role */
    uint64_t process;     /* drawn by lot: no other process has it */
    struct secret secret; /* cluster_resolve leaves this to its caller, and the next */
    bool insecure;        /* other machines may be spoken to without a secret */
    bool tcp_alone;       /* no memory is shared with other processes of this machine */
    bool shm_alone, ucx;  /* --link=shm, --link=ucx */
    /* Of a launcher that has started this process (launch/launch.h): */
    const char *by; /* "Slurm"; NULL: none has */
    int here, turn; /* workers of this machine, 0: they are counted by their hosts; and this one among them */
    int cores;      /* of the launcher here, which may have given each process some of them; 0: not known */
};

/* ", by Slurm" or ", started by --hosts", for the first lines; or "". */
struct cluster_by {
    char words[64];
};
struct cluster_by cluster_by(const struct cluster *cluster);

/* What a process that holds a part of the store is called: "parameter server"; in a mirrored cluster
 * "process". */
const char *cluster_server(const struct cluster *cluster);

/* Whether this process holds a part of the store: as a ps, or in a mirrored cluster beside its devices. */
bool cluster_holds(const struct cluster *cluster);

/* How many workers there are on this worker's machine, itself included, which divide its cores; 0 for a
 * parameter server. On one machine are those with the same host, and those whose host is this machine by
 * world_is_here. */
int cluster_workers_here(const struct cluster *cluster);

/* Finds out who is where, by the options job, task, ps-hosts, worker-hosts and cluster. `tf_config` is the
 * environment variable, NULL when there is none; without any cluster *out has role CLUSTER_NONE. Errors:
 * ERROR_USAGE for options and TF_CONFIG, ERROR_FILE for the file: not JSON, a wrong type, an address that is
 * none or is there twice, no workers, an unknown job, a task that the cluster does not have; ERROR_DEVICE: no
 * random numbers. */
int cluster_resolve(struct cluster *out, const struct config *typed, const char *tf_config,
                    struct error *error);
void cluster_free(struct cluster *cluster); /* safe on a zeroed one */

#endif
