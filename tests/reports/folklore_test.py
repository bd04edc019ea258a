# SPDX-License-Identifier: Apache-2.0
"""reports/folklore.py: outcomes, surprises, the page and README's section."""

import unittest

import folklore


def verdict(toggle, shape, kind, ratio, reason=""):
    return {"toggle": toggle, "shape": shape, "verdict": kind, "ratio": ratio, "reason": reason,
            "ci_low": ratio and ratio * 0.99, "ci_high": ratio and ratio * 1.01}


def claims(*cases):
    """Of (id, [(verdict, ratio)], predicted range of the first problem)."""
    of_claims = [{"id": name, "label": name.title(), "prediction": {"problem": "p0", "low": low, "high": high},
                  "source": {"name": "A book", "link": "https://example.org/book"}}
                 for name, _, (low, high) in cases]
    of_claims.append({"id": "nobody", "label": "Nobody says so"})
    verdicts = [verdict(name, f"p{i}", *given) for name, all_given, _ in cases
                for i, given in enumerate(all_given)]
    return folklore.claims_of({"definition": {"study": {"name": "sums", "claim": of_claims}}},
                              {"verdicts": verdicts}, "folklore/sums/ladder.md")


class FolkloreTest(unittest.TestCase):
    def test_an_outcome_is_of_all_problems(self):
        for outcome, kinds in (
                ("held", [("ADOPT", 2), ("ADOPT", 1.5)]),
                ("depends", [("ADOPT", 2), ("REGRESSION", 0.5)]),
                ("depends", [("NEUTRAL", 1), ("ADOPT", 2)]),
                ("small", [("REAL_BELOW_GATE", 1.02), ("NEUTRAL", 1)]),
                ("history", [("NEUTRAL", 1), ("INCONCLUSIVE", 1)]),
                ("history", [("REGRESSION", 0.9), ("REGRESSION", 0.9)]),
                ("no_code", [("INVALID", 1, "the machine code is the same")] * 2),
                ("open", [("INVALID", 1, "throttled")] * 2),
                ("open", [("INCONCLUSIVE", 1)] * 2),
                ("wrong", [("ADOPT", 2), ("BROKEN", 2)])):
            with self.subTest(kinds):
                self.assertEqual(claims(("a", kinds, (1, 2)))[0].outcome, outcome)

    def test_a_surprise_is_furthest_outside_of_what_was_predicted(self):
        found = folklore.surprises(claims(
            ("as_said", [("ADOPT", 1.5)], (1.2, 2)), ("less", [("NEUTRAL", 1)], (1.2, 2)),
            ("far_less", [("REGRESSION", 0.5)], (1.2, 2)), ("more", [("ADOPT", 3)], (1.2, 2)),
            ("wrong", [("BROKEN", 9)], (1.2, 2)), ("near", [("ADOPT", 2.01)], (1.2, 2))))
        self.assertEqual([claim.id for claim in found], ["far_less", "more", "less"])

    def test_the_page_ranks_claims_and_says_who_says_so(self):
        text = folklore.page("NVIDIA X", claims(
            ("padding", [("ADOPT", 2), ("ADOPT", 1.5)], (1.2, 2.5)),
            ("camping", [("NEUTRAL", 1), ("REGRESSION", 0.9)], (1.5, 2)),
            ("broken", [("BROKEN", None), ("ADOPT", 2)], (1.5, 2))))
        self.assertIn("3 claims that CUDA courses repeat, from 1 [studies]", text)
        self.assertIn("1 held at every problem, 1 gained nothing, 1 gave wrong results", text)
        self.assertIn("1 of 2 predictions", text)
        self.assertIn("Intervals are for the board that was measured", text)
        self.assertIn("| Padding | [sums](folklore/sums/ladder.md) | [A book](https://example.org/book) | "
                      "2.00× [1.98, 2.02] **ADOPT** at `p0`<br>1.50× [1.48, 1.52] **ADOPT** at `p1` | "
                      "1.2 to 2.5 at `p0`: held |", text)
        self.assertIn("1.5 to 2 at `p0`: measured less", text)
        self.assertIn("**BROKEN** at `p0`", text)
        self.assertLess(text.index("## Held: 1"), text.index("## No gain: 1"))
        self.assertNotIn("Nobody", text)

    def test_readme_has_the_surprises_where_it_had_others(self):
        said = folklore.section(claims(("camping", [("NEUTRAL", 1)], (1.5, 2))), "reports/x/folklore.md")
        self.assertIn("**Camping** ([sums](reports/x/folklore/sums/ladder.md)): predicted 1.5× to 2×, "
                      "measured 1.00× [0.990, 1.01] at `p0`.", said)
        self.assertNotIn("\n", said)
        self.assertEqual(folklore.renewed(f"a {folklore.BEGIN}old{folklore.END}\nb\n", said),
                         f"a {folklore.BEGIN}{said}{folklore.END}\nb\n")
        with self.assertRaises(ValueError):
            folklore.renewed("a", said)
