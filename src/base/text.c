/* See text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "memory.h"

struct text text_into(char *array, size_t bytes) {
    array[0] = '\0';
    return (struct text){.bytes = array, .room = bytes};
}

struct text text_growing(struct error *error) {
    return (struct text){.grows = true, .error = error};
}

/* Room for so many more characters and a 0, as far as it can be had. */
static size_t make_room(struct text *text, size_t count) {
    if (text->grows && !text->cut && text->room - text->used <= count) {
        const size_t room = 2 * (text->room + count) + 256;
        text->cut = memory_grow(&text->bytes, text->room, room, "a text", text->error) != OK;
        if (!text->cut) text->room = room;
    }
    return text->cut || text->room == 0 ? 0 : text->room - text->used - 1;
}

void text_add_bytes(struct text *text, const char *bytes, size_t count) {
    const size_t room = make_room(text, count), taken = count < room ? count : room;
    if (taken < count) text->cut = true;
    if (taken == 0) return;
    memcpy(text->bytes + text->used, bytes, taken);
    text->used += taken;
    text->bytes[text->used] = '\0';
}

static void add_list(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int count = vsnprintf(NULL, 0, format, again);
    va_end(again);
    const size_t room = count > 0 ? make_room(text, (size_t)count) : 0;
    if (count > 0 && (size_t)count > room) text->cut = true;
    if (room == 0) return;
    vsnprintf(text->bytes + text->used, room + 1, format, arguments);
    text->used += (size_t)count < room ? (size_t)count : room;
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add_list(text, format, arguments);
    va_end(arguments);
}

void text_item(struct text *text, const char *separator, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (text->used > 0) text_add_bytes(text, separator, strlen(separator));
    add_list(text, format, arguments);
    va_end(arguments);
}

int text_end(const struct text *text) {
    return text->cut && text->error ? text->error->code : OK;
}

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("_./:=,+@%-", c) != NULL);
}

const char *text_word(const char *text, char *out, size_t bytes) {
    struct text word = text_into(out, bytes);
    bool plain = text[0] != '\0';
    for (const char *c = text; *c; c++) plain = plain && is_plain(*c);
    if (!plain) text_add(&word, "'");
    for (const char *c = text; *c; c++) text_add(&word, *c == '\'' ? "'\\''" : "%c", *c);
    if (!plain) text_add(&word, "'");
    return out;
}
