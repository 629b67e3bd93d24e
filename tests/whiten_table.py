#!/usr/bin/env python3
"""The table of src/data/whiten.c: ZCA of 5x5 patches of CIFAR-10's training images.

Usage: tests/whiten_table.py FOLDER   (with data_batch_1.bin or .gz; needs numpy)

Each image gets mean 0 and deviation 1; C is the covariance of its patches, numbers in the order
[row][column][channel]; the filter is the centre's rows of U (L + 0.02)^-1/2 U', where C = U L U'. It is
averaged over the eight ways to turn and mirror a square, multiplied by 256 and rounded."""
import gzip
import os
import sys

import numpy as np

EPSILON, SIDE = 0.02, 5


def images(folder):
    path = os.path.join(folder, "data_batch_1.bin")
    data = open(path, "rb").read() if os.path.exists(path) else gzip.open(path + ".gz").read()
    return np.frombuffer(data, np.uint8).reshape(-1, 3073)[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def covariance(pixels):
    pixels = pixels.astype(np.float64)
    pixels -= pixels.mean(axis=(1, 2, 3), keepdims=True)
    pixels /= np.maximum(pixels.std(axis=(1, 2, 3), keepdims=True), 1)
    side = 32 - SIDE + 1
    windows = [pixels[:, y:y + side, x:x + side, :].reshape(-1, 3) for y in range(SIDE) for x in range(SIDE)]
    patches = np.concatenate(windows, axis=1)
    patches -= patches.mean(axis=0)
    return patches.T @ patches / len(patches)


def whitening(matrix):
    values, vectors = np.linalg.eigh(matrix)
    whole = vectors @ np.diag((values + EPSILON) ** -0.5) @ vectors.T
    centre = (SIDE * SIDE // 2) * 3
    return whole[centre:centre + 3].reshape(3, SIDE, SIDE, 3)  # [out][row][column][in]


def symmetric(weights):
    turned = [np.rot90(mirrored, k, axes=(1, 2)) for mirrored in (weights, weights[:, :, ::-1])
              for k in range(4)]
    mean = sum(turned) / 8
    return (mean + mean.transpose(3, 1, 2, 0)) / 2


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    weights = np.rint(256 * symmetric(whitening(covariance(images(sys.argv[1])[:2000])))).astype(int)
    for row, column in ((2, 2), (2, 3), (3, 3), (2, 4), (3, 4), (4, 4)):
        rows = ", ".join("{" + ", ".join(map(str, weights[out, row, column])) + "}" for out in range(3))
        print("    {%s}, /* %d rows and %d columns away */" % (rows, row - 2, column - 2))


main()
