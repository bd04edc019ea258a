# SPDX-License-Identifier: Apache-2.0
"""What tests of figures share: closing them, and the check that they are readable."""

import itertools
import unittest

from render_test import drawn_texts

import matplotlib.pyplot as plt


class FigureTest(unittest.TestCase):
    def setUp(self):
        self.addCleanup(plt.close, "all")

    def assert_readable(self, figure):
        figure.canvas.draw()
        texts = drawn_texts(figure)
        self.assertGreater(len(texts), 5)
        box = figure.bbox
        for text, extent in texts:
            self.assertTrue(extent.x0 >= box.x0 and extent.x1 <= box.x1 and extent.y0 >= box.y0
                            and extent.y1 <= box.y1, f"{text!r} is cut off")
        for (text, extent), (other, other_extent) in itertools.combinations(texts, 2):
            wide = min(extent.x1, other_extent.x1) - max(extent.x0, other_extent.x0)
            high = min(extent.y1, other_extent.y1) - max(extent.y0, other_extent.y0)
            self.assertFalse(wide > 1 and high > 1, f"{text!r} overlaps {other!r}")
        return [text for text, _ in texts]
