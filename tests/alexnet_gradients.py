#!/usr/bin/env python3
"""Writes tests/alexnet_gradients.h: what PyTorch, in double precision, says of the loss and the gradients of
alexnet for one batch. Weights, images and labels are numbers made from their positions, the same as in
tests/models/models.c.

    python3 tests/alexnet_gradients.py > tests/alexnet_gradients.h

Of each array: the gradient's norm, its products with two vectors of signs, and some elements. The loss
includes L2 and so do the gradients."""
import math

import torch
import torch.nn.functional as F

BATCH, ELEMENTS = 4, 8
# name, shape in our order (HWIO, [in, out]), scale and offset of the made-up values
ARRAYS = [
    ("conv1/kernel", (5, 5, 3, 64), 0.17, 0.0), ("conv1/bias", (64,), 0.1, 0.0),
    ("conv2/kernel", (5, 5, 64, 64), 0.17, 0.0), ("conv2/bias", (64,), 0.1, 0.1),
    ("dense1/kernel", (2304, 384), 0.14, 0.0), ("dense1/bias", (384,), 0.1, 0.1),
    ("dense2/kernel", (384, 192), 0.14, 0.0), ("dense2/bias", (192,), 0.1, 0.1),
    ("dense3/kernel", (192, 10), 0.1, 0.0), ("dense3/bias", (10,), 0.1, 0.0),
]


def mixed(salt, count):
    """32 bits that look random, of positions 0..count-1."""
    mask = 0xFFFFFFFF
    h = (torch.arange(count, dtype=torch.int64) * 2654435761 + salt * 40503 + 1) & mask
    for _ in range(2):
        h = ((h ^ (h >> 16)) * 73244475) & mask
    return h ^ (h >> 16)


def made(salt, shape, scale, offset):
    """scale * [-1/2, 1/2) + offset, rounded to float32 after each step."""
    unit = (mixed(salt, math.prod(shape)) >> 8).to(torch.float32) / (1 << 24) - 0.5
    return (unit * torch.tensor(scale) + torch.tensor(offset)).reshape(shape).to(torch.float64)


def signs(salt, count):
    return 1.0 - 2.0 * (mixed(salt, count) >> 31).to(torch.float64)


def lrn(x):
    return F.local_response_norm(x, 9, alpha=0.001 / 9 * 9, beta=0.75, k=1.0)


def pool(x):
    return F.max_pool2d(F.pad(x, (0, 1, 0, 1), value=-float("inf")), 3, 2)


weights = [made(i, shape, scale, offset).requires_grad_()
           for i, (_, shape, scale, offset) in enumerate(ARRAYS)]
x = made(100, (BATCH, 24, 24, 3), 3.0, 0.0)
labels = mixed(101, BATCH) % 10

c1, b1, c2, b2, d1, e1, d2, e2, d3, e3 = weights
y = x.permute(0, 3, 1, 2)
y = lrn(pool(F.relu(F.conv2d(y, c1.permute(3, 2, 0, 1), b1, padding=2))))
y = pool(lrn(F.relu(F.conv2d(y, c2.permute(3, 2, 0, 1), b2, padding=2))))
y = y.permute(0, 2, 3, 1).reshape(BATCH, -1)
y = F.relu(y @ d1 + e1)
y = F.relu(y @ d2 + e2)
loss = F.cross_entropy(y @ d3 + e3, labels) + 0.004 * (d1.square().sum() + d2.square().sum()) / 2
loss.backward()

print("/* Made by tests/alexnet_gradients.py with PyTorch %s, in double precision. */" %
      torch.__version__.split("+")[0])
print("#ifndef TRAINER_TESTS_ALEXNET_GRADIENTS_H\n#define TRAINER_TESTS_ALEXNET_GRADIENTS_H\n")
print("#include <stddef.h>\n")
print("enum { TABLE_BATCH = %d, TABLE_ARRAYS = %d, TABLE_ELEMENTS = %d };" % (BATCH, len(ARRAYS), ELEMENTS))
print("static const double table_loss = %.9f;" % loss.item())
print("static const struct {")
print("    const char *name;")
print("    float scale, offset;        /* of the made-up weights */")
print("    double norm, products[2];   /* of the gradient; with signs of salts 200 + array and 300 + array "
      "*/")
print("    size_t at[TABLE_ELEMENTS];  /* positions, and the gradient there */")
print("    double element[TABLE_ELEMENTS];")
print("} table[TABLE_ARRAYS] = {")
for i, (name, shape, scale, offset) in enumerate(ARRAYS):
    g = weights[i].grad.reshape(-1)
    at = (mixed(400 + i, ELEMENTS) % g.numel()).tolist()
    print('    {"%s", %.2ff, %.1ff, %.8e, {%.8e, %.8e},' % (
        name, scale, offset, g.norm(), g @ signs(200 + i, g.numel()), g @ signs(300 + i, g.numel())))
    print("     {%s}," % ", ".join(str(a) for a in at))
    print("     {%s}}," % ", ".join("%.8e" % g[a] for a in at))
print("};\n\n#endif")
