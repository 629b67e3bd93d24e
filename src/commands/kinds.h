/* The kinds of plug-ins: what `trainer list` and `--help` walk. */
#ifndef TRAINER_COMMANDS_KINDS_H
#define TRAINER_COMMANDS_KINDS_H

#include "../base/option.h"

enum { PLUGIN_KINDS = 9 };
extern const struct plugin_kind *const plugin_kinds[PLUGIN_KINDS];

/* What one of them is chosen by: "--model", "--outputs"; of what no option chooses: "export". */
enum { PLUGIN_HOW_BYTES = 64 };
const char *plugin_how(const struct plugin_kind *kind, char how[PLUGIN_HOW_BYTES]);

#endif
