/* Fuzzing of options: clang -fsanitize=fuzzer,address over this file and the library. The first byte chooses
 * what the text behind it is: one of the kinds of plug-ins with its settings, an option of train, a name that
 * is looked for, or faults to put in. Starts from each plug-in with each of its settings, and each option, at
 * its default and at and beyond its boundaries. What is accepted is written back as text and must then be
 * accepted as the same. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "../src/commands/kinds.h"
#include "../src/config/config.h"
#include "../src/engine/faults.h"
#include "fuzz.h"

enum { PLUGINS, OPTIONS, NAMES, FAULT_LISTS };
static const char *const names[] = {"plug-ins", "options", "nearest names", "lists of faults", NULL};
enum { TEXT_BYTES = 1200, OPTION = PLUGIN_KINDS, NEAREST, FAULTS_TEXT, CHOICES };

static void check_words(const struct error *error) {
    fuzz_require(error->code == ERROR_USAGE && *error->words && !strpbrk(error->words, "\n\r\033"));
}

/* Each field in its range; its text sets the same again. */
static void check_fields(const struct option *rows, const void *settings, void *again, size_t bytes) {
    char text[TEXT_BYTES], back[TEXT_BYTES];
    memset(again, 0, bytes);
    for (const struct option *row = rows; row && row->name; row++) {
        if (option_is_absent(row)) continue;
        struct error error = {0};
        double real = 0;
        if (row->type == OPTION_TEXT)
            fuzz_require(memchr((const char *)settings + row->offset, '\0', row->bytes) != NULL);
        option_text(row, settings, text, sizeof text);
        if (row->type == OPTION_REAL) memcpy(&real, (const char *)settings + row->offset, sizeof real);
        if (isnan(real) || (row->type == OPTION_TEXT && !*text)) continue; /* not given */
        if (!row->fallback && strcmp(text, "0") == 0) continue;
        fuzz_require(option_set(rows, again, "", row->name, text, &error) == OK);
        option_text(row, again, back, sizeof back);
        fuzz_require(strcmp(text, back) == 0);
        const double number = strtod(text, NULL);
        if (row->least < row->most && row->type <= OPTION_REAL && row->type >= OPTION_INT)
            fuzz_require(number >= row->least && number <= row->most);
    }
}

static void fuzz_plugin(int kind, const char *text) {
    static struct choice choice, second;
    char longer[2 * TEXT_BYTES];
    static _Alignas(16) char again[PLUGIN_SETTINGS_BYTES];
    struct error error = {0};
    if (plugin_choose(&choice, plugin_kinds[kind], text, &error) != OK) {
        check_words(&error);
        return;
    }
    fuzz.accepted[PLUGINS]++;
    snprintf(longer, sizeof longer, "%s", text);
    plugin_lengthen(plugin_kinds[kind], longer, sizeof longer);
    fuzz_require(choice.plugin && strcmp(choice.text, longer) == 0);
    fuzz_require(plugin_choose(&second, plugin_kinds[kind], choice.text, &error) == OK &&
                 strcmp(second.text, choice.text) == 0);
    check_fields(choice.plugin->options, choice.settings, again, sizeof again);
}

static void fuzz_option(char *text) {
    static struct typed settings, again;
    struct error error = {0};
    char *value = strchr(text, '=');
    if (value) *value++ = '\0';
    memset(&settings, 0, sizeof settings);
    option_defaults(run_options, &settings);
    if (option_set(run_options, &settings, "--", text, value, &error) != OK) {
        check_words(&error);
        return;
    }
    fuzz.accepted[OPTIONS]++;
    check_fields(run_options, &settings, &again, sizeof again);
}

static void fuzz_nearest(const char *text) {
    const char *known[64] = {0};
    int count = 0;
    for (const struct option *row = run_options; row->name && count < 63; row++) known[count++] = row->name;
    const char *nearest = option_nearest(text, known);
    if (!nearest) return;
    fuzz.accepted[NAMES]++;
    const size_t length = strlen(nearest);
    fuzz_require(length + 3 >= strlen(text));
}

static void fuzz_faults(char *text) {
    struct faults faults;
    struct error error = {0};
    char *stall = strchr(text, ';'), *slow = stall ? strchr(stall + 1, ';') : NULL;
    if (stall) *stall++ = '\0';
    if (slow) *slow++ = '\0';
    if (faults_parse(&faults, text, stall ? stall : "", slow ? slow : "", &error) != OK) {
        check_words(&error);
        return;
    }
    fuzz.accepted[FAULT_LISTS] += faults.count + faults.slow_count > 0;
    fuzz_require(faults.count >= 0 && faults.count <= FAULTS && faults.slow_count <= FAULTS);
    for (int i = 0; i < faults.count; i++)
        fuzz_require(faults.list[i].server ? faults.list[i].member >= -1
                                           : faults.list[i].member >= 0 && faults.list[i].step >= 1);
    for (int i = 0; i < faults.slow_count; i++)
        fuzz_require(faults.slow[i].factor >= 1 &&
                     memchr(faults.slow[i].device, 0, sizeof faults.slow[i].device));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char text[TEXT_BYTES];
    fuzz_count(names);
    if (bytes < 1 || bytes > sizeof text) return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    const int choice = data[0] % CHOICES;
    if (choice < PLUGIN_KINDS)
        fuzz_plugin(choice, text);
    else if (choice == OPTION)
        fuzz_option(text);
    else if (choice == NEAREST)
        fuzz_nearest(text);
    else
        fuzz_faults(text);
    return 0;
}

/* --- samples --- */

/* One of the rows, as it could be typed: with its default, or at and just beyond its boundaries. */
static int type_row(char *out, size_t bytes, const struct option *rows, unsigned seed) {
    unsigned count = 0;
    char text[TEXT_BYTES];
    while (rows && rows[count].name) count++;
    if (count == 0) return snprintf(out, bytes, "%s", "");
    const struct option *row = &rows[seed % count];
    const char *usual = row->fallback ? row->fallback : row->type == OPTION_TEXT ? "text" : "1";
    const unsigned boundary = seed / count % 5;
    snprintf(text, sizeof text, "%s", usual);
    if (boundary > 0 && row->type == OPTION_TEXT && row->bytes + 2 < sizeof text) {
        memset(text, 'x', row->bytes + 1);
        text[row->bytes - 2 + boundary % 3] = '\0';
    } else if (boundary > 0 && row->least < row->most) {
        const double beyond = row->type == OPTION_REAL ? 0.5 : 1.0;
        snprintf(text, sizeof text, "%.12g",
                 boundary < 3 ? row->least - (boundary - 1) * beyond : row->most + (boundary - 3) * beyond);
    }
    return snprintf(out, bytes, "%s=%s", row->name, text);
}

static size_t make_sample(uint8_t *data, size_t most, unsigned seed) {
    static const char *const faults[] = {"worker:1@step:50", "worker:0@step:3,worker:2@step:4;server:0",
                                         ";server", ";;cpu:1=3x,cpu:0=1.5x"};
    char row[TEXT_BYTES], text[TEXT_BYTES];
    const unsigned kind = seed % CHOICES, n = seed / CHOICES;
    int length;
    if (kind < PLUGIN_KINDS) {
        const struct plugin *const *table = plugin_kinds[kind]->plugins;
        unsigned count = 0;
        while (table[count]) count++;
        const struct plugin *plugin = table[n % count];
        const int used = type_row(row, sizeof row, plugin->options, n / count);
        length = snprintf(text, sizeof text, "%s%s%s", plugin->name, used > 0 ? ":" : "", row);
    } else if (kind == FAULTS_TEXT) {
        length = snprintf(text, sizeof text, "%s", faults[n % 4]);
    } else {
        length = type_row(text, sizeof text, run_options, n);
        if (kind == NEAREST) length = (int)strcspn(text, "=");
    }
    if (length < 0 || (size_t)length >= sizeof text || (size_t)length + 1 > most) return 0;
    data[0] = (uint8_t)kind;
    memcpy(data + 1, text, (size_t)length);
    return (size_t)length + 1;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed) {
    if (seed % 16 == 0) {
        const size_t made = make_sample(data, most, seed / 16);
        if (made > 0) bytes = made;
        if (seed / 16 % 4 == 0) return bytes;
    }
    return LLVMFuzzerMutate(data, bytes, most);
}
