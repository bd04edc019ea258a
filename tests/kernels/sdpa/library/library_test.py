# SPDX-License-Identifier: Apache-2.0
"""The library without a GPU: what it exports, how it refuses, and how well it chooses.

    library_test.py --shared libwarpledger_sdpa.so --print_costs PROGRAM --program warpledger
"""

import argparse
import ctypes
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[4]
FOLDER = ROOT / "kernels/sdpa/library"
sys.path[:0] = [str(FOLDER), str(ROOT / "ablations/subjects/python")]
import fit_costs  # noqa: E402
from warpledger.attention import Choice, Problem, Strides  # noqa: E402

OK, INVALID, UNSUPPORTED, NO_DEVICE = range(4)
arguments = argparse.Namespace()


# As the structures were before there were strides, and packed sequences.
FIRST_PROBLEM, FIRST_CHOICE = Problem.q.offset, Choice.launches.offset
SECOND_PROBLEM = Problem.total_q.offset
THIRD_PROBLEM = Problem.q_scale_scope.offset
FOURTH_PROBLEM = Problem.o_dtype.offset


def problem(**changed):
    fields = {"size": ctypes.sizeof(Problem), "dtype": 0, "batch": 1, "heads_q": 8, "heads_kv": 2,
              "seq_q": 64, "seq_kv": 64, "head_dim": 64, "causal": 0, "softmax_scale": 0.0}
    return Problem(**{**fields, **changed})


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = ctypes.CDLL(str(arguments.shared))
        cls.shared.warpledger_sdpa_last_error.restype = ctypes.c_char_p
        cls.shared.warpledger_sdpa_version.restype = ctypes.c_char_p

    def refused(self, status, said, given, choice=None):
        choice = choice or Choice(ctypes.sizeof(Choice))
        got = self.shared.warpledger_sdpa_describe(ctypes.byref(given) if given else None,
                                                    ctypes.byref(choice))
        error = self.shared.warpledger_sdpa_last_error().decode()
        self.assertEqual((got, said in error), (status, True), error)
        # forward() says the same before it looks at a pointer.
        if choice.size in (FIRST_CHOICE, ctypes.sizeof(Choice)):
            got = self.shared.warpledger_sdpa_forward(
                ctypes.byref(given) if given else None, None, None, None, None, None, None,
                ctypes.c_size_t(0), None)
            self.assertEqual((got, said in self.shared.warpledger_sdpa_last_error().decode()),
                             (status, True))

    def test_refuses_what_makes_no_sense(self):
        self.refused(INVALID, "problem is null", None)
        self.refused(INVALID, "problem.size is 8; it must be 176, or 48 as in the first", problem(size=8))
        self.refused(INVALID, "choice.size is 8; it must be 56, or 32 as in the first", problem(), Choice(8))
        for name in ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"):
            for value in (0, -1):
                self.refused(INVALID, f"{name} is {value}; it must be 1 or more", problem(**{name: value}))
        self.refused(INVALID, "query heads (8) must be a multiple of key/value heads (3)",
                     problem(heads_kv=3))
        for dtype in -1, 3:
            self.refused(INVALID, f"dtype is {dtype}; it must be WARPLEDGER_SDPA_FP16, _BF16 or _E4M3",
                         problem(dtype=dtype))
        self.refused(INVALID, "causal is 2", problem(causal=2))
        for scale in (-1.0, float("nan"), float("inf")):
            self.refused(INVALID, "softmax_scale is", problem(softmax_scale=scale))

    def test_says_which_size_is_too_large_for_it(self):
        for name in ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"):
            self.refused(UNSUPPORTED, f"{name} is 1048577; the library takes sizes up to 1048576",
                         problem(**{name: 2**20 + 1}))

    def test_refuses_strides_that_no_kernel_takes(self):
        rows = 8 * 64
        for name in "qkvo":
            for strides, said in (((64 * rows, 64, -rows), f"the row stride of {name} is -512"),
                                  ((64 * rows, 64, rows + 4), f"the row stride of {name} is 516"),
                                  ((64 * rows, 32, rows), f"the head stride of {name} is 32"),
                                  ((0, 64, rows), f"the batch stride of {name} is 0"),
                                  ((1 << 39, 64, rows), f"the batch stride of {name} is 549755813888")):
                self.refused(INVALID, said, problem(batch=2, **{name: Strides(*strides)}))
        self.refused(INVALID, "the head stride of o is 64 elements, so that its rows may overlap",
                     problem(o=Strides(0, 64, 64)))
        self.refused(INVALID, "the batch stride of o is 512 elements, so that its rows may overlap",
                     problem(batch=2, o=Strides(512, 64, 512)))

    def test_refuses_packed_sequences_that_make_no_sense(self):
        for totals, said in (((100, 0), "total_kv is 0; of packed sequences it must be 1 to 2147483647"),
                             ((-1, 100), "total_q is -1"), ((1, 1 << 31), "total_kv is 2147483648")):
            self.refused(INVALID, said, problem(total_q=totals[0], total_kv=totals[1]))
        self.refused(INVALID, "seq_q is -1; it must be 1 or more", problem(total_q=9, total_kv=7, seq_q=-1))
        self.refused(INVALID, "the head stride of o is 64 elements, so that its rows may overlap",
                     problem(total_q=100, total_kv=100, o=Strides(0, 64, 64)))

    def test_refuses_scales_that_make_no_sense(self):
        for name, most in ("q_scale_scope", "_TENSOR or _HEAD"), ("kv_scale_scope", "_TENSOR, _HEAD or _BLOCK"):
            self.refused(INVALID, f"{name} is 1; it must be 0, for only E4M3 has scales", problem(**{name: 1}))
            for value in -1, 3:
                self.refused(INVALID, f"{name} is {value}; it must be WARPLEDGER_SDPA_SCALE{most}",
                             problem(dtype=2, head_dim=128, **{name: value}))
        self.refused(INVALID, "q_scale_scope is 2", problem(dtype=2, head_dim=128, q_scale_scope=2))
        self.refused(INVALID, "o_dtype is 2; it must be 0, for o is of q's dtype", problem(o_dtype=2))
        for value in -1, 1, 3:
            self.refused(INVALID, f"o_dtype is {value}; it must be WARPLEDGER_SDPA_FP16 or _E4M3",
                         problem(dtype=2, head_dim=128, o_dtype=value))
        self.refused(UNSUPPORTED, "o_dtype is E4M3 and kv_scale_scope _BLOCK; with scales per block o is fp16",
                     problem(dtype=2, head_dim=128, kv_scale_scope=2, o_dtype=2))
        self.refused(UNSUPPORTED, "total_q is 9 and dtype E4M3",
                     problem(dtype=2, head_dim=128, total_q=9, total_kv=7, seq_kv=2**31 - 1, kv_scale_scope=2))
        # Elements of one byte: 16 of them between what is 16-byte aligned. O has fp16.
        for name, said in ("q", "q is 136 elements; it must be a multiple of 16, at least head_dim (128) and below 2^40"), \
                ("o", "o is 132 elements; it must be a multiple of 8, at least head_dim (128) and below 2^39"):
            row = 132 if name == "o" else 136
            self.refused(INVALID, said, problem(dtype=2, head_dim=128, **{name: Strides(0, 64 * row, row)}))
        self.refused(INVALID, "o is 136 elements; it must be a multiple of 16",
                     problem(dtype=2, head_dim=128, o_dtype=2, o=Strides(0, 64 * 136, 136)))

    @unittest.skipIf(shutil.which("nvidia-smi"), "there may be a GPU")
    def test_says_that_there_is_no_gpu(self):
        given = [problem(), problem(size=FIRST_PROBLEM), problem(size=SECOND_PROBLEM, total_q=-1),
                 problem(total_q=9, total_kv=7), problem(total_q=9, total_kv=7, q=Strides(-1, 64, 512)),
                 problem(total_q=9, total_kv=7, seq_q=0, seq_kv=2**20 + 1),
                 problem(size=THIRD_PROBLEM, q_scale_scope=7), problem(size=FOURTH_PROBLEM, o_dtype=7),
                 problem(dtype=2, head_dim=128, o_dtype=2),
                 problem(dtype=2, head_dim=128, q_scale_scope=1, kv_scale_scope=2),
                 # What is there once has no stride to speak of.
                 problem(seq_q=1, q=Strides(0, 64, -1), o=Strides(0, 64, -1)),
                 problem(batch=2, q=Strides(64 * 1536, 64, 1536), k=Strides(64 * 1536, 64, 1536))]
        for each in given:
            for size in FIRST_CHOICE, ctypes.sizeof(Choice):
                self.refused(NO_DEVICE, "asking for the current GPU: ", each, Choice(size))

    def test_reads_no_further_than_an_earlier_problem(self):
        given = problem(size=FIRST_PROBLEM, q=Strides(1, 1, 1))
        status = NO_DEVICE if not shutil.which("nvidia-smi") else OK
        choice = Choice(ctypes.sizeof(Choice))
        self.assertEqual(self.shared.warpledger_sdpa_describe(ctypes.byref(given), ctypes.byref(choice)), status)

    def test_has_the_projects_version(self):
        version = re.search(r"project\(\s*\w+\s+VERSION ([\d.]+)",
                            (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
        self.assertEqual(self.shared.warpledger_sdpa_version().decode(), version)

    def test_exports_the_headers_functions_alone(self):
        said = subprocess.run(["nm", "-D", "--defined-only", arguments.shared], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        declared = re.findall(r"\b(warpledger_sdpa_\w+)\(",
                              (FOLDER / "warpledger_sdpa.h").read_text(encoding="utf-8"))
        self.assertEqual({line.split()[-1] for line in said.splitlines()},
                         {name for name in declared if name != "warpledger_sdpa_problem"})

    def test_needs_no_library_but_the_systems(self):
        said = subprocess.run(["readelf", "-d", arguments.shared], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        needed = set(re.findall(r"NEEDED.*\[(\w+)", said))
        self.assertLessEqual(needed, {"libc", "libm", "libgcc_s", "libstdc", "ld"})

    def test_is_at_most_15_megabytes(self):
        self.assertLessEqual(os.path.getsize(arguments.shared), 15e6)

    def test_the_header_is_c99(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "user.c"
            source.write_text('#include "warpledger_sdpa.h"\n'
                              "int main(void) { return warpledger_sdpa_version() == 0; }\n",
                              encoding="utf-8")
            for compiler in (["cc", "-std=c99"], ["c++", "-x", "c++", "-std=c++11"]):
                subprocess.run([*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror",
                                "-fsyntax-only", f"-I{FOLDER}", source], check=True)


class Costs(unittest.TestCase):
    def records(self):
        fitted = set(re.findall(r"^//   (\S+)$", (FOLDER / "fitted_costs.h").read_text(encoding="utf-8"),
                                re.MULTILINE))
        named = {path.name.removesuffix(".tar.zst"): path for path in ROOT.glob("reports/data/*/*.tar.zst")}
        self.assertLessEqual(fitted, set(named))
        return ([named[name] for name in sorted(fitted)],
                [path for name, path in sorted(named.items()) if name.startswith("library_") and name not in fitted])

    @staticmethod
    @functools.cache
    def measured(*records):
        return fit_costs.measure(arguments.program, arguments.print_costs, records)

    def test_are_what_the_fit_gives(self):
        fitted, _ = self.records()
        with tempfile.TemporaryDirectory() as folder:
            header = pathlib.Path(folder) / "fitted_costs.h"
            fit_costs.write(header, fitted, *self.measured(*fitted))
            self.assertEqual(header.read_text(encoding="utf-8"),
                             (FOLDER / "fitted_costs.h").read_text(encoding="utf-8"))

    def test_add_up_in_python_as_in_the_library(self):
        fitted, _ = self.records()
        rows, said = self.measured(*fitted)
        costs, layout = fit_costs.fit(rows, said), fit_costs.layout_of(said)
        both = [(fit_costs.cost_of(np.array(it["terms"]), costs[it["costs_of"], fit_costs.head_dim(problem)], layout),
                 it["us_by_costs"]) for problem, line in said.items() for it in fit_costs.all_kernels(line).values()]
        self.assertGreater(len(both), 5000)
        np.testing.assert_allclose(*zip(*both), rtol=1e-4)

    def test_know_how_many_ctas_an_sm_holds(self):
        """As the driver said when a record was made."""
        for dim in (64, 128, 256):
            record = max(ROOT.glob(f"reports/data/h200/library_d{dim}-*.tar.zst"))
            cells = fit_costs.summary_of(arguments.program, record)["cells"]
            held = {(cell["shape"], cell["variant"].partition(":")[2]): cell["ctas_per_sm"] for cell in cells
                    if cell["role"] not in ("aa", "null") and cell["ctas_per_sm"]}
            said = fit_costs.said_of(arguments.print_costs, sorted({shape for shape, _ in held}))
            counted = {(shape, name): said[shape]["kernels"][name]["ctas_per_sm"] for shape, name in held
                       if name in said[shape]["kernels"]}
            self.assertGreater(len(counted), 100)
            self.assertEqual(counted, {key: held[key] for key in counted})

    def assert_chooses_well(self, regrets, at_least):
        values = [regret for regret, *_ in regrets]
        self.assertGreaterEqual(len(values), at_least)
        self.assertLessEqual(sum(values) / len(values), 0.02)

    def test_choose_well_for_problems_that_a_fit_has_not_seen(self):
        fitted, _ = self.records()
        self.assert_chooses_well(fit_costs.held_out(*self.measured(*fitted), 5), 100)

    def test_choose_well_for_problems_of_other_records(self):
        """Of those that have all kernels of today: where one is missing, the best of the others says little."""
        _, others = self.records()
        rows, said = self.measured(*others)
        whole = [row for row in rows if set(said[row.problem]["kernels"]) <= set(row.us)]
        if not whole:
            self.skipTest("no other record has all kernels of today")
        self.assert_chooses_well(fit_costs.regrets(whole, said), 1)

    def test_explain_what_was_expected_of_a_problem(self):
        line = {"choice": "b", "counts": ["call", "chain"], "e4m3": {},
                "kernels": {"a": {"us": 3.0, "terms": [1, 0]}, "b": {"us": 2.0, "terms": [1, 7.5]}}}
        row = fit_costs.Row("b1_h1_s64_d64", False, {"a": 2.5, "b": 4.0})
        self.assertEqual(list(fit_costs.explained(row, line)), [
            "b1_h1_s64_d64: the library takes b",
            "       2.50 us, expected      3.00 us (+20.0%)  a: call 1",
            "       4.00 us, expected      2.00 us (-50.0%)  b: call 1, chain 7.5"])

    def test_say_what_a_kernel_is_worth(self):
        rows = [fit_costs.Row("b1_h1_s64_d64", False, {"a": 2.0, "b": 3.0, "c": 4.0}),
                fit_costs.Row("b1_h1_s80_d64", False, {"a": 5.0, "b": 4.0})]
        self.assertEqual(fit_costs.worth(rows), {(64, "a"): [0.5, 0.0], (64, "b"): [0.0, 0.25], (64, "c"): [0.0]})

    def test_leave_out_what_records_have_of_a_kernel_that_became_another(self):
        record = next(ROOT.glob("reports/data/h200/library_d64-*.tar.zst"))
        rows, _ = self.measured(record)
        self.assertTrue(rows)
        self.assertFalse([row for row in rows if "split_mma" in row.us])
        self.assertTrue([row for row in rows if "split_wgmma" in row.us])
        newer = next(ROOT.glob("reports/data/h200/library_few_d64-*.tar.zst"))
        self.assertTrue(all("split_mma" in row.us for row in self.measured(newer)[0]))

    def test_count_no_problem_where_such_a_kernel_may_be_the_fastest(self):
        row = fit_costs.Row("b1_h1_s64_d64", False, {"a": 2.0})
        self.assertFalse(fit_costs.is_whole(row, {"a": 2.0, "split_mma": 2.5}))
        self.assertTrue(fit_costs.is_whole(row, {"a": 2.0, "split_mma": 2.7}))
        self.assertTrue(fit_costs.is_whole(row, {"a": 2.0, "b": 1.0}), "it never was measured")

    def test_come_from_random_problems_of_chosen_kinds(self):
        def drawn(*more):
            return subprocess.run([sys.executable, ROOT / "reports/random_problems.py", "--count", "6", *more],
                                  check=False, capture_output=True, text=True)
        sizes = [re.search(r"_s(\d+)(?:x\d+)?_d64", name)[1]
                 for name in drawn("--kinds", "decode,few").stdout.strip().split(",")]
        self.assertEqual([size == "1" for size in sizes], [True, False] * 3)
        done = drawn("--kinds", "decode,most")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no kind most", done.stderr)

    def test_refuse_to_explain_a_problem_that_no_record_has(self):
        record = max(ROOT.glob("reports/data/h200/library_d64-*.tar.zst"))
        done = subprocess.run([sys.executable, FOLDER / "fit_costs.py", "--program", arguments.program, "--terms",
                               arguments.print_costs, "--record", record, "--explain", "b1_h1_s7_d64"],
                              check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the records have no problem b1_h1_s7_d64", done.stderr)

    def test_are_never_below_0(self):
        a, b = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]]), np.array([3.0, 2.0, 1.0])
        np.testing.assert_allclose(np.linalg.lstsq(a, b, rcond=None)[0], [4, -1], rtol=1e-9)
        np.testing.assert_allclose(fit_costs.least_squares(a, b), [2, 0], rtol=1e-9)

    def test_of_equal_terms_go_to_the_first(self):
        """Else rounding would decide, and other processors would write another header."""
        a = np.random.default_rng(1).random((40, 3))
        a[:, 2] = a[:, 1]
        b = a @ [1, 2, 0] + np.random.default_rng(2).random(40)
        for order in (np.arange(40), np.arange(40)[::-1], np.random.default_rng(3).permutation(40)):
            found = fit_costs.least_squares(a[order], b[order])
            self.assertGreater(found[1], 1)
            self.assertEqual(found[2], 0)

    def test_are_found_where_tiles_and_dram_take_about_as_long(self):
        # A call, tiles, DRAM: 1 us each tile and 0.5 us a megabyte, after a call of 2 us.
        terms = np.array([[1, tiles, mb] for tiles in (1, 5, 9) for mb in (0.1, 1, 10, 30)], dtype=float)
        tiles, memory = terms[:, 1], 0.5 * terms[:, 2]
        us = 2 + (tiles**8 + memory**8) ** (1 / 8)
        known, free = np.array([0, 0, 0.5]), np.array([True, True, False])
        costs = fit_costs.least_costs(terms, us, np.ones(len(us)), (1, 2), known, free)
        np.testing.assert_allclose(costs, [2, 1, 0.5], rtol=1e-7)
        np.testing.assert_allclose(fit_costs.cost_of(terms, costs, (1, 2)), us, rtol=1e-7)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("shared", "print_costs", "program"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
