/* The kinds of plug-ins: what `trainer list` and `--help` walk. */
#ifndef TRAINER_COMMANDS_KINDS_H
#define TRAINER_COMMANDS_KINDS_H

#include "../base/option.h"

enum { PLUGIN_KINDS = 6 };
extern const struct plugin_kind *const plugin_kinds[PLUGIN_KINDS];

#endif
