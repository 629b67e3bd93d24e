"""The compute capabilities of the GPUs that are here, as nvcc writes them ("90 100"), asked of the
driver's library.

nvidia-smi need not be there, and takes a second or more. Prints nothing, with exit code 1, where no
driver or no GPU is found.
"""
import ctypes
import sys

PLACES = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/local/nvidia/lib/libcuda.so.1",
          "/usr/lib/wsl/lib/libcuda.so.1")
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...


def driver():
    for place in PLACES:
        try: return ctypes.CDLL(place)
        except OSError: continue
    return None


def capabilities(cuda):
    count, number, found = ctypes.c_int(0), ctypes.c_int(0), set()
    if cuda is None or cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)): return []
    for device in range(count.value):
        values = []
        for attribute in MAJOR, MINOR:
            if cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device): break
            values.append(number.value)
        if len(values) == 2: found.add(values[0] * 10 + values[1])
    return sorted(found)


if __name__ == "__main__":
    numbers = capabilities(driver())
    print(*numbers)
    sys.exit(0 if numbers else 1)
