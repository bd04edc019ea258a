# SPDX-License-Identifier: Apache-2.0
"""micro/record.sh with a program in place of warpledger_micro: what it keeps, and that it resumes."""

import fcntl
import json
import os
import subprocess
import sys
import textwrap

from fixture import ROOT, FolderTest

# Behaves as warpledger_micro does, with one case; FAKE_STOP=N kills process N half-way.
PROGRAM = '''\
#!/usr/bin/env -S "{python}"
import json, os, sys
flags = dict(flag.lstrip("-").partition("=")[::2] for flag in sys.argv[1:])
case = {{"name": "a/b/latency", "kind": "cycles", "measures": "cycles", "unit": "cycles",
        "min_cc": 80, "max_cc": 0, "peak_case": "", "kernels": [], "evidence": [], "published": [],
        "parameters": {{}}, "limits": {{}}}}
if "warpledger_list" in flags:
    print(json.dumps({{"cases": [case] * int(os.environ.get("FAKE_CASES", "1"))}}))
    sys.exit()
if os.environ.get("FAKE_NO_GPU"):
    sys.exit(3)
if flags["benchmark_filter"] == "none":
    open(flags["warpledger_raw"], "w").close()
    sys.exit(2)
if os.environ.get("FAKE_EMPTY"):
    open(flags["warpledger_raw"], "w").close()
    sys.exit()
process = int(flags["warpledger_process"])
with open(flags["warpledger_raw"], "a") as raw, open("{log}", "a") as log:
    log.write(f"{{process}}\\n")
    log.flush()
    for repetition in range(int(flags["benchmark_repetitions"])):
        raw.write(json.dumps({{"case": "a/b/latency", "process": process, "repetition": repetition,
                              "value": 20 + process, "r2": 1, "sm_mhz": 1980, "limit": None}})
                  + "\\n")
        raw.flush()
        if os.environ.get("FAKE_STOP") == str(process):
            os.kill(os.getpid(), 15)
context = {{"gpu": "NVIDIA H200", "gpu_slug": "h200", "gpu_uuid": "GPU-1",
           "compute_capability": "90", "sm_count": "132", "nvcc": "13.0",
           "max_sm_clock_mhz": "1980", "dram_gb_per_s": "4900", "date": "2026-11-21T01:00:00",
           "warpledger_process": str(process)}}
rows = [{{"run_type": "iteration", "value": 20 + process, "run_name": "a/b/latency/manual_time"}}
        for _ in range(int(flags["benchmark_repetitions"]))]
with open(flags["benchmark_out"], "w") as out:
    json.dump({{"context": context, "benchmarks": rows}}, out)
sys.exit(int(os.environ.get("FAKE_STATUS", "0")))
'''


class RecordShTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.out = self.path / "out"
        self.log = self.path / "processes.txt"
        self.write("prefix/bin/warpledger_micro",
                   textwrap.dedent(PROGRAM).format(python=sys.executable, log=self.log), 0o755)

    def call(self, *arguments, prefix=None, **environment):
        return subprocess.run(
            [ROOT / "micro" / "record.sh", self.out, "--prefix", prefix or self.path / "prefix",
             "--noplots",
             "--python", sys.executable, *arguments],
            env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False)

    def ran(self):
        return self.log.read_text().split() if self.log.exists() else []

    def test_keeps_samples_values_and_pages_of_all_processes(self):
        self.ends(self.call())
        self.assertEqual(self.ran(), ["0", "1", "2"])
        micro = json.loads((self.out / "micro.json").read_text())
        self.assertEqual(micro["micro"][0]["value"], 21)
        self.assertEqual(len((self.out / "micro_raw.jsonl").read_text().splitlines()), 9)
        self.assertTrue((self.out / "micro.md").exists())
        self.assertTrue((self.out / "micro" / "a.md").exists())

    def test_the_same_call_goes_on_after_a_kill(self):
        self.ends(self.call(FAKE_STOP="1"), 1, err="the same call goes on")
        self.ends(self.call(), err="process 1 of 3: done before")
        self.assertEqual(self.ran(), ["0", "1", "1", "2"])
        # The samples of the killed process aren't there twice.
        self.assertEqual(json.loads((self.out / "micro.json").read_text())["provenance"]["n_samples"],
                         9)

    def test_a_finished_run_can_be_called_again(self):
        self.assertEqual(self.call().returncode, 0)
        before = (self.out / "micro.json").read_bytes()
        self.assertEqual(self.call().returncode, 0)
        self.assertEqual(len(self.ran()), 3)
        self.assertEqual((self.out / "micro.json").read_bytes(), before)

    def test_refuses_a_folder_of_another_run(self):
        self.assertEqual(self.call().returncode, 0)
        for arguments, environment in ((["--filter", "b"], {}), ([], {"FAKE_CASES": "2"})):
            self.ends(self.call(*arguments, **environment), 2, err="name a new folder")

    def test_a_folder_belongs_to_a_run_once_a_process_of_it_has_ended(self):
        self.out.mkdir()
        for environment in ({"FAKE_NO_GPU": "1"}, {"FAKE_STOP": "0"}, {"FAKE_EMPTY": "1"}):
            self.assertNotEqual(self.call(**environment).returncode, 0)
            self.ends(self.call("--processes", "2", FAKE_STOP="0"), 1, err="the same call goes on")
        self.ends(self.call("--processes", "2"))
        self.ends(self.call("--processes", "1"), 2, err="name a new folder")

    def test_a_kill_while_the_folder_is_bound_to_its_run_binds_it_to_no_other(self):
        self.call(FAKE_STOP="1")
        (self.out / "cases.json").unlink()  # which is written behind the settings
        self.ends(self.call(), err="process 1 of 3: done before")

    def test_a_second_writer_of_the_folder_is_refused_by_name(self):
        self.out.mkdir()
        held = os.open(self.out, os.O_RDONLY)
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        self.ends(self.call(), 2, err=f"another call writes into {self.out}")
        self.assertEqual(self.ran(), [])

    def test_refuses_a_folder_of_another_build_of_the_program(self):
        self.call(FAKE_STOP="1")
        program = self.path / "prefix" / "bin" / "warpledger_micro"
        program.write_text(program.read_text() + "# built again\n")
        self.ends(self.call(), 2, err="started by another build of")
        # A folder from before the program was noted may be of any.
        settings = self.out / "settings.txt"
        settings.write_text(settings.read_text().partition(" program=")[0] + "\n")
        self.assertIn("started by another build of", self.call().stderr)
        self.assertEqual(self.ran(), ["0", "1"])

    def test_a_process_without_samples_is_a_failure(self):
        self.ends(self.call(FAKE_EMPTY="1"), 1, err="process 0 wrote no sample")

    def test_a_failed_case_is_told_by_the_exit_code(self):
        self.ends(self.call(FAKE_STATUS="1"), 1)
        self.assertTrue((self.out / "micro.json").exists())

    def test_wrong_use_is_two_and_no_gpu_three(self):
        self.assertEqual(self.call("--processes", "0").returncode, 2)
        self.assertEqual(self.call("--nonsense").returncode, 2)
        for arguments, told in ((["--filter"], "--filter needs a value"),
                                (["--filter="], "--filter needs a value"),
                                (["--filter=a", "--filter", "b"], "--filter is given twice")):
            self.ends(self.call(*arguments), 2, err=told)
        self.assertEqual(self.call(FAKE_NO_GPU="1").returncode, 3)
        self.assertFalse(self.out.exists())
        self.ends(self.call(prefix="/no"), 3, err="/no/bin/warpledger_micro")

    def test_a_filter_that_matches_nothing_is_told(self):
        self.ends(self.call("--filter=none"), 2, err="no case matches 'none'")

    def test_help_names_every_option(self):
        done = self.ends(self.call("--help"))
        for option in ("--filter", "--processes", "--repetitions", "--prefix", "--python",
                       "--noplots"):
            self.assertIn(option, done.stdout)
