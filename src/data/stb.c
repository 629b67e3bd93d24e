/* stb_image, compiled: PNG, JPEG, BMP and GIF from memory, nothing else. It relies on integers that wrap
 * around, so the undefined-behaviour sanitizer checks only its array bounds (Makefile). */
#include <stdlib.h>
#include "picture.h"

#if TRAINER_STB

/* A few bytes may announce, or unpack to, any number of bytes: a single allocation is limited. */
static const size_t most_bytes = (size_t)PICTURE_MOST_PIXELS * 16; /* four channels, 16 bits, twice */

static void *limited_realloc(void *block, size_t bytes) {
    return bytes <= most_bytes ? realloc(block, bytes) : NULL;
}

#    define STBI_MALLOC(bytes) limited_realloc(NULL, bytes)
#    define STBI_REALLOC(block, bytes) limited_realloc(block, bytes)
#    define STBI_FREE(block) free(block)
#    define STB_IMAGE_IMPLEMENTATION
#    define STBI_ONLY_PNG
#    define STBI_ONLY_JPEG
#    define STBI_ONLY_BMP
#    define STBI_ONLY_GIF
#    define STBI_NO_STDIO
#    define STBI_NO_LINEAR
#    define STBI_NO_HDR
#    define STBI_FAILURE_USERMSG
#    include <stb/stb_image.h>

#endif
