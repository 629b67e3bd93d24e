/* JPEG as libjpeg-turbo decodes it, beside stb_image: the same pictures but for a few levels, whatever the
 * sampling, size and order of the scans; the same answer to what is damaged; and, decoded to a fraction of
 * the size, what the whole picture scaled shows, whichever way it lies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/data/picture_turbo.h"
#include "../check.h"
#include "../picture_files.h"

#if TRAINER_TURBO

#    include <turbojpeg.h>
#    define STBI_NO_STDIO
#    include <stb/stb_image.h>

enum { MOST = 1 << 20, GREY = 1, COLOURS = 3 };

/* A file, at the end of what was allocated, so that the address sanitizer sees a byte too many. */
struct file {
    uint8_t *bytes; /* owned */
    size_t count;
};

static struct file copy_of(const uint8_t *bytes, size_t count) {
    struct file file = {malloc(count > 0 ? count : 1), count};
    if (file.bytes) memcpy(file.bytes, bytes, count);
    return file;
}

/* Bright and dark waves of so many pixels' length, under longer ones of colour: no two blocks are alike. */
static uint8_t wave(int length, int y, int x, int c) {
    const double bright = 50 * sin(6.3 * x / length) + 45 * cos(6.3 * (y + x / 3.0) / length);
    return (uint8_t)lrint(128 + bright + 30 * sin(1.5 * (x - y) / length + 2 * c));
}

/* Encodes height x width pixels of waves. format: TJPF_GRAY, TJPF_RGB or TJPF_CMYK. */
static struct file encode(int height, int width, int length, int format, int sampling, int flags) {
    const int channels = tjPixelSize[format];
    uint8_t *pixels = malloc((size_t)(height * width * channels)), *bytes = NULL;
    unsigned long count = 0;
    struct file file = {NULL, 0};
    const tjhandle handle = tjInitCompress();
    if (!pixels || !handle) return file;
    for (int i = 0; i < height * width * channels; i++)
        pixels[i] = wave(length, i / channels / width, i / channels % width, i % channels);
    CHECK(tjCompress2(handle, pixels, width, 0, height, format, &bytes, &count, sampling, 92, flags) == 0,
          "%s", tjGetErrorStr2(handle));
    file = copy_of(bytes, count);
    tjFree(bytes);
    tjDestroy(handle);
    free(pixels);
    return file;
}

/* The file with that segment. */
static struct file turned(const struct file *upright, int orientation) {
    struct file file = {malloc(upright->count + EXIF_SEGMENT), upright->count + EXIF_SEGMENT};
    if (!file.bytes) return file;
    memcpy(file.bytes, upright->bytes, 2);
    make_exif(file.bytes + 2, orientation, 0);
    memcpy(file.bytes + 2 + EXIF_SEGMENT, upright->bytes + 2, upright->count - 2);
    return file;
}

/* --- the same pixels --- */

/* Both decoders, on the same file; `most`: levels between them. */
static void check_same(const char *what, const struct file *file, int components, int most) {
    struct picture_jpeg jpeg;
    struct error error = {0};
    int width = 0, height = 0, channels = 0, worst = 0;
    double sum = 0;
    CHECK(picture_check("f", file->bytes, file->count, &jpeg, &error) == OK, "%s: %s", what, error.words);
    CHECK(jpeg.components == components && picture_turbo_takes(&jpeg), "%s: not taken", what);
    uint8_t *theirs = stbi_load_from_memory(file->bytes, (int)file->count, &width, &height, &channels, 0);
    CHECK(theirs && jpeg.width == width && jpeg.height == height && channels == components, "%s: %d x %d",
          what, height, width);
    const int size[2] = {height, width}, numbers = height * width * components;
    uint8_t *ours = malloc((size_t)numbers);
    CHECK(ours && picture_turbo(&jpeg, file->bytes, file->count, size, ours), "%s: not decoded", what);
    for (int i = 0; ours && theirs && i < numbers; i++) {
        const int levels = abs(ours[i] - theirs[i]);
        sum += levels;
        if (levels > worst) worst = levels;
    }
    CHECK(sum <= 0.6 * numbers, "%s, %d x %d: %g levels apart on average", what, height, width,
          sum / numbers);
    CHECK(worst <= most, "%s, %d x %d: %d levels apart, expected at most %d", what, height, width, worst,
          most);
    free(ours);
    stbi_image_free(theirs);
}

static void check_pixels(void) {
    static const int sizes[][2] = {{1, 1}, {7, 5}, {16, 16}, {33, 50}, {90, 41}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int sampling = 0; sampling < TJ_NUMSAMP; sampling++)
            for (int progressive = 0; progressive < 2; progressive++) {
                char what[60];
                const bool grey = sampling == TJSAMP_GRAY;
                struct file file = encode(sizes[s][0], sizes[s][1], 30, grey ? TJPF_GRAY : TJPF_RGB, sampling,
                                          progressive ? TJFLAG_PROGRESSIVE : 0);
                snprintf(what, sizeof what, "sampling %d%s", sampling, progressive ? ", progressive" : "");
                check_same(what, &file, grey ? GREY : COLOURS, grey || sampling == TJSAMP_444 ? 2 : 4);
                free(file.bytes);
            }
}

/* Inks are stb_image's: the same to the bit. */
static void check_inks(void) {
    struct file file = encode(20, 31, 12, TJPF_CMYK, TJSAMP_420, 0);
    struct picture_jpeg jpeg;
    struct picture picture;
    struct error error = {0};
    int width = 0, height = 0, channels = 0;
    CHECK(picture_check("f", file.bytes, file.count, &jpeg, &error) == OK && jpeg.components == 4 &&
              !picture_turbo_takes(&jpeg),
          "taken");
    uint8_t *theirs = stbi_load_from_memory(file.bytes, (int)file.count, &width, &height, &channels, 0);
    CHECK(picture_decode(&picture, 3, "f", file.bytes, file.count, &error) == OK, "%s", error.words);
    CHECK(theirs && width == 31 && height == 20 && channels == 3 && picture.pixels &&
              memcmp(theirs, picture.pixels, 20 * 31 * 3) == 0,
          "inks differ");
    stbi_image_free(theirs);
    picture_close(&picture);
    free(file.bytes);
}

/* --- the same answer --- */

/* Whether stb_image takes what picture_check lets through. */
static bool is_picture(const struct file *file) {
    struct picture_jpeg jpeg;
    struct error error = {0};
    int width, height, channels;
    if (picture_check("f", file->bytes, file->count, &jpeg, &error) != OK) return false;
    uint8_t *theirs = stbi_load_from_memory(file->bytes, (int)file->count, &width, &height, &channels, 0);
    stbi_image_free(theirs);
    return theirs != NULL;
}

static void check_answer(const char *what, const struct file *file, size_t at) {
    struct picture picture;
    struct error error = {0};
    const bool ours = picture_decode(&picture, 3, "f", file->bytes, file->count, &error) == OK;
    CHECK(ours == is_picture(file), "%s, byte %zu: %s, unlike stb_image: %s", what, at,
          ours ? "a picture" : "refused", error.words);
    picture_close(&picture);
}

/* Every byte another, and the data cut at every byte with the end mark behind. */
static void check_damage(int flags) {
    struct file good = encode(24, 40, 12, TJPF_RGB, TJSAMP_420, flags);
    const char *kind = flags ? "progressive" : "baseline";
    for (size_t at = 2; at + 2 <= good.count; at++) {
        struct file other = copy_of(good.bytes, good.count);
        other.bytes[at] ^= (uint8_t)(1u << at % 8);
        check_answer(kind, &other, at);
        free(other.bytes);
        struct file cut = copy_of(good.bytes, at + 2);
        memcpy(cut.bytes + at, good.bytes + good.count - 2, 2);
        check_answer(kind, &cut, at);
        free(cut.bytes);
    }
    free(good.bytes);
}

/* --- a fraction of the size --- */

/* What picture_read makes of it, and what scaling the whole picture makes of it; the most levels between. */
static double apart(const struct file *file, const struct picture_form *form) {
    const int numbers = form->height * form->width * form->channels;
    float *read = malloc((size_t)numbers * sizeof *read), *scaled = malloc((size_t)numbers * sizeof *scaled);
    struct picture picture;
    struct error error = {0};
    double most = 0;
    CHECK(read && scaled && picture_read(form, "f", file->bytes, file->count, read, &error) == OK &&
              picture_decode(&picture, form->channels, "f", file->bytes, file->count, &error) == OK,
          "%s", error.words);
    const struct picture_part whole = {0, 0, picture.height, picture.width},
                              middle =
                                  picture_middle(picture.height, picture.width, form->height, form->width);
    CHECK(picture_fit(&picture, form->fit == PICTURE_CROP ? &middle : &whole, form->height, form->width,
                      scaled, &error) == OK,
          "%s", error.words);
    for (int i = 0; i < numbers; i++) most = fmax(most, fabs((double)read[i] - (double)scaled[i]));
    picture_close(&picture);
    free(read);
    free(scaled);
    return most;
}

/* Sides that 8 does not divide, every orientation, both ways to fit. */
static void check_fractions(void) {
    struct file file = encode(301, 407, 120, TJPF_RGB, TJSAMP_420, 0);
    for (int orientation = 1; orientation <= 8; orientation++)
        for (int side = 12; side <= 50; side += 19) { /* an eighth, a quarter, a half of the size */
            struct file lies = turned(&file, orientation);
            const struct picture_form crop = {side, side, 3, PICTURE_CROP},
                                      squash = {side - 3, side, 1, PICTURE_SQUASH};
            const double cut = apart(&lies, &crop), whole = apart(&lies, &squash);
            CHECK(cut > 0 && cut < 1.5 && whole > 0 && whole < 1.5,
                  "orientation %d, %d pixels: %g and %g levels", orientation, side, cut, whole);
            free(lies.bytes);
        }
    free(file.bytes);
}

/* Three pixels for each are left on both sides, or the whole picture is decoded. */
static void check_limit(void) {
    struct file file = encode(96, 130, 30, TJPF_RGB, TJSAMP_444, 0);
    static const struct {
        struct picture_form form;
        bool smaller;
    } cases[] = {{{16, 16, 3, PICTURE_CROP}, true},    {{17, 17, 3, PICTURE_CROP}, false},
                 {{16, 21, 3, PICTURE_SQUASH}, true},  {{16, 22, 3, PICTURE_SQUASH}, false},
                 {{17, 10, 3, PICTURE_SQUASH}, false}, {{96, 130, 3, PICTURE_NONE}, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK((apart(&file, &cases[i].form) > 0) == cases[i].smaller, "case %zu", i);
    free(file.bytes);
}

static void check_all(void) {
    check_pixels();
    check_inks();
    check_damage(0);
    check_damage(TJFLAG_PROGRESSIVE);
    check_fractions();
    check_limit();
}

#else

static void check_all(void) {
    struct picture_jpeg jpeg;
    struct error error = {0};
    CHECK(picture_check("f", jpeg_sample, sizeof jpeg_sample, &jpeg, &error) == OK && jpeg.code == 0xc0 &&
              !picture_turbo_takes(&jpeg),
          "taken in a build without libjpeg-turbo");
}

#endif

int main(void) {
    check_all();
    return check_end();
}
