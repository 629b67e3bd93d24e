/* Whether bytes can be written without waiting for a reader. */
#include "world.h"

#include <poll.h>

bool world_await_room(int file, double seconds) {
    struct pollfd asked = {.fd = file, .events = POLLOUT};
    return file < 0 || poll(&asked, 1, (int)(seconds * 1e3)) > 0;
}
