# SPDX-License-Identifier: Apache-2.0
"""TFLOP/s by length: what the figure shows, that it is readable, and when there is none."""

import json
import math

from figure_test_case import FigureTest, heading
from make_summary import GRID_LENGTHS, make_grid, make_summary

from plots import render, throughput
from plots.summary import Summary, SummaryError


def line(axes, label):
    return next(drawn for drawn in axes.lines if drawn.get_label() == label)


class ThroughputTest(FigureTest):
    def test_a_panel_stands_for_each_head_dimension_and_mask(self):
        figure = throughput.draw(Summary(make_grid()))
        texts = self.assert_readable(figure)
        self.assertEqual(len(figure.axes), 6)
        for title in "head_dim 64, full", "head_dim 256, causal":
            self.assertIn(title, texts)
        self.assertIn("16k", texts)

    def test_a_point_is_the_shapes_flop_over_the_fastest_arms_time(self):
        data = make_grid(head_dims=(128,), masks=(True,))
        axes = throughput.draw(Summary(data)).axes[0]
        drawn = line(axes, throughput.OURS)
        self.assertEqual(list(drawn.get_xdata()), list(GRID_LENGTHS))
        for shape, rate in zip(data["shapes"], drawn.get_ydata()):
            us = min(cell["p50_us"] for cell in data["cells"] if cell["shape"] == shape["name"])
            self.assertAlmostEqual(rate, shape["flops"] / us / 1e6)
        flash = next(peer for peer in data["peers"] if peer["name"] == "peer:flash")
        self.assertAlmostEqual(line(axes, "flash (FA2)").get_ydata()[0],
                               data["shapes"][0]["flops"] / flash["p50_us"] / 1e6)

    def test_wrong_or_untimed_arms_are_no_points(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        for cell in data["cells"]:
            cell["correct"] = cell["variant"] != "hopper:ping_pong"
        for cell in data["cells"][:2]:
            cell["correct"] = False  # all of S = 512
        axes = throughput.draw(Summary(data)).axes[0]
        self.assertEqual(list(line(axes, throughput.OURS).get_xdata()), list(GRID_LENGTHS[1:]))

    def test_the_title_is_the_geometric_mean_over_the_best_peer(self):
        data = make_grid(head_dims=(64,), masks=(False,), lengths=GRID_LENGTHS[:3])
        for peer in data["peers"]:
            us = min(cell["p50_us"] for cell in data["cells"] if cell["shape"] == peer["shape"])
            ratio = {512: 0.5, 1024: 2.0, 2048: 8.0}[int(peer["shape"].split("_s")[1].split("_")[0])]
            peer["p50_us"] = us * ratio * (1 if peer["name"] == "peer:cudnn" else 3)
            peer.update(ci_low_us=None, ci_high_us=None)
        title = heading(throughput.draw(Summary(data)))
        self.assertIn("2.00× the best peer over 3 cells (geometric mean), 0.500× to 8.00×", title)

    def test_the_subtitle_says_how_variants_were_timed(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        self.assertIn(" · variants in turn · ", throughput.draw(Summary(data)).texts[-1].get_text())
        data["provenance"]["alone"] = {"settle_s": 0.5, "window_s": 1.0}
        self.assertIn(" · each alone · ", throughput.draw(Summary(data)).texts[-1].get_text())

    def test_arms_with_8_bits_have_a_line_of_their_own_and_keep_peers_out_of_the_title(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        for cell in data["cells"]:
            cell["p50_us"] = 10.0
            cell.update(ci_low_us=None, ci_high_us=None)
            if cell["variant"] == "hopper:ping_pong":
                cell.update(p50_us=5.0, kv_bits=8)
        for peer in data["peers"]:
            peer.update(p50_us=20.0, ci_low_us=None, ci_high_us=None)
        figure = throughput.draw(Summary(data))
        self.assert_readable(figure)
        ours, eight = (line(figure.axes[0], name).get_ydata()
                       for name in (throughput.OURS, throughput.OURS_8_BIT))
        self.assertAlmostEqual(eight[0] / ours[0], 2)
        title = heading(figure)
        self.assertIn("K and V in 8 bits: 2.00× our fastest variant of 16 bits over", title)
        self.assertNotIn("peer", title)

    def test_arms_and_peers_of_8_bits_alone_are_compared(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        for cell in data["cells"]:
            cell.update(p50_us=10.0, ci_low_us=None, ci_high_us=None, kv_bits=8)
        for peer in data["peers"]:
            peer.update(p50_us=20.0, ci_low_us=None, ci_high_us=None, kv_bits=8)
        title = heading(throughput.draw(Summary(data)))
        self.assertIn("In 8 bits our fastest variant: 2.00× the best peer over", title)
        title = heading(throughput.draw(Summary(data | {"peers": []})))
        self.assertIn("Our fastest variant reaches", title)

    def test_a_line_has_a_gap_where_a_length_is_missing(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        gone = sorted(data["shapes"], key=lambda shape: shape["seq_q"])[2]["name"]
        for cell in data["cells"]:
            if cell["shape"] == gone:
                cell["correct"] = False
        axes = throughput.draw(Summary(data)).axes[0]
        rates = list(line(axes, throughput.OURS).get_ydata())
        self.assertEqual(len(rates), len(GRID_LENGTHS))
        self.assertEqual([math.isnan(rate) for rate in rates], [at == 2 for at in range(len(rates))])

    def test_a_peer_of_8_bits_has_a_line_and_is_no_best_peer(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        title = heading(throughput.draw(Summary(data)))
        data["peers"] += [dict(peer, name="peer:cudnn_fp8", kv_bits=8, p50_us=peer["p50_us"] / 100,
                               ci_low_us=None, ci_high_us=None) for peer in data["peers"]
                          if peer["name"] == data["peers"][0]["name"]]
        figure = throughput.draw(Summary(data))
        self.assertEqual(heading(figure), title)
        self.assertIsNotNone(line(figure.axes[0], "cudnn_fp8"))

    def test_a_line_looks_the_same_whatever_other_lines_there_are(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        looks = {}
        for kv_bits, left_out in ((16, None), (8, None), (16, "peer:flash")):
            for cell in data["cells"]:
                if cell["variant"] == "hopper:ping_pong":
                    cell["kv_bits"] = kv_bits
            axes = throughput.draw(Summary(data | {"peers": [
                peer for peer in data["peers"] if peer["name"] != left_out]})).axes[0]
            for drawn in axes.lines:
                if not drawn.get_label().startswith("_"):
                    looks.setdefault(drawn.get_label(), set()).add((drawn.get_color(),
                                                                    drawn.get_marker()))
        self.assertIn(throughput.OURS_8_BIT, looks)
        self.assertGreaterEqual(len(looks), 4)
        self.assertTrue(all(len(of) == 1 for of in looks.values()), looks)
        self.assertEqual(len(set.union(*looks.values())), len(looks))

    def test_peers_that_are_timed_alone_differ_in_colour_and_mark(self):
        looks = [throughput._LOOKS.get(name, throughput._OTHER_LOOK)
                 for name in (throughput.OURS, "flash (FA2)", "cudnn", "fa3", "fa4", "cudnn_fp8")]
        for part in zip(*looks):
            self.assertEqual(len(set(part)), len(looks))

    def test_the_subtitle_names_the_dtypes_of_the_shapes(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        self.assertIn("· fp16, forward ·", throughput.draw(Summary(data)).texts[-1].get_text())
        for shape in data["shapes"]:
            shape["dtype"] = "bf16"
        self.assertIn("· bf16, forward ·", throughput.draw(Summary(data)).texts[-1].get_text())

    def test_types_of_one_size_are_no_one_curve(self):
        data = make_grid(head_dims=(64,), masks=(False,))
        for listed, name in (("shapes", "name"), ("cells", "shape"), ("peers", "shape")):
            for entry in list(data[listed]):
                brain = dict(entry, **{name: entry[name] + "_bf16"})
                if listed == "shapes":
                    brain["dtype"] = "bf16"
                data[listed].append(brain)
        axes = throughput.draw(Summary(data)).axes[0]
        self.assertEqual(list(line(axes, throughput.OURS).get_xdata()), list(GRID_LENGTHS))

    def test_without_peers_the_title_names_the_highest_rate(self):
        data = make_grid()
        data["peers"] = []
        self.assertIn("reaches", heading(throughput.draw(Summary(data))))

    def test_shapes_that_differ_in_more_than_their_length_are_no_curve(self):
        # small, medium, mission_a, mission_b and long have five lengths, but unlike sizes.
        self.assertEqual(throughput.panels(Summary(make_summary())), {})
        self.assertNotIn("ladder_throughput", render.figures(Summary(make_summary())))
        two = make_grid(lengths=GRID_LENGTHS[:2])
        with self.assertRaisesRegex(SummaryError, "3 lengths"):
            throughput.draw(Summary(two))
        self.assertIn("hopper_throughput", render.figures(Summary(make_grid())))

    def test_several_records_join_in_one_figure(self):
        first = Summary(make_grid(head_dims=(64,), masks=(True,)))
        second = Summary(make_grid(head_dims=(128,), masks=(False,)))
        texts = self.assert_readable(throughput.draw(first, second))
        self.assertEqual(texts.count("not in the record"), 2)
        with self.assertRaisesRegex(SummaryError, "two records hold head_dim 64, causal"):
            throughput.draw(first, Summary(make_grid()))

    def test_render_takes_several_summaries(self):
        other = self.write("256.json", json.dumps(make_grid(head_dims=(256,))))
        self.assertEqual(self.run_on(make_grid(head_dims=(64,)), "--summary", str(other)), (0, ""))
        self.assertEqual(list(self.written()), ["throughput.svg"])
