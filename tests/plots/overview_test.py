# SPDX-License-Identifier: Apache-2.0
"""Matrix, interactions, roofline and stalls: what they show, that they are readable, how they fail."""

import itertools
import math

import make_summary
from figure_test_case import FigureTest, heading

from plots import interactions, matrix, profile, render, roofline, stalls, style
from plots.profile import ProfileSummary
from plots.summary import Summary, SummaryError

TOGGLES = ["warp_shuffle", "vector_loads", "wmma_qk", "cp_async_stages"]


def factorial(ratios):
    """The synthetic summary as a factorial's with these interactions at mission_b. Invented."""
    data = make_summary.make_summary()
    data["design"] = "factorial"
    data["interactions"] = [
        {"shape": "mission_b", "a": a, "b": b, "interaction_ratio": ratio,
         "ci_low": None if ratio is None else ratio * 0.99,
         "ci_high": None if ratio is None else ratio * 1.01}
        for (a, b), ratio in ratios.items()]
    return data


def pairs(*values):
    return dict(zip(itertools.combinations(TOGGLES, 2), values))


def profiles():
    """An invented profile summary of three kernels on two shapes."""
    launches = []
    for i, variant in enumerate(["minimal_scalar", "ladder:kv_tiling", "hopper:ping_pong"]):
        for shape in ("mission_b", "long"):
            launches.append({
                "variant": variant, "shape": shape, "reason": "", "p50_us": 100.0 / (1 + 9 * i),
                "roof": "wgmma" if variant.startswith("hopper") else "fp32 FMA",
                "metrics": {
                    "lts__t_bytes.sum": {"value": 1e8 / (1 + i), "unit": "byte"},
                    **{f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio":
                       {"value": value, "unit": "inst"}
                       for reason, value in (("selected", 1), ("wait", 1 + i), ("barrier", 2),
                                             ("long_scoreboard", 0.5), ("sleeping", 0.25))}}})
    return {"kind": "profile", "gpu": {"name": "NVIDIA H200"},
            "provenance": {"created_utc": "2026-01-02T03:04:05Z", "ncu": "2025.3 (build)"},
            "shapes": [{"name": "mission_b", "flops": 5e8}, {"name": "long", "flops": 8e9}],
            "ceilings": [{"name": "wgmma", "per_s": 1e15, "of": "flop"},
                         {"name": "fp32 FMA", "per_s": 6e13, "of": "flop"},
                         {"name": "L2", "per_s": 9e12, "of": "bytes"}],
            "profiles": launches}


class OverviewTest(FigureTest):
    @staticmethod
    def ids(figure):
        return {artist.get_gid() for axes in figure.axes for artist in axes.get_children()
                if artist.get_gid()}

    def test_the_matrix_has_a_cell_for_each_verdict(self):
        summary = Summary(make_summary.make_summary())
        figure = matrix.draw(summary)
        self.assertEqual(self.ids(figure), {f"cell:{v['toggle']}:{v['shape']}"
                                            for v in summary.verdicts})
        texts = self.assert_readable(figure)
        for verdict in {v["verdict"] for v in summary.verdicts}:
            self.assertIn(style.spoken(verdict), texts)

    def test_a_matrix_says_which_toggles_change_sign(self):
        data = make_summary.make_summary()
        toggle = data["verdicts"][0]["toggle"]
        for i, verdict in enumerate(v for v in data["verdicts"] if v["toggle"] == toggle):
            verdict["verdict"] = "ADOPT" if i else "REGRESSION"
        for verdict in data["verdicts"]:
            if verdict["toggle"] != toggle:
                verdict["verdict"] = "ADOPT"
        figure = matrix.draw(Summary(data))
        self.assertIn("1 changes sign", heading(figure))

    def test_a_matrix_does_not_praise_verdicts_that_agree_on_nothing(self):
        data = make_summary.make_summary()
        for verdict in data["verdicts"]:
            verdict["verdict"] = "INCONCLUSIVE"
        title = heading(matrix.draw(Summary(data)))
        self.assertEqual(title, "No toggle is decided at any shape")
        toggle = data["verdicts"][0]["toggle"]
        for verdict in data["verdicts"]:
            if verdict["toggle"] == toggle:
                verdict["verdict"] = "NEUTRAL"
        title = heading(matrix.draw(Summary(data)))
        count = len({verdict["toggle"] for verdict in data["verdicts"]})
        self.assertIn(f"1 of {count} toggles get one verdict at every shape", title)

    def test_without_verdicts_there_is_no_matrix(self):
        data = make_summary.make_summary()
        data["verdicts"] = []
        with self.assertRaisesRegex(SummaryError, "no verdict"):
            matrix.draw(Summary(data))

    def test_interactions_show_each_pair_once_and_say_which_is_strongest(self):
        data = factorial(pairs(1.1, 0.8, 1.001, 1.05, None, 1.02))
        figure = interactions.draw(Summary(data), "mission_b")
        texts = self.assert_readable(figure)
        self.assertEqual(len(self.ids(figure)), 6)
        self.assertIn("one needs the other", texts)
        self.assertIn("0.800×", texts)
        self.assertIn("share one gain most at mission_b", heading(figure))

    def test_an_interaction_whose_interval_holds_one_is_not_called_strong(self):
        data = factorial(pairs(1.001, 0.999, 1.001, 1.002, 1.001, 1.002))
        figure = interactions.draw(Summary(data), "mission_b")
        self.assertIn("No pair of toggles surely interacts", heading(figure))

    def test_without_interactions_there_is_no_heat_map(self):
        data = factorial(pairs(None, None, None, None, None, None))
        with self.assertRaisesRegex(SummaryError, "no interactions at mission_b"):
            interactions.draw(Summary(data), "mission_b")

    def test_the_roofline_puts_each_launch_at_its_rate_and_intensity(self):
        summary = ProfileSummary(profiles())
        figure = roofline.draw(summary)
        self.assert_readable(figure)
        lines = {line.get_gid(): line for line in figure.axes[0].lines if line.get_gid()}
        self.assertEqual(len(lines), 6)
        point = lines["point:minimal_scalar:mission_b"]
        self.assertTrue(math.isclose(point.get_xdata()[0], 5.0))
        self.assertTrue(math.isclose(point.get_ydata()[0], 5e12))

    def test_the_rooflines_numbers_keep_apart_where_kernels_crowd(self):
        data = profiles()
        data["profiles"] = [dict(data["profiles"][0], variant=f"ladder:step_{i}",
                                 p50_us=100.0 * 1.01 ** i) for i in range(14)]
        self.assert_readable(roofline.draw(ProfileSummary(data)))

    def test_a_bare_level_keeps_its_designs_name(self):
        self.assertEqual([profile.short(variant) for variant in
                          ("ladder:wmma_pv", "mma_layout:off", "mma_layout:2", "minimal_scalar")],
                         ["wmma_pv", "mma_layout:off", "mma_layout:2", "minimal_scalar"])

    def test_the_rooflines_title_is_of_the_roof_above_the_point(self):
        for variant in "minimal_scalar", "hopper:ping_pong":
            data = profiles()
            data["profiles"] = [launch for launch in data["profiles"]
                                if launch["variant"] == variant][:1]
            summary = ProfileSummary(data)
            point = summary.launches[0]
            roof = min(summary.ceilings[point["roof"]][0],
                       summary.ceilings["L2"][0] * point["flop_per_l2_byte"])
            title = heading(roofline.draw(summary))
            self.assertIn(f"{point['flop_per_s'] / roof:.0%} of what it allows there", title)

    def test_long_names_beside_the_roofline_are_broken_into_lines(self):
        data = profiles()
        long = "mma_decode:mma_pack_heads+mma_split_kv+mma_smem_layout=2+mma_bulk_copy"
        for launch in data["profiles"]:
            launch["variant"] = long
        self.assert_readable(roofline.draw(ProfileSummary(data)))

    def test_the_roofline_has_no_key_of_a_shape_without_a_time(self):
        data = profiles()
        for launch in data["profiles"]:
            launch["p50_us"] = launch["p50_us"] if launch["shape"] == "long" else None
        keys = roofline.draw(ProfileSummary(data)).legends[0].get_texts()
        self.assertEqual([text.get_text() for text in keys], ["long"])

    def test_variants_of_one_short_name_keep_their_whole_names(self):
        self.assertEqual(profile.short_names(["a:one", "b:one", "b:two"]),
                         {"a:one": "a:one", "b:one": "b:one", "b:two": "two"})

    def test_without_roofs_there_is_no_roofline_but_there_are_stalls(self):
        summary = ProfileSummary(profiles() | {"ceilings": []})
        with self.assertRaisesRegex(SummaryError, "there are no roofs to draw"):
            roofline.draw(summary)
        self.assertEqual(list(render.figures(summary)),
                         ["profile_stalls_mission_b", "profile_stalls_long"])

    def test_without_times_there_is_no_roofline_but_there_are_stalls(self):
        data = profiles()
        for launch in data["profiles"]:
            launch["p50_us"] = None
        summary = ProfileSummary(data)
        with self.assertRaisesRegex(SummaryError, "no profiled kernel was timed"):
            roofline.draw(summary)
        self.assertEqual(list(render.figures(summary)),
                         ["profile_stalls_mission_b", "profile_stalls_long"])

    def test_stalls_add_up_to_the_whole(self):
        figure = stalls.draw(ProfileSummary(profiles()), "mission_b")
        self.assert_readable(figure)
        for y in range(3):
            width = sum(patch.get_width() for patch in figure.axes[0].patches
                        if abs(patch.get_y() + patch.get_height() / 2 - y) < 1e-6)
            self.assertAlmostEqual(width, 1)

    def test_a_stalls_label_is_of_the_exact_sum_whatever_this_python_adds(self):
        # Python adds floats one by one before 3.12, and exactly since. 0.89 of 7.12 is an eighth.
        summary = ProfileSummary(profiles())
        launch = next(launch for launch in summary.launches if launch["shape"] == "mission_b")
        reasons = "wait", "barrier", "selected", "not_selected", "long_scoreboard", "mio_throttle"
        launch["stalls"] = dict(zip(reasons, (0.72, 1.36, 1.68, 0.83, 0.89, 1.64)))
        labels = [text.get_text() for text in stalls.draw(summary, "mission_b").axes[0].texts]
        self.assertIn("12%", labels)
        self.assertNotIn("13%", labels)

    def test_the_stalls_title_names_two_kernels_and_what_they_wait_for(self):
        figure = stalls.draw(ProfileSummary(profiles()), "mission_b")
        self.assertEqual(heading(figure),
                         "At mission_b the warps of minimal_scalar wait most for each other at "
                         "barriers (42% of their cycles), those of ping_pong for the fixed latency of their own "
                         "instructions (44%)")

    def test_the_stalls_of_one_long_configuration_are_readable(self):
        data = profiles()
        data["profiles"] = [launch for launch in data["profiles"] if launch["shape"] == "mission_b"][:1]
        data["profiles"][0]["variant"] = "+".join(["wgmma", *(f"wgmma_toggle_{i}" for i in range(12))])
        figure = stalls.draw(ProfileSummary(data), "mission_b")
        self.assert_readable(figure)
        self.assertEqual(heading(figure),
                         "At mission_b the warps of wgmma+…+wgmma_toggle_10+wgmma_toggle_11 wait most for each other "
                         "at barriers (42% of their cycles)")

    def test_launches_that_failed_are_left_out(self):
        data = profiles()
        data["profiles"][0]["reason"] = "ncu exited with status 9"
        self.assertEqual(len(ProfileSummary(data).launches), 5)

    def test_a_damaged_profile_summary_is_named_and_leaves_no_file(self):
        data = profiles()
        data["profiles"][1]["metrics"]["lts__t_bytes.sum"]["value"] = "many"
        self.assert_fails(data, "profiles[1].metrics.lts__t_bytes.sum.value")
