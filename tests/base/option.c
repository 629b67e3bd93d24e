/* Options: strict values, ranges in the words, names that are nearly right, plug-ins with settings, help
 * within the columns of its page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../../src/base/option.h"
#include "../check.h"

struct settings {
    bool progress;
    int batch;
    long limit;
    double rate;
    char out[16];
    int kernels;
    double scale;
    int hidden;
    int often, seldom;
};

static const struct option rows[] = {{.name = "progress",
                                      .type = OPTION_FLAG,
                                      .offset = offsetof(struct settings, progress),
                                      .fallback = "1",
                                      .help = "show progress"},
                                     {.name = "batch",
                                      .type = OPTION_INT,
                                      .offset = offsetof(struct settings, batch),
                                      .fallback = "32",
                                      .least = 1,
                                      .most = 1000000,
                                      .unit = "examples",
                                      .help = "examples per worker per step"},
                                     {.name = "limit",
                                      .type = OPTION_LONG,
                                      .offset = offsetof(struct settings, limit),
                                      .fallback = "-1",
                                      .help = "most updates"},
                                     {.name = "rate",
                                      .type = OPTION_REAL,
                                      .offset = offsetof(struct settings, rate),
                                      .fallback = "0.1",
                                      .least = 0,
                                      .most = 100,
                                      .help = "learning rate"},
                                     {.name = "out",
                                      .type = OPTION_TEXT,
                                      .offset = offsetof(struct settings, out),
                                      .bytes = 16,
                                      .help = "folder of the run"},
                                     {.name = "kernels",
                                      .type = OPTION_CHOICE,
                                      .offset = offsetof(struct settings, kernels),
                                      .choices = "auto|onednn|reference",
                                      .help = "which kernels compute, a help line that is long enough to be "
                                              "cut into more than one line of one hundred columns"},
                                     {.name = "job-scale",
                                      .type = OPTION_REAL,
                                      .offset = offsetof(struct settings, scale),
                                      .value = "SCALE",
                                      .help = "any number at all"},
                                     {.name = "hidden",
                                      .type = OPTION_INT,
                                      .offset = offsetof(struct settings, hidden),
                                      .least = 1,
                                      .most = 8,
                                      .help = "0: default"},
                                     {.name = "often",
                                      .type = OPTION_INT,
                                      .offset = offsetof(struct settings, often),
                                      .fallback = "0",
                                      .least = 0,
                                      .most = 9,
                                      .help = "how often (0: never)"},
                                     {.name = "seldom",
                                      .type = OPTION_INT,
                                      .offset = offsetof(struct settings, seldom),
                                      .fallback = "5",
                                      .least = 0,
                                      .most = 9,
                                      .help = "how seldom (0: never)"},
                                     {0}};

static int set(struct settings *settings, const char *owner, const char *name, const char *value,
               const char *words) {
    struct error error = {0};
    const int code = option_set(rows, settings, owner, name, value, &error);
    if (words == NULL)
        CHECK(code == OK, "%s=%s: %s", name, value == NULL ? "NULL" : value, error.words);
    else
        CHECK(code == ERROR_USAGE && strcmp(error.words, words) == 0, "%s=%s: \"%s\", expected \"%s\"", name,
              value == NULL ? "NULL" : value, error.words, words);
    return code;
}

static void test_defaults_and_values(void) {
    struct settings s;
    memset(&s, 0x55, sizeof s);
    option_defaults(rows, &s);
    CHECK(s.progress && s.batch == 32 && s.limit == -1 && s.rate == 0.1, "%d %ld %f", s.batch, s.limit,
          s.rate);
    CHECK(s.out[0] == '\0' && s.kernels == 0 && isnan(s.scale) && s.hidden == 0, "zero, empty or nan");
    set(&s, "--", "progress", "0", NULL);
    CHECK(!s.progress, "flag off");
    set(&s, "--", "progress", NULL, NULL);
    CHECK(s.progress, "flag on");
    set(&s, "--", "batch", "1000000", NULL);
    set(&s, "--", "limit", "9000000000000000000", NULL);
    set(&s, "--", "rate", "2.5e-1", NULL);
    set(&s, "--", "out", "runs/a:b=c", NULL);
    set(&s, "--", "kernels", "reference", NULL);
    set(&s, "--", "job_scale", "-1e300", NULL); /* _ for - */
    CHECK(s.batch == 1000000 && s.limit == 9000000000000000000 && s.rate == 0.25, "%d %ld %f", s.batch,
          s.limit, s.rate);
    CHECK(strcmp(s.out, "runs/a:b=c") == 0 && s.kernels == 2 && s.scale == -1e300, "%s %d %f", s.out,
          s.kernels, s.scale);
}

static void test_refused_values(void) {
    struct settings s;
    option_defaults(rows, &s);
    const struct settings before = s;
    set(&s, "--", "batch", "0", "--batch=0: expected 1 to 1000000 examples");
    set(&s, "sgd", "batch", "0", "sgd: batch=0: expected 1 to 1000000 examples");
    set(&s, "--", "batch", "1000001", "--batch=1000001: expected 1 to 1000000 examples");
    set(&s, "--", "batch", "9999999999999999999999",
        "--batch=9999999999999999999999: expected 1 to 1000000 examples");
    const char *const not_whole[] = {"", "abc", "1x", " 1", "1 ", "1.5", "1e3", "0x10", "--1", "+", "nan"};
    for (size_t i = 0; i < sizeof not_whole / sizeof not_whole[0]; i++) {
        char words[100];
        snprintf(words, sizeof words, "--batch=%s: expected a whole number, 1 to 1000000 examples",
                 not_whole[i]);
        set(&s, "--", "batch", not_whole[i], words);
    }
    const char *const not_real[] = {"",    "nan", "inf", "-inf", "infinity", "0x1p3",
                                    "1,5", " 1",  "1e",  ".",    "1e5f"};
    for (size_t i = 0; i < sizeof not_real / sizeof not_real[0]; i++) {
        char words[100];
        snprintf(words, sizeof words, "--rate=%s: expected a number, 0 to 100", not_real[i]);
        set(&s, "--", "rate", not_real[i], words);
    }
    set(&s, "--", "rate", "-0.001", "--rate=-0.001: expected 0 to 100");
    set(&s, "--", "rate", "1e999", "--rate=1e999: expected 0 to 100");
    set(&s, "--", "job-scale", "1e999", "--job-scale=1e999: expected a smaller number");
    set(&s, "--", "limit", "9999999999999999999",
        "--limit=9999999999999999999: expected a smaller whole number");
    set(&s, "--", "progress", "maybe", "--progress=maybe: expected 0 or 1");
    set(&s, "--", "kernels", "ref", "--kernels=ref: expected one of auto|onednn|reference");
    set(&s, "--", "kernels", "auto|onednn", "--kernels=auto|onednn: expected one of auto|onednn|reference");
    set(&s, "--", "out", "0123456789abcdef",
        "--out=0123456789abcdef: expected at most 15 characters, found 16");
    set(&s, "--", "batch", NULL, "--batch: a value is missing, expected --batch=...");
    set(&s, "--", "btach", "1", "unknown option \"--btach\"; did you mean --batch=1?");
    set(&s, "--", "zzz", "1", "unknown option \"--zzz\"; --help=all lists them");
    set(&s, "--", "batch_size", "64", "unknown option \"--batch_size\"; did you mean --batch=64?");
    set(&s, "--", "bs", NULL, "unknown option \"--bs\"; did you mean --batch=...?");
    set(&s, "--", "weight-decay", "1", "unknown option \"--weight-decay\"; --help=all lists them");
    set(&s, "sgd", "rat", "1", "sgd: unknown setting \"rat\"; did you mean \"rate\"?");
    CHECK(memcmp(&s, &before, sizeof s) == 0, "a refused value changed a setting");
}

static void test_nearest(void) {
    const char *const names[] = {"sync", "async-apply", "async-locked", "async-lockfree", "sharded", NULL};
    const char *const cases[][2] = {
        {"snyc", "sync"},       {"syn", "sync"},       {"async-lockfre", "async-lockfree"},
        {"shraded", "sharded"}, {"shared", "sharded"}, {"async", "async-apply"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = option_nearest(cases[i][0], names);
        CHECK(nearest != NULL && strcmp(nearest, cases[i][1]) == 0, "%s: %s", cases[i][0],
              nearest == NULL ? "" : nearest);
    }
    CHECK(option_nearest("hogwild", names) == NULL && option_nearest("", names) == NULL, "far away");
    char long_name[200];
    memset(long_name, 's', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    CHECK(option_nearest(long_name, names) == NULL, "long");
}

/* --- plug-ins --- */

struct descriptor {
    struct plugin plugin;
    int other;
};
static const struct descriptor sgd = {
    .plugin = {.name = "sgd", .help = "plain", .options = rows, .settings_bytes = sizeof(struct settings)}};
static const struct descriptor free_one = {.plugin = {.name = "async-lockfree", .help = "no lock"}};
static const struct plugin *const plugins[] = {&sgd.plugin, &free_one.plugin, NULL};
static const struct plugin_kind kind = {"optimizer", "optimizers", plugins};

static void choose(const char *text, const char *words) {
    struct error error = {0};
    struct choice choice;
    const int code = plugin_choose(&choice, &kind, text, &error);
    CHECK(code == ERROR_USAGE && strcmp(error.words, words) == 0, "%s: \"%s\", expected \"%s\"", text,
          error.words, words);
}

static void test_plugins(void) {
    struct error error = {0};
    struct choice choice;
    CHECK(plugin_choose(&choice, &kind, "sgd", &error) == OK, "%s", error.words);
    const struct settings *s = (const struct settings *)choice.settings;
    CHECK(choice.plugin == &sgd.plugin && s->batch == 32 && strcmp(choice.text, "sgd") == 0, "defaults");
    CHECK(plugin_choose(&choice, &kind, "sgd:rate=0.5,progress=0,out=/a:b=c,batch=7,job_scale=2", &error) ==
              OK,
          "%s", error.words);
    CHECK(s->rate == 0.5 && !s->progress && strcmp(s->out, "/a:b=c") == 0 && s->batch == 7 && s->scale == 2,
          "set");
    CHECK(plugin_choose(&choice, &kind, "sgd:out=\"a,b=c\",progress,rate=2", &error) == OK, "%s",
          error.words);
    CHECK(strcmp(s->out, "a,b=c") == 0 && s->progress && s->rate == 2, "\"%s\" %f", s->out, s->rate);
    CHECK(plugin_choose(&choice, &kind, "sgd:out=", &error) == ERROR_USAGE, "an empty text was taken");
    error = (struct error){0};
    CHECK(plugin_choose(&choice, &kind, "async_lockfree", &error) == OK, "%s", error.words);
    choose("sdg", "optimizer \"sdg\": unknown; did you mean \"sgd\"? (one of sgd, async-lockfree)");
    choose("hogwild:x=1", "optimizer \"hogwild\": unknown (one of sgd, async-lockfree)");
    choose("", "optimizer \"\": unknown (one of sgd, async-lockfree)");
    choose("rmsprop",
           "optimizer \"rmsprop\": unknown; did you mean --optimizer=adam? (one of sgd, async-lockfree)");
    choose("sgd,rat=1",
           "optimizer \"sgd,rat=1\": unknown; did you mean \"sgd:rat=1\"? (one of sgd, async-lockfree)");
    choose("sgd,lr=0.1,limit=2", "optimizer \"sgd,lr=0.1,limit=2\": unknown; did you mean "
                                 "\"sgd:rate=0.1,limit=2\"? (one of sgd, async-lockfree)");
    choose("sgd:rat=1", "sgd: unknown setting \"rat\"; did you mean \"rate\"?");
    choose("sgd:batch=0", "sgd: batch=0: expected 1 to 1000000 examples");
    choose("sgd:rate=1,batch=7,rate=1", "sgd: found rate twice, expected each setting once");
    choose("sgd:batch", "sgd: batch: a value is missing, expected batch=...");
    choose("sgd:", "sgd: an empty setting in \"sgd:\", expected key=value");
    choose("sgd:rate=1,", "sgd: an empty setting in \"sgd:rate=1,\", expected key=value");
    choose("sgd:out=\"a", "sgd: out=\"a: expected a value in double quotes, then a comma");
    choose("sgd:out=\"a\"b", "sgd: out=\"a\"b: expected a value in double quotes, then a comma");
    choose("async-lockfree:x=1", "async-lockfree: unknown setting \"x\"; it has none");
    char text[600] = "sgd:out=";
    memset(text + 8, 'a', sizeof text - 9);
    CHECK(plugin_choose(&choice, &kind, text, &error) == ERROR_USAGE, "too long");
}

/* A bare value is that of the only setting; it is written in its long form. */
static void test_bare_value(void) {
    static const struct option one_row[] = {
        {.name = "bound", .type = OPTION_INT, .fallback = "1", .least = 0, .most = 9}, {0}};
    static const struct plugin one = {.name = "ssp", .options = one_row, .settings_bytes = sizeof(int)};
    static const struct plugin *const both[] = {&one, &sgd.plugin, NULL};
    static const struct plugin_kind bare = {"strategy", "strategies", both};
    static const char *const texts[][2] = {
        {"ssp:3", "ssp:bound=3"},
        {"ssp", "ssp"},
        {"ssp:", "ssp:"},
        {"ssp:bound=3", "ssp:bound=3"},
        {"ssp:bound", "ssp:bound"},
        {"ssp:x", "ssp:x"},
        {"ssp:3,4", "ssp:3,4"},
        {"sgd:3", "sgd:3"},
        {"sgd:out=\"a;ssp:3\"", "sgd:out=\"a;ssp:3\""},
        {" ssp:2 until 0.9;ssp:3 ; sgd", " ssp:bound=2 until 0.9;ssp:bound=3 ; sgd"}};
    static struct choice choice;
    struct error error = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[80];
        snprintf(text, sizeof text, "%s", texts[i][0]);
        plugin_lengthen(&bare, text, sizeof text);
        CHECK(strcmp(text, texts[i][1]) == 0, "%s became %s", texts[i][0], text);
    }
    char narrow[8] = "ssp:3";
    plugin_lengthen(&bare, narrow, sizeof narrow);
    CHECK(strcmp(narrow, "ssp:3") == 0, "too long: %s", narrow);
    CHECK(plugin_choose(&choice, &bare, "ssp:7", &error) == OK && choice.settings[0] == 7 &&
              strcmp(choice.text, "ssp:bound=7") == 0,
          "%s: %s", choice.text, error.words);
    CHECK(plugin_choose(&choice, &bare, "ssp:10", &error) == ERROR_USAGE &&
              strcmp(error.words, "ssp: bound=10: expected 0 to 9") == 0,
          "%s", error.words);
    error = (struct error){0};
    CHECK(plugin_choose(&choice, &bare, "sgd:3", &error) == ERROR_USAGE &&
              strncmp(error.words, "sgd: unknown setting \"3\"; ", 26) == 0,
          "%s", error.words);
}

/* Sizes: numbers joined by 'x', as many as the row takes, and written as they are read. */
static void test_sizes(void) {
    static const struct option size_rows[] = {
        {.name = "window", .type = OPTION_SIZES, .sizes = 2, .least = 1, .most = 1000},
        {.name = "shape",
         .type = OPTION_SIZES,
         .offset = sizeof(struct option_sizes),
         .sizes = SIZES_MOST,
         .least = -1,
         .most = 9},
        {0}};
    static const char *const good[][2] = {
        {"window", "3"}, {"window", "1x1000"}, {"shape", "-1x9x0"}, {"shape", "1x2x3x4x5x6x7x8"}};
    static const char *const wrong[][2] = {{"window", "0"},
                                           {"window", "3x"},
                                           {"window", "x3"},
                                           {"window", "3x3x3"},
                                           {"window", "1001"},
                                           {"window", "3 3"},
                                           {"window", "3xx3"},
                                           {"window", ""},
                                           {"window", "3x99999999999999999999"},
                                           {"shape", "1x2x3x4x5x6x7x8x9"},
                                           {"shape", "--1"}};
    struct option_sizes sizes[2];
    char text[64];
    option_defaults(size_rows, sizes);
    CHECK(sizes[0].count == 0 && sizes[1].count == 0, "defaults");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct error error = {0};
        const struct option *row = option_find(size_rows, good[i][0]);
        CHECK(option_set(size_rows, sizes, "conv", good[i][0], good[i][1], &error) == OK, "%s", error.words);
        option_text(row, sizes, text, sizeof text);
        CHECK(strcmp(text, good[i][1]) == 0, "%s became %s", good[i][1], text);
    }
    CHECK(sizes[1].count == 8 && sizes[1].at[0] == 1 && sizes[1].at[7] == 8, "eight sizes");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error error = {0};
        CHECK(option_set(size_rows, sizes, "conv", wrong[i][0], wrong[i][1], &error) == ERROR_USAGE, "%s=%s",
              wrong[i][0], wrong[i][1]);
    }
    CHECK(sizes[0].count == 2 && sizes[1].count == 8, "what is wrong changes nothing");
}

/* What follows the colon of a plug-in may be one text, with commas and all. */
static int check_even(const char *what, const char *text, struct error *error) {
    if (strlen(text) % 2 == 0) return OK;
    return error_set(error, ERROR_USAGE, "%s: %zu characters", what, strlen(text));
}

static void test_text_plugin(void) {
    static const struct plugin even = {.name = "even", .check_text = check_even};
    static const struct plugin *const both[] = {&even, &sgd.plugin, NULL};
    static const struct plugin_kind texts = {"text", "texts", both};
    static struct choice choice;
    static char text[PLUGIN_TEXT_BYTES + 2] = "even:";
    struct error error = {0};
    CHECK(plugin_choose(&choice, &texts, "even:a,b=c:d;", &error) == OK, "%s", error.words);
    CHECK(strcmp(choice_settings(&choice), "a,b=c:d;") == 0, "%s", (const char *)choice_settings(&choice));
    CHECK(plugin_choose(&choice, &texts, "even", &error) == OK && strcmp(choice_settings(&choice), "") == 0,
          "none");
    CHECK(plugin_choose(&choice, &texts, "even:abc", &error) == ERROR_USAGE &&
              strcmp(error.words, "even: 3 characters") == 0,
          "%s", error.words);
    memset(text + 5, 'x', PLUGIN_TEXT_BYTES - 6);
    error = (struct error){0};
    CHECK(plugin_choose(&choice, &texts, text, &error) == OK, "%s", error.words);
    text[PLUGIN_TEXT_BYTES - 1] = 'x';
    error = (struct error){0};
    CHECK(plugin_choose(&choice, &texts, text, &error) == ERROR_USAGE, "too long");
    CHECK(plugin_named(&texts, "sgd:rate=1") == &sgd.plugin && !plugin_named(&texts, "sg:"), "names");
}

/* What option_text writes sets the same value again; a real needs the fewest digits. */
static void test_text_reads_back(void) {
    struct settings s, back;
    option_defaults(rows, &s);
    s.rate = 0.1 + 0.2;
    s.scale = 1e-3;
    s.kernels = 1;
    s.hidden = 3;
    snprintf(s.out, sizeof s.out, "a,b");
    memset(&back, 0, sizeof back);
    for (const struct option *row = rows; row->name != NULL; row++) {
        char text[64];
        option_text(row, &s, text, sizeof text);
        set(&back, "--", row->name, text, NULL);
        if (strcmp(row->name, "job-scale") == 0) CHECK(strcmp(text, "0.001") == 0, "%s", text);
        if (strcmp(row->name, "kernels") == 0) CHECK(strcmp(text, "onednn") == 0, "%s", text);
    }
    CHECK(s.progress == back.progress && s.batch == back.batch && s.limit == back.limit, "flags and counts");
    CHECK(memcmp(&s.rate, &back.rate, sizeof s.rate) == 0 && s.scale == back.scale, "%.17g", back.rate);
    CHECK(strcmp(s.out, back.out) == 0 && s.kernels == back.kernels && s.hidden == back.hidden,
          "text and choice");
    static const struct {
        double real;
        const char *text;
    } written[] = {{60, "60"},     {-100, "-100"}, {0, "0"},        {999999, "999999"},
                   {1e6, "1e+06"}, {2.5, "2.5"},   {1e-40, "1e-40"}};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        char text[64];
        s.scale = written[i].real;
        option_text(option_find(rows, "job-scale"), &s, text, sizeof text);
        CHECK(strcmp(text, written[i].text) == 0, "%s, expected %s", text, written[i].text);
    }
}

/* Three rows: one as usual, one that is rare and has a choice that this build lacks, one that it lacks. */
static const struct option rare_rows[] = {{.name = "first",
                                           .type = OPTION_INT,
                                           .offset = offsetof(struct settings, hidden),
                                           .fallback = "3",
                                           .least = 1,
                                           .most = 8,
                                           .group = "Usual",
                                           .help = "how many"},
                                          {.name = "second",
                                           .type = OPTION_CHOICE,
                                           .offset = offsetof(struct settings, kernels),
                                           .choices = "fast|exact",
                                           .flags = OPTION_AUTO | OPTION_RARE,
                                           .needs = "magic",
                                           .lacking = "magic",
                                           .group = "Second",
                                           .help = "how exactly"},
                                          {.name = "third",
                                           .type = OPTION_INT,
                                           .offset = offsetof(struct settings, batch),
                                           .needs = "magic",
                                           .group = "Third",
                                           .help = "how often"},
                                          {0}};

static void check_columns(const char *text, int columns) {
    size_t longest = 0;
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t length = strcspn(line, "\n");
        CHECK(length <= (size_t)columns, "%zu columns: %.*s", length, (int)length, line);
        if (length > longest) longest = length;
    }
    CHECK(longest + 15 > (size_t)columns || columns > 130, "%d columns are not used: %zu\n%s", columns,
          longest, text);
}

static void test_help(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    CHECK(file != NULL, "no memory");
    if (file == NULL) return;
    const struct page page = {.file = file, .columns = 100};
    CHECK(option_help(&page, rows, "--", true) == 0, "rows are left out of all");
    option_help(&page, rows, "", true);
    fclose(file);
    CHECK(
        strstr(text, "  --batch=N               examples per worker per step (default 32; 1 to 1000000)\n") !=
            NULL,
        "\n%s", text);
    CHECK(strstr(text, "  --no-progress ") != NULL && strstr(text, "  progress=0|1 ") != NULL, "\n%s", text);
    CHECK(strstr(text, "  --kernels=auto|onednn|reference\n") != NULL, "\n%s", text);
    CHECK(strstr(text, "  --job-scale=SCALE ") != NULL && strstr(text, "  job-scale=SCALE ") != NULL, "\n%s",
          text);
    CHECK(strstr(text, "  --often=N               how often (default 0: never; 0 to 9)\n") != NULL, "\n%s",
          text);
    CHECK(strstr(text, "  --seldom=N              how seldom (0: never; default 5; 0 to 9)\n") != NULL,
          "\n%s", text);
    check_columns(text, 100);
    free(text);
}

/* Of narrow pages and wide ones: no line is too long, one is nearly as long as it may be, and all pages have
 * the same words, none of them broken. */
static void test_help_columns(void) {
    static const int columns[] = {60, 80, 100, 160};
    char words[4][4000];
    for (int i = 0; i < 4; i++) {
        char *text = NULL;
        size_t bytes = 0;
        FILE *file = open_memstream(&text, &bytes);
        if (file == NULL) return;
        const struct page page = {.file = file, .columns = columns[i]};
        option_help(&page, rows, "--", true);
        fclose(file);
        check_columns(text, columns[i]);
        words[i][0] = '\0';
        struct text joined = text_into(words[i], sizeof words[i]);
        for (char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
            text_item(&joined, " ", "%s", word);
        CHECK(!joined.cut && strcmp(words[i], words[0]) == 0, "%d columns: %s", columns[i], words[i]);
        free(text);
    }
}

/* Rare rows and ranges are for those who ask for all. */
static void test_rare(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) return;
    const struct page page = {.file = file, .columns = 80};
    CHECK(option_help(&page, rare_rows, "--", false) == 1, "not one row is left out");
    fprintf(file, "all:\n");
    CHECK(option_help(&page, rare_rows, "--", true) == 0, "a row is left out");
    fclose(file);
    CHECK(strcmp(text, "Usual:\n  --first=N               how many (default 3)\n"
                       "all:\nUsual:\n  --first=N               how many (default 3; 1 to 8)\n\n"
                       "Second:\n  --second=auto|fast|exact\n                          how exactly\n") == 0,
          "\n%s", text);
    free(text);
}

/* What this build lacks something for cannot be given, is in no help, and says what it needs. */
static void test_needs(void) {
    struct settings s;
    struct error error = {0};
    option_defaults(rare_rows, &s);
    CHECK(option_set(rare_rows, &s, "--", "third", "3", &error) == ERROR_USAGE &&
              strcmp(error.words, "--third: needs a build with magic") == 0,
          "%s", error.words);
    error = (struct error){0};
    CHECK(option_set(rare_rows, &s, "sgd", "third", NULL, &error) == ERROR_USAGE &&
              strcmp(error.words, "sgd: third: needs a build with magic") == 0,
          "%s", error.words);
    error = (struct error){0};
    CHECK(option_set(rare_rows, &s, "--", "second", "magic", &error) == ERROR_USAGE &&
              strcmp(error.words, "--second=magic: needs a build with magic") == 0,
          "%s", error.words);
    error = (struct error){0};
    CHECK(option_set(rare_rows, &s, "--", "second", "slow", &error) == ERROR_USAGE &&
              strcmp(error.words, "--second=slow: expected one of auto|fast|exact") == 0,
          "%s", error.words);
    error = (struct error){0};
    CHECK(option_set(rare_rows, &s, "--", "second", "exact", &error) == OK && s.kernels == 1, "%s",
          error.words);
    CHECK(option_find(rare_rows, "third") == NULL, "it is found");
}

/* A command in the columns of a page: as many lines as it takes, which a shell reads as one. */
static void test_commands(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) return;
    const struct page page = {.file = file, .columns = 40};
    page_commands(&page,
                  "# a comment that has more than forty columns\nprogram --first=1 --second=2 --third=33\n"
                  "printf 'words in quotes stay together' >file\nshort");
    fclose(file);
    static const char wanted[] = "  # a comment that has more than forty\n"
                                 "  # columns\n"
                                 "  program --first=1 --second=2 \\\n"
                                 "    --third=33\n"
                                 "  printf \\\n"
                                 "    'words in quotes stay together' \\\n"
                                 "    >file\n"
                                 "  short\n";
    CHECK(strcmp(text, wanted) == 0, "\n%s", text);
    free(text);
}

int main(void) {
    test_defaults_and_values();
    test_refused_values();
    test_nearest();
    test_plugins();
    test_bare_value();
    test_sizes();
    test_text_plugin();
    test_text_reads_back();
    test_help();
    test_help_columns();
    test_rare();
    test_needs();
    test_commands();
    return check_end();
}
