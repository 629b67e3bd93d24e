/* A comparison writes a list of its files when it begins, so that the runs of a killed one are found too,
 * and all other files stay untouched. */
#include "folder.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../base/file.h"
#include "../base/memory.h"
#include "../run/folder.h"

enum { LIST_BYTES = 1 << 20 };

/* As make_folder_name in compare.c makes them: nothing that leads out of the comparison's folder. */
static bool is_folder_name(const char *name) {
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._=-", *c)) return false;
    return name[0] != '\0' && name[0] != '.' && strlen(name) < FOLDER_BYTES;
}

/* A folder with something else in it stays. */
static int remove_run(const char *folder, struct error *error) {
    static const char *const names[] = {"summary.json",
                                        "summary.json.part",
                                        "report.html",
                                        "model.safetensors",
                                        "model.safetensors.part",
                                        "checkpoint/state.safetensors",
                                        "checkpoint/state.safetensors.part"};
    char checkpoint[PATH_BYTES];
    bool was;
    RETURN_IF(folder_remove_outputs(folder, error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        RETURN_IF(folder_remove(folder, names[i], &was, error));
    RETURN_IF(file_join(checkpoint, folder, "checkpoint", error));
    rmdir(checkpoint);
    rmdir(folder);
    return OK;
}

/* One line of the list: "sync 3". */
static int remove_runs(const char *out, const char *line, const char *kept, struct error *error) {
    char name[FOLDER_BYTES], folder[PATH_BYTES], run[FOLDER_BYTES + 16], path[PATH_BYTES];
    int repeats = 0;
    if (sscanf(line, "%207s %d", name, &repeats) != 2 || !is_folder_name(name)) return OK;
    RETURN_IF(file_join(folder, out, name, error));
    for (int n = 1; n <= repeats && file_exists(folder); n++) {
        snprintf(run, sizeof run, "%s/%d", name, n);
        RETURN_IF(file_join(path, out, run, error));
        if (strcmp(run, kept) != 0 && file_exists(path)) RETURN_IF(remove_run(path, error));
    }
    rmdir(folder);
    return OK;
}

int compare_remove_earlier(const char *out, const char *kept, bool *earlier, struct error *error) {
    char path[PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    RETURN_IF(file_join(path, out, FOLDER_COMPARISON, error));
    *earlier = file_exists(path);
    if (!*earlier) return OK;
    int code = file_read_plain(path, LIST_BYTES, &text, &bytes, error);
    char *rest = text;
    for (char *line; code == OK && (line = strsep(&rest, "\n")) != NULL;)
        code = remove_runs(out, line, kept, error);
    memory_free(text);
    bool was;
    if (code == OK) code = folder_remove(out, "bench.csv", &was, error);
    if (code == OK) code = folder_remove(out, "runs.csv", &was, error);
    if (code == OK) code = folder_remove(out, "report.html", &was, error);
    return code;
}
