#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lets calls of the system fail under the program, and holds it to what a fault may cost.

    faults.py PROGRAM LIBRARY [--count=200] [--seed=1]

Each round starts one of the calls of kills.py with one fault of LIBRARY (faults.cc): a full or
broken disk, a short write or read, an interrupted call, once or from then on. Then the program
ended by itself with a code that it documents, and said why on standard error; where it said nothing
was wrong, what it wrote is whole; and all that a kill may not cost (kills.py) holds too: nothing is
lost, and the same call again goes on. Faults that no call met don't count.

Exit code: 0 kept, 1 broken, 2 wrong use.
"""

import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tempfile

import kills

FAULTS = (*((call, kind) for call in ("write", "fsync") for kind in ("ENOSPC", "EIO", "EDQUOT")),
          *((call, "EIO") for call in ("read", "rename", "ftruncate")),
          ("rename", "EACCES"), ("open", "EMFILE"), ("open", "EACCES"),
          ("write", "EINTR"), ("read", "EINTR"), ("write", "short"), ("read", "short"))
CALLS = ("run", "judge", "report", "bundle", "pack")
DOCUMENTED = range(6)
HARMLESS = ("EINTR", "short")
MOST_CALLS = 40  # a fault is one of so many first calls


class Faults(kills.Rounds):
    def __init__(self, program, library, folder, seed):
        super().__init__(program, folder, seed)
        self.library = pathlib.Path(library).resolve()
        self.met = collections.Counter()

    def fault(self, name, number):
        call, kind = FAULTS[number // len(CALLS) % len(FAULTS)]
        place = self.place(name)
        before = self.state(place)
        nth = self.random.randint(1, self.random.choice((3, 10, MOST_CALLS)))
        always = ":always" if kind not in HARMLESS and self.random.random() < 0.5 else ""
        spec = f"{call}:{nth}:{kind}{always}"
        of = f"round {number}, {name}, {spec}"
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        # To a file: a pipe would be one more thing that can fail.
        with open(self.folder / "said", "w+b") as said:
            done = subprocess.run(
                [self.program, *kills.CALLS[name]], cwd=place, stdout=said, stderr=said, check=False,
                timeout=120, env=os.environ | {
                    "TMPDIR": str(place / "tmp"), "WARPLEDGER_PYTHON": sys.executable,
                    "LD_PRELOAD": str(self.library), "WARPLEDGER_FAULT": spec,
                    "WARPLEDGER_FAULT_UNDER": str(place), "WARPLEDGER_FAULT_LOG": str(log)})
            said.seek(0)
            told = said.read().decode(errors="replace")
        if not log.exists():
            return
        self.met[call, kind] += 1
        if done.returncode not in DOCUMENTED:
            self.complain(f"it ended with {done.returncode}: {told[-300:]}", of)
        if done.returncode != 0 and not told.strip():
            self.complain("it said nothing", of)
        if "Traceback" in told:
            self.complain(f"a traceback: {told[-300:]}", of)
        if done.returncode == 0 and name != "run":
            now, whole = self.state(place), self.expected[name]
            if now != whole:
                self.complain("it said that all is well, and it is not: "
                              f"{sorted(file for file in set(now) | set(whole) if now.get(file) != whole.get(file))}",
                              of)
        self.nothing_lost(name, place, before, of)
        try:
            self.must_end(place, kills.CALLS[name])
        except RuntimeError as error:
            if name != "pack" or (place / "record").exists():
                self.complain(f"the same call again does not go on: {error}", of)
                return
        self.whole_and_alone(name, place, of)
        if list((place / "tmp").iterdir()):
            self.complain(f"left in the temporary folder: {os.listdir(place / 'tmp')}", of)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for call in set(kills.CALLS) - set(CALLS):
            del kills.CALLS[call]
        rounds = Faults(options.program, options.library, pathlib.Path(name).resolve(), options.seed)
        for number in range(options.count):
            rounds.fault(CALLS[number % len(CALLS)], number)
    for (call, kind), count in sorted(rounds.met.items()):
        print(f"{call:10} {kind:8} {count}")
    print(f"{options.count} rounds, {sum(rounds.met.values())} met their fault; broken promises: "
          f"{len(rounds.broken)}")
    print("\n".join(rounds.broken))
    return 1 if rounds.broken or not rounds.met else 0


if __name__ == "__main__":
    sys.exit(main())
