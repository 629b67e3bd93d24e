/* Ctrl-C, SIGTERM and SIGHUP: the first asks politely, the second ends the process.
 *
 * A signal handler takes no argument, so what it has seen has to be in global variables. */
#include "world.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A second signal this soon after the first is the same wish: from a scheduler, or from a wrapper that passes
 * on what the terminal has sent to all already. */
enum { TERM_ECHO_MS = 1000, INT_ECHO_MS = 200 };

static atomic_int interrupts;  /* signals so far; these are written by the handler alone */
static atomic_bool terminated; /* the first was SIGTERM */
static atomic_int first;       /* signal of these ... */
static atomic_llong first_ms;  /* ... at this time of the monotonic clock */
static atomic_bool all_kept;   /* nobody needs time any more to keep anything */

static long long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_echo(int number) {
    const long long passed_ms = now_ms() - atomic_load(&first_ms);
    return number == atomic_load(&first) && passed_ms < (number == SIGTERM ? TERM_ECHO_MS : INT_ECHO_MS);
}

static void interrupted(int number) {
    if (atomic_load(&all_kept)) _exit(ERROR_INTERRUPTED);
    /* A terminal that is closed sends it, and its shell once more: nobody is impatient. */
    if (atomic_load(&interrupts) > 0 && (number == SIGHUP || is_echo(number))) return;
    if (atomic_load(&interrupts) == 0) {
        atomic_store(&first_ms, now_ms());
        atomic_store(&first, number);
        if (number == SIGTERM) atomic_store(&terminated, true);
    }
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

void world_end_at_interrupt(void) {
    atomic_store(&all_kept, true);
}

bool world_terminated(void) {
    return atomic_load(&terminated);
}

bool world_interrupted(void) {
    return atomic_load(&interrupts) > 0;
}
