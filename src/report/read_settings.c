/* The settings of a run, as they could be typed: from summary.json, and from the texts of the checkpoint,
 * which a run that was killed has, too. */
#include <stdint.h>
#include "../base/memory.h"
#include "facts.h"

enum { TEXTS_BYTES = 16 << 20 }; /* of the header of a checkpoint, at most */

/* What summary.json has beside the rows of the options. */
static const char *const others[] = {"devices", "workers", "threads", "shards", "homes", "faults"};

static void key_of_name(char *out, size_t bytes, const char *name) {
    snprintf(out, bytes, "%s", name);
    for (char *c = out; *c; c++)
        if (*c == '-') *c = '_';
}

/* "": a number that is not known. */
static int set(struct facts *facts, const char *name, const struct json_value *value, struct error *error) {
    struct setting *setting = &facts->settings[facts->setting_count];
    char number[32] = "";
    if (value->kind == JSON_BOOL || value->kind == JSON_NUMBER)
        snprintf(number, sizeof number, "%.15g", value->number);
    snprintf(setting->name, sizeof setting->name, "%s", name);
    RETURN_IF(memory_text(&setting->value, value->kind == JSON_TEXT ? value->text : number, error));
    facts->setting_count++;
    return OK;
}

/* The texts of DIR/checkpoint/state.safetensors: 8 bytes of length, then JSON. What cannot be read is left
 * out, as the page is about the run, not about its checkpoint. Errors: ERROR_DEVICE (memory). */
static int read_texts(FILE *file, struct json *json, struct error *error) {
    uint64_t length = 0;
    char *bytes = NULL;
    struct error why = {0};
    if (fread(&length, sizeof length, 1, file) != 1 || length > TEXTS_BYTES) return OK;
    RETURN_IF(memory_array(&bytes, length + 1, "the texts of a checkpoint", error));
    if (fread(bytes, 1, length, file) == length) json_parse(json, bytes, length, &why);
    memory_free(bytes);
    return why.code == ERROR_DEVICE ? error_set(error, ERROR_DEVICE, "%s", why.words) : OK;
}

static int take_row(struct facts *facts, const struct option *row, const struct json *json,
                    const struct json_value *texts, struct error *error) {
    char key[64];
    const struct json_value *value = NULL;
    key_of_name(key, sizeof key, row->name);
    for (size_t i = 0; facts->has_summary && i < sizeof others / sizeof *others; i++)
        if (strcmp(row->name, others[i]) == 0) return OK; /* as it turned out, below */
    if (facts->has_summary && (row->flags & OPTION_SHOWN))
        value = json_member(&facts->json, facts->json.values, key);
    if (!value && texts && (row->flags & (OPTION_SAVED | OPTION_RESUMED)))
        value = json_member(json, texts, row->name);
    return value ? set(facts, row->name, value, error) : OK;
}

static int take_settings(struct facts *facts, const struct json *json, struct error *error) {
    const struct json_value *texts = json->count > 0 ? json_member(json, json->values, "__metadata__") : NULL;
    size_t rows = sizeof others / sizeof *others;
    for (const struct option *row = config_options; row->name; row++) rows++;
    RETURN_IF(memory_array(&facts->settings, rows, "the settings", error));
    for (const struct option *row = config_options; row->name; row++)
        RETURN_IF(take_row(facts, row, json, texts, error));
    for (size_t i = 0; facts->has_summary && i < sizeof others / sizeof *others; i++) {
        const struct json_value *value = json_member(&facts->json, facts->json.values, others[i]);
        if (value) RETURN_IF(set(facts, others[i], value, error));
    }
    return OK;
}

int settings_read(struct facts *facts, struct error *error) {
    char path[PATH_BYTES];
    struct json json = {0};
    RETURN_IF(file_join(path, facts->folder, "checkpoint/state.safetensors", error));
    FILE *file = fopen(path, "re");
    int code = file ? read_texts(file, &json, error) : OK;
    if (file) fclose(file);
    if (code == OK) code = take_settings(facts, &json, error);
    json_free(&json);
    return code;
}
