/* Decodes pictures with stb_image (stb.c), after picture_check. */
#include "picture.h"

#include <string.h>

#include "../base/memory.h"
#include "exif.h"
#include "picture_check.h"

const char *const picture_fits[PICTURE_FITS] = {"none", "crop", "squash"};

#if TRAINER_STB

#    define STBI_NO_STDIO
#    include <stb/stb_image.h>

/* A pixel of stb_image, `from` channels (2 and 4: the last is opacity), as `to` channels. */
static void convert_pixel(uint8_t *out, int to, const uint8_t *in, int from) {
    enum { RED = 77, GREEN = 150, BLUE = 29 }; /* together 256 */
    const int colours = from <= 2 ? 1 : 3, opacity = from % 2 == 0 ? in[from - 1] : 255;
    int seen[3];
    if (from == to) {
        for (int c = 0; c < to; c++) out[c] = in[c];
        return;
    }
    for (int c = 0; c < 3; c++)
        seen[c] = (in[colours == 1 ? 0 : c] * opacity + 255 * (255 - opacity) + 127) / 255;
    for (int c = 0; c < 3 && to == 3; c++) out[c] = (uint8_t)seen[c];
    if (to == 1) out[0] = (uint8_t)((RED * seen[0] + GREEN * seen[1] + BLUE * seen[2] + 128) >> 8);
}

static int refuse(const char *name, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: not a usable picture: %s", name, stbi_failure_reason());
}

/* Where a GIF's first frame leaves its screen bare, stb_image puts the colour of the background, with red and
 * blue swapped; it has to be white, as what is transparent. So a copy says that there is none. */
static uint8_t *load_gif(const uint8_t *bytes, size_t count, int size[2], int *channels,
                         struct error *error) {
    enum { BACKGROUND_AT = 11 };
    uint8_t *copy = NULL;
    if (memory_array(&copy, count, "a GIF picture", error) != OK) return NULL;
    memcpy(copy, bytes, count);
    copy[BACKGROUND_AT] = 0;
    uint8_t *decoded = stbi_load_from_memory(copy, (int)count, &size[1], &size[0], channels, 0);
    memory_free(copy);
    return decoded;
}

/* Its pixels, converted and each where it belongs. */
static int take_pixels(struct picture *picture, const uint8_t *decoded, const int size[2], int from,
                       int orientation, struct error *error) {
    const bool lies = orientation > EXIF_MOST / 2;
    const size_t channels = (size_t)picture->channels;
    picture->height = size[lies];
    picture->width = size[!lies];
    RETURN_IF(
        memory_array(&picture->pixels, (size_t)size[0] * (size_t)size[1] * channels, "a picture", error));
    for (int row = 0; row < size[0]; row++) {
        /* from one pixel to the next it is always as far; backwards where that wraps around */
        const size_t begin = exif_place(orientation, size, row, 0),
                     step = exif_place(orientation, size, row, 1) - begin;
        for (size_t column = 0; column < (size_t)size[1]; column++, decoded += from)
            convert_pixel(picture->pixels + (begin + column * step) * channels, picture->channels, decoded,
                          from);
    }
    return OK;
}

static int decode(struct picture *picture, const char *name, const uint8_t *bytes, size_t count,
                  struct error *error) {
    const enum picture_kind kind = picture_kind(bytes, count);
    int from = 0, size[2] = {0};
    uint8_t *decoded = kind == PICTURE_IS_GIF
                           ? load_gif(bytes, count, size, &from, error)
                           : stbi_load_from_memory(bytes, (int)count, &size[1], &size[0], &from, 0);
    if (decoded == NULL) return error->code != OK ? error->code : refuse(name, error);
    const int orientation = kind == PICTURE_IS_JPEG ? exif_orientation(bytes, count) : EXIF_UPRIGHT;
    const int code = take_pixels(picture, decoded, size, from, orientation, error);
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

void picture_crop(struct picture *picture, int height, int width) {
    const long tall = (long)picture->height * width, wide = (long)picture->width * height;
    int rows = picture->height, columns = picture->width;
    if (wide > tall)
        columns = (int)((tall + height / 2) / height);
    else
        rows = (int)((wide + width / 2) / width);
    if (columns < 1) columns = 1;
    if (rows < 1) rows = 1;
    const size_t channels = (size_t)picture->channels, bytes = (size_t)columns * channels;
    const uint8_t *from = picture->pixels + ((size_t)((picture->height - rows) / 2) * (size_t)picture->width +
                                             (size_t)((picture->width - columns) / 2)) *
                                                channels;
    for (size_t row = 0; row < (size_t)rows; row++)
        memmove(picture->pixels + row * bytes, from + row * (size_t)picture->width * channels, bytes);
    picture->height = rows;
    picture->width = columns;
}

void picture_close(struct picture *picture) {
    memory_free(picture->pixels);
    *picture = (struct picture){0};
}
