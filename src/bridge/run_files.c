/* See run_files.h. A file goes over in pieces, so its size costs no memory. */
#include "run_files.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/crc32c.h"
#include "../base/file.h"
#include "../base/memory.h"

enum { PIECE_BYTES = 256 << 10 };

/* --- sending --- */

static int read_piece(char piece[PIECE_BYTES], size_t bytes, FILE *file, const char *path,
                      struct error *error) {
    if (fread(piece, 1, bytes, file) == bytes) return OK;
    return error_set(error, ERROR_FILE, "%s: shorter than it was when it was sent", path);
}

static int send_bytes(struct endpoint *endpoint, FILE *file, const char *path, uint64_t bytes,
                      char piece[PIECE_BYTES], double timeout_s, struct error *error) {
    while (bytes > 0) {
        const size_t some = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        RETURN_IF(read_piece(piece, some, file, path, error));
        const struct piece sent = {piece, some};
        RETURN_IF(endpoint_send(endpoint, "a file", &sent, 1, timeout_s, error));
        bytes -= some;
    }
    return OK;
}

/* The frame's header, for which the file is read once more where its bytes may change on the way. */
static int seal_file(struct frame_header *header, const struct endpoint *endpoint, const char *name,
                     FILE *file, const char *path, uint64_t bytes, char piece[PIECE_BYTES],
                     struct error *error) {
    frame_seal(header, endpoint, &(struct piece){name, TREE_NAME_BYTES}, 1);
    header->bytes += bytes;
    while (bytes > 0 && !endpoint_is_intact(endpoint)) {
        const size_t some = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
        RETURN_IF(read_piece(piece, some, file, path, error));
        header->checksum = crc32c(header->checksum, piece, some);
        bytes -= some;
    }
    rewind(file);
    return OK;
}

static int send_file(struct endpoint *endpoint, const char *folder, const char *name, char piece[PIECE_BYTES],
                     double timeout_s, struct error *error) {
    char path[PATH_BYTES];
    struct stat status;
    uint8_t header[FRAME_HEADER_BYTES];
    RETURN_IF(file_join(path, folder, name, error));
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        const int why = errno;
        if (file) fclose(file);
        return error_set(error, ERROR_FILE, "%s: cannot be read: %s", path, strerror(why));
    }
    const uint64_t bytes = (uint64_t)status.st_size;
    struct frame_header head = {.type = FRAME_FILE};
    const struct piece begin[] = {{header, sizeof header}, {name, TREE_NAME_BYTES}};
    int code = seal_file(&head, endpoint, name, file, path, bytes, piece, error);
    frame_pack_header(header, &head);
    if (code == OK) code = endpoint_send(endpoint, "a file", begin, 2, timeout_s, error);
    if (code == OK) code = send_bytes(endpoint, file, path, bytes, piece, timeout_s, error);
    fclose(file);
    return code;
}

int run_files_send(struct endpoint *endpoint, const char *folder, const struct tree *tree, const char *last,
                   double timeout_s, struct error *error) {
    char *piece = NULL;
    RETURN_IF(memory_array(&piece, PIECE_BYTES, "a piece of a file", error));
    int code = OK;
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < tree->count && code == OK; i++)
            if ((strcmp(tree->names[i], last) == 0) == late)
                code = send_file(endpoint, folder, tree->names[i], piece, timeout_s, error);
    memory_free(piece);
    return code;
}

/* --- receiving --- */

struct arriving {
    struct file_new files[TREE_FILES]; /* [count] */
    int count;
    uint64_t left; /* bytes that are still accepted */
    char piece[PIECE_BYTES];
};

static int receive_bytes(struct endpoint *endpoint, struct frame_header *header, struct arriving *arriving,
                         struct file_new *file, double timeout_s, struct error *error) {
    while (header->read < header->bytes) {
        const uint64_t left = header->bytes - header->read;
        const size_t some = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        RETURN_IF(frame_read_part(endpoint, header, arriving->piece, some, timeout_s, error));
        if (fwrite(arriving->piece, 1, some, file->stream) != some)
            return error_set(error, ERROR_FILE, "%s: not written: %s", file->part, strerror(errno));
    }
    return OK;
}

static int make_folder_of(const char *path, struct error *error) {
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return file_make_folder(folder, error);
}

/* Whether it is, or lies below, a file that came before or was there, or is a folder: a peer's fault, not
 * that of the disk. */
static bool clashes(const struct arriving *arriving, const char *folder, const char *path) {
    char above[PATH_BYTES];
    snprintf(above, sizeof above, "%s", path);
    for (int i = 0; i < arriving->count; i++) {
        const char *other = arriving->files[i].path;
        const size_t length = strlen(other);
        if (strncmp(other, path, length) == 0 && (path[length] == '\0' || path[length] == '/')) return true;
    }
    for (char *slash; (slash = strrchr(above, '/')) != NULL && slash > above + strlen(folder);) {
        *slash = '\0';
        if (file_exists(above) && !file_is_folder(above)) return true;
    }
    return file_is_folder(path);
}

static int receive_file(struct endpoint *endpoint, const char *folder, struct arriving *arriving,
                        double timeout_s, struct error *error) {
    struct frame_header header;
    char name[TREE_NAME_BYTES], path[PATH_BYTES];
    const char *peer = endpoint_name(endpoint);
    RETURN_IF(
        frame_read_header(endpoint, "a file", TREE_NAME_BYTES + arriving->left, &header, timeout_s, error));
    if (header.type != FRAME_FILE || header.bytes < TREE_NAME_BYTES)
        return error_set(error, ERROR_PEER, "%s: %s of %llu bytes, expected a file", peer,
                         frame_type_words(header.type), (unsigned long long)header.bytes);
    RETURN_IF(frame_read_part(endpoint, &header, name, sizeof name, timeout_s, error));
    if (memchr(name, '\0', sizeof name) == NULL || !tree_is_name(name))
        return error_set(error, ERROR_PEER, "%s: sent a file whose name is none of a run's", peer);
    RETURN_IF(file_join(path, folder, name, error));
    if (clashes(arriving, folder, path))
        return error_set(error, ERROR_PEER, "%s: sent %s, where another file or a folder is", peer, name);
    RETURN_IF(make_folder_of(path, error));
    RETURN_IF(file_create(&arriving->files[arriving->count], path, error));
    struct file_new *file = &arriving->files[arriving->count++];
    arriving->left -= header.bytes - TREE_NAME_BYTES;
    RETURN_IF(receive_bytes(endpoint, &header, arriving, file, timeout_s, error));
    return file_finish(file, error); /* so it takes no descriptor while the others come */
}

int run_files_receive(struct endpoint *endpoint, const char *folder, int count, double timeout_s,
                      struct error *error) {
    struct arriving *arriving = NULL;
    if (count > TREE_FILES)
        return error_set(error, ERROR_PEER, "%s: a run of %d files, expected at most %d",
                         endpoint_name(endpoint), count, TREE_FILES);
    RETURN_IF(memory_array(&arriving, 1, "the files of a run", error));
    arriving->left = RUN_FILES_BYTES;
    int code = file_make_folder(folder, error);
    for (int i = 0; i < count && code == OK; i++)
        code = receive_file(endpoint, folder, arriving, timeout_s, error);
    for (int i = 0; i < arriving->count && code == OK; i++) code = file_commit(&arriving->files[i], error);
    for (int i = 0; i < arriving->count; i++) file_abandon(&arriving->files[i]);
    memory_free(arriving);
    return code;
}
