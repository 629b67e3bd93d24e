/* From settings to a recipe, and a recipe as text. */
#include "augment.h"

#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "whiten.h"

static const struct augment chains[] = {
    {.contrast_least = 1.0f, .contrast_most = 1.0f},
    /* DistNet (2017), which took it from the CIFAR-10 tutorial of TensorFlow. The standardization takes the
     * brightness out again, there too. */
    {.rows = 24,
     .columns = 24,
     .flip = 1,
     .brightness = 63.0f,
     .contrast_least = 0.2f,
     .contrast_most = 1.8f,
     .standardize = 1},
    {.rows = 24, .columns = 24, .flip = 1, .contrast_least = 1.0f, .contrast_most = 1.0f, .standardize = 1},
};

/* "0.2-1.8". */
static int read_contrast(struct augment *augment, const char *text, const char *owner, struct error *error) {
    char *middle = NULL, *end = NULL;
    float least = 0.0f, most = -1.0f;
    const bool plain = text[strspn(text, "0123456789.-")] == '\0';
    if (plain && text[0] != '-') least = strtof(text, &middle);
    if (middle && *middle == '-' && middle[1] != '-') most = strtof(middle + 1, &end);
    if (!end || end == middle + 1 || *end != '\0' || least > most || most > 100.0f)
        return error_set(error, ERROR_USAGE,
                         "%s: contrast=%s: expected two factors joined by '-', 0 to 100, the smaller first, "
                         "as in 0.2-1.8",
                         owner, text);
    augment->contrast_least = least;
    augment->contrast_most = most;
    return OK;
}

static bool changes_nothing(const struct augment *a) {
    return a->rows == a->height && a->columns == a->width && a->pad == 0 && !a->flip &&
           !(a->brightness > 0.0f) && !(a->contrast_least < 1.0f) && !(a->contrast_most > 1.0f) &&
           !(a->rotate > 0.0f) && !augment_mixes(a) && a->cutout == 0 && !a->standardize && !a->whitened;
}

int augment_choose(struct augment *augment, struct shape *given, const struct augment_settings *settings,
                   const char *owner, const struct shape *stored, struct error *error) {
    struct augment a = chains[settings->chain];
    a.height = stored->dims[0];
    a.width = stored->dims[1];
    a.channels = stored->dims[2];
    a.pad = settings->pad;
    a.cutout = settings->cutout;
    a.rotate = (float)settings->rotate;
    a.mixup = (float)settings->mixup;
    a.cutmix = (float)settings->cutmix;
    a.whitened = settings->whiten;
    if (settings->crop > 0) a.rows = a.columns = settings->crop;
    if (a.rows == 0) {
        a.rows = a.height;
        a.columns = a.width;
    }
    if (settings->flip > 0) a.flip = settings->flip - 1;
    if (settings->standardize > 0) a.standardize = settings->standardize - 1;
    if (!isnan(settings->brightness)) a.brightness = (float)settings->brightness;
    if (settings->contrast[0]) RETURN_IF(read_contrast(&a, settings->contrast, owner, error));
    if (!changes_nothing(&a) && a.channels > AUGMENT_CHANNELS)
        return error_set(error, ERROR_USAGE,
                         "%s: found images of %d channels, expected at most %d to crop or change", owner,
                         a.channels, AUGMENT_CHANNELS);
    if (a.rows > a.height + 2 * a.pad || a.columns > a.width + 2 * a.pad)
        return error_set(error, ERROR_USAGE, "%s: crop=%d: expected at most %d, the padded image", owner,
                         a.rows, (a.height < a.width ? a.height : a.width) + 2 * a.pad);
    if (!changes_nothing(&a) && (long)a.rows * a.columns * a.channels > AUGMENT_BYTES)
        return error_set(error, ERROR_USAGE, "%s: crop=%d: %ld numbers per image, expected at most %d", owner,
                         a.rows, (long)a.rows * a.columns * a.channels, AUGMENT_BYTES);
    *given = SHAPE(a.rows, a.columns, a.channels);
    *augment = changes_nothing(&a) ? (struct augment){0} : a;
    return OK;
}

bool augment_is_asked(const struct augment_settings *settings) {
    return settings->chain > 0 || settings->crop > 0 || settings->pad > 0 || settings->cutout > 0 ||
           settings->flip > 1 || settings->standardize > 1 || settings->brightness > 0.0 ||
           settings->rotate > 0.0 || settings->mixup > 0.0 || settings->cutmix > 0.0 ||
           settings->contrast[0] || settings->whiten > 0;
}

void augment_dataset(struct dataset *dataset, const struct augment *augment, const struct shape *given) {
    const int rows = given->dims[0], columns = given->dims[1], numbers = rows * columns * given->dims[2];
    const int rank = dataset->shape.rank;
    dataset->shape = rank == 1 ? SHAPE(numbers) : rank == 2 ? SHAPE(rows, columns) : *given;
    dataset->train.features = dataset->test.features = numbers;
    dataset->train.augment = dataset->test.augment = *augment;
}

static const char whitened[] = " whitened"; /* at the end of the text */

void augment_text(const struct augment *a, char *out, size_t bytes) {
    snprintf(out, bytes, "%dx%dx%d pad %d crop %dx%d standardize %d%s", a->height, a->width, a->channels,
             a->pad, a->rows, a->columns, a->standardize, a->whitened ? whitened : "");
}

void augment_training_text(const struct augment *a, char *out, size_t bytes) {
    struct text text = text_into(out, bytes);
    text_add(&text, "flip %d brightness %g contrast %g-%g cutout %d", a->flip, (double)a->brightness,
             (double)a->contrast_least, (double)a->contrast_most, a->cutout);
    if (a->rotate > 0.0f) text_add(&text, " rotate %g", (double)a->rotate);
    if (a->mixup > 0.0f) text_add(&text, " mixup %g", (double)a->mixup);
    if (a->cutmix > 0.0f) text_add(&text, " cutmix %g", (double)a->cutmix);
}

bool augment_from_text(struct augment *augment, const char *text) {
    enum { MOST = 1 << 15, MOST_NUMBERS = 1 << 26 };
    struct augment a = chains[0];
    int used = 0;
    const int read = sscanf(text, "%6dx%6dx%6d pad %6d crop %6dx%6d standardize %6d%n", &a.height, &a.width,
                            &a.channels, &a.pad, &a.rows, &a.columns, &a.standardize, &used);
    if (read != 7) return false;
    a.whitened = strcmp(text + used, whitened) == 0;
    if (!a.whitened && text[used] != '\0') return false;
    if (a.height < 1 || a.height > MOST || a.width < 1 || a.width > MOST || a.channels < 1 ||
        a.channels > AUGMENT_CHANNELS || (long)a.height * a.width * a.channels > MOST_NUMBERS || a.pad < 0 ||
        a.pad > MOST || a.rows < 1 || a.columns < 1 || a.rows > a.height + 2 * a.pad ||
        a.columns > a.width + 2 * a.pad || (long)a.rows * a.columns * a.channels > AUGMENT_BYTES ||
        (a.standardize != 0 && a.standardize != 1) || (a.whitened && a.channels != WHITEN_CHANNELS))
        return false;
    *augment = a;
    return true;
}
