# SPDX-License-Identifier: Apache-2.0
"""Fleets without Slurm: planned, measured on this machine's "GPUs", merged. The stand-in plays a
board for each value of CUDA_VISIBLE_DEVICES."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from cli_fixture import USAGE, CliTest
from fixture import PROGRAM

FINDING, DAMAGED = 1, 4
STAND_IN = ("--subject=stand_in", "--blocks=4", "--processes=2")
SHARDED = ("fleet", "--out=f", *STAND_IN, "--shards=2")


class FleetTest(CliTest):
    def work(self, *arguments, code=0, gpus="a,b"):
        done = self.run_program("fleet", "--work=f", *arguments, CUDA_VISIBLE_DEVICES=gpus)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def records(self):
        """What was merged, unpacked into folders: run.json by the folder's name."""
        runs = {}
        for pack in sorted((self.path / "merged/stand_in").iterdir()):
            name = pack.name.removesuffix(".tar.zst")
            folder = self.path / "unpacked" / name
            if not folder.exists():
                self.said("unpack", str(pack), f"--out={folder}")
            runs[name] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        return runs

    def misfit(self, words, *more):
        """Nothing is written, and what does not fit is named."""
        done = self.run_program("merge", "--fleet=f", "--out=merged", *more)
        self.assertEqual(done.returncode, USAGE, done.stdout + done.stderr)
        self.assertRegex(done.stderr, words)
        self.assertEqual(list(self.path.glob("merged*")), [])

    def test_shards_of_one_board_become_what_one_run_writes(self):
        self.said(*SHARDED)
        self.work(gpus="a")
        self.assertIn("1 records of 1 boards", self.said("merge", "--fleet=f", "--out=merged"))
        done = self.run_program("run", "--out=whole", *STAND_IN, CUDA_VISIBLE_DEVICES="a")
        self.assertEqual(done.returncode, 0, done.stderr)
        name, run = self.records().popitem()
        self.assertEqual(run["run_id"], name)
        self.assertEqual([shape["name"] for shape in run["shapes"]], ["sum_1k", "sum_64k"])
        self.assertEqual(run["argv"][-2][:9], "ladder-s0")
        self.assertEqual(run["argv"][-1][:9], "ladder-s1")
        merged = self.path / "unpacked" / name
        for file in (self.path / "whole").iterdir():
            with self.subTest(file=file.name):
                if file.name != "run.json":
                    self.assertEqual((merged / file.name).read_text(), file.read_text())
        self.assertEqual({file.name for file in merged.iterdir()},
                         {file.name for file in (self.path / "whole").iterdir()})
        self.said("judge", f"--record={merged}")

    def test_boards_are_never_mixed(self):
        self.said(*SHARDED, "--boards=2")
        said = self.work("--gpus=2")
        self.assertIn("4 tasks are whole", said)
        self.assertLessEqual(set(re.findall(r"^\[(\d)\]", said, re.M)), {"0", "1"})
        self.said("merge", "--fleet=f", "--out=merged")
        for run in self.records().values():
            self.assertIn(run["gpu"]["uuid"], ("STAND-IN-a", "STAND-IN-b"))
        shapes = sum(len(run["shapes"]) for run in self.records().values())
        self.assertEqual(shapes, 4)
        self.assertIn("verdict", self.said("pool", "--record=merged/stand_in"))

    def test_a_whole_design_on_two_boards_is_copied_as_it_is(self):
        self.said("fleet", "--out=f", *STAND_IN, "--boards=2", "--name=twice")
        self.work("--gpus=2")
        self.said("merge", "--fleet=f", "--out=merged")
        self.assertEqual(len(self.records()), 2)
        for name, run in self.records().items():
            self.assertRegex(name, r"^twice-b[01]-\d{8}T\d{6}Z$")
            task = self.path / "f" / name[:8] / run["gpu"]["uuid"]
            for file in task.iterdir():
                self.assertEqual((self.path / "unpacked" / name / file.name).read_bytes(),
                                 file.read_bytes())
        pooled = self.said("pool", "--record=merged/stand_in", "--format=json")
        self.assertIn('"STAND-IN-b"', pooled)

    def test_the_plan_is_a_job_array_and_only_grows(self):
        said = self.said(*SHARDED)
        script = (self.path / "f/fleet.sbatch").read_text(encoding="utf-8")
        self.assertIn("#SBATCH --array=0-1\n", script)
        self.assertIn(f"exec '{PROGRAM}' fleet --work='{self.path}/f' --task=", script)
        self.assertIn(f"sbatch '{self.path}/f/fleet.sbatch'", said)
        before = self.files()
        self.said(*SHARDED)  # once more
        self.assertEqual(self.files(), before)
        self.said("fleet", "--out=f", *STAND_IN, "--design=one_on", "--shapes=sum_1k")
        fleet = json.loads((self.path / "f/fleet.json").read_text(encoding="utf-8"))
        self.assertEqual([task["name"] for task in fleet["tasks"]],
                         ["ladder-s0", "ladder-s1", "one_on"])
        self.assertIn("--array=0-2\n", (self.path / "f/fleet.sbatch").read_text(encoding="utf-8"))
        self.assertIn("'ladder' has other tasks",
                      self.refused(USAGE, "fleet", "--out=f", *STAND_IN, "--seed=2"))
        self.assertEqual(self.work("--only=one_on").count("== one_on"), 2)
        self.assertEqual([path.name for path in (self.path / "f").glob("*/STAND-IN*")],
                         ["STAND-IN-a,b"])

    def test_a_task_that_was_killed_goes_on_on_its_board_and_anew_on_another(self):
        self.said("fleet", "--out=f", "--subject=stand_in", "--name=t", "--blocks=100")
        samples = self.path / "f/t/STAND-IN-a/samples.jsonl"
        task = subprocess.Popen([PROGRAM, "fleet", "--work=f", "--task=0"], cwd=self.path,
                                env=os.environ | {"CUDA_VISIBLE_DEVICES": "a"},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)
        while task.poll() is None and not (samples.is_file() and samples.stat().st_size):
            time.sleep(0.001)
        os.killpg(task.pid, signal.SIGKILL)
        self.assertEqual(task.wait(), -signal.SIGKILL)
        self.misfit("STAND-IN-a: is unfinished, [0-9]+ blocks are missing")
        self.misfit("no record is whole", "--partial")
        half = samples.read_bytes().rpartition(b"\n")[0]
        copy = self.path / "again"
        shutil.copytree(self.path / "f", copy)

        self.work("--task=t", gpus="b")  # requeued elsewhere
        said = self.said("merge", "--fleet=f", "--out=merged")
        self.assertRegex(said, "left out: f/t/STAND-IN-a: is unfinished")
        self.assertIn("1 records of 1 boards", said)

        shutil.rmtree(self.path / "f")
        copy.rename(self.path / "f")
        self.work("--task=t", gpus="a")  # requeued on the same board
        self.assertTrue(samples.read_bytes().startswith(half))
        self.assertIn("t is whole", self.work("--task=0", gpus="b"))
        self.assertFalse((self.path / "f/t/STAND-IN-b").exists())

    def test_a_task_goes_on_where_it_began(self):
        for name in ("one", "two", "three"):
            self.said("fleet", "--out=f", *STAND_IN, f"--name={name}")
        for name, board in (("one", "STAND-IN-b"), ("two", "STAND-IN-a"), ("three", "GPU-elsewhere")):
            (self.path / "f" / name / board).mkdir(parents=True)
        said = self.work("--gpus=2")
        ran = {name: place for place, name in re.findall(r"^\[(\d)\] == (\w+): exit code 0", said, re.M)}
        self.assertEqual((set(ran), ran["one"], ran["two"]), ({"one", "two", "three"}, "1", "0"))

    def test_a_gpu_that_fails_leaves_its_tasks_to_the_others(self):
        names = ("one", "two", "three", "four", "five")
        for name in names:
            self.said("fleet", "--out=f", *STAND_IN, "--shapes=sum_64k", f"--name={name}")
            self.write(f"f/{name}/STAND-IN-bad", "in the way")
        said = self.work("--gpus=2", code=FINDING, gpus="bad,good")
        self.assertEqual(len(re.findall(r"^\[0\] == \w+: exit code [1-9]", said, re.M)), 2, said)
        self.assertEqual(len(re.findall(r"^\[1\] == \w+: exit code 0", said, re.M)), 3, said)
        self.assertRegex(said, "failed: ")

    def test_gpus_here_share_the_cores(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("one core can't be shared")
        for name in ("one", "two"):
            self.said("fleet", "--out=f", *STAND_IN, f"--name={name}")
        seen = self.write("env", f'#!/bin/sh\ntaskset -cp $$ >>"{self.path}/cores"\n'
                                 'exec /usr/bin/env "$@"\n', mode=0o755)
        self.assertTrue(seen.is_file())
        self.work("--gpus=2")
        of = {line.rpartition(": ")[2] for line in (self.path / "cores").read_text().splitlines()}
        self.assertGreaterEqual(len(of), 2)

    def test_what_does_not_fit_is_named_and_nothing_is_written(self):
        self.said(*SHARDED)
        self.misfit("ladder-s0: no record came back")
        self.work(gpus="a")
        spare = self.path / "spare"
        shutil.copytree(self.path / "f", spare)

        def changed(path, edit):
            shutil.rmtree(self.path / "f")
            shutil.copytree(spare, self.path / "f")
            edit(self.path / "f" / path)

        def edit_run(**fields):
            def edit(folder):
                path = folder / "run.json"
                path.write_text(json.dumps(json.loads(path.read_text()) | fields))
            return edit

        def truncate(folder):
            with (folder / "samples.jsonl").open("r+b") as file:
                file.truncate(1000)

        board = "ladder-s1/STAND-IN-a"
        for what, path, edit, words in (
                ("seed", board, edit_run(seed=9), "ladder-s1/STAND-IN-a: is no part of what "
                 "f/ladder-s0/STAND-IN-a is of: seed was '1', now is '9'"),
                ("build", board, edit_run(protocol_sha256="0"), "protocol_sha256 was"),
                ("damage", board, truncate, "samples.jsonl:"),
                ("board", "ladder-s1", lambda task: (task / "STAND-IN-a").rename(task / "GPU-x"),
                 "under the name of another board than its own, STAND-IN-a"),
                ("shapes", "", lambda fleet: [shutil.rmtree(fleet / "ladder-s1"), shutil.copytree(
                    fleet / "ladder-s0", fleet / "ladder-s1")], "is of sum_1k, and its task of sum_64k"),
                ("stranger", "", lambda fleet: (fleet / "ladder-s7").mkdir(),
                 "ladder-s7: is no task of this fleet"),
                ("no run.json", board, lambda folder: (folder / "run.json").unlink(),
                 "STAND-IN-a: has no run.json")):
            with self.subTest(what):
                changed(path, edit)
                self.misfit(words)
        changed(board, truncate)
        done = self.run_program("merge", "--fleet=f", "--out=merged", "--partial")
        self.assertEqual(done.returncode, FINDING, done.stderr)
        self.assertIn("samples.jsonl:", done.stderr)
        self.assertEqual([run["shapes"][0]["name"] for run in self.records().values()], ["sum_1k"])
        self.assertIn("is there already", self.refused(USAGE, "merge", "--fleet=f", "--out=merged"))

    def test_bad_calls_say_what_is_wrong_and_write_nothing(self):
        for arguments, words in (
                (("fleet",), "--out=DIR is missing"),
                (("fleet", "--out=g", *STAND_IN, "--shards=3"), "a shard has a shape at least"),
                (("fleet", "--out=g", *STAND_IN, "--boards=0"), "from 1 to"),
                (("fleet", "--out=g", *STAND_IN, "--name=3"), "--name=3: it is a letter"),
                (("fleet", "--out=g", *STAND_IN, "--name=a/b"), "--name=a/b: it is a letter"),
                (("fleet", "--out=g", *STAND_IN, "--design=lader"), "lader"),
                (("fleet", "--out=g", *STAND_IN, "--gpus=2"), "--gpus is for --work"),
                (("fleet", "--out=g", *STAND_IN, "--dry_run"), "--dry_run is for"),
                (('fleet', '--out=a"b', *STAND_IN), "no quote"),
                (("fleet", "--work=g"), "g: no fleet here"),
                (("fleet", "--work=f", "--task=2"), "no task '2': this fleet has 2"),
                (("fleet", "--work=f", "--task=s"), "no task 's'"),
                (("fleet", "--work=f", "--task=0", "--gpus=2"), "--task is one task"),
                (("fleet", "--work=f", "--seed=2"), "--seed is for planning"),
                (("fleet", "--work=f", "--only=x"), "--only=x: this fleet has ladder"),
                (("merge", "--out=m"), "--fleet=DIR is missing"),
                (("merge", "--fleet=f"), "--out=DIR is missing"),
                (("merge", "--fleet=g", "--out=m"), "g: no fleet here")):
            self.said(*SHARDED)
            with self.subTest(arguments=arguments):
                self.assertIn(words, self.refused(USAGE, *arguments))
        done = self.run_program("fleet", "--work=f", "--gpus=3", CUDA_VISIBLE_DEVICES="a,b")
        self.assertIn("--gpus=3, but there are these: a,b", done.stderr)
        self.write("f/fleet.json", '{"schema_version": 1, "tasks": [{"name": "../x"}]}')
        self.refused(DAMAGED, "merge", "--fleet=f", "--out=m")
