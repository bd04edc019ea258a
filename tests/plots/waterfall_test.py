# SPDX-License-Identifier: Apache-2.0
"""The waterfall of Shapley shares: what it shows, that it is readable, and how it fails."""

import math

import make_summary
import matplotlib.pyplot as plt
from figure_test_case import FigureTest, heading

from plots import render, waterfall
from plots.summary import Summary, SummaryError


def factorial(logs, shape="mission_b", half=0.02):
    """The synthetic summary as that of a factorial whose toggles earn these logs. Invented."""
    data = make_summary.make_summary()
    data["design"] = "factorial"
    total = sum(logs.values())
    data["attribution"] = [
        {"design": "factorial", "shape": shape, "toggle": toggle, "shapley_log": log,
         "shapley_log_low": log - half, "shapley_log_high": log + half,
         "shapley_share": log / total, "total_log": total} for toggle, log in logs.items()]
    return data


PLAIN = {"warp_shuffle": 0.25, "vector_loads": 0.3, "wmma_qk": 0.1, "cp_async_stages": 0.05,
         "wmma_pv": 0.5}
# One step back, one of nothing and one that earns nearly all.
WIDE = {"warp_shuffle": -0.4, "vector_loads": 0.0, "wmma_qk": 0.02, "cp_async_stages": 0.01,
        "wmma_pv": 5.0}
TINY = {"warp_shuffle": 0.004, "vector_loads": 0.001, "wmma_qk": -0.002}


class WaterfallTest(FigureTest):
    def draw(self, data, shape="mission_b"):
        return waterfall.draw(Summary(data), shape)

    @staticmethod
    def bars(figure):
        """(start, end) of each bar, top to bottom."""
        patches = [patch for patch in figure.axes[0].patches if abs(patch.get_height() - 0.56) < 1e-9]
        return [(patch.get_x(), patch.get_x() + patch.get_width())
                for patch in sorted(patches, key=lambda patch: patch.get_y())]

    def test_each_bar_begins_where_the_one_above_ends_and_all_make_the_whole(self):
        for logs in (PLAIN, WIDE, TINY):
            bars = self.bars(self.draw(factorial(logs)))
            self.assertEqual(len(bars), len(logs) + 1)
            at = 1.0
            for (start, end), log in zip(bars, sorted(logs.values(), reverse=True)):
                self.assertAlmostEqual(start, at)
                self.assertAlmostEqual(end, at * math.exp(log))
                at = end
            self.assertAlmostEqual(bars[-1][0], 1)
            self.assertAlmostEqual(bars[-1][1], math.exp(sum(logs.values())))

    def test_a_toggle_that_costs_has_another_colour(self):
        colours = {patch.get_gid(): patch.get_facecolor()
                   for patch in self.draw(factorial(WIDE)).axes[0].patches if patch.get_gid()}
        self.assertNotEqual(colours["bar:warp_shuffle"], colours["bar:wmma_pv"])

    def test_the_title_says_who_earned_most(self):
        self.assertEqual(heading(self.draw(factorial(PLAIN))),
                         "WMMA for P V earns 42% of the 3.32× at mission_b")

    def test_every_text_is_inside_the_figure_large_enough_and_clear_of_the_others(self):
        for name, logs in (("plain", PLAIN), ("wide", WIDE), ("tiny", TINY)):
            with self.subTest(name):
                figure = self.draw(factorial(logs))
                self.assert_readable(figure, air=0)
                for text in figure.findobj(plt.Text):
                    self.assertGreaterEqual(text.get_fontsize(), 11, text.get_text())

    def test_an_interval_that_is_missing_is_no_error(self):
        data = factorial(PLAIN)
        data["attribution"][0].update(shapley_log_low=None, shapley_log_high=None)
        self.assertEqual(len(self.bars(self.draw(data))), 6)

    def test_without_shares_there_is_no_figure(self):
        with self.assertRaisesRegex(SummaryError, "no Shapley shares at small"):
            self.draw(factorial(PLAIN), "small")

    def test_a_factorial_has_a_waterfall_for_each_shape_that_has_shares(self):
        data = factorial(PLAIN)
        data["attribution"].append(dict(data["attribution"][0], shape="small", shapley_log=None,
                                        shapley_log_low=None, shapley_log_high=None,
                                        shapley_share=None, total_log=None))
        self.assertEqual(list(render.figures(Summary(data))), ["factorial_mission_b"])

    def test_other_designs_have_their_effects_under_their_own_name(self):
        data = make_summary.make_summary()
        data["design"] = "one_on"
        self.assertEqual(list(render.figures(Summary(data))), ["one_on_effects", "one_on_matrix"])

    def test_a_damaged_field_is_named_with_its_path(self):
        data = factorial(PLAIN)
        data["attribution"][2]["shapley_log"] = "much"
        with self.assertRaisesRegex(SummaryError, r"attribution\[2\].shapley_log must be a number"):
            Summary(data)

    def test_labels_are_those_of_the_steps(self):
        shown = {" ".join(text.split()) for text in self.assert_readable(self.draw(factorial(PLAIN)))}
        self.assertIn("Two-stage cp.async for K/V", shown)
        self.assertIn("all together", shown)
