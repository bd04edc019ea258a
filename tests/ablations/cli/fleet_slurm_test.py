# SPDX-License-Identifier: Apache-2.0
"""A fleet on a real Slurm of two nodes: a task is killed and requeued, and a node is lost and back.

The stand-in plays the boards, one a node. Exit code 77 where Slurm is not installed.
"""

import json
import re
import shutil
import tempfile
import time

from cli_fixture import CliTest
from fixture import skip
from private_slurm import PrivateSlurm, missing_programs

if missing := missing_programs():
    skip(f"no {', '.join(missing)}; `./test --long` installs Slurm")

# Some five seconds a task.
FLAGS = ("--subject=stand_in", "--design=ladder", "--processes=5", "--blocks=120")
PATIENCE_S = 60


class FleetOnSlurm(CliTest):
    def setUp(self):
        super().setUp()
        # Its configuration takes no spaces; the fleet's folder may have some.
        folder = tempfile.mkdtemp(prefix="wl", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder)
        self.slurm = self.enterContext(PrivateSlurm(folder, nodes=2))
        self.fleet = self.path / "a fleet"
        self.said("fleet", f"--out={self.fleet}", *FLAGS, "--shards=2", "--boards=2")
        self.job = self.submit()

    def enterContext(self, context):  # Python 3.11 has it
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def submit(self):
        said = self.slurm.call("sbatch", "--cpus-per-task=1", str(self.fleet / "fleet.sbatch"))
        return re.fullmatch(r"Submitted batch job (\d+)\n", said)[1]

    def states(self):
        """By the number of the task: its state and node."""
        lines = self.slurm.call("squeue", "--noheader", "--array", "--format=%K %T %N").splitlines()
        return {words[0]: tuple(words[1:]) for words in map(str.split, lines)}

    def wait(self, what, ready):
        end = time.monotonic() + PATIENCE_S
        while not (found := ready()):
            self.assertLess(time.monotonic(), end, f"{what}\n{self.states()}{self.logs()}")
            time.sleep(0.1)
        return found

    def logs(self):
        return "".join(f"\n--- {log.name}\n{log.read_text(errors='replace')[-800:]}"
                       for log in self.fleet.glob("*.log")) + self.slurm.last_words()

    def half(self, task, node):
        """The samples that the task has on the node's board, once there are some."""
        samples = self.fleet / task / f"STAND-IN-{node}" / "samples.jsonl"
        return self.wait(f"{task} on {node}",
                         lambda: samples.is_file() and samples.read_bytes().rpartition(b"\n")[0])

    def merged(self):
        runs = []
        for pack in self.path.glob("merged/stand_in/*.tar.zst"):
            self.said("unpack", str(pack), f"--out={self.path}/unpacked/{pack.name}")
            runs.append(json.loads((self.path / f"unpacked/{pack.name}/run.json").read_text()))
        return runs

    def test_every_task_comes_back_whole(self):
        before = {"ladder-s0-b0": self.half("ladder-s0-b0", "node0"),
                  "ladder-s1-b0": self.half("ladder-s1-b0", "node1")}
        self.slurm.lose_node("node1")
        self.slurm.call("scontrol", "requeue", f"{self.job}_0")
        self.wait("the lost node is noticed", lambda: "DOWN" in self.slurm.call(
            "scontrol", "show", "node", "node1"))
        self.wait("its task starts elsewhere", lambda: self.states().get("1") == ("RUNNING", "node0")
                  or (self.fleet / "ladder-s1-b0/STAND-IN-node0").is_dir())
        self.slurm.start_node("node1")
        self.slurm.wait_for_node("node1", "IDLE|MIXED|ALLOCATED")
        self.wait("all tasks end", lambda: not self.states())

        said = self.said("merge", f"--fleet={self.fleet}", f"--out={self.path}/merged")
        self.assertIn("left out", said)
        self.assertRegex(said, "left out: .*/ladder-s1-b0/STAND-IN-node1: is unfinished")
        runs = self.merged()
        self.assertEqual(sum(len(run["shapes"]) for run in runs), 4)
        self.assertLessEqual({run["gpu"]["uuid"] for run in runs},
                             {"STAND-IN-node0", "STAND-IN-node1"})
        # What was there when it was killed is still there, behind which it went on.
        for task, node in (("ladder-s0-b0", "node0"), ("ladder-s1-b0", "node1")):
            samples = self.fleet / task / f"STAND-IN-{node}" / "samples.jsonl"
            self.assertTrue(samples.read_bytes().startswith(before[task]), task)
        restarted = (self.fleet / "slurm-0.log").read_text(encoding="utf-8")
        self.assertIn("DUE TO JOB REQUEUE", restarted)
        self.said("pool", f"--record={self.path}/merged/stand_in")

        # The whole array once more: nothing is measured again.
        files = {path: path.stat().st_mtime_ns for path in self.fleet.glob("*/*/samples.jsonl")}
        self.submit()
        self.wait("all tasks end", lambda: not self.states())
        self.assertEqual({path: path.stat().st_mtime_ns
                          for path in self.fleet.glob("*/*/samples.jsonl")}, files)
        for number in range(4):
            log = self.fleet / f"slurm-{number}.log"
            self.assertIn(" is whole: ", log.read_text(encoding="utf-8"))
