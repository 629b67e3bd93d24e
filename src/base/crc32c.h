/* CRC-32C (Castagnoli), the checksum of TensorBoard's records, packs and frames. Source: RFC 3720, appendix
 * B.4.
 */
#ifndef TRAINER_BASE_CRC32C_H
#define TRAINER_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` bytes behind those that gave `before` (0: none). */
uint32_t crc32c(uint32_t before, const void *bytes, size_t count);

#endif
