/* See keras.h: the optimizer that a model was compiled with, and its state.
 *
 * SGD there steps w += m, where m = momentum m - rate g: the v of here is -m / rate. Adagrad's step is
 * rate g / sqrt(a + epsilon): the a of here is a + epsilon, and nothing is added to the root. Adam's is ours
 * with hat=1. The state is the number of steps, of Keras 3 the learning rate, then the arrays of one variable
 * after the other. The legacy optimizers of Keras 2 have all arrays of one kind first, and their Adagrad is
 * ours. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../store/optimizer.h"
#include "keras.h"

enum { PATH_MOST = 500, SLOTS_MOST = 2, UPDATES_MOST = 1000000000 };

enum kind { SGD, ADAM, ADAGRAD };

static const struct {
    const char *name;
    enum kind kind;
} classes[] = {{"SGD", SGD}, {"Adam", ADAM}, {"AdamW", ADAM}, {"Adagrad", ADAGRAD}};

struct reading {
    const struct keras_network *network;
    struct file_optimizer *out;
    const struct json *json;
    const struct json_value *config;
    struct hdf5_reader *from;
    enum keras_places places;
    struct hdf5_texts names; /* of all arrays and numbers, where they have some */
    enum kind kind;
    bool is_legacy;
    double rate, momentum, epsilon;
    int head;                       /* numbers before the arrays */
    int slots;                      /* arrays that a variable has there */
    const char *vector[SLOTS_MOST]; /* what they are here; NULL: nothing */
    int variables;
    bool has_vectors; /* variables of one dimension, such as biases */
    size_t bytes;     /* of all arrays so far */
    struct error *error;
};

/* The network comes without its optimizer, which is no error. */
__attribute__((format(printf, 2, 3))) static bool leave_out(const struct reading *reading, const char *format,
                                                            ...) {
    struct file_optimizer *out = reading->out;
    char words[180];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    out->text[0] = '\0';
    struct text text = text_into(out->words, sizeof out->words);
    text_add(&text, "%.50s: its optimizer is left out: %s", reading->network->path, words);
    return false;
}

/* --- what it is; false: it is left out --- */

static const struct json_value *member(const struct reading *reading, const char *name) {
    return json_member(reading->json, reading->config, name);
}

static double number_of(const struct reading *reading, const char *name, double usual) {
    const struct json_value *value = member(reading, name);
    return value && value->kind == JSON_NUMBER ? value->number : usual;
}

static bool is_set(const struct reading *reading, const char *name) {
    const struct json_value *value = member(reading, name);
    if (!value || value->kind == JSON_NULL) return false;
    return (value->kind != JSON_NUMBER && value->kind != JSON_BOOL) || fabs(value->number) > 0.0;
}

static bool find_class(struct reading *reading, const char *name) {
    static const char custom[] = "Custom>"; /* which Keras 2 writes before its own */
    if (strncmp(name, custom, strlen(custom)) == 0) name += strlen(custom);
    reading->is_legacy = reading->network->is_second && !member(reading, "is_legacy_optimizer");
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        reading->kind = classes[i].kind;
        if (strcmp(classes[i].name, name) == 0) return true;
    }
    return leave_out(reading, "found %.40s, expected one of SGD, Adam, AdamW, Adagrad", name);
}

/* What a step there does besides, and not here. */
static bool is_plain(const struct reading *reading) {
    static const char *const others[] = {"clipnorm",
                                         "clipvalue",
                                         "global_clipnorm",
                                         "use_ema",
                                         "gradient_accumulation_steps",
                                         "loss_scale_factor",
                                         "amsgrad",
                                         "decay"};
    const struct json_value *rate = member(reading, "learning_rate");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_set(reading, others[i])) return leave_out(reading, "found %s, expected none", others[i]);
    if (rate && rate->kind == JSON_NUMBER) return true;
    return leave_out(reading,
                     "found a learning rate that is not a number, as of a schedule, expected a number");
}

static bool choose(struct reading *reading, const char *class_name) {
    if (!find_class(reading, class_name) || !is_plain(reading)) return false;
    reading->rate = number_of(reading, "learning_rate", 0.0);
    reading->epsilon = number_of(reading, "epsilon", 1e-7);
    reading->momentum = reading->kind == SGD ? number_of(reading, "momentum", 0.0) : 0.0;
    reading->head = reading->network->is_second ? 1 : 2;
    const bool moves = reading->momentum > 0.0;
    switch (reading->kind) {
    case SGD: /* Keras 2 has the arrays without momentum, too */
        reading->slots = moves || (reading->network->is_second && !reading->is_legacy);
        reading->vector[0] = moves ? "momentum" : NULL;
        break;
    case ADAM:
        reading->slots = 2;
        reading->vector[0] = "mean";
        reading->vector[1] = "square";
        break;
    case ADAGRAD:
        reading->slots = 1;
        reading->vector[0] = "squares";
    }
    return true;
}

/* With as few digits as give the float back. */
static void put(struct text *text, const char *name, double value) {
    char digits[40];
    for (int precision = 1; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtof(digits, NULL) - (float)value == 0.0f) break;
    }
    text_add(text, "%s%s=%s", strchr(text->bytes, ':') ? "," : ":", name, digits);
}

/* As --optimizer takes it, and would take it when typed. */
static bool settle(const struct reading *reading) {
    struct file_optimizer *out = reading->out;
    struct text text = text_into(out->text, sizeof out->text);
    const double weight_decay = number_of(reading, "weight_decay", 0.0);
    const bool looks_ahead = is_set(reading, "nesterov");
    const char *const moves = reading->momentum > 0.0 ? looks_ahead ? "nesterov" : "momentum" : "sgd";
    struct choice choice;
    struct error why = {0};
    text_add(&text, "%s", reading->kind == SGD ? moves : reading->kind == ADAM ? "adam" : "adagrad");
    put(&text, "rate", reading->rate);
    if (reading->momentum > 0.0) put(&text, "momentum", reading->momentum);
    if (reading->kind == ADAM) {
        put(&text, "beta1", number_of(reading, "beta_1", 0.9));
        put(&text, "beta2", number_of(reading, "beta_2", 0.999));
        put(&text, "epsilon", reading->epsilon);
        put(&text, "hat", 1);
    }
    if (reading->kind == ADAGRAD) put(&text, "epsilon", reading->is_legacy ? reading->epsilon : 0.0);
    if (is_set(reading, "weight_decay")) put(&text, "weight-decay", weight_decay);
    if (plugin_choose(&choice, &optimizer_kind, out->text, &why) != OK)
        return leave_out(reading, "%.170s", why.words);
    if (weight_decay > 0.0 && reading->has_vectors)
        snprintf(out->words, sizeof out->words,
                 "%.50s: its weight decay goes on for kernels, not for biases, scales and shifts as there",
                 reading->network->path);
    return true;
}

/* --- its state --- */

static const char *path_of(const struct reading *reading, int place, char path[PATH_MOST]) {
    if (reading->places == KERAS_BY_CLASS)
        snprintf(path, PATH_MOST, "optimizer/vars/%d", place);
    else
        snprintf(path, PATH_MOST, "optimizer_weights/%s",
                 place < reading->names.count ? reading->names.texts[place] : "");
    return path;
}

static int find(const struct reading *reading, int place, char path[PATH_MOST], uint64_t *object) {
    return hdf5_reader_find(reading->from, path_of(reading, place, path), object, reading->error);
}

/* *all: as many as there should be, neither more nor fewer. */
static int count_arrays(const struct reading *reading, bool *all) {
    const int expected = reading->head + reading->slots * reading->variables;
    char path[PATH_MOST];
    uint64_t last = 0, behind = 0;
    *all = reading->names.count == expected;
    if (reading->places == KERAS_BY_NAME) return OK;
    RETURN_IF(find(reading, expected - 1, path, &last));
    RETURN_IF(find(reading, expected, path, &behind));
    *all = last != 0 && behind == 0;
    return OK;
}

static int read_number(const struct reading *reading, int place, double *value) {
    char path[PATH_MOST];
    uint64_t object = 0;
    RETURN_IF(find(reading, place, path, &object));
    if (object == 0)
        return error_set(reading->error, ERROR_FILE, "%s: found no %.200s", reading->network->path, path);
    return hdf5_reader_number(reading->from, object, path, value, reading->error);
}

/* Steps and learning rate. *any: there were steps. */
static int read_head(struct reading *reading, bool *any) {
    double updates = 0.0;
    uint64_t object = 0;
    char path[PATH_MOST];
    *any = false;
    if (reading->places == KERAS_BY_NAME && reading->names.count == 0) return OK;
    RETURN_IF(find(reading, 0, path, &object));
    if (object == 0) return OK;
    RETURN_IF(read_number(reading, 0, &updates));
    if (!(updates >= 0.0 && updates <= UPDATES_MOST) || floor(updates) < updates)
        return error_set(reading->error, ERROR_FILE,
                         "%s: %.200s: found %g steps, expected a whole number from 0 to %d",
                         reading->network->path, path, updates, UPDATES_MOST);
    reading->out->updates = (long)updates;
    *any = updates > 0.0;
    return *any && reading->head > 1 ? read_number(reading, 1, &reading->rate) : OK;
}

/* In place, as it is here. */
static int convert(const struct reading *reading, int slot, const char *path, size_t count, float *values) {
    const bool squares = reading->kind == ADAGRAD || slot > 0;
    for (size_t i = 0; i < count; i++) {
        if (squares && values[i] < 0.0f)
            return error_set(reading->error, ERROR_FILE, "%s: %.200s: found %g, expected a sum of squares",
                             reading->network->path, path, (double)values[i]);
        if (reading->kind == SGD) values[i] = -values[i] / (float)reading->rate;
        if (reading->kind == ADAGRAD && !reading->is_legacy) values[i] += (float)reading->epsilon;
        if (!isfinite(values[i]))
            return error_set(reading->error, ERROR_FILE,
                             "%s: %.200s: found what is too large for a learning rate of %g",
                             reading->network->path, path, reading->rate);
    }
    return OK;
}

/* One array of the variable that is called `name` here. *good is false where it has another shape. */
static int read_slot(struct reading *reading, int place, int slot, const char *name, bool *good) {
    const struct file_array *weight = network_file_find(reading->network->file, name);
    const struct shape shape = weight ? weight->shape : (struct shape){0};
    char path[PATH_MOST], own[sizeof weight->name + 20], words[PATH_MOST + 100];
    struct npy array;
    uint64_t object = 0;
    RETURN_IF(find(reading, place, path, &object));
    *good = object != 0 && weight;
    if (!*good) return OK;
    RETURN_IF(hdf5_reader_array(reading->from, object, path, &array, reading->error));
    *good = shape_equal(&array.shape, &shape);
    reading->bytes += array.count * (size_t)array.item;
    if (!*good || !reading->vector[slot]) return OK;
    if (reading->bytes > reading->from->length)
        return error_set(reading->error, ERROR_FILE, "%s: the optimizer's arrays are longer than all of it",
                         reading->network->path);
    snprintf(own, sizeof own, "%s:%s", reading->vector[slot], name);
    snprintf(words, sizeof words, "%s: %s", reading->network->path, path);
    array.name = words;
    struct file_array *out = network_file_array(reading->network->file, own, &shape, reading->error);
    if (!out) return reading->error->code;
    RETURN_IF(npy_floats(&array, 0, array.count, out->values, reading->error));
    return convert(reading, slot, path, array.count, out->values);
}

/* Calls `each`, if there is one, with the names of all trained variables, in Keras' order, as far as *good;
 * counts them. */
static int walk(struct reading *reading,
                int (*each)(struct reading *reading, int variable, const char *name, bool *good),
                bool *good) {
    const struct keras_network *network = reading->network;
    int count = 0;
    for (int i = 0; i < network->weighted_count; i++) {
        const char *names[KERAS_WEIGHTS_MOST];
        const struct layer *layer = &network->file->list.layers[network->weighted[i].layer];
        int trained;
        keras_weights_of(network, &network->weighted[i], names, &trained);
        if (network->weighted[i].is_fixed) continue;
        for (int w = 0; w < trained; w++, count++) {
            char name[sizeof((struct file_array *)0)->name];
            snprintf(name, sizeof name, "%s/%s", layer->name, names[w]);
            if (each && *good) RETURN_IF(each(reading, count, name, good));
            reading->has_vectors = reading->has_vectors || strcmp(names[w], "kernel") != 0;
        }
    }
    reading->variables = count;
    return OK;
}

static int read_variable(struct reading *reading, int variable, const char *name, bool *good) {
    for (int slot = 0; slot < reading->slots && *good; slot++) {
        const int place = reading->head + (reading->is_legacy ? slot * reading->variables + variable
                                                              : variable * reading->slots + slot);
        RETURN_IF(read_slot(reading, place, slot, name, good));
    }
    return OK;
}

static int read_state(struct reading *reading) {
    bool any = false, good = true;
    RETURN_IF(walk(reading, NULL, &good));
    RETURN_IF(read_head(reading, &any));
    if (!any) return OK;
    RETURN_IF(count_arrays(reading, &good));
    if (good && reading->kind == SGD && reading->momentum > 0.0 && !((float)reading->rate > 0.0f))
        good = leave_out(reading, "found momentum and the learning rate %g, expected one above 0",
                         reading->rate);
    else if (good)
        good = settle(reading);
    else
        good = leave_out(reading, "found other than %d arrays of the %d variables that are trained",
                         reading->slots * reading->variables, reading->variables);
    if (!good) return OK;
    RETURN_IF(walk(reading, read_variable, &good));
    if (!good) leave_out(reading, "found an array of another shape than its variable has");
    return OK;
}

int keras_optimizer_read(const struct keras_network *network, const struct json *json,
                         const struct json_value *compiled, struct hdf5_reader *from,
                         enum keras_places places, struct error *error) {
    struct reading reading = {.network = network,
                              .out = &network->file->optimizer,
                              .json = json,
                              .from = from,
                              .places = places,
                              .error = error};
    uint64_t object = 0;
    if (!compiled || compiled->kind != JSON_OBJECT) return OK;
    const struct json_value *name = json_member(json, compiled, "class_name");
    reading.config = json_member(json, compiled, "config");
    if (!name || name->kind != JSON_TEXT || !reading.config || reading.config->kind != JSON_OBJECT) return OK;
    if (!keras_is_own(json, compiled)) {
        char words[KERAS_CLASS_BYTES];
        leave_out(&reading, "found %.80s, expected a class of Keras itself",
                  keras_class_text(json, compiled, words));
        return OK;
    }
    if (!choose(&reading, name->text)) return OK;
    if (places == KERAS_BY_NAME) {
        RETURN_IF(hdf5_reader_find(from, "optimizer_weights", &object, error));
        if (object == 0) return OK;
        RETURN_IF(hdf5_reader_texts(from, object, "weight_names", &reading.names, error));
    }
    const int code = read_state(&reading);
    hdf5_texts_close(&reading.names);
    return code;
}
