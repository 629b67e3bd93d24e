#!/usr/bin/env python3
"""tests/gelu_table.py: prints the coefficients of src/cpu/narrow_gelu.c, and how far their polynomials
are from the functions.

Each is 1/2 + x p(x^2) between -end and end, where it meets 0 and 1: interpolation at Chebyshev's points,
the outermost of which are the ends. In exact fractions, so the same on every machine but for the last
digit of erf.
"""

from fractions import Fraction
from math import cos, erf, exp, pi, sqrt


def solve(rows):
    """Gauss and Jordan's elimination: the last column divided by the others."""
    for i in range(len(rows)):
        pivot = max(range(i, len(rows)), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(len(rows)):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [row[-1] / row[i] for i, row in enumerate(rows)]


def fit(function, end, count):
    """The coefficients of p, and the largest error."""
    stretch = cos(pi / (4 * count))
    points = [end * cos((2 * i + 1) * pi / (4 * count)) / stretch for i in range(count)]
    values = [0.5] + [function(x) for x in points[1:]]
    scaled = solve([[Fraction(x / end) ** (2 * k + 1) for k in range(count)] + [Fraction(y)]
                    for x, y in zip(points, values)])
    p = [float(c) / end ** (2 * k + 1) for k, c in enumerate(scaled)]

    def error(x):
        inside = min(x, end)
        return abs(inside * sum(c * inside ** (2 * k) for k, c in enumerate(p)) - function(x))

    return p, max(error(i * end / 2500) for i in range(3000))


def below(x):
    """The share of the normal distribution below x, less 1/2."""
    return 0.5 * erf(x / sqrt(2))


def slope(x):
    """The slope of x times that share, less 1/2."""
    return below(x) + x * exp(-x * x / 2) / sqrt(2 * pi)


for function, end, count in (below, 4.2, 9), (slope, 4.4, 10):
    p, error = fit(function, end, count)
    print(f"{function.__name__}, up to {end}: {error:.1e} off\n    " + ", ".join(f"{c:.9e}f" for c in p))
