# SPDX-License-Identifier: Apache-2.0
"""Studies through the program, without a GPU: a new one, its check, and a run on the CPU."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from fixture import PROGRAM, ROOT

sys.path.append(str(ROOT / "tests/ablations/cli"))
from cli_fixture import USAGE, CliTest  # noqa: E402

FLAGS = pathlib.Path(__file__).parent / "flags"
FINDING = 1
# What each flag of the kernel is, in a run.
VERDICTS = {"eight_sums": "ADOPT", "use_swizzle": "INVALID", "eight_times": "REGRESSION",
            "skip_last": "BROKEN", "outside": "BROKEN", "unwritten": "BROKEN", "in_place": "BROKEN",
            "traps": "BROKEN", "hangs": "BROKEN", "fails": "BROKEN"}
# Reaches the machine code and costs nothing. How sure a run is of that depends on the machine's load;
# study_gpu_test.py asks for NEUTRAL.
NO_DIFFERENCE = "minus_zero"
# Calls the child that ncu would profile, and answers as ncu does.
FAKE_NCU = """#!/usr/bin/env python3
import subprocess, sys
if "--version" in sys.argv:
    print("Version 9999.9 (fake)")
    sys.exit()
if "--query-metrics" in sys.argv:
    print("smsp__inst_executed  Counter  inst\\ngpu__time_duration  Counter  ns")
    sys.exit()
begin = sys.argv.index("--metrics")
done = subprocess.run(sys.argv[begin + 2:])
if done.returncode:
    sys.exit(done.returncode)
variant = next(each for each in sys.argv if each.startswith("--variant=")).partition("=")[2]
print('"ID","Kernel Name","Block Size","Grid Size","CC","Metric Name","Metric Unit","Metric Value"')
for id, kernel, value in (0, "first", 10), (1, "longer", 500 if variant == "eight_sums" else 900):
    for metric in sys.argv[begin + 1].split(","):
        shown = "CPU" if metric.endswith("display_name") else value
        print(f'"{id}","{kernel}","(1, 1, 1)","(1, 1, 1)","1.0","{metric}","","{shown}"')
"""


def has_nvcc():
    return any(shutil.which(each) for each in ("nvcc", "/usr/local/cuda/bin/nvcc"))


class Study(CliTest):
    """Each test has a copy of a study whose variants were built once, and that tells by their
    content."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.built = pathlib.Path(folder.name) / "flags"
        shutil.copytree(FLAGS, cls.built, ignore=shutil.ignore_patterns(".warpledger"))
        # Its findings are the first test's.
        subprocess.run([PROGRAM, "study", "check", cls.built], check=False, stdout=subprocess.DEVNULL,
                       env=os.environ | {"WARPLEDGER_PYTHON": sys.executable})

    def setUp(self):
        super().setUp()
        shutil.copytree(self.built, self.path / "flags")

    def run_program(self, *arguments, **options):
        return super().run_program(*arguments, WARPLEDGER_PYTHON=sys.executable, **options)

    def change(self, before, after, file="study.toml"):
        path = self.path / "flags" / file
        text = path.read_text(encoding="utf-8")
        self.assertIn(before, text)
        path.write_text(text.replace(before, after), encoding="utf-8")

    def test_check_tells_a_flag_that_reaches_no_code(self):
        shutil.rmtree(self.path / "flags/.warpledger")  # so that it builds
        said = self.said("study", "check", "flags", code=FINDING)
        self.assertRegex(said, r"Study flags: 11 claims, 13 variants, 12 distinct libraries, by c\+\+")
        findings = said.partition("Findings\n")[2].splitlines()
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("study.toml:38: 'use_swizzle' reaches no code", findings[0])
        self.assertIn("Planted errors that this would let through: none", said)
        self.assertNotIn("Warning", said)

    def test_check_warns_of_a_tolerance_that_lets_planted_errors_through(self):
        self.change('reference = "reference.py"', 'reference = "reference.py"\nrtol = 0.06')
        said = self.said("study", "check", "flags", code=FINDING)
        self.assertIn("would let through: a row scaled by 1.05 of y", said)
        self.assertRegex(said, r"Warning: \S+study.toml:28: check: a result that is so wrong would pass")

    def test_a_run_warns_of_a_tolerance_that_lets_planted_errors_through(self):
        self.keep_claims("eight_sums")
        run = ("run", "--study=flags", "--processes=1", "--blocks=1")
        self.assertNotIn("would let through", self.said(*run, "--out=narrow"))
        self.change('reference = "reference.py"', 'reference = "reference.py"\nrtol = 0.06')
        said = self.said(*run, "--out=wide")
        self.assertRegex(said, r"warpledger: \S+study.toml:28: check: on problem 'small' it would let through: a row "
                         "scaled by 1.05 of y")

    def test_a_variant_that_is_right_must_be_one(self):
        self.change('reference = "reference.py"', 'variant = "eight_sum"\natol = 1e-3')
        said = self.said("run", "--study=flags", "--out=x", code=USAGE)
        self.assertIn("study.toml:29: check.variant: 'eight_sum' is no claim; did you mean 'eight_sums'?", said)

    def test_check_names_a_definition_that_no_source_reads(self):
        self.change('["USE_SWIZZLE"]', '["USE_SWIZLE"]')
        said = self.said("study", "check", "flags", code=FINDING)
        self.assertIn("study.toml:41: claim[1].define[0]: no source reads USE_SWIZLE", said)
        self.assertIn("no source reads USE_SWIZLE",
                      self.said("run", "--study=flags", "--out=x", code=USAGE))
        self.assertFalse((self.path / "x").exists())

    def test_what_is_wrong_is_one_line_with_its_place_and_nothing_is_written(self):
        for file, before, after, why in (
                ("study.toml", 'dtype = "fp32"', 'dtype = "float"', "study.toml:12: input[0].dtype: expected one of"),
                ("study.toml", 'name = "y"', 'name = "x"', "study.toml:16: output[0].name: 'x' is an input, which"),
                ("study.toml", '["USE_SWIZZLE"]', '["EIGHT_SUMS"]',
                 "study.toml:41: claim[1].define: it is the same arm as claim 'eight_sums'"),
                ("study.toml", '"2 * rows * cols"', '"2 * * rows"', "study.toml:25: work.flops: '2 * * rows' is no exp"),
                ("study.toml", '"2 * rows * cols"', '"2 * row"', "study.toml:25: work.flops: '2 * row' names 'row', but"),
                ("study.toml", '["USE_SWIZZLE"]', '["USE_SWIZLE"]',
                 "study.toml:41: claim[1].define[0]: no source reads USE_SWIZLE"),
                ("study.toml", 'define = ["USE_SWIZZLE"]', 'define = ["USE_SWIZZLE"]\ncounter = "smsp__inst_executed"',
                 "study.toml:42: claim[1].counter: `profile` does not read 'smsp__inst_executed'; the nearest"),
                ("study.toml", 'sources = ["row_norms.cc"]', 'sources = ["rows.cc"]',
                 "study.toml:6: sources: variant 'base': there is no source rows.cc"),
                ("study.toml", 'reference = "reference.py"', 'reference = "other.py"',
                 "study.toml:29: check.reference: there is no file other.py"),
                ("reference.py", ".sum(axis=1)", ".sum(axis=1) * float('nan')",
                 "study.toml:29: check.reference: reference() gives NaN or infinity in y"),
                ("reference.py", "def naive", "def naiv", "study.toml:28: check: it has neither `atol` nor `rtol`"),
                ("row_norms.cc", "int warpledger_call", "int warpledger_cal",
                 "study.toml:6: sources: variant 'base': its library has no function warpledger_call: define it"),
                ("row_norms.cc", "#ifdef FAILS", "#ifdef FAILS\nnonsense",
                 "study.toml:84: claim[10]: variant 'fails': row_norms.cc does not compile: row_norms.cc:")):
            with self.subTest(why):
                original = (self.path / "flags" / file).read_text(encoding="utf-8")
                self.change(before, after, file)
                before_run = self.names()
                done = self.run_program("run", "--study=flags", "--out=record")
                self.assertEqual(done.returncode, USAGE, done.stdout + done.stderr)
                self.assertRegex(done.stderr, r"\Awarpledger: [^\n]+\n\Z")
                self.assertIn(why, done.stderr)
                self.assertEqual(self.names(), before_run)
                # `check` says it too, as a finding where the other variants are built.
                said = self.run_program("study", "check", "flags")
                self.assertIn(said.returncode, (FINDING, USAGE))
                self.assertIn(why, said.stdout + said.stderr)
                self.write(f"flags/{file}", original)
                shutil.rmtree(self.path / "flags/.warpledger")
                shutil.copytree(self.built / ".warpledger", self.path / "flags/.warpledger")

    def names(self):
        """What lies here, but for the study's cache."""
        return [name for name in sorted(self.files()) if ".warpledger" not in name]

    def test_check_runs_the_reference_on_every_problem(self):
        self.change("[work]", '[[problem]]\nname = "wide"\nparameters = { rows = 2, cols = 65536 }\n\n[work]')
        self.change("def reference(x):", "def reference(x):\n    assert x.shape[1] < 60000\n", "reference.py")
        said = self.said("study", "check", "flags", code=USAGE)
        self.assertIn("Reference on problem 'small'", said)
        self.assertIn("check.reference: reference() fails: AssertionError", said)

    def test_verdicts_are_what_each_flag_deserves(self):
        self.said("run", "--study=flags", "--out=record", "--processes=5", "--blocks=6",
                  "--arm_limit_s=5")
        shutil.rmtree(self.path / "flags")  # a record is judged without its study
        self.said("judge", "--record=record")
        summary = json.loads((self.path / "record/summary.json").read_text(encoding="utf-8"))
        verdicts = {each["toggle"]: each for each in summary["verdicts"]}
        same = verdicts.pop(NO_DIFFERENCE)
        self.assertEqual({name: each["verdict"] for name, each in verdicts.items()}, VERDICTS)
        self.assertNotIn(same["verdict"], ("INVALID", "BROKEN", "ADOPT"), same)
        # One that writes into its inputs spoils no other's.
        checks = map(json.loads, (self.path / "record/correctness.jsonl").read_text().splitlines())
        self.assertEqual({check["arm"].removeprefix("one_on:") for check in checks
                          if not check["correct"]}, {"skip_last", "outside", "unwritten", "in_place"})
        reasons = {each["toggle"]: each["reason"] for each in summary["verdicts"]}
        for toggle, reason in (("outside", "wrote outside its output"), ("in_place", "wrote into its inputs"),
                               ("unwritten", "NaN in output 'y'"), ("skip_last", "output 'y' is wrong"),
                               ("fails", "warpledger_call() returned 7"), ("use_swizzle", "machine code")):
            self.assertIn(reason, reasons[toggle])
        # What a check found names the claim's line.
        self.assertIn("study.toml:59: it wrote outside its output", reasons["outside"])
        self.said("report", "--record=record", "--out=pages", "--noplots")
        page = next((self.path / "pages").glob("*.md")).read_text(encoding="utf-8")
        self.assertIn("Eight chains of additions", page)
        self.assertIn("`definition.study.name` | `flags`", page)
        self.assertTrue(page.startswith("# Study `flags`: Each toggle alone on"), page[:200])
        self.assertNotIn(str(self.path), page)  # no folder of this machine

    def test_a_problem_is_named_on_the_command_line(self):
        self.change('id = "hangs"', 'id = "hangs_no_more"')
        self.change("for (volatile int i = 0;; i = i + 1) continue;", "x = x;", "row_norms.cc")
        self.said("run", "--study=flags", "--problem=rows=4,cols=64", "--out=record", "--processes=1",
                  "--blocks=1")
        run = json.loads((self.path / "record/run.json").read_text(encoding="utf-8"))
        self.assertEqual(run["shapes"], [{"name": "rows=4:cols=64", "cols": 64, "rows": 4, "flops": 512.0,
                                          "min_bytes": 1040.0}])
        self.assertIn("it is B=1,H=16", self.said("run", "--problem=rows=4", "--out=x", code=USAGE))
        self.assertIn("name one of them", self.said("run", "--study=flags", "--problem=rows=4", "--shapes=small",
                                                    "--out=x", code=USAGE))

    def test_a_study_has_no_peers_and_no_faults(self):
        for flag, why in (("--peers=flash", "it is auto or off, as this subject has no peers"),
                          ("--plant=trap@base", "there is no fault 'trap'; this subject has none")):
            self.assertIn(why, self.said("run", "--study=flags", "--out=x", flag, code=USAGE))

    def test_a_run_of_changed_sources_does_not_go_on_with_a_record(self):
        self.keep_claims("eight_sums")
        run = ("run", "--study=flags", "--out=record", "--processes=1", "--blocks=1")
        self.said(*run)
        self.change("sum = START", "sum = 0.5f - 0.5f + 0 * cols", "row_norms.cc")
        self.assertIn("definition was", self.said(*run, code=USAGE))

    def keep_claims(self, *kept):
        """The study with these claims alone."""
        toml = self.path / "flags/study.toml"
        head, *claims = toml.read_text(encoding="utf-8").split("[[claim]]")
        claims = [claim for claim in claims if any(f'id = "{id}"' in claim for id in kept)]
        toml.write_text("[[claim]]".join([head.replace('"-O2"', '"-O2", "-DPASSES=1"'), *claims]), encoding="utf-8")

    def test_every_command_that_reads_records_takes_a_study_s(self):
        self.keep_claims("eight_sums", "minus_zero")
        for name in "old", "new":
            self.said("run", "--study=flags", f"--out={name}", "--processes=3", "--blocks=4")
            time.sleep(1)  # a record is called after the second in which it began
        for name in "old", "new":
            self.said("judge", f"--record={name}")
        self.assertIn("eight_sums", self.said("pool", "--record=old,new"))
        done = self.run_program("gate", "--record=new", "--baseline=old")
        self.assertIn(done.returncode, (0, 1, 2), done.stderr)  # as the load of this machine has it
        self.said("compare", "--a=old", "--b=new", "--out=compare.md")
        self.said("pack", "new")
        self.said("judge", "--record=new.tar.zst", "--out=summary.json")
        self.said("report", "--record=new.tar.zst", "--out=pages", "--noplots")
        self.said("bundle", "--record=old", "--out=bundle.tar.gz", f"--python={sys.executable}")
        self.ends(self.call("tar", "-xf", "bundle.tar.gz"))
        shutil.rmtree(self.path / "flags")
        self.ends(self.call(sys.executable, "bundle/replay.py"), out="come out the same, byte for byte")

    def test_designs_pair_and_combine_claims(self):
        self.keep_claims("eight_sums", "use_swizzle", "minus_zero")
        self.said("run", "--study=flags", "--out=pairs", "--design=pairs", "--processes=1", "--blocks=1")
        arms = json.loads((self.path / "pairs/run.json").read_text(encoding="utf-8"))["arms"]
        self.assertEqual([arm["config"] for arm in arms if arm["role"] in ("base", "step")],
                         ["base", "eight_sums", "use_swizzle", "minus_zero", "eight_sums+use_swizzle",
                          "eight_sums+minus_zero", "use_swizzle+minus_zero"])
        self.said("run", "--study=flags", "--out=cells", "--design=factorial:minus_zero,eight_sums",
                  "--processes=2", "--blocks=2")
        self.said("judge", "--record=cells")
        summary = json.loads((self.path / "cells/summary.json").read_text(encoding="utf-8"))
        self.assertEqual({row["toggle"] for row in summary["attribution"]}, {"eight_sums", "minus_zero"})
        for design, why in (("factorial:eight_sums", "a factorial is of 2 to 6 techniques"),
                            ("factorial:eight_sums,none", "unknown technique 'none': it is one of eight_sums,"),
                            ("ladders", "unknown design 'ladders': it is one of ladder, one_on")):
            self.assertIn(why, self.said("run", "--study=flags", "--out=x", f"--design={design}", code=USAGE))

    def test_a_library_that_was_built_before_gets_its_verdict(self):
        self.keep_claims("eight_sums")
        self.ends(self.call("c++", "-O2", "-std=c++17", "-shared", "-fPIC", "-DPASSES=1", "-DEIGHT_SUMS",
                            f"-I{ROOT}/ablations/subjects/study/include", "flags/row_norms.cc", "-o", "flags/theirs.so"))
        self.change('define = ["EIGHT_SUMS"]', 'sources = ["theirs.so"]')
        self.said("study", "check", "flags")
        # On busy cores the ratio of one process is off by a factor of two: three were not enough.
        self.said("run", "--study=flags", "--out=record", "--processes=6", "--blocks=4")
        self.said("judge", "--record=record")
        verdict, = json.loads((self.path / "record/summary.json").read_text(encoding="utf-8"))["verdicts"]
        self.assertEqual(verdict["verdict"], "ADOPT", verdict)

    def test_a_variant_as_the_reference_warns_of_a_wide_tolerance_too(self):
        self.keep_claims("eight_sums")
        self.change('reference = "reference.py"', 'variant = "base"\nrtol = 1e-5')
        run = ("run", "--study=flags", "--processes=1", "--blocks=1")
        self.assertNotIn("would let through", self.said(*run, "--out=narrow"))
        self.change("rtol = 1e-5", "rtol = 0.06")
        self.assertIn("warpledger: study.toml:28: check: `atol` and `rtol` would let through: a row scaled by 1.05 "
                      "of y", self.said(*run, "--out=wide"))

    def test_counters_are_of_the_longest_kernel_and_held_against_claims(self):
        self.keep_claims("eight_sums", "minus_zero")
        self.change('define = ["EIGHT_SUMS"]', 'define = ["EIGHT_SUMS"]\nlower_counter = "smsp__inst_executed.sum"')
        self.change('define = ["START=-0.0f"]', 'define = ["START=-0.0f"]\ncounter = "smsp__inst_executed.sum"')
        self.write("ncu", FAKE_NCU, mode=0o755)
        profile = ("profile", "--study=flags", "--out=profiles", f"--ncu={self.path}/ncu")
        said = self.said(*profile)
        self.assertIn("Counter of 'eight_sums' on small: smsp__inst_executed.sum 900 -> 500, as claimed", said)
        self.assertIn("Counter of 'minus_zero' on small: smsp__inst_executed.sum 900 -> 900, NOT AS CLAIMED", said)
        lines = [json.loads(line) for line in (self.path / "profiles/profiles.jsonl").read_text().splitlines()]
        self.assertEqual([line["variant"] for line in lines], ["base", "eight_sums", "minus_zero", "null_toggle"])
        self.assertEqual({(line["kernel"], line["kernels"]) for line in lines}, {("longer", 2)})
        self.assertTrue(all(line["code_sha256"] for line in lines))
        self.said("report", "--record=profiles", "--out=pages", "--noplots")
        self.assertIn("unknown variant 'x': it is one of base", self.said(*profile, "--variants=x", code=USAGE))
        self.change("sum = START", "sum = 2 * START", "row_norms.cc")
        self.assertIn("was made with other kernels", self.said(*profile, code=USAGE))

    def test_each_variant_is_held_against_itself_at_a_commit(self):
        self.keep_claims("eight_sums", "use_swizzle")
        git = ("git", "-c", "user.name=n", "-c", "user.email=e")
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Before"]):
            self.ends(self.call(*git, *command))
        self.change("  float sum = START;\n", """  float sum = START;
  for (int k = 0; k < 31; ++k) {
    for (long long c = 0; c < cols; ++c) sum += x[c] * x[c];
    asm volatile("" : "+m"(sum));
    sum = 0;
  }
""", "row_norms.cc")
        self.said("run", "--study=flags", "--design=since:HEAD", "--out=record", "--processes=5", "--blocks=12")
        self.said("judge", "--record=record")
        summary = json.loads((self.path / "record/summary.json").read_text(encoding="utf-8"))
        verdicts = {each["candidate"]: each for each in summary["verdicts"]}
        self.assertEqual({name: each["verdict"] for name, each in verdicts.items()},
                         {"now:base": "REGRESSION", "now:eight_sums": "INVALID", "now:use_swizzle": "REGRESSION"})
        self.assertLess(verdicts["now:base"]["ci_high"], 0.5)
        self.said("report", "--record=record", "--out=pages", "--noplots")
        self.assertIn("since:nowhere", self.said("run", "--study=flags", "--design=since:nowhere", "--out=x",
                                                 code=USAGE))


class New(CliTest):
    def test_makes_a_study_and_touches_none(self):
        self.said("study", "new", "mine")
        self.assertEqual(sorted(path.name for path in (self.path / "mine").iterdir()),
                         ["README.md", "kernel.cu", "reference.py", "study.toml"])
        for path in (self.path / "mine").iterdir():
            text = path.read_text(encoding="utf-8")
            self.assertNotIn("SPDX", text)
            self.assertNotIn("STUDY_NAME", text)
        self.refused(USAGE, "study", "new", "mine")
        self.refused(USAGE, "study", "new", "a`b")
        self.refused(USAGE, "study", "check", "nowhere")
        self.refused(USAGE, "study")

    @unittest.skipUnless(has_nvcc(), "no nvcc")
    def test_what_it_makes_works_and_its_resources_are_held_against_a_baseline(self):
        self.said("study", "new", "mine")
        said = self.run_program("study", "check", "mine", WARPLEDGER_PYTHON=sys.executable)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertRegex(said.stdout, r"vector_loads +sass /LDG\\.E\\.128/: 0 -> \d")
        self.assertIn("Next: warpledger run --study=mine", said.stdout)
        ratchet = ("ratchet", "--study=mine", "--baseline=resources.json", "--format=json")
        rows = [{"variant": name, "arch": "sm_90", "registers": 1, "static_smem_bytes": 0, "stack_bytes": 0,
                 "spill_store_bytes": 0, "spill_load_bytes": 0}
                for name in ("base", "vector_loads+grid_stride")]
        self.write("resources.json", json.dumps({"schema_version": 1, "instances": rows}))
        found = json.loads(self.run_program(*ratchet, WARPLEDGER_PYTHON=sys.executable).stdout)
        self.assertEqual((found["exit"], found["compared"], found["build"]), (1, 2, "study mine"))
        for row, grew in zip(rows, found["grew"]):
            self.assertEqual((grew["config"], grew["resource"], grew["before"]), (row["variant"], "registers", 1))
            row["registers"] = grew["now"]
        self.write("resources.json", json.dumps({"schema_version": 1, "instances": rows}))
        done = self.run_program(*ratchet, WARPLEDGER_PYTHON=sys.executable)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
