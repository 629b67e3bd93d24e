/* See lines.h. Standard output may be shared with other processes, so it is never set not to block: a pipe is
 * opened once more, and whatever else could block is asked for room before each write. */
#include "lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "../base/page.h"
#include "../world/world.h"

/* At most so much is written at once: a pipe takes that whole or not at all. */
enum {
    AT_ONCE = PIPE_BUF,
    LINE_BYTES = 4200,
    FOLDED_BYTES = 2 * LINE_BYTES,
    NOTE_BYTES = 100,
    FOLD_INDENT = 2
};
/* A reader that takes nothing for so long is stuck; how often it is looked for, and how many looks in vain
 * are enough after an interrupt or a failure. */
static const double stuck_s = 1, look_s = 0.05;
enum { LAST_LOOKS = 20 };

static int open_pipe(int handle) {
    struct stat status;
    char path[40];
    if (fstat(handle, &status) != 0 || !S_ISFIFO(status.st_mode)) return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

void lines_open(struct lines *lines, FILE *file, struct progress *bar) {
    lines->file = file;
    lines->bar = bar;
    lines->pipe = file ? open_pipe(fileno(file)) : -1;
    lines->terminal = file && isatty(fileno(file)) == 1;
    lines->fitted = lines->terminal || (file && page_columns_told() > 0);
    lines->gone = lines->stuck = false;
    lines->left_out = 0;
    lines->used = 0;
}

static bool await_room(const struct lines *lines, double seconds) {
    return world_await_room(lines->pipe >= 0 ? lines->pipe : fileno(lines->file), seconds);
}

/* Whole lines, so that those of other processes on the same pipe come between them. */
static size_t next_bytes(const struct lines *lines) {
    const size_t most = lines->used < AT_ONCE ? lines->used : AT_ONCE;
    size_t end = most;
    while (end > 0 && lines->waiting[end - 1] != '\n') end--;
    return end > 0 ? end : most;
}

static void take_out(struct lines *lines, size_t bytes) {
    lines->used -= bytes;
    memmove(lines->waiting, lines->waiting + bytes, lines->used);
}

/* Nobody reads any more, or a terminal was closed. */
static bool is_gone(const struct lines *lines, int why) {
    return why == EPIPE || why == ECONNRESET || (why == EIO && lines->terminal);
}

/* After any other failure the torn line is ended where closing the stream will: which tells the reason. */
static void note_failure(struct lines *lines, int why, size_t bytes) {
    if (!is_gone(lines, why) && lines->pipe < 0) {
        take_out(lines, bytes);
        fputc('\n', lines->file);
        return;
    }
    __fpurge(lines->file);
    clearerr(lines->file);
    lines->gone = true;
    lines->used = 0;
}

/* False: the reader takes nothing now. */
static bool write_some(struct lines *lines) {
    const size_t bytes = next_bytes(lines);
    if (lines->pipe >= 0) {
        const ssize_t wrote = write(lines->pipe, lines->waiting, bytes);
        if (wrote < 0 && (errno == EAGAIN || errno == EINTR)) return false;
        if (wrote >= 0)
            take_out(lines, (size_t)wrote);
        else
            note_failure(lines, errno, bytes);
        return true;
    }
    if (!await_room(lines, 0)) return false;
    if (fwrite(lines->waiting, 1, bytes, lines->file) == bytes && fflush(lines->file) == 0)
        take_out(lines, bytes);
    else
        note_failure(lines, errno, bytes);
    return true;
}

static bool make_room(struct lines *lines, size_t bytes) {
    while (!lines->gone && lines->used + bytes > sizeof lines->waiting) {
        if (write_some(lines)) {
            lines->stuck = false;
            continue;
        }
        if (lines->stuck || world_interrupted()) return false;
        lines->stuck = !await_room(lines, stuck_s);
    }
    return !lines->gone;
}

static void add_bytes(struct lines *lines, const char *text, size_t bytes) {
    memcpy(lines->waiting + lines->used, text, bytes);
    lines->used += bytes;
}

static void add_note(struct lines *lines) {
    char note[NOTE_BYTES];
    if (lines->left_out == 0) return;
    const int bytes = snprintf(note, sizeof note, "(%ld line%s left out here, which nobody read in time)\n",
                               lines->left_out, lines->left_out == 1 ? " is" : "s are");
    lines->left_out = 0;
    add_bytes(lines, note, (size_t)bytes);
}

/* One line, or, folded, as many as the columns make of it. */
static void say(struct lines *lines, bool folded, const char *format, va_list arguments) {
    char words[LINE_BYTES], text[FOLDED_BYTES + 1];
    struct text out = text_into(text, FOLDED_BYTES);
    if (!lines->file) return;
    vsnprintf(words, sizeof words, format, arguments);
    /* A file's name can hold anything. */
    for (char *c = words; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    const int columns = page_on(lines->file).columns;
    if (folded && strlen(words) > (size_t)columns) /* else it stays as it is, with its blanks */
        page_fold(&out, columns, 0, FOLD_INDENT, words);
    else
        text_add(&out, "%s", words);
    const size_t bytes = strlen(text);
    text[bytes] = '\n';
    if (!make_room(lines, bytes + 1 + NOTE_BYTES)) {
        lines->left_out++;
        return;
    }
    add_note(lines);
    add_bytes(lines, text, bytes + 1);
}

void lines_say(struct lines *lines, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(lines, false, format, arguments);
    va_end(arguments);
}

int lines_columns(const struct lines *lines) {
    return lines->file && lines->fitted ? page_on(lines->file).columns : 0;
}

void lines_fit(struct lines *lines, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(lines, lines->fitted, format, arguments);
    va_end(arguments);
}

void lines_describe(struct lines *lines, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(lines, true, format, arguments);
    va_end(arguments);
}

void lines_flush(struct lines *lines) {
    if (!lines->file || lines->used == 0) return;
    const bool bar = lines->terminal && lines->bar && lines->bar->shown;
    if (bar) progress_clear(lines->bar);
    while (lines->used > 0 && write_some(lines)) lines->stuck = false;
    if (bar) progress_redraw(lines->bar);
}

void lines_close(struct lines *lines, bool failed) {
    if (!lines->file) return;
    if (lines->terminal && lines->bar) progress_clear(lines->bar);
    if (!lines->gone && make_room(lines, NOTE_BYTES)) add_note(lines);
    for (int looks = 0; lines->used > 0;) {
        if (write_some(lines)) {
            looks = 0;
            continue;
        }
        if ((failed || world_interrupted()) && ++looks > LAST_LOOKS) break;
        await_room(lines, look_s);
    }
    if (lines->pipe >= 0) close(lines->pipe);
    lines->file = NULL;
}
