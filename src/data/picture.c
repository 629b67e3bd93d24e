/* Decodes pictures with stb_image (stb.c), after picture_check. */
#include "picture.h"

#include "../base/memory.h"
#include "picture_check.h"

#if TRAINER_STB

#    define STBI_NO_STDIO
#    include <stb/stb_image.h>

/* A pixel of stb_image, `from` channels (2 and 4: the last is opacity), as `to` channels. */
static void convert_pixel(uint8_t *out, int to, const uint8_t *in, int from) {
    enum { RED = 77, GREEN = 150, BLUE = 29 }; /* together 256 */
    const int colours = from <= 2 ? 1 : 3, opacity = from % 2 == 0 ? in[from - 1] : 255;
    int seen[3];
    for (int c = 0; c < 3; c++)
        seen[c] = (in[colours == 1 ? 0 : c] * opacity + 255 * (255 - opacity) + 127) / 255;
    for (int c = 0; c < 3 && to == 3; c++) out[c] = (uint8_t)seen[c];
    if (to == 1) out[0] = (uint8_t)((RED * seen[0] + GREEN * seen[1] + BLUE * seen[2] + 128) >> 8);
}

static int refuse(const char *name, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: not a usable picture: %s", name, stbi_failure_reason());
}

static int decode(struct picture *picture, const char *name, const uint8_t *bytes, size_t count,
                  struct error *error) {
    int from = 0;
    uint8_t *decoded = stbi_load_from_memory(bytes, (int)count, &picture->width, &picture->height, &from, 0);
    if (decoded == NULL) return refuse(name, error);
    const size_t pixels = (size_t)picture->width * (size_t)picture->height,
                 channels = (size_t)picture->channels;
    const int code = memory_array(&picture->pixels, pixels * channels, "a picture", error);
    for (size_t i = 0; i < pixels && code == OK; i++)
        convert_pixel(picture->pixels + i * channels, picture->channels, decoded + i * (size_t)from, from);
    stbi_image_free(decoded);
    return code;
}

#else

static int decode(struct picture *picture, const char *name, const uint8_t *bytes, size_t count,
                  struct error *error) {
    (void)picture;
    (void)bytes;
    (void)count;
    return error_set(error, ERROR_FILE, "%s: a picture, which this build cannot read: it has no stb_image",
                     name);
}

#endif

int picture_decode(struct picture *picture, int channels, const char *name, const void *bytes, size_t count,
                   struct error *error) {
    *picture = (struct picture){.channels = channels};
    RETURN_IF(picture_check(name, bytes, count, error));
    const int code = decode(picture, name, bytes, count, error);
    if (code != OK) picture_close(picture);
    return code;
}

void picture_close(struct picture *picture) {
    memory_free(picture->pixels);
    *picture = (struct picture){0};
}
