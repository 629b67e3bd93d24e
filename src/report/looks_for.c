/* See looks_for.h. */
#include "looks_for.h"

#include "../base/memory.h"
#include "../pictures/example.h"
#include "../pictures/filters.h"
#include "../pictures/png.h"

enum { UNITS_MOST = 64 };

static int draw(struct looks_for *looks_for, const struct sheet *sheet, struct error *error) {
    struct canvas canvas = {0};
    int code = sheet_draw(sheet, &canvas, error);
    if (code == OK) code = png_encode(&canvas, &looks_for->png, &looks_for->bytes, error);
    looks_for->width = canvas.width;
    looks_for->height = canvas.height;
    canvas_close(&canvas);
    return code;
}

int looks_for_open(struct looks_for *looks_for, const struct dataset *dataset, const struct graph *graph,
                   const float *weights, bool *there, struct error *error) {
    struct example_sizes sizes;
    struct sheet sheet = {0};
    struct error none = {0};
    *looks_for = (struct looks_for){0};
    *there = png_check(&none) == OK && example_sizes(&sizes, dataset, &none) == OK;
    if (*there) *there = filters_sheet(&sheet, graph, weights, sizes.seen, UNITS_MOST, true, &none) == OK;
    const int code = *there                      ? draw(looks_for, &sheet, error)
                     : none.code == ERROR_DEVICE ? error_set(error, ERROR_DEVICE, "%s", none.words)
                                                 : OK;
    sheet_close(&sheet);
    return code;
}

void looks_for_close(struct looks_for *looks_for) {
    memory_free(looks_for->png);
    *looks_for = (struct looks_for){0};
}

static int write_section(struct html *html, const void *self, struct error *error) {
    const struct looks_for *looks_for = self;
    (void)error;
    html_put(
        html,
        "<p class=\"quiet\">Each unit of the first layer, by its weights.</p>\n<figure class=\"sheet\"><img "
        "width=\"%d\" height=\"%d\" alt=\"the weights of the first layer\" src=\"data:image/png;base64,",
        looks_for->width, looks_for->height);
    struct base64 out = {.html = html};
    for (size_t i = 0; i < looks_for->bytes; i++) base64_byte(&out, (unsigned char)looks_for->png[i]);
    base64_end(&out);
    html_put(html, "\"/></figure>\n");
    return OK;
}

struct report_section looks_for_section(const struct looks_for *looks_for) {
    return (struct report_section){
        .id = "filters", .title = "What it looks for", .write = write_section, .self = looks_for};
}
