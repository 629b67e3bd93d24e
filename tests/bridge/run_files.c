/* The files of a run go over as they are, whatever their size; a name that leads elsewhere, too many files or
 * bytes, and a peer that ends in the middle leave what was there. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/file.h"
#include "../../src/base/memory.h"
#include "../../src/bridge/run_files.h"
#include "../wire.h"

enum { BIG = 3 << 20 };

static char scratch[64] = "/tmp/run_files.XXXXXX";
static struct tree tree;

static const char *in(const char *folder, const char *name) {
    static char paths[4][PATH_BYTES];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, PATH_BYTES, "%s/%s%s%s", scratch, folder, name[0] ? "/" : "", name);
    return path;
}

static void put(const char *folder, const char *name, const void *bytes, size_t count) {
    struct error error = {0};
    char above[PATH_BYTES];
    snprintf(above, sizeof above, "%s", in(folder, name));
    *strrchr(above, '/') = '\0';
    CHECK(file_make_folder(above, &error) == OK, "%s", error.words);
    CHECK(file_write(in(folder, name), bytes, count, &error) == OK, "%s", error.words);
}

static bool has(const char *folder, const char *name, const void *bytes, size_t count) {
    char *found = NULL;
    size_t length = 0;
    struct error error = {0};
    const bool same = file_read_plain(in(folder, name), BIG + 1, &found, &length, &error) == OK &&
                      length == count && memcmp(found, bytes, count) == 0;
    memory_free(found);
    return same;
}

struct sending {
    struct wire *wire;
    const char *folder;
    struct error error;
};

static void send_all(void *argument) {
    struct sending *sending = argument;
    if (tree_list(&tree, sending->folder, &sending->error) != OK) return;
    run_files_send(sending->wire->near, sending->folder, &tree, "checkpoint/state", LONG_S, &sending->error);
}

static void test_all_go_over(char *big) {
    struct wire wire;
    char folder[PATH_BYTES];
    struct sending sending = {.wire = &wire, .folder = folder};
    struct world_thread *thread = NULL;
    open_wire(&wire);
    put("from", "checkpoint/state", big, BIG);
    put("from", "checkpoint/best/state", "best", 4);
    put("from", "steps.csv", "", 0);
    put("from", "half.part", "half", 4);
    put("to", "steps.csv", "earlier", 7);
    snprintf(folder, sizeof folder, "%s", in("from", ""));
    CHECK(world_spawn(wire.world, "sender", NULL, send_all, &sending, &thread, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(run_files_receive(wire.far, in("to", ""), 3, LONG_S, &wire.error) == OK, "%s", wire.error.words);
    world_join(thread);
    CHECK(sending.error.code == OK, "%s", sending.error.words);
    CHECK(tree.count == 3, "%d files, expected 3: one is still being written", tree.count);
    CHECK(has("to", "checkpoint/state", big, BIG) && has("to", "checkpoint/best/state", "best", 4) &&
              has("to", "steps.csv", "", 0),
          "what came is not what was sent");
    close_wire(&wire);
    struct error error = {0};
    CHECK(tree_remove(in("to", ""), &error) == OK && !file_exists(in("to", "")), "%s", error.words);
    CHECK(tree_list(&tree, in("to", ""), &error) == OK && tree.count == 0, "a folder that is gone has files");
}

/* What nobody of us has named is neither sent nor in the way, and what was left half written goes with its
 * run.
 */
static void test_strays(void) {
    static const char *const strays[] = {".nfs0000", ".DS_Store", "notes (1).txt"};
    struct error error = {0};
    put("strays", "steps.csv", "", 0);
    put("strays", "checkpoint/state.part", "half", 4);
    put("strays", "old (1)/state", "", 0);
    for (int i = 0; i < 3; i++) put("strays", strays[i], "", 0);
    CHECK(tree_list(&tree, in("strays", ""), &error) == OK && tree.count == 1 &&
              strcmp(tree.names[0], "steps.csv") == 0,
          "%d files: %s", tree.count, error.words);
    CHECK(tree_remove(in("strays", ""), &error) == OK, "%s", error.words);
    CHECK(!file_exists(in("strays", "steps.csv")) && !file_exists(in("strays", "checkpoint")),
          "files of the run are still there");
    CHECK(unlink(in("strays", "old (1)/state")) == 0 && rmdir(in("strays", "old (1)")) == 0,
          "a stray is gone");
    for (int i = 0; i < 3; i++) CHECK(unlink(in("strays", strays[i])) == 0, "%s is gone", strays[i]);
    CHECK(rmdir(in("strays", "")) == 0, "something is left");
}

/* Many files take no more descriptors than one. */
static void test_descriptors(void) {
    struct wire wire;
    char folder[PATH_BYTES], name[32];
    struct sending sending = {.wire = &wire, .folder = folder};
    struct world_thread *thread = NULL;
    struct rlimit before, few;
    struct error error = {0};
    snprintf(folder, sizeof folder, "%s", in("sent", ""));
    for (int i = 0; i < TREE_FILES; i++) {
        snprintf(name, sizeof name, "file%02d", i);
        put("sent", name, name, 6);
    }
    open_wire(&wire);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0, "no limit");
    few = (struct rlimit){.rlim_cur = 40, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "not limited");
    CHECK(world_spawn(wire.world, "sender", NULL, send_all, &sending, &thread, &wire.error) == OK, "%s",
          wire.error.words);
    CHECK(run_files_receive(wire.far, in("came", ""), TREE_FILES, LONG_S, &wire.error) == OK, "%s",
          wire.error.words);
    world_join(thread);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK(sending.error.code == OK, "%s", sending.error.words);
    CHECK(has("came", "file00", "file00", 6) && has("came", "file63", "file63", 6), "a file is missing");
    close_wire(&wire);
    CHECK(tree_remove(folder, &error) == OK && tree_remove(in("came", ""), &error) == OK, "%s", error.words);
}

/* A file of this name, of which so many bytes are sent of those that were said. */
static void send_one(struct wire *wire, const char *name, uint64_t said, size_t sent) {
    char bytes[TREE_NAME_BYTES + 16] = "";
    uint8_t header[FRAME_HEADER_BYTES];
    struct frame_header head = {.type = FRAME_FILE};
    memcpy(bytes, name, strlen(name));
    const struct piece pieces[] = {{header, sizeof header}, {bytes, TREE_NAME_BYTES + sent}};
    frame_seal(&head, wire->near, pieces + 1, 1);
    head.bytes = TREE_NAME_BYTES + said;
    frame_pack_header(header, &head);
    CHECK(endpoint_send(wire->near, "a file", pieces, 2, LONG_S, &wire->error) == OK, "%s",
          wire->error.words);
}

static void refused(const char *name, uint64_t said, size_t sent, const char *words) {
    struct wire wire;
    open_wire(&wire);
    put("kept", "steps.csv", "earlier", 7);
    send_one(&wire, "steps.csv", 3, 3);
    send_one(&wire, name, said, sent);
    endpoint_close(wire.near);
    wire.near = NULL;
    CHECK(run_files_receive(wire.far, in("kept", ""), 2, LONG_S, &wire.error) == ERROR_PEER, "%s was taken",
          name);
    CHECK(strstr(wire.error.words, words) != NULL, "%s: said: %s", name, wire.error.words);
    struct error error = {0};
    CHECK(has("kept", "steps.csv", "earlier", 7), "%s: what was there is gone", name);
    CHECK(tree_list(&tree, scratch, &error) == OK && tree.count == 4, "%s: %d files, expected 4: %s", name,
          tree.count, error.words);
    close_wire(&wire);
}

static void test_hostile(void) {
    static const char *const names[] = {"",   "/etc/x", "../x", "a/../x",    "a/.x",   "a//x", "a/",
                                        ".x", "a b",    "x\n",  "a/b/c/d/e", "x.part", "a\\x"};
    char longest[TREE_NAME_BYTES + 1];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(!tree_is_name(names[i]), "\"%s\" can be the name of a file", names[i]);
        refused(names[i], 3, 3, "whose name is none of a run's");
    }
    CHECK(tree_is_name("a/b/c/d-1_2=3.x"), "a name of four words");
    memset(longest, 'x', TREE_NAME_BYTES);
    longest[TREE_NAME_BYTES] = '\0';
    CHECK(!tree_is_name(longest), "a name without room for its end");
    refused(longest, 3, 3, "whose name is none of a run's");
    refused("steps.csv", 3, 3, "where another file or a folder is");
    refused("steps.csv/x", 3, 3, "where another file or a folder is");
    refused("huge", RUN_FILES_BYTES, 0, "expected at most");
    refused("short", 16, 3, "closed by the peer");
}

static void test_counts(void) {
    struct wire wire;
    open_wire(&wire);
    CHECK(run_files_receive(wire.far, in("many", ""), TREE_FILES + 1, 0.05, &wire.error) == ERROR_PEER &&
              strstr(wire.error.words, "expected at most 64"),
          "%s", wire.error.words);
    CHECK(!file_exists(in("many", "")), "a folder was made");
    close_wire(&wire);
}

int main(void) {
    struct error error = {0};
    char *big = NULL;
    CHECK(mkdtemp(scratch) != NULL, "no folder in /tmp");
    CHECK(memory_array(&big, BIG, "a file", &error) == OK, "%s", error.words);
    for (int i = 0; i < BIG; i++) big[i] = (char)((unsigned)i * 7919u >> 8);
    test_all_go_over(big);
    test_counts();
    test_strays();
    test_descriptors();
    test_hostile();
    CHECK(tree_remove(in("from", ""), &error) == OK && !file_exists(in("from", "")), "%s", error.words);
    CHECK(tree_remove(scratch, &error) == OK, "%s", error.words);
    memory_free(big);
    return check_end();
}
