/* See door.h. */
#include "door.h"

#include "../base/memory.h"
#include "guests.h"
#include "handshake.h"
#include "joins.h"

#define LOOK_S 0.05 /* at most between two looks at who is there, and until the thread ends */

struct door {
    struct host *host;
    struct world_thread *thread;
    _Atomic bool ending;
};

/* What fails here ends nothing: who asks sees it. */
static void door_body(void *argument) {
    struct door *door = argument;
    struct host *host = door->host;
    while (!atomic_load(&door->ending) && !world_stopped(host->settings.world)) {
        struct error ignored = {0};
        bool moved = false;
        if (host->joins) {
            joins_attend(host, LOOK_S);
            continue;
        }
        if (host_let_in(host, LOOK_S, &moved, &ignored) != OK) world_sleep(host->settings.world, LOOK_S);
        handshake_hear_guests(host, &moved, &ignored);
    }
}

int door_open(struct host *host, struct error *error) {
    RETURN_IF(memory_array(&host->door, 1, "a door", error));
    host->door->host = host;
    return world_spawn(host->settings.world, "door", NULL, door_body, host->door, &host->door->thread, error);
}

void door_close(struct host *host) {
    if (!host->door) return;
    atomic_store(&host->door->ending, true);
    if (host->door->thread) world_join(host->door->thread);
    memory_free(host->door);
    host->door = NULL;
}
