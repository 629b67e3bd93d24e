/* Networks as text: what says the same, what is wrong and where, and the limits. */
#include "../../src/graph/layers_text.h"
#include "../check.h"

enum { TEXT_MOST = 2000 };

static bool parse(struct layer_list *list, const char *text, struct error *error) {
    *error = (struct error){0};
    return layers_parse(list, "text", text, strlen(text), ERROR_USAGE, error) == OK;
}

static void write_list(const struct layer_list *list, char out[TEXT_MOST]) {
    struct text text = text_into(out, TEXT_MOST);
    layers_write(list, "; ", &text);
    CHECK(!text.cut, "the text is longer than %d", TEXT_MOST);
}

/* Two texts that say the same. */
static void test_same(void) {
    static const char *const pairs[][2] = {
        {"dense 5 relu\ndense\n", "dense 5 relu; dense"},
        {"# all of it\n\n  dense units=5 relu # then\r\n;;dense", "dense 5 relu; dense"},
        {"conv 3 2 padding=same", "conv 3 2 same"},
        {"a=conv 3 3x3\nb =conv 3 3x3 input\nadd a", "a = conv 3 3x3; b = conv 3 3x3 input; add previous a"},
        {"a = dense 5\nrelu\nadd a", "a = dense 5; relu; add previous a"},
        {"a = dense 5; b = relu; add b a", "a = dense 5; b = relu; add a"},
        {"conv window=3x3 filters=4", "conv 4 3x3"},
        {"dropout; elu 1; leaky_relu alpha=0.01", "dropout 0.5; elu; leaky_relu"},
        {"# of digits\ninput 8x8x1 # grey\ndense 5 input", "input 8x8x1; dense 5"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct layer_list list[2];
        struct error error;
        char text[2][TEXT_MOST] = {"", ""};
        for (int k = 0; k < 2; k++) {
            CHECK(parse(&list[k], pairs[i][k], &error), "%s: %s", pairs[i][k], error.words);
            write_list(&list[k], text[k]);
        }
        CHECK(strcmp(text[0], text[1]) == 0, "%s, not %s", text[0], text[1]);
        for (int k = 0; k < 2; k++) layers_close(&list[k]);
    }
}

static void test_wrong_texts(void) {
    static const char *const wrong[][2] = {
        {"", "text: found no layer, expected one or more"},
        {" # nothing\n", "text: found no layer, expected one or more"},
        {"dense 5\n  dens", "text: line 2, column 3: unknown layer \"dens\"; did you mean \"dense\"?"},
        {"relu; ; xyz 3", "text: line 1, column 9: unknown layer \"xyz\"; trainer list layers shows all"},
        {"conv 3", "text: line 1, column 1: conv: found no window: expected rows and columns of a filter"},
        {"conv 3x3 3", "text: line 1, column 6: conv: filters=3x3: expected a whole number, 1 to 1000000"},
        {"conv 3 0x2",
         "text: line 1, column 8: conv: window=0x2: expected up to 2 whole numbers joined by 'x'"},
        {"conv 3 1x2x", "text: line 1, column 8: conv: window=1x2x: expected up to 2"},
        {"conv 3 1x2x3", "text: line 1, column 8: conv: window=1x2x3: expected up to 2"},
        {"dense 5 6", "text: line 1, column 9: dense: found \"6\", expected no further number"},
        {"dense 5 units=6", "text: line 1, column 9: dense: units is set twice"},
        {"dense 5 unit=6",
         "text: line 1, column 9: dense: unknown setting \"unit\"; did you mean \"units\"?"},
        {"dense 5 rely", "text: line 1, column 9: dense: unknown word \"rely\"; did you mean \"relu\"?"},
        {"dense 5 relu tanh", "text: line 1, column 14: found \"tanh\" after the activation"},
        {"dense 5 dense 6", "text: line 1, column 9: dense: found the layer \"dense\""},
        {"a = dense 5; a = dense 6", "text: line 1, column 14: the name \"a\" is taken by an earlier layer"},
        {"a = dense 5; b = relu a; c = tanh a", "text: layer 2 (b = relu): no later layer takes it"},
        {"dense 5; a = relu input", "text: layer 1 (dense): no later layer takes it"},
        {"relu = dense 5", "text: line 1, column 1: found the name \"relu\""},
        {"same = dense 5", "text: line 1, column 1: found the name \"same\""},
        {"= dense 5", "text: line 1, column 1: found the name \"\""},
        {"a =\ndense 5", "text: line 1, column 4: found nothing after \"a =\", expected a layer"},
        {"add", "text: line 1, column 1: add: found no inputs"},
        {"dense 5; add b", "text: line 1, column 14: add: \"b\" is not a setting, an activation or a layer"},
        {"a = dense 5 a", "text: line 1, column 13: dense: \"a\" is not a setting"},
        {"a = relu; b = relu; tanh a b",
         "text: line 1, column 28: tanh: found input \"b\", expected at most 1"},
        {"relu; input 8x8",
         "text: line 1, column 7: input: found it behind the first line, expected it there"},
        {"input 8; input 8", "text: line 1, column 10: input: found it behind the first line"},
        {"input\nrelu", "text: line 1, column 6: input: found no shape, expected one as in 28x28x1"},
        {"input 8x0; relu", "text: line 1, column 7: input: shape=8x0: expected up to 5 whole numbers"},
        {"input 8 8; relu", "text: line 1, column 9: input: found \"8\" behind its shape"},
        {"input 8", "text: found no layer, expected one or more"},
        {"dense \x01", "text: line 1, column 7: found byte 0x01"},
        {"dense 5\n\xc3\xa9", "text: line 2, column 1: found byte 0xc3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct layer_list list;
        struct error error;
        CHECK(!parse(&list, wrong[i][0], &error), "%s was accepted", wrong[i][0]);
        CHECK(strncmp(error.words, wrong[i][1], strlen(wrong[i][1])) == 0, "%s: %s", wrong[i][0],
              error.words);
        CHECK(error.code == ERROR_USAGE && !list.layers, "%s: code %d", wrong[i][0], error.code);
        layers_close(&list);
    }
}

/* A 0 ends no text that says how long it is; words, names and lists are bounded. */
static void test_limits(void) {
    struct layer_list list;
    struct error error = {0};
    char long_text[8 * (LAYERS_MOST + 2)] = "";
    CHECK(layers_parse(&list, "text", "relu\0relu", 9, ERROR_FILE, &error) == ERROR_FILE, "a 0 in a text");
    CHECK(strstr(error.words, "line 1, column 5: found byte 0x00"), "%s", error.words);
    memset(long_text, 'x', 300);
    CHECK(!parse(&list, long_text, &error), "a long word");
    CHECK(strstr(error.words, "more than 199 characters"), "%s", error.words);
    strcpy(long_text, "a23456789012345678901234567890123456789012 = relu");
    CHECK(!parse(&list, long_text, &error), "a name of 42 characters");
    long_text[0] = '\0';
    for (int i = 0; i <= LAYERS_MOST; i++) memcpy(long_text + 5 * (size_t)i, "relu\n", 6);
    CHECK(!parse(&list, long_text, &error) && strstr(error.words, "more than 1000 layers"), "%s",
          error.words);
    long_text[5 * LAYERS_MOST] = '\0';
    CHECK(parse(&list, long_text, &error) && list.count == LAYERS_MOST, "%s", error.words);
    layers_close(&list);
}

int main(void) {
    test_same();
    test_wrong_texts();
    test_limits();
    return check_end();
}
