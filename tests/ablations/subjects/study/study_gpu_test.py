# SPDX-License-Identifier: Apache-2.0
"""Studies on a GPU: a new one gets its verdicts, and each flag of somebody's kernel its own.

Needs nvcc on this machine, and a Python with NumPy: this one.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from fixture import PROGRAM, FolderTest, run, skip, warpledger

FLAGS = pathlib.Path(__file__).parent / "flags_gpu"
# What each flag of the kernel is.
VERDICTS = {"eight_warps": {"ADOPT"}, "use_swizzle": {"INVALID"},
            # A branch that is never taken costs next to nothing; how much, is held below.
            "never_true": {"NEUTRAL", "INCONCLUSIVE", "REGRESSION"}, "other_shift": {"NEUTRAL"}, "twice": {"REGRESSION"},
            **dict.fromkeys(("skip_sum", "outside", "unwritten", "in_place", "own_stream", "traps", "hangs",
                             "unmapped", "fails", "exhausts"), {"BROKEN"})}
REASONS = {"skip_sum": "output 'y' is wrong", "outside": "wrote outside its output",
           "unwritten": "NaN in output 'y'", "in_place": "wrote into its inputs",
           "own_stream": "what a replay leaves of input set", "fails": "warpledger_call() returned 1",
           "exhausts": "warpledger_call() returned 2"}
KINDS = {"traps": "trap", "hangs": "no_answer", "unmapped": "illegal_address", "fails": "error",
         "exhausts": "error"}


def find_nvcc():
    found = [shutil.which(each) for each in ("nvcc", "/usr/local/cuda/bin/nvcc")]
    return next(filter(None, found), None)


def find_ncu():
    found = [shutil.which(each) for each in ("ncu", "/usr/local/cuda/bin/ncu")]
    return next(filter(None, found), None)


def arch():
    """As "sm_90"; "" without a GPU."""
    try:
        asked = run("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader", check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return "sm_" + asked.stdout.split()[0].replace(".", "")


if not find_nvcc():
    skip("no nvcc here, which compiles a study")
if not arch():
    skip("nvidia-smi lists no GPU")


class OnAGpu(FolderTest):
    def said(self, *arguments, code=0):
        begin = time.monotonic()
        done = warpledger(*arguments, cwd=self.path,
                          env=os.environ | {"WARPLEDGER_PYTHON": sys.executable})
        print(f"{' '.join(arguments)}: {time.monotonic() - begin:.1f} s", flush=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def for_this_gpu(self, study):
        path = self.path / study / "study.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(?m)^architectures = .*$", f'architectures = ["{arch()}"]', text),
                        encoding="utf-8")

    def summary_of(self, record):
        print(self.said("judge", f"--record={record}"), flush=True)
        return json.loads((self.path / record / "summary.json").read_text(encoding="utf-8"))

    def test_a_new_study_gets_its_verdicts(self):
        self.said("study", "new", "mine")
        self.for_this_gpu("mine")
        print(self.said("study", "check", "mine"), flush=True)
        self.said("run", "--study=mine", "--out=record", "--processes=5", "--blocks=6")
        verdicts = self.summary_of("record")["verdicts"]
        self.assertTrue(verdicts)
        for verdict in verdicts:
            self.assertNotIn(verdict["verdict"], ("BROKEN", "INVALID"), verdict)
        self.said("run", "--study=mine", "--out=ladder", "--design=ladder", "--processes=2", "--blocks=4",
                  "--cache=cold", "--shapes=large")
        self.summary_of("ladder")
        self.said("report", "--record=record", "--out=pages", "--noplots")
        self.said("gate", "--record=record", "--baseline=record")

    def test_each_flag_gets_its_answer_and_the_run_goes_on(self):
        shutil.copytree(FLAGS, self.path / "flags", ignore=shutil.ignore_patterns(".warpledger"))
        self.for_this_gpu("flags")
        self.assertIn("'use_swizzle' reaches no code", self.said("study", "check", "flags", code=1))
        self.said("run", "--study=flags", "--out=record", "--processes=4", "--blocks=8", "--arm_limit_s=4")
        summary = self.summary_of("record")
        broken = (self.path / "record/broken.jsonl").read_text(encoding="utf-8")
        print(broken, flush=True)
        found = {verdict["toggle"]: verdict for verdict in summary["verdicts"]}
        self.assertEqual(found.keys(), VERDICTS.keys())
        for toggle, allowed in VERDICTS.items():
            with self.subTest(toggle):
                self.assertIn(found[toggle]["verdict"], allowed, found[toggle])
                self.assertIn(REASONS.get(toggle, ""), found[toggle]["reason"])
        # 0.6% on an H200, 0.9% on an H100.
        self.assertAlmostEqual(found["never_true"]["ratio"], 1, delta=0.02)
        kinds = {line["arm"].removeprefix("one_on:"): line["kind"]
                 for line in map(json.loads, broken.splitlines())}
        self.assertEqual(kinds, KINDS)

    def test_a_library_that_was_built_before_and_what_counters_say_of_it(self):
        shutil.copytree(FLAGS, self.path / "flags", ignore=shutil.ignore_patterns(".warpledger"))
        self.for_this_gpu("flags")
        header = next(folder for parent in pathlib.Path(PROGRAM).parents
                      for folder in (parent / "include", parent / "ablations/subjects/study/include")
                      if (folder / "warpledger/study.h").is_file())
        subprocess.run([find_nvcc(), "-O3", "-std=c++17", f"-arch={arch()}", "-shared", "-DTHREADS=256",
                        "-Xcompiler=-fPIC,-fno-gnu-unique", f"-I{header}", "kernel.cu", "-o", "theirs.so"],
                       cwd=self.path / "flags", check=True)
        toml = self.path / "flags/study.toml"
        head, first, *_ = toml.read_text(encoding="utf-8").split("[[claim]]")
        counter = "sm__warps_active.avg.pct_of_peak_sustained_active"
        toml.write_text(f"{head}[[claim]]" + first.replace(
            'define = ["THREADS=256"]', f'sources = ["theirs.so"]\ncounter = "{counter}"'), encoding="utf-8")
        print(self.said("study", "check", "flags"), flush=True)
        self.said("run", "--study=flags", "--out=record", "--processes=3", "--blocks=6")
        verdict, = self.summary_of("record")["verdicts"]
        self.assertEqual(verdict["verdict"], "ADOPT", verdict)
        print(self.said("ratchet", "--study=flags", "--baseline=record"), flush=True)
        if not find_ncu():
            return
        said = self.said("profile", "--study=flags", "--out=profiles")
        print(said, flush=True)
        self.assertRegex(said, f"Counter of 'eight_warps' on rows_256: {counter} .*, as claimed")
        self.said("report", "--record=profiles", "--out=pages", "--noplots")
