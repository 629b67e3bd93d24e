/* The threads take the pictures one by one from a counter. One that fails ends all; those with smaller
 * numbers have all been taken by then and are finished, so the failure with the smallest number is the same
 * every time. */
#include "picture_set.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include "../base/memory.h"
#include "../world/world.h"

struct decoding {
    struct picture_set *set;
    bool *left_out;    /* [count] */
    _Atomic int next;  /* picture */
    _Atomic bool over; /* a thread failed, or the user wants to stop */
};

struct decoder {
    struct decoding *decoding;
    float *numbers;      /* [height][width][channels] */
    struct error failed; /* and the picture that it failed at */
    int failed_at;
    struct error damaged; /* the first that is left out */
    int damaged_at;
    struct world_thread *thread;
};

/* The picture `at` of the set becomes its bytes. */
static int read_one(const struct picture_set *set, int at, float *numbers, struct error *error) {
    const size_t count = (size_t)set->height * (size_t)set->width * (size_t)set->channels;
    uint8_t *pixels = set->pixels + (size_t)at * count;
    char path[PATH_BYTES], *bytes = NULL;
    size_t length;
    const struct picture_form form = {set->height, set->width, set->channels, set->fit};
    set->labels[at] = set->folders->files[set->order[at]].label;
    RETURN_IF(class_folders_path(set->folders, set->order[at], path, error));
    RETURN_IF(file_read(path, PICTURE_MOST_BYTES, &bytes, &length, error));
    const int code = picture_read(&form, path, bytes, length, numbers, error);
    memory_free(bytes);
    for (size_t i = 0; i < count && code == OK; i++) pixels[i] = (uint8_t)roundf(numbers[i]);
    return code;
}

static void decode(void *argument) {
    struct decoder *decoder = argument;
    struct decoding *decoding = decoder->decoding;
    const struct picture_set *set = decoding->set;
    while (!atomic_load(&decoding->over)) {
        const int at = atomic_fetch_add(&decoding->next, 1);
        struct error error = {0};
        if (at >= set->count) return;
        const int code = world_interrupted()
                             ? error_set(&error, ERROR_INTERRUPTED, "interrupted while pictures were decoded")
                             : read_one(set, at, decoder->numbers, &error);
        if (code == OK) continue;
        decoding->left_out[at] = code == ERROR_FILE && set->skip;
        if (decoding->left_out[at] && decoder->damaged.code == OK) {
            decoder->damaged = error;
            decoder->damaged_at = at;
        } else if (!decoding->left_out[at]) {
            decoder->failed = error;
            decoder->failed_at = at;
            atomic_store(&decoding->over, true);
        }
    }
}

/* Moves what is not left out together. */
static void close_gaps(struct picture_set *set, const bool *left_out) {
    const size_t bytes = (size_t)set->height * (size_t)set->width * (size_t)set->channels;
    int kept = 0;
    for (int i = 0; i < set->count; i++) {
        if (left_out[i]) continue;
        if (kept < i) memcpy(set->pixels + (size_t)kept * bytes, set->pixels + (size_t)i * bytes, bytes);
        set->labels[kept++] = set->labels[i];
    }
    set->damaged = set->count - kept;
    set->count = kept;
}

/* What the threads say, as if one had gone through the pictures alone. */
static int gather(struct picture_set *set, const struct decoder *decoders, int threads, struct error *error) {
    int failed = INT_MAX, damaged = INT_MAX;
    for (int t = 0; t < threads; t++) {
        const struct decoder *decoder = &decoders[t];
        if (decoder->failed.code != OK && decoder->failed_at < failed) {
            failed = decoder->failed_at;
            *error = decoder->failed;
        }
        if (decoder->damaged.code != OK && decoder->damaged_at < damaged) {
            damaged = decoder->damaged_at;
            set->first_damaged = decoder->damaged;
        }
    }
    return error->code;
}

static int run_threads(struct decoding *decoding, struct decoder *decoders, int threads,
                       struct error *error) {
    struct world *world = NULL;
    const struct picture_set *set = decoding->set;
    const size_t numbers = (size_t)set->height * (size_t)set->width * (size_t)set->channels;
    RETURN_IF(world_open_threads(&world, error));
    int code = OK;
    for (int t = 0; t < threads && code == OK; t++) {
        decoders[t].decoding = decoding;
        code = memory_array(&decoders[t].numbers, numbers, "a picture's numbers", error);
        if (code == OK)
            code = world_spawn(world, "decoder", NULL, decode, &decoders[t], &decoders[t].thread, error);
    }
    if (code != OK) atomic_store(&decoding->over, true);
    for (int t = 0; t < threads; t++) world_join(decoders[t].thread);
    for (int t = 0; t < threads; t++) memory_free(decoders[t].numbers);
    world_close(world);
    return code;
}

int picture_set_read(struct picture_set *set, int threads, struct error *error) {
    struct decoding decoding = {.set = set};
    struct decoder *decoders = NULL;
    if (threads > set->count) threads = set->count;
    int code = memory_array(&decoding.left_out, set->count, "pictures", error);
    if (code == OK) code = memory_array(&decoders, threads, "threads", error);
    if (code == OK) code = run_threads(&decoding, decoders, threads, error);
    if (code == OK) code = gather(set, decoders, threads, error);
    if (code == OK) close_gaps(set, decoding.left_out);
    memory_free(decoders);
    memory_free(decoding.left_out);
    return code;
}
