# SPDX-License-Identifier: Apache-2.0
"""What stands between the waits of a step, and that each instance's machine code says it."""

import re
import unittest

import wait_order
from fixture import BUILD

SCORES = ["WARPGROUP.ARRIVE", "HGMMA.64x112x16.F32", "UIADD3", "HGMMA.64x112x16.F32"]
OUTPUT = ["WARPGROUP.ARRIVE", "QGMMA.64x128x32.F32.E4M3.E4M3"]
WAIT = ["WARPGROUP.DEPBAR.LE"]
EXP = ["MUFU.EX2"]


def steps(*parts):
    return wait_order.steps([opcode for part in parts for opcode in part])


class Steps(unittest.TestCase):
    def test_count_what_stands_beside_pv_and_what_behind(self):
        self.assertEqual(steps(SCORES, OUTPUT, WAIT, EXP, EXP, ["FADD"], WAIT, EXP), [(2, 1)])
        self.assertEqual(steps(SCORES, OUTPUT, WAIT, ["MUFU.RCP"], WAIT, EXP), [(0, 1)])

    def test_end_where_the_next_products_begin(self):
        self.assertEqual(steps(SCORES, OUTPUT, WAIT, EXP, WAIT, SCORES, OUTPUT, WAIT, WAIT, EXP),
                         [(1, 0), (0, 1)])

    def test_are_those_of_two_products_alone(self):
        # The first scores, and the last P V, wait by themselves.
        self.assertEqual(steps(SCORES, WAIT, EXP, SCORES, OUTPUT, WAIT, EXP, WAIT, OUTPUT, WAIT,
                               EXP), [(1, 0)])
        self.assertEqual(steps(SCORES, WAIT, EXP, OUTPUT, WAIT, EXP), [])


class Instances(unittest.TestCase):
    def found(self, chosen):
        """{variant: steps}; that there are none is a skip only where none can be read."""
        if not wait_order.has_nvdisasm():
            self.skipTest("no nvdisasm")
        if not wait_order.of_build(BUILD, lambda name: name == "wgmma"):
            self.skipTest("no instance for Hopper in this build")
        found = wait_order.of_build(BUILD, chosen)
        self.assertTrue(found, "no instance has the names that this test looks for")
        return found

    def test_have_all_exponentials_of_a_step_about_its_waits(self):
        found = self.found(lambda name: re.search(r"ping_pong\+dynamic_schedule(@|$)", name)
                           and "+softmax_overlap" in name and "=" not in name)
        for variant, counts in found.items():
            with self.subTest(variant=variant):
                # Of masked tiles and of others: two rows of a thread, and a factor for each.
                keys = 112 if "@d" not in variant else 80 if "@d256" in variant else 128
                self.assertEqual([sum(pair) for pair in counts], 2 * [keys // 2 + 2])

    def test_with_a_late_wait_have_all_or_half_of_them_ahead_of_it(self):
        for level, ahead in (("wgmma_late_wait", 1.0), ("wgmma_late_wait=2", 0.5)):
            # Every such instance overlaps, so that each has two kinds of steps. In FP8 at head_dim 256 P V has
            # parts, each with a wait of its own.
            found = self.found(lambda name, level=level: f"+{level}+" in name and
                               not ("+wgmma_fp8" in name and "@d256" in name))
            for variant, counts in found.items():
                with self.subTest(variant=variant):
                    self.assertEqual(len(counts), 2)
                    for between, behind in counts:
                        self.assertGreater(between, 0)
                        self.assertEqual(between, ahead * (between + behind))
