# SPDX-License-Identifier: Apache-2.0
"""Which verdicts stand in one picture: the same cases as reports/model/derived/verdict_pictures.cc has."""

import json
import types
import unittest

from fixture import ROOT

from plots import parts

CASES = json.loads((ROOT / "tests/reports/testdata/picture_parts.json").read_text())


def summary_of(case):
    shapes = [dict(zip(("name", "head_dim", "causal"), shape)) for shape in case["shapes"]]
    rows = [{"shape": shape["name"]} for shape in shapes] * case["verdicts_per_shape"]
    return types.SimpleNamespace(shapes=shapes, verdicts=rows, cells=rows, peers=rows, floors=rows,
                                 part="")


class PartsTest(unittest.TestCase):
    def test_parts_are_cut_by_head_dim_then_by_mask_then_evenly(self):
        self.assertGreater(len(CASES), 5)
        for case in CASES:
            with self.subTest(case["case"]):
                cut = parts.parts(summary_of(case))
                self.assertEqual([[suffix, [shape["name"] for shape in part.shapes]]
                                  for suffix, part in cut],
                                 [[suffix, names] for suffix, _, names in case["parts"]])

    def test_a_part_has_the_rows_of_its_shapes_and_says_which_they_are(self):
        summary = summary_of(CASES[3])
        cut = dict(parts.parts(summary))
        self.assertEqual(cut["_d128"].part, "shapes with head_dim 128 · ")
        self.assertEqual(cut["_d64_full_2"].part,
                         "2 of the shapes with head_dim 64, full attention · ")
        for part in cut.values():
            names = {shape["name"] for shape in part.shapes}
            for rows in (part.verdicts, part.cells, part.peers, part.floors):
                self.assertEqual({row["shape"] for row in rows}, names)
                self.assertEqual(len(rows), len(names) * CASES[3]["verdicts_per_shape"])
        self.assertEqual(len(summary.shapes), 7)
        self.assertEqual([part.part for _, part in parts.parts(summary_of(CASES[0]))], [""])
