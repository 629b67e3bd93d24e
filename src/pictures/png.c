/* See png.h. Compiled with and without libpng. */
#include "png.h"

#include <string.h>

#include "../base/file.h"
#include "../base/memory.h"

#if TRAINER_PNG
#    include <png.h>

_Static_assert(sizeof(struct colour) == 3, "libpng is given the pixels as they lie");

int png_check(struct error *error) {
    (void)error;
    return OK;
}

static int failed(const png_image *image, struct error *error) {
    return error_set(error, ERROR_DEVICE, "a picture of %ux%u pixels as PNG: libpng: %s",
                     (unsigned)image->width, (unsigned)image->height, image->message);
}

int png_encode(const struct canvas *canvas, char **bytes, size_t *count, struct error *error) {
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)canvas->width,
                       .height = (png_uint_32)canvas->height,
                       .format = PNG_FORMAT_RGB};
    png_alloc_size_t room = PNG_IMAGE_PNG_SIZE_MAX(image);
    char *out = NULL;
    RETURN_IF(memory_array(&out, room, "a picture as PNG", error));
    if (!png_image_write_to_memory(&image, out, &room, 0, canvas->pixels, 0, NULL)) {
        memory_free(out);
        return failed(&image, error);
    }
    *bytes = out;
    *count = room;
    return OK;
}

#else

int png_check(struct error *error) {
    return error_set(error, ERROR_USAGE,
                     "this build cannot write PNG: it needs libpng (on Debian and Ubuntu: apt-get install "
                     "libpng-dev, then make)");
}

int png_encode(const struct canvas *canvas, char **bytes, size_t *count, struct error *error) {
    (void)canvas, (void)bytes, (void)count;
    return png_check(error);
}

#endif

int png_write(const struct canvas *canvas, const char *path, struct error *error) {
    struct file_new file = {0};
    char *bytes = NULL;
    size_t count = 0;
    int code = png_encode(canvas, &bytes, &count, error);
    if (code == OK) code = file_create(&file, path, error);
    if (code == OK && bytes) fwrite(bytes, 1, count, file.stream); /* file_commit sees what went wrong */
    if (code == OK) code = file_commit(&file, error);
    file_abandon(&file);
    memory_free(bytes);
    return code;
}
