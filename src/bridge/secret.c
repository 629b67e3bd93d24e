/* See secret.h. */
#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/file.h"

enum { DIGITS = SECRET_DIGITS, FILE_MOST = DIGITS + 64 /* of space */ };

/* The value of a hexadecimal digit, or -1. */
static int digit(char letter) {
    static const char digits[] = "0123456789abcdef";
    const char *at = letter ? strchr(digits, letter | 0x20) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Space around the digits is fine. */
static bool parse(struct secret *out, const char *text) {
    static const char space[] = " \t\r\n";
    text += strspn(text, space);
    const size_t length = strcspn(text, space);
    if (length != DIGITS || text[length + strspn(text + length, space)] != '\0') return false;
    for (int i = 0; i < DIGITS; i += 2) {
        const int high = digit(text[i]), low = digit(text[i + 1]);
        if (high < 0 || low < 0) return false;
        out->key[i / 2] = (uint8_t)(16 * high + low);
    }
    out->there = true;
    return true;
}

static int read_open(struct secret *out, const char *path, int file, struct error *error) {
    char text[FILE_MOST + 2] = ""; /* one byte more than a key has is no key */
    const ssize_t bytes = read(file, text, FILE_MOST + 1);
    if (bytes < 0) return error_set(error, ERROR_FILE, "%s: %s", path, strerror(errno));
    if (strlen(text) == (size_t)bytes && parse(out, text)) return OK;
    return error_set(error, ERROR_FILE,
                     "%s: expected a key of %d hexadecimal digits, as trainer keygen makes it", path, DIGITS);
}

/* For nobody yet: what is wrong with the files is said before anything else is made. */
static int try_certificates(const struct secret *secret, struct error *error) {
    struct world *world = NULL;
    RETURN_IF(world_open_threads(&world, error));
    const int code = endpoint_certify(world, &secret->certificates, error);
    world_close(world);
    return code;
}

/* All three, and no key beside them. */
static int find_certificates(struct secret *out, const struct config *settings, const char *environment,
                             struct error *error) {
    const struct {
        const char *option, *value;
    } files[] = {
        {"--tls-cert", settings->tls_cert}, {"--tls-key", settings->tls_key}, {"--tls-ca", settings->tls_ca}};
    const char *given = NULL, *missing = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char **which = files[i].value[0] ? &given : &missing;
        if (!*which) *which = files[i].option;
    }
    if (!given) return OK;
    if (missing)
        return error_set(error, ERROR_USAGE, "%s without %s: expected --tls-cert, --tls-key and --tls-ca",
                         given, missing);
    if (settings->secret_file[0] || environment)
        return error_set(error, ERROR_USAGE, "%s and %s: expected certificates or a key, not both", given,
                         settings->secret_file[0] ? "--secret-file" : SECRET_VARIABLE);
    out->certificates = (struct endpoint_certificates){
        .certificate = settings->tls_cert, .key = settings->tls_key, .ca = settings->tls_ca};
    out->there = true;
    return try_certificates(out, error);
}

int secret_find(struct secret *out, const struct config *settings, const char *environment,
                struct error *error) {
    const char *path = settings->secret_file;
    *out = (struct secret){0};
    RETURN_IF(find_certificates(out, settings, environment, error));
    if (path[0]) {
        int file;
        RETURN_IF(file_open_private(path, &file, error));
        const int code = read_open(out, path, file, error);
        close(file);
        return code;
    }
    return environment ? secret_read(out, environment, SECRET_VARIABLE, error) : OK;
}

int secret_read(struct secret *out, const char *digits, const char *where, struct error *error) {
    *out = (struct secret){0};
    if (parse(out, digits)) return OK;
    return error_set(error, ERROR_USAGE, "%s: expected a key of %d hexadecimal digits", where, DIGITS);
}

int secret_new(struct secret *out, struct error *error) {
    *out = (struct secret){0};
    RETURN_IF(secret_draw(out->key, sizeof out->key, error));
    out->there = true;
    return OK;
}

void secret_text(const struct secret *secret, char digits[SECRET_DIGITS + 1]) {
    for (int i = 0; i < ENDPOINT_KEY_BYTES; i++)
        snprintf(digits + 2 * i, 3, "%02x", (unsigned)secret->key[i]);
}

int secret_use(const struct secret *secret, bool insecure, struct world *world, struct error *error) {
    if (secret->certificates.certificate) return endpoint_certify(world, &secret->certificates, error);
    if (secret->there) return endpoint_encrypt(world, secret->key, error);
    if (insecure) endpoint_allow_clear(world);
    return OK;
}

int secret_draw(void *bytes, size_t count, struct error *error) {
    if (getrandom(bytes, count, 0) == (ssize_t)count) return OK;
    return error_set(error, ERROR_DEVICE, "no random numbers: %s", strerror(errno));
}

int secret_make(const char *path, struct error *error) {
    struct secret secret;
    char text[DIGITS + 1];
    RETURN_IF(secret_new(&secret, error));
    secret_text(&secret, text);
    text[DIGITS] = '\n';
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0)
        return error_set(error, ERROR_FILE,
                         errno == EEXIST ? "%s already exists; a key is never overwritten"
                                         : "%s: cannot be written",
                         path);
    const bool written = write(file, text, sizeof text) == sizeof text && fsync(file) == 0;
    if (close(file) == 0 && written) return OK;
    unlink(path);
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
}
