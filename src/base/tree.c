/* See tree.h. */
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "memory.h"

enum { DEPTH = 4 };

static bool is_unfinished(const char *name) {
    const size_t length = strlen(name);
    return length >= 5 && strcmp(name + length - 5, ".part") == 0;
}

static bool is_plain(const char *name) {
    int words = 1;
    bool begins = true;
    for (const char *c = name; *c; c++) {
        if (begins && (*c == '.' || *c == '/')) return false;
        begins = *c == '/';
        words += begins;
        if (!begins && !isalnum((unsigned char)*c) && !strchr("._=-", *c)) return false;
    }
    return !begins && words <= DEPTH && strlen(name) < TREE_NAME_BYTES;
}

bool tree_is_name(const char *name) {
    return is_plain(name) && !is_unfinished(name);
}

/* What is being listed. */
struct listing {
    struct tree *tree;
    const char *folder;
    bool unfinished; /* those that are still being written, too */
};

static int walk(const struct listing *listing, const char *below, struct error *error);

/* What has another name is not ours: an editor left it, or a file system (.nfs0000, .DS_Store). */
static int add(const struct listing *listing, const char *name, struct error *error) {
    struct tree *tree = listing->tree;
    const char *folder = listing->folder;
    char path[PATH_BYTES];
    struct stat status;
    if (!is_plain(name)) return OK;
    RETURN_IF(file_join(path, folder, name, error));
    if (lstat(path, &status) != 0)
        return error_set(error, ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(status.st_mode)) return walk(listing, name, error);
    if (!S_ISREG(status.st_mode) || (is_unfinished(name) && !listing->unfinished)) return OK;
    if (tree->count == TREE_FILES)
        return error_set(error, ERROR_FILE, "%s: found more than %d files", folder, TREE_FILES);
    memcpy(tree->names[tree->count++], name, strlen(name) + 1);
    return OK;
}

/* below: a folder in it; "": itself. */
static int walk(const struct listing *listing, const char *below, struct error *error) {
    const char *folder = listing->folder;
    char path[PATH_BYTES], name[PATH_BYTES];
    int code = OK;
    if (below[0])
        RETURN_IF(file_join(path, folder, below, error));
    else
        snprintf(path, sizeof path, "%s", folder);
    DIR *entries = opendir(path);
    if (entries == NULL && errno == ENOENT) return OK;
    if (entries == NULL) return error_set(error, ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    for (const struct dirent *entry; code == OK && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (below[0])
            code = file_join(name, below, entry->d_name, error);
        else
            snprintf(name, sizeof name, "%s", entry->d_name);
        if (code == OK) code = add(listing, name, error);
    }
    closedir(entries);
    return code;
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static int list(struct tree *tree, const char *folder, bool unfinished, struct error *error) {
    const struct listing listing = {tree, folder, unfinished};
    tree->count = 0;
    RETURN_IF(walk(&listing, "", error));
    qsort(tree->names, (size_t)tree->count, sizeof *tree->names, by_name);
    return OK;
}

int tree_list(struct tree *tree, const char *folder, struct error *error) {
    return list(tree, folder, false, error);
}

/* The folders that lead to a file, the inmost first, as far as they are empty. */
static void remove_folders(const char *folder, char *name) {
    char path[PATH_BYTES];
    struct error ignored = {0};
    for (char *slash; (slash = strrchr(name, '/')) != NULL;) {
        *slash = '\0';
        if (file_join(path, folder, name, &ignored) != OK || rmdir(path) != 0) return;
    }
}

int tree_remove(const char *folder, struct error *error) {
    struct tree *tree = NULL;
    char path[PATH_BYTES];
    RETURN_IF(memory_array(&tree, 1, "the files of a folder", error));
    int code = list(tree, folder, true, error);
    for (int i = 0; i < tree->count && code == OK; i++) {
        code = file_join(path, folder, tree->names[i], error);
        if (code == OK && unlink(path) != 0)
            code = error_set(error, ERROR_FILE, "%s: cannot be removed: %s", path, strerror(errno));
        if (code == OK) remove_folders(folder, tree->names[i]);
    }
    if (code == OK) rmdir(folder);
    memory_free(tree);
    return code;
}
