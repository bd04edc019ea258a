# SPDX-License-Identifier: Apache-2.0
"""Cases that are named elsewhere, by toggles and by the texts of pages, are cases of the program,
which refuses names and arguments that it doesn't know."""

import json
import unittest

import answers
from fixture import BUILD, PROGRAM, run

MICRO = BUILD / "bin/warpledger_micro"


def is_unknown(name, cases):
    """Whether no case is called so. A benchmark that this build lacks altogether (wgmma in one for
    sm_80 alone) can't be asked."""
    return name not in cases and name.partition("/")[0] in {case.partition("/")[0] for case in cases}


def unknown_cases(toggles, cases):
    """[(toggle, case)] of the names that no microbenchmark has."""
    return [(toggle["id"], toggle[field]) for toggle in toggles for field in ("micro", "micro_off")
            if toggle[field] and is_unknown(toggle[field], cases)]


class CaseNamesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        def read(*command):
            return json.loads(run(*command, check=True).stdout)
        cls.toggles = read(PROGRAM, "list", "--format=json")["toggles"]
        cls.cases = {case["name"]: case
                     for case in read(MICRO, "--warpledger_list")["cases"]}

    def test_every_name_is_a_case(self):
        self.assertTrue(self.toggles)
        self.assertEqual(unknown_cases(self.toggles, self.cases), [])

    def test_most_techniques_are_isolated(self):
        techniques = [toggle for toggle in self.toggles if not toggle["control"]]
        isolated = [toggle for toggle in techniques if toggle["micro"]]
        self.assertGreater(2 * len(isolated), len(techniques))

    def test_a_control_has_none(self):
        self.assertEqual([toggle["id"] for toggle in self.toggles
                          if toggle["control"] and toggle["micro"]], [])

    def test_what_is_compared_is_measured_the_same_way(self):
        # Rates with rates, costs with costs; FLOP with FMA by the row's factor.
        for toggle in self.toggles:
            if not {toggle["micro"], toggle["micro_off"]} <= set(self.cases):
                continue
            units = {self.cases[toggle[field]]["unit"] for field in ("micro", "micro_off")}
            with self.subTest(toggle=toggle["id"]):
                self.assertTrue(len(units) == 1 or units == {"fma/clk/SM", "FLOP/clk/SM"}, units)

    def test_texts_of_pages_name_cases(self):
        texts = answers.all_texts()
        self.assertGreater(sum(len(answers.cases_named(text)) for text in texts), 50)
        for text in texts:
            for case in answers.cases_named(text):
                self.assertFalse(is_unknown(case, self.cases), f"{case} in: {text}")

    def test_an_unknown_name_is_found(self):
        toggles = [{"id": "x", "micro": "a/b/c", "micro_off": ""}]
        self.assertEqual(unknown_cases(toggles, {"a/b/d": {}}), [("x", "a/b/c")])
        self.assertEqual(unknown_cases(toggles, {"b/b/d": {}}), [])

    def refused(self, *arguments):
        done = run(MICRO, *arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def test_a_filter_that_matches_no_case_is_wrong_use(self):
        self.assertIn("nonesuch", self.refused("--benchmark_list_tests",
                                               "--benchmark_filter=nonesuch"))

    def test_an_unknown_argument_is_refused_before_anything_is_listed(self):
        self.assertIn("--speed", self.refused("--warpledger_list", "--speed"))
