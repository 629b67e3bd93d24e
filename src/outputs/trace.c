/* trace: trace.json, what each worker, server, shard and device queue did from when to when, for Perfetto and
 * chrome://tracing. It is a JSON array that is never closed, which both open: so it can be looked at while
 * the run goes on, and after a kill.
 *
 * Tracks: process 1 has a thread per worker, 2 one per server, 3 one per shard (several where several step it
 * at once), 4 one per device queue. Arrows lead from a push to the step of the shard that it made, and on to
 * the pull that first saw it. Source: "Trace Event Format", Google, 2016. */
#include <errno.h>
#include <stdarg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/file.h"
#include "../base/memory.h"
#include "../record/output.h"

/* Nobody scrolls through more. */
static const long long most_bytes = 256LL << 20;
enum { PENDING = 256, SHARDS_LINKED = 4, TRACKS = 4096 };
enum { WORKERS = 1, SERVERS, SHARDS, QUEUES }; /* processes */

/* A shard was stepped, and nobody has pulled the weights since, as far as it is known. */
struct pending {
    long id, version;
    double end_s;
};

struct tracing {
    FILE *file;
    char path[PATH_BYTES];
    const struct output_scene *scene; /* borrowed */
    long long bytes, flushed;         /* of whole lines */
    struct pending pending[PENDING];
    int pending_count;
    bool full;
    bool *named; /* [TRACKS] of shards: their tracks have names already */
    long left_out;
};

static int failed(const struct tracing *tracing, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", tracing->path, strerror(errno));
}

static __attribute__((format(printf, 2, 3))) void add(struct tracing *tracing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vfprintf(tracing->file, format, arguments);
    va_end(arguments);
    if (bytes > 0) tracing->bytes += bytes;
}

static int flush(struct tracing *tracing, struct error *error) {
    if (fflush(tracing->file) == 0) {
        tracing->flushed = tracing->bytes;
        return OK;
    }
    const int code = failed(tracing, error);
    if (ftruncate(fileno(tracing->file), (off_t)tracing->flushed) != 0) return code; /* a reader copes */
    return code;
}

static double us(double seconds) {
    return seconds * 1e6;
}

/* As it is written. */
static double rounded_us(double seconds) {
    return round(seconds * 1e9) * 1e-3;
}

static void name_process(struct tracing *tracing, int process, const char *name) {
    add(tracing, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}},\n", process,
        name);
    add(tracing, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}},\n",
        process, process);
}

/* Names of members and devices are ours, and have nothing that JSON would mind. */
static void name_track(struct tracing *tracing, int process, int track, const char *name) {
    add(tracing,
        "{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}},\n",
        process, track, name);
}

static void name_tracks(struct tracing *tracing) {
    const struct roster *roster = tracing->scene->roster;
    name_process(tracing, WORKERS, "workers");
    if (roster->count > roster->workers) name_process(tracing, SERVERS, "servers");
    name_process(tracing, SHARDS, "shards");
    for (int m = 0; m < roster->count; m++)
        name_track(tracing, m < roster->workers ? WORKERS : SERVERS, m, roster->members[m].name);
}

/* Those who may step a shard at once have a track each: 0 is for where that is one alone. */
static int shard_track(struct tracing *tracing, const struct trace_span *span) {
    const int workers = tracing->scene->workers, track = span->shard * (workers + 1) + span->member + 1;
    char name[64];
    if (track >= TRACKS || tracing->named[track]) return track;
    tracing->named[track] = true;
    if (span->member < 0)
        snprintf(name, sizeof name, "shard %d", span->shard);
    else
        snprintf(name, sizeof name, "shard %d, by worker %d", span->shard, span->member);
    name_track(tracing, SHARDS, track, name);
    return track;
}

/* --- the file --- */

/* While it grows, the file is an array without an end, which viewers take: a run may be killed. A run that
 * ends makes it an object, which is JSON to everybody and says that times have more digits than microseconds;
 * there is room for its first line. */
static const char object_begins[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

static void array_begins(char line[sizeof object_begins]) {
    memset(line, ' ', sizeof object_begins);
    line[0] = '[';
    line[sizeof object_begins - 2] = '\n';
    line[sizeof object_begins - 1] = '\0';
}

/* What an earlier part left: its events up to the checkpoint, each a line that ends with a comma; the last
 * one may be torn. */
static int rewind_to(const char *path, double until_s, struct error *error) {
    char line[1024], first[sizeof object_begins];
    struct file_new file = {0};
    FILE *before = fopen(path, "r");
    if (!before) return OK;
    int code = file_create(&file, path, error);
    array_begins(first);
    if (code == OK) fputs(first, file.stream);
    while (code == OK && fgets(line, sizeof line, before)) {
        const char *at = strstr(line, "\"ts\":"), *end = strstr(line, ",\n");
        if (end && end[2] == '\0' && !(at && strtod(at + 5, NULL) > us(until_s))) fputs(line, file.stream);
    }
    fclose(before);
    if (code == OK) code = file_commit(&file, error);
    file_abandon(&file);
    return code;
}

static int open_trace(void *self, const struct output_scene *scene, struct error *error) {
    struct tracing *tracing = self;
    tracing->scene = scene;
    RETURN_IF(memory_array(&tracing->named, TRACKS, "the tracks of the trace", error));
    RETURN_IF(file_join(tracing->path, scene->folder, "trace.json", error));
    const bool goes_on = scene->goes_on && file_exists(tracing->path);
    if (goes_on) RETURN_IF(rewind_to(tracing->path, scene->seconds_before, error));
    RETURN_IF((goes_on ? file_amend : file_overwrite)(&tracing->file, tracing->path, error));
    if (fseek(tracing->file, 0, SEEK_END) != 0) return failed(tracing, error);
    tracing->bytes = tracing->flushed = ftell(tracing->file);
    char first[sizeof object_begins];
    array_begins(first);
    if (!goes_on) add(tracing, "%s", first);
    name_tracks(tracing);
    return flush(tracing, error);
}

/* --- events --- */

static long step_of(const struct tracing *tracing, const struct trace_span *span) {
    const long *before = tracing->scene->steps_before;
    return span->step +
           (before && span->worker >= 0 && span->worker < tracing->scene->workers ? before[span->worker] : 0);
}

/* Its end is rounded, not its length: where the next slice begins there, the two must not overlap. */
static void begin_slice(struct tracing *tracing, const struct trace_span *span, int process, int track) {
    add(tracing, "{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,", process, track,
        rounded_us(span->begin_s), rounded_us(span->end_s) - rounded_us(span->begin_s));
}

/* One gradient's way into one shard. */
static long way(const struct tracing *tracing, const struct trace_span *span, int shard) {
    return (step_of(tracing, span) * 1024 + span->worker) * SHARDS_LINKED + shard;
}

/* A viewer binds an arrow to the slice that it finds at its time; on an edge, its rounding may find none. */
static const double inside_s = 20e-9;

static double just_after_begin(const struct trace_span *span) {
    return fmin(span->begin_s + inside_s, (span->begin_s + span->end_s) / 2);
}

static double just_before_end(const struct trace_span *span) {
    return fmax(span->end_s - inside_s, (span->begin_s + span->end_s) / 2);
}

static void add_flow(struct tracing *tracing, const char *phase, long id, int process, int track,
                     double at_s) {
    add(tracing,
        "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"id\":%ld,\"cat\":\"gradient\",\"name\":"
        "\"gradient\"%s},\n",
        phase, process, track, us(at_s), id, phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static void add_apply(struct tracing *tracing, const struct trace_span *span) {
    const int track = shard_track(tracing, span);
    begin_slice(tracing, span, SHARDS, track);
    add(tracing, "\"name\":\"step\",\"args\":{\"worker\":%d,\"step\":%ld,\"version\":%ld}},\n", span->worker,
        step_of(tracing, span), span->version);
    if (span->shard >= SHARDS_LINKED) return;
    add_flow(tracing, "t", way(tracing, span, span->shard), SHARDS, track, just_after_begin(span));
    if (span->shard > 0) return; /* pulls tell the version of the first shard */
    if (tracing->pending_count == PENDING)
        memmove(tracing->pending, tracing->pending + 1,
                (size_t)--tracing->pending_count * sizeof *tracing->pending);
    tracing->pending[tracing->pending_count++] =
        (struct pending){.id = way(tracing, span, 0), .version = span->version, .end_s = span->end_s};
}

/* The first pull after it that has the version, or a later one. */
static void end_flows(struct tracing *tracing, const struct trace_span *pull) {
    int left = 0;
    for (int i = 0; i < tracing->pending_count; i++) {
        const struct pending *one = &tracing->pending[i];
        if (one->version <= pull->version && one->end_s <= pull->end_s)
            add_flow(tracing, "f", one->id, WORKERS, pull->member, just_before_end(pull));
        else
            tracing->pending[left++] = *one;
    }
    tracing->pending_count = left;
}

static void add_wait(struct tracing *tracing, const struct trace_span *span) {
    const struct roster *roster = tracing->scene->roster;
    begin_slice(tracing, span, span->member < roster->workers ? WORKERS : SERVERS, span->member);
    add(tracing, "\"name\":\"wait\",\"args\":{\"at\":\"%s\",\"for\":\"%s\",\"step\":%ld}},\n",
        span->place ? span->place : "", span->worker >= 0 ? roster->members[span->worker].name : "nobody",
        span->step);
}

static void add_serve(struct tracing *tracing, const struct trace_span *span) {
    begin_slice(tracing, span, SERVERS, span->member);
    add(tracing, "\"name\":\"serve\",\"args\":{\"worker\":%d,\"step\":%ld,\"shard\":%d}},\n", span->worker,
        step_of(tracing, span), span->shard);
    add(tracing,
        "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"cat\":\"counter\",\"name\":\"mailbox of shard "
        "%d\",\"args\":{\"gradients\":%ld}},\n",
        SERVERS, us(span->end_s), span->shard, span->waiting);
}

static void add_phase(struct tracing *tracing, const struct trace_span *span) {
    static const char *const names[] = {"input", "pull", "compute", "push"};
    begin_slice(tracing, span, WORKERS, span->member);
    add(tracing, "\"name\":\"%s\",\"args\":{\"step\":%ld", names[span->kind], step_of(tracing, span));
    if (span->kind == TRACE_PULL) add(tracing, ",\"version\":%ld", span->version);
    add(tracing, "}},\n");
    if (span->kind == TRACE_PULL) end_flows(tracing, span);
    if (span->kind != TRACE_PUSH) return;
    for (int shard = 0; shard < tracing->scene->shards && shard < SHARDS_LINKED; shard++)
        add_flow(tracing, "s", way(tracing, span, shard), WORKERS, span->member, just_after_begin(span));
}

static void add_queue(struct tracing *tracing, const struct trace_span *span) {
    const int track = span->member;
    if (track < TRACKS && !tracing->named[TRACKS - 1 - track]) {
        name_process(tracing, QUEUES, "device queues");
        name_track(tracing, QUEUES, track, tracing->scene->devices[track]);
        tracing->named[TRACKS - 1 - track] = true;
    }
    begin_slice(tracing, span, QUEUES, track);
    add(tracing, "\"name\":\"compute\",\"args\":{\"step\":%ld}},\n", step_of(tracing, span));
}

static void add_span(struct tracing *tracing, const struct trace_span *span) {
    switch (span->kind) {
    case TRACE_WAIT:
        add_wait(tracing, span);
        break;
    case TRACE_SERVE:
        add_serve(tracing, span);
        break;
    case TRACE_APPLY:
        add_apply(tracing, span);
        break;
    case TRACE_QUEUE:
        add_queue(tracing, span);
        break;
    default:
        add_phase(tracing, span);
    }
}

static void add_mark(struct tracing *tracing, double at_s, const char *name) {
    add(tracing, "{\"ph\":\"i\",\"s\":\"g\",\"pid\":%d,\"ts\":%.3f,\"name\":\"", WORKERS, us(at_s));
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c >= ' ') add(tracing, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    add(tracing, "\"},\n");
}

static int spans(void *self, const struct trace_span *spans, int count, long left_out, struct error *error) {
    struct tracing *tracing = self;
    for (int i = 0; i < count && !tracing->full; i++) add_span(tracing, &spans[i]);
    if (count > 0 && left_out > tracing->left_out)
        add_mark(tracing, spans[count - 1].end_s, "spans are missing: too many at once");
    tracing->left_out = left_out;
    if (count > 0 && tracing->bytes > most_bytes && !tracing->full) {
        tracing->full = true;
        add_mark(tracing, spans[count - 1].end_s, "the trace ends here: it is 256 MB");
    }
    return flush(tracing, error);
}

static int every(const struct output_scene *scene) {
    return scene->folder ? 1 : 0;
}

static int steps(void *self, const struct log_row *rows, int count, struct error *error) {
    struct tracing *tracing = self;
    long first, one_in;
    RETURN_IF(config_trace(tracing->scene->config, &first, &one_in, error));
    for (int i = 0; i < count && !tracing->full; i++) {
        const long *before = tracing->scene->steps_before;
        const long step = rows[i].step - (before ? before[rows[i].worker] : 0);
        if (step > first && (one_in == 0 || step % one_in != 0)) continue;
        add(tracing,
            "{\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,\"cat\":\"counter\",\"name\":\"staleness of worker "
            "%d\",\"args\":{\"updates\":%ld}},\n",
            WORKERS, us(rows[i].time_s), rows[i].worker, rows[i].staleness);
    }
    return flush(tracing, error);
}

static int event(void *self, const struct output_event *event, struct error *error) {
    struct tracing *tracing = self;
    static const char *const names[] = {[EVENT_RESUMED] = "resumed", [EVENT_TARGET] = "target reached",
                                        [EVENT_BEST] = "best epoch", [EVENT_CHECKPOINT] = "checkpoint",
                                        [EVENT_LOST] = "lost",       [EVENT_LEFT] = "left",
                                        [EVENT_JOINED] = "joined",   [EVENT_STRATEGY] = "strategy"};
    char text[400];
    snprintf(text, sizeof text, "%s: %s", names[event->kind], event->words);
    add_mark(tracing, event->time_s, text);
    return flush(tracing, error);
}

static int end(void *self, const struct output_end *end, struct error *error) {
    struct tracing *tracing = self;
    (void)end;
    add(tracing, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"workers\"}}\n]}\n",
        WORKERS);
    RETURN_IF(flush(tracing, error));
    if (fseek(tracing->file, 0, SEEK_SET) != 0) return failed(tracing, error);
    fputs(object_begins, tracing->file);
    return fflush(tracing->file) == 0 && !ferror(tracing->file) ? OK : failed(tracing, error);
}

static void close_trace(void *self) {
    const struct tracing *tracing = self;
    if (tracing->file) fclose(tracing->file);
    memory_free(tracing->named);
}

static const char *const files[] = {"trace.json", NULL};

const struct output output_trace = {
    .plugin = {.name = "trace",
               .help = "trace.json, what each worker, server and shard did when, for Perfetto"},
    .self_bytes = sizeof(struct tracing),
    .files = files,
    .every = every,
    .open = open_trace,
    .steps = steps,
    .spans = spans,
    .event = event,
    .end = end,
    .close = close_trace,
};
