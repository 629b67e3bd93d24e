/* onnx: networks as PyTorch's torch.onnx.export, this program and others write them. */
#include "../../graph/network_file.h"

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

#    define READ read_onnx
#    define NEEDS NULL

#else

#    define READ NULL
#    define NEEDS "protobuf-c (apt-get install libprotobuf-c-dev protobuf-c-compiler, then make)"

#endif

const struct reader reader_onnx = {
    .plugin = {.name = "onnx",
               .help = "a network as torch.onnx.export and others write it: .onnx",
               .options = network_file_options,
               .settings_bytes = sizeof(struct network_file_settings)},
    .suffixes = suffixes,
    .needs = NEEDS,
    .read = READ,
};
