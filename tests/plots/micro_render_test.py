# SPDX-License-Identifier: Apache-2.0
"""The figures of microbenchmarks: drawn from the newest record, the same bytes, whole without a case."""

import contextlib
import copy
import sys
import unittest

import matplotlib.pyplot as plt
import record_files
from figure_test_case import FigureTest
from fixture import ROOT, run

from plots import micro_data, micro_render, render, style

FOLDER = contextlib.ExitStack()
unittest.addModuleCleanup(FOLDER.close)
RECORD = FOLDER.enter_context(record_files.records(
    ROOT / "reports" / "data", "micro.json", "micro-")[-1].folder()) / "micro.json"
PROGRAM = {"main": micro_render.main, "flag": "--micro", "name": "micro.json"}


def overlap_entries(like):
    """A matrix with a hole, in the names under which the record holds it."""
    entries = []
    for partner, places in (("mma_sync", ("within", "across")), ("wgmma", ("across",))):
        for i, operation in enumerate(("ex2", "shuffle")):
            for place in places:
                entries.append(like | {"name": f"overlap/{partner}/{operation}/{place}", "unit": "",
                                       "value": 0.25 + 0.5 * i})
    return entries


def shown_texts(figure):
    """The texts of a figure but for ticks, of which matplotlib keeps some that it doesn't show."""
    texts = list(figure.texts)
    for axes in figure.axes:
        texts += [*axes.texts, axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]
        if axes.get_legend():
            texts += axes.get_legend().get_texts()
    return [text for text in texts if text.get_text() and text.get_visible()]


class MicroRenderTest(FigureTest):
    @classmethod
    def setUpClass(cls):
        cls.micro = micro_data.load(RECORD)

    def record_of(self, entries):
        return {"schema_version": 1, "gpu": self.micro.gpu, "provenance": self.micro.provenance,
                "micro": entries, "not_run": []}

    def with_entries(self, entries):
        return micro_data.Micro(self.record_of(entries))

    def draw(self, name, micro):
        figure = micro_render.FIGURES[name](micro)
        if figure is not None:
            figure.canvas.draw()
        return figure

    def texts(self, figure):
        return [text.get_text() for text in figure.findobj(plt.Text) if text.get_text()]

    def test_every_figure_is_drawn_with_readable_text_inside_its_frame(self):
        full = self.with_entries(self.micro.entries + (
            [] if self.micro.matching("overlap/.*") else overlap_entries(self.micro.entries[0])))
        for name in micro_render.FIGURES:
            with self.subTest(figure=name):
                figure = self.draw(name, full)
                self.assertIsNotNone(figure)
                width, height = figure.canvas.get_width_height()
                for text in shown_texts(figure):
                    self.assertGreaterEqual(text.get_fontsize(), 11, text.get_text())
                    self.assertNotIn("$", text.get_text())
                    box = text.get_window_extent()
                    self.assertTrue(0 <= box.x0 and box.x1 <= width, text.get_text())
                    self.assertTrue(0 <= box.y0 and box.y1 <= height, text.get_text())

    def test_a_record_without_its_cases_has_no_figure(self):
        empty = self.with_entries([])
        for name in micro_render.FIGURES:
            with self.subTest(figure=name):
                self.assertIsNone(self.draw(name, empty))

    def test_a_record_with_half_of_its_cases_draws_or_leaves_out(self):
        for start in (0, 1):
            half = self.with_entries(copy.deepcopy(self.micro.entries[start::2]))
            for name in micro_render.FIGURES:
                with self.subTest(figure=name, start=start):
                    self.draw(name, half)

    def test_the_matrix_shows_a_missing_cell_as_such(self):
        figure = self.draw("overlap_matrix", self.with_entries(
            overlap_entries(self.micro.entries[0])))
        texts = self.texts(figure)
        self.assertEqual(texts.count("75%"), 3)
        self.assertIn("mma_sync, in one warp", texts)
        figure = self.draw("overlap_matrix", self.with_entries(
            overlap_entries(self.micro.entries[0])[1:]))
        self.assertIn("–", self.texts(figure))

    def test_the_same_record_gives_the_same_bytes(self):
        first, second = (render.encode(micro_render.FIGURES["swizzle_dilution"](self.micro))
                         for _ in range(2))
        self.assertEqual(first, second)

    def entries(self, pattern):
        return copy.deepcopy([entry for _, entry in self.micro.matching(pattern)])

    def test_the_program_writes_what_it_draws_and_names_what_it_leaves_out(self):
        code, said = self.run_on(self.record_of(self.entries(r"xor_swizzle/dilution.*")), **PROGRAM)
        self.assertEqual(code, 0, said)
        self.assertEqual(list(self.written()), ["swizzle_dilution.svg"])
        self.assertIn("wgmma_widths is left out", said)

    def test_a_record_that_cant_be_read_is_an_error_of_one_line(self):
        done = run(sys.executable, "-B", ROOT / "plots" / "micro_render.py", "--micro",
                   "/no/micro.json", "--out", "/no")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1))

    def test_a_case_without_its_parameters_is_an_error_of_one_line_and_no_figure(self):
        for change, said in ((lambda entry: entry.pop("parameters"), "micro[0].parameters is"),
                             (lambda entry: entry["parameters"].pop("n"), "the parameter n;")):
            entries = self.entries(r"wgmma/m64n\d+k16_f16_ss/thr.*")
            change(entries[0])
            self.assert_fails(self.record_of(entries), said, **PROGRAM)

    def test_style_has_a_colour_for_every_series(self):
        self.assertGreaterEqual(len(style.SERIES), 6)
