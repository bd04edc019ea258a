# SPDX-License-Identifier: Apache-2.0
"""The figure of a calibration: what it shows, and how it fails."""


from figure_test_case import FigureTest

from plots import calibration
from plots.summary import SummaryError


def rate(count, of):
    return {"count": count, "of": of, "rate": count / of, "low": 0.9 * count / of,
            "high": min(1.0, 1.1 * count / of + 0.1)}


def invented():
    """A small summary; its figures mean nothing."""
    plants = [{"aimed_percent": aimed, "achieved_percent": aimed + 0.05, "found": rate(found, 10),
               "found_in_family": rate(found, 10), "neutral": rate(10 - found, 10)}
              for aimed, found in ((0.5, 0), (1.0, 5), (2.0, 10))]
    trials = [{"candidate": f"null:{i:02d}", "ratio": 1 + 0.0001 * (i - 3),
               "ci_low": 0.999 + 0.0001 * (i - 3), "ci_high": 1.001 + 0.0001 * (i - 3),
               "p_value": (i + 1) / 8} for i in range(7)]
    trials[6]["ci_low"] = 1.0002
    return {"schema_version": 1, "design": "calibrate",
            "provenance": {"gpu": {"name": "NVIDIA H200"}, "created_utc": "2026-01-02T03:04:05Z"},
            "shapes": [{"name": "mission_b"}],
            "targets": [{"name": "planted_found", "limit": 0.95}],
            "statistics": {"neutral_delta": 0.01, "confidence": 0.95, "trial_processes": 5,
                           "trial_blocks": 24},
            "aa": {"trials": 7, "false_verdicts": rate(0, 7), "false_verdicts_in_family": rate(0, 7),
                   "intervals_holding_truth": rate(6, 7), "verdicts": {"NEUTRAL": 7}},
            "plants": plants, "trials": trials}


class CalibrationTest(FigureTest):
    def test_the_title_says_what_was_found(self):
        figure = calibration.draw(invented())
        texts = [text.get_text().replace("\n", " ") for text in figure.texts]
        self.assertTrue(any("0 false verdicts in 7 A/A trials" in text for text in texts), texts)
        self.assertTrue(any("is found in 10 of 10" in text for text in texts), texts)

    def test_intervals_that_miss_the_truth_stand_out(self):
        panel = calibration.draw(invented()).axes[1]
        lines = [line for line in panel.lines if len(line.get_xdata()) == 2
                 and line.get_linewidth() == 1.2]
        self.assertEqual(len(lines), 7)
        self.assertEqual(len({line.get_color() for line in lines}), 2)

    def test_the_target_is_named_and_no_mark_hides_another(self):
        data = invented()
        panel = calibration.draw(data).axes[0]
        self.assertIn("target: 95%", [text.get_text() for text in panel.texts])
        marks = [(x, y) for line in panel.lines if line.get_label()[0] != "_"
                 for x, y in zip(line.get_xdata(), line.get_ydata())]
        self.assertEqual(len(marks), 12)
        self.assertEqual(len(set(marks)), 12)  # two curves are equal everywhere
        data["targets"] = []
        self.assertFalse([text for text in calibration.draw(data).axes[0].texts
                          if "target" in text.get_text()])

    def test_a_calibration_without_plants_can_be_drawn(self):
        data = invented()
        data["plants"] = []
        calibration.draw(data)

    def test_a_plant_whose_trials_are_all_invalid_has_no_point(self):
        data = invented()
        data["plants"][1]["found"] = {"count": 0, "of": 0, "rate": None, "low": 0.0, "high": 1.0}
        curves = {line.get_label(): line for line in calibration.draw(data).axes[0].lines
                  if line.get_label()[0] != "_"}
        self.assertEqual([len(curves[label].get_xdata()) for label in
                          ("REGRESSION, judged alone", "REGRESSION, strictest level", "NEUTRAL")],
                         [3, 4, 4])

    def test_neutral_is_a_share_of_the_trials_that_are_valid(self):
        data = invented()
        data["aa"]["false_verdicts"] = rate(0, 4)
        data["aa"]["verdicts"] = {"NEUTRAL": 3, "INCONCLUSIVE": 1, "INVALID": 3}
        curves = {line.get_label(): line for line in calibration.draw(data).axes[0].lines}
        self.assertEqual(curves["NEUTRAL"].get_ydata()[0], 75)

    def test_what_is_missing_or_null_is_an_error_that_names_its_path(self):
        for path in (("aa",), ("plants",), ("targets",), ("shapes", 0, "name"),
                     ("statistics", "neutral_delta"), ("statistics", "trial_blocks"),
                     ("aa", "verdicts"), ("aa", "false_verdicts", "low"),
                     ("aa", "intervals_holding_truth"),
                     ("plants", 1, "achieved_percent"), ("plants", 1, "found"),
                     ("plants", 2, "found_in_family", "count"), ("targets", 0, "limit"),
                     ("trials",), ("trials", 3, "p_value"), ("trials", 3, "candidate")):
            for spoil in (lambda parent, key: parent.pop(key),
                          lambda parent, key: parent.update({key: None})):
                data = invented()
                parent = data
                for key in path[:-1]:
                    parent = parent[key]
                spoil(parent, path[-1])
                where = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
                with self.subTest(path=where), self.assertRaises(SummaryError) as raised:
                    calibration.draw(data)
                self.assertIn(f" {where[1:]} ", str(raised.exception))
                self.assertNotIn("\n", str(raised.exception))

    def test_a_calibration_without_shapes_or_trials_is_an_error(self):
        no_trials = invented()["aa"] | {"false_verdicts": rate(0, 1) | {"of": 0, "rate": None}}
        for key, value in (("shapes", []), ("trials", []), ("aa", no_trials)):
            with self.assertRaisesRegex(SummaryError, "nothing to draw|no A/A trial"):
                calibration.draw(invented() | {key: value})

    def test_render_refuses_it_in_one_line_and_writes_nothing(self):
        data = invented()
        del data["plants"][0]["found"]["rate"]
        self.assert_fails(data, "plants[0].found.rate")

    def test_render_draws_it_with_the_same_bytes_each_time(self):
        contents = set()
        for _ in range(2):
            self.assertEqual(self.run_on(invented()), (0, ""))
            contents.add(self.written()["calibration.svg"])
        self.assertEqual(len(contents), 1)
