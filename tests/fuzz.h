/* What the fuzzers share: what is wrong ends them with a trace, and at the end they say how many inputs were
 * accepted, of each kind. One that never gets past the first check tests nothing, so a kind of which there
 * was none is a failure, too. */
#ifndef TRAINER_TESTS_FUZZ_H
#define TRAINER_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUZZ_KINDS = 4, FUZZ_FEW = 1000 /* inputs that need not be enough */ };

static struct {
    const char *const *names; /* [up to FUZZ_KINDS], then NULL */
    long accepted[FUZZ_KINDS], inputs;
} fuzz;

static inline void fuzz_require(int condition) {
    if (!condition) abort();
}

static inline void fuzz_report(void) {
    int none = 0;
    fprintf(stderr, "accepted: ");
    for (int i = 0; fuzz.names[i]; i++) {
        fprintf(stderr, "%s%ld %s", i > 0 ? ", " : "", fuzz.accepted[i], fuzz.names[i]);
        none += fuzz.accepted[i] == 0;
    }
    fprintf(stderr, " of %ld inputs\n", fuzz.inputs);
    if (none > 0 && fuzz.inputs > FUZZ_FEW) _exit(1);
}

/* Called for every input. */
static inline void fuzz_count(const char *const *names) {
    if (fuzz.inputs++ > 0) return;
    fuzz.names = names;
    atexit(fuzz_report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

#endif
