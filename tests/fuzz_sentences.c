/* Fuzzing of bench.csv as a report reads it: clang -fsanitize=fuzzer,address over this file and the library.
 * The input is what follows the header of a table; and it is a sentence, which has to come back as it was,
 * whatever it has of quotes, commas and ends of lines. */
#include <string.h>
#include "../src/base/memory.h"
#include "../src/report/sentences.h"
#include "fuzz.h"

enum { TABLES, SENTENCES, MOST = 4096 };
static const char *const names[] = {"tables", "sentences", NULL};
static const char header[] = "strategy,baseline,sentence\n";

static struct facts run_named(const char *label) {
    struct facts facts = {0};
    snprintf(facts.label, sizeof facts.label, "%s", label);
    return facts;
}

static void check_table(const char *data) {
    char text[sizeof header + 8 + MOST];
    struct facts run = run_named("a");
    struct error error = {0};
    snprintf(text, sizeof text, "%sa,%s", header, data);
    fuzz_require(sentences_parse(&run, 1, text, &error) == OK);
    fuzz_require(run.sentence && strlen(run.sentence) <= strlen(data));
    fuzz.accepted[TABLES]++;
    memory_free(run.sentence);
}

static void check_sentence(const char *data) {
    char text[sizeof header + 32 + 2 * MOST], *to = text;
    struct facts runs[2] = {run_named("b"), run_named("a, \"b\"")};
    struct error error = {0};
    to += sprintf(to, "%sb,0,first\n\"a, \"\"b\"\"\",1,\"", header);
    for (const char *c = data; *c; c++) {
        if (*c == '"') *to++ = '"';
        *to++ = *c;
    }
    strcpy(to, "\"\n");
    fuzz_require(sentences_parse(runs, 2, text, &error) == OK);
    fuzz_require(runs[0].sentence && strcmp(runs[0].sentence, "first") == 0);
    fuzz_require(runs[1].sentence && strcmp(runs[1].sentence, data) == 0);
    fuzz.accepted[SENTENCES]++;
    for (int i = 0; i < 2; i++) memory_free(runs[i].sentence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char text[MOST + 1];
    fuzz_count(names);
    const size_t used = bytes < MOST ? bytes : MOST;
    memcpy(text, data, used);
    text[used] = '\0';
    check_table(text);
    check_sentence(text);
    return 0;
}
