# SPDX-License-Identifier: Apache-2.0
"""reports/record.sh: every set names a design and shapes that there are, and bad calls say so."""

import json
import os
import pathlib
import re
import sys

from fixture import PROGRAM, ROOT, FolderTest, run

SCRIPT = ROOT / "reports" / "record.sh"
PREFIX = str(pathlib.Path(PROGRAM).parents[1])


def call(*arguments, **environment):
    return run(SCRIPT, *map(str, arguments), timeout=200, env=os.environ | environment)


def sets():
    return [line.split()[0] for line in call("--list").stdout.splitlines()]


class RecordShTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.out = self.path / "out"

    def test_every_set_is_a_run_that_this_program_can_make(self):
        self.assertGreater(len(sets()), 10)
        self.assertEqual(len(set(sets())), len(sets()))
        compiled = [name for name in sets() if not name.startswith("folklore_")]
        done = self.ends(call(self.out, "--prefix", PREFIX, "--dry_run", "--only", ",".join(compiled)))
        self.assertEqual(done.stdout.count("this build holds all of them"), len(compiled))
        self.assertFalse(self.out.exists())
        # A set with a cold L2 is one by its name, too.
        parts = re.split(r"^== (\w+)$", done.stdout, flags=re.M)[1:]
        self.assertEqual(parts[::2], compiled)
        cold = [name for name, text in zip(parts[::2], parts[1::2]) if "Cache: cold" in text]
        self.assertEqual(cold, ["ladder_cold"])

    def test_each_study_is_a_set(self):
        calls = self.calls("--only=folklore")
        studies = sorted(path.parent for path in (ROOT / "ablations/studies").glob("*/study.toml"))
        self.assertEqual(sorted(argument[8:] for each in calls for argument in each
                                if argument.startswith("--study=")), list(map(str, studies)))
        self.assertEqual(sorted(name for name in sets() if name.startswith("folklore_")),
                         [f"folklore_{study.name}" for study in studies])

    def test_a_part_of_the_sets_with_further_flags(self):
        done = call(self.out, "--prefix", PREFIX, "--only=one_on,ladder", "--dry_run", "--",
                    "--processes=3", "--shapes=small")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertLess(done.stdout.index("== one_on"), done.stdout.index("== ladder"))
        self.assertEqual(done.stdout.count("= 3 processes x 1 shapes"), 2)

    def test_one_failure_does_not_keep_the_others_from_running(self):
        self.ends(call(self.out, "--prefix", PREFIX, "--only", "ladder,one_on", "--dry_run", "--",
                       "--shapes=nowhere"),
                  1, out=["== ladder", "== one_on"], err="failed: ladder one_on")
        last = self.calls("--only=ladder,one_on,mma", fails="--name=one_on", code=1)[-1]
        self.assertEqual(last, ["fleet", f"--work={self.out}", "--only=ladder,mma", "--gpus=1"])

    def calls(self, *arguments, fails="nothing", code=0):
        """What the script calls of the program: its arguments, call by call."""
        prefix = self.path / "prefix"
        self.write("prefix/bin/warpledger",
                   f'#!/usr/bin/env -S "{sys.executable}"\n'
                   "import json, sys\n"
                   f"open({str(self.path / 'calls')!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
                   f"sys.exit({fails!r} in sys.argv)\n", mode=0o755)
        self.ends(call(self.out, "--prefix", prefix, *arguments), code)
        return [json.loads(line) for line in (self.path / "calls").read_text().splitlines()]

    def test_sets_are_tasks_of_a_fleet_that_then_works(self):
        *plans, work = self.calls("--gpus=2", "--only=mma,ladder", "--", "--seed=3")
        self.assertEqual([plan[:3] for plan in plans],
                         [["fleet", f"--out={self.out}", f"--name={name}"] for name in ("mma", "ladder")])
        for plan in plans:
            self.assertIn("--seed=3", plan)
        self.assertEqual(work, ["fleet", f"--work={self.out}", "--only=mma,ladder", "--gpus=2"])

    def test_without_a_gpu_it_only_plans(self):
        done = self.ends(call(self.out, "--prefix", PREFIX, "--gpus=0", "--only=ladder,mma"),
                         out=f"sbatch '{self.out}/fleet.sbatch'")
        self.assertEqual(done.stdout.count("\n"), 1)
        fleet = json.loads((self.out / "fleet.json").read_text(encoding="utf-8"))
        self.assertEqual([task["name"] for task in fleet["tasks"]], ["ladder", "mma"])

    def test_bad_calls_say_what_is_wrong(self):
        for arguments, code, words in (
                ((), 2, "reports/record.sh OUTDIR"),
                ((self.out, "--only", "lader", "--prefix", PREFIX), 2, "no set 'lader'"),
                ((self.out, "--only=l.dder", "--prefix", PREFIX), 2, "no set 'l.dder'"),
                ((self.out, "--only=,", "--prefix", PREFIX), 2, "no set ''"),
                ((self.out, "--only=mma,", "--prefix", PREFIX), 2, "no set ''"),
                ((self.out, "--only="), 2, "--only needs a value"),
                ((self.out, "--only=mma", "--only", "ladder"), 2, "--only is given twice"),
                ((self.out, "--speed"), 2, "unknown argument '--speed'"),
                ((self.out, self.out), 2, "one folder"),
                ((self.out, "--gpus=none", "--prefix", PREFIX), 2, "a number up to 99"),
                ((self.out, "--prefix", self.out), 3, "no program")):
            with self.subTest(arguments=arguments):
                self.ends(call(*arguments), code, err=words)
        self.write("empty.so", "")
        for library in ("absent.so", "empty.so"):
            self.ends(call(self.out, "--prefix", PREFIX, WARPLEDGER_FA3=str(self.path / library)), 2,
                      err=f"{library}', which is not there or empty")
        self.assertFalse(self.out.exists())
