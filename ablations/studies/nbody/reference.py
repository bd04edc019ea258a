# SPDX-License-Identifier: Apache-2.0
"""The acceleration of each body by the first `sources`: mass over the cube of the softened distance."""

import numpy as np

SOFTENING = 0.01
ROWS = 128  # at a time


def reference(bodies, sources):
    place = bodies[:, :3]
    others, mass = place[:sources], bodies[:sources, 3]
    squares = (place**2).sum(axis=1)
    out = np.empty_like(place)
    for at in range(0, len(place), ROWS):
        some = slice(at, at + ROWS)
        distance = squares[some, None] + squares[:sources] - 2 * place[some] @ others.T + SOFTENING
        scale = mass / (distance * np.sqrt(distance))
        out[some] = scale @ others - scale.sum(axis=1, keepdims=True) * place[some]
    return out
