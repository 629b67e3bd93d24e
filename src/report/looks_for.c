/* See looks_for.h. Each unit is a picture of its own, so that the page can lay them out on its own ground. */
#include "looks_for.h"

#include "../base/memory.h"
#include "../pictures/filters.h"
#include "../pictures/png.h"

enum { UNITS_MOST = 64 };

static int encode(struct looks_for *looks_for, struct error *error) {
    RETURN_IF(memory_array(&looks_for->pictures, looks_for->sheet.count, "pictures", error));
    for (int i = 0; i < looks_for->sheet.count; i++) {
        struct unit_picture *picture = &looks_for->pictures[i];
        RETURN_IF(png_encode(&looks_for->sheet.tiles[i].picture[0], &picture->png, &picture->bytes, error));
    }
    return OK;
}

int looks_for_open(struct looks_for *looks_for, const int seen[3], const struct graph *graph,
                   const float *weights, bool *there, struct error *error) {
    struct error none = {0};
    *looks_for = (struct looks_for){0};
    *there = seen && png_check(&none) == OK &&
             filters_sheet(&looks_for->sheet, graph, weights, seen, UNITS_MOST, true, &none) == OK;
    if (*there) return encode(looks_for, error);
    return none.code == ERROR_DEVICE ? error_set(error, ERROR_DEVICE, "%s", none.words) : OK;
}

void looks_for_close(struct looks_for *looks_for) {
    for (int i = 0; looks_for->pictures && i < looks_for->sheet.count; i++)
        memory_free(looks_for->pictures[i].png);
    memory_free(looks_for->pictures);
    sheet_close(&looks_for->sheet);
    *looks_for = (struct looks_for){0};
}

static void write_picture(struct html *html, const struct unit_picture *picture) {
    struct base64 out = {.html = html};
    html_put(html, "<img alt=\"\" src=\"data:image/png;base64,");
    for (size_t i = 0; i < picture->bytes; i++) base64_byte(&out, (unsigned char)picture->png[i]);
    base64_end(&out);
    html_put(html, "\"/>\n");
}

static int write_section(struct html *html, const void *self, struct error *error) {
    const struct looks_for *looks_for = self;
    (void)error;
    html_element(html, "p class=\"quiet\"", "Each unit of the first layer, by its weights. %s.",
                 looks_for->sheet.title);
    html_put(html, "<div class=\"filters\" role=\"img\" aria-label=\"the weights of the first layer\">\n");
    for (int i = 0; i < looks_for->sheet.count; i++) write_picture(html, &looks_for->pictures[i]);
    html_put(html, "</div>\n");
    return OK;
}

struct report_section looks_for_section(const struct looks_for *looks_for) {
    return (struct report_section){
        .id = "filters", .title = "What it looks for", .write = write_section, .self = looks_for};
}
