# SPDX-License-Identifier: Apache-2.0
"""Google Benchmark's own compare.py reads the program's JSON.

testdata/micro_process0.json and 1 are what two processes of warpledger_micro wrote on an
H200 for a few cases (host and path left out). With compare.py at hand (Debian: libbenchmark-tools, else $WARPLEDGER_GBENCH_TOOLS names
the folder that holds it) it is run on the two; the fields that it reads are checked always.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
RUNS = [HERE / "testdata" / f"micro_process{process}.json" for process in (0, 1)]
PLACES = [os.environ.get("WARPLEDGER_GBENCH_TOOLS", ""), "/usr/share/benchmark"]
# compare.py wants SciPy for its U test, which is switched off here, and for a mean.
SCIPY = '''\
import numpy
def gmean(values):
    return numpy.exp(numpy.mean(numpy.log(values), axis=0))
def mannwhitneyu(*args, **kwargs):
    raise AssertionError("the U test is switched off")
'''


def find_compare():
    for place in PLACES:
        script = pathlib.Path(place or "/nonexistent") / "compare.py"
        if script.is_file():
            return script
    return None


class ComparePyTest(unittest.TestCase):
    def test_each_row_has_the_fields_that_compare_py_reads(self):
        for path in RUNS:
            run = json.loads(path.read_text(encoding="utf-8"))
            self.assertTrue(run["benchmarks"])
            for row in run["benchmarks"]:
                for field, kind in (("name", str), ("run_name", str), ("run_type", str),
                                    ("time_unit", str), ("repetitions", int)):
                    self.assertIsInstance(row[field], kind, f"{row['name']}: {field}")
                for field in ("real_time", "cpu_time"):
                    self.assertIsInstance(row[field], (int, float), row["name"])
                if row["run_type"] == "iteration":
                    self.assertGreater(row["real_time"], 0, row["name"])

    def test_the_context_says_where_the_times_come_from(self):
        context = json.loads(RUNS[0].read_text(encoding="utf-8"))["context"]
        self.assertIn("manual", context["warpledger_timing"])

    def test_compare_py_sets_two_runs_side_by_side(self):
        script = find_compare()
        if script is None:
            self.skipTest("no compare.py (apt-get install libbenchmark-tools)")
        with tempfile.TemporaryDirectory() as folder:
            scipy = pathlib.Path(folder) / "scipy"
            scipy.mkdir()
            (scipy / "__init__.py").write_text("")
            (scipy / "stats.py").write_text(SCIPY)
            path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
            done = subprocess.run(
                [sys.executable, "-B", script, "--no-utest", "--no-color", "benchmarks", *RUNS],
                env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=60,
                check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = {row["run_name"] for row in json.loads(RUNS[0].read_text())["benchmarks"]}
        for name in names:
            self.assertIn(name, done.stdout)
        self.assertIn("Comparing", done.stdout)
