/* See picture_turbo.h. What libjpeg-turbo warns of counts as wrong: of files that are damaged in a way that
 * picture_check does not see, stb_image then says whether they are pictures, and what they show, as it does
 * in a build without libjpeg-turbo. */
#include "picture_turbo.h"

#if TRAINER_TURBO

#    include <turbojpeg.h>

enum { BASELINE = 0xc0, PROGRESSIVE = 0xc2, GREY = 1, COLOURS = 3 };

bool picture_turbo_takes(const struct picture_jpeg *jpeg) {
    return jpeg->code >= BASELINE && jpeg->code <= PROGRESSIVE &&
           (jpeg->components == GREY || jpeg->components == COLOURS);
}

/* The sizes are held against what the file says to libjpeg-turbo, for which `out` has the room. */
static bool decode(tjhandle handle, const struct picture_jpeg *jpeg, const uint8_t *bytes, size_t count,
                   const int size[2], uint8_t *out) {
    const bool grey = jpeg->components == GREY;
    int width, height, sampling, colours;
    if (tjDecompressHeader3(handle, bytes, (unsigned long)count, &width, &height, &sampling, &colours) != 0)
        return false;
    if (width != jpeg->width || height != jpeg->height || (colours == TJCS_GRAY) != grey) return false;
    return tjDecompress2(handle, bytes, (unsigned long)count, out, size[1], size[1] * jpeg->components,
                         size[0], grey ? TJPF_GRAY : TJPF_RGB, TJFLAG_STOPONWARNING) == 0;
}

bool picture_turbo(const struct picture_jpeg *jpeg, const uint8_t *bytes, size_t count, const int size[2],
                   uint8_t *out) {
    const tjhandle handle = tjInitDecompress();
    if (handle == NULL) return false;
    const bool done = decode(handle, jpeg, bytes, count, size, out);
    tjDestroy(handle);
    return done;
}

#else

bool picture_turbo_takes(const struct picture_jpeg *jpeg) {
    (void)jpeg;
    return false;
}

bool picture_turbo(const struct picture_jpeg *jpeg, const uint8_t *bytes, size_t count, const int size[2],
                   uint8_t *out) {
    (void)jpeg;
    (void)bytes;
    (void)count;
    (void)size;
    (void)out;
    return false;
}

#endif
