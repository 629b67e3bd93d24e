/* See events.h. Encoded by protobuf-c from events.proto; a record at a time, in a buffer that is kept. */
#include "events.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

#include "../base/bytes.h"
#include "../base/crc32c.h"
#include "../base/memory.h"
#include "event_files.h"
#include "events.pb-c.h"
#include "graph_def.h"

enum { HEAD_BYTES = 12, TAIL_BYTES = 4, STREAM_BYTES = 1 << 14, VALUES_MOST = 32 };
/* Of TensorFlow: SessionLog, SummaryMetadata.data_class, DataType; of its plug-in "hparams". */
enum { SESSION_START = 1 };
enum { CLASS_TENSOR = 2 };
enum { TENSOR_FLOAT = 1, TENSOR_DOUBLE = 2, TENSOR_STRING = 7 };
enum { INFO_TEXT = 1, INFO_FLAG = 2, INFO_NUMBER = 3, END_SUCCESS = 1, END_FAILURE = 2 };

/* --- records --- */

static uint32_t masked(const void *bytes, size_t count) {
    const uint32_t crc = crc32c(0, bytes, count);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

static int failed(const struct events *events, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: events cannot be written: %s", events->path, strerror(errno));
}

static int make_room(struct events *events, size_t bytes, struct error *error) {
    if (bytes <= events->room_bytes) return OK;
    memory_free(events->room);
    events->room = NULL;
    events->room_bytes = 0;
    RETURN_IF(memory_array(&events->room, 2 * bytes, "a record of events", error));
    events->room_bytes = 2 * bytes;
    return OK;
}

static int put(struct events *events, double time, long step, Tb__Event *event, struct error *error) {
    event->has_wall_time = event->has_step = 1;
    event->wall_time = time;
    event->step = step;
    const size_t bytes = tb__event__get_packed_size(event), all = HEAD_BYTES + bytes + TAIL_BYTES;
    RETURN_IF(make_room(events, all, error));
    unsigned char *at = events->room;
    bytes_put_little(at, 8, bytes);
    bytes_put_little(at + 8, 4, masked(at, 8));
    tb__event__pack(event, at + HEAD_BYTES);
    bytes_put_little(at + HEAD_BYTES + bytes, 4, masked(at + HEAD_BYTES, bytes));
    events->bytes += (long long)all;
    return fwrite(at, 1, all, events->file) == all ? OK : events_flush(events, error);
}

static int put_values(struct events *events, double time, long step, Tb__Summary__Value **values, int count,
                      struct error *error) {
    Tb__Summary summary = TB__SUMMARY__INIT;
    Tb__Event event = TB__EVENT__INIT;
    summary.n_value = (size_t)count;
    summary.value = values;
    event.summary = &summary;
    return count > 0 ? put(events, time, step, &event, error) : OK;
}

static int begin(struct events *events, double time, long first_step, struct error *error) {
    static char version[] = "brain.Event:2";
    Tb__Event event = TB__EVENT__INIT;
    event.file_version = version;
    RETURN_IF(put(events, time, 0, &event, error));
    /* The first START of a folder makes nothing void: a run that begins has one, too. */
    Tb__SessionLog start = TB__SESSION_LOG__INIT;
    start.has_status = 1;
    start.status = SESSION_START;
    event = (Tb__Event)TB__EVENT__INIT;
    event.session_log = &start;
    RETURN_IF(put(events, time, first_step, &event, error));
    return events_flush(events, error);
}

/* Bytes of the whole records that a file begins with. */
static long long whole_bytes(FILE *file, long long bytes) {
    long long whole = 0;
    unsigned char head[HEAD_BYTES];
    while (fseeko(file, (off_t)whole, SEEK_SET) == 0 && fread(head, sizeof head, 1, file) == 1) {
        const uint64_t length = bytes_little(head, 8);
        if (length > (uint64_t)bytes || whole + HEAD_BYTES + (long long)length + TAIL_BYTES > bytes) break;
        whole += HEAD_BYTES + (long long)length + TAIL_BYTES;
    }
    return whole;
}

/* A part of the run that was killed may have left half a record at the end of its file. */
static int cut_torn(const char *folder, struct error *error) {
    char path[PATH_BYTES];
    RETURN_IF(event_file_last(path, folder, error));
    const int handle = *path ? open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC) : -1;
    FILE *file = handle < 0 ? NULL : fdopen(handle, "rb");
    if (!file) {
        if (handle >= 0) close(handle);
        return OK; /* what cannot be read is left alone */
    }
    const long long bytes = fseeko(file, 0, SEEK_END) == 0 ? (long long)ftello(file) : 0;
    const long long whole = whole_bytes(file, bytes);
    const bool failed = whole < bytes && ftruncate(handle, (off_t)whole) != 0;
    const int why = errno;
    fclose(file);
    if (!failed) return OK;
    return error_set(error, ERROR_FILE, "%s: its end is torn and cannot be cut off: %s", path, strerror(why));
}

int events_open(struct events *events, const char *folder, long long utc_seconds, long first_step,
                struct error *error) {
    *events = (struct events){0};
    RETURN_IF(cut_torn(folder, error));
    RETURN_IF(event_file_next(&events->file, events->path, folder, utc_seconds, error));
    setvbuf(events->file, NULL, _IOFBF, STREAM_BYTES);
    return begin(events, (double)utc_seconds, first_step, error);
}

int events_flush(struct events *events, struct error *error) {
    if (fflush(events->file) == 0 && !ferror(events->file)) {
        events->flushed = events->bytes;
        return OK;
    }
    const int code = failed(events, error);
    __fpurge(events->file);
    if (ftruncate(fileno(events->file), (off_t)events->flushed) != 0) return code;
    return code;
}

void events_close(struct events *events) {
    if (events->file) fclose(events->file);
    memory_free(events->room);
    *events = (struct events){0};
}

/* --- values --- */

/* protobuf-c's texts are not const, though packing only reads them. */
static char *unconst(const char *text) {
    union {
        const char *from;
        char *to;
    } same = {.from = text};
    return same.to;
}

int events_scalars(struct events *events, double time, long step, const struct events_scalar *scalars,
                   int count, struct error *error) {
    Tb__Summary__Value values[VALUES_MOST], *list[VALUES_MOST];
    int used = 0;
    for (int i = 0; i < count && used < VALUES_MOST; i++) {
        if (isnan(scalars[i].value)) continue;
        tb__summary__value__init(&values[used]);
        values[used].tag = unconst(scalars[i].tag);
        values[used].has_simple_value = 1;
        values[used].simple_value = (float)scalars[i].value;
        list[used] = &values[used];
        used++;
    }
    return put_values(events, time, step, list, used, error);
}

/* A value of the plug-in `name`, with what it keeps about the tag, and a tensor of its shape. */
struct plugin_value {
    Tb__Summary__Value value;
    Tb__Metadata metadata;
    Tb__Metadata__PluginData plugin;
    Tb__Tensor tensor;
    Tb__Shape shape;
    Tb__Shape__Dim dims[2], *dim_list[2];
};

static void plugin_value(struct plugin_value *v, const char *tag, const char *name, int type, int rank,
                         const int *dims) {
    tb__summary__value__init(&v->value);
    tb__metadata__init(&v->metadata);
    tb__metadata__plugin_data__init(&v->plugin);
    tb__tensor__init(&v->tensor);
    tb__shape__init(&v->shape);
    v->value.tag = unconst(tag);
    v->value.metadata = &v->metadata;
    v->value.tensor = &v->tensor;
    v->metadata.plugin_data = &v->plugin;
    v->metadata.has_data_class = 1;
    v->metadata.data_class = CLASS_TENSOR;
    v->plugin.plugin_name = unconst(name);
    v->tensor.has_dtype = 1;
    v->tensor.dtype = type;
    v->tensor.tensor_shape = &v->shape;
    v->shape.n_dim = (size_t)rank;
    v->shape.dim = v->dim_list;
    for (int i = 0; i < rank; i++) {
        tb__shape__dim__init(&v->dims[i]);
        v->dims[i].has_size = 1;
        v->dims[i].size = dims[i];
        v->dim_list[i] = &v->dims[i];
    }
}

static int put_plugin_value(struct events *events, double time, long step, struct plugin_value *v,
                            struct error *error) {
    Tb__Summary__Value *list[] = {&v->value};
    return put_values(events, time, step, list, 1, error);
}

int events_histogram(struct events *events, double time, long step, const char *tag,
                     const struct events_bucket *buckets, int count, struct error *error) {
    unsigned char *bytes = NULL;
    struct plugin_value v;
    RETURN_IF(memory_array(&bytes, (size_t)count * 24, "a histogram", error));
    for (int i = 0; i < count; i++) {
        const double row[] = {buckets[i].left, buckets[i].right, buckets[i].count};
        for (int k = 0; k < 3; k++) {
            uint64_t bits;
            memcpy(&bits, &row[k], sizeof bits);
            bytes_put_little(bytes + 24 * i + 8 * k, 8, bits);
        }
    }
    plugin_value(&v, tag, "histograms", TENSOR_DOUBLE, 2, (const int[]){count, 3});
    v.tensor.has_tensor_content = 1;
    v.tensor.tensor_content = (ProtobufCBinaryData){.len = (size_t)count * 24, .data = bytes};
    const int code = put_plugin_value(events, time, step, &v, error);
    memory_free(bytes);
    return code;
}

int events_buckets(struct events_bucket buckets[EVENTS_BUCKETS], const float *values, size_t count) {
    double least = (double)INFINITY, most = -(double)INFINITY;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        least = fmin(least, (double)values[i]);
        most = fmax(most, (double)values[i]);
    }
    if (least > most) return 0;
    const bool one = !(least < most);
    const int made = one ? 1 : EVENTS_BUCKETS;
    const double left = one ? least - 0.5 : least, width = one ? 1.0 : (most - least) / made;
    for (int i = 0; i < made; i++)
        buckets[i] = (struct events_bucket){.left = left + i * width, .right = left + (i + 1) * width};
    if (!one) buckets[made - 1].right = most;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        const int bucket = (int)(((double)values[i] - left) / width);
        buckets[bucket < made ? bucket : made - 1].count++;
    }
    return made;
}

int events_image(struct events *events, double time, long step, const char *tag,
                 const struct events_image *image, struct error *error) {
    Tb__Summary__Image picture = TB__SUMMARY__IMAGE__INIT;
    Tb__Summary__Value value = TB__SUMMARY__VALUE__INIT, *list[] = {&value};
    unsigned char *png = NULL;
    picture.has_height = picture.has_width = picture.has_colorspace = picture.has_encoded_image_string = 1;
    picture.height = image->height;
    picture.width = image->width;
    picture.colorspace = image->channels;
    RETURN_IF(memory_array(&png, image->bytes, "a picture", error));
    memcpy(png, image->png, image->bytes);
    picture.encoded_image_string = (ProtobufCBinaryData){.len = image->bytes, .data = png};
    value.tag = unconst(tag);
    value.image = &picture;
    const int code = put_values(events, time, step, list, 1, error);
    memory_free(png);
    return code;
}

int events_text(struct events *events, double time, long step, const char *tag, const char *text,
                struct error *error) {
    ProtobufCBinaryData string = {.len = strlen(text), .data = (unsigned char *)unconst(text)};
    struct plugin_value v;
    plugin_value(&v, tag, "text", TENSOR_STRING, 1, (const int[]){1});
    v.tensor.n_string_val = 1;
    v.tensor.string_val = &string;
    return put_plugin_value(events, time, step, &v, error);
}

int events_graph(struct events *events, double time, const struct graph *graph, const char *device,
                 struct error *error) {
    Tb__Event event = TB__EVENT__INIT;
    unsigned char *bytes = NULL;
    size_t count = 0;
    RETURN_IF(graph_def_pack(graph, device, &bytes, &count, error));
    event.has_graph_def = 1;
    event.graph_def = (ProtobufCBinaryData){.len = count, .data = bytes};
    const int code = put(events, time, 0, &event, error);
    memory_free(bytes);
    return code;
}

/* --- the page HPARAMS --- */

static int put_hparams(struct events *events, double time, const char *tag, Tb__HParams *content,
                       struct error *error) {
    unsigned char *bytes = NULL;
    struct plugin_value v;
    const size_t count = tb__hparams__get_packed_size(content);
    RETURN_IF(memory_array(&bytes, count, "the settings among the events", error));
    tb__hparams__pack(content, bytes);
    plugin_value(&v, tag, "hparams", TENSOR_FLOAT, 1, (const int[]){0});
    v.plugin.has_content = 1;
    v.plugin.content = (ProtobufCBinaryData){.len = count, .data = bytes};
    const int code = put_plugin_value(events, time, 0, &v, error);
    memory_free(bytes);
    return code;
}

enum { SETTINGS_MOST = 64, METRICS_MOST = 16 };

static int put_experiment(struct events *events, double time, const struct events_setting *settings,
                          int count, const struct events_metric *metrics, int metric_count,
                          struct error *error) {
    static const int types[] = {
        [SETTING_TEXT] = INFO_TEXT, [SETTING_NUMBER] = INFO_NUMBER, [SETTING_FLAG] = INFO_FLAG};
    Tb__HParams content = TB__HPARAMS__INIT;
    Tb__HParams__Experiment experiment = TB__HPARAMS__EXPERIMENT__INIT;
    Tb__HParams__Info infos[SETTINGS_MOST], *info_list[SETTINGS_MOST];
    Tb__HParams__Metric shown[METRICS_MOST], *shown_list[METRICS_MOST];
    Tb__HParams__MetricName names[METRICS_MOST];
    for (int i = 0; i < count; i++) {
        tb__hparams__info__init(&infos[i]);
        infos[i].name = unconst(settings[i].name);
        infos[i].has_type = infos[i].has_differs = 1;
        infos[i].differs = settings[i].first;
        infos[i].type = types[settings[i].kind];
        info_list[i] = &infos[i];
    }
    for (int i = 0; i < metric_count; i++) {
        tb__hparams__metric__init(&shown[i]);
        tb__hparams__metric_name__init(&names[i]);
        names[i].tag = unconst(metrics[i].tag);
        shown[i].name = &names[i];
        shown[i].display_name = unconst(metrics[i].name);
        shown_list[i] = &shown[i];
    }
    experiment.has_time_created_secs = 1;
    experiment.time_created_secs = time;
    experiment.n_hparam_infos = (size_t)count;
    experiment.hparam_infos = info_list;
    experiment.n_metric_infos = (size_t)metric_count;
    experiment.metric_infos = shown_list;
    content.experiment = &experiment;
    return put_hparams(events, time, "_hparams_/experiment", &content, error);
}

static int put_session(struct events *events, double time, const struct events_setting *settings, int count,
                       struct error *error) {
    Tb__HParams content = TB__HPARAMS__INIT;
    Tb__HParams__Start start = TB__HPARAMS__START__INIT;
    Tb__HParams__Setting entries[SETTINGS_MOST], *list[SETTINGS_MOST];
    Tb__HParams__Any values[SETTINGS_MOST];
    for (int i = 0; i < count; i++) {
        tb__hparams__setting__init(&entries[i]);
        tb__hparams__any__init(&values[i]);
        entries[i].key = unconst(settings[i].name);
        entries[i].value = &values[i];
        list[i] = &entries[i];
        values[i].has_number_value = settings[i].kind == SETTING_NUMBER;
        values[i].number_value = settings[i].number;
        values[i].has_bool_value = settings[i].kind == SETTING_FLAG;
        values[i].bool_value = settings[i].flag;
        if (settings[i].kind == SETTING_TEXT) values[i].string_value = unconst(settings[i].text);
    }
    start.n_hparams = (size_t)count;
    start.hparams = list;
    start.has_start_time_secs = 1;
    start.start_time_secs = time;
    content.session_start_info = &start;
    return put_hparams(events, time, "_hparams_/session_start_info", &content, error);
}

int events_settings(struct events *events, double time, const struct events_setting *settings, int count,
                    const struct events_metric *metrics, int metric_count, struct error *error) {
    if (count > SETTINGS_MOST || metric_count > METRICS_MOST)
        return error_set(error, ERROR_INTERNAL,
                         "events: %d settings and %d metrics, expected at most %d and %d", count,
                         metric_count, SETTINGS_MOST, METRICS_MOST);
    RETURN_IF(put_experiment(events, time, settings, count, metrics, metric_count, error));
    return put_session(events, time, settings, count, error);
}

int events_settings_end(struct events *events, double time, bool succeeded, struct error *error) {
    Tb__HParams content = TB__HPARAMS__INIT;
    Tb__HParams__End end = TB__HPARAMS__END__INIT;
    end.has_status = end.has_end_time_secs = 1;
    end.status = succeeded ? END_SUCCESS : END_FAILURE;
    end.end_time_secs = time;
    content.session_end_info = &end;
    return put_hparams(events, time, "_hparams_/session_end_info", &content, error);
}
