/* HTML being written to a file. Markup goes out as it is, every text of others escaped, so that a name may
 * hold anything. The page is well-formed XML, too: every element is closed, every value quoted. */
#ifndef TRAINER_REPORT_HTML_H
#define TRAINER_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

struct html {
    FILE *file; /* borrowed; whoever commits it finds its errors */
};

/* Markup of our own, with numbers in it. */
__attribute__((format(printf, 2, 3))) void html_put(struct html *html, const char *format, ...);
/* A text, escaped; what is no UTF-8, and no character that a page may have, becomes U+FFFD. */
void html_text(struct html *html, const char *text);
/* The same, put together first; cut after some 4,000 bytes. */
__attribute__((format(printf, 2, 3))) void html_say(struct html *html, const char *format, ...);
/* A whole element: `tag` with its attributes, as in "p class=\"note\"", around the text. */
__attribute__((format(printf, 3, 4))) void html_element(struct html *html, const char *tag,
                                                        const char *format, ...);

/* Bytes in base64, as they come: {.html = html} to begin with. */
struct base64 {
    struct html *html;
    uint32_t bits;
    int held; /* bytes of bits */
};
void base64_byte(struct base64 *out, int byte);
void base64_end(struct base64 *out); /* after the last one */

#endif
