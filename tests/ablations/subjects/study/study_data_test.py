# SPDX-License-Identifier: Apache-2.0
"""Inputs and references of studies."""

import json
import pathlib
import sys
import unittest
from unittest import mock

import numpy as np
from fixture import ROOT, FolderTest

SCRIPT = ROOT / "ablations/subjects/study/study_data.py"
sys.path.append(str(SCRIPT.parent))
import study_data  # noqa: E402

REFERENCE = """
def reference(x, rows):
    open("ran", "a").write("x")
    assert x.dtype == "float64" and len(x) == rows
    return x + 1
"""
X = {"name": "x", "dtype": "fp32", "shape": [4, 8], "values": "normal"}
Y = {"name": "y", "dtype": "fp32", "shape": [4, 8], "values": "normal"}


class Types(unittest.TestCase):
    def test_every_8_bit_code_comes_back(self):
        for dtype, table in study_data.MINIFLOATS.items():
            codes = np.flatnonzero(np.isfinite(table))
            again = table[study_data.encode(table[codes], dtype)]
            np.testing.assert_array_equal(again, table[codes], dtype)

    def test_rounds_to_nearest_even(self):
        self.assertEqual(study_data.encode(np.array([1 + 2.0**-8, 1 + 3 * 2.0**-8]), "bf16").tolist(),
                         [0x3F80, 0x3F82])
        values = study_data.decode(study_data.encode(np.array([17.0, 19.0, 1e9, -0.3]), "e4m3"), "e4m3")
        self.assertEqual(values.tolist(), [16, 20, 448, -0.3125])
        self.assertEqual(study_data.encode(np.array([-3.5, 300.0]), "int8").tolist(), [-4, 127])


class Data(FolderTest):
    def ask(self, reference=REFERENCE, **changes):
        self.write("study/reference.py", reference)
        (self.path / "out").mkdir(exist_ok=True)
        request = {"study": str(self.path / "study"), "cache": str(self.path / "study/.warpledger"),
                   "folder": str(self.path / "out"), "check": {"reference": "reference.py", "atol": 0.25},
                   "inputs": [X], "outputs": [Y], "parameters": {"rows": 4}, "seeds": [1, 2],
                   "probe": True} | changes
        (self.path / "request").write_text(json.dumps(request), encoding="utf-8")
        done = self.call("sh", "-c", f"{sys.executable} -B {SCRIPT} < request")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_makes_inputs_and_what_is_right_for_the_first(self):
        reply = self.ask()
        x = np.fromfile(self.path / "out/inputs.bin", np.float32).reshape(2, 4, 8)
        right = np.fromfile(self.path / "out/reference.bin").reshape(4, 8)
        np.testing.assert_array_equal(right, x[0].astype(np.float64) + 1)
        self.assertFalse(np.array_equal(x[0], x[1]))
        self.assertEqual(reply["limits"], [[0.25, 0.25]])

    def test_a_reference_runs_once_for_the_same_inputs(self):
        self.ask()
        self.ask()
        self.assertEqual((self.path / "ran").read_text(encoding="utf-8"), "x")
        self.ask(seeds=[3])
        self.assertEqual((self.path / "ran").read_text(encoding="utf-8"), "xx")

    def test_a_reference_runs_again_where_a_file_beside_it_changed(self):
        reference = REFERENCE.replace("return x + 1", "return x + int(open(STUDY / 'data/k').read())")
        reference = "import pathlib\nSTUDY = pathlib.Path(__file__).parent\n" + reference
        self.write("study/data/k", "1")

        def right():
            self.ask(reference)
            return float(np.fromfile(self.path / "out/reference.bin").sum())

        before = right()
        # What the program writes there is no part of it.
        self.write("study/.git/x", "1")
        self.write("study/__pycache__/x", "1")
        self.write("study/record/run.json", "{}")
        self.assertEqual(right(), before)
        self.assertEqual((self.path / "ran").read_text(encoding="utf-8"), "x")
        self.write("study/data/k", "2")
        self.assertAlmostEqual(right(), before + 32, places=5)

    def test_a_changed_reference_runs_again_beside_a_run_json_of_its_own(self):
        """A record in the study's folder is not its own, but the study itself is."""
        self.write("study/run.json", "{}")
        self.ask()
        before = np.fromfile(self.path / "out/reference.bin")
        self.ask(REFERENCE.replace("x + 1", "x + 2"))
        np.testing.assert_allclose(np.fromfile(self.path / "out/reference.bin"), before + 1)

    def test_a_file_that_can_not_be_read_stops_nobody(self):
        """As one that another program replaces just then."""
        self.write("study/part.tmp", "1")
        read = pathlib.Path.read_bytes

        def refused(path):
            if path.name == "part.tmp":
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return read(path)

        whole = study_data.state_of(self.path / "study")
        with mock.patch.object(pathlib.Path, "read_bytes", refused):
            self.assertNotEqual(study_data.state_of(self.path / "study"), whole)

    def test_a_damaged_result_is_made_again(self):
        self.ask()
        kept, = (self.path / "study/.warpledger/references").glob("*.npz")
        whole = kept.read_bytes()
        for damaged in b"", whole[:10], whole[:-30], whole[:200] + b"xx" + whole[202:], b"PK" + bytes(90):
            kept.write_bytes(damaged)
            self.assertEqual(self.ask()["limits"], [[0.25, 0.25]])
            self.assertEqual(kept.read_bytes(), whole)

    def test_the_probe_tells_a_wide_tolerance_from_a_narrow_one(self):
        self.assertNotIn("two swapped rows of y", self.ask()["let_through"])
        wide = self.ask(check={"reference": "reference.py", "atol": 100})["let_through"]
        self.assertEqual(wide, ["a dropped row of y", "a row scaled by 1.05 of y", "two swapped rows of y",
                                "the mean everywhere of y"])

    def test_twice_the_naive_error_is_the_rule_without_a_tolerance(self):
        naive = REFERENCE + "\ndef naive(x):\n    return x + 1.125\n"
        largest, mean = self.ask(naive, check={"reference": "reference.py"})["limits"][0]
        self.assertAlmostEqual(largest, 0.25, places=5)
        self.assertAlmostEqual(mean, 0.1875, places=5)
        self.assertIn("no function naive()", self.ask(check={"reference": "reference.py"})["error"])

    def test_naive_gets_the_inputs_as_they_were_made(self):
        naive = "def reference(x):\n    return x + 1\ndef naive(x):\n    x += 1.125\n    return x\n"
        largest = self.ask(naive, check={"reference": "reference.py"})["limits"][0][0]
        self.assertAlmostEqual(largest, 0.25, places=5)
        in_place = "def reference(x):\n    x *= 2\n    return x\ndef naive(x):\n    return 2 * x\n"
        for check in {}, {"atol": 0.25}:
            error = self.ask(in_place, check={"reference": "reference.py"} | check)["error"]
            self.assertEqual(error, "check.reference: reference() writes into its input x, which naive() and a "
                             "kernel find as it was made: let it work on a copy")

    def test_a_naive_result_that_is_no_number_is_told(self):
        for naive, type_ in (("x * float('nan')", "fp32"), ("x / 0 * 0", "fp32"), ("x + 1e6", "fp16")):
            with self.subTest(naive):
                error = self.ask(f"{REFERENCE}\ndef naive(x):\n    return {naive}\n",
                                 check={"reference": "reference.py"}, outputs=[Y | {"dtype": type_}])["error"]
                self.assertIn(f"check.reference: naive() gives NaN or infinity in y, a {type_}", error)

    def test_inputs_that_no_memory_holds_are_told(self):
        error = self.ask(inputs=[X | {"shape": [10**15]}])["error"]
        self.assertIn("input: no memory for {'rows': 4}: Unable to allocate", error)

    def test_what_a_reference_prints_is_no_part_of_the_reply(self):
        self.assertEqual(self.ask("print('so much', end='')" + REFERENCE)["limits"], [[0.25, 0.25]])

    def test_what_is_wrong_with_a_reference_is_one_line(self):
        for reference, why in (
                ("def reference(x): return x / 0 * 0", "gives NaN or infinity in y"),
                ("def reference(x): return x[0]", "returns y as float64 [8], expected numbers [4, 8]"),
                ("def reference(x): return x, x", "returns 2 arrays, the study has 1 outputs"),
                ("def reference(x): raise SystemExit(3)", "reference() fails: SystemExit: 3"),
                ("raise SystemExit(3)", "reference.py does not load: SystemExit: 3"),
                ("def reference(x): return [[1, 2], [3]]", "reference() returns"),
                ("def reference(x): return ([1, [2]],)", "returns what is no array: ValueError"),
                ("class OnAGpu:\n    def __array__(self, *_, **__): raise TypeError('copy it to the host')\n"
                 "def reference(x): return OnAGpu()", "returns what is no array: TypeError: copy it to the host"),
                ("def reference(z): return z", "asks for 'z', which is no input"),
                ("def reference(x): return x @ x", "reference() fails: ValueError: matmul"),
                ("def refrence(x): return x", "has no function reference()"),
                ("def reference(x:", "reference.py does not load: SyntaxError")):
            with self.subTest(reference):
                error = self.ask(reference)["error"]
                self.assertIn(why, error)
                self.assertTrue(error.startswith("check.reference: "))
                self.assertNotIn("\n", error)
