/* Lists folders. What a file system returns first is no order: every list is sorted by bytes before it is
 * used. */
#include "class_folders.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../base/memory.h"
#include "dataset.h"
#include "picture.h"

/* Names of entries. */
struct names {
    char **name; /* [count] owned */
    int count, room;
};

static void names_close(struct names *names) {
    for (int i = 0; i < names->count; i++) memory_free(names->name[i]);
    memory_free(names->name);
}

static int compare(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int names_add(struct names *names, const char *name, struct error *error) {
    enum { FIRST_ROOM = 64 };
    if (names->count == names->room) {
        const int room = names->room ? 2 * names->room : FIRST_ROOM;
        if (names->room > INT_MAX / 2)
            return error_set(error, ERROR_FILE, "more than %d entries in a folder", names->room);
        RETURN_IF(memory_grow(&names->name, names->room, room, "names of files", error));
        names->room = room;
    }
    RETURN_IF(memory_text(&names->name[names->count], name, error));
    names->count++;
    return OK;
}

/* All entries of a folder but hidden ones, sorted. */
static int names_open(struct names *names, const char *folder, struct error *error) {
    *names = (struct names){0};
    DIR *entries = opendir(folder);
    int code = OK;
    if (!entries) return error_set(error, ERROR_FILE, "%s: %s", folder, strerror(errno));
    while (code == OK) {
        errno = 0;
        const struct dirent *entry = readdir(entries);
        if (!entry && errno != 0) code = error_set(error, ERROR_FILE, "%s: %s", folder, strerror(errno));
        if (!entry) break;
        if (entry->d_name[0] != '.') code = names_add(names, entry->d_name, error);
    }
    closedir(entries);
    if (code == OK && names->count > 0) qsort(names->name, (size_t)names->count, sizeof(char *), compare);
    return code;
}

bool class_folders_is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* A file with the name of a picture. A link to nothing is one, too: whoever opens it says so. */
static bool is_picture(const char *path) {
    struct stat status;
    return picture_is_named(path) && (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

static void count_other(struct class_folders *folders, const char *path) {
    if (folders->others++ == 0) snprintf(folders->first_other, sizeof folders->first_other, "%s", path);
}

static int no_picture(const char *path, int inner, struct error *error) {
    char within[64] = "";
    if (inner > 0) snprintf(within, sizeof within, ", only %d folder%s", inner, inner == 1 ? "" : "s");
    return error_set(error, ERROR_FILE,
                     "%s: found no picture%s, expected files in .png, .jpg, .jpeg, .bmp or .gif", path,
                     within);
}

static int make_room(struct class_folders *folders, int more, struct error *error) {
    if (more <= folders->room - folders->count) return OK;
    if (more > INT_MAX / 2 - folders->room)
        return error_set(error, ERROR_FILE, "%s: more files than %d", folders->folder, INT_MAX / 2);
    const int room = 2 * folders->room + more;
    RETURN_IF(memory_grow(&folders->files, folders->count, room, "a list of files", error));
    folders->room = room;
    return OK;
}

/* The pictures in the folder of a class. */
static int add_files(struct class_folders *folders, const char *path, int class, int label, bool may_be_empty,
                     struct error *error) {
    struct names names;
    char inner[PATH_BYTES];
    int code = names_open(&names, path, error), used = 0, deeper = 0;
    if (code == OK) code = make_room(folders, names.count, error);
    for (int i = 0; code == OK && i < names.count; i++) {
        code = file_join(inner, path, names.name[i], error);
        if (code == OK && is_picture(inner)) {
            folders->files[folders->count + used++] = (struct class_file){names.name[i], class, label};
            names.name[i] = NULL; /* the list owns it now */
        } else if (code == OK) {
            count_other(folders, inner);
            deeper += class_folders_is_folder(inner);
        }
    }
    folders->count += used;
    names_close(&names);
    if (code == OK && used == 0 && !may_be_empty) code = no_picture(path, deeper, error);
    return code;
}

static int check_name(const char *path, const char *name, struct error *error) {
    const char *expected = dataset_name_expected(name);
    if (!expected) return OK;
    return error_set(error, ERROR_FILE, "%s: a class's folder, expected %s", path, expected);
}

/* The place of a class among others; -1: none. */
static int find_class(const struct class_folders *folders, const char *name) {
    char *const *found = bsearch(&name, folders->classes, (size_t)folders->class_count, sizeof name, compare);
    return found ? (int)(found - folders->classes) : -1;
}

/* Keeps of the names those of folders. */
static int keep_classes(struct class_folders *folders, struct names *names, struct error *error) {
    char inner[PATH_BYTES];
    RETURN_IF(memory_array(&folders->classes, names->count, "class names", error));
    for (int i = 0; i < names->count; i++) {
        RETURN_IF(file_join(inner, folders->folder, names->name[i], error));
        if (!class_folders_is_folder(inner)) {
            count_other(folders, inner);
            continue;
        }
        RETURN_IF(check_name(inner, names->name[i], error));
        folders->classes[folders->class_count++] = names->name[i];
        names->name[i] = NULL;
    }
    const int count = folders->class_count;
    if (count == 0 || count > CLASS_FOLDERS_MOST)
        return error_set(error, ERROR_FILE, "%s: found %d folders, expected one per class, 2 to %d",
                         folders->folder, count, CLASS_FOLDERS_MOST);
    return OK;
}

static int add_class(struct class_folders *folders, int class, const struct class_folders *like,
                     struct error *error) {
    const char *name = folders->classes[class];
    const int label = like ? find_class(like, name) : class;
    char inner[PATH_BYTES];
    RETURN_IF(file_join(inner, folders->folder, name, error));
    if (label < 0)
        return error_set(error, ERROR_FILE, "%s: a class that %s does not have", inner, like->folder);
    return add_files(folders, inner, class, label, like != NULL, error);
}

int class_folders_open(struct class_folders *folders, const char *path, const struct class_folders *like,
                       struct error *error) {
    struct names names;
    *folders = (struct class_folders){0};
    snprintf(folders->folder, sizeof folders->folder, "%s", path);
    int code = names_open(&names, path, error);
    if (code == OK) code = keep_classes(folders, &names, error);
    names_close(&names);
    if (code == OK && !like && folders->class_count == 1)
        return error_set(
            error, ERROR_FILE,
            "%s: found one class, \"%s\", expected a folder for each of two or more, by themselves or "
            "in each of train and test",
            path, folders->classes[0]);
    for (int i = 0; code == OK && i < folders->class_count; i++) code = add_class(folders, i, like, error);
    if (code == OK && folders->count == 0) code = no_picture(path, 0, error);
    return code;
}

void class_folders_close(struct class_folders *folders) {
    for (int i = 0; i < folders->count; i++) memory_free(folders->files[i].name);
    for (int i = 0; i < folders->class_count; i++) memory_free(folders->classes[i]);
    memory_free(folders->files);
    memory_free(folders->classes);
    *folders = (struct class_folders){0};
}

int class_folders_path(const struct class_folders *folders, int file, char path[PATH_BYTES],
                       struct error *error) {
    char inner[PATH_BYTES];
    const struct class_file *chosen = &folders->files[file];
    RETURN_IF(file_join(inner, folders->folder, folders->classes[chosen->class], error));
    return file_join(path, inner, chosen->name, error);
}
