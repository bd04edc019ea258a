# SPDX-License-Identifier: Apache-2.0
"""A worker: does the job of one process and prints the lines that measure/worker.h describes.

It is the user's program, started again: where that comes to the same compare(), it works instead. The job
comes on descriptor 3, lines go to descriptor 4; what the program prints, it has printed once before.
"""

import hashlib
import json
import math
import os
import time
import traceback

from . import arrays, machine, program
from .check import NO_CHECK, Reference

JOB, LINES = 3, 4
# Starts a program so; `sh -c REDIRECT sh PROGRAM ARGUMENTS…`.
REDIRECT = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
FAULT_EXIT = 10
SETS = 4  # kInputSets of plan/job.h
COLD_L2_MULTIPLE = 2  # kColdL2Multiple
FLOOR = "floor:empty_kernel"
CONTROL = "control:aa"
FAULTS = {"illegal memory access": "illegal_address", "misaligned address": "misaligned_address",
          "device-side assert": "assert", "unspecified launch failure": "trap",
          "illegal instruction": "illegal_instruction"}


class Broken(Exception):
    """A step of an arm failed."""


def arms_of(names):
    """{arm: callable} of the design one_on (host/listed_subject.cc)."""
    return {names[0]: names[0], **{f"one_on:{name}": name for name in names[1:]}, CONTROL: names[0]}


def order_of(seed, process, shape, block, arms):
    """Each second block mirrors the one before, and an arm that drops out leaves the others' order."""
    def key(arm):
        return hashlib.sha256(f"{seed}/{process}/{shape}/{block // 2}/{arm}".encode()).digest()
    return sorted(arms, key=key, reverse=block % 2 == 1)


def seed_of(seed, process, shape, which):
    digest = hashlib.sha256(f"{seed}/{process}/{shape}/{which}".encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1


class Worker:
    def __init__(self, comparison, job, emit):
        self.comparison, self.job, self.emit = comparison, job, emit
        self.peers = program.module("ablations/subjects/sdpa/peers/peer_rules.py")

    def run(self):
        if self.job["design"] != "one_on":
            raise ValueError(f"callables have the design one_on, not {self.job['design']}")
        for shape in self.job["shapes"]:
            done = {block for name, block in self.job["done"] if name == shape}
            missing = [block for block in range(self.job["blocks"]) if block not in done]
            if missing:
                self.run_shape(shape, missing)

    def take(self, arm, shape, doing, step):
        """A step of one arm: announced before, and an error in it is the arm's."""
        what = {"arm": arm, "shape": shape, "doing": doing}
        self.emit({"running": what})
        try:
            return step()
        except (Exception, SystemExit) as error:
            if arm == FLOOR:
                raise
            traceback.print_exc()
            told = machine.told(error)
            kind = next((kind for text, kind in FAULTS.items() if text in told), "error")
            self.emit({"fault": {"process": self.job["process"], **what, "kind": kind,
                                 "reason": f"{told}, while {doing}"[:1000]}})
            raise Broken from error

    def rotation(self, shape):
        """Sets that a replay rotates over: RotationSets() of plan/job.h."""
        if self.job["cache"] != "cold":
            return SETS
        definition = self.job["definition"]
        touched = next(each["min_bytes"] for each in definition["problems"] if each["name"] == shape)
        wanted = math.ceil(COLD_L2_MULTIPLE * definition["gpu"]["l2_bytes"] / touched / SETS)
        return SETS * max(1, wanted)

    def run_shape(self, shape, missing):
        job, comparison = self.job, self.comparison
        self.emit({"running": None})
        seeds = [seed_of(job["seed"], job["process"], shape, i) for i in range(SETS)]
        self.sets = [comparison.inputs(seed=seed, **comparison.problems[shape]) for seed in seeds]
        self.references = [Reference(comparison, inputs) for inputs in self.sets]
        while len(self.sets) < self.rotation(shape):
            self.sets.append(arrays.copied(self.sets[len(self.sets) % SETS]))
        self.machine = machine.machine_of(self.sets)
        if self.machine.on_gpu:
            self.machine.open()
            self.machine.wait()  # inputs may have been made on another stream
        left_out = {arm for arm, name in job["excluded"] if name == shape}
        timed = {}
        with self.machine.on():
            for arm, name in arms_of(list(comparison.callables)).items():
                if arm not in left_out and self.is_right(arm, name, shape, seeds[0]):
                    timed[arm] = name
            timed = {arm: self.take(arm, shape, "capturing its graph", lambda name=name: self.prepared(name))
                     for arm, name in timed.items()}
            for arm, calls in timed.items():
                self.emit({"call": {"arm": arm, "shape": shape, "lines": calls.lines}})
            timed[FLOOR] = self.take(FLOOR, shape, "capturing it", self.prepared_floor)
            self.warm_up(shape, timed)
            for block in missing:
                samples = self.block(shape, block, timed)
                # Before the last block is handed over: a run that is killed in between makes both again.
                if block == missing[-1]:
                    self.check_timed(shape, timed, seeds[0])
                self.emit({"block": samples})
        self.emit({"running": None})
        self.sets = self.references = None

    # --- Checks --------------------------------------------------------------

    def check(self, arm, shape, inputs, seed, result):
        self.emit({"check": {"process": self.job["process"], "arm": arm, "shape": shape, "inputs": inputs,
                             "seed": seed, **result}})
        return result["correct"]

    def call(self, name, which):
        return self.comparison.call(self.comparison.callables[name], self.sets[which])

    def is_right(self, arm, name, shape, seed):
        """Only what is right is timed."""
        return self.check(arm, shape, "stated", seed, self.take(
            arm, shape, "checking it on inputs 'stated'", lambda: self.checked(name)))

    def checked(self, name):
        inputs = arrays.leaves(self.sets[0])
        before = arrays.copied(inputs)
        outputs = self.call(name, 0)
        again = arrays.copied(outputs)
        outputs = self.call(name, 0)
        self.machine.wait()
        result = self.references[0].judged(again)
        pairs = list(zip(arrays.leaves(again), arrays.leaves(outputs)))
        result["bit_identical"] = all(arrays.same(a, b) for a, b in pairs)
        if not all(arrays.same(a, b) for a, b in zip(inputs, before)):
            result |= {"correct": False, "reason": "it wrote into its inputs"}
            for array, values in zip(inputs, before):
                arrays.assign(array, values)
        elif any(arrays.share_memory(a, b) for a in arrays.leaves(outputs) for b in inputs):
            result |= {"correct": False, "reason": "its output lies in its inputs"}
        return result

    def judged_sets(self, calls, shift=0):
        """The check of the first set whose outputs are wrong, else that of the last."""
        for which, outputs in enumerate(calls.outputs):
            result = (self.references[(which + shift) % SETS].judged(outputs) if outputs is not None else
                      NO_CHECK | {"reason": "nothing was called"})
            if result["reason"]:
                return result | {"reason": f"input set {which}: {result['reason']}"}
        return result

    def check_timed(self, shape, timed, seed):
        for arm, calls in timed.items():
            if arm != FLOOR:
                self.check(arm, shape, "timed_graph", seed, self.take(
                    arm, shape, "checking its timed graph", lambda calls=calls: self.replayed(calls)))

    def replayed(self, calls, shift=0):
        for outputs in calls.outputs:
            for array in arrays.leaves(outputs):
                arrays.poison(array)
        calls.run()
        self.machine.wait()
        return self.judged_sets(calls, shift)

    # --- Times ---------------------------------------------------------------

    def request(self):
        return {"target_replay_us": self.job["replay_us"], "min_launches": SETS, "input_sets": SETS,
                "max_launches": self.job["max_launches"]}

    def prepared(self, name):
        """About replay_us of calls, as a graph where that can be and is proven."""
        call = lambda which: self.call(name, which)  # noqa: E731
        sets = len(self.sets)
        few = machine.Timed(self.machine, call, sets, self.peers.least_launches(self.request(), sets))
        few.us()
        launches = self.peers.choose_launches(few.us(), self.request(), sets)
        calls = machine.Timed(self.machine, call, sets, launches, capture=not few.why_not_captured)
        if few.why_not_captured and self.machine.on_gpu:
            calls.release(few.why_not_captured)
        elif not calls.why_not_captured and (why := self.why_unproven(calls)):
            calls.release(why)
        return calls

    def why_unproven(self, calls):
        """Empty where a replay follows its inputs: those of other sets, written into the same memory."""
        kept = [arrays.copied(arrays.leaves(inputs)) for inputs in self.sets[:SETS]]

        def write(shift):
            for which, inputs in enumerate(self.sets):
                for array, values in zip(arrays.leaves(inputs), kept[(which + shift) % SETS]):
                    arrays.assign(array, values)

        write(1)
        result = self.replayed(calls, shift=1)
        write(0)
        return result["reason"] and f"its replay does not follow new inputs ({result['reason']})"

    def prepared_floor(self):
        launches = self.peers.choose_launches(2, self.request(), SETS)
        return machine.Timed(self.machine, lambda which: self.machine.call_nothing(), SETS, launches)

    def warm_up(self, shape, timed):
        start, warm = time.monotonic(), not self.machine.on_gpu
        while not warm:
            for arm, calls in timed.items():
                self.take(arm, shape, "warming up", calls.us)
            warm = self.peers.is_warm(time.monotonic() - start, self.machine.read_sensors)

    def block(self, shape, block, timed):
        samples = []
        for place, arm in enumerate(order_of(self.job["seed"], self.job["process"], shape, block, timed)):
            us = self.take(arm, shape, "timing it", timed[arm].us)
            samples.append({"seq": -1, "process": self.job["process"], "shape": shape, "block": block,
                            "order": place, "of": len(timed), "arm": arm, "launches": timed[arm].launches,
                            "us": us, **self.machine.read_sensors(), "cache": self.job["cache"]})
        return samples


def serve(comparison):
    """Does the job and ends the process."""
    with os.fdopen(JOB, encoding="utf-8") as file:
        job = json.load(file)
    to_json = program.module("ablations/subjects/sdpa/peers/peer_rules.py").to_json
    code = 0
    with os.fdopen(LINES, "w", encoding="utf-8") as lines:
        try:
            Worker(comparison, job, lambda line: print(to_json(line), file=lines, flush=True)).run()
        except Broken:
            code = FAULT_EXIT
        except BaseException:
            traceback.print_exc()
            code = 1
    # Not by sys.exit(), which the program could catch.
    os._exit(code)
