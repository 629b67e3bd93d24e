/* Decodes pictures, after picture_check: JPEGs with libjpeg-turbo (picture_turbo.c), and what that does not
 * take, or finds something wrong with, with stb_image (stb.c). A picture that is to become much smaller is
 * decoded to a smaller size in the first place. */
#include "picture.h"

#include <string.h>

#include "../base/memory.h"
#include "exif.h"
#include "picture_check.h"
#include "picture_turbo.h"

const char *const picture_fits[PICTURE_FITS] = {"none", "crop", "squash"};

/* The picture of a file, and where it is among the pixels that it was decoded to. */
struct view {
    int height, width; /* in the file, upright */
    int shrink;        /* so many of the file's pixels on a side became one: 1, 2, 4 or 8 */
    int lack[2];       /* so many of them the first row and the first column have less */
};

static struct picture_part part_of(const struct picture_form *form, int height, int width) {
    if (form->fit == PICTURE_CROP) return picture_middle(height, width, form->height, form->width);
    return (struct picture_part){0, 0, height, width};
}

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
    const size_t pixels = (size_t)size[0] * (size_t)size[1];
    RETURN_IF(memory_array(&picture->pixels, pixels * channels, "a picture", error));
    if (orientation == EXIF_UPRIGHT && from == picture->channels) {
        memcpy(picture->pixels, decoded, pixels * channels);
        return OK;
    }
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

/* Of how many pixels on a side libjpeg-turbo may make one. Three for each that is wanted are left to be
 * scaled: the result then differs by 0.2 of 255 levels from that of the whole picture, other filters by 2
 * (docs/measurements/pictures.md). */
static int shrink_for(const struct picture_form *form, int height, int width) {
    enum { LEFT = 3, MOST = 8 };
    const struct picture_part part = part_of(form, height, width);
    int shrink = MOST;
    while (shrink > 1 && (part.height < (double)LEFT * shrink * form->height ||
                          part.width < (double)LEFT * shrink * form->width))
        shrink /= 2;
    return shrink;
}

/* A JPEG of height x width pixels in the file, as it lies; *done = false: it is stb_image's. */
static int decode_turbo(struct picture *picture, struct view *view, const struct picture_jpeg *jpeg,
                        int orientation, const uint8_t *bytes, size_t count, bool *done,
                        struct error *error) {
    const int size[2] = {(jpeg->height + view->shrink - 1) / view->shrink,
                         (jpeg->width + view->shrink - 1) / view->shrink};
    uint8_t *decoded = NULL;
    int code = OK;
    RETURN_IF(memory_array(&decoded, (size_t)size[0] * (size_t)size[1] * (size_t)jpeg->components,
                           "a picture", error));
    *done = picture_turbo(jpeg, bytes, count, size, decoded);
    if (*done) code = take_pixels(picture, decoded, size, jpeg->components, orientation, error);
    memory_free(decoded);
    if (code != OK || !*done) return code;
    /* Where an axis runs backwards, the pixel that was not a whole one is the first. */
    const size_t corner = exif_place(orientation, size, 0, 0), width = (size_t)picture->width;
    if (corner / width > 0) view->lack[0] = picture->height * view->shrink - view->height;
    if (corner % width > 0) view->lack[1] = picture->width * view->shrink - view->width;
    return OK;
}

static int decode_stb(struct picture *picture, int orientation, const char *name, const uint8_t *bytes,
                      size_t count, struct error *error) {
    int from = 0, size[2] = {0};
    uint8_t *decoded = picture_kind(bytes, count) == PICTURE_IS_GIF
                           ? load_gif(bytes, count, size, &from, error)
                           : stbi_load_from_memory(bytes, (int)count, &size[1], &size[0], &from, 0);
    if (decoded == NULL) return error->code != OK ? error->code : refuse(name, error);
    const int code = take_pixels(picture, decoded, size, from, orientation, error);
    stbi_image_free(decoded);
    return code;
}

/* form: what the picture is for; NULL: all of its pixels are wanted. */
static int decode(struct picture *picture, const struct picture_form *form, struct view *view,
                  const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    struct picture_jpeg jpeg;
    RETURN_IF(picture_check(name, bytes, count, &jpeg, error));
    const int orientation =
        picture_kind(bytes, count) == PICTURE_IS_JPEG ? exif_orientation(bytes, count) : EXIF_UPRIGHT;
    if (picture_turbo_takes(&jpeg)) {
        const bool lies = orientation > EXIF_MOST / 2;
        bool done = false;
        *view = (struct view){
            .height = lies ? jpeg.width : jpeg.height, .width = lies ? jpeg.height : jpeg.width, .shrink = 1};
        if (form) view->shrink = shrink_for(form, view->height, view->width);
        RETURN_IF(decode_turbo(picture, view, &jpeg, orientation, bytes, count, &done, error));
        if (done) return OK;
    }
    RETURN_IF(decode_stb(picture, orientation, name, bytes, count, error));
    *view = (struct view){.height = picture->height, .width = picture->width, .shrink = 1};
    return OK;
}

#else

static int decode(struct picture *picture, const struct picture_form *form, struct view *view,
                  const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    struct picture_jpeg jpeg;
    (void)picture;
    (void)form;
    (void)view;
    RETURN_IF(picture_check(name, bytes, count, &jpeg, error));
    return error_set(error, ERROR_FILE, "%s: a picture, which this build cannot read: it has no stb_image",
                     name);
}

#endif

int picture_decode(struct picture *picture, int channels, const char *name, const void *bytes, size_t count,
                   struct error *error) {
    struct view view = {0};
    *picture = (struct picture){.channels = channels};
    const int code = decode(picture, NULL, &view, name, bytes, count, error);
    if (code != OK) picture_close(picture);
    return code;
}

int picture_read(const struct picture_form *form, const char *name, const void *bytes, size_t count,
                 float *out, struct error *error) {
    struct picture picture = {.channels = form->channels};
    struct view view = {0};
    int code = decode(&picture, form, &view, name, bytes, count, error);
    if (code == OK) {
        const struct picture_part part = part_of(form, view.height, view.width),
                                  seen = {.top = (part.top + view.lack[0]) / view.shrink,
                                          .left = (part.left + view.lack[1]) / view.shrink,
                                          .height = part.height / view.shrink,
                                          .width = part.width / view.shrink};
        code = picture_fit(&picture, &seen, form->height, form->width, out, error);
    }
    picture_close(&picture);
    return code;
}

void picture_close(struct picture *picture) {
    memory_free(picture->pixels);
    *picture = (struct picture){0};
}
