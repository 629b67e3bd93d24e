"""NumPy's files without NumPy: arrays as numpy.lib.format has them, and archives as np.savez writes them."""

import io
import struct
import zipfile

CODES = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q", "f2": "e",
         "f4": "f", "f8": "d", "b1": "?"}


def npy(shape, values, dtype="<f4", version=1, fortran=False, header=None):
    """An array: values in the order in which they are stored; or, as bytes, what follows the header."""
    header = header or repr({"descr": dtype, "fortran_order": fortran, "shape": tuple(shape)})
    prefix = 10 if version == 1 else 12
    header += " " * (-(prefix + len(header) + 1) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    if not isinstance(values, (bytes, bytearray)):
        values = struct.pack(f"{'>' if dtype[0] == '>' else '<'}{len(values)}{CODES[dtype[1:]]}", *values)
    return b"\x93NUMPY" + bytes([version, 0]) + size + header.encode("utf-8") + values


class Unseekable(io.RawIOBase):
    """A stream as a pipe is one: sizes and check sums come behind the data."""

    def __init__(self, path):
        self.file = open(path, "wb")

    def writable(self):
        return True

    def write(self, data):
        return self.file.write(data)


def npz(path, method=zipfile.ZIP_STORED, stream=False, wide=True, **arrays):
    """An archive of arrays, name=bytes. wide: with sizes of 64 bits, as np.savez does it."""
    out = Unseekable(path) if stream else path
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in arrays.items():
            with archive.open(member(name, method), "w", force_zip64=wide) as file:
                file.write(data)
    if stream:
        out.file.close()


def member(name, method):
    info = zipfile.ZipInfo(name + ".npy")
    info.compress_type = method
    return info
