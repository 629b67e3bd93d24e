/* What was run, setting by setting, and the command that runs it again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "../base/memory.h"
#include "../base/text.h"
#include "../device/groups.h"
#include "page.h"

/* --- settings --- */

static const struct {
    const char *name, *words;
} words_of[] = {{"on-loss", "when a worker is lost"},    {"homes", "weights are kept on"},
                {"early-stop", "early stop, epochs"},    {"threads", "threads per device"},
                {"batch", "batch per worker"},           {"faults", "injected faults"},
                {"batch-total", "batch of all workers"}, {"simulate", "virtual time of a step"}};

static const char *title_of(const char *name) {
    for (size_t i = 0; i < sizeof words_of / sizeof *words_of; i++)
        if (strcmp(words_of[i].name, name) == 0) return words_of[i].words;
    return name;
}

void write_value(struct html *html, const char *value) {
    while (*value) {
        const size_t name = strcspn(value, ","), length = name + (value[name] == ',');
        html_say(html, "%.*s", (int)length, value);
        value += length;
        if (*value) html_put(html, "<wbr/>");
    }
}

/* 0 of these is no number of anything. */
static bool is_unset(const struct setting *setting) {
    if (strcmp(setting->name, "simulate") == 0) return setting->value[0] == '\0';
    if (strcmp(setting->name, "target-accuracy") == 0) return strcmp(setting->value, "nan") == 0;
    return strcmp(setting->value, "0") == 0 &&
           (strcmp(setting->name, "batch-total") == 0 || strcmp(setting->name, "group") == 0 ||
            strcmp(setting->name, "deterministic") == 0);
}

void write_settings(struct html *html, const struct facts *facts) {
    html_put(html, "<dl>\n");
    for (int i = 0; i < facts->setting_count; i++) {
        const struct setting *setting = &facts->settings[i];
        if (setting_is_of_files(setting->name) || is_unset(setting)) continue;
        html_put(html, "<div>");
        html_element(html, "dt", "%s", title_of(setting->name));
        html_put(html, "<dd>");
        write_value(html, setting->value[0] ? setting->value : "none");
        html_put(html, "</dd>");
        html_put(html, "</div>\n");
    }
    html_put(html, "</dl>\n");
}

/* --- the command --- */

void command_word(struct text *out, const char *word) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
    if (word[strspn(word, plain)] == '\0') {
        text_add(out, "%s", word);
        return;
    }
    text_add(out, "'");
    for (; *word; word++) {
        if (*word == '\'')
            text_add(out, "'\\''");
        else
            text_add_bytes(out, word, 1);
    }
    text_add(out, "'");
}

static void add_option(struct text *out, const char *name, const char *value) {
    text_add(out, " --%s=", name);
    command_word(out, value);
}

static bool is_same(const char *a, const char *b) {
    char *a_end, *b_end;
    if (strcmp(a, b) == 0) return true;
    const double a_value = strtod(a, &a_end), b_value = strtod(b, &b_end);
    return *a && *b && !*a_end && !*b_end && a_value == b_value;
}

/* What the program takes where only the model is given; its own defaults where it has no such model. */
static int usual_config(const char *model, struct config *usual, struct error *error) {
    struct typed *typed = NULL;
    struct error unknown = {0};
    option_defaults(config_options, usual);
    if (!model) return OK;
    RETURN_IF(memory_array(&typed, 1, "the usual settings", error));
    option_defaults(run_options, typed);
    if (option_set(run_options, typed, "--", "model", model, &unknown) != OK ||
        config_begin(usual, typed, &unknown) != OK)
        option_defaults(config_options, usual);
    memory_free(typed);
    return OK;
}

static bool has_total(const struct facts *facts) {
    const char *total = facts_setting(facts, "batch-total");
    return total && strcmp(total, "0") != 0;
}

/* One after the other in parts of a run that was resumed: as one run has them, "sync until epoch 3; ssp". */
static const char *strategies_of(const struct facts *facts, const char *typed,
                                 char strategies[CONFIG_VALUE_BYTES]) {
    struct text text = text_into(strategies, CONFIG_VALUE_BYTES);
    if (facts->summary.phase_count < 2 || !typed || strchr(typed, ';')) return typed;
    for (int p = 0; p + 1 < facts->summary.phase_count; p++)
        text_item(&text, "; ", "%s until epoch %d", facts->phases[p].strategy,
                  facts->phases[p + 1].from_epoch - 1);
    text_item(&text, "; ", "%s", facts->phases[facts->summary.phase_count - 1].strategy);
    return text_end(&text) == OK ? strategies : typed;
}

/* Without a checkpoint only the epochs that were gone through are known. What --batch-total came to is not
 * typed. */
static const char *value_of(const struct facts *facts, const char *name, char number[NUMBER_BYTES]) {
    const char *value = facts_setting(facts, name);
    if (strcmp(name, "batch") == 0 && has_total(facts)) return NULL;
    if (value || strcmp(name, "epochs") != 0 || !(facts->summary.epochs > 0.0)) return value;
    snprintf(number, NUMBER_BYTES, "%.0f", ceil(facts_epochs(facts)));
    return number;
}

static void add_rows(struct text *out, const struct facts *facts, const struct config *usual) {
    for (const struct option *row = config_options; row->name; row++) {
        char expected[CONFIG_VALUE_BYTES], number[NUMBER_BYTES];
        const char *value = value_of(facts, row->name, number);
        char strategies[CONFIG_VALUE_BYTES];
        if (strcmp(row->name, "strategy") == 0) value = strategies_of(facts, value, strategies);
        if (!value || !(row->flags & (OPTION_SAVED | OPTION_RESUMED | OPTION_SHOWN))) continue;
        option_text(row, usual, expected, sizeof expected);
        const bool is_model = strcmp(row->name, "model") == 0;
        if (value[0] && (is_model || !is_same(value, expected))) add_option(out, row->name, value);
    }
}

/* They are written down as they were typed, with blanks between them: those that begin so. */
static void add_faults(struct text *out, const char *faults, const char *begin) {
    char word[PATH_BYTES];
    while (faults && *faults) {
        const size_t length = strcspn(faults, " ");
        snprintf(word, sizeof word, "%.*s", (int)length, faults);
        if (length > 0 && strncmp(word, begin, strlen(begin)) == 0) {
            text_add(out, " ");
            command_word(out, word);
        }
        faults += length + (faults[length] == ' ');
    }
}

/* Those of summary.json are as they turned out. */
static void add_machine(struct text *out, const struct facts *facts) {
    static const char *const names[] = {"devices", "threads", NULL};
    for (int i = 0; names[i]; i++) {
        const char *value = facts_setting(facts, names[i]);
        if (value && value[0] && strcmp(value, "0") != 0) add_option(out, names[i], value);
    }
}

void command_resume(struct text *out, const struct facts *facts) {
    const char *simulated = facts_setting(facts, "simulate"), *devices = facts_setting(facts, "devices");
    text_add(out, "trainer --resume=");
    command_word(out, facts->folder);
    if (simulated && simulated[0]) {
        add_option(out, "simulate", simulated);
        if (devices) add_option(out, "devices", devices);
    }
    add_faults(out, facts->summary.faults, "--slow=");
}

/* Each option is kept in one line where it fits. */
static void write_words(struct html *html, const char *command) {
    html_put(html, "<span>");
    while (*command) {
        const char *next = strstr(command + 1, " --");
        const size_t length = next ? (size_t)(next - command) : strlen(command);
        html_say(html, "%.*s", (int)length, command);
        html_put(html, next ? "</span> <span>" : "</span>");
        command += length + (next ? 1 : 0);
    }
}

/* --- the commands of a cluster --- */

enum { PROCESSES_MOST = 16 }; /* of a job, that have a line each */

/* "--ps-hosts=HOST:PORT,HOST:PORT" */
static void add_hosts(struct text *out, const char *option, int count) {
    if (count == 0) return;
    text_add(out, "%s--%s=", out->bytes[out->used - 1] == '"' ? "" : " ", option);
    for (int i = 0; i < count; i++) text_add(out, "%sHOST:PORT", i > 0 ? "," : "");
}

static void write_hosts(struct html *html, const struct summary *summary) {
    char command[COMMAND_BYTES];
    struct text text = text_into(command, sizeof command);
    text_add(&text, "HOSTS=\"");
    add_hosts(&text, "ps-hosts", summary->cluster_ps);
    add_hosts(&text, "worker-hosts", summary->cluster_workers);
    text_add(&text, "\"");
    write_words(html, command);
    html_put(html, "\n");
}

/* A line for each process of a job. The devices of a worker are known where each had one. */
static void write_job(struct html *html, const struct facts *facts, const char *job, int count,
                      const char *settings) {
    const struct summary *summary = &facts->summary;
    const bool known = strcmp(job, "worker") == 0 && summary->workers == summary->cluster_workers;
    for (int task = 0; task < count && task < PROCESSES_MOST; task++) {
        char command[COMMAND_BYTES], own[GROUP_NAME_BYTES + 2];
        struct text text = text_into(command, sizeof command);
        text_add(&text, "trainer $HOSTS --job=%s --task=%d%s", job, task, settings);
        struct text list = text_into(own, sizeof own);
        const bool devices = known && !strstr(facts->workers[task].device, "..."); /* of a large group */
        if (devices) groups_list(&list, facts->workers[task].device);
        if (devices) add_option(&text, "devices", own);
        write_words(html, command);
        html_put(html, "\n");
    }
    if (count > PROCESSES_MOST) html_say(html, "# and so on, up to --job=%s --task=%d\n", job, count - 1);
}

/* A worker of a parameter server follows its settings; mirrored processes are all given them. */
static void write_cluster(struct html *html, const struct facts *facts, const char *settings) {
    const struct summary *summary = &facts->summary;
    html_put(html, "<pre>");
    write_hosts(html, summary);
    write_job(html, facts, "ps", summary->cluster_ps, settings);
    write_job(html, facts, "worker", summary->cluster_workers, summary->cluster_ps > 0 ? "" : settings);
    html_put(html, "</pre>\n");
}

static void write_alone(struct html *html, const char *settings) {
    html_put(html, "<pre>");
    write_words(html, "trainer");
    html_put(html, " ");
    write_words(html, settings + (settings[0] == ' '));
    html_put(html, "</pre>\n");
}

static void write_cluster_note(struct html *html, const struct facts *facts) {
    char cluster[TITLE_BYTES];
    if (!facts->has_summary || !facts_cluster(facts, cluster, sizeof cluster)[0]) return;
    html_put(html, "<p class=\"quiet\">");
    html_say(html, "It was %s: ", cluster);
    if (facts->summary.cluster_workers > 0)
        html_put(html, "each line is typed for one process, with the addresses of all in place of "
                       "<code>HOST:PORT</code>, which are not recorded. ");
    else
        html_put(html,
                 "the line is typed for each process, with its job, its task and the addresses of all. ");
    html_put(html, "docs/cluster.md says more.</p>\n");
}

int write_command(struct html *html, const struct facts *facts, struct error *error) {
    char settings[COMMAND_BYTES], cluster[TITLE_BYTES];
    struct text text = text_into(settings, sizeof settings);
    struct config *usual = NULL;
    RETURN_IF(memory_array(&usual, 1, "the usual settings", error));
    const int code = usual_config(facts_setting(facts, "model"), usual, error);
    const bool alone = !facts->has_summary || facts_cluster(facts, cluster, sizeof cluster)[0] == '\0';
    if (code == OK) {
        add_rows(&text, facts, usual);
        if (alone) add_machine(&text, facts);
        add_faults(&text, facts->summary.faults, "");
        if (facts->summary.cluster_workers > 0)
            write_cluster(html, facts, settings);
        else
            write_alone(html, settings);
        write_cluster_note(html, facts);
    }
    memory_free(usual);
    return code;
}

void write_command_note(struct html *html, const struct facts *facts) {
    const struct summary *summary = &facts->summary;
    char cluster[TITLE_BYTES];
    html_put(html, "<p class=\"quiet\">");
    if (facts->has_summary) html_say(html, "Made by %s", summary->program);
    if (facts->has_summary && summary->machine[0]) html_say(html, " on %s", summary->machine);
    if (facts->has_summary) html_put(html, ". ");
    html_put(html,
             "Some options, such as <code>--data-dir</code>, <code>--weights</code>, "
             "<code>--stop-after</code> and <code>--prefetch</code>, are not recorded and must be added by "
             "hand. ");
    if (facts->has_summary && facts_cluster(facts, cluster, sizeof cluster)[0])
        html_put(html, "So must be a cluster's <code>--workers</code>, and a worker's <code>--group</code>, "
                       "<code>--place</code> and <code>--schedule-pipeline</code>. ");
    if (!facts->has_summary)
        html_put(html, "Devices and threads must be added, too, as there is no summary.json. ");
    if (facts_resumed(facts))
        html_put(html,
                 "The run was resumed: these are the settings of its last part, and earlier parts may have "
                 "had others. ");
    html_put(html, "</p>\n");
}
