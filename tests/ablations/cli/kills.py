#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills the program again and again, and holds it to what a kill may cost.

    kills.py PROGRAM [--count=1000] [--seed=1] [--jobs=1] [--minutes=M]

Each round starts run (with the stand-in subject), judge, report, report with pictures, bundle, pack
or reports/regenerate.py, and sends KILL, TERM or INT after a time up to its usual length: to the
program alone, or to it and its children.
Then
- nothing is lost: each whole block of samples is still there, each other file as before or whole;
- the same call again goes on to the end, and gives what a call gives that nobody killed;
- nothing is left over behind that call: no file of the record's folder, of the output's, of the
  temporary folder but those of the killed program, no process.

Prints how often each call was killed by each signal, and every broken promise. Rounds go on until
--count calls were killed, or no new one begins after M minutes. Jobs run side by side, each with
rounds of its own: use as many as there are cores. Exit code: 0 kept, 1 broken, 2 wrong use.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import importlib.util
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
RUN = ("run", "--subject=stand_in", "--processes=2", "--blocks=3", "--out=record")
CALLS = {"run": RUN, "judge": ("judge", "--record=record"),
         "report": ("report", "--record=record", "--out=pages", "--noplots"),
         "draw": ("report", "--record=record", "--out=pages", f"--python={sys.executable}"),
         "bundle": ("bundle", "--record=record", "--out=bundle.tar.gz"),
         "pack": ("pack", "record"),
         "regenerate": ("reports/regenerate.py",)}
DRAWS = ("draw", "regenerate")
# What only differs from call to call: the time and folder of a run.
OWN_TIMES = re.compile(rb'"(created_utc|run_id|argv)": ?(\[[^]]*\]|"[^"]*")')
OF_A_KILLED_WRITER = re.compile(r"\.tmp\.\d+\.\d+$")  # until the next one writes the same file
ROOT = pathlib.Path(__file__).resolve().parents[3]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Rounds:
    def __init__(self, program, folder, seed):
        self.program = pathlib.Path(program).resolve()
        self.folder = folder
        self.random = random.Random(seed)
        self.broken = []
        self.killed = collections.Counter()
        self.ended = 0  # calls that were over before their signal
        self.finished = folder / "finished"
        self.finished.mkdir()
        self.must_end(self.finished, RUN)
        self.expected = {}
        self.seconds = {}
        for name, call in self.calls().items():
            place = self.place(name)
            begin = time.monotonic()
            self.must_end(place, call)
            self.seconds[name] = time.monotonic() - begin
            self.expected[name] = self.state(place)

    @staticmethod
    def calls():
        """What this Python can draw, and all else."""
        has_matplotlib = importlib.util.find_spec("matplotlib") is not None
        return {name: call for name, call in CALLS.items() if has_matplotlib or name not in DRAWS}

    def tree(self, place):
        """The part of the repository that makes pages, with the finished record as its only one."""
        for folder in ("plots", "reports/explorer", "ablations/cli/archive"):
            shutil.copytree(ROOT / folder, place / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))
        for script in (ROOT / "reports").glob("*.py"):
            shutil.copy(script, place / "reports")
        shutil.copy(ROOT / "README.md", place)
        shutil.copytree(self.finished / "record", place / "reports/data/cpu/record")
        self.must_end(place, ("pack", "reports/data/cpu/record"))

    def place(self, name):
        """A folder for one round, with the finished record where the call needs one."""
        place = self.folder / "round"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        (place / "tmp").mkdir()
        if name == "regenerate":
            self.tree(place)
        elif name != "run":
            shutil.copytree(self.finished / "record", place / "record")
        return place

    def start(self, place, call):
        (place / "tmp").mkdir(exist_ok=True)
        environment = os.environ | {"TMPDIR": str(place / "tmp"),
                                    "WARPLEDGER_PYTHON": sys.executable}
        if call[0].endswith(".py"):
            command = [sys.executable, "-B", *call, f"--program={self.program}"]
        else:
            command = [self.program, *call]
        return subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, env=environment, start_new_session=True,
                                text=True)

    def must_end(self, place, call):
        process = self.start(place, call)
        said = process.communicate(timeout=120)[1]
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(call)}: exit code {process.returncode}: {said}")

    @staticmethod
    def state(place):
        """Each file but the temporary ones; of what differs between runs, its name alone."""
        found = {}
        for path in place.rglob("*"):
            name = path.relative_to(place).as_posix()
            if path.is_file() and not name.startswith("tmp/"):
                content = OWN_TIMES.sub(b"", path.read_bytes())
                found[name] = hashlib.sha256(content).hexdigest()
        return found

    def complain(self, what, round_name):
        self.broken.append(f"{round_name}: {what}")

    def round(self, name, number):
        call, sent = CALLS[name], SIGNALS[number % len(SIGNALS)]
        place = self.place(name)
        before = self.state(place)
        to_all = self.random.random() < 0.5
        delay = self.random.uniform(0, 1.05) * self.seconds[name]
        of = f"round {number}, {name}, {sent.name} after {delay:.3f} s"
        process = self.start(place, call)
        begin = time.monotonic()
        try:
            process.wait(delay)
            self.seconds[name] = time.monotonic() - begin  # other work on the machine has ended
        except subprocess.TimeoutExpired:
            (os.killpg if to_all else os.kill)(process.pid, sent)
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.complain("it did not end within 30 s of the signal", of)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        if process.returncode == 0:
            self.ended += 1
        else:
            self.killed[name, sent.name] += 1
        self.no_process_of(process.pid, of)
        self.nothing_lost(name, place, before, of)
        samples = place / "record" / "samples.jsonl"
        kept = samples.read_bytes() if name == "run" and samples.exists() else b""
        try:
            self.must_end(place, call)
        except RuntimeError as error:
            # A pack that was whole before the signal is there already.
            if name != "pack" or (place / "record").exists():
                self.complain(f"the same call again does not go on: {error}", of)
                return
        self.whole_and_alone(name, place, of)
        if name == "run":
            whole = kept[:kept.rfind(b"\n") + 1]
            lines = whole.splitlines()
            # Of an unfinished block nothing needs to stay.
            now = samples.read_bytes().splitlines()
            of_a_block = max(self.samples_of_a_block(now), 1)
            stay = len(lines) // of_a_block * of_a_block
            if lines[:stay] != now[:stay]:
                self.complain("samples of a whole block were lost", of)
        if sent != signal.SIGKILL and list((place / "tmp").iterdir()):
            self.complain(f"left in the temporary folder: {os.listdir(place / 'tmp')}", of)

    @staticmethod
    def samples_of_a_block(lines):
        found = re.search(rb'"of":(\d+)', lines[0]) if lines else None
        return int(found[1]) if found else 0

    def nothing_lost(self, name, place, before, of):
        """Right behind the kill: files as before, or as whole as an unkilled call leaves them."""
        now = self.state(place)
        packed = name == "pack" and "record.tar.zst" in now
        for file, sum_before in before.items():
            if file not in now and not packed:
                self.complain(f"{file} is gone", of)
            elif file in now and now[file] not in (sum_before, self.expected[name].get(file)):
                self.complain(f"{file} is neither as before nor whole", of)
        if packed and now["record.tar.zst"] != self.expected[name]["record.tar.zst"]:
            self.complain("the pack is not whole", of)
        if name not in ("run", "pack"):
            for file in set(now) - set(before):
                if ".regenerate" in file:  # which the same call clears away
                    continue
                if (now[file] != self.expected[name].get(file)
                        and not OF_A_KILLED_WRITER.search(pathlib.PurePath(file).name)):
                    self.complain(f"{file} is there and not whole", of)

    def whole_and_alone(self, name, place, of):
        """Behind the same call again."""
        now = self.state(place)
        expected = self.expected[name]
        if set(now) != set(expected):
            self.complain(f"files differ: {sorted(set(now) ^ set(expected))}", of)
        for file in set(now) & set(expected):
            if now[file] != expected[file] and name != "run":
                self.complain(f"{file} is another than without a kill", of)

    def no_process_of(self, session, of):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = []
            for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = stat.read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[3]) == session and fields[0] != "Z":
                    left.append(stat.parent.name)
            if not left:
                return
            time.sleep(0.05)
        self.complain(f"processes {left} go on", of)
        for pid in left:
            os.kill(int(pid), signal.SIGKILL)


def run(options_and_job):
    """One job's rounds: (kills by call and signal, calls that were over before, broken promises)."""
    options, job = options_and_job
    deadline = time.monotonic() + 60 * options.minutes
    share = (options.count + job) // options.jobs  # the jobs' shares are --count in all
    # A shell lets what it runs in the background ignore INT, and that is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name:
        rounds = Rounds(options.program, pathlib.Path(name), options.seed + job)
        names = list(rounds.calls())
        number = 0
        while sum(rounds.killed.values()) < share and time.monotonic() < deadline:
            rounds.round(names[(number // len(SIGNALS) + job) % len(names)], number)
            number += 1
        return rounds.killed, rounds.ended, rounds.broken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        done = list(pool.map(run, [(options, job) for job in range(options.jobs)]))
    killed = sum((rounds[0] for rounds in done), collections.Counter())
    ended = sum(rounds[1] for rounds in done)
    broken = [line for rounds in done for line in rounds[2]]
    for (call, sent), count in sorted(killed.items()):
        print(f"{call:10} {sent:8} {count}")
    print(f"{sum(killed.values())} kills, {ended} calls were over before; "
          f"broken promises: {len(broken)}")
    print("\n".join(broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
