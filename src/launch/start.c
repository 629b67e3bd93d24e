/* --hosts: starts the processes of a cluster, over ssh or, on this machine, by a shell, and stays until all
 * have ended. Each is this command line once more, with its rank in the environment; the key goes through its
 * standard input. That ends when this process does: then they end too, as by SIGTERM. */
#include "start.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/memory.h"
#include "../base/page.h"
#include "../base/rng.h"
#include "../base/text.h"
#include "../bridge/probe.h"
#include "../record/lines.h"
#include "../world/children.h"
#include "launch.h"
#include "places.h"

#define LOOK_S 0.1
#define LEAD_S 2.0   /* for the leader to end them all, before they are asked themselves */
#define LEFT_S 0.3   /* for what it has said last to come, once it has ended */
#define LEAVE_S 30.0 /* for all to end by themselves, once one has failed: checkpoints are written */
#define END_S 5.0    /* after SIGTERM */
#define ANSWER_S 2.0 /* for the leader to say how far it is, once a worker has failed */

#define NAME_END ": " /* between a process's name and what it says */

enum { COMMAND_WORDS = 32, WORDS_MOST = 1 << 20, NAME_BYTES = ADDRESS_HOST_BYTES + 16 };

/* Each is harder than the one before. */
enum measure { ASK_LEADER, ASK_ALL, END_ALL, KILL_ALL };

struct start {
    const struct config *settings;
    launch_variable *variable;
    struct places places;
    const char *ssh; /* as typed; NULL: nobody has said, so this machine needs none */
    char *words;     /* [word_bytes] of this command line, each ended by 0; owned */
    size_t word_bytes;
    char folder[PATH_BYTES], program[PATH_BYTES];
    struct secret secret;
    char input[SECRET_DIGITS + 2]; /* the key, and the end of the line */
    int port;
    struct world *world;
    struct children *children;
    struct lines out, err; /* what they print */
    struct error lost;     /* the first worker that has failed while the others may go on */
    bool *ended;           /* [places.count] */
    int leader_code;       /* once the first has ended */
    bool ends;             /* since one has failed, or by Ctrl-C */
    enum measure measure;  /* the next one */
    double end_s;          /* the world's time when it is due */
};

/* --- who they are --- */

/* The host; where it has several processes with the place among them: "b[1]". */
static void name_child(const struct start *start, int rank, char out[NAME_BYTES]) {
    const char *host = start->places.host[rank];
    int before = 0, all = 0;
    for (int r = 0; r < start->places.count; r++) {
        if (strcmp(start->places.host[r], host) != 0) continue;
        if (r < rank) before++;
        all++;
    }
    snprintf(out, NAME_BYTES, all > 1 ? "%s[%d]" : "%s", host, before);
}

/* --- what is started --- */

static int own_command(struct start *start, struct error *error) {
    RETURN_IF(file_read("/proc/self/cmdline", WORDS_MOST, &start->words, &start->word_bytes, error));
    const ssize_t bytes = readlink("/proc/self/exe", start->program, sizeof start->program - 1);
    if (bytes < 0 || !getcwd(start->folder, sizeof start->folder))
        return error_set(error, ERROR_FILE, "--hosts: this program or its folder is not found: %s",
                         strerror(errno));
    start->program[bytes] = '\0';
    return OK;
}

/* As one word of a shell. */
static void add_quoted(struct text *text, const char *word) {
    text_add(text, "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            text_add(text, "'\\''");
        else
            text_add_bytes(text, word, 1);
    }
    text_add(text, "'");
}

/* Columns that the name in front of its lines leaves of a terminal; 0: there is none. */
static int columns_of(const struct start *start, int rank) {
    char name[NAME_BYTES];
    const int columns = lines_columns(&start->out);
    name_child(start, rank, name);
    return columns > 0 ? columns - (int)strlen(name) - (int)strlen(NAME_END) : 0;
}

/* cd FOLDER && exec env TRAINER_RANK=2 ... PROGRAM --hosts=a,b ... */
static int command_of(const struct start *start, int rank, char **out, struct error *error) {
    struct text text = text_growing(error);
    const char *data = start->variable("TRAINER_DATA");
    const int columns = columns_of(start, rank);
    text_add(&text, "cd ");
    add_quoted(&text, start->folder);
    text_add(&text, " && exec env TRAINER_RANK=%d TRAINER_SIZE=%d TRAINER_PORT=%d %s=-", rank,
             start->places.count, start->port, SECRET_VARIABLE);
    if (data) text_add(&text, " TRAINER_DATA=");
    if (data) add_quoted(&text, data);
    if (columns > 0) text_add(&text, " %s=%d", PAGE_VARIABLE, columns);
    text_add(&text, " ");
    add_quoted(&text, start->program);
    const char *word = start->words, *end = start->words + start->word_bytes;
    for (word += strlen(word) + 1; word < end; word += strlen(word) + 1) {
        text_add(&text, " ");
        add_quoted(&text, word);
    }
    *out = text.bytes;
    return text_end(&text);
}

static int start_one(struct start *start, int rank, struct error *error) {
    const char *words[COMMAND_WORDS + 4] = {"/bin/sh", "-c"};
    char ssh[sizeof start->settings->ssh], *command = NULL;
    const char *host = start->places.host[rank];
    int count = 2;
    RETURN_IF(command_of(start, rank, &command, error));
    if (start->ssh || !world_is_here(host)) {
        snprintf(ssh, sizeof ssh, "%s",
                 start->ssh ? start->ssh : "ssh -o BatchMode=yes -o ConnectTimeout=30");
        count = 0;
        for (char *word = strtok(ssh, " "); word && count < COMMAND_WORDS; word = strtok(NULL, " "))
            words[count++] = word;
        words[count++] = host;
    }
    words[count++] = command;
    words[count] = NULL;
    const int code = children_start(start->children, words, start->input, error);
    memory_free(command);
    return code;
}

/* --- what is said --- */

static void print_line(struct start *start, const struct child_line *line) {
    struct lines *lines = line->error ? &start->err : &start->out;
    char name[NAME_BYTES];
    name_child(start, line->child, name);
    lines_fit(lines, "%s" NAME_END "%s", name, line->text);
    lines_flush(lines);
}

static int name_failure(const struct start *start, int rank, int code, struct error *error) {
    char name[NAME_BYTES];
    name_child(start, rank, name);
    if (code == 255)
        return error_set(error, code, "%s: process %d was not started, or its connection broke (ssh: 255)",
                         name, rank);
    if (code > 128 && code != ERROR_INTERRUPTED)
        return error_set(error, code, "%s: process %d was ended by signal %d", name, rank, code - 128);
    return error_set(error, code, "%s: process %d ended with exit code %d", name, rank, code);
}

/* --- until all have ended --- */

/* At first politely, then less so. */
static void take_measure(struct start *start, double now) {
    static const double patience_s[] = {
        [ASK_LEADER] = LEAD_S, [ASK_ALL] = LEAVE_S, [END_ALL] = END_S, [KILL_ALL] = END_S};
    const enum measure measure = start->measure;
    for (int rank = 0; rank < (measure == ASK_LEADER ? 1 : start->places.count); rank++) {
        if (start->ended[rank]) continue;
        if (measure <= ASK_ALL)
            children_hang_up(start->children, rank);
        else
            children_end(start->children, rank, measure == KILL_ALL);
    }
    start->end_s = now + patience_s[measure];
    if (measure < KILL_ALL) start->measure++;
}

/* By Ctrl-C the leader ends the run in order. Workers that were asked first would leave it, and nobody would
 * be there any more when the leader is asked. */
static void begin_to_end(struct start *start, bool failed, double now) {
    start->ends = true;
    start->measure = failed ? ASK_ALL : ASK_LEADER;
    take_measure(start, now);
}

/* Who ends with ERROR_PEER has lost another, which may end later and say why. */
static bool tells_more(int code, const struct error *error) {
    const bool is_own = code != OK && code != ERROR_PEER && code < ERROR_INTERRUPTED;
    return error->code == OK || (error->code == ERROR_PEER && is_own);
}

/* Whether the training has begun, as the leader says. Before that the run waits for every worker, and nobody
 * starts this one again. */
static bool has_begun(struct start *start) {
    struct error ignored = {0};
    char address[LAUNCH_ADDRESS_BYTES], words[PROBE_BYTES];
    launch_address(start->places.host[0], start->port, address);
    return secret_use(&start->secret, start->settings->insecure, start->world, &ignored) == OK &&
           probe_host(start->world, address, ANSWER_S, words, &ignored) == OK && strstr(words, ", training");
}

/* Whether the run may be without this process, which has failed. Whether it really is (--on-loss=auto depends
 * on the strategy), the leader knows: it goes on, or ends with an error that ends all. */
static bool may_be_lost(struct start *start, int rank) {
    const struct config *settings = start->settings;
    const bool holds_weights =
        rank == 0 || rank < settings->ps || (settings->ps == 0 && !settings->workers[0]);
    if (start->ends || holds_weights || settings->on_loss == ON_LOSS_STOP) return false;
    return start->ended[0] ? start->leader_code == OK : has_begun(start);
}

static void note_loss(struct start *start, const struct error *error) {
    if (start->lost.code == OK) start->lost = *error;
    lines_fit(&start->err, "trainer: %s; the others go on if the leader does", error->words);
}

/* How many still run. The first that fails is the error, unless another has failed by itself. */
static int look(struct start *start, struct error *error) {
    int running = 0;
    for (int rank = 0; rank < start->places.count; rank++) {
        int code = 0;
        if (start->ended[rank]) continue;
        start->ended[rank] = children_ended(start->children, rank, &code);
        running += !start->ended[rank];
        if (start->ended[rank] && rank == 0) start->leader_code = code;
        if (!start->ended[rank] || code == 0 || !tells_more(code, error)) continue;
        struct error failure = {0};
        name_failure(start, rank, code, &failure);
        if (may_be_lost(start, rank))
            note_loss(start, &failure);
        else
            *error = code == ERROR_PEER && start->lost.code != OK ? start->lost : failure;
    }
    return running;
}

static int wait_for_all(struct start *start, struct error *error) {
    const struct world *world = start->world;
    struct child_line line;
    bool interrupted = false;
    double looked = world_now(world);
    for (int running = start->places.count; running > 0;) {
        if (children_line(start->children, LOOK_S, &line)) {
            print_line(start, &line);
            if (world_now(world) - looked < LOOK_S) continue; /* there may always be another one */
        }
        const double now = looked = world_now(world);
        lines_flush(&start->out);
        lines_flush(&start->err);
        running = look(start, error);
        if (!start->ends) {
            interrupted = error->code == OK && world_interrupted();
            if (interrupted || error->code != OK) begin_to_end(start, !interrupted, now);
        } else if (now >= start->end_s) {
            take_measure(start, now);
        } else if (start->measure == ASK_ALL && start->ended[0]) {
            start->end_s = fmin(start->end_s, now + LEFT_S);
        }
    }
    if (!interrupted) return error->code;
    *error = (struct error){0}; /* of those whom the leader has ended */
    const int code = start->leader_code;
    if (code != OK && code != ERROR_INTERRUPTED && code != ERROR_PEER)
        return name_failure(start, 0, code, error);
    return error_set(error, ERROR_INTERRUPTED, "interrupted");
}

static int start_all(struct start *start, struct error *error) {
    RETURN_IF(world_open_threads(&start->world, error));
    world_catch_interrupts();
    int code = OK;
    lines_open(&start->out, stdout, NULL);
    lines_open(&start->err, stderr, NULL);
    for (int rank = 0; rank < start->places.count && code == OK; rank++) code = start_one(start, rank, error);
    if (code == OK) code = wait_for_all(start, error);
    lines_close(&start->out, code != OK);
    lines_close(&start->err, code != OK);
    world_close(start->world);
    return code;
}

/* --- the key, and the ports --- */

/* Where the processes are on several machines, one is made that nobody else ever has. */
static int find_key(struct start *start, struct error *error) {
    const struct config *settings = start->settings;
    struct secret *secret = &start->secret;
    bool apart = false;
    RETURN_IF(secret_find(secret, settings, start->variable(SECRET_VARIABLE), error));
    for (int rank = 0; rank < start->places.count; rank++)
        apart = apart || !launch_is_loopback(start->places.host[rank]);
    if (!secret->there && apart && !settings->insecure) RETURN_IF(secret_new(secret, error));
    if (secret->there && !secret->certificates.certificate) secret_text(secret, start->input);
    strcat(start->input, "\n");
    return OK;
}

static int prepare(struct start *start, struct error *error) {
    const struct config *settings = start->settings;
    uint64_t chance;
    RETURN_IF(places_read_slots(&start->places, settings->hosts, "--hosts", error));
    const int count = start->places.count;
    if (settings->ps >= count)
        return error_set(error, ERROR_USAGE,
                         "--ps=%d: --hosts has places for %d process%s, expected one more at least",
                         settings->ps, count, count == 1 ? "" : "es");
    RETURN_IF(find_key(start, error));
    RETURN_IF(secret_draw(&chance, sizeof chance, error));
    start->port = settings->port > 0 ? settings->port : launch_port(chance);
    start->ssh = settings->ssh[0] ? settings->ssh : start->variable("TRAINER_SSH");
    if (start->ssh && start->ssh[0] == '\0') start->ssh = NULL;
    RETURN_IF(own_command(start, error));
    RETURN_IF(memory_array(&start->ended, count, "processes", error));
    return children_open(&start->children, count, error);
}

int launch_start(const struct config *settings, launch_variable *variable, struct error *error) {
    struct start *start = NULL;
    RETURN_IF(memory_array(&start, 1, "processes", error));
    start->settings = settings;
    start->variable = variable;
    int code = prepare(start, error);
    if (code == OK) code = start_all(start, error);
    children_close(start->children);
    places_free(&start->places);
    memory_free(start->ended);
    memory_free(start->words);
    memory_free(start);
    return code;
}
