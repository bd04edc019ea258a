# SPDX-License-Identifier: Apache-2.0
"""Studies through the program, without a GPU: a new one, its check, and a run on the CPU."""

import json
import pathlib
import shutil
import sys
import unittest

from fixture import ROOT

sys.path.append(str(ROOT / "tests/ablations/cli"))
from cli_fixture import USAGE, CliTest  # noqa: E402

FLAGS = pathlib.Path(__file__).parent / "flags"
FINDING = 1
# What each flag of the kernel is, in a run.
VERDICTS = {"eight_sums": "ADOPT", "use_swizzle": "INVALID", "eight_times": "REGRESSION",
            "skip_last": "BROKEN", "outside": "BROKEN", "unwritten": "BROKEN", "in_place": "BROKEN",
            "traps": "BROKEN", "hangs": "BROKEN", "fails": "BROKEN"}


def has_nvcc():
    return any(shutil.which(each) for each in ("nvcc", "/usr/local/cuda/bin/nvcc"))


class Study(CliTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(FLAGS, self.path / "flags", ignore=shutil.ignore_patterns(".warpledger"))

    def run_program(self, *arguments, **options):
        return super().run_program(*arguments, WARPLEDGER_PYTHON=sys.executable, **options)

    def change(self, before, after, file="study.toml"):
        path = self.path / "flags" / file
        text = path.read_text(encoding="utf-8")
        self.assertIn(before, text)
        path.write_text(text.replace(before, after), encoding="utf-8")

    def test_check_tells_a_flag_that_reaches_no_code(self):
        said = self.said("study", "check", "flags", code=FINDING)
        self.assertRegex(said, r"Study flags: 10 claims, 12 variants, 11 distinct libraries, by c\+\+")
        findings = said.partition("Findings\n")[2].splitlines()
        self.assertEqual(len(findings), 1, findings)
        self.assertIn("study.toml:38: 'use_swizzle' reaches no code", findings[0])
        self.assertIn("Planted errors that this would let through: none", said)

    def test_check_names_a_definition_that_no_source_reads(self):
        self.change('["USE_SWIZZLE"]', '["USE_SWIZLE"]')
        said = self.said("study", "check", "flags", code=FINDING)
        self.assertIn("study.toml:41: claim[1].define[0]: no source reads USE_SWIZLE", said)
        self.assertIn("no source reads USE_SWIZLE",
                      self.said("run", "--study=flags", "--out=x", code=USAGE))
        self.assertFalse((self.path / "x").exists())

    def test_check_says_which_line_is_wrong(self):
        for before, after, why in (
                ('dtype = "fp32"', 'dtype = "float"', "study.toml:12: input[0].dtype: expected one of"),
                ('reference = "reference.py"', 'reference = "other.py"',
                 "study.toml:29: check.reference: there is no file other.py")):
            with self.subTest(after):
                self.change(before, after)
                self.assertIn(why, self.said("study", "check", "flags", code=USAGE))
                self.change(after, before)
        self.change(".sum(axis=1)", ".sum(axis=1) * float('nan')", "reference.py")
        self.assertIn("gives NaN or infinity in y", self.said("study", "check", "flags", code=USAGE))

    def test_check_runs_the_reference_on_every_problem(self):
        self.change("[work]", '[[problem]]\nname = "wide"\nparameters = { rows = 2, cols = 65536 }\n\n[work]')
        self.change("def reference(x):", "def reference(x):\n    assert x.shape[1] < 60000\n", "reference.py")
        said = self.said("study", "check", "flags", code=USAGE)
        self.assertIn("Reference on problem 'small'", said)
        self.assertIn("check.reference: reference() fails: AssertionError", said)

    def test_verdicts_are_what_each_flag_deserves(self):
        self.said("run", "--study=flags", "--out=record", "--processes=5", "--blocks=6",
                  "--arm_limit_s=2")
        shutil.rmtree(self.path / "flags")  # a record is judged without its study
        self.said("judge", "--record=record")
        summary = json.loads((self.path / "record/summary.json").read_text(encoding="utf-8"))
        self.assertEqual({each["toggle"]: each["verdict"] for each in summary["verdicts"]}, VERDICTS)
        # One that writes into its inputs spoils no other's.
        checks = map(json.loads, (self.path / "record/correctness.jsonl").read_text().splitlines())
        self.assertEqual({check["arm"].removeprefix("one_on:") for check in checks
                          if not check["correct"]}, {"skip_last", "outside", "unwritten", "in_place"})
        reasons = {each["toggle"]: each["reason"] for each in summary["verdicts"]}
        for toggle, reason in (("outside", "wrote outside its output"), ("in_place", "wrote into its inputs"),
                               ("unwritten", "NaN in output 'y'"), ("skip_last", "output 'y' is wrong"),
                               ("fails", "warpledger_call() returned 7"), ("use_swizzle", "machine code")):
            self.assertIn(reason, reasons[toggle])
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
        self.said("run", "--problem=rows=4", "--out=x", code=USAGE)

    def test_a_run_of_changed_sources_does_not_go_on_with_a_record(self):
        run = ("run", "--study=flags", "--out=record", "--processes=1", "--blocks=1", "--arm_limit_s=2")
        self.said(*run)
        self.change("sum = 0", "sum = 0.5f - 0.5f + 0 * cols", "row_norms.cc")
        self.assertIn("definition was", self.said(*run, code=USAGE))

    def test_each_variant_is_held_against_itself_at_a_commit(self):
        toml = self.path / "flags/study.toml"
        claims = toml.read_text(encoding="utf-8").split("[[claim]]")
        toml.write_text("[[claim]]".join(claims[:3]).replace('"-O2"', '"-O2", "-DPASSES=1"'), encoding="utf-8")
        git = ("git", "-c", "user.name=n", "-c", "user.email=e")
        for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Before"]):
            self.ends(self.call(*git, *command))
        self.change("  float sum = 0;\n", """  float sum = 0;
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
    def test_what_it_makes_works(self):
        self.said("study", "new", "mine")
        said = self.run_program("study", "check", "mine", WARPLEDGER_PYTHON=sys.executable)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertRegex(said.stdout, r"vector_loads +sass /LDG\\.E\\.128/: 0 -> \d")
        self.assertIn("Next: warpledger run --study=mine", said.stdout)
