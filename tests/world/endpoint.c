/* Endpoints in the real world and in the simulated one, over TCP, over shared memory, and encrypted where
 * this build can. */
#include "../endpoints.h"

static void test_everywhere(void) {
    struct error error = {0};
    test_all();
    if (kind == SHARED) return; /* simulated processes have no memory of their own to share */
    CHECK(world_open_simulated(&simulation, 1, &error) == OK, "%s", error.words);
    test_all();
    world_close(simulation);
    simulation = NULL;
}

int main(void) {
    for (kind = CLEAR; kind < KINDS; kind++)
        if (kind != OVER_UCX && (kind != ENCRYPTED || TRAINER_TLS)) test_everywhere();
    return check_end();
}
