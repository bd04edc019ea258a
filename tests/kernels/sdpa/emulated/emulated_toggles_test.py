# SPDX-License-Identifier: Apache-2.0
"""Hopper's kernels that have every level of every toggle between them, and each level that a kernel has beside
multicast with it, are right on the CPU: on sizes that no tile divides, and on some drawn at random.

    emulated_toggles_test.py --run EMULATED_RUN --instances INSTANCES_JSON -- COMPILER FLAGS...
"""

import random
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


def drawn(draw):
    """Sizes at which the ring of tiles comes round, or not; rows that end anywhere in a block."""
    heads_kv, rows = draw.choice((1, 2)), draw.randint(1, 400)
    keys = draw.choice((rows, draw.randint(1, 300), draw.randint(300, 1000)))
    length = f"{rows}" if keys == rows else f"{rows}x{keys}"
    return f"b{draw.choice((1, 2))}_h{heads_kv * draw.choice((2, 3))}x{heads_kv}_s{length}_"


def problems(variant):
    _, of = parts(variant)
    head_dim = next((each for each in of if each.startswith("d") and each[1:].isdigit()), "d64")
    draw = random.Random(variant)
    return ["_".join([sizes + head_dim, *(each for each in ("causal", "bf16") if each in of)])
            for sizes in (SIZES, *(drawn(draw) for _ in range(3)))]


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

            def outcomes(variant):
                library = on_cpu.compiled(variant, on_cpu.instances[variant]["symbol"])
                return [(problem, *on_cpu.ran(library, problem)) for problem in problems(variant)]
            for variant, found in zip(variants, instances_on_cpu.map_all(outcomes, variants)):
                for problem, code, said in found:
                    with self.subTest(variant, problem=problem):
                        self.assertIn(code, (0, MAY_BREAK), said)


if __name__ == "__main__":
    EmulatedTogglesTest.options = instances_on_cpu.options(__doc__)
    unittest.main(argv=sys.argv[:1])
