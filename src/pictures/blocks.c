/* See blocks.h. */
#include "blocks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char shades[] = " .:-=+*#%@"; /* from dark to light */

bool blocks_coloured(FILE *file) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(fileno(file)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static bool same(struct colour a, struct colour b) {
    return a.red == b.red && a.green == b.green && a.blue == b.blue;
}

static void add_coloured(struct text *out, const struct canvas *picture, int line) {
    struct colour upper = {0}, lower = {0};
    const bool halved = 2 * line + 1 == picture->height; /* nothing is below the last line */
    for (int x = 0; x < picture->width; x++) {
        const struct colour above = *canvas_pixel(picture, x, 2 * line);
        const struct colour below = halved ? above : *canvas_pixel(picture, x, 2 * line + 1);
        if (x == 0 || !same(above, upper))
            text_add(out, "\033[38;2;%d;%d;%dm", above.red, above.green, above.blue);
        if (!halved && (x == 0 || !same(below, lower)))
            text_add(out, "\033[48;2;%d;%d;%dm", below.red, below.green, below.blue);
        text_add(out, "\u2580");
        upper = above;
        lower = below;
    }
    text_add(out, "\033[0m");
}

/* 0 to 255: how light a colour looks (ITU-R BT.601). */
static int light_of(struct colour colour) {
    return (299 * colour.red + 587 * colour.green + 114 * colour.blue) / 1000;
}

static void add_shades(struct text *out, const struct canvas *picture, int line) {
    const int below = 2 * line + 1 < picture->height ? 2 * line + 1 : 2 * line;
    const int most = (int)sizeof shades - 2;
    for (int x = 0; x < picture->width; x++) {
        const int light =
            light_of(*canvas_pixel(picture, x, 2 * line)) + light_of(*canvas_pixel(picture, x, below));
        text_add(out, "%c", shades[(light * most + 255) / 510]);
    }
}

void blocks_line(struct text *out, const struct canvas *picture, int line, bool coloured) {
    if (coloured)
        add_coloured(out, picture, line);
    else
        add_shades(out, picture, line);
}
