# SPDX-License-Identifier: Apache-2.0
"""The figure of error against length: what it draws of a record, and what it refuses."""


from figure_test_case import FigureTest

from plots import dtypes
from plots.summary import SummaryError


def record():
    """Two formats at two lengths; one cell is NaN."""
    schemes = ("fp16", "uint8_head", "e4m3_head", "e5m2_head")
    cells = [{"inputs": "normal", "seq": seq, "scheme": scheme, "finite": True, "max_err": 0.1,
              "mean_err": 0.01, "relative_rms": 0.001 * (i + 1) * seq / 64}
             for seq in (64, 128) for i, scheme in enumerate(schemes)]
    cells.append({"inputs": "outliers", "seq": 64, "scheme": "fp16", "finite": False})
    return {"schema_version": 1, "kind": "dtypes", "created_utc": "2026-01-02T03:04:05Z", "seed": 1,
            "head_dim": 64, "schemes": [{"name": name, "label": name} for name in schemes],
            "cells": cells}


class DtypesTest(FigureTest):
    def test_has_a_panel_per_distribution_and_a_curve_per_scheme(self):
        figure = dtypes.draw(record())
        panels = figure.axes
        self.assertEqual([panel.get_title(loc="left") for panel in panels],
                         ["N(0, 1)", "N(0, 1), 0.1% outliers"])
        curves = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
                  for line in panels[0].get_lines()}
        self.assertEqual(curves["e4m3_head"], ([64, 128], [0.003, 0.006]))
        self.assertEqual(len(curves), 4)

    def test_a_mixed_scheme_rings_the_marks_of_its_storage(self):
        data = record()
        data["schemes"].append({"name": "e4m3_head_fp16", "label": "mixed"})
        data["cells"] += [{**cell, "scheme": "e4m3_head_fp16"} for cell in data["cells"]
                          if cell["scheme"] == "e4m3_head"]
        lines = {line.get_label(): line for line in dtypes.draw(data).axes[0].get_lines()}
        storage, mixed = lines["e4m3_head"], lines["mixed"]
        self.assertEqual((mixed.get_color(), mixed.get_marker()),
                         (storage.get_color(), storage.get_marker()))
        self.assertGreater(mixed.get_markersize(), storage.get_markersize())
        self.assertEqual(mixed.get_markerfacecolor(), "none")
        self.assertEqual(mixed.get_linestyle(), "None")

    def test_the_legend_grows_with_the_schemes(self):
        data = record()
        for i in range(12):
            name = f"e5m2_{i}"
            data["schemes"].append({"name": name, "label": "mixed: E4M3, scale per block"})
            data["cells"].append({**data["cells"][0], "scheme": name})
        figure = dtypes.draw(data)
        figure.canvas.draw()
        legend = figure.legends[0].get_window_extent()
        lowest = min(axes.xaxis.label.get_window_extent().y0 for axes in figure.axes)
        self.assertTrue(0 <= legend.y0 and legend.y1 <= lowest and 0 <= legend.x0
                        and legend.x1 <= figure.bbox.width, legend)

    def test_draws_no_point_where_there_is_no_figure(self):
        line, = dtypes.draw(record()).axes[1].get_lines()
        self.assertEqual(len(line.get_xdata()), 0)

    def test_says_the_finding_of_the_longest_length_in_its_title(self):
        figure = dtypes.draw(record())
        title = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
        self.assertIn("At 128 keys", title)
        self.assertIn("0.4% as uint8, 0.6% as E4M3 and 0.8% as E5M2", title)

    def test_no_text_leaves_the_figure_or_is_too_small(self):
        figure = dtypes.draw(record())
        self.assert_readable(figure)
        for text in figure.texts + figure.legends[0].get_texts():
            self.assertGreaterEqual(text.get_fontsize(), 11)

    def test_a_record_without_cells_is_refused(self):
        with self.assertRaisesRegex(SummaryError, "no cell"):
            dtypes.draw({**record(), "cells": []})
        with self.assertRaisesRegex(SummaryError, "cells is missing"):
            dtypes.draw({"kind": "dtypes"})
