# SPDX-License-Identifier: Apache-2.0
"""Hopper's kernels that have every level of every toggle between them, and each level that a kernel has beside
multicast with it, are right on the CPU.

    emulated_toggles_test.py --run EMULATED_RUN --instances INSTANCES_JSON -- COMPILER FLAGS...
"""

import sys
import tempfile
import unittest

import instances_on_cpu

# Two query heads to a K/V head, and sizes that no tile divides.
SIZES = "b1_h4x2_s70x203_"
MAY_BREAK = 3  # of emulated_run


def parts(variant):
    """The toggles' levels of a variant, and what its instance is compiled for."""
    levels, _, of = variant.partition("@")
    return set(levels.split("+")), of.split("_") if of else []


def problem(variant):
    _, of = parts(variant)
    head_dim = next((each for each in of if each.startswith("d") and each[1:].isdigit()), "d64")
    return "_".join([SIZES + head_dim, *(each for each in ("causal", "bf16") if each in of)])


def covered(variant):
    """A variant's levels; in a cluster, whose barriers have CTAs on both sides, those beside multicast too."""
    levels = parts(variant)[0]
    return levels | {f"{level} beside multicast" for level in levels if "kv_multicast" in levels}


def cover(variants):
    """As few as cover all between them: time and again the one with most that are left."""
    left = set().union(*map(covered, variants))
    chosen = []
    while left:
        best = max(sorted(variants), key=lambda variant: len(covered(variant) & left))
        chosen.append(best)
        left -= covered(best)
    return chosen


class EmulatedTogglesTest(unittest.TestCase):
    options = None

    def test_kernels_with_each_level_are_right(self):
        with tempfile.TemporaryDirectory() as folder:
            on_cpu = instances_on_cpu.OnCpu(self.options, folder)
            # Those of other families have mma_emulated_forward_test and wmma_emulated_forward_test.
            variants = cover([each for each in on_cpu.instances if "wgmma" in parts(each)[0]])
            self.assertGreater(len(variants), 20)

            def outcome(variant):
                library = on_cpu.compiled(variant, on_cpu.instances[variant]["symbol"])
                return on_cpu.ran(library, problem(variant))
            for variant, (code, said) in zip(variants, instances_on_cpu.map_all(outcome, variants)):
                with self.subTest(variant):
                    self.assertIn(code, (0, MAY_BREAK), said)


if __name__ == "__main__":
    EmulatedTogglesTest.options = instances_on_cpu.options(__doc__)
    unittest.main(argv=sys.argv[:1])
