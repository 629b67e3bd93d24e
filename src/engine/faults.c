/* Parses the faults and looks them up. See faults.h. */
#include "faults.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../base/text.h"
#include "../device/groups.h"
#include "../device/ranges.h"

/* A whole number from `text`, which must go on with `end`; -1: it is not one. */
static long number_before(const char *text, const char **rest) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return -1;
    const long number = strtol(text, &end, 10);
    *rest = end;
    return number <= 1000000000L ? number : -1;
}

/* "worker:1@step:50" or, to stall, "server" and "server:0". */
static bool parse_fault(const char *text, struct fault *fault) {
    const char *rest = text;
    fault->member = -1;
    if (fault->kind == FAULT_STALL && strncmp(text, "server", 6) == 0) {
        fault->server = true;
        if (text[6] == '\0') return true;
        if (text[6] != ':') return false;
        const long server = number_before(text + 7, &rest);
        fault->member = (int)server;
        return server >= 0 && *rest == '\0';
    }
    if (strncmp(text, "worker:", 7) != 0) return false;
    const long worker = number_before(text + 7, &rest);
    if (worker < 0 || strncmp(rest, "@step:", 6) != 0) return false;
    fault->member = (int)worker;
    fault->step = number_before(rest + 6, &rest);
    return fault->step >= 1 && *rest == '\0';
}

/* "cpu:1=3x" */
static bool parse_slowness(const char *text, struct slowness *slow) {
    const char *equals = strchr(text, '=');
    char *end = NULL;
    if (!equals || equals == text || (size_t)(equals - text) >= sizeof slow->device) return false;
    snprintf(slow->device, sizeof slow->device, "%.*s", (int)(equals - text), text);
    slow->factor = strtod(equals + 1, &end);
    return end > equals + 1 && strcmp(end, "x") == 0 && slow->factor >= 1.0 && slow->factor <= 1e6;
}

static int add_piece(struct faults *faults, enum fault_kind kind, const char *piece, struct error *error) {
    if (faults->count == FAULTS || faults->slow_count == FAULTS)
        return error_set(error, ERROR_USAGE, "more than %d faults, expected fewer", FAULTS);
    if (kind == FAULT_NONE) {
        if (parse_slowness(piece, &faults->slow[faults->slow_count++])) return OK;
        return error_set(error, ERROR_USAGE,
                         "--slow: \"%s\", expected a device and a factor of at least 1, as cpu:1=3x", piece);
    }
    struct fault *fault = &faults->list[faults->count++];
    fault->kind = kind;
    if (parse_fault(piece, fault)) return OK;
    return error_set(error, ERROR_USAGE, "--%s: \"%s\", expected worker:1@step:50%s",
                     kind == FAULT_FAIL ? "fail" : "stall", piece,
                     kind == FAULT_FAIL ? "" : " or server:0 or server");
}

static int parse_list(struct faults *faults, enum fault_kind kind, const char *text, struct error *error) {
    while (*text) {
        char piece[64];
        const size_t length = strcspn(text, ",");
        snprintf(piece, sizeof piece, "%.*s", (int)(length < sizeof piece ? length : sizeof piece - 1), text);
        RETURN_IF(add_piece(faults, kind, piece, error));
        text += length + (text[length] == ',');
    }
    return OK;
}

int faults_parse(struct faults *faults, const char *fail, const char *stall, const char *slow,
                 struct error *error) {
    *faults = (struct faults){0};
    RETURN_IF(parse_list(faults, FAULT_FAIL, fail, error));
    RETURN_IF(parse_list(faults, FAULT_STALL, stall, error));
    return parse_list(faults, FAULT_NONE, slow, error);
}

const char *faults_text(char out[FAULTS_TEXT_BYTES], const char *fail, const char *stall, const char *slow) {
    const char *const names[] = {"slow", "stall", "fail"}, *const texts[] = {slow, stall, fail};
    struct text text = text_into(out, FAULTS_TEXT_BYTES);
    for (int i = 0; i < 3; i++)
        if (texts[i][0]) text_item(&text, " ", "--%s=%s", names[i], texts[i]);
    return out;
}

/* Each device of a range has a worker. */
static int check_slowness(const char *slow, const char *const *devices, int workers, struct error *error) {
    struct device_range range;
    if (!range_read(slow, strlen(slow), &range))
        return error_set(error, ERROR_USAGE, "--slow: no worker is on %s", slow);
    for (int label = range.first; label <= range.last; label++) {
        char name[24];
        int w = 0;
        snprintf(name, sizeof name, "%.*s:%d", (int)range.kind_length, range.kind, label);
        while (w < workers && !groups_name_has(devices[w], name)) w++;
        if (w == workers) return error_set(error, ERROR_USAGE, "--slow: no worker is on %s", name);
    }
    return OK;
}

int faults_check(const struct faults *faults, const char *const *devices, int workers, int servers,
                 struct error *error) {
    for (int i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        if (fault->server && servers == 0)
            return error_set(error, ERROR_USAGE, "--stall=server: this strategy has no servers");
        if (fault->member >= (fault->server ? servers : workers))
            return error_set(error, ERROR_USAGE, "--%s: %s %d, expected 0 to %d",
                             fault->kind == FAULT_FAIL ? "fail" : "stall",
                             fault->server ? "server" : "worker", fault->member,
                             (fault->server ? servers : workers) - 1);
    }
    for (int i = 0; i < faults->slow_count; i++)
        RETURN_IF(check_slowness(faults->slow[i].device, devices, workers, error));
    return OK;
}

enum fault_kind faults_at(const struct faults *faults, int worker, long step) {
    for (int i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->list[i];
        if (!fault->server && fault->member == worker && fault->step == step) return fault->kind;
    }
    return FAULT_NONE;
}

bool faults_hold(const struct faults *faults, int server) {
    for (int i = 0; i < faults->count; i++)
        if (faults->list[i].server && (faults->list[i].member < 0 || faults->list[i].member == server))
            return true;
    return false;
}

double faults_factor(const struct faults *faults, const char *device) {
    for (int i = 0; i < faults->slow_count; i++)
        if (groups_name_has(device, faults->slow[i].device)) return faults->slow[i].factor;
    return 1.0;
}

void slowed_sleep(struct slowed *slowed, struct world *world, double took_s, double factor) {
    enum { STEPS = 8 };
    const double more_s = took_s * (factor - 1.0), began_s = world_now(world);
    slowed->mean_s = slowed->steps++ < 2 ? more_s : slowed->mean_s + (more_s - slowed->mean_s) / STEPS;
    slowed->owed_s += more_s;
    world_sleep(world, fmax(slowed->mean_s + (slowed->owed_s - slowed->mean_s) / STEPS, 0.0));
    slowed->owed_s -= world_now(world) - began_s;
}
