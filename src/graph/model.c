/* Models as they are typed and shown. See model.h. */
#include "model.h"

#include "../base/file.h"
#include "../base/text.h"
#include "network_file.h"

int model_resolve(char *text, size_t bytes, char *weights, struct error *error) {
    char own[PATH_BYTES];
    if (weights) weights[0] = '\0';
    if (network_file_is_named(text)) return network_file_typed(text, bytes, weights ? weights : own, error);
    const struct plugin *plugin = plugin_named(&model_kind, text);
    const struct model *model = (const struct model *)(const void *)plugin;
    char *colon = strchr(text, ':');
    if (!model || !model->typed || !colon) return OK;
    return model->typed(colon + 1, bytes - (size_t)(colon + 1 - text), error);
}

int model_typed(void *settings, char *text, size_t bytes, struct error *error) {
    (void)settings;
    return model_resolve(text, bytes, NULL, error);
}

/* "layers:conv 64 5x5 same relu; maxpool 3; ... (11 layers)" */
const char *model_short(const char *text, char out[MODEL_SHORT_BYTES]) {
    enum { WORDS = MODEL_SHORT_BYTES - 40 };
    struct text words = text_into(out, MODEL_SHORT_BYTES);
    const size_t length = strlen(text);
    size_t cut = 0;
    int layers = 1;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != ';') continue;
        layers++;
        if (i < WORDS) cut = i;
    }
    if (length < WORDS)
        text_add(&words, "%s", text);
    else if (cut > 0)
        text_add(&words, "%.*s; ... (%d layers)", (int)cut, text, layers);
    else
        text_add(&words, "%.*s...", (int)WORDS, text);
    return out;
}
