/* Which settings differ among several runs, and which are the same. */
#include <string.h>
#include "several.h"

/* Of the options a run was given, and of what it ran on. */
static const char *value_of(const struct facts *facts, const char *name) {
    const char *value = facts_setting(facts, name);
    return !value ? "not known" : !value[0] ? "none" : value;
}

/* The run of the first group that stands where this one stands in its own: runs of a comparison differ by
 * their seeds, but in each group alike. */
static const struct facts *counterpart(const struct report *report, int run) {
    int first = run;
    while (first > 0 && report->runs[first - 1].group == report->runs[run].group) first--;
    const int place = run - first, count = group_end(report, 0);
    return &report->runs[place < count ? place : 0];
}

static bool differs(const struct report *report, const char *name) {
    for (int i = 1; i < report->count; i++)
        if (strcmp(value_of(counterpart(report, i), name), value_of(&report->runs[i], name)) != 0)
            return true;
    return false;
}

static bool was_before(const struct report *report, int run, const char *name) {
    for (int i = 0; i < run; i++)
        if (strcmp(value_of(&report->runs[i], name), value_of(&report->runs[run], name)) == 0) return true;
    return false;
}

/* Each value, with the groups that have it in one of their runs. */
static void write_values(struct html *html, const struct report *report, const char *name) {
    for (int i = 0; i < report->count; i++) {
        const char *value = value_of(&report->runs[i], name), *before = "";
        int said = -1;
        if (was_before(report, i, name)) continue;
        html_put(html, "<dd><b>");
        write_value(html, value);
        html_put(html, "</b> <span class=\"quiet\">");
        for (int j = i; j < report->count; j++) {
            const struct facts *facts = &report->runs[j];
            if (facts->group == said || strcmp(value_of(facts, name), value) != 0) continue;
            html_say(html, "%s%s", before, facts->label);
            before = " \xC2\xB7 ";
            said = facts->group;
        }
        html_put(html, "</span></dd>\n");
    }
}

/* Whether the runs of a group differ in it, though each group has the same values. */
static bool repeats(const struct report *report, const char *name) {
    for (int i = 1; i < group_end(report, 0); i++)
        if (!was_before(report, i, name)) return true;
    return false;
}

/* What all groups have; where their runs differ, one value after the other. */
static void write_common(struct html *html, const struct report *report, const char *name) {
    const char *before = "";
    html_put(html, "<dd>");
    for (int i = 0; i < group_end(report, 0); i++) {
        if (was_before(report, i, name)) continue;
        html_put(html, "%s", before);
        write_value(html, value_of(&report->runs[i], name));
        before = ", ";
    }
    html_put(html, "</dd>");
}

/* Those that all groups have in common: the same in each repeat, or not. */
static void write_shared(struct html *html, const struct report *report, const char *title, bool repeated) {
    const struct facts *first = &report->runs[0];
    int written = 0;
    for (int i = 0; i < first->setting_count; i++) {
        const char *name = first->settings[i].name;
        if (setting_is_of_files(name) || differs(report, name) || repeats(report, name) != repeated) continue;
        if (written++ == 0) {
            html_element(html, "h3", "%s", title);
            html_put(html, "<dl>\n");
        }
        html_put(html, "<div>");
        html_element(html, "dt", "%s", name);
        write_common(html, report, name);
        html_put(html, "</div>\n");
    }
    if (written > 0) html_put(html, "</dl>\n");
}

int write_differences(struct html *html, const struct report *report, struct error *error) {
    const struct facts *first = &report->runs[0];
    bool any = false;
    (void)error;
    html_put(html, "<dl>\n");
    for (int i = 0; i < first->setting_count; i++) {
        const char *name = first->settings[i].name;
        if (!differs(report, name)) continue;
        html_put(html, "<div>");
        html_element(html, "dt", "%s", name);
        write_values(html, report, name);
        html_put(html, "</div>\n");
        any = true;
    }
    if (!any) html_put(html, "<div><dt>nothing</dt><dd>All settings are the same.</dd></div>\n");
    html_put(html, "</dl>\n");
    write_shared(html, report, "Different in each repeat, alike for all contenders", true);
    write_shared(html, report, "The same in all runs", false);
    return OK;
}
