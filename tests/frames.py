"""For the scripts that speak to a process of a cluster as no trainer would: the head of a frame, as
src/bridge/frame.h has it."""
import struct


def crc32c(data):
    sum = 0xFFFFFFFF
    for byte in data:
        sum ^= byte
        for _ in range(8):
            sum = sum >> 1 ^ 0x82F63B78 * (sum & 1)
    return sum ^ 0xFFFFFFFF


def frame(bytes, type, version, payload=b""):
    """A frame that says that its payload has so many bytes, and has these."""
    head = struct.pack("<4sHHIQI", b"TRNR", version, type, 0, bytes, crc32c(payload)).ljust(60, b"\0")
    return head + struct.pack("<I", crc32c(head)) + payload
