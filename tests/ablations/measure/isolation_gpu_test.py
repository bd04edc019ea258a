# SPDX-License-Identifier: Apache-2.0
"""A kernel that traps, spins or writes out of bounds ends as BROKEN, the run goes on, and no other
arm's times change; a worker that is killed in the middle of its replays costs what it had in flight.

The faults are planted (`warpledger run --plant`); the controller, the workers and
the GPU are the true ones.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time
import unittest

from fixture import PROGRAM, needs_gpu, warpledger

setUpModule = needs_gpu
DESIGN = "factorial"
ARMS = {
    "trap": "cell:wmma_qk",
    "spin": "cell:vector_loads",
    "write_unmapped": "cell:warp_shuffle",
    "write_outside": "cell:wmma_pv",
}
KINDS = {"trap": "trap", "spin": "no_answer", "write_unmapped": "illegal_address"}
SHAPES = ("small", "medium")
PROCESSES, BLOCKS = 2, 3
ARM_LIMIT_S = 3
MOST_CHANGE = 0.05  # of an arm's median between two runs; the arms are microseconds long


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class IsolationTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.record = pathlib.Path(cls.folder.name) / "record"
        plan = [f"--design={DESIGN}", f"--shapes={','.join(SHAPES)}",
                f"--processes={PROCESSES}", f"--blocks={BLOCKS}", "--peers=off",
                f"--arm_limit_s={ARM_LIMIT_S}"]
        cls.sound = pathlib.Path(cls.folder.name) / "sound"
        cls.sound_command = ["run", f"--out={cls.sound}", *plan]
        cls.command = [
            "run", f"--out={cls.record}", *plan,
            # On the first shape alone: the second shows that the arms are sound there.
            "--plant=" + ",".join(f"{fault}@{arm}@{SHAPES[0]}" for fault, arm in ARMS.items())]
        begin = time.monotonic()
        cls.first = warpledger(*cls.command)
        print(f"the run with four planted faults took {time.monotonic() - begin:.1f} s", flush=True)
        judged = warpledger("judge", f"--record={cls.record}")
        assert judged.returncode == 0, judged.stderr
        cls.summary = json.loads((cls.record / "summary.json").read_text(encoding="utf-8"))
        cls.samples = lines(cls.record / "samples.jsonl")
        cls.broken = lines(cls.record / "broken.jsonl")

    def test_the_run_goes_on_to_its_end(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        blocks = {(s["process"], s["shape"], s["block"]) for s in self.samples}
        self.assertEqual(len(blocks), PROCESSES * len(SHAPES) * BLOCKS)

    def test_each_fault_that_ends_a_process_is_written_down_once_with_its_kind(self):
        for line in self.broken:
            print(json.dumps(line), flush=True)
        found = {line["arm"]: line["kind"] for line in self.broken}
        self.assertEqual(found, {ARMS[fault]: kind for fault, kind in KINDS.items()})
        self.assertEqual(len(self.broken), len(KINDS))
        self.assertEqual({line["shape"] for line in self.broken}, {SHAPES[0]})

    def test_a_write_into_our_own_memory_fails_the_check(self):
        checks = lines(self.record / "correctness.jsonl")
        failed = {(c["arm"], c["shape"]) for c in checks if not c["correct"]}
        self.assertEqual(failed, {(ARMS["write_outside"], SHAPES[0])})
        self.assertIn("wrote outside its output", {c["reason"].removeprefix("it ")
                                                   for c in checks if not c["correct"]})

    def test_every_other_arm_is_right_and_timed_in_every_block(self):
        arms = {a["name"] for a in json.loads((self.record / "run.json").read_text())["arms"]}
        lost = {ARMS[fault] for fault in KINDS}
        for shape in SHAPES:
            for arm in arms - (lost if shape == SHAPES[0] else set()):
                timed = sum(s["arm"] == arm and s["shape"] == shape for s in self.samples)
                self.assertEqual(timed, PROCESSES * BLOCKS, (arm, shape))
        for cell in self.summary["cells"]:
            planted = cell["shape"] == SHAPES[0] and cell["variant"] in ARMS.values()
            self.assertEqual(cell["correct"], not planted, cell["variant"])

    def test_verdicts_on_the_planted_arms_are_broken_with_the_reason(self):
        seen = set()
        for verdict in self.summary["verdicts"]:
            touched = {verdict["base"], verdict["candidate"]} & set(ARMS.values())
            if verdict["shape"] != SHAPES[0] or not touched:
                self.assertNotEqual(verdict["verdict"], "BROKEN", verdict)
                continue
            seen |= touched
            self.assertEqual(verdict["verdict"], "BROKEN")
            self.assertTrue(verdict["reason"])
        self.assertEqual(seen, set(ARMS.values()))

    def test_the_record_declares_the_faults(self):
        declared = self.summary["provenance"]["planted"]
        self.assertEqual({(p["fault"], p["arm"]) for p in declared}, set(ARMS.items()))
        self.assertTrue(self.summary["run_id"].startswith("planted-"))

    def test_a_worker_killed_in_its_replays_costs_what_it_had_in_flight_and_faults_nobodys_times(self):
        before = self.killed_in_its_replays()
        print(f"killed the worker behind {len(before)} samples", flush=True)
        again = warpledger(*self.sound_command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertFalse((self.sound / "broken.jsonl").exists())
        samples = lines(self.sound / "samples.jsonl")
        self.assertEqual(samples[:len(before)], before)
        sound, beside_faults = self.medians(samples), self.medians(self.samples)
        # A planted fault is a kernel of its own behind the arm's: it has its time (0.4 us).
        others = sound.keys() - {(arm, SHAPES[0]) for arm in ARMS.values()}
        changes = {place: abs(beside_faults[place] / sound[place] - 1) for place in others}
        print(f"the most changed of {len(others)} medians moved by {max(changes.values()):.1%}",
              flush=True)
        for place, change in changes.items():
            with self.subTest(place):
                self.assertLess(change, MOST_CHANGE)

    @staticmethod
    def medians(samples):
        times = {}
        for sample in samples:
            times.setdefault((sample["arm"], sample["shape"]), []).append(sample["us"])
        return {place: statistics.median(found) for place, found in times.items()}

    def killed_in_its_replays(self):
        """The whole blocks that a run without faults left whose worker got KILL behind the first."""
        process = subprocess.Popen([PROGRAM, *self.sound_command], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        samples = self.sound / "samples.jsonl"
        while process.poll() is None and not (samples.exists() and samples.stat().st_size):
            time.sleep(0.01)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
        self.assertNotEqual(process.returncode, 0, said)
        self.assertIn("signal 9", said)
        found = lines(samples)
        self.assertGreater(len(found), 0)
        return found[:len(found) // found[0]["of"] * found[0]["of"]]

    def test_the_same_call_again_adds_nothing(self):
        before = {p.name: p.read_bytes() for p in self.record.glob("*.jsonl")}
        again = warpledger(*self.command)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual({p.name: p.read_bytes() for p in self.record.glob("*.jsonl")}, before)
