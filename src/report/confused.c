/* See confused.h. */
#include "confused.h"

#include <math.h>
#include <string.h>
#include "../base/memory.h"
#include "page.h"

enum {
    CELL = 34,         /* of the matrix, in its own units, as all of these */
    LETTER = 7,        /* of a name beside and under it */
    NAME_UPRIGHT = 3,  /* letters that fit under a column */
    CLASSES_MOST = 20, /* in a matrix that can be read */
    NAME_LETTERS = 12,
    PAIRS = 8,
    SHOWN = 24, /* of the mistakes */
    BITMAP_HEADER = 54,
    SIDE_MOST = 256 /* pixels of a picture that is shown */
};

static int classes_of(const struct confused *confused) {
    return confused->dataset->classes;
}

int confused_open(struct confused *confused, const struct dataset *dataset, const struct answers *answers,
                  struct error *error) {
    const struct examples *test = &dataset->test;
    struct error none = {0};
    *confused = (struct confused){.dataset = dataset, .said = answers->said};
    RETURN_IF(confusion_open(&confused->confusion, (const char *const *)dataset->class_names,
                             dataset->classes, test->labels, answers->said, test->count, error));
    confused->pictures = example_sizes(&confused->sizes, dataset, &none) == OK &&
                         confused->sizes.stored[0] <= SIDE_MOST && confused->sizes.stored[1] <= SIDE_MOST;
    return mistakes_find(&confused->mistakes, &confused->count, test, answers, dataset->classes, error);
}

void confused_close(struct confused *confused) {
    confusion_close(&confused->confusion);
    memory_free(confused->mistakes);
    *confused = (struct confused){0};
}

/* --- the matrix --- */

static const char *name_of(const struct confused *confused, int class) {
    return confused->dataset->class_names[class];
}

static int count_of(const struct confused *confused, int class, int said) {
    return confused->confusion.count[class * classes_of(confused) + said];
}

static int examples_of(const struct confused *confused, int class) {
    int sum = 0;
    for (int said = 0; said < classes_of(confused); said++) sum += count_of(confused, class, said);
    return sum;
}

static void write_cell(struct html *html, const struct confused *confused, int left, int class, int said) {
    const int count = count_of(confused, class, said), all = examples_of(confused, class);
    const int x = left + CELL * said, y = CELL * class;
    if (count == 0) return;
    html_put(html, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill-opacity=\"%.2f\"/>",
             class == said ? "f0" : "f1", x + 1, y + 1, CELL - 2, CELL - 2,
             0.12 + 0.48 * sqrt((double)count / all));
    html_put(html, "<text class=\"count\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%d</text>\n", x + CELL / 2,
             y + CELL / 2 + 4, count);
}

/* A long name is cut, and ends with three dots. */
static void write_name(struct html *html, const char *name) {
    if (strlen(name) <= NAME_LETTERS)
        html_text(html, name);
    else
        html_say(html, "%.*s\xE2\x80\xA6", NAME_LETTERS - 1, name);
}

static int longest_name(const struct confused *confused) {
    size_t longest = 1;
    for (int class = 0; class < classes_of(confused); class ++)
        if (strlen(name_of(confused, class)) > longest) longest = strlen(name_of(confused, class));
    return longest < NAME_LETTERS ? (int)longest : NAME_LETTERS;
}

/* Under its column; upright where there is room. */
static void write_under(struct html *html, const char *name, int x, int y, bool upright) {
    if (upright)
        html_put(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", x, y + 6);
    else
        html_put(html, "<text transform=\"translate(%d %d) rotate(-60)\" text-anchor=\"end\">", x + 4, y);
    write_name(html, name);
    html_put(html, "</text>\n");
}

static void write_matrix(struct html *html, const struct confused *confused) {
    const int classes = classes_of(confused), side = CELL * classes, letters = longest_name(confused);
    const int left = LETTER * letters + 12;
    const bool upright = letters <= NAME_UPRIGHT;
    html_put(
        html,
        "<figure><figcaption>A row per class, a column per answer</figcaption>\n<svg class=\"chart matrix\" "
        "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"confusion matrix\">\n",
        left + side + 4, side + (upright ? 24 : left));
    for (int class = 0; class < classes; class ++) {
        const int middle = CELL * class + CELL / 2;
        html_put(html, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", left - 6, middle + 4);
        write_name(html, name_of(confused, class));
        html_put(html, "</text>");
        write_under(html, name_of(confused, class), left + middle, side + 12, upright);
        for (int said = 0; said < classes; said++) write_cell(html, confused, left, class, said);
    }
    html_put(html, "</svg></figure>\n");
}

/* The largest number of mistakes of one kind that is below the one before, in the order of the matrix. */
static bool next_pair(const struct confused *confused, int *class, int *said) {
    const int classes = classes_of(confused), before = *class * classes + *said;
    const int limit = before >= 0 ? confused->confusion.count[before] : confused->count + 1;
    int best = -1;
    for (int i = 0; i < classes * classes; i++) {
        const int count = confused->confusion.count[i];
        if (i / classes == i % classes || count == 0 || count > limit || (count == limit && i <= before))
            continue;
        if (best < 0 || count > confused->confusion.count[best]) best = i;
    }
    if (best < 0) return false;
    *class = best / classes;
    *said = best % classes;
    return true;
}

static void write_pairs(struct html *html, const struct confused *confused) {
    static const struct column columns[] = {
        {"class", true}, {"taken for", true}, {"times", false}, {"of the class", false}};
    char share[NUMBER_BYTES];
    int class = 0, said = -1;
    html_put(html, "<figure><figcaption>The most frequent mistakes</figcaption>\n");
    struct table table = table_begin(html, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < PAIRS && next_pair(confused, &class, &said); i++) {
        const int count = count_of(confused, class, said);
        table_row(&table);
        table_cell(&table, "%s", name_of(confused, class));
        table_cell(&table, "%s", name_of(confused, said));
        table_cell(&table, "%d", count);
        table_cell(&table, "%s", number_percent((double)count / examples_of(confused, class), 1, share));
    }
    table_end(&table);
    html_put(html, "</figure>\n");
}

/* --- pictures --- */

static void put_number(struct base64 *out, int value, int bytes) {
    for (; bytes > 0; bytes--, value >>= 8) base64_byte(out, value);
}

/* A bitmap file, whose rows go from the lowest up and are filled up to four bytes. */
static void write_bitmap(struct html *html, const struct canvas *picture) {
    const int fill = (4 - 3 * picture->width % 4) % 4, row = 3 * picture->width + fill;
    const int bytes = BITMAP_HEADER + row * picture->height;
    struct base64 out = {.html = html};
    base64_byte(&out, 'B');
    base64_byte(&out, 'M');
    put_number(&out, bytes, 4);
    put_number(&out, 0, 4);
    put_number(&out, BITMAP_HEADER, 4);
    put_number(&out, 40, 4);
    put_number(&out, picture->width, 4);
    put_number(&out, picture->height, 4);
    put_number(&out, 1, 2);
    put_number(&out, 24, 2);
    for (int i = 0; i < 6; i++) put_number(&out, 0, 4);
    for (int y = picture->height - 1; y >= 0; y--) {
        for (int x = 0; x < picture->width; x++) {
            const struct colour *pixel = canvas_pixel(picture, x, y);
            base64_byte(&out, pixel->blue);
            base64_byte(&out, pixel->green);
            base64_byte(&out, pixel->red);
        }
        put_number(&out, 0, fill);
    }
    base64_end(&out);
}

static int write_wrong(struct html *html, const struct confused *confused, const struct mistake *mistake,
                       struct error *error) {
    const struct examples *test = &confused->dataset->test;
    const char *class = name_of(confused, test->labels[mistake->number]),
               *said = name_of(confused, confused->said[mistake->number]);
    struct canvas picture = {0};
    char share[NUMBER_BYTES];
    RETURN_IF(example_stored(&picture, test, &confused->sizes, mistake->number, error));
    html_put(html, "<figure><img alt=\"");
    html_say(html, "%s, taken for %s", class, said);
    html_put(html, "\" src=\"data:image/bmp;base64,");
    write_bitmap(html, &picture);
    html_put(html, "\"/><span><b>");
    html_text(html, class);
    html_put(html, "</b>, said ");
    html_say(html, "%s, %s", said, number_percent((double)mistake->sure, 0, share));
    html_put(html, "</span></figure>\n");
    canvas_close(&picture);
    return OK;
}

/* --- the section --- */

static int write_section(struct html *html, const void *self, struct error *error) {
    const struct confused *confused = self;
    char all[NUMBER_BYTES], wrong[NUMBER_BYTES];
    html_element(html, "p class=\"quiet\"", "Of %s test examples %s are wrong.",
                 number_text(confused->confusion.examples, all), number_text(confused->count, wrong));
    html_put(html, "<div class=\"charts pair\">\n");
    if (classes_of(confused) <= CLASSES_MOST) write_matrix(html, confused);
    if (confused->count > 0) write_pairs(html, confused);
    html_put(html, "</div>\n");
    if (confused->count == 0 || !confused->pictures) return OK;
    html_element(html, "h3", "The surest mistakes");
    html_put(html, "<div class=\"wrong\">\n");
    for (int i = 0; i < confused->count && i < SHOWN; i++)
        RETURN_IF(write_wrong(html, confused, &confused->mistakes[i], error));
    html_put(html, "</div>\n");
    return OK;
}

struct report_section confused_section(const struct confused *confused) {
    return (struct report_section){
        .id = "confusion", .title = "What it confuses", .write = write_section, .self = confused};
}
