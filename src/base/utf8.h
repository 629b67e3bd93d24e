/* UTF-8, as far as JSON needs it (RFC 3629). */
#ifndef TRAINER_BASE_UTF8_H
#define TRAINER_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the well-formed character that `text`, ended by 0, begins with: 1 to 4, or 0 when it is not
 * well-formed: cut short, longer than it need be, a surrogate, or beyond U+10FFFF. */
static inline size_t utf8_length(const char *text) {
    const unsigned char first = (unsigned char)text[0];
    if (first < 0x80) return 1;
    if (first < 0xC2 || first > 0xF4) return 0;
    const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80) return 0;
    const unsigned char second = (unsigned char)text[1];
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0)) return 0;
    if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90)) return 0;
    return length;
}

/* Writes a code point below 0x110000 to out[4]; returns the bytes written. */
static inline size_t utf8_write(char *out, int32_t code) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    const size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)((length == 2 ? 0xC0 : length == 3 ? 0xE0 : 0xF0) | code);
    return length;
}

#endif
