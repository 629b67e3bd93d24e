/* Options: one row per option, from which parsing, range checks, --help and the log's list of settings all
 * come.
 *
 * A plug-in (a strategy, model, data set, optimizer, schedule) is a const descriptor that begins with a
 * `struct plugin`: its name, a line of help and the rows of its own settings, given on the command line as
 * `name:key=value,key=value`. The Makefile turns the file names of a folder into a table of descriptors. */
#ifndef TRAINER_BASE_OPTION_H
#define TRAINER_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include "error.h"
#include "page.h"

enum option_type {
    OPTION_FLAG,   /* bool; `--name`, `name` or `name=0|1` */
    OPTION_INT,    /* int */
    OPTION_LONG,   /* long */
    OPTION_REAL,   /* double */
    OPTION_TEXT,   /* char[bytes] inside the settings */
    OPTION_CHOICE, /* int: the position in `choices`, "glorot|normal" */
    OPTION_SIZES,  /* struct option_sizes; whole numbers joined by 'x', "3x3" */
};

/* What else a row says. */
enum option_flag {
    OPTION_SAVED = 1,     /* kept in a checkpoint */
    OPTION_AGREED = 2,    /* the same in all processes of a cluster */
    OPTION_SHOWN = 4,     /* in a run's first lines and summary */
    OPTION_AUTO = 8,      /* "auto" is understood: as if nothing had been given */
    OPTION_RARE = 16,     /* few need it: in the help of all options only */
    OPTION_RECIPE = 32,   /* a model may say what it trains well with */
    OPTION_ASIDE = 64,    /* of a data set: changes no example */
    OPTION_LIST = 128,    /* of a plug-in: "a,b" up to the next key=value, without quotes */
    OPTION_RESUMED = 256, /* kept in a checkpoint for a run that goes on, but not with its model */
};
/* The value of an OPTION_SIZES. */
enum { SIZES_MOST = 8 };
struct option_sizes {
    int count; /* 0: none were given */
    int at[SIZES_MOST];
};

enum { OPTION_AUTOMATIC = -1 }; /* the value of an OPTION_INT without a default that is OPTION_AUTO */

struct option {
    const char *name; /* as typed, without the dashes */
    const char *also; /* another name for it that is understood, or NULL */
    enum option_type type;
    size_t offset;        /* of the field in the settings struct */
    size_t bytes;         /* its size; only that of an OPTION_TEXT is used */
    const char *fallback; /* default, as typed; NULL: zero or empty */
    double least, most;   /* range of numbers, or of each size, both allowed; least == most: any */
    int sizes;            /* OPTION_SIZES: how many, at most */
    const char *choices;  /* OPTION_CHOICE */
    const char *letters;  /* OPTION_CHOICE: in their order, characters that mean the same, or 0; NULL: none */
    const char *unit;     /* "examples", "s", ... or NULL; shown by --help */
    const char *help;     /* one line, lower case, no full stop; reads without the name */
    const char *value;    /* what stands for the value in --help, "DIR"; NULL: as the type has it */
    const char *group;    /* the heading in --help, or NULL */
    int flags;            /* enum option_flag */
    size_t given;         /* of a bool that says whether it was given; 0: nobody asks */
    /* What this build lacks for it, "CUDA", or NULL: such an option has its default and cannot be given.
     * Where `lacking` names one of the choices, only this one cannot, and `choices` does not have it. */
    const char *needs, *lacking;
    /* OPTION_TEXT: called with what a command line said, in text[bytes] of the settings, which it may replace
     * by what is meant: a file's name by what is in the file. Never called for what comes from elsewhere.
     * NULL: nothing to do. Errors: its own. */
    int (*typed)(void *settings, char *text, size_t bytes, struct error *error);
};

static inline bool option_is_absent(const struct option *row) {
    return row->needs != NULL && row->lacking == NULL;
}

/* A row for the field of a settings struct: its type without OPTION_, its name, the struct, the field. */
#define OPTION_ROW(kind, typed, settings, field, ...)                                                        \
    {                                                                                                        \
        .name = typed, .type = OPTION_##kind, .offset = offsetof(settings, field),                           \
        .bytes = sizeof(((settings *)0)->field), __VA_ARGS__                                                 \
    }

struct plugin {
    const char *name;             /* as typed; also its file's name */
    const char *help;             /* one line */
    const struct option *options; /* rows, ended by a row without a name; NULL: no settings */
    size_t settings_bytes;        /* size of the settings struct */
    /* What follows the colon is no list of settings but one text, which is all that the plug-in is set by.
     * Checks it (what: the plug-in's name, for the words). NULL: it is a list. Errors: ERROR_USAGE. */
    int (*check_text)(const char *what, const char *text, struct error *error);
};

enum { PLUGIN_SETTINGS_BYTES = 3072, PLUGIN_TEXT_BYTES = 16384 };

/* All plug-ins of one kind; the Makefile makes it from the files of a folder. */
struct plugin_kind {
    const char *name, *folder;           /* "strategy", "strategies" */
    const struct plugin *const *plugins; /* ended by NULL */
};

/* A plug-in chosen and set: what `name:key=value` on the command line becomes. */
struct choice {
    const struct plugin *plugin;                       /* first member of the descriptor */
    _Alignas(16) char settings[PLUGIN_SETTINGS_BYTES]; /* its settings struct */
    char text[PLUGIN_TEXT_BYTES];                      /* as typed, or longer: plugin_lengthen */
};

/* Its settings struct, whatever that is; of one that is set by a text, this. */
static inline const void *choice_settings(const struct choice *choice) {
    if (choice->plugin == NULL || choice->plugin->check_text == NULL) return choice->settings;
    const char *const colon = strchr(choice->text, ':');
    return colon != NULL ? colon + 1 : "";
}

/* Fills a settings struct with the rows' defaults: nothing is given. Without a fallback: zero or empty; NAN
 * for OPTION_REAL; OPTION_AUTOMATIC for an OPTION_INT that is OPTION_AUTO. */
void option_defaults(const struct option *rows, void *settings);

/* Sets one option by name. `owner` names whose it is in the words ("--batch", "sgd"). Errors: ERROR_USAGE:
 * unknown key (with the nearest right one), not a number, out of range, not one of the choices. */
int option_set(const struct option *rows, void *settings, const char *owner, const char *name,
               const char *value, struct error *error);

/* The row of that name, by either of its names, or NULL. */
const struct option *option_find(const struct option *rows, const char *name);

/* Parses `name:key=value,...` against the plug-ins of a kind; the choice has the text as plugin_lengthen
 * makes it. Errors: ERROR_USAGE. */
int plugin_choose(struct choice *choice, const struct plugin_kind *kind, const char *text,
                  struct error *error);

/* A bare value is that of the only setting of a plug-in that has one: "ssp:3" becomes "ssp:bound=3" in
 * text[bytes], where it fits. Of several texts with semicolons between them, each. Anything else stays. */
void plugin_lengthen(const struct plugin_kind *kind, char *text, size_t bytes);

/* Writes such a text with one setting changed, or added, into out[bytes]: "sgd:rate=0.1" with `name` rate and
 * `value` 0.5 is "sgd:rate=0.5". The value is not looked at. Errors: ERROR_USAGE: no such plug-in, or one
 * that has no settings by name; no such setting; out is too short. */
int plugin_with(const struct plugin_kind *kind, const char *text, const char *name, const char *value,
                char *out, size_t bytes, struct error *error);

/* The one that is named before the colon of such a text, or NULL. */
const struct plugin *plugin_named(const struct plugin_kind *kind, const char *text);

/* The error for a name that no plug-in of the kind has: ERROR_USAGE, with the nearest one and all of them. */
int plugin_unknown(const struct plugin_kind *kind, const char *typed, struct error *error);

/* The table's text nearest to `typed` by edit distance, in any case, or NULL when none is near; for "did you
 * mean". */
const char *option_nearest(const char *typed, const char *const *names);

/* What to type instead of `typed`, a name that other programs have and this one has not, with its value
 * (NULL: none), written into out[bytes]; NULL: nothing is known of it. `kind`: "option", "setting",
 * a kind of plug-ins, or the name of an option, of which it is a value. */
const char *habit_instead(const char *kind, const char *typed, const char *value, char *out, size_t bytes);

/* What `typed` is known as among the program's sources, "models/layers/resnet20.txt", which is not there
 * where it was only installed; NULL: nothing is known of it. */
const char *habit_file(const char *kind, const char *typed);

/* The two columns of a row's help, `--batch=N` and `examples per worker and step (default 32)`; prefix "--"
 * for programs, "" for plug-ins. `all`: with the range of a number. */
enum { OPTION_LEFT_BYTES = 160, OPTION_HELP_BYTES = 900 };
void option_words(const struct option *row, const char *prefix, bool all, char left[OPTION_LEFT_BYTES],
                  char help[OPTION_HELP_BYTES]);

/* Prints rows as help, under the headings of their groups. `all`: those that are OPTION_RARE, too. Returns
 * how many were left out. */
int option_help(const struct page *page, const struct option *rows, const char *prefix, bool all);

/* The values that can be typed for a row of choices, "auto|fp32|bf16", into out[bytes]; "" for others. */
const char *option_choices(const struct option *row, char *out, size_t bytes);

/* Writes the value of a row as text, as it could be typed. */
void option_text(const struct option *row, const void *settings, char *out, size_t bytes);

#endif
