/* Downloads: one transfer after another on one handle of libcurl, each a GET for the bytes from the file's
 * end on. The server's answer is checked before its first byte is written: the rest from the right offset
 * (206), or the whole file (200); anything else leaves the file unchanged. */
#include "download.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "../base/memory.h"
#include "world.h"

enum { TRIES = 20, REDIRECTIONS = 5, RANGE_BYTES = 32, WHERE_BYTES = 160 };
static const double show_every_s = 0.1;

struct downloader {
    CURL *curl;
    char words[CURL_ERROR_SIZE]; /* libcurl's on its last failure */
};

/* One transfer. */
struct transfer {
    const struct download *download;
    CURL *curl;
    struct error *error;
    long long start;       /* where the bytes asked for begin */
    long long have;        /* bytes in the file */
    long long range_start; /* what the answer says: Content-Range; -1: nothing */
    long long range_total;
    bool begun; /* its first bytes were looked at */
    double shown_s;
};

int downloader_open(struct downloader **out, struct error *error) {
    *out = NULL;
    struct downloader *downloader = NULL;
    RETURN_IF(memory_array(&downloader, 1, "a downloader", error));
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) {
        downloader->curl = curl_easy_init();
        if (downloader->curl == NULL) curl_global_cleanup();
    }
    if (downloader->curl == NULL) {
        memory_free(downloader);
        return error_set(error, ERROR_DEVICE, "libcurl does not start");
    }
    *out = downloader;
    return OK;
}

void downloader_close(struct downloader *downloader) {
    if (downloader == NULL) return;
    curl_easy_cleanup(downloader->curl);
    curl_global_cleanup();
    memory_free(downloader);
}

/* --- the file --- */

static int cannot_write(const struct download *download, struct error *error) {
    return error_set(error, ERROR_FILE, "%s: cannot be written: %s", download->name, strerror(errno));
}

static int file_size(const struct download *download, long long *size, struct error *error) {
    *size = fseek(download->file, 0, SEEK_END) == 0 ? ftell(download->file) : -1;
    if (*size < 0) return cannot_write(download, error);
    return OK;
}

static int empty_file(const struct download *download, struct error *error) {
    if (ftruncate(fileno(download->file), 0) == 0 && fseek(download->file, 0, SEEK_SET) == 0) return OK;
    return cannot_write(download, error);
}

/* --- an answer --- */

/* "Content-Range: bytes 1000-2193/2194" or "bytes * /2194" (without the blank); a status line begins anew. */
static size_t read_header(char *bytes, size_t one, size_t count, void *argument) {
    static const char name[] = "content-range:";
    struct transfer *transfer = argument;
    char text[WHERE_BYTES];
    const size_t length = count < sizeof text - 1 ? count : sizeof text - 1;
    (void)one; /* always 1 */
    memcpy(text, bytes, length);
    text[length] = '\0';
    if (strncmp(text, "HTTP/", 5) == 0) transfer->range_start = transfer->range_total = -1;
    if (strncasecmp(text, name, sizeof name - 1) != 0) return count;
    const char *start = strpbrk(text + sizeof name - 1, "0123456789*"), *slash = strchr(text, '/');
    if (start != NULL && *start != '*') transfer->range_start = strtoll(start, NULL, 10);
    if (slash != NULL && slash[1] >= '0' && slash[1] <= '9')
        transfer->range_total = strtoll(slash + 1, NULL, 10);
    return count;
}

static long status_of(const struct transfer *transfer) {
    long status = 0;
    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* What the answer says of its length, or -1. */
static long long announced(const struct transfer *transfer) {
    curl_off_t length = -1;
    curl_easy_getinfo(transfer->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    return (long long)length;
}

/* The answer to who asks for what comes after the last byte. */
static bool is_past_end(const struct transfer *transfer) {
    return transfer->start > 0 && status_of(transfer) == 416;
}

static int check_status(const struct transfer *transfer, struct error *error) {
    const struct download *download = transfer->download;
    const long status = status_of(transfer);
    if (status != 200 && status != 206)
        return error_set(error, ERROR_FILE, "%s: HTTP status %ld, expected 200", download->address, status);
    if (status == 206 && transfer->range_start >= 0 && transfer->range_start != transfer->start)
        return error_set(error, ERROR_PEER, "%s: bytes from %lld on, expected those from %lld on",
                         download->address, transfer->range_start, transfer->start);
    return OK;
}

/* What begins here belongs to the file, and has its size. */
static int begin(struct transfer *transfer, struct error *error) {
    const struct download *download = transfer->download;
    transfer->begun = true;
    RETURN_IF(check_status(transfer, error));
    const long long start = status_of(transfer) == 206 ? transfer->start : 0;
    const long long length = announced(transfer), whole = start + length;
    if (length >= 0 && download->bytes > 0 && whole != download->bytes)
        return error_set(error, ERROR_FILE, "%s: %lld bytes, expected %lld", download->address, whole,
                         download->bytes);
    if (start == transfer->have) return OK;
    transfer->have = 0;
    return empty_file(download, error);
}

static size_t take_bytes(char *bytes, size_t one, size_t count, void *argument) {
    struct transfer *transfer = argument;
    const struct download *download = transfer->download;
    (void)one;
    if (is_past_end(transfer)) return count; /* the words of a page that nobody reads */
    if (!transfer->begun && begin(transfer, transfer->error) != OK) return 0;
    if (transfer->have + (long long)count > download->most) {
        error_set(transfer->error, ERROR_FILE, "%s: more than %lld bytes", download->address, download->most);
        return 0;
    }
    errno = 0;
    const size_t written = fwrite(bytes, 1, count, download->file);
    transfer->have += (long long)written;
    if (written < count) cannot_write(download, transfer->error);
    return written;
}

static int show(void *argument, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up) {
    struct transfer *transfer = argument;
    curl_off_t passed_us = 0;
    (void)up_total;
    (void)up;
    curl_easy_getinfo(transfer->curl, CURLINFO_TOTAL_TIME_T, &passed_us);
    const double passed_s = 1e-6 * (double)passed_us;
    if (transfer->begun && passed_s - transfer->shown_s >= show_every_s) {
        transfer->shown_s = passed_s;
        const long long all = total > 0 ? transfer->have - (long long)now + (long long)total : 0;
        transfer->download->progress(transfer->download->argument, transfer->have, all,
                                     (double)now / passed_s);
    }
    return world_interrupted() ? 1 : 0;
}

/* --- a transfer --- */

static void set_options(struct downloader *downloader, struct transfer *transfer, const char *range) {
    CURL *curl = downloader->curl;
    const struct download *download = transfer->download;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, download->address);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "trainer/" TRAINER_VERSION);
    curl_easy_setopt(curl, CURLOPT_RANGE, range);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, (long)REDIRECTIONS);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)download->timeout_s);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)download->timeout_s);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, downloader->words);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, read_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, show);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
}

/* What a transfer came to. *again: it broke off, but a new one may bring the rest. */
static int judge(struct downloader *downloader, struct transfer *transfer, CURLcode result, bool *again,
                 struct error *error) {
    const struct download *download = transfer->download;
    curl_off_t came = 0;
    *again = false;
    curl_easy_getinfo(transfer->curl, CURLINFO_SIZE_DOWNLOAD_T, &came);
    if (error->code != OK) return error->code;
    if (result == CURLE_ABORTED_BY_CALLBACK)
        return error_set(error, ERROR_INTERRUPTED,
                         "interrupted after %lld bytes of %s; the same command goes on from there",
                         transfer->have, download->name);
    if (result == CURLE_OK && is_past_end(transfer)) {
        if (transfer->range_total == transfer->start) return OK; /* there is no more */
        *again = true;
        return empty_file(download, error);
    }
    if (result == CURLE_OK) RETURN_IF(check_status(transfer, error));
    /* Without a length in its head an answer that is cut looks like one that has ended. */
    const bool is_short = announced(transfer) < 0 && transfer->have < download->bytes;
    if (result == CURLE_OK && !is_short) return OK;
    if (result == CURLE_OPERATION_TIMEDOUT && transfer->begun)
        return error_set(error, ERROR_PEER,
                         "%s: nothing came for %d s, after %lld bytes; the same command goes on from there",
                         download->address, download->timeout_s, transfer->have);
    *again = came > 0;
    if (*again) return OK;
    const char *words = downloader->words[0] != '\0' ? downloader->words : curl_easy_strerror(result);
    return error_set(error, ERROR_PEER, "%s: %s", download->address,
                     result == CURLE_OK ? "the connection was cut" : words);
}

static int run_once(struct downloader *downloader, const struct download *download, long long *kept,
                    bool *again, struct error *error) {
    struct transfer transfer = {
        .download = download, .curl = downloader->curl, .error = error, .range_start = -1, .range_total = -1};
    char range[RANGE_BYTES];
    RETURN_IF(file_size(download, &transfer.start, error));
    transfer.have = transfer.start;
    snprintf(range, sizeof range, "%lld-", transfer.start);
    set_options(downloader, &transfer, transfer.start > 0 ? range : NULL);
    downloader->words[0] = '\0';
    const CURLcode result = curl_easy_perform(downloader->curl);
    const int code = judge(downloader, &transfer, result, again, error);
    long long now = 0;
    RETURN_IF(file_size(download, &now, error));
    const bool anew = transfer.begun && status_of(&transfer) == 200;
    if (anew || now < *kept) *kept = 0;
    return code;
}

int download_run(struct downloader *downloader, const struct download *download, long long *kept,
                 struct error *error) {
    bool again = true;
    RETURN_IF(file_size(download, kept, error));
    for (int i = 0; i < TRIES && again; i++) RETURN_IF(run_once(downloader, download, kept, &again, error));
    if (!again) return OK;
    return error_set(error, ERROR_PEER, "%s: the connection was cut %d times", download->address, TRIES);
}
