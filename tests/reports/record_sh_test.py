# SPDX-License-Identifier: Apache-2.0
"""reports/record.sh: every set names a design and shapes that there are, and bad calls say so.

    record_sh_test.py path/to/warpledger
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import unittest.mock

from fixture import ROOT, FolderTest

SCRIPT = ROOT / "reports" / "record.sh"
PREFIX = ""


def call(*arguments):
    return subprocess.run([str(SCRIPT), *map(str, arguments)], capture_output=True, text=True,
                          timeout=200, check=False)


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
        for name in compiled:
            self.assertIn(f"== {name}: exit code 0", done.stdout)
        self.assertEqual(done.stdout.count("this build holds all of them"), len(compiled))
        self.assertEqual(list(self.out.iterdir()), [])
        # A set with a cold L2 is one by its name, too.
        parts = re.split(r"^== (\w+): \w+ on .*$", done.stdout, flags=re.M)[1:]
        self.assertEqual(parts[::2], compiled)
        cold = [name for name, text in zip(parts[::2], parts[1::2]) if "Cache: cold" in text]
        self.assertEqual(cold, ["ladder_cold"])

    def test_each_study_is_a_set(self):
        prefix = self.stand_in("print(sys.argv)")
        done = self.ends(call(self.out, "--prefix", prefix, "--only=folklore"))
        studies = sorted(path.parent for path in (ROOT / "ablations/studies").glob("*/study.toml"))
        self.assertEqual(sorted(re.findall("--study=([^']*)", done.stdout)), list(map(str, studies)))
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
                  1, out="== one_on: exit code 2", err="failed: ladder one_on")

    def stand_in(self, then):
        """A prefix whose warpledger says where it runs, and `then` does that."""
        prefix = self.out.parent / "prefix"
        (prefix / "bin").mkdir(parents=True)
        program = prefix / "bin" / "warpledger"
        program.write_text(f'#!/usr/bin/env -S "{sys.executable}"\n'
                           "import os, sys, time\n"
                           "gpu = os.environ.get('CUDA_VISIBLE_DEVICES')\n"
                           "print('GPU', gpu, 'cores', *sorted(os.sched_getaffinity(0)))\n"
                           f"{then}\n")
        program.chmod(0o755)
        return prefix

    def test_sets_are_handed_out_to_gpus_each_with_cores_of_its_own(self):
        prefix = self.stand_in("time.sleep(0.5)\nsys.exit('--design=ladder' in sys.argv)")
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b,GPU-c"}):
            done = call(self.out, "--prefix", prefix, "--gpus=2",
                        "--only=mma,ladder,mma_exp,mma_tiles")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("failed: ladder\n", done.stderr)
        for name in ("mma", "mma_exp", "mma_tiles"):
            self.assertEqual(done.stdout.count(f"== {name}: exit code 0"), 1, done.stdout)
        ran = set(re.findall(r"^\[(\d)\] GPU (\S+) cores (.*)$", done.stdout, re.M))
        self.assertEqual({(place, gpu) for place, gpu, _ in ran}, {("0", "GPU-a"), ("1", "GPU-b")})
        self.assertLessEqual(set(" ".join(cores for _, _, cores in ran).split()),
                             set(map(str, os.sched_getaffinity(0))))
        if len(os.sched_getaffinity(0)) > 1:
            of = {place: set(cores.split()) for place, _, cores in ran}
            self.assertFalse(of["0"] & of["1"], done.stdout)

    def test_a_set_goes_on_where_it_began(self):
        prefix = self.stand_in("")
        begun = {"mma": "GPU-b", "ladder": "GPU-b", "mma_exp": "GPU-a", "mma_tiles": "GPU-elsewhere"}
        for name, gpu in begun.items():
            (self.out / name).mkdir(parents=True)
            (self.out / name / "run.json").write_text(f'{{\n "gpu": {{\n  "uuid": "{gpu}"\n }}\n}}\n')
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}):
            done = call(self.out, "--prefix", prefix, "--gpus=2", f"--only={','.join(begun)}")
        self.assertEqual(done.returncode, 0, done.stderr)
        ran = {name: place for place, name in
               re.findall(r"^\[(\d)\] == (\w+): exit code 0", done.stdout, re.M)}
        self.assertEqual(set(ran), set(begun))
        self.assertEqual((ran["mma"], ran["ladder"], ran["mma_exp"]), ("1", "1", "0"), done.stdout)

    def test_a_gpu_that_fails_leaves_its_sets_to_the_others(self):
        prefix = self.stand_in("sys.exit(5) if gpu == 'bad' else time.sleep(0.5)")
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "bad,good"}):
            done = call(self.out, "--prefix", prefix, "--gpus=2",
                        "--only=mma,ladder,mma_exp,mma_tiles,mma_stages")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stdout.count(": exit code 5"), 2, done.stdout)
        self.assertEqual(done.stdout.count(": exit code 0"), 3, done.stdout)

    def test_more_gpus_than_there_are(self):
        for visible, named in (("a,b", "a,b"), ("", "none")):
            with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": visible}):
                done = call(self.out, "--prefix", PREFIX, "--gpus=90", "--only=mma")
            self.assertEqual(done.returncode, 2)
            if visible or not shutil.which("nvidia-smi"):
                self.assertIn(f"--gpus=90, but there are these: {named}", done.stderr)
            self.assertFalse(self.out.exists())

    def test_a_set_that_is_named_twice_is_run_twice_and_as_whole_as_the_last_time(self):
        prefix = self.stand_in("open(sys.argv[0] + '.ran', 'x')")  # which a second time raises
        done = call(self.out, "--prefix", prefix, "--only=mma,mma")
        self.assertEqual(done.stdout.count("== mma: exit code 0"), 1, done.stdout)
        self.assertEqual(done.stdout.count("== mma: exit code 1"), 1, done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_a_dry_run_needs_no_gpu(self):
        with unittest.mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "a"}):
            done = call(self.out, "--prefix", PREFIX, "--gpus=2", "--only=mma", "--dry_run")
        self.assertEqual(done.returncode, 0, done.stderr)

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
                ((self.out, "--gpus=none", "--prefix", PREFIX), 2, "a number from 1 to 99"),
                ((self.out, "--prefix", self.out), 3, "no program")):
            with self.subTest(arguments=arguments):
                self.ends(call(*arguments), code, err=words)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    PREFIX = str(pathlib.Path(sys.argv.pop(1)).resolve().parents[1])
    unittest.main()
