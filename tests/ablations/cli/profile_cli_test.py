# SPDX-License-Identifier: Apache-2.0
"""`warpledger profile` with a stand-in for ncu: records, resumes, and names what failed."""

import json

import cli_fixture

# Answers as ncu does; a variant named in $FAIL is one that it can't profile.
FAKE_NCU = """#!/usr/bin/env python3
import os, sys
if "--version" in sys.argv:
    print("NVIDIA (R) Nsight Compute Command Line Profiler")
    print("Version", os.environ.get("NCU_VERSION", "9999.9 (fake)"))
    sys.exit(0)
if "--query-metrics" in sys.argv:
    print("smsp__inst_executed  Counter  inst\\nlts__t_bytes  Counter  byte")
    sys.exit(0)
variant = next(a for a in sys.argv if a.startswith("--variant=")).split("=", 1)[1]
record = next(a for a in sys.argv if a.startswith("--record=")).split("=", 1)[1]
assert "call" in sys.argv and os.path.exists(record + "/profile.json"), sys.argv
with open(os.environ["LOG"], "a") as log:
    log.write(variant + "\\n")
if variant == os.environ.get("FAIL"):
    print("==ERROR== An error was reported by the driver")
    sys.exit(9)
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
print("==PROF== Connected")
print('"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"')
for metric in metrics:
    value = os.environ.get("GPU", "NVIDIA Fake") if metric.endswith("display_name") else "1,024"
    print(f'"0","sdpa_{variant}","(64, 1, 1)","(8, 1, 1)","9.0","{metric}","","{value}"')
"""


class ProfileCliTest(cli_fixture.CliTest):
    def setUp(self):
        super().setUp()
        self.ncu = self.write("ncu", FAKE_NCU, mode=0o755)
        self.log = self.path / "log"
        self.record = self.path / "profile-test"

    def profile(self, fail="", variants="minimal_scalar,kv_tiling", shapes="small",
                **environment):
        return self.run_program("profile", f"--out={self.record}", f"--variants={variants}",
                                f"--shapes={shapes}", f"--ncu={self.ncu}", LOG=str(self.log),
                                FAIL=fail, **environment)

    def profiled(self):
        return self.log.read_text().split() if self.log.exists() else []

    def lines(self):
        return [json.loads(line)
                for line in (self.record / "profiles.jsonl").read_text().splitlines()]

    def test_every_variant_gets_a_line(self):
        self.ends(self.profile())
        self.assertEqual([line["variant"] for line in self.lines()],
                         ["minimal_scalar", "kv_tiling"])
        self.assertTrue(all(not line["reason"] for line in self.lines()))
        self.assertEqual(self.lines()[0]["metrics"]["lts__t_bytes.sum"]["value"], 1024)
        self.assertEqual(self.lines()[0]["gpu"], "NVIDIA Fake")
        info = json.loads((self.record / "profile.json").read_text())
        self.assertEqual(info["ncu"], "9999.9 (fake)")
        # Only what the GPU has is asked for.
        self.assertNotIn("dram__bytes_read.sum", info["metrics"])

    def test_the_same_call_profiles_only_what_is_missing(self):
        self.ends(self.profile(fail="minimal_scalar"), 1,
                  err=("NO PROFILE: minimal_scalar on small", "reported by the driver"))
        self.assertEqual(self.profiled(), ["minimal_scalar", "kv_tiling"])
        self.ends(self.profile())
        self.assertEqual(self.profiled(), ["minimal_scalar", "kv_tiling", "minimal_scalar"])
        self.assertEqual(len(self.lines()), 3)
        report = ("report", f"--record={self.record}", "--out=report", "--noplots")
        # What report takes for other records it takes for this one, or says that it doesn't.
        self.said(*report, "--summary=summary.json")
        page = (self.path / "report/profile.md").read_text()
        self.assertEqual(json.loads((self.path / "summary.json").read_text())["kind"], "profile")
        self.assertIn("a README shows a ladder, and this is a record of profiles",
                      self.said(*report, "--readme=summary.json", code=2))
        self.assertIn("NVIDIA Fake", page)
        self.assertNotIn("Not profiled", page)

    def test_a_record_of_other_shapes_is_left_alone(self):
        self.assertEqual(self.profile().returncode, 0)
        before = (self.record / "profile.json").read_bytes()
        self.ends(self.profile(shapes="medium"), 2, err="other shapes")
        self.assertEqual((self.record / "profile.json").read_bytes(), before)

    def test_a_record_of_another_gpu_or_profiler_is_left_alone(self):
        self.assertEqual(self.profile(fail="kv_tiling").returncode, 1)
        before = (self.record / "profiles.jsonl").read_bytes()
        for environment, error in (
                ({"GPU": "NVIDIA Other"}, "is of NVIDIA Fake, this is NVIDIA Other"),
                ({"NCU_VERSION": "1.0"}, "another version of Nsight Compute")):
            with self.subTest(**environment):
                done = self.ends(self.profile(**environment), 2, err=error)
                self.assertEqual(done.stderr.count("give another --out"), 1, done.stderr)
                self.assertEqual((self.record / "profiles.jsonl").read_bytes(), before)
        self.assertEqual(self.profile().returncode, 0)

    def test_without_ncu_there_is_one_clear_error(self):
        self.ncu = self.path / "nowhere"
        done = self.ends(self.profile(), 3, err="Nsight Compute is not here")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertFalse(self.record.exists())

    def test_a_variant_that_does_not_exist_is_wrong_use(self):
        self.ends(self.profile(variants="no_such_toggle"), 2)
        self.assertFalse(self.record.exists())
