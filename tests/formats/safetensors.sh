#!/bin/bash
# safetensors files against readers that are not ours: one of thirty lines that knows only Python's own
# library, always, and the package `safetensors`, where it is installed or can be. What they write, our reader
# must take.
set -u
program=$BUILD/tests/formats/safetensors
[ -x "$program" ] || { echo "$program is not there, expected: make tests"; exit 1; }
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
"$program" write "$folder/ours.safetensors" || exit 1

cat >"$folder/plain.py" <<'END'
import json, struct, sys, zlib

def read(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    assert (8 + length) % 64 == 0, f"the data begin at {8 + length}, expected a multiple of 64"
    def once(pairs):
        assert len(dict(pairs)) == len(pairs), f"a name twice in {pairs}"
        return dict(pairs)
    header = json.loads(data[8:8 + length].decode("utf-8"), object_pairs_hook=once)
    texts = header.pop("__metadata__")
    tensors, end = {}, 0
    for name, entry in header.items():
        assert set(entry) == {"dtype", "shape", "data_offsets"} and entry["dtype"] == "F32", entry
        begin, stop = entry["data_offsets"]
        count = 1
        for dim in entry["shape"]:
            count *= dim
        assert begin == end and stop - begin == 4 * count, f"{name}: {entry}, expected to begin at {end}"
        tensors[name] = (entry["shape"], data[8 + length + begin:8 + length + stop])
        end = stop
    assert 8 + length + end == len(data), f"{len(data)} bytes, expected {8 + length + end}"
    at = data.index(b'"checksum":"') + 12
    crc = zlib.crc32(data[:at] + b"00000000" + data[at + 8:])
    assert texts.pop("checksum") == f"{crc:08x}" == data[at:at + 8].decode(), f"checksum, computed {crc:08x}"
    return tensors, texts

def write(path, tensors, texts):
    header, data = {}, b""
    for name, (shape, values) in reversed(tensors.items()):
        header[name] = {"data_offsets": [len(data), len(data) + len(values)], "shape": shape, "dtype": "F32"}
        data += values
    header["__metadata__"] = texts
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

if __name__ == "__main__":
    tensors, texts = read(sys.argv[1])
    shape, values = tensors["dense1/kernel"]
    bits = struct.unpack("<12I", values)
    assert shape == [3, 4] and bits[1] == 0x80000000 and bits[3] == 0xffc12345 and bits[7] == 1, (shape, bits)
    assert tensors["größe ✓ 😀"][0] == [1, 2, 1, 3, 1,
                                       2] and tensors['a "quoted" \\ name\n\x01\x7f'][0] == [], list(tensors)
    assert texts == {"step": "17", ',"checksum":"': '{"checksum":"00000000"}', "": ""}, texts
    write(sys.argv[2], tensors, texts)
END
python3 "$folder/plain.py" "$folder/ours.safetensors" "$folder/plain.safetensors" || exit 1
"$program" read "$folder/plain.safetensors" || exit 1

# shellcheck source=tests/python_clients.sh
. "$(dirname "$0")/../python_clients.sh"
python_with "numpy, safetensors.numpy" "Python's safetensors is"
cat >"$folder/package.py" <<'END'
import sys
import numpy
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
sys.path.insert(0, sys.argv[3])
import plain

expected, texts = plain.read(sys.argv[1])
found = load_file(sys.argv[1])
assert set(found) == set(expected), (set(found), set(expected))
for name, (shape, values) in expected.items():
    assert (list(found[name].shape) == shape and found[name].dtype == numpy.float32 and
            found[name].tobytes() == values), name
with safe_open(sys.argv[1], "numpy") as file:
    metadata = file.metadata()
del metadata["checksum"]
assert metadata == texts, metadata
save_file(found, sys.argv[2], metadata=texts)
END
"$python" "$folder/package.py" "$folder/ours.safetensors" "$folder/package.safetensors" "$folder" || exit 1
"$program" read "$folder/package.safetensors" || exit 1
