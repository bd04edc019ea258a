# SPDX-License-Identifier: Apache-2.0
"""The figures of plots/: what they show, that they are readable, and how they fail."""

import copy
import itertools
import json
import math
import subprocess
import sys
import unittest

import make_summary
import matplotlib.pyplot as plt
from figure_test_case import FigureTest, drawn_texts, heading
from fixture import ROOT
from sizes_test import MAX_HEIGHT_OF_WIDTH

from plots import effects, ladder, matrix, render, speedup, style
from plots.summary import Summary, SummaryError, significant, spoken_times, times

SUMMARY = ROOT / "tests" / "reports" / "testdata" / "summary.json"

# id, label, ratio, verdict, half width of the interval relative to the ratio.
EXTREME_STEPS = [
    ("xor_swizzle", "XOR swizzle of the shared-memory tiles of K, V and P", 40.0, "ADOPT", 0.05),
    ("exp_poly", "Polynomial exp", 0.2, "REGRESSION", 0.08),
    ("split_kv", "Split K/V", 1.0004, "NEUTRAL", 0.003),
    ("warp_specialisation", "Warp specialisation, two producers", 1.3, "BROKEN", 0.01),
    ("persistent", "Persistent CTAs", 1.1, "INCONCLUSIVE", 0.4),
]


def synthetic():
    return make_summary.make_summary()


def extreme():
    """Twelve steps, ratios of 0.2 and 40, broken and missing cells, no peers, a long GPU name."""
    data = synthetic()
    for shape in [shape["name"] for shape in data["shapes"]]:
        at = max(i for i, cell in enumerate(data["cells"])
                 if cell["shape"] == shape and cell["role"] == "step")
        last_cell = data["cells"][at]
        last_verdict = [v for v in data["verdicts"] if v["shape"] == shape][-1]
        us, base = last_cell["p50_us"], last_cell["variant"]
        for toggle, label, ratio, verdict, half in EXTREME_STEPS:
            us /= ratio
            at += 1
            candidate = f"ladder:{toggle}"
            data["cells"].insert(at, dict(
                last_cell, variant=candidate, toggle=toggle, label=label, p50_us=us,
                ci_low_us=us * (1 - half / 2), ci_high_us=us * (1 + half / 2),
                correct=verdict != "BROKEN"))
            data["verdicts"].append(dict(
                last_verdict, toggle=toggle, base=base, candidate=candidate, ratio=ratio,
                ci_low=ratio * (1 - half), ci_high=ratio * (1 + half), verdict=verdict))
            base = candidate
        if shape == "small":
            data["cells"][at].update(p50_us=None, ci_low_us=None, ci_high_us=None)
            data["verdicts"][-1].update(ratio=None, ci_low=None, ci_high=None,
                                        verdict="NOT_APPLICABLE")
    for peer in data["peers"]:
        if peer["shape"] == "mission_b" and peer["name"] != "peer:flash":
            peer.update(available=False, p50_us=None, ci_low_us=None, ci_high_us=None)
        if peer["shape"] == "mission_a" and peer["name"] == "peer:flash":
            peer["correct"] = False
    data["peers"] = [peer for peer in data["peers"] if peer["shape"] != "long"]
    data["provenance"]["gpu"]["name"] = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
    return data


def only_shapes(data, names):
    data = copy.deepcopy(data)
    data["shapes"] = [shape for shape in data["shapes"] if shape["name"] in names]
    for key in ("cells", "verdicts", "peers", "floors", "controls"):
        data[key] = [element for element in data[key] if element["shape"] in names]
    return data


def many_shapes(data, name="ragged_", count=10):
    """The same figures under so many more shape names."""
    data = copy.deepcopy(data)
    for key in ("cells", "verdicts"):
        data[key] += [dict(element, shape=f"{name}{i}") for i in range(count)
                      for element in data[key] if element["shape"] == "long"]
    data["shapes"] += [dict(data["shapes"][-1], name=f"{name}{i}") for i in range(count)]
    return data


def all_figures(data):
    return {name: draw() for name, draw in render.figures(Summary(data)).items()}


class ReadabilityTest(FigureTest):
    RECORDS = {
        "usual": synthetic,
        "extreme": extreme,
        "one shape": lambda: only_shapes(synthetic(), ["mission_b"]),
        "many shapes": lambda: many_shapes(synthetic()),
        "long names": lambda: many_shapes(synthetic(), "fa3_d128_s16384_causal_"),
        "more than one picture holds": lambda: dict(many_shapes(extreme(), count=30),
                                                      design="mma"),
    }

    OF_MANY_SHAPES = ("many shapes", "long names", "more than one picture holds")

    def test_a_title_breaks_the_name_of_a_variant_that_is_wider_than_the_figure(self):
        figure = plt.figure(figsize=(5, 3))
        name = "base+" + "+".join(f"wgmma_technique_{i}" for i in range(6))
        style.Heading(figure, f"At decode_b1 the warps of {name} wait", "2026").draw(figure)
        for text, extent in drawn_texts(figure):
            self.assertLessEqual(extent.x1, figure.bbox.x1, text)
        shown = "".join(text.replace("\n", "") for text, _ in drawn_texts(figure))
        self.assertIn(name, shown)

    def test_every_text_lies_inside_the_figure_and_touches_no_other(self):
        for record, make in self.RECORDS.items():
            for name, draw in render.figures(Summary(make())).items():
                if record in self.OF_MANY_SHAPES and name.startswith(("ladder_", "mma_throughput")):
                    continue  # one per shape, the same as above
                with self.subTest(record=record, figure=name):
                    figure = draw()
                    width, height = figure.get_size_inches()
                    self.assertLessEqual(height, MAX_HEIGHT_OF_WIDTH * width)
                    self.assertGreater(len(self.assert_readable(figure)), 10)
                    plt.close(figure)

    def test_every_step_is_labelled_in_every_figure(self):
        for make in (synthetic, extreme):
            data = make()
            labels = {cell["label"] for cell in data["cells"]
                      if cell["role"] == "step" and cell["shape"] == "mission_b"}
            for name, figure in all_figures(data).items():
                shown = {" ".join(text.split()) for text, _ in drawn_texts(figure)}
                self.assertLessEqual(labels, shown, name)
                plt.close(figure)

    def test_many_shapes_stand_in_bands_on_a_figure_as_wide_as_others(self):
        few = Summary(only_shapes(synthetic(), ["mission_b", "long"]))
        many = Summary(many_shapes(synthetic()))
        for draw in effects.draw, matrix.draw:
            with self.subTest(draw.__module__):
                one, several = draw(few), draw(many)
                self.assertEqual(one.get_size_inches()[0], several.get_size_inches()[0])
                self.assertGreater(several.get_size_inches()[1], 1.9 * one.get_size_inches()[1])
                shown = {title.replace("\n", "") for title, _ in drawn_texts(several)}
                self.assertLessEqual(set(many.shape_names()), shown)

    def test_no_text_is_smaller_than_eleven_points(self):
        for name, figure in all_figures(synthetic()).items():
            for text in figure.findobj(plt.Text):
                if text.get_text().strip():
                    self.assertGreaterEqual(text.get_fontsize(), 11, (name, text.get_text()))

    def test_verdicts_differ_in_shape_and_in_colour(self):
        marks = list(style.VERDICT_MARKS.values()) + [style.FIRST_STEP_MARK]
        self.assertEqual(len({(marker, filled) for marker, _, filled in marks}), len(marks))
        self.assertEqual(len({colour for _, colour, _ in marks}), len(marks))


class FindingTest(FigureTest):
    def ladder_title(self, data):
        return heading(ladder.draw(Summary(data), "mission_b"))

    def test_the_ladder_says_how_much_faster_it_got_and_where_the_best_peer_is(self):
        self.assertEqual(self.ladder_title(synthetic()),
                         "17.3× faster after 7 steps; cudnn is still 1.58× ahead")

    def test_the_ladder_names_gpu_shape_cache_and_date(self):
        figure = ladder.draw(Summary(synthetic()), "mission_b")
        subtitle = " ".join(" ".join(text.get_text() for text in figure.texts).split())
        self.assertIn("NVIDIA H200 · mission_b: batch 1, 8 heads, 512 queries × 512 keys, "
                      "head_dim 64, fp16 · warm L2 · 2026-01-02", subtitle)

    def test_the_ladder_says_so_when_it_beats_the_best_peer(self):
        data = synthetic()
        data["peers"] = [peer for peer in data["peers"] if peer["name"] == "peer:math"]
        self.assertIn(", and 4.59× ahead of the best peer, math",
                      self.ladder_title(data))

    def test_a_broken_step_is_shown_and_never_ranked(self):
        data = synthetic()
        for cell in data["cells"]:
            if cell["variant"] == "ladder:wmma_pv":
                cell["correct"] = False
        figure = ladder.draw(Summary(data), "mission_b")
        self.assertTrue(heading(figure).startswith("7.18× faster after 6 steps"))
        shown = [text for text, _ in drawn_texts(figure)]
        self.assertIn("BROKEN", shown)
        self.assertIn("14.2", shown)
        self.assertNotIn("2.41×", shown)

    def test_a_peer_that_is_wrong_or_was_not_checked_is_never_the_best_peer(self):
        for correct in False, None:
            data = synthetic()
            for peer in data["peers"]:
                if peer["name"] == "peer:cudnn":
                    peer["correct"] = correct
            self.assertIn("flash (FA2) is still", self.ladder_title(data))

    def test_the_ladder_says_so_when_nothing_is_correct_or_faster(self):
        data = synthetic()
        for cell in data["cells"]:
            cell["correct"] = False
        self.assertTrue(self.ladder_title(data).startswith("No step passed correctness"))
        data = synthetic()
        for cell in data["cells"]:
            if cell["role"] == "step":
                cell.update(p50_us=500, ci_low_us=499, ci_high_us=501)
        self.assertTrue(self.ladder_title(data).startswith("No step beats the first one"))

    def test_what_stands_beside_the_ladder_is_drawn_and_is_no_step(self):
        usual, data = synthetic(), synthetic()
        data["design"] = "hopper_small"
        first = next(cell for cell in data["cells"] if cell["shape"] == "mission_b")
        for variant, role, us in (("hopper_small:pipelined", "base", 2.0),
                                  ("hopper_small:one_kv_warpgroup", "without", 1.0)):
            data["cells"].append(dict(first, variant=variant, role=role, label=variant, p50_us=us,
                                      ci_low_us=None, ci_high_us=None))
        figure = ladder.draw(Summary(data), "mission_b")
        # The base beside it competes in nothing; the last step without a toggle is in the title
        # where it is the fastest of ours and of the peers.
        best = min(peer["p50_us"] for peer in usual["peers"]
                   if peer["shape"] == "mission_b" and peer["p50_us"])
        title = self.ladder_title(usual)
        self.assertEqual(heading(figure),
                         f"{title}; {spoken_times(best / 1.0)} by “hopper_small:one_kv_warpgroup”")
        data["cells"][-1]["p50_us"] = 1000.0
        self.assertEqual(self.ladder_title(data), title)
        texts = [text for text, _ in drawn_texts(figure)]
        for text in "beside the ladder", "hopper_small:pipelined", "hopper_small:one_kv_warpgroup":
            self.assertIn(text, texts)
        self.assertEqual(texts.count("first step"), 1)
        self.assertIn("hopper_small_ladder_mission_b", render.figures(Summary(data)))

    def test_effects_count_the_steps_that_pass_everywhere_and_nowhere(self):
        self.assertEqual(heading(effects.draw(Summary(synthetic()))),
                         "4 of 7 steps pass their gates at every shape, "
                         "1 only at some and 2 at none")

    def test_verdicts_are_of_this_board_where_nothing_is_known_of_others(self):
        def said(figure):
            return " ".join(text for text, _ in drawn_texts(figure)).replace("\n", " ")

        data = synthetic()
        for figure in effects.draw(Summary(data)), matrix.draw(Summary(data)):
            self.assertIn("other boards of the kind", said(figure))
        data["statistics"]["spreads"] = []
        for figure in effects.draw(Summary(data)), matrix.draw(Summary(data)):
            self.assertIn("this board", said(figure))
            self.assertNotIn("boards of the kind", said(figure))

    def test_effects_say_in_words_what_all_or_none_of_the_steps_do(self):
        usual = synthetic()
        for verdicts, names, title in [
                ({"ADOPT"}, None, "All 7 steps pass their gates at every shape"),
                ({"ADOPT"}, ["long"], "All 7 steps pass their gates at long"),
                ({"NEUTRAL"}, None, "No step passes its gate"),
                ({"NEUTRAL"}, ["long"], "No step passes its gate at long")]:
            with self.subTest(title):
                data = only_shapes(usual, names) if names else copy.deepcopy(usual)
                for verdict in data["verdicts"]:
                    verdict["verdict"], = verdicts
                self.assertEqual(heading(effects.draw(Summary(data))), title)

    def test_effects_show_a_lone_large_ratio_at_the_edge_so_that_the_others_stay_apart(self):
        data = only_shapes(synthetic(), ["long", "mission_b"])
        values = itertools.cycle([1.02, 1.1, 1.2, 1.3, 1.6])
        for verdict in data["verdicts"]:
            ratio = next(values)
            verdict.update(ratio=ratio, ci_low=ratio * 0.999, ci_high=ratio * 1.001)
        data["verdicts"][0].update(ratio=40.0, ci_low=39.0, ci_high=41.0)
        data["verdicts"][1].update(ratio=0.02, ci_low=0.019, ci_high=0.021)
        figure = effects.draw(Summary(data))
        low, high = figure.axes[0].get_xlim()
        self.assertGreater(low, 0.4)
        self.assertLess(high, 4)
        shown = [text for text, _ in drawn_texts(figure)]
        self.assertIn("40.0× →", shown)
        self.assertIn("← 0.020×", shown)
        self.assertIn("ratio (log scale; ← and →: beyond it)", shown)
        self.assertEqual(sum("→" in text or "←" in text for text in shown), 3)

    def test_effects_cut_an_interval_that_would_press_the_others_together(self):
        data = only_shapes(synthetic(), ["long"])
        for verdict in data["verdicts"]:
            verdict.update(ratio=1.1, ci_low=1.05, ci_high=1.15)
        data["verdicts"][0].update(ci_low=1e-7, ci_high=1e7)
        figure = effects.draw(Summary(data))
        low, high = figure.axes[0].get_xlim()
        self.assertGreater(low, 0.2)
        self.assertLess(high, 5)
        self.assertIn("ratio (log scale; some intervals go on beyond it)",
                      [text for text, _ in drawn_texts(figure)])

    def test_an_interval_as_wide_as_a_verdict_needs_shows_beside_its_mark(self):
        """At the ratios of a tuned kernel: most within a few percent of 1, some far off."""
        data = many_shapes(synthetic())
        values = itertools.cycle([0.84, 1.0, 1.02, 1.05, 1.3])
        for verdict in data["verdicts"]:
            ratio = next(values)
            verdict.update(ratio=ratio, ci_low=ratio * 0.965, ci_high=ratio * 1.035)
        figure = effects.draw(Summary(data))
        figure.canvas.draw()
        for axes in figure.axes:
            marks = [line for line in axes.lines if line.get_marker() not in ("None", "", None)]
            self.assertEqual(len(marks), 7)
            left, right = (axes.transData.transform((end, 0))[0] for end in (0.965, 1.035))
            widest = max(line.get_markersize() for line in marks) / 72 * figure.dpi
            self.assertGreater(right - left, 1.2 * widest)

    def test_effects_label_more_of_the_axis_than_its_decades(self):
        for make in (synthetic, extreme):
            for axes in effects.draw(Summary(make())).axes:
                low, high = axes.get_xlim()
                ticks = axes.get_xticks()
                self.assertIn(1, ticks)
                self.assertGreaterEqual(sum(low <= tick <= high for tick in ticks), 3)

    def test_the_ladder_never_calls_an_interval_zero(self):
        data = synthetic()
        for cell in data["cells"]:
            cell.update(ci_low_us=cell["p50_us"] * 0.9999, ci_high_us=cell["p50_us"] * 1.0001)
        shown = [text for text, _ in drawn_texts(ladder.draw(Summary(data), "mission_b"))]
        self.assertEqual(shown.count("<0.05%"), 8)
        self.assertFalse([text for text in shown if "±0.0" in text])

    def test_the_overview_names_the_largest_and_the_smallest_gain(self):
        self.assertEqual(heading(speedup.draw(Summary(synthetic()))),
                         "The whole ladder gains 23.0× at long, but 1.60× at small")

    def test_the_overview_breaks_its_line_at_a_step_that_is_not_ranked(self):
        data = synthetic()
        for cell in data["cells"]:
            if cell["variant"] == "ladder:vector_loads":
                cell["correct"] = False
        figure = speedup.draw(Summary(data))
        lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 8]
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.assertEqual([math.isnan(x) for x in line.get_xdata()],
                             [row == 4 for row in range(8)])


class CommandTest(FigureTest):
    def test_every_figure_is_written_as_svg_with_the_same_bytes_in_another_process(self):
        code, stderr = self.run_on(synthetic())
        self.assertEqual((code, stderr), (0, ""))
        first = self.written()
        names = {f"ladder_{shape}" for shape in make_summary.SHAPES} | {"effects", "matrix",
                                                                       "speedup_overview"}
        self.assertEqual(set(first), {f"{name}.svg" for name in names})
        for name, content in first.items():
            self.assertTrue(content.startswith(b"<svg "), name)
        again = self.path / "again"
        subprocess.run([sys.executable, "-B", ROOT / "plots" / "render.py", "--summary", SUMMARY,
                        "--out", again], check=True, capture_output=True, cwd=self.path)
        for name, content in first.items():
            self.assertEqual((again / name).read_bytes(), content, name)

    def test_the_pictures_hold_no_date_of_making_and_no_program_version(self):
        self.run_on(only_shapes(synthetic(), ["long"]))
        for name, content in self.written().items():
            self.assertNotIn(b"matplotlib", content.lower(), name)
            self.assertNotIn(b"metadata", content, name)

    def test_a_problem_goes_by_the_name_that_the_summary_gives_it_for_pages(self):
        summary = synthetic()
        for shape in summary["shapes"]:
            if shape["name"] == "mission_b":
                shape["shown"] = "b1_h8_s512_d64"
        code, _ = self.run_on(summary)
        self.assertEqual(code, 0)
        self.assertIn("ladder_b1_h8_s512_d64.svg", self.written())
        for name, content in self.written().items():
            self.assertNotIn(b"mission_b", content, name)

    def test_no_name_of_a_record_leads_out_of_the_folder(self):
        summary = synthetic()
        summary["design"] = "/../../victim"
        self.run_on(summary)
        self.assertEqual(set(self.written()),
                         {"-------victim_effects.svg", "-------victim_matrix.svg"})
        self.assertEqual({path.name for path in self.path.iterdir()}, {"summary.json", "out"})

    def test_text_that_is_not_json_and_a_missing_file_are_refused(self):
        self.assert_fails("{", "not JSON")
        self.assert_fails(synthetic(), "none.json: No such file or directory", "--summary",
                          str(self.path / "none.json"))

    def test_a_damaged_field_is_named_with_its_path(self):
        damages = {
            "cells[3].p50_us is missing": lambda d: d["cells"][3].pop("p50_us"),
            "cells[3].p50_us must be a number or null, but is \"x\"":
                lambda d: d["cells"][3].update(p50_us="x"),
            "cells[3].p50_us must be above 0, but is 0": lambda d: d["cells"][3].update(p50_us=0),
            "verdicts[0].verdict is \"GREAT\"": lambda d: d["verdicts"][0].update(verdict="GREAT"),
            "peers[1].shape is \"x\"": lambda d: d["peers"][1].update(shape="x"),
            "provenance.gpu.name is missing": lambda d: d["provenance"]["gpu"].pop("name"),
            "shapes must be an array": lambda d: d.update(shapes=3),
            "schema_version is 3": lambda d: d.update(schema_version=3),
        }
        for message, damage in damages.items():
            with self.subTest(message):
                data = synthetic()
                damage(data)
                self.assert_fails(data, message)

    def test_without_data_there_is_no_figure(self):
        for key, name, message in [
                ("cells", "ladder_mission_b", "no step was timed at mission_b"),
                ("verdicts", "effects", "the record holds no verdict"),
                ("cells", "speedup_overview", "at no shape was the first step timed and correct"),
                ("shapes", "effects", "shapes is empty")]:
            with self.subTest(name):
                data = synthetic()
                data[key] = []
                if key == "shapes":
                    for other in ("cells", "verdicts", "peers", "floors"):
                        data[other] = []
                with self.assertRaisesRegex(SummaryError, message):
                    render.figures(Summary(data))[name]()
                self.assert_fails(data, "")


def last_names(data, count):
    return [verdict["toggle"] for verdict in Summary(data).verdicts[-count:]]


class SummaryTest(unittest.TestCase):
    def test_a_toggle_that_is_judged_at_several_levels_goes_by_its_arms(self):
        data = synthetic()
        toggle = data["verdicts"][0]["toggle"]
        self.assertIn(toggle, {verdict["toggle"] for verdict in Summary(data).verdicts})
        once = [verdict for verdict in data["verdicts"] if verdict["toggle"] == toggle]
        data["verdicts"] += [dict(verdict, candidate=verdict["base"] + ":more=2+other")
                             for verdict in once]
        names = {verdict["toggle"] for verdict in Summary(data).verdicts}
        self.assertNotIn(toggle, names)
        self.assertIn(f"{once[0]['base']}: more=2 + other", names)
        self.assertIn(f"{once[0]['base']} → {once[0]['candidate']}".replace(":", ": "), names)

    def test_an_arm_that_is_judged_against_two_others_names_both(self):
        data = synthetic()
        first = data["verdicts"][0]
        longer = first["base"] + ":more=2"
        for base in (first["base"], first["base"] + ":m"):
            data["verdicts"].append(dict(first, base=base, candidate=longer))
        self.assertEqual(last_names(data, 2), [f"{base} → {longer}".replace(":", ": ")
                                               for base in (first["base"], first["base"] + ":m")])

    def test_of_a_long_chain_the_end_is_named_where_that_tells_arms_apart(self):
        data = synthetic()
        first = data["verdicts"][0]
        chain = first["base"] + ":a=1+b=1+c=1+d=1"
        for candidate in (chain + "+e=1", chain + "+e=2"):
            data["verdicts"].append(dict(first, base=chain, candidate=candidate))
        self.assertEqual(last_names(data, 2), ["… + d=1 + e=1", "… + d=1 + e=2"])
        twin = first["base"] + ":a=2+b=1+c=1+d=1"
        data["verdicts"].append(dict(first, base=twin, candidate=twin + "+e=1"))
        self.assertEqual(last_names(data, 3), [first["base"] + ": a=1 + b=1 + c=1 + d=1 + e=1",
                                               "… + d=1 + e=2",
                                               first["base"] + ": a=2 + b=1 + c=1 + d=1 + e=1"])

    def test_ends_of_chains_are_as_long_as_it_takes_to_tell_them_apart(self):
        data = synthetic()
        first = data["verdicts"][0]
        for chain in ("a=1+b=1+c=1+d=1", "a=1+b=1+c=2+d=1", "a=1+b=2+c=3+d=1"):
            base = f"{first['base']}:{chain}"
            data["verdicts"].append(dict(first, base=base, candidate=base + "+e=1"))
        self.assertEqual(last_names(data, 3), [f"… + c={c} + d=1 + e=1" for c in (1, 2, 3)])

    def test_the_committed_synthetic_summary_is_what_its_program_writes(self):
        self.assertEqual(json.loads(SUMMARY.read_text()), synthetic())

    def test_numbers_keep_their_significant_digits(self):
        self.assertEqual([significant(value, 3) for value in (246.04, 9.996, 0.5124, 3610)],
                         ["246", "10.0", "0.512", "3610"])
        self.assertEqual([times(ratio) for ratio in (0.2, 1.0187, 1.21, 9.996, 40.0, 123.4)],
                         ["0.200×", "1.019×", "1.210×", "10.0×", "40.0×", "123×"])

    def test_a_null_interval_is_no_error(self):
        data = synthetic()
        data["cells"][1].update(ci_low_us=None, ci_high_us=None)
        data["verdicts"][0].update(ci_low=None, ci_high=None)
        for figure in all_figures(data).values():
            plt.close(figure)

    def test_an_interval_with_swapped_ends_is_an_error(self):
        data = synthetic()
        data["cells"][1].update(ci_low_us=9, ci_high_us=1)
        with self.assertRaisesRegex(SummaryError, r"cells\[1\]: the interval's ends are swapped"):
            Summary(data)
