/* JSON: what the writer writes the reader reads back; the grammar is held to its letter on both sides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/json.h"
#include "../check.h"

static void test_round_trip(void) {
    char *text = NULL;
    size_t bytes = 0;
    const char *nasty = "quote \" slash \\ line\nbell\a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
    struct json_writer writer = {.file = open_memstream(&text, &bytes)};
    json_open(&writer, NULL, '{');
    json_text(&writer, "name", nasty);
    json_text(&writer, "broken", "a\xff\xc3");
    json_int(&writer, "big", -9007199254740991);
    json_real(&writer, "real", 0.1);
    json_real(&writer, "third", 1.0 / 3);
    json_real(&writer, "nan", NAN);
    json_bool(&writer, "yes", true);
    json_open(&writer, "list", '[');
    for (int i = 0; i < 3; i++) json_int(&writer, NULL, i);
    json_open(&writer, NULL, '{');
    json_close(&writer, '}');
    json_close(&writer, ']');
    json_bool(&writer, "last", false);
    json_close(&writer, '}');
    fclose(writer.file);
    CHECK(strstr(text, "\"real\": 0.1,\n  \"third\": 0.3333333333333333,\n") != NULL, "%s", text);
    CHECK(strstr(text, "\"list\": [\n    0,\n    1,\n    2,\n    {}\n  ],\n") != NULL, "%s", text);
    CHECK(text[bytes - 1] == '\n' && text[bytes - 2] == '}', "end");

    struct json json;
    struct error error = {0};
    CHECK(json_parse(&json, text, bytes, &error) == OK, "%s", error.words);
    if (error.code == OK) {
        const struct json_value *root = json.values, *list = json_member(&json, root, "list");
        CHECK(root->kind == JSON_OBJECT && root->children == 9 && json.count == 14, "%d %d", root->children,
              json.count);
        CHECK(strcmp(json_member(&json, root, "name")->text, nasty) == 0, "name");
        CHECK(strcmp(json_member(&json, root, "broken")->text, "a\xef\xbf\xbd\xef\xbf\xbd") == 0, "broken");
        CHECK(json_member(&json, root, "big")->number == -9007199254740991.0, "big");
        CHECK(json_member(&json, root, "third")->number == 1.0 / 3, "third");
        CHECK(json_member(&json, root, "nan")->kind == JSON_NULL, "nan");
        CHECK(json_member(&json, root, "yes")->number == 1 && json_member(&json, root, "last")->number == 0,
              "bools");
        CHECK(json_member(&json, root, "none") == NULL && json_member(&json, list, "x") == NULL, "no member");
        CHECK(list->kind == JSON_ARRAY && list->children == 4, "%d", list->children);
        int sum = 0, index = list->first;
        for (int i = 0; i < 3; i++, index = json.values[index].next)
            sum += (int)json.values[index].number * (i + 1);
        CHECK(sum == 8 && json.values[index].kind == JSON_OBJECT && json.values[index].next == -1, "%d", sum);
    }
    json_free(&json);
    free(text);
}

static void accept(const char *text, enum json_kind kind, const char *string, double number) {
    struct json json;
    struct error error = {0};
    CHECK(json_parse(&json, text, strlen(text), &error) == OK, "%s: %s", text, error.words);
    if (error.code != OK) return;
    CHECK(json.values[0].kind == kind, "%s: kind %d", text, json.values[0].kind);
    if (string != NULL)
        CHECK(strcmp(json.values[0].text, string) == 0, "%s: \"%s\"", text, json.values[0].text);
    if (kind == JSON_NUMBER) CHECK(json.values[0].number == number, "%s: %g", text, json.values[0].number);
    json_free(&json);
}

static void test_accepted(void) {
    accept(" null ", JSON_NULL, NULL, 0);
    accept("[]", JSON_ARRAY, NULL, 0);
    accept("{ }", JSON_OBJECT, NULL, 0);
    accept("-0.5e+2", JSON_NUMBER, NULL, -50);
    accept("0", JSON_NUMBER, NULL, 0);
    accept("1E-2", JSON_NUMBER, NULL, 0.01);
    accept("\"\"", JSON_TEXT, "", 0);
    accept("\"\\u00e9\\u20AC\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\"", JSON_TEXT,
           "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\b\f\n\r\t", 0);
}

/* Bytes may hold 0, so their number is given. */
static void refuse(const char *text, size_t bytes, const char *words) {
    struct json json;
    struct error error = {0};
    char *exact =
        malloc(bytes == 0 ? 1 : bytes); /* so that a read beyond the end is seen by the address sanitizer */
    memcpy(exact, text, bytes);
    CHECK(json_parse(&json, exact, bytes, &error) == ERROR_FILE, "%s: accepted", text);
    CHECK(json.values == NULL && json.text == NULL, "%s: left open", text);
    CHECK(words == NULL || strcmp(error.words, words) == 0, "%s: \"%s\", expected \"%s\"", text, error.words,
          words == NULL ? "" : words);
    json_free(&json);
    free(exact);
}

static void test_refused(void) {
    refuse("", 0, "JSON line 1, column 1: found the end, expected a value");
    refuse("{\"a\\n\":\n 1,\n x}", 15, "JSON line 3, column 2: found 'x', expected a name in double quotes");
    refuse("[1 2]", 5, "JSON line 1, column 4: found '2', expected ',' or ']'");
    refuse(
        "\"a\0b\"", 5,
        "JSON line 1, column 3: found byte 0x00, expected a closing quote, and control characters escaped");
    refuse("1e999", 5, "JSON line 1, column 1: found '1', expected a number below 1.8e308");
    const char *const wrong[] = {"{",
                                 "[",
                                 "[1,]",
                                 "{\"a\":1,}",
                                 "{\"a\" 1}",
                                 "{a:1}",
                                 "01",
                                 "1.",
                                 ".5",
                                 "-",
                                 "+1",
                                 "1e",
                                 "nan",
                                 "Infinity",
                                 "tru",
                                 "nulll",
                                 "\"",
                                 "\"\\",
                                 "\"\\x\"",
                                 "\"\\u12\"",
                                 "\"\\ud800\"",
                                 "\"\\udc00\"",
                                 "\"\\ud800\\u0041\"",
                                 "\"\\u0000\"",
                                 "\"\t\"",
                                 "\"\xff\"",
                                 "\"\xc0\x80\"",
                                 "\"\xed\xa0\x80\"",
                                 "\"\xe2\x82\"",
                                 "1 1",
                                 "[1]]",
                                 "'a'",
                                 "{\"a\":}",
                                 "// a\n1",
                                 "\357\273\2771"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) refuse(wrong[i], strlen(wrong[i]), NULL);
}

static void test_limits(void) {
    char deep[200];
    struct json json;
    for (int levels = 64; levels <= 65; levels++) {
        memset(deep, '[', (size_t)levels);
        memset(deep + levels, ']', (size_t)levels);
        struct error error = {0};
        const int code = json_parse(&json, deep, 2 * (size_t)levels, &error);
        CHECK(code == (levels == 64 ? OK : ERROR_FILE), "%d levels: %s", levels, error.words);
        json_free(&json);
    }
    for (size_t values = 1999999; values <= 2000000; values++) { /* and the array itself */
        char *text = malloc(2 * values + 1);
        for (size_t i = 0; i < values; i++) {
            text[2 * i + 1] = '7';
            text[2 * i + 2] = ',';
        }
        text[0] = '[';
        text[2 * values] = ']';
        struct error error = {0};
        const int code = json_parse(&json, text, 2 * values + 1, &error);
        CHECK(code == (values == 1999999 ? OK : ERROR_FILE), "%zu values: %s", values, error.words);
        if (code == OK)
            CHECK(json.values[0].children == 1999999 && json.values[1999999].number == 7, "many values");
        json_free(&json);
        free(text);
    }
}

/* Every text cut short anywhere, and with any one byte changed, is parsed or refused, and nothing is read
 * beyond it. */
static void test_damaged(void) {
    const char *good =
        "{\"cluster\": {\"worker\": [\"a:1\", \"b\\u00e9:2\"]}, \"n\": -1.5e3, \"ok\": true, \"x\": null}";
    const size_t bytes = strlen(good);
    struct json json;
    int accepted = 0;
    for (size_t cut = 0; cut < bytes; cut++) refuse(good, cut, NULL);
    for (size_t at = 0; at < bytes; at++)
        for (int byte = 0; byte < 256; byte += 3) {
            char *bad = malloc(bytes);
            memcpy(bad, good, bytes);
            bad[at] = (char)byte;
            struct error error = {0};
            accepted += json_parse(&json, bad, bytes, &error) == OK;
            json_free(&json);
            free(bad);
        }
    CHECK(accepted > 100, "%d accepted", accepted);
}

int main(void) {
    test_round_trip();
    test_accepted();
    test_refused();
    test_limits();
    test_damaged();
    return check_end();
}
