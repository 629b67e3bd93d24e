/* See output.h. */
#include "output.h"

#include <fnmatch.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "progress.h"

enum { NAME_BYTES = 64 };
static const char none[] = "none";

static const struct output *find(const char *name) {
    for (int i = 0; outputs[i]; i++)
        if (strcmp(outputs[i]->plugin.name, name) == 0) return outputs[i];
    return NULL;
}

int outputs_left(enum output_left what, const char *folder, struct error *error) {
    for (int i = 0; outputs[i]; i++)
        if (outputs[i]->left) RETURN_IF(outputs[i]->left(what, folder, error));
    return OK;
}

bool output_has_left(const char *name) {
    for (int i = 0; outputs[i]; i++)
        for (const char *const *pattern = outputs[i]->files; pattern && *pattern; pattern++)
            if (fnmatch(*pattern, name, 0) == 0) return true;
    return false;
}

/* The name at the front of *list, which goes on behind it; false: there is none any more. */
static bool next_name(const char **list, char name[NAME_BYTES]) {
    if (*list == NULL) return false;
    const size_t length = strcspn(*list, ",");
    snprintf(name, NAME_BYTES, "%.*s", (int)length, *list);
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
    return true;
}

static bool is_in(const char *list, const char *wanted) {
    char name[NAME_BYTES];
    while (next_name(&list, name))
        if (strcmp(name, wanted) == 0) return true;
    return false;
}

bool output_is_chosen(const char *list, const char *name) {
    return is_in(list, name);
}

int telling_check(const char *list, struct error *error) {
    char name[NAME_BYTES];
    if (strcmp(list, none) == 0) return OK;
    if (is_in(list, none))
        return error_set(error, ERROR_USAGE, "--outputs=%.200s: \"none\" stands alone", list);
    for (const char *rest = list; next_name(&rest, name);) {
        const struct output *output = find(name);
        if (!*name)
            return error_set(error, ERROR_USAGE,
                             "--outputs=%.200s: found an empty name, expected csv,trace and the like", list);
        if (!output) return plugin_unknown(&output_kind, name, error);
        if (output->needs)
            return error_set(error, ERROR_USAGE, "--outputs=%.200s: %s needs a build with %s", list, name,
                             output->needs);
        if (rest && is_in(rest, name))
            return error_set(error, ERROR_USAGE, "--outputs=%.200s: \"%s\" is there twice", list, name);
    }
    return OK;
}

static int open_one(struct telling *telling, const struct output *output, const struct output_scene *scene,
                    struct error *error) {
    struct told *told = &telling->told[telling->count];
    if (telling->count == OUTPUTS_MOST)
        return error_set(error, ERROR_INTERNAL, "more than %d outputs", OUTPUTS_MOST);
    RETURN_IF(memory_zeroed(&told->self, 1, output->self_bytes, "an output", error));
    told->output = output;
    told->every = output->every ? output->every(scene) : 0;
    telling->count++;
    return output->open(told->self, scene, error);
}

int telling_open(struct telling *telling, const char *list, const struct output_scene *scene,
                 struct progress *progress, struct error *error) {
    *telling = (struct telling){.progress = progress};
    RETURN_IF(telling_check(list, error));
    for (int i = 0; outputs[i]; i++)
        if (outputs[i]->always) RETURN_IF(open_one(telling, outputs[i], scene, error));
    for (int i = 0; outputs[i]; i++)
        if (!outputs[i]->always && is_in(list, outputs[i]->plugin.name))
            RETURN_IF(open_one(telling, outputs[i], scene, error));
    return OK;
}

int telling_add(struct telling *telling, const struct output *output, const struct output_scene *scene,
                struct error *error) {
    return open_one(telling, output, scene, error);
}

bool telling_wants(const struct telling *telling, long step) {
    for (int i = 0; i < telling->count; i++) {
        const int every = telling->told[i].every;
        if (every > 0 && step % every == 0) return true;
    }
    return false;
}

/* The only word about it: it is told nothing more. */
static void drop(struct telling *telling, struct told *told, const struct error *error) {
    told->failed = true;
    progress_warn(telling->progress, "%s; the training goes on without %s", error->words,
                  told->output->plugin.name);
}

#define TELL(telling, what, ...)                                                                             \
    for (int i = 0; i < (telling)->count; i++) {                                                             \
        struct told *told = &(telling)->told[i];                                                             \
        struct error error = {0};                                                                            \
        if (told->failed || !told->output->what) continue;                                                   \
        if (told->output->what(told->self, __VA_ARGS__, &error) != OK) drop(telling, told, &error);          \
    }

void telling_steps(struct telling *telling, const struct log_row *rows, int count) {
    TELL(telling, steps, rows, count)
}

bool telling_wants_spans(const struct telling *telling) {
    for (int i = 0; i < telling->count; i++)
        if (telling->told[i].output->spans) return true;
    return false;
}

void telling_spans(struct telling *telling, const struct trace_span *spans, int count, long left_out) {
    TELL(telling, spans, spans, count, left_out)
}

void telling_epoch(struct telling *telling, const struct output_epoch *epoch) {
    TELL(telling, epoch, epoch)
}

void telling_event(struct telling *telling, const struct output_event *event) {
    TELL(telling, event, event)
}

bool telling_wants_said(const struct telling *telling) {
    for (int i = 0; i < telling->count; i++)
        if (telling->told[i].output->wants_said) return true;
    return false;
}

bool telling_wants_gradient(const struct telling *telling, int epoch) {
    for (int i = 0; i < telling->count; i++) {
        const struct told *told = &telling->told[i];
        if (!told->failed && told->output->wants_gradient && told->output->wants_gradient(told->self, epoch))
            return true;
    }
    return false;
}

void telling_end(struct telling *telling, const struct output_end *end) {
    TELL(telling, end, end)
}

void telling_close(struct telling *telling) {
    for (int i = 0; i < telling->count; i++) {
        const struct told *told = &telling->told[i];
        if (told->output->close) told->output->close(told->self);
        memory_free(told->self);
    }
    *telling = (struct telling){0};
}
