/* onnx: networks as PyTorch's torch.onnx.export, this program and others write them. */
#include "../../graph/network_file.h"

#define HELP "forward graphs of the layers of this program, as torch.onnx.export writes them"

static const char *const suffixes[] = {".onnx", NULL};

#if TRAINER_PROTOBUF

#    include "../../base/mapping.h"
#    include "../onnx_model.h"

static int read_onnx(struct network_file *file, const char *path, struct error *error) {
    struct mapping mapping;
    RETURN_IF(mapping_open(&mapping, path, error));
    const int code = onnx_parse(file, path, mapping.bytes, mapping.length, error);
    mapping_close(&mapping);
    return code;
}

const struct reader reader_onnx = {
    .plugin = {.name = "onnx", .help = HELP}, .suffixes = suffixes, .read = read_onnx};

#else

const struct reader reader_onnx = {
    .plugin = {.name = "onnx", .help = HELP},
    .suffixes = suffixes,
    .needs = "protobuf-c (apt-get install libprotobuf-c-dev protobuf-c-compiler, then make)",
};

#endif
