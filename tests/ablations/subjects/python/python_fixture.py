# SPDX-License-Identifier: Apache-2.0
"""What tests of the Python package share: a program that calls compare(), on the CPU."""

import json
import os
import sys

from fixture import PROGRAM, ROOT, FolderTest

PACKAGE = ROOT / "ablations/subjects/python"
sys.path.insert(0, str(PACKAGE))

# The worker's clock is a model's, so that no load turns a verdict.
HEAD = """
import time, types
import numpy as np
import warpledger as wl
import warpledger.machine

print("what a program prints is no line of its worker")

noise, now = np.random.default_rng(), 0.0

def spend(seconds):
    global now
    now += seconds * np.exp(0.003 * noise.standard_normal())

def clock():
    spend(1e-6)
    return now

warpledger.machine.time = types.SimpleNamespace(perf_counter=clock)

def summed(x):
    spend(0.004)
    return x.sum(axis=1)

def sooner(x):
    spend(0.001)
    return x.sum(axis=1)

def later(x):
    spend(0.010)
    return x.sum(axis=1)

def wrong(x):
    return x[:, 1:].sum(axis=1)

def not_a_number(x):
    return x.sum(axis=1) * np.nan

def transposed(x):
    return x.sum(axis=1)[None, :]

def raises(x):
    raise ValueError("no kernel for this")

def quits(x):
    raise SystemExit(3)

def in_place(x):
    x *= 2
    return x.sum(axis=1) / 2

def make_inputs(seed, rows, cols):
    return np.random.default_rng(seed).standard_normal((rows, cols)).astype(np.float32)

PROBLEMS = [{"rows": 64, "cols": 32}]
SHORT = {"processes": 3, "blocks": 2, "replay_us": 2000, "max_launches": 4}
"""


class PythonTest(FolderTest):
    def python(self, script, *arguments, head=HEAD, **environment):
        """The program's output, after it ended well."""
        self.write("program.py", head + script)
        return self.ends(self.call(sys.executable, "program.py", *arguments, **self.environment(environment)))

    def environment(self, more):
        return {"PYTHONPATH": str(PACKAGE), "WARPLEDGER_PROGRAM": os.path.abspath(PROGRAM)} | more

    def record(self, name="record"):
        """(run.json, {file: its lines})"""
        folder = self.path / name
        lines = {file: [json.loads(line) for line in (folder / f"{file}.jsonl").read_text().splitlines()]
                 for file in ("samples", "correctness", "broken", "calls")
                 if (folder / f"{file}.jsonl").exists()}
        return json.loads((folder / "run.json").read_text()), lines
