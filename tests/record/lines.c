/* Lines and their readers: one that is slow, that reads nothing, that is gone; a full disk; a bar on the same
 * terminal. */
#include "../../src/record/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "../check.h"

static struct lines lines;

/* A pipe or a pair of sockets: the reading end, which does not block, and a stream. */
static int open_ends(bool sockets, FILE **out) {
    int ends[2] = {-1, -1};
    CHECK((sockets ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0, "%s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *out = fdopen(ends[1], "w");
    return ends[0];
}

static void test_file(void) {
    FILE *file = tmpfile();
    lines_open(&lines, file, NULL);
    lines_say(&lines, "a %d", 1);
    lines_say(&lines, "the file %s", "x\033[31m\n.csv");
    lines_close(&lines, false);
    lines_close(&lines, false);
    char text[100] = "";
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    CHECK(strcmp(text, "a 1\nthe file x?[31m?.csv\n") == 0, "\"%s\"", text);
    fclose(file);
    lines_open(&lines, NULL, NULL);
    lines_say(&lines, "quiet");
    lines_flush(&lines);
    lines_close(&lines, false);
}

enum { SAID = 5000 };

/* Adds what there is to text[used]. */
static size_t read_some(int reader, char *text, size_t used) {
    for (ssize_t got; (got = read(reader, text + used, 1 << 16)) > 0;) used += (size_t)got;
    text[used] = 0;
    return used;
}

/* Whole lines in their order, or a note in the place of some. */
static void check_record(const char *text) {
    long next = 0, missing;
    while (*text) {
        char *end;
        if (sscanf(text, "(%ld lines are left out here, which nobody read in time)", &missing) == 1) {
            next += missing;
        } else {
            CHECK(strncmp(text, "line ", 5) == 0 && strtol(text + 5, &end, 10) == next &&
                      strncmp(end, " of a run that is long enough to fill it\n", 41) == 0,
                  "line %ld is: %.60s", next, text);
            next++;
        }
        text = strchr(text, '\n');
        if (!text) break;
        text++;
    }
    CHECK(text && next == SAID, "%ld lines, expected %d", next, SAID);
}

/* Nobody reads for a while: it goes on without waiting, and what comes out in the end is in order. */
static void test_blocked(bool sockets, bool reads_now_and_then) {
    FILE *file;
    const int reader = open_ends(sockets, &file);
    char *text = calloc(1, 1 << 20);
    size_t used = 0;
    lines_open(&lines, file, NULL);
    for (int i = 0; i < SAID; i++) {
        lines_say(&lines, "line %d of a run that is long enough to fill it", i);
        if (i % 100 == 0) lines_flush(&lines);
        if (reads_now_and_then && i % 1000 == 0) used = read_some(reader, text, used);
    }
    while (lines.used > 0) {
        used = read_some(reader, text, used);
        lines_flush(&lines);
    }
    if (reads_now_and_then) CHECK(!strstr(text, "left out"), "a reader that reads misses lines");
    lines_close(&lines, false);
    used = read_some(reader, text, used);
    check_record(text);
    free(text);
    fclose(file);
    close(reader);
}

/* What has failed is not held up by a reader that stands still. */
static void test_failed(bool sockets) {
    FILE *file;
    const int reader = open_ends(sockets, &file);
    lines_open(&lines, file, NULL);
    for (int i = 0; i < SAID; i++) lines_say(&lines, "line %d of a run that fails", i);
    CHECK(lines.used > 0, "the reader takes all");
    lines_close(&lines, true);
    fclose(file);
    close(reader);
}

static void test_gone(bool sockets) {
    FILE *file;
    const int reader = open_ends(sockets, &file);
    lines_open(&lines, file, NULL);
    lines_say(&lines, "first");
    lines_flush(&lines);
    close(reader);
    for (int i = 0; i < SAID; i++) lines_say(&lines, "line %d, which nobody reads", i);
    lines_flush(&lines);
    CHECK(lines.gone && lines.used == 0, "%zu bytes wait for nobody", lines.used);
    lines_say(&lines, "last");
    lines_close(&lines, false);
    CHECK(!ferror(file), "a reader that is gone is an error");
    lines_open(&lines, file, NULL); /* again: nobody is there to begin with */
    lines_say(&lines, "results");
    lines_close(&lines, false);
    CHECK(!ferror(file) && fclose(file) == 0, "a reader that is gone is an error");
}

static void test_full(void) {
    FILE *file = fopen("/dev/full", "w");
    if (!file) return;
    lines_open(&lines, file, NULL);
    for (int i = 0; i < SAID; i++) lines_say(&lines, "line %d for a full disk", i);
    lines_close(&lines, false);
    CHECK(ferror(file) != 0, "a full disk is not noticed");
    fclose(file);
}

/* Lines and the bar on one terminal: cleared before them, drawn again after. */
static void test_bar(void) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        fprintf(stderr, "no pseudo-terminal here: the bar is not checked\n");
        return;
    }
    setenv("TERM", "xterm", 1);
    FILE *file = fopen(ptsname(master), "w");
    struct progress progress;
    progress_open(&progress, file, false);
    lines_open(&lines, file, &progress);
    progress_show(&progress, 10, 100, 0, 1, 2, 0.5);
    lines_say(&lines, "one");
    lines_say(&lines, "two");
    lines_flush(&lines);
    lines_say(&lines, "three");
    lines_close(&lines, false);
    static const char bar[] = "\repoch 1/2 [", wanted[] = "\033[K\r\033[Kone\r\ntwo\r\n\repoch 1/2 [",
                      last[] = "\033[K\r\033[Kthree\r\n";
    char drawn[4096] = "";
    size_t used = 0;
    while (!strstr(drawn, "three\r\n") &&
           poll(&(struct pollfd){.fd = master, .events = POLLIN}, 1, 2000) > 0) {
        const ssize_t got = read(master, drawn + used, sizeof drawn - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
        drawn[used] = 0;
    }
    const size_t end = strlen(last);
    CHECK(strncmp(drawn, bar, sizeof bar - 1) == 0 && strstr(drawn, wanted) && used > end &&
              strcmp(drawn + used - end, last) == 0,
          "drawn: \"%s\"", drawn);
    fclose(file);
    close(master);
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    test_file();
    test_blocked(false, true);
    test_blocked(false, false);
    test_blocked(true, false);
    test_failed(false);
    test_failed(true);
    test_gone(false);
    test_gone(true);
    test_full();
    test_bar();
    return check_end();
}
