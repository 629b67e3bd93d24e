/* Endpoints in the real world and in the simulated one, over TCP, over shared memory, and encrypted where
 * this build can. */
#include "../endpoints.h"

#include "../../src/world/shm.h"

struct knock {
    struct world *world;
    char address[32];
    struct endpoint *endpoint;
    struct error error;
};

static void knock(void *argument) {
    struct knock *knock = argument;
    endpoint_connect(knock->world, knock->address, &knock->endpoint, LONG_S, &knock->error);
}

/* Nobody shares memory yet when it is tried; the port is open, and takes the connection when somebody does:
 * its queue, of one, is full until then. */
static void test_opened_meanwhile(void) {
    struct sockaddr_storage name = {.ss_family = AF_INET};
    socklen_t length = sizeof(struct sockaddr_in);
    struct sockaddr *at = (struct sockaddr *)&name;
    ((struct sockaddr_in *)&name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int port = socket(AF_INET, SOCK_STREAM, 0), first = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(port, at, length) == 0 && listen(port, 0) == 0 && getsockname(port, at, &length) == 0 &&
              connect(first, at, length) == 0,
          "errno %d", errno);
    struct knock one = {0};
    struct world_thread *thread = NULL;
    struct error error = {0};
    CHECK(world_open_threads(&one.world, &error) == OK, "%s", error.words);
    netname_text(one.address, sizeof one.address, &name);
    CHECK(world_spawn(one.world, "knock", NULL, knock, &one, &thread, &error) == OK, "%s", error.words);
    world_sleep(one.world, 0.3);
    const int shm = shm_listen(&name);
    CHECK(shm >= 0, "errno %d", errno);
    close(accept(port, NULL, NULL));
    world_join(thread);
    CHECK(one.endpoint && endpoint_shares_memory(one.endpoint), "it went over TCP, or %s", one.error.words);
    endpoint_close(one.endpoint);
    world_close(one.world);
    close(shm), close(port), close(first);
}

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
    test_opened_meanwhile();
    for (kind = CLEAR; kind < KINDS; kind++)
        if (kind != OVER_UCX && (kind != ENCRYPTED || TRAINER_TLS)) test_everywhere();
    return check_end();
}
