/* ONNX files: a protobuf message with the network and its weights, taken apart with bounded memory. */
#ifndef TRAINER_IMPORTS_ONNX_MODEL_H
#define TRAINER_IMPORTS_ONNX_MODEL_H

#include <stdint.h>
#include "../graph/network_file.h"

/* Reads a network from the bytes of a file. `path` for the words, and for files beside it that have weights.
 * Errors: ERROR_FILE: "PATH: node NAME: found ..., expected ..."; ERROR_DEVICE (memory). */
int onnx_parse(struct network_file *file, const char *path, const uint8_t *bytes, size_t count,
               struct error *error);

#endif
