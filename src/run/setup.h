/* What every process of a run opens first, whatever it does in it: the plug-ins that were chosen, devices,
 * the data set, and the network in training form. */
#ifndef TRAINER_RUN_SETUP_H
#define TRAINER_RUN_SETUP_H

#include "../config/config.h"
#include "../data/dataset.h"
#include "../device/groups.h"
#include "../engine/balanced.h"
#include "../engine/network.h"
#include "../engine/paces.h"
#include "../engine/step_time.h"
#include "../store/phases.h"

/* The plug-ins that were chosen. */
struct choices {
    /* strategy: of the phase that the run is in. */
    struct choice model, dataset, strategy, optimizer, schedule, compressor;
};

struct setup {
    struct config config; /* settled; devices are named as they turned out to be */
    bool embedded;        /* nothing is to be printed */
    /* Instead of the config's, which then takes its name; NULL: none. */
    const struct choice *own_dataset, *own_strategy;
    int processes; /* of this machine that divide its cores; 0 or 1: this one has all */
    struct choices choices;
    struct phases phases; /* all strategies that the run will have */
    int shards;           /* into which the weights are cut, over all processes that have some */
    struct device
        *devices;      /* [device_count * group] as groups_spread has them: the first ones are the workers' */
    int device_count;  /* workers here */
    int group;         /* devices of a worker */
    bool cores_shared; /* devices have more threads than there are cores */
    struct dataset dataset;
    enum loss loss;           /* what --loss means for it */
    struct network network;   /* for training, of a micro-batch */
    struct balanced balanced; /* of --place=auto, once it is found */
};

/* Chooses the plug-ins by the config; `parts`: how many processes have a part of the shards each, rounds the
 * number of shards up to as many at each. Errors: ERROR_USAGE: an unknown plug-in or setting, a strategy that
 * cannot be had over several parts; `mirrored` says in which words. */
int setup_choose(struct setup *setup, int parts, bool mirrored, struct error *error);
int setup_open_devices(struct setup *setup, struct error *error);
int setup_open_network(struct setup *setup, struct error *error); /* and the data set */
/* Whether the shards of a run with these workers live on GPUs: with all of them, or as --homes says. */
bool setup_lives_on_gpus(const struct setup *setup);
/* Whether setup_place has to measure, which takes seconds. */
bool setup_measures(const struct setup *setup);
/* What --place=auto means becomes config.place, for a process whose devices compute, once the network is
 * there. has_store: the weights are this process's. Errors: those of balanced_place. */
int setup_place(struct setup *setup, struct world *world, bool has_store, struct error *error);
/* What --place=auto and --share=auto measure. has_store: as above. */
struct batch_work setup_batch_work(const struct setup *setup, struct world *world, bool has_store);
/* What --share=auto measures of the devices here; groups: setup_groups; network: setup_network_settings of
 * it, borrowed. */
struct paces_work setup_paces_work(const struct setup *setup, struct world *world, bool has_store,
                                   const struct groups *groups, const struct network_settings *network);
/* The groups of a run's devices, where a worker has several: *groups filled, and returned; else NULL. */
const struct groups *setup_groups(const struct setup *setup, struct world *world, struct groups *groups);
/* What a worker here is called by its devices. */
void setup_worker_name(const struct setup *setup, int worker, char out[GROUP_NAME_BYTES]);
/* simulate.c: what --simulate says, and whether all else can be had with it; then, once the devices are open,
 * whether these can be simulated. Errors: ERROR_USAGE. */
int setup_check_simulated(const struct config *config, struct step_time *step_time, struct error *error);
int setup_check_simulated_devices(const struct setup *setup, struct error *error);
void setup_close(struct setup *setup); /* safe on a zeroed or half-open one */

/* What its network was made for; evaluation wants the same with other batches. */
struct network_settings setup_network_settings(const struct setup *setup);

#endif
