/* The launchers that are known. The first row counts whose rank and size are there, so those that run inside
 * another one stand before it: torchrun in a step of Slurm, mpirun in an allocation. See launchers.h. */
#include "launchers.h"

#include <stdio.h>
#include <string.h>

#include "../base/rng.h"

enum { NAMES = 4 };

struct launcher {
    const char *name;
    /* The first of these that is there says it. */
    const char *rank[NAMES], *size[NAMES], *local_rank[NAMES], *local_size[NAMES];
    const char *needs; /* a variable without which it was somebody else; NULL: none */
    const char *master, *port;
    int port_step;          /* its own process listens at `port`, so ours begin behind it */
    const char *job[NAMES]; /* all of them together are the job's number */
    /* More of it; NULL: there is none. *is_it: false: it was somebody else. */
    int (*look)(struct started *started, launch_variable *variable, bool *is_it, struct error *error);
};

/* --- variables --- */

static const char *value_of(launch_variable *variable, const char *name) {
    const char *value = name ? variable(name) : NULL;
    return value && value[0] != '\0' ? value : NULL;
}

/* The first name that is there; NULL: none. */
static const char *first_name(launch_variable *variable, const char *const names[NAMES]) {
    for (int i = 0; i < NAMES && names[i]; i++)
        if (value_of(variable, names[i])) return names[i];
    return NULL;
}

static int read_number(launch_variable *variable, const char *name, int least, int most, int *number,
                       struct error *error) {
    const char *value = value_of(variable, name);
    *number = address_digits(value, most);
    if (*number >= least) return OK;
    return error_set(error, ERROR_USAGE, "%s: found \"%.40s\", expected %d to %d (--launcher=none: alone)",
                     name, value, least, most);
}

/* --- Slurm --- */

/* Node of a rank by the counts: one node after the other, or all in turn. */
static int node_of(const int *counts, int nodes, bool in_turn, int rank) {
    int left[ADDRESSES_MOST], at = 0;
    memcpy(left, counts, (size_t)nodes * sizeof *left);
    for (int r = 0;; r++) {
        while (left[at] == 0) at = (at + 1) % nodes;
        if (r == rank) return at;
        left[at]--;
        if (in_turn) at = (at + 1) % nodes;
    }
}

/* srun says where the tasks are by names, counts, and the way in which it has spread them. */
static int place_tasks(struct started *started, const struct places *nodes, launch_variable *variable,
                       struct error *error) {
    static const char list[] = "SLURM_STEP_TASKS_PER_NODE";
    const char *text = value_of(variable, list), *way = value_of(variable, "SLURM_DISTRIBUTION");
    const char *own = value_of(variable, "SLURM_NODEID");
    const bool in_turn = way && strncmp(way, "cyclic", 6) == 0;
    int counts[ADDRESSES_MOST], count = 0, sum = 0;
    if (!text) return OK;
    RETURN_IF(places_read_counts(counts, ADDRESSES_MOST, &count, text, list, error));
    for (int n = 0; n < count; n++) sum += counts[n];
    if (count != nodes->count || sum != started->size)
        return error_set(error, ERROR_USAGE, "%s: found %d tasks on %d nodes, expected %d on %d", list, sum,
                         count, started->size, nodes->count);
    if (own && address_digits(own, ADDRESSES_MOST) != node_of(counts, count, in_turn, started->rank))
        return OK; /* spread in another way, which is not known here */
    for (int r = 0; r < started->size; r++)
        RETURN_IF(
            places_add(&started->places, nodes->host[node_of(counts, count, in_turn, r)], 1, list, error));
    return OK;
}

/* A process manager of MPI that srun has started on each node is not it. */
static bool is_task(const struct started *started, launch_variable *variable) {
    const char *rank = value_of(variable, "PMI_RANK"), *size = value_of(variable, "PMI_SIZE");
    if (!rank || !size) return true;
    return address_digits(rank, ADDRESSES_MOST) == started->rank &&
           address_digits(size, ADDRESSES_MOST) == started->size;
}

static int look_slurm(struct started *started, launch_variable *variable, bool *is_it, struct error *error) {
    static const char list[] = "SLURM_STEP_NODELIST";
    struct places nodes = {0};
    *is_it = is_task(started, variable);
    if (!*is_it) return OK;
    int code = places_read_nodes(&nodes, value_of(variable, list), list, error);
    if (code == OK && nodes.count == 1)
        started->local_size = started->size;
    else if (code == OK)
        code = place_tasks(started, &nodes, variable, error);
    places_free(&nodes);
    return code;
}

/* --- the table --- */

static const struct launcher launchers[] = {
    {.name = "--hosts", .rank = {"TRAINER_RANK"}, .size = {"TRAINER_SIZE"}, .port = "TRAINER_PORT"},
    {.name = "torchrun",
     .rank = {"RANK"},
     .size = {"WORLD_SIZE"},
     .local_rank = {"LOCAL_RANK"},
     .local_size = {"LOCAL_WORLD_SIZE"},
     .needs = "TORCHELASTIC_RUN_ID",
     .master = "MASTER_ADDR",
     .port = "MASTER_PORT",
     .port_step = 1,
     .job = {"TORCHELASTIC_RUN_ID"}},
    {.name = "Open MPI",
     .rank = {"OMPI_COMM_WORLD_RANK"},
     .size = {"OMPI_COMM_WORLD_SIZE"},
     .local_rank = {"OMPI_COMM_WORLD_LOCAL_RANK"},
     .local_size = {"OMPI_COMM_WORLD_LOCAL_SIZE"},
     .master = "MASTER_ADDR",
     .port = "MASTER_PORT",
     .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {.name = "Slurm",
     .rank = {"SLURM_PROCID"},
     .size = {"SLURM_STEP_NUM_TASKS"},
     .local_rank = {"SLURM_LOCALID"},
     .needs = "SLURM_STEP_NODELIST",
     .master = "MASTER_ADDR",
     .port = "MASTER_PORT",
     .job = {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     .look = look_slurm},
    {.name = "MPI (PMI)",
     .rank = {"PMI_RANK", "PALS_RANKID"},
     .size = {"PMI_SIZE", "PALS_SIZE"},
     .local_rank = {"MPI_LOCALRANKID", "PMI_LOCAL_RANK", "PALS_LOCAL_RANKID"},
     .local_size = {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE"},
     .master = "MASTER_ADDR",
     .port = "MASTER_PORT",
     .job = {"PALS_APID"}},
    {.name = "RANK and WORLD_SIZE",
     .rank = {"RANK"},
     .size = {"WORLD_SIZE"},
     .local_rank = {"LOCAL_RANK"},
     .local_size = {"LOCAL_WORLD_SIZE"},
     .master = "MASTER_ADDR",
     .port = "MASTER_PORT"},
    {.name = "Kubeflow Trainer",
     .rank = {"PET_NODE_RANK"},
     .size = {"PET_NNODES"},
     .master = "PET_MASTER_ADDR",
     .port = "PET_MASTER_PORT"},
};

static uint64_t mix_text(uint64_t mixed, const char *text) {
    for (; *text != '\0'; text++) mixed = rng_mix(mixed, (uint64_t)(unsigned char)*text);
    return mixed;
}

static int read_local(struct started *started, const struct launcher *launcher, launch_variable *variable,
                      struct error *error) {
    const char *rank = first_name(variable, launcher->local_rank);
    const char *size = first_name(variable, launcher->local_size);
    started->local_rank = -1;
    if (rank) RETURN_IF(read_number(variable, rank, 0, started->size - 1, &started->local_rank, error));
    if (size) RETURN_IF(read_number(variable, size, 1, started->size, &started->local_size, error));
    return OK;
}

static int read_port(struct started *started, const struct launcher *launcher, launch_variable *variable,
                     struct error *error) {
    if (!value_of(variable, launcher->port)) return OK;
    RETURN_IF(read_number(variable, launcher->port, 1, 65535, &started->port, error));
    started->port += launcher->port_step;
    return OK;
}

/* *is_it: whether this launcher has started the process. */
static int ask(const struct launcher *launcher, struct started *started, launch_variable *variable,
               bool *is_it, struct error *error) {
    const char *rank = first_name(variable, launcher->rank), *size = first_name(variable, launcher->size);
    *is_it = rank && size && (!launcher->needs || value_of(variable, launcher->needs));
    if (!*is_it) return OK;
    RETURN_IF(read_number(variable, size, 1, ADDRESSES_MOST, &started->size, error));
    RETURN_IF(read_number(variable, rank, 0, started->size - 1, &started->rank, error));
    RETURN_IF(read_local(started, launcher, variable, error));
    RETURN_IF(read_port(started, launcher, variable, error));
    started->by = launcher->name;
    started->master = value_of(variable, launcher->master);
    started->master_variable = launcher->master;
    for (int i = 0; i < NAMES && launcher->job[i]; i++)
        if (value_of(variable, launcher->job[i]))
            started->job = mix_text(started->job, value_of(variable, launcher->job[i]));
    return launcher->look ? launcher->look(started, variable, is_it, error) : OK;
}

int launchers_find(struct started *started, launch_variable *variable, struct error *error) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        bool is_it = false;
        *started = (struct started){0};
        RETURN_IF(ask(&launchers[i], started, variable, &is_it, error));
        if (is_it) return OK;
    }
    *started = (struct started){0};
    return OK;
}

void launchers_free(struct started *started) {
    places_free(&started->places);
}
