# SPDX-License-Identifier: Apache-2.0
"""What tests of figures share: closing them, that they are readable, and the programs that draw."""

import contextlib
import io
import itertools
import json

import matplotlib.pyplot as plt
from fixture import FolderTest

from plots import render


def drawn_texts(figure):
    """Every text that the figure shows, with its extent in pixels."""
    renderer = figure.canvas.get_renderer()
    texts = list(figure.texts) + [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        texts += axes.texts + [axes.title, axes.xaxis.label]
        if axes.get_legend() is not None:
            texts += axes.get_legend().get_texts()
        low, high = axes.get_xlim()
        texts += [tick.label1 for tick in axes.xaxis.get_major_ticks()
                  if low <= tick.get_loc() <= high]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts
            if text.get_visible() and text.get_text().strip()]


def heading(figure):
    """The title, in one line."""
    return " ".join(max(figure.texts, key=plt.Text.get_fontsize).get_text().split())


class FigureTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(plt.close, "all")

    def assert_readable(self, figure, air=1):
        """Returns the texts. Their extents include a pixel of air."""
        figure.draw_without_rendering()
        # Plain numbers: a Bbox computes each of its four at each question.
        texts = [(text, *map(float, extent.extents)) for text, extent in drawn_texts(figure)]
        self.assertGreater(len(texts), 5)
        left, bottom, right, top = figure.bbox.extents
        for text, x0, y0, x1, y1 in texts:
            self.assertTrue(x0 >= left and x1 <= right and y0 >= bottom and y1 <= top,
                            f"{text!r} is cut off")
        for (text, x0, y0, x1, y1), (other, *of_other) in itertools.combinations(texts, 2):
            wide = min(x1, of_other[2]) - max(x0, of_other[0])
            high = min(y1, of_other[3]) - max(y0, of_other[1])
            self.assertFalse(wide > air and high > air, f"{text!r} overlaps {other!r}")
        return [text for text, *_ in texts]

    def run_on(self, content, *arguments, main=render.main, flag="--summary", name="summary.json"):
        """Exit code and stderr of a program that draws this; its pictures go to out/."""
        path = self.write(name, content if isinstance(content, str) else json.dumps(content))
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            code = main([flag, str(path), "--out", str(self.path / "out"), *arguments])
        return code, stderr.getvalue()

    def written(self):
        return {path.name: path.read_bytes() for path in (self.path / "out").iterdir()}

    def assert_fails(self, content, message, *arguments, **program):
        code, stderr = self.run_on(content, *arguments, **program)
        self.assertEqual(code, 2)
        self.assertEqual(stderr.count("\n"), 1, stderr)
        self.assertIn(message, stderr)
        self.assertFalse((self.path / "out").exists(), "a failed run leaves files behind")
