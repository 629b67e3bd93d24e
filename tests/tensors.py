"""What is in a safetensors file, for scripts that look at weights: tensors(PATH) is {name: (shape, bytes)}.

As a program, `tensors.py A B`: exit code 0 if the tensors of two files are the same bits, 1 if not, 2 if
a file has none."""
import json
import sys


def tensors(path):
    with open(path, "rb") as file:
        data = file.read()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: (entry["shape"], data[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]])
            for name, entry in header.items()}


if __name__ == "__main__":
    try:
        one, other = map(tensors, sys.argv[1:])
    except (OSError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    sys.exit(2 if not one or not other else one != other)
