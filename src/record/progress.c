/* Progress. What it says is one text; a terminal gets it as a bar over the line that stands there, everything
 * else as a line now and then. The clock is the caller's count of seconds. */
#include "progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../base/page.h"
#include "../base/text.h"
#include "../world/world.h"
#include "digits.h"

enum { BAR_LEAST = 8, BAR_MOST = 40, FOLDED_BYTES = 2 * PROGRESS_BYTES };
static const char before_line[] = "trainer: ";
static const double terminal_every_s = 0.1, lines_every_s = 10, say_s = 1;

void progress_open(struct progress *progress, FILE *file, bool quiet) {
    *progress = (struct progress){.always = file};
    if (quiet || !file) return;
    const char *kind = getenv("TERM");
    progress->file = file;
    progress->terminal = isatty(fileno(file)) == 1 && !(kind && strcmp(kind, "dumb") == 0);
}

/* What there is to say beside the bar, in the order in which it is shown. */
enum piece { EPOCH, SHARE, RATE, LOSS, LEFT, PIECES };
enum { PIECE_BYTES = 64 };

static void left_text(char *out, double seconds) {
    if (seconds < 99.5)
        snprintf(out, PIECE_BYTES, "%.0f s left", seconds);
    else if (seconds < 99.5 * 60)
        snprintf(out, PIECE_BYTES, "%.0f min left", seconds / 60);
    else
        snprintf(out, PIECE_BYTES, "%.1f h left", fmin(seconds / 3600, 1e6));
}

/* Joined by two blanks; one behind the epoch and before what the bar goes between. */
static int width_of(char pieces[PIECES][PIECE_BYTES]) {
    int width = 0;
    for (int p = 0; p < PIECES; p++)
        if (pieces[p][0] != '\0')
            width += (int)strlen(pieces[p]) + (p == EPOCH || width == 0 ? 0 : p == SHARE ? 1 : 2);
    return width;
}

/* Shortens the rate, then leaves out one piece after the other, the least telling first: how far, and how
 * long still, stays to the end. */
static void fit(char pieces[PIECES][PIECE_BYTES], const char *short_rate, int columns) {
    static const enum piece order[] = {EPOCH, RATE, LOSS, LEFT};
    if (columns > 0 && width_of(pieces) > columns && pieces[RATE][0] != '\0')
        snprintf(pieces[RATE], PIECE_BYTES, "%s", short_rate);
    for (size_t i = 0; i < sizeof order / sizeof *order && columns > 0 && width_of(pieces) > columns; i++)
        pieces[order[i]][0] = '\0';
}

/* `width` columns of "[===>   ] ", or nothing where that is not worth while. */
static void append_bar(struct text *text, int width, double share) {
    const int bar = width - 3 > BAR_MOST ? BAR_MOST : width - 3, filled = (int)(share * bar);
    if (bar < BAR_LEAST) return;
    text_add(text, "[");
    for (int i = 0; i < bar; i++)
        text_add(text, "%c", i + 1 < filled || filled == bar ? '=' : i + 1 == filled ? '>' : ' ');
    text_add(text, "] ");
}

const char *progress_text(char *out, size_t bytes, int columns, double done, double total, double per_second,
                          int epoch, int epochs, double loss) {
    const double share = total > 0 ? fmin(fmax(done / total, 0), 1) : 0;
    char pieces[PIECES][PIECE_BYTES] = {0}, rate[DIGITS_BYTES], short_rate[PIECE_BYTES] = "";
    struct text text = text_into(out, bytes);
    snprintf(pieces[EPOCH], PIECE_BYTES, "epoch %d/%d", epoch, epochs);
    snprintf(pieces[SHARE], PIECE_BYTES, "%.0f %%", floor(share * 100));
    if (per_second > 0) {
        digits_thousands(rate, per_second);
        snprintf(pieces[RATE], PIECE_BYTES, "%s examples/s", rate);
        snprintf(short_rate, PIECE_BYTES, "%s/s", rate);
    }
    if (!isnan(loss)) snprintf(pieces[LOSS], PIECE_BYTES, "loss %.4g", loss);
    if (per_second > 0 && done < total) left_text(pieces[LEFT], (total - done) / per_second);
    fit(pieces, short_rate, columns);

    const int room = columns - width_of(pieces);
    if (pieces[EPOCH][0] != '\0') text_add(&text, "%s ", pieces[EPOCH]);
    append_bar(&text, room, share);
    for (int p = SHARE; p < PIECES; p++)
        if (pieces[p][0] != '\0') text_add(&text, "%s%s", p == SHARE ? "" : "  ", pieces[p]);
    if (columns > 0 && (size_t)columns < bytes && text.used > (size_t)columns) out[columns] = '\0';
    return out;
}

void progress_show(struct progress *progress, double done, double total, double seconds, int epoch,
                   int epochs, double loss) {
    if (!progress->file) return;
    if (!progress->started) {
        progress->started = true;
        progress->first_done = done;
        progress->first_s = seconds;
        progress->next_s = seconds + (progress->terminal ? 0 : lines_every_s);
    }
    const bool complete =
        done >= total && !isinf(progress->next_s) && (progress->terminal || progress->drawn[0]);
    if (seconds < progress->next_s && !complete) return;
    progress->next_s =
        complete ? INFINITY : seconds + (progress->terminal ? terminal_every_s : lines_every_s);

    const double passed = seconds - progress->first_s;
    const double per_second = passed > 0 ? (done - progress->first_done) / passed : 0;
    const int columns =
        progress->terminal ? page_columns(progress->file) - 1 : 0; /* the last column would wrap */
    if (!world_await_room(fileno(progress->file), 0)) return;
    progress_text(progress->drawn, sizeof progress->drawn, columns, done, total, per_second, epoch, epochs,
                  loss);
    fprintf(progress->file, progress->terminal ? "\r%s\033[K" : "%s\n", progress->drawn);
    fflush(progress->file);
    progress->shown = progress->terminal;
}

void progress_redraw(struct progress *progress) {
    if (progress->drawn[0] != '\0') progress_status(progress, progress->drawn);
}

void progress_status(struct progress *progress, const char *text) {
    if (!progress->file || !progress->terminal || !world_await_room(fileno(progress->file), 0)) return;
    fprintf(progress->file, "\r%.*s\033[K", page_columns(progress->file) - 1, text);
    fflush(progress->file);
    progress->shown = true;
}

void progress_clear(struct progress *progress) {
    if (!progress->file || !progress->shown || !world_await_room(fileno(progress->file), 0)) return;
    fputs("\r\033[K", progress->file);
    fflush(progress->file);
    progress->shown = false;
}

static void say(struct progress *progress, FILE *file, const char *format, va_list arguments) {
    char text[PROGRESS_BYTES], lines[FOLDED_BYTES];
    const int indent = (int)sizeof before_line - 1;
    struct text out = text_into(lines, sizeof lines);
    if (!world_await_room(fileno(file), world_interrupted() ? 0 : say_s)) return;
    progress_clear(progress);
    vsnprintf(text, sizeof text, format, arguments);
    /* A file's name can hold anything; a log line is one line. */
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    if (progress->terminal)
        page_fold(&out, page_on(file).columns, indent, indent, text);
    else
        text_add(&out, "%s", text);
    fprintf(file, "%s%s\n", before_line, lines);
    fflush(file);
}

void progress_say(struct progress *progress, const char *format, ...) {
    va_list arguments;
    if (!progress->file) return;
    va_start(arguments, format);
    say(progress, progress->file, format, arguments);
    va_end(arguments);
}

void progress_warn_of(const char *words) {
    struct progress progress;
    if (!*words) return;
    progress_open(&progress, stderr, false);
    progress_warn(&progress, "%s", words);
}

void progress_warn(struct progress *progress, const char *format, ...) {
    va_list arguments;
    if (!progress->always) return;
    va_start(arguments, format);
    say(progress, progress->always, format, arguments);
    va_end(arguments);
}
