/* See keras.h: the files that a whole model is in. */
#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "../data/zip.h"
#include "keras.h"

enum { CONFIG_MOST = 16 << 20 }; /* bytes of a model's configuration */

/* What the model was compiled with, an attribute of the root, too; without it there is no optimizer. */
static int read_h5_optimizer(const struct keras_network *network, struct hdf5_reader *from,
                             struct error *error) {
    struct hdf5_texts training = {0};
    struct json json = {0};
    struct error why = {0};
    int code = hdf5_reader_texts(from, from->root, "training_config", &training, error);
    if (code != OK || training.count != 1) goto end;
    if (json_parse(&json, training.texts[0], strlen(training.texts[0]), &why) != OK) {
        code = error_set(error, why.code, "%s: training_config: %s", network->path, why.words);
        goto end;
    }
    const struct json_value *root = &json.values[0];
    if (root->kind == JSON_OBJECT)
        code = keras_optimizer_read(network, &json, json_member(&json, root, "optimizer_config"), from,
                                    KERAS_BY_NAME, error);
end:
    json_free(&json);
    hdf5_texts_close(&training);
    return code;
}

/* The configuration is an attribute of the root. */
static int read_h5(struct network_file *file, const char *path, const uint8_t *bytes, size_t length,
                   struct error *error) {
    struct keras_network network = {0};
    struct hdf5_reader from;
    struct hdf5_texts config = {0}, version = {0};
    int code = hdf5_reader_open(&from, path, bytes, length, error);
    if (code == OK) code = hdf5_reader_texts(&from, from.root, "model_config", &config, error);
    if (code == OK) code = hdf5_reader_texts(&from, from.root, "keras_version", &version, error);
    if (code == OK && config.count != 1)
        code = error_set(error, ERROR_FILE,
                         "%s: found no model_config, expected a whole model, as model.save writes it", path);
    if (code == OK)
        code = keras_network_open(&network, file, path, version.count > 0 ? version.texts[0] : NULL,
                                  config.texts[0], strlen(config.texts[0]), error);
    if (code == OK) code = keras_weights_read(&network, &from, KERAS_BY_NAME, error);
    if (code == OK) code = read_h5_optimizer(&network, &from, error);
    keras_network_close(&network);
    hdf5_texts_close(&config);
    hdf5_texts_close(&version);
    return code;
}

static const struct zip_member *find(const struct zip *zip, const char *name) {
    for (int i = 0; i < zip->count; i++)
        if (zip->members[i].name_bytes == strlen(name) &&
            memcmp(zip->members[i].name, name, strlen(name)) == 0)
            return &zip->members[i];
    return NULL;
}

/* A member of the archive, unpacked; the caller frees it. A small archive may not become much. */
static int unpack(const struct zip *zip, const char *name, size_t most, uint8_t **out, size_t *bytes,
                  struct error *error) {
    const struct zip_member *member = find(zip, name);
    struct zip_reader reader = {0};
    if (!member) return error_set(error, ERROR_FILE, "%s: found no %s in it", zip->name, name);
    if (member->unpacked > most)
        return error_set(error, ERROR_FILE, "%s: %s: found %llu bytes, expected at most %zu", zip->name, name,
                         (unsigned long long)member->unpacked, most);
    *bytes = (size_t)member->unpacked;
    struct error why = {0};
    int code = memory_array(out, *bytes + 1, name, error);
    size_t got = 0;
    if (code != OK) return code;
    code = zip_reader_open(&reader, zip, member, name, &why);
    if (code == OK) code = zip_read(&reader, *out, *bytes, &got, &why);
    if (code == OK) code = zip_finish(&reader, &why);
    zip_reader_close(&reader);
    return code == OK ? OK : error_set(error, code, "%s: %s", zip->name, why.words);
}

/* What the archive says of the Keras that wrote it, where it does: metadata, which the caller frees;
 * *version is in it, or NULL. */
static int read_version(const struct zip *zip, struct json *metadata, const char **version,
                        struct error *error) {
    enum { METADATA_MOST = 1 << 16 };
    uint8_t *text = NULL;
    size_t bytes = 0;
    struct error why = {0};
    *version = NULL;
    if (!find(zip, "metadata.json")) return OK;
    int code = unpack(zip, "metadata.json", METADATA_MOST, &text, &bytes, error);
    if (code == OK && json_parse(metadata, (const char *)text, bytes, &why) != OK)
        code = error_set(error, why.code, "%s: metadata.json: %s", zip->name, why.words);
    memory_free(text);
    RETURN_IF(code);
    const struct json_value *root = &metadata->values[0];
    const struct json_value *value =
        root->kind == JSON_OBJECT ? json_member(metadata, root, "keras_version") : NULL;
    if (value && value->kind == JSON_TEXT) *version = value->text;
    return OK;
}

static size_t unpacked_most(const struct zip *zip) {
    const size_t times = zip->length < FILE_UNPACKED_MOST / FILE_UNPACKED_TIMES
                             ? zip->length * FILE_UNPACKED_TIMES
                             : (size_t)FILE_UNPACKED_MOST;
    const size_t most = zip->length > FILE_UNPACKED_MOST ? zip->length : times;
    return most > FILE_UNPACKED_FREE ? most : FILE_UNPACKED_FREE;
}

static int read_archive_optimizer(const struct keras_network *network, struct hdf5_reader *from,
                                  struct error *error) {
    const struct json_value *compiled =
        json_member(&network->json, &network->json.values[0], "compile_config");
    if (!compiled || compiled->kind != JSON_OBJECT) return OK;
    return keras_optimizer_read(network, &network->json, json_member(&network->json, compiled, "optimizer"),
                                from, KERAS_BY_CLASS, error);
}

static int read_archive(struct network_file *file, const char *path, const uint8_t *bytes, size_t length,
                        struct error *error) {
    struct keras_network network = {0};
    struct hdf5_reader from;
    struct zip zip = {0};
    struct json metadata = {0};
    const char *version = NULL;
    uint8_t *config = NULL, *weights = NULL;
    size_t config_bytes = 0, weights_bytes = 0;
    int code = zip_archive_open(&zip, path, bytes, length, error);
    if (code == OK) code = read_version(&zip, &metadata, &version, error);
    if (code == OK) code = unpack(&zip, "config.json", CONFIG_MOST, &config, &config_bytes, error);
    if (code == OK)
        code = keras_network_open(&network, file, path, version, (const char *)config, config_bytes, error);
    if (code == OK && network.weighted_count > 0)
        code = unpack(&zip, "model.weights.h5", unpacked_most(&zip), &weights, &weights_bytes, error);
    if (code == OK && weights) code = hdf5_reader_open(&from, path, weights, weights_bytes, error);
    if (code == OK && weights) code = keras_weights_read(&network, &from, KERAS_BY_CLASS, error);
    if (code == OK && weights) code = read_archive_optimizer(&network, &from, error);
    memory_free(weights);
    memory_free(config);
    keras_network_close(&network);
    json_free(&metadata);
    zip_archive_close(&zip);
    return code;
}

static int read_json(struct network_file *file, const char *path, const uint8_t *bytes, size_t length,
                     struct error *error) {
    struct keras_network network = {0};
    const int code = keras_network_open(&network, file, path, NULL, (const char *)bytes, length, error);
    keras_network_close(&network);
    return code;
}

int keras_file_read(struct network_file *file, const char *path, enum keras_form form, const uint8_t *bytes,
                    size_t length, struct error *error) {
    switch (form) {
    case KERAS_JSON:
        return read_json(file, path, bytes, length, error);
    case KERAS_H5:
        return read_h5(file, path, bytes, length, error);
    case KERAS_ARCHIVE:
        break;
    }
    return read_archive(file, path, bytes, length, error);
}
