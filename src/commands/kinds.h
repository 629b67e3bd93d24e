/* The kinds of plug-ins, each with its table: what `trainer list` and `--help` walk. */
#ifndef TRAINER_COMMANDS_KINDS_H
#define TRAINER_COMMANDS_KINDS_H

#include "../base/option.h"

struct plugin_kind {
    const char *name;         /* "strategy" */
    const char *folder;       /* "strategies": the word for all of them */
    const void *const *table; /* descriptors that begin with a struct plugin, ended by NULL */
};

enum { PLUGIN_KINDS = 5 };
extern const struct plugin_kind plugin_kinds[PLUGIN_KINDS];

#endif
