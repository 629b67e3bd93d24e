/* Checks GIF files to the end of their first frame, the only one that is decoded. A code of LZW, 12 bits,
 * stands for up to 4,096 pixels, and stb_image goes through all of them, however many pixels the frame has;
 * what is missing it leaves transparent. So the pixels are counted here first. (CompuServe, "Graphics
 * Interchange Format, Version 89a"; numbers are little-endian.) */
#include <stdbool.h>
#include <string.h>
#include "../base/bytes.h"
#include "picture_check.h"

/* A reader of the file. */
struct gif {
    const char *name;
    const uint8_t *bytes;
    size_t count, at;
    struct error *error;
};

static int ends(const struct gif *gif) {
    return error_set(gif->error, ERROR_FILE, "%s: the GIF ends too early, after %zu bytes", gif->name,
                     gif->count);
}

static int damaged(const struct gif *gif, const char *what) {
    return error_set(gif->error, ERROR_FILE, "%s: damaged GIF: %s at byte %zu", gif->name, what, gif->at);
}

static int skip(struct gif *gif, size_t bytes) {
    if (bytes > gif->count - gif->at) return ends(gif);
    gif->at += bytes;
    return OK;
}

static unsigned number_at(const struct gif *gif, size_t at) {
    return (unsigned)bytes_little(gif->bytes + at, 2);
}

/* Bytes of a table of colours, as a flag byte says. */
static size_t table_bytes(uint8_t flags) {
    return flags & 0x80 ? (size_t)3 << ((flags & 7) + 1) : 0;
}

/* Blocks, each after its length, to the empty one. */
static int skip_blocks(struct gif *gif) {
    for (;;) {
        if (gif->at == gif->count) return ends(gif);
        const size_t length = gif->bytes[gif->at++];
        if (length == 0) return OK;
        RETURN_IF(skip(gif, length));
    }
}

/* --- pixels, counted --- */

enum { CODES = 4096, CODE_BITS = 12 };

struct codes {
    uint16_t pixels[CODES]; /* that a code stands for: at most as many as there are codes */
    int clear, next, bits;  /* the code that forgets the others; the next one to be made; of a code now */
    int last;               /* -1: none */
    uint64_t found;
};

static void forget(struct codes *codes, int least_bits) {
    codes->clear = 1 << least_bits;
    codes->next = codes->clear + 2;
    codes->bits = least_bits + 1;
    codes->last = -1;
}

/* False: a code that cannot be. */
static bool take(struct codes *codes, int code) {
    const bool makes = codes->last >= 0 && codes->next < CODES;
    if (makes) codes->pixels[codes->next] = (uint16_t)(codes->pixels[codes->last] + 1);
    if (code >= codes->next + makes || code == codes->clear) return false;
    codes->next += makes;
    codes->found += codes->pixels[code];
    if (codes->next == 1 << codes->bits && codes->bits < CODE_BITS) codes->bits++;
    codes->last = code;
    return true;
}

/* Bits of the blocks, lowest first. */
struct bits {
    size_t end; /* of the block at gif->at */
    uint32_t held;
    int holds;
};

/* *code = the next so many bits; -1: the blocks are over. */
static int next_code(struct gif *gif, struct bits *bits, int wanted, int *code) {
    for (; bits->holds < wanted; bits->holds += 8) {
        if (gif->at == bits->end) {
            if (gif->at == gif->count) return ends(gif);
            const size_t length = gif->bytes[gif->at++];
            *code = -1;
            if (length == 0) return OK;
            if (length > gif->count - gif->at) return ends(gif);
            bits->end = gif->at + length;
        }
        bits->held |= (uint32_t)gif->bytes[gif->at++] << bits->holds;
    }
    *code = (int)(bits->held & ((1u << wanted) - 1));
    bits->held >>= wanted;
    bits->holds -= wanted;
    return OK;
}

/* The blocks of a frame of so many pixels. */
static int check_pixels(struct gif *gif, uint64_t pixels) {
    enum { LEAST = 2, MOST = 8, EXTRA = 1 << 20 }; /* bits; pixels that some programs write too many */
    struct codes codes = {0};
    if (gif->at == gif->count) return ends(gif);
    const int least_bits = gif->bytes[gif->at++];
    if (least_bits < LEAST || least_bits > MOST) return damaged(gif, "codes of an unknown size");
    struct bits bits = {.end = gif->at};
    for (int i = 0; i < 1 << least_bits; i++) codes.pixels[i] = 1; /* for good: only later ones are made */
    forget(&codes, least_bits);
    for (int code = 0;;) {
        RETURN_IF(next_code(gif, &bits, codes.bits, &code));
        if (code < 0 || code == codes.clear + 1) break;
        if (code == codes.clear)
            forget(&codes, least_bits);
        else if (!take(&codes, code))
            return damaged(gif, "a code that cannot be");
        if (codes.found > pixels + EXTRA) return damaged(gif, "more pixels than its frame has");
    }
    return codes.found < pixels ? damaged(gif, "fewer pixels than its frame has") : OK;
}

/* --- the file --- */

/* Place and size in the screen, flags, a table of colours, pixels. */
static int check_frame(struct gif *gif, unsigned width, unsigned height, bool coloured) {
    enum { HEAD = 9 };
    const size_t head = gif->at;
    RETURN_IF(skip(gif, HEAD));
    const unsigned across = number_at(gif, head + 4), down = number_at(gif, head + 6);
    const uint8_t flags = gif->bytes[head + 8];
    if (number_at(gif, head) + across > width || number_at(gif, head + 2) + down > height)
        return damaged(gif, "a frame beyond the screen");
    if (!coloured && table_bytes(flags) == 0) return damaged(gif, "a frame without colours");
    RETURN_IF(skip(gif, table_bytes(flags)));
    return check_pixels(gif, (uint64_t)across * down);
}

int picture_check_gif(const char *name, const uint8_t *bytes, size_t count, struct error *error) {
    enum { HEAD = 13, WIDTH_AT = 6, HEIGHT_AT = 8, FLAGS_AT = 10, FRAME = 0x2c, EXTENSION = 0x21 };
    struct gif gif = {name, bytes, count, 0, error};
    RETURN_IF(skip(&gif, HEAD));
    const unsigned width = number_at(&gif, WIDTH_AT), height = number_at(&gif, HEIGHT_AT);
    const size_t colours = table_bytes(bytes[FLAGS_AT]);
    RETURN_IF(picture_check_size(name, width, height, error));
    if (width == 0 || height == 0) return damaged(&gif, "a screen without pixels");
    RETURN_IF(skip(&gif, colours));
    for (;;) {
        if (gif.at == count) return ends(&gif);
        const uint8_t what = bytes[gif.at++];
        if (what == FRAME) return check_frame(&gif, width, height, colours > 0);
        if (what != EXTENSION) return damaged(&gif, "no frame");
        RETURN_IF(skip(&gif, 1)); /* its kind */
        RETURN_IF(skip_blocks(&gif));
    }
}
