/* Ctrl-C, SIGTERM and SIGHUP: the first asks politely, the second ends the process.
 *
 * A signal handler takes no argument, so the count of signals has to be a global variable. */
#include "world.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static atomic_int interrupts; /* signals so far; written by the handler alone */

static void interrupted(int number) {
    /* A terminal that is closed sends it, and its shell once more: nobody is impatient. */
    if (number == SIGHUP && atomic_load(&interrupts) > 0) return;
    if (atomic_fetch_add(&interrupts, 1) > 0) _exit(ERROR_INTERRUPTED);
}

void world_catch_interrupts(void) {
    static const int asking[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupted;
    action.sa_flags = SA_RESTART; /* reads and writes in hand go on: the first signal breaks nothing */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++) {
        struct sigaction before;
        if (sigaction(asking[i], NULL, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        sigaction(asking[i], &action, NULL);
    }
    /* A reader that went away and a file that may grow no more are found by the write that fails. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, 0);
    sigaction(SIGXFSZ, &action, 0);
}

bool world_interrupted(void) {
    return atomic_load(&interrupts) > 0;
}
