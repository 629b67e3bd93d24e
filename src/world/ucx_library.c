/* See ucx_library.h. */
#include "ucx_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libucp.so.0" /* of UCX 1.x */

static int missing(struct error *error) {
    return error_set(error, ERROR_DEVICE, "%s; expected UCX 1.13 or later (libucx0)", dlerror());
}

/* Read while the library is loaded, and only where the user has not said otherwise: it is to leave signals
 * alone, to say nothing, as what fails comes back as a status, and least of all on standard output. And it
 * fetches from the memory of a process that may go (CMA) only if it is told that such memory can be made
 * invalid: who has gone has none, and who gives a message up has cut the connection off. Nobody has another
 * thread yet who might read the environment. */
static void set_defaults(void) {
    static const char *const defaults[][2] = {{"UCX_HANDLE_ERRORS", "none"},
                                              {"UCX_DEBUG_SIGNO", "0"},
                                              {"UCX_LOG_LEVEL", "fatal"},
                                              {"UCX_LOG_FILE", "stderr"},
                                              {"UCX_CMA_MEMORY_INVALIDATE", "y"}};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) setenv(defaults[i][0], defaults[i][1], 0);
}

int ucx_load(struct ucx_library *ucp, struct error *error) {
    void *at = NULL;
    set_defaults();
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) return missing(error);
#define FIND_FUNCTION(name)                                                                                  \
    at = dlsym(library, #name);                                                                              \
    if (!at) return missing(error);                                                                          \
    memcpy(&ucp->name, &at, sizeof at);
    UCX_FUNCTIONS(FIND_FUNCTION)
    return OK;
}
