/* Unsigned numbers of 1 to 8 bytes, as files and frames have them: in either order of bytes, at any place. */
#ifndef TRAINER_BASE_BYTES_H
#define TRAINER_BASE_BYTES_H

#include <stdint.h>

/* The number of the bytes at[count], of which the first counts least. */
static inline uint64_t bytes_little(const uint8_t *at, int count) {
    uint64_t number = 0;
    for (int i = 0; i < count; i++) number |= (uint64_t)at[i] << (8 * i);
    return number;
}

/* The same where the first counts most. */
static inline uint64_t bytes_big(const uint8_t *at, int count) {
    uint64_t number = 0;
    for (int i = 0; i < count; i++) number = number << 8 | at[i];
    return number;
}

/* at[count] = the lowest bytes of a number, the lowest first. */
static inline void bytes_put_little(uint8_t *at, int count, uint64_t number) {
    for (int i = 0; i < count; i++) at[i] = (uint8_t)(number >> (8 * i));
}

#endif
