/* See names.h. */
#include "names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

static struct name_taken *find(const struct names *names, const char *name) {
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->taken[i].name, name) == 0) return &names->taken[i];
    return NULL;
}

/* out[bytes]: the name with its next suffix. */
static void number(struct name_taken *taken, char *out, size_t bytes) {
    char suffix[16];
    const int length = snprintf(suffix, sizeof suffix, "_%d", ++taken->suffix);
    snprintf(out, bytes, "%.*s%s", (int)bytes - 1 - length, taken->name, suffix);
}

int names_take(struct names *names, char *name, size_t bytes, struct error *error) {
    enum { FIRST_ROOM = 64 };
    assert(bytes <= NAMES_BYTES && strlen(name) < bytes);
    struct name_taken *taken = find(names, name);
    while (taken && find(names, name)) number(taken, name, bytes);
    if (names->count == names->room) {
        const int room = names->room > 0 ? 2 * names->room : FIRST_ROOM;
        RETURN_IF(memory_grow(&names->taken, names->room, room, "names", error));
        names->room = room;
    }
    memcpy(names->taken[names->count++].name, name, strlen(name) + 1);
    return OK;
}

void names_close(struct names *names) {
    memory_free(names->taken);
    *names = (struct names){0};
}
