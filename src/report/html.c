/* See html.h. */
#include "html.h"

#include <stdarg.h>
#include <string.h>
#include "../base/option.h"
#include "../base/utf8.h"

enum { SAY_BYTES = 4096 + PLUGIN_TEXT_BYTES }; /* a setting as long as one may be, and words around it */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

void html_put(struct html *html, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vfprintf(html->file, format, values);
    va_end(values);
}

/* Allowed in XML 1.0, of which neither U+FFFE nor U+FFFF are. */
static int is_allowed(const char *character, size_t bytes) {
    const unsigned char first = (unsigned char)*character;
    if (bytes == 1) return (first >= 0x20 && first != 0x7f) || first == '\t' || first == '\n';
    return !(bytes == 3 && memcmp(character, "\xEF\xBF", 2) == 0 && (unsigned char)character[2] >= 0xBE);
}

static const char *entity_of(char character) {
    switch (character) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

void html_text(struct html *html, const char *text) {
    while (*text) {
        const size_t bytes = utf8_length(text);
        const char *entity = entity_of(*text);
        if (entity)
            fputs(entity, html->file);
        else if (bytes == 0 || !is_allowed(text, bytes))
            fputs(replacement, html->file);
        else
            fwrite(text, 1, bytes, html->file);
        text += bytes > 0 ? bytes : 1;
    }
}

static void say(struct html *html, const char *format, va_list values) {
    char words[SAY_BYTES];
    vsnprintf(words, sizeof words, format, values);
    html_text(html, words);
}

void html_say(struct html *html, const char *format, ...) {
    va_list values;
    va_start(values, format);
    say(html, format, values);
    va_end(values);
}

void html_element(struct html *html, const char *tag, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fprintf(html->file, "<%s>", tag);
    say(html, format, values);
    fprintf(html->file, "</%.*s>\n", (int)strcspn(tag, " "), tag);
    va_end(values);
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_byte(struct base64 *out, int byte) {
    out->bits = out->bits << 8 | (uint32_t)(byte & 0xff);
    if (++out->held < 3) return;
    for (int shift = 18; shift >= 0; shift -= 6)
        fputc(base64_digits[out->bits >> shift & 63], out->html->file);
    out->bits = 0;
    out->held = 0;
}

/* One byte becomes two digits and two fillers, two become three and one. */
void base64_end(struct base64 *out) {
    const int held = out->held;
    if (held == 0) return;
    const uint32_t bits = out->bits << 8 * (3 - held);
    for (int digit = 0; digit < 4; digit++)
        fputc(digit <= held ? base64_digits[bits >> (18 - 6 * digit) & 63] : '=', out->html->file);
    *out = (struct base64){.html = out->html};
}
