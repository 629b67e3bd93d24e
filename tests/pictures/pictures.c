/* Pictures: what is drawn where, and that a sheet of examples has what a training draws for them. */
#include "../check.h"

#include <stdlib.h>
#include <string.h>

#include "../../src/base/memory.h"
#include "../../src/data/mix.h"
#include "../../src/data/picture.h"
#include "../../src/data/stream.h"
#include "../../src/pictures/blocks.h"
#include "../../src/pictures/confusion.h"
#include "../../src/pictures/example.h"
#include "../../src/pictures/filters.h"
#include "../../src/pictures/png.h"
#include "../../src/pictures/wrong.h"

static const struct colour black = {0, 0, 0}, white = {255, 255, 255}, red = {200, 10, 20};

static bool is(const struct canvas *canvas, int x, int y, struct colour colour) {
    return memcmp(canvas_pixel(canvas, x, y), &colour, sizeof colour) == 0;
}

static void check_canvas(void) {
    struct error error = {0};
    struct canvas canvas, small, half;
    CHECK(canvas_open(&canvas, 10, 6, white, &error) == OK, "%s", error.words);
    CHECK(canvas_open(&small, 2, 2, black, &error) == OK, "%s", error.words);
    *canvas_pixel(&small, 1, 0) = red;
    canvas_put(&canvas, 7, 3, &small, 2); /* its last row and column lie beyond the edge */
    CHECK(is(&canvas, 6, 3, white) && is(&canvas, 7, 2, white), "something lies beside the picture");
    CHECK(is(&canvas, 7, 3, black) && is(&canvas, 8, 4, black), "the first pixel is not enlarged");
    CHECK(is(&canvas, 9, 3, red) && is(&canvas, 9, 4, red), "the second pixel is not enlarged");
    CHECK(is(&canvas, 9, 5, black), "the second row");
    canvas_fill(&canvas, -3, -3, 4, 4, red);
    CHECK(is(&canvas, 0, 0, red) && is(&canvas, 1, 0, white) && is(&canvas, 0, 1, white),
          "not cut at the edge");
    CHECK(canvas_shrink(&half, &canvas, 4, &error) == OK && half.width == 3 && half.height == 2, "%d x %d",
          half.width, half.height);
    /* 7 pixels of 8 are white in the lower left; of the upper one 15 of 16. */
    CHECK(is(&half, 0, 0,
             (struct colour){(255 * 15 + 200 + 8) / 16, (255 * 15 + 10 + 8) / 16, (255 * 15 + 20 + 8) / 16}),
          "%d", canvas_pixel(&half, 0, 0)->green);
    CHECK(is(&half, 0, 1, white), "the lower left");
    canvas_close(&half);
    canvas_close(&small);
    canvas_close(&canvas);
    CHECK(canvas_open(&canvas, 1 << 20, 1 << 20, white, &error) == ERROR_USAGE, "%s", error.words);
}

static int ink_of(const char *text, bool up) {
    struct error error = {0};
    struct canvas canvas;
    int ink = 0;
    if (canvas_open(&canvas, 100, 100, white, &error) != OK) return -1;
    if (up)
        canvas_text_up(&canvas, 10, 90, 2, black, text);
    else
        canvas_text(&canvas, 10, 10, 2, black, text);
    for (int y = 0; y < 100; y++)
        for (int x = 0; x < 100; x++) ink += is(&canvas, x, y, black);
    canvas_close(&canvas);
    return ink;
}

/* Every letter is drawn, no two are the same, and a turned one has as much ink. */
static void check_text(void) {
    struct error error = {0};
    struct canvas drawn['~' + 1] = {{0}};
    for (int c = ' '; c <= '~'; c++) {
        const char text[2] = {(char)c, '\0'};
        if (canvas_open(&drawn[c], FONT_WIDTH, FONT_HEIGHT, white, &error) != OK) return;
        canvas_text(&drawn[c], 0, 0, 1, black, text);
        for (int other = ' '; other < c; other++)
            CHECK(memcmp(drawn[c].pixels, drawn[other].pixels, FONT_WIDTH * FONT_HEIGHT * sizeof black) != 0,
                  "'%c' and '%c' look the same", c, other);
        CHECK(ink_of(text, true) == ink_of(text, false), "'%c' turned", c);
        for (int y = 0; y < FONT_HEIGHT; y++)
            CHECK(is(&drawn[c], FONT_WIDTH - 1, y, white), "'%c' touches the next letter", c);
    }
    for (int c = ' '; c <= '~'; c++) canvas_close(&drawn[c]);
    CHECK(canvas_text_width("abc", 2) == 3 * FONT_WIDTH * 2, "%d", canvas_text_width("abc", 2));
    CHECK(canvas_text_width("a\xc3\xa4", 1) == 2 * FONT_WIDTH, "%d", canvas_text_width("a\xc3\xa4", 1));
    CHECK(ink_of("\xc3\xa4", false) == ink_of("?", false), "a letter that is not ASCII");
}

static void check_blocks(void) {
    struct error error = {0};
    struct canvas canvas;
    char line[300];
    struct text text = text_into(line, sizeof line);
    if (canvas_open(&canvas, 2, 3, black, &error) != OK) return;
    *canvas_pixel(&canvas, 1, 0) = *canvas_pixel(&canvas, 1, 1) = white;
    CHECK(blocks_lines(&canvas) == 2, "%d lines", blocks_lines(&canvas));
    blocks_line(&text, &canvas, 0, false);
    CHECK(strcmp(line, " @") == 0, "found \"%s\"", line);
    text = text_into(line, sizeof line);
    blocks_line(&text, &canvas, 0, true);
    CHECK(strcmp(line, "\033[38;2;0;0;0m\033[48;2;0;0;0m\u2580\033[38;2;255;255;255m\033[48;2;255;255;"
                       "255m\u2580\033[0m") == 0,
          "found \"%s\"", line);
    text = text_into(line, sizeof line);
    blocks_line(&text, &canvas, 1, true); /* nothing is below it */
    CHECK(strcmp(line, "\033[38;2;0;0;0m\u2580\u2580\033[0m") == 0, "found \"%s\"", line);
    canvas_close(&canvas);
}

/* --- examples --- */

enum { COUNT = 50, SIDE = 6, CROP = 4, CLASSES = 3, BATCH = 8, EPOCH = 3, SHOWN = 20 };

static uint8_t bytes[COUNT * SIDE * SIDE * 3];
static int labels[COUNT];
static char *names[CLASSES] = {"one", "two", "three"};

static struct dataset made_up(bool standardize) {
    const struct augment augment = {.height = SIDE,
                                    .width = SIDE,
                                    .channels = 3,
                                    .rows = CROP,
                                    .columns = CROP,
                                    .flip = 1,
                                    .contrast_least = 0.5f,
                                    .contrast_most = 1.5f,
                                    .standardize = standardize};
    struct dataset dataset = {
        .name = "made up", .shape = SHAPE(CROP, CROP, 3), .classes = CLASSES, .class_names = names};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 16);
    for (int i = 0; i < COUNT; i++) labels[i] = i % CLASSES;
    dataset.train = dataset.test = (struct examples){.count = COUNT,
                                                     .features = CROP * CROP * 3,
                                                     .bytes = bytes,
                                                     .scale = 1.0f / 255.0f,
                                                     .labels = labels,
                                                     .augment = augment};
    return dataset;
}

static int cut(double value) {
    return (int)lrint(value < 0.0 ? 0.0 : value > 255.0 ? 255.0 : value);
}

/* Example `number` as its bytes, and `values`, what the device built of it, against a tile. */
static void check_tile(const struct tile *tile, int number, const float *values, bool standardize) {
    char hash[16];
    snprintf(hash, sizeof hash, "#%d", number);
    CHECK(strcmp(tile->line[1], hash) == 0, "found %s, expected %s", tile->line[1], hash);
    CHECK(tile->picture[0].width == SIDE && tile->picture[1].width == CROP, "another size");
    CHECK(memcmp(tile->picture[0].pixels, bytes + number * SIDE * SIDE * 3, SIDE * SIDE * 3) == 0,
          "%d is not as stored", number);
    const uint8_t *seen = (const uint8_t *)tile->picture[1].pixels;
    for (int i = 0; i < CROP * CROP * 3; i++) {
        const double value = (double)values[i];
        const int expected = cut(standardize ? 128.0 + 48.0 * value : 255.0 * value);
        CHECK(seen[i] == expected, "number %d of %d: found %d, expected %d", i, number, seen[i], expected);
    }
}

/* The batches of a training, one after another, from the beginning of an epoch, where a batch straddles two.
 */
static void check_examples(bool standardize, float mixup) {
    struct error error = {0};
    struct dataset dataset = made_up(standardize);
    const struct device device = device_processor();
    const struct stream stream = {.seed = 7, .examples = COUNT, .batch = BATCH, .workers = 1};
    const struct example_choice choice = {.train = true, .seed = 7, .epoch = EPOCH, .count = SHOWN};
    struct sheet sheet = {0};
    int index[BATCH + 1];
    uint64_t key[BATCH + 1];
    float values[(BATCH + 1) * CROP * CROP * 3];
    dataset.train.augment.mixup = mixup;
    CHECK(example_sheet(&sheet, &dataset, &choice, &error) == OK && sheet.count == SHOWN, "%s", error.words);
    for (int shown = 0, position = (EPOCH - 1) * COUNT; shown < sheet.count; shown++, position++) {
        const struct indices indices = {.count = BATCH + 1, .index = index, .key = key};
        stream_batch(&stream, 0, position / BATCH, index);
        stream_keys(&stream, 0, position / BATCH, key);
        stream_next(&stream, 0, position / BATCH, &index[BATCH], &key[BATCH]);
        CHECK(device.backend->gather(&device, &dataset.train, &indices, values, &error) == OK, "%s",
              error.words);
        const int in_batch = position % BATCH;
        float *own = values + in_batch * CROP * CROP * 3;
        struct augment_mix mix;
        char class[TILE_TEXT];
        const char *first = names[labels[index[in_batch]]];
        mix_draw(&mix, &dataset.train.augment, key[in_batch]);
        for (int i = 0; i < CROP * CROP * 3; i++)
            own[i] = augment_mixed(mix.share, own[i], own[i + CROP * CROP * 3]);
        check_tile(&sheet.tiles[shown], index[in_batch], own, standardize);
        if (mixup > 0.0f)
            snprintf(class, sizeof class, "%.0f%% %s, %s", 100.0 * (double)mix.share, first,
                     names[labels[index[in_batch + 1]]]);
        else
            snprintf(class, sizeof class, "%s", first);
        CHECK(strcmp(sheet.tiles[shown].line[0], class) == 0, "found %s, expected %s",
              sheet.tiles[shown].line[0], class);
    }
    sheet_close(&sheet);
    /* Of the test part, the central crop; not more than there are. */
    const struct example_choice tests = {.count = 1000};
    CHECK(example_sheet(&sheet, &dataset, &tests, &error) == OK && sheet.count == COUNT, "%s", error.words);
    for (int i = 0; i < sheet.count; i++) {
        const struct indices indices = {.count = 1, .index = &i};
        CHECK(device.backend->gather(&device, &dataset.test, &indices, values, &error) == OK, "%s",
              error.words);
        check_tile(&sheet.tiles[i], i, values, standardize);
        CHECK(strcmp(sheet.tiles[i].line[0], names[labels[i]]) == 0, "found %s", sheet.tiles[i].line[0]);
    }
    sheet_close(&sheet);
    dataset.test.bytes = NULL; /* numbers of no image */
    CHECK(example_sheet(&sheet, &dataset, &tests, &error) == ERROR_USAGE, "no error");
    sheet_close(&sheet);
}

/* The surest mistake comes first; of equal ones the first of the data set. */
static void check_wrong(void) {
    struct error error = {0};
    const struct dataset dataset = made_up(false);
    struct sheet sheet = {0};
    int said[COUNT];
    float probabilities[COUNT * CLASSES];
    for (int i = 0; i < COUNT; i++) {
        said[i] = i == 10 || i == 20 || i == 30 ? (labels[i] + 1) % CLASSES : labels[i];
        for (int c = 0; c < CLASSES; c++)
            probabilities[i * CLASSES + c] = c == said[i] ? (i == 20 ? 0.9f : 0.5f) : 0.25f;
    }
    const struct answers answers = {said, probabilities};
    CHECK(wrong_sheet(&sheet, &dataset, &dataset.test, "test", &answers, 2, &error) == OK && sheet.count == 2,
          "%s", error.words);
    CHECK(strstr(sheet.title, "3 of 50 test examples are wrong"), "found %s", sheet.title);
    CHECK(strcmp(sheet.tiles[0].line[0], names[labels[20]]) == 0, "found %s", sheet.tiles[0].line[0]);
    CHECK(strstr(sheet.tiles[0].line[1], names[said[20]]) && strstr(sheet.tiles[0].line[1], " 90%"),
          "found %s", sheet.tiles[0].line[1]);
    CHECK(memcmp(sheet.tiles[1].picture[0].pixels, bytes + 10 * SIDE * SIDE * 3, SIDE * SIDE * 3) == 0,
          "the second is another one than 10");
    sheet_close(&sheet);
}

/* --- filters --- */

static void check_filters(void) {
    struct error error = {0};
    struct graph graph;
    struct sheet sheet = {0};
    static float weights[4 * 4 * 3 * 8];
    const int seen[3] = {6, 6, 3};
    graph_open(&graph, false, 1);
    const node x = graph_placeholder(&graph, "x", TYPE_FLOAT, SHAPE(1, 6, 6, 3));
    const struct initial zero = {.kind = INITIAL_ZERO};
    const node y =
        graph_dense(&graph, graph_flatten(&graph, graph_conv(&graph, x, 2, 2, 1, PADDING_VALID, zero, zero)),
                    5, zero, zero);
    CHECK(y != NONE && graph_check(&graph, &error) == OK, "%s", error.words);
    float *kernel = calloc(graph.layout.floats, sizeof *kernel);
    const struct range *range = layout_find(&graph.layout, "conv1/kernel");
    CHECK(kernel && range, "no conv1/kernel");
    if (!kernel || !range) return;
    /* [row][column][channel][unit]: unit 1 has one weight, blue at row 1, column 0. */
    kernel[range->begin + (size_t)(((1 * 2 + 0) * 3 + 2) * 2 + 1)] = 4.0f;
    CHECK(filters_sheet(&sheet, &graph, kernel, seen, 10, true, &error) == OK && sheet.count == 2, "%s",
          error.words);
    CHECK(is(&sheet.tiles[0].picture[0], 0, 1, (struct colour){128, 128, 128}), "unit 0 is not grey");
    CHECK(is(&sheet.tiles[1].picture[0], 0, 1, (struct colour){128, 128, 255}), "unit 1 is not blue there");
    CHECK(is(&sheet.tiles[1].picture[0], 1, 0, (struct colour){128, 128, 128}),
          "unit 1 is not grey elsewhere");
    sheet_close(&sheet);
    graph_close(&graph);
    free(kernel);
    /* A dense layer on images of one channel, whose weights are [in, out]. */
    graph_open(&graph, false, 1);
    graph_dense(&graph, graph_placeholder(&graph, "x", TYPE_FLOAT, SHAPE(1, 12)), 2, zero, zero);
    const int grey[3] = {4, 3, 1}, other[3] = {5, 5, 1};
    weights[(2 * 3 + 1) * 2 + 1] = -1.0f; /* row 2, column 1 of unit 1 */
    CHECK(filters_sheet(&sheet, &graph, weights, grey, 10, true, &error) == OK && sheet.count == 2, "%s",
          error.words);
    CHECK(is(&sheet.tiles[1].picture[0], 1, 2, (struct colour){33, 102, 172}),
          "not blue where it is negative");
    CHECK(is(&sheet.tiles[1].picture[0], 0, 0, white) && is(&sheet.tiles[0].picture[0], 1, 2, white),
          "not white");
    sheet_close(&sheet);
    CHECK(filters_sheet(&sheet, &graph, weights, other, 10, true, &error) == ERROR_USAGE,
          "another image: no error");
    sheet_close(&sheet);
    graph_close(&graph);
}

/* --- confusion --- */

static void check_confusion(void) {
    struct error error = {0};
    struct confusion confusion;
    struct canvas canvas = {0};
    const char *const class_names[] = {"a", "b", "long\nname"};
    const int label[] = {0, 0, 1, 2, 2, 2}, said[] = {0, 1, 1, 0, 0, 2};
    CHECK(confusion_open(&confusion, class_names, 3, label, said, 6, &error) == OK, "%s", error.words);
    const int expected[] = {1, 1, 0, 0, 1, 0, 2, 0, 1};
    CHECK(memcmp(confusion.count, expected, sizeof expected) == 0 && confusion.right == 3, "%d right",
          confusion.right);
    char *words = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&words, &length);
    const struct page page = {.file = file, .columns = 80};
    snprintf(confusion.title, sizeof confusion.title, "title");
    confusion_print(&confusion, &page);
    fclose(file);
    CHECK(strcmp(words, "title\n\n"
                        "label             a         b long?name  <- said\n"
                        "a                 1         1         0\n"
                        "b                 0         1         0\n"
                        "long?name         2         0         1\n"
                        "\nmixed up most often:\n"
                        "  2  long?name taken for a\n"
                        "  1  a taken for b\n") == 0,
          "found:\n%s", words);
    free(words);
    CHECK(confusion_draw(&confusion, &canvas, &error) == OK && canvas.width >= 640, "%s", error.words);
    canvas_close(&canvas);
    confusion_close(&confusion);
    CHECK(confusion_open(&confusion, class_names, 1001, label, said, 6, &error) == ERROR_USAGE,
          "too many classes");
    confusion_close(&confusion);
}

/* --- PNG --- */

static void check_png(void) {
    struct error error = {0};
    struct canvas canvas;
    struct picture picture = {0};
    char *file = NULL;
    size_t count = 0;
    if (canvas_open(&canvas, 33, 7, white, &error) != OK) return;
    for (int i = 0; i < 33 * 7; i++)
        canvas.pixels[i] = (struct colour){(uint8_t)i, (uint8_t)(i * 7), (uint8_t)(i * i)};
    if (TRAINER_PNG) {
        CHECK(png_encode(&canvas, &file, &count, &error) == OK && picture_is(file, count), "%s", error.words);
        if (TRAINER_STB && file) {
            CHECK(picture_decode(&picture, 3, "x.png", file, count, &error) == OK, "%s", error.words);
            CHECK(picture.width == 33 && picture.height == 7, "%d x %d", picture.width, picture.height);
            CHECK(picture.pixels && memcmp(picture.pixels, canvas.pixels, 33 * 7 * 3) == 0, "other pixels");
            picture_close(&picture);
        }
        memory_free(file);
    } else {
        CHECK(png_encode(&canvas, &file, &count, &error) == ERROR_USAGE && strstr(error.words, "libpng-dev"),
              "%s", error.words);
    }
    canvas_close(&canvas);
}

int main(void) {
    check_png();
    check_canvas();
    check_text();
    check_blocks();
    check_examples(false, 0.0f);
    check_examples(true, 0.0f);
    check_examples(false, 1.0f);
    check_wrong();
    check_filters();
    check_confusion();
    return check_end();
}
