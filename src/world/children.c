/* See children.h. */
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/memory.h"

extern char **environ;

enum { STREAMS = 2 }; /* standard output, and standard error */

struct stream {
    int file; /* -1: it has ended */
    size_t used;
    char bytes[sizeof(((struct child_line *)0)->text)];
};

struct child {
    pid_t process;
    int input; /* -1: it was closed */
    struct stream streams[STREAMS];
    bool reaped;
    int code;
};

struct children {
    struct child *list; /* [count], room for `most` */
    int count, most;
    int next; /* where the search for a line begins */
};

int children_open(struct children **out, int most, struct error *error) {
    struct children *children = NULL;
    RETURN_IF(memory_array(&children, 1, "processes", error));
    children->most = most;
    const int code = memory_array(&children->list, most, "processes", error);
    if (code != OK) memory_free(children);
    if (code == OK) *out = children;
    return code;
}

static void close_file(int *file) {
    if (*file >= 0) close(*file);
    *file = -1;
}

void children_close(struct children *children) {
    int code;
    if (!children) return;
    for (int c = 0; c < children->count; c++) {
        struct child *child = &children->list[c];
        if (!child->reaped) {
            kill(-child->process, SIGKILL);
            waitpid(child->process, &code, 0);
        }
        close_file(&child->input);
        for (int s = 0; s < STREAMS; s++) close_file(&child->streams[s].file);
    }
    memory_free(children->list);
    memory_free(children);
}

/* --- starting --- */

/* What this process ignores, a child is not to. */
static int spawn(struct child *child, const char *const *words, int pipes[1 + STREAMS][2]) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t heeded;
    sigemptyset(&heeded);
    sigaddset(&heeded, SIGPIPE);
    sigaddset(&heeded, SIGXFSZ);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigdefault(&attributes, &heeded);
    for (int i = 0; i <= STREAMS; i++)
        posix_spawn_file_actions_adddup2(&actions, pipes[i][i == 0 ? 0 : 1], i);
    const int failed =
        posix_spawnp(&child->process, words[0], &actions, &attributes, (char *const *)words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int open_pipes(int pipes[1 + STREAMS][2]) {
    for (int i = 0; i <= STREAMS; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) == 0) continue;
        const int failed = errno;
        while (i-- > 0) close(pipes[i][0]), close(pipes[i][1]);
        return failed;
    }
    return 0;
}

int children_start(struct children *children, const char *const *words, const char *input,
                   struct error *error) {
    struct child *child = &children->list[children->count];
    int pipes[1 + STREAMS][2];
    int failed = open_pipes(pipes);
    if (failed) return error_set(error, ERROR_DEVICE, "%s: not started: %s", words[0], strerror(failed));
    failed = spawn(child, words, pipes);
    close(pipes[0][0]);
    for (int s = 0; s < STREAMS; s++) close(pipes[1 + s][1]);
    if (failed) {
        close(pipes[0][1]);
        for (int s = 0; s < STREAMS; s++) close(pipes[1 + s][0]);
        return error_set(error, ERROR_DEVICE, "%s: not started: %s", words[0], strerror(failed));
    }
    children->count++;
    child->input = pipes[0][1];
    for (int s = 0; s < STREAMS; s++) child->streams[s].file = pipes[1 + s][0];
    /* A pipe has room for a line; who reads none of it has ended, which is found out in time. */
    if (write(child->input, input, strlen(input)) < 0) close_file(&child->input);
    return OK;
}

/* --- what they print --- */

/* A line, or what there is when it is full or at its end. */
static bool take_line(struct stream *stream, struct child_line *line) {
    const char *end = memchr(stream->bytes, '\n', stream->used);
    const bool full = stream->used == sizeof stream->bytes - 1;
    if (!end && !full && !(stream->file < 0 && stream->used > 0)) return false;
    const size_t length = end ? (size_t)(end - stream->bytes) : stream->used, taken = length + (end != NULL);
    memcpy(line->text, stream->bytes, length);
    line->text[length] = '\0';
    if (length > 0 && line->text[length - 1] == '\r') line->text[length - 1] = '\0'; /* as ssh ends its own */
    memmove(stream->bytes, stream->bytes + taken, stream->used - taken);
    stream->used -= taken;
    return true;
}

static bool find_line(struct children *children, struct child_line *line) {
    for (int i = 0; i < children->count; i++) {
        const int c = (children->next + i) % children->count;
        for (int s = 0; s < STREAMS; s++) {
            if (!take_line(&children->list[c].streams[s], line)) continue;
            line->child = c;
            line->error = s == 1;
            children->next = c + 1;
            return true;
        }
    }
    return false;
}

static void fill(struct stream *stream) {
    const size_t room = sizeof stream->bytes - 1 - stream->used;
    const ssize_t bytes = read(stream->file, stream->bytes + stream->used, room);
    if (bytes > 0) stream->used += (size_t)bytes;
    if (bytes == 0 || (bytes < 0 && errno != EINTR)) close_file(&stream->file);
}

bool children_line(struct children *children, double seconds, struct child_line *line) {
    struct pollfd *files = NULL;
    struct error ignored = {0};
    const int count = STREAMS * children->count;
    if (find_line(children, line)) return true;
    if (memory_array(&files, count + 1, "processes", &ignored) != OK) return false;
    for (int i = 0; i < count; i++)
        files[i] =
            (struct pollfd){.fd = children->list[i / STREAMS].streams[i % STREAMS].file, .events = POLLIN};
    if (poll(files, (nfds_t)count, (int)(seconds * 1e3)) > 0)
        for (int i = 0; i < count; i++)
            if (files[i].fd >= 0 && files[i].revents) fill(&children->list[i / STREAMS].streams[i % STREAMS]);
    memory_free(files);
    return find_line(children, line);
}

/* --- how they end --- */

bool children_ended(struct children *children, int c, int *code) {
    struct child *child = &children->list[c];
    int status = 0;
    if (!child->reaped && waitpid(child->process, &status, WNOHANG) == child->process) {
        child->reaped = true;
        child->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    *code = child->code;
    for (int s = 0; s < STREAMS; s++)
        if (child->streams[s].file >= 0 || child->streams[s].used > 0) return false;
    return child->reaped;
}

void children_hang_up(struct children *children, int child) {
    close_file(&children->list[child].input);
}

/* What it has started may hold its streams open: nobody waits for these. */
void children_end(struct children *children, int c, bool at_once) {
    struct child *child = &children->list[c];
    kill(-child->process, at_once ? SIGKILL : SIGTERM);
    for (int s = 0; s < STREAMS && at_once; s++) close_file(&child->streams[s].file);
}

/* --- standard input --- */

int world_read_line(char *line, size_t bytes, struct error *error) {
    size_t used = 0;
    for (char letter = 0; used < bytes; line[used++] = letter) {
        const ssize_t found = read(STDIN_FILENO, &letter, 1);
        if (found < 0) return error_set(error, ERROR_FILE, "standard input: not read: %s", strerror(errno));
        if (found == 0 || letter == '\n') break;
    }
    if (used == bytes)
        return error_set(error, ERROR_FILE, "standard input: a line of %zu characters or more", bytes);
    line[used] = '\0';
    return OK;
}

static void *watch_input(void *argument) {
    char dropped[256];
    ssize_t bytes;
    (void)argument;
    do bytes = read(STDIN_FILENO, dropped, sizeof dropped);
    while (bytes > 0 || (bytes < 0 && errno == EINTR));
    kill(getpid(), SIGTERM);
    return NULL;
}

int world_end_with_input(struct error *error) {
    pthread_t thread;
    const int failed = pthread_create(&thread, NULL, watch_input, NULL);
    if (failed) return error_set(error, ERROR_DEVICE, "no thread for standard input: %s", strerror(failed));
    pthread_detach(thread);
    return OK;
}
