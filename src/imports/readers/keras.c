/* keras: models of Keras 2 and 3: whole ones in .h5 and .keras files, or without weights as the JSON that
 * to_json returns. */
#include <string.h>

#include "../../base/mapping.h"
#include "../keras.h"

static const char *const suffixes[] = {".h5", ".hdf5", ".keras", ".json", NULL};

static enum keras_form form_of(const char *path) {
    const char *suffix = strrchr(path, '.');
    if (suffix && strcmp(suffix, ".json") == 0) return KERAS_JSON;
    return suffix && strcmp(suffix, ".keras") == 0 ? KERAS_ARCHIVE : KERAS_H5;
}

static int read(struct network_file *file, const char *path, struct error *error) {
    struct mapping mapping = {0};
    RETURN_IF(mapping_open(&mapping, path, error));
    const int code = keras_file_read(file, path, form_of(path), mapping.bytes, mapping.length, error);
    mapping_close(&mapping);
    return code;
}

const struct reader reader_keras = {
    .plugin = {.name = "keras",
               .help = "a model of Keras: .h5, .keras, or the .json of to_json, without weights",
               .options = network_file_options,
               .settings_bytes = sizeof(struct network_file_settings)},
    .suffixes = suffixes,
    .read = read,
};
