# SPDX-License-Identifier: Apache-2.0
"""reports/equal_errors.py: which checks of two variants it counts."""

import unittest

import equal_errors


def check(arm, inputs="normal", mean=1e-6, lse=float("nan"), **more):
    return {"arm": arm, "shape": "s", "process": 0, "seed": 1, "inputs": inputs, "max_err": 1e-5,
            "mean_err": mean, "lse_err": lse, **more}


def verdict(toggle, **more):
    return {"toggle": toggle, "base": "a", "candidate": "b", "shape": "s", **more}


class EqualErrors(unittest.TestCase):
    def test_a_variant_beside_its_own_timed_graph_is_no_check(self):
        checks = equal_errors.checks_of([check("a"), check("b"), check("a", "timed_graph", 0, 0),
                                         check("b", "timed_graph", 0, 0)])
        self.assertEqual(equal_errors.same(checks, verdict("t")), (1, 1))

    def test_checks_of_both_on_the_same_inputs_are_compared_to_the_last_digit(self):
        checks = equal_errors.checks_of([
            check("a"), check("b"), check("a", seed=2), check("b", seed=2, mean=1.0000001e-6),
            check("a", process=1), check("b", process=2), check("b", "outliers")])
        self.assertEqual(equal_errors.same(checks, verdict("t")), (2, 1))

    def test_rows_are_what_the_program_counts_and_toggles_that_left_the_list(self):
        left, other = equal_errors.TOGGLES
        summary = {"verdicts": [verdict("kept", same_errors={"checks": 12, "same": 12}),
                                verdict(left), verdict("changes bits")],
                   "comparisons": [verdict("kept", same_errors={"checks": 3, "same": 2})]}
        rows = equal_errors.count([(summary, [check("a"), check("b", mean=2e-6)])])
        self.assertEqual(list(rows.values()), [[15, 14], [1, 0], [0, 0]])
        text = equal_errors.table("NVIDIA H200", rows)
        self.assertTrue(text.startswith("NVIDIA H200:\n\n| claims | checks | same errors |\n"), text)
        self.assertIn(f"| `{left}` | 1 | 0 |\n", text)
        self.assertNotIn(other, text)


if __name__ == "__main__":
    unittest.main()
