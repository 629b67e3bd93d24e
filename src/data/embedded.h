/* Files that are part of the program: EMBED(symbol, "path"); puts the bytes of a file (path from the
 * repository's root, where the compiler is started) into the read-only data, from `symbol` to
 * `symbol_end`, with one 0 byte after them. The symbols are hidden: the whole program sees them and needs
 * no loader to reach them, so the code stays position-independent. */
#ifndef TRAINER_DATA_EMBEDDED_H
#define TRAINER_DATA_EMBEDDED_H

#define EMBED(symbol, path)                                                                                  \
    __asm__(".pushsection .rodata\n"                                                                         \
            ".globl " #symbol "\n.hidden " #symbol "\n.balign 64\n" #symbol ":\n"                            \
            ".incbin \"" path "\"\n"                                                                         \
            ".globl " #symbol "_end\n.hidden " #symbol "_end\n" #symbol "_end:\n"                            \
            ".byte 0\n.popsection\n");                                                                       \
    EMBEDDED(symbol)

/* Declares what EMBED defined elsewhere. */
#define EMBEDDED(symbol)                                                                                     \
    extern const char symbol[] __attribute__((visibility("hidden")));                                        \
    extern const char symbol##_end[] __attribute__((visibility("hidden")))

#endif
