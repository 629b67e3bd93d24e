/* Injected faults: they show what a strategy does when a worker fails, hangs or is slow, or a server
 * hangs.
 *
 *   --fail=worker:1@step:50     that worker ends with an error at its step 50
 *   --stall=worker:1@step:50    it stands still there, for ever
 *   --stall=server:0            that server leaves its mail alone, from the start (server: all of them)
 *   --slow=cpu:1=3x             every worker with that device computes three times as long
 *   --slow=cpu:0-9=3x           the same of each of these devices
 *
 * Several are separated by commas. */
#ifndef TRAINER_TRAIN_FAULTS_H
#define TRAINER_TRAIN_FAULTS_H

#include <stdbool.h>
#include "../base/error.h"
#include "../world/world.h"

enum fault_kind { FAULT_NONE, FAULT_FAIL, FAULT_STALL };
enum { FAULTS = 16 };

struct fault {
    enum fault_kind kind;
    bool server;
    int member; /* worker or server; -1: all servers */
    long step;  /* of this worker, from 1, in this run */
};

struct slowness {
    char device[24]; /* "cpu:1", "cpu:0-9" */
    double factor;   /* at least 1 */
};

struct faults {
    struct fault list[FAULTS];
    struct slowness slow[FAULTS];
    int count, slow_count;
};

/* Parses the three options' texts (each may be empty). Errors: ERROR_USAGE. */
int faults_parse(struct faults *faults, const char *fail, const char *stall, const char *slow,
                 struct error *error);
/* The options that were given, as they were typed: "--slow=cpu:1=3x --fail=worker:1@step:50"; "": none. In
 * out[FAULTS_TEXT_BYTES], returns it. */
enum { FAULTS_TEXT_BYTES = 3 * 264 };
const char *faults_text(char out[FAULTS_TEXT_BYTES], const char *fail, const char *stall, const char *slow);
/* Whether everything that is named exists: devices[workers] are the workers' devices, as groups_join has
 * them. Errors: ERROR_USAGE. */
int faults_check(const struct faults *faults, const char *const *devices, int workers, int servers,
                 struct error *error);

/* What is to happen at a worker's step; whether a server is to stand still; how many times as long the
 * workers on a device compute. */
enum fault_kind faults_at(const struct faults *faults, int worker, long step);
bool faults_hold(const struct faults *faults, int server);
double faults_factor(const struct faults *faults, const char *device);

/* Of a worker that is slow: by how much its steps are to be longer, on average, and by how much they were not
 * yet. */
struct slowed {
    double mean_s, owed_s;
    long steps;
};
/* After a step that has taken so long: sleeps until it has taken `factor` times as long, on average. A step
 * that other programs hold up is not held up factor times as long: what is owed then, or was slept too long,
 * is made up for in the next steps. The first step, in which much is done for all, is not in the average. */
void slowed_sleep(struct slowed *slowed, struct world *world, double took_s, double factor);

#endif
