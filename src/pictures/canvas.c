/* See canvas.h. */
#include "canvas.h"

#include "../base/memory.h"

int canvas_open(struct canvas *canvas, int width, int height, struct colour ground, struct error *error) {
    const size_t pixels = (size_t)width * (size_t)height;
    *canvas = (struct canvas){0};
    if (pixels > CANVAS_MOST)
        return error_set(error, ERROR_USAGE, "a picture of %dx%d pixels, expected at most %d pixels", width,
                         height, CANVAS_MOST);
    RETURN_IF(memory_array(&canvas->pixels, pixels, "a picture", error));
    canvas->width = width;
    canvas->height = height;
    canvas_fill(canvas, 0, 0, width, height, ground);
    return OK;
}

void canvas_close(struct canvas *canvas) {
    memory_free(canvas->pixels);
    *canvas = (struct canvas){0};
}

static int clip(int value, int most) {
    return value < 0 ? 0 : value > most ? most : value;
}

void canvas_fill(struct canvas *canvas, int left, int top, int width, int height, struct colour colour) {
    const int right = clip(left + width, canvas->width), bottom = clip(top + height, canvas->height);
    for (int y = clip(top, canvas->height); y < bottom; y++)
        for (int x = clip(left, canvas->width); x < right; x++) *canvas_pixel(canvas, x, y) = colour;
}

void canvas_put(struct canvas *canvas, int left, int top, const struct canvas *picture, int times) {
    for (int y = 0; y < picture->height; y++)
        for (int x = 0; x < picture->width; x++)
            canvas_fill(canvas, left + x * times, top + y * times, times, times,
                        *canvas_pixel(picture, x, y));
}

/* The mean of those pixels, rounded. */
static struct colour mean_of(const struct canvas *picture, int left, int top, int times) {
    const int right = clip(left + times, picture->width), bottom = clip(top + times, picture->height);
    const int count = (right - left) * (bottom - top);
    int red = count / 2, green = red, blue = red;
    for (int y = top; y < bottom; y++)
        for (int x = left; x < right; x++) {
            const struct colour colour = *canvas_pixel(picture, x, y);
            red += colour.red;
            green += colour.green;
            blue += colour.blue;
        }
    return (struct colour){(uint8_t)(red / count), (uint8_t)(green / count), (uint8_t)(blue / count)};
}

int canvas_shrink(struct canvas *out, const struct canvas *picture, int times, struct error *error) {
    RETURN_IF(canvas_open(out, (picture->width + times - 1) / times, (picture->height + times - 1) / times,
                          (struct colour){0}, error));
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++)
            *canvas_pixel(out, x, y) = mean_of(picture, x * times, y * times, times);
    return OK;
}
