#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's SDPA backends, and FlashAttention-3, on our shapes, by our own worker's protocol.

Contract: runs as one process between ours and changes no GPU setting. It reads
a request (JSON, from --shapes-json) and prints one JSON object per line:

  {"seq":-1,"process":0,"shape":"mission_b","block":0,"order":1,"arm":"peer:cudnn", ...}
      a sample, in the schema of reports/RECORD.md; `order` is the backend's
      place among those of its process and shape. `seq` is the controller's to
      fill in. Figures that NVML doesn't give are null.
  {"peer":{"name":"peer:cudnn","version":...,"shape":"mission_b","available":true,
           "reason":"","checks":[{...}]}}
      one backend on one shape, printed before its first sample. Objects of the
      same name merge into one entry of peers.json: `checks` are appended,
      `available` is true where any of them is, reasons are joined.

The request, with the defaults of everything but `shapes`:

  {"shapes":[{"name":"mission_b","batch":1,"heads_q":8,"heads_kv":8,"seq_q":512,
              "seq_kv":512,"head_dim":64,"causal":false,"rotation":4}],
   "cache":"warm","process":0,"seed":1,"blocks":24,"input_sets":4,"target_replay_us":1000,
   "min_launches":4,"max_launches":256,"peers":["flash","cudnn","efficient","math"]}

A shape's `dtype` is "fp16" (default) or "bf16". Its `rotation` (default: input_sets) is how many input sets a replay rotates
over; those beyond input_sets are copies at other addresses, which keep the L2
cold. `cache` only labels the samples.

Of a shape each backend is timed for all of its blocks before the next one is; the
samples are printed when all are, so a kill loses those of the shape in flight.

With "alone": {"settle_s":0.5,"window_s":1} each sample is a visit, as in our own worker
(reports/decisions/0045): a backend's replays without a pause, with the SM clock by the SMs'
counters, the joules of NVML's energy counter and the share of the time that the GPU waited for
the host; it is printed when it is over. A shape's
"visited", [["cudnn",0],...], are those that the record has.

FlashAttention-3 ("fa3") is the library that the environment's WARPLEDGER_FA3 names: the file
vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so of the wheel vllm 0.33.0.

A backend is checked before it is timed, on the outputs of the very graph that is
timed, by the rule that our kernels must pass. One that refuses a shape, or fails
the check, is reported and not timed.

Errors: without PyTorch or a GPU, one line says so with available=false, and the
exit code is 0: peers are optional. A malformed request exits with 2.

  python3 ablations/subjects/sdpa/peers.py --list      # the backends, one per line
  echo '{"shapes":[...]}' | python3 ablations/subjects/sdpa/peers.py --process 0 --seed 1 --blocks 24
"""

import argparse
import ctypes
import hashlib
import itertools
import json
import math
import os
import random
import re
import sys
import threading
import time
import warnings

# Our name of a backend: torch.nn.attention.SDPBackend's name, and the words
# with which PyTorch's refusals speak of it.
BACKENDS = {
    "flash": ("FLASH_ATTENTION", "flash attention"),
    "cudnn": ("CUDNN_ATTENTION", "cudnn attention"),
    "efficient": ("EFFICIENT_ATTENTION", "memory efficient"),
    "math": ("MATH", "math"),
}
FA3 = "fa3"
PEERS = [*BACKENDS, FA3]
FA3_LIBRARY = "WARPLEDGER_FA3"  # of the environment

DEFAULTS = {
    "process": 0,
    "seed": 1,
    "blocks": 24,
    "input_sets": 4,
    "target_replay_us": 1000,
    "min_launches": 4,
    "max_launches": 256,
    "cache": "warm",
    "alone": None,
    "peers": list(BACKENDS),
}

# A dtype's name in PyTorch, explicit bits of its mantissa, exponent of its smallest normal number.
DTYPES = {"fp16": ("float16", 10, -14), "bf16": ("bfloat16", 7, -126)}

SHAPE_SIZES = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim")

# Replays of an arm before its first sample: the clocks of an idle GPU are low, and at
# the power limit they take longer to stand. As long as in our own worker (kWarmUp and
# kCappedWarmUp in ablations/measure/worker.cc).
WARM_UP_S = 0.3
CAPPED_WARM_UP_S = 1.0
POWER_CAP = 4  # nvmlClocksEventReasonSwPowerCap
MAX_REASON_CHARS = 200


class RequestError(Exception):
    """The request can't be carried out; the message says why and what to do."""


class Refused(Exception):
    """A backend doesn't run a shape; the message is its reason."""


# --- Pure parts --------------------------------------------------------------


def parse_request(text, overrides=None):
    """The request with its defaults filled in. Raises RequestError."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"the request is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise RequestError("the request is not a JSON object; see the head of this file")
    unknown = sorted(set(given) - set(DEFAULTS) - {"shapes"})
    if unknown:
        raise RequestError(f"unknown key {unknown[0]!r}; known are shapes, {', '.join(DEFAULTS)}")
    request = {**DEFAULTS, **given}
    request.update({k: v for k, v in (overrides or {}).items() if v is not None})
    for key, default in DEFAULTS.items():
        least = 0 if key in ("process", "seed") else 1
        if isinstance(default, int) and not _is_int(request[key], least):
            raise RequestError(f"{key} is {request[key]!r}, "
                               f"an integer of at least {least} is needed")
    if request["cache"] not in ("warm", "cold"):
        raise RequestError(f"cache is {request['cache']!r}, it must be warm or cold")
    if not isinstance(request["peers"], list) or not request["peers"]:
        raise RequestError("peers must be a list of at least one backend")
    for peer in request["peers"]:
        if peer not in PEERS:
            raise RequestError(f"unknown peer {peer!r}; known are {', '.join(PEERS)}")
    if request["alone"] is not None and not (
            isinstance(request["alone"], dict) and all(
                isinstance(request["alone"].get(key), (int, float)) and request["alone"][key] >= 0
                for key in ("settle_s", "window_s"))):
        raise RequestError(f"alone is {request['alone']!r}, it must have settle_s and window_s")
    if request["min_launches"] > request["max_launches"]:
        raise RequestError("min_launches is larger than max_launches")
    shapes = request.get("shapes")
    if not isinstance(shapes, list) or not shapes:
        raise RequestError("shapes must be a list of at least one shape")
    for shape in shapes:
        if not isinstance(shape, dict) or not isinstance(shape.get("name"), str):
            raise RequestError(f"a shape without a name: {shape!r}")
        for key in SHAPE_SIZES:
            if not _is_int(shape.get(key), 1):
                raise RequestError(f"shape {shape['name']}: {key} is {shape.get(key)!r}, "
                                   "an integer of at least 1 is needed")
        if not _is_int(shape.setdefault("rotation", request["input_sets"]), request["input_sets"]):
            raise RequestError(f"shape {shape['name']}: rotation is {shape['rotation']!r}, "
                               "an integer of at least input_sets is needed")
        if not isinstance(shape.setdefault("visited", []), list):
            raise RequestError(f"shape {shape['name']}: visited is no list")
        if shape.setdefault("dtype", "fp16") not in DTYPES:
            raise RequestError(f"shape {shape['name']}: dtype is {shape['dtype']!r}, it must be "
                               f"{' or '.join(DTYPES)}")
        if not isinstance(shape.get("causal"), bool):
            raise RequestError(f"shape {shape['name']}: causal must be true or false")
        if shape["heads_q"] % shape["heads_kv"]:
            raise RequestError(f"shape {shape['name']}: heads_q is no multiple of heads_kv")
    return request


def _is_int(value, least):
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def why_skipped(shape):
    """Why no backend can be asked for this shape, or ""."""
    if shape["causal"] and shape["seq_q"] != shape["seq_kv"]:
        return ("PyTorch aligns the causal mask to the top left, ours is aligned to the bottom "
                "right: not the same problem")
    return ""


def choose_launches(per_launch_us, request, rotation=None):
    """Launches of one graph: about target_replay_us long, each input set equally often."""
    sets = rotation or request["input_sets"]
    least = least_launches(request, rotation)
    most = max(least, sets * (request["max_launches"] // sets))
    if not per_launch_us > 0:
        return most
    return min(most, max(least, sets * round(request["target_replay_us"] / per_launch_us / sets)))


def least_launches(request, rotation=None):
    """The shortest graph that the request allows and that uses each input set equally often."""
    sets = rotation or request["input_sets"]
    return sets * math.ceil(request["min_launches"] / sets)


def input_seed(seed, process, shape_name):
    """A seed of its own for each run, process and shape, as torch takes it."""
    digest = hashlib.sha256(f"{seed}/{process}/{shape_name}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def peer_order(seed, process, shape_name, names):
    """The order in which a process times a shape's backends: each second process mirrors the one
    before, so that of two backends each goes first equally often.
    """
    order = sorted(names)
    random.Random(f"{seed}/{process // 2}/{shape_name}").shuffle(order)
    return order[::-1] if process % 2 else order


def half_ulp(value, dtype="fp16"):
    """Half the distance between numbers of a dtype at |value|."""
    _, mantissa_bits, least = DTYPES[dtype]
    # Below the smallest normal number the spacing stays.
    exponent = max(math.frexp(abs(value))[1] - 1, least) if value else least
    return 0.5 * math.ldexp(1.0, exponent - mantissa_bits)


def judge(shape_name, errors, dtype="fp16"):
    """A check's line from the errors of each input set: the worst set speaks.

    errors: dicts of max_err, mean_err (of the output against the reference),
    naive_max_err, naive_mean_err (of the same formula in the dtype) and max_ref.
    """
    checks = []
    for e in errors:
        max_limit = 2.0 * e["naive_max_err"] + half_ulp(e["max_ref"], dtype)
        mean_limit = 1.5 * e["naive_mean_err"]
        # A NaN compares false, and so fails.
        correct = e["max_err"] <= max_limit and e["mean_err"] <= mean_limit
        checks.append({"shape": shape_name, "correct": correct, "max_err": e["max_err"],
                       "max_err_limit": max_limit, "mean_err": e["mean_err"],
                       "mean_err_limit": mean_limit})
    failed = [check for check in checks if not check["correct"]]
    return failed[0] if failed else max(checks, key=lambda c: c["max_err"] / c["max_err_limit"])


def refusal_reason(backend, messages, error):
    """One line on why a backend refused, from PyTorch's warnings and its error."""
    words = BACKENDS[backend][1] if backend in BACKENDS else backend
    told, other, ours = [], [], False
    for message in messages:
        # PyTorch appends the place in its own sources, which tells our readers nothing.
        line = re.sub(r"\s*\(Triggered internally at [^)]*\)\.?", "", str(message))
        line = " ".join(line.split())
        if "not used because" in line.lower():
            ours = line.lower().startswith(words)
        elif ours:
            told.append(line)
        elif "runtime disabled" not in line.lower():
            other.append(line)
    # Warnings outside any section may be about anything: the error comes first.
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    first = first or type(error).__name__
    if told:
        reason = " ".join(dict.fromkeys(told))
    else:
        reason = " ".join([first] + [line for line in dict.fromkeys(other) if line != first])
    return reason if len(reason) <= MAX_REASON_CHARS else reason[:MAX_REASON_CHARS - 1] + "…"


def version_text(torch_version, cudnn_version, backend):
    """What peers.json says of the version; cudnn_version is 91900 for 9.19.0."""
    text = f"torch {torch_version}"
    if backend == "cudnn" and cudnn_version:
        major, rest = divmod(cudnn_version, 10000)
        text += f", cuDNN {major}.{rest // 100}.{rest % 100}"
    return text


def peer_line(name, version, shape_name, available, reason, checks=()):
    # Reasons of all shapes end up in one text, so each says whose it is.
    if reason and shape_name:
        reason = f"{shape_name}: {reason}"
    return {"peer": {"name": f"peer:{name}", "version": version, "shape": shape_name,
                     "available": available, "reason": reason, "checks": list(checks)}}


def sample_line(process, shape_name, block, order, name, launches, us, reading, cache="warm"):
    return {"seq": -1, "process": process, "shape": shape_name, "block": block, "order": order,
            "arm": f"peer:{name}", "launches": launches, "us": us, **reading, "cache": cache}


def to_json(line):
    """One line of strict JSON: what isn't finite becomes null."""
    def clean(value):
        if isinstance(value, float) and not math.isfinite(value):
            return None
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items()}
        if isinstance(value, list):
            return [clean(v) for v in value]
        return value
    return json.dumps(clean(line), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# --- The protocol ------------------------------------------------------------


def run(request, bench, emit):
    """Checks and times every backend on every shape. `emit` takes one line."""
    for shape in request["shapes"]:
        arms = {}
        skipped = why_skipped(shape)
        with bench.shape(shape) as inputs:
            for name in request["peers"]:
                version = bench.version(name)
                if skipped:
                    emit(peer_line(name, version, shape["name"], False, skipped))
                    continue
                try:
                    arm = inputs.prepare(name)
                except Refused as refusal:
                    emit(peer_line(name, version, shape["name"], False, str(refusal)))
                    continue
                if arm.check["correct"]:
                    arms[name] = arm
                reason = "" if arm.check["correct"] else "incorrect, so not timed"
                emit(peer_line(name, version, shape["name"], True, reason, [arm.check]))
            if request["alone"] is not None:
                visit_arms(request, shape, arms, emit)
            else:
                time_blocks(request, shape["name"], arms, bench.read_sensors, emit)


def is_warm(spent_s, read_sensors):
    """At the power limit it takes longer until the clocks stand."""
    if spent_s < WARM_UP_S:
        return False
    return spent_s >= CAPPED_WARM_UP_S or not (read_sensors()["throttle"] or 0) & POWER_CAP


def time_blocks(request, shape_name, arms, read_sensors, emit):
    """Times one arm after another, each for all of its blocks, in the order of peer_order().

    Never in turn: at the power limit the clocks follow the power of the last tenths of a second,
    so a backend between frugal ones would run faster than anybody's who uses it (reports/decisions
    0020). Our own arms are timed among their like.
    """
    blocks = [[] for _ in range(request["blocks"])]
    order = peer_order(request["seed"], request["process"], shape_name, arms)
    for place, name in enumerate(order):
        start = time.monotonic()
        while not is_warm(time.monotonic() - start, read_sensors):
            arms[name].time()
        for block, lines in enumerate(blocks):
            us = arms[name].time()
            # Right after the sample, so that the GPU's clocks are those of its work.
            lines.append(sample_line(request["process"], shape_name, block, place, name,
                                     arms[name].launches, us, read_sensors(), request["cache"]))
    for lines in blocks:
        for line in lines:
            emit(line)


def visit_arms(request, shape, arms, emit):
    """Each arm alone, round by round; rounds are numbered through all processes, and each second
    one is the mirror of the one before it."""
    for block in range(request["blocks"]):
        turn = request["process"] * request["blocks"] + block
        for name in peer_order(request["seed"], turn, shape["name"], arms):
            if [name, block] in shape["visited"]:
                continue
            visit = arms[name].stay(request["alone"])
            us, launches = visit.pop("us"), visit.pop("launches")
            emit(sample_line(request["process"], shape["name"], block, 0, name, launches, us,
                             visit, request["cache"]) | {"of": 1})


class EnergyWindow:
    """When the window of a stay begins and ends: at steps of an energy counter.

    ablations/measure/energy_window.h has the contract; this is the same for peers.
    """

    PATIENCE_S = 0.5
    SHARP_S = 0.005

    def __init__(self, plan, read):
        self._plan, self._read = plan, read
        self._arrived = self._begin = self._last = self._first_step = self._last_step = None
        self._counts = True

    def next(self):
        """"begin" or "end" where the window does, else None."""
        now = time.monotonic()
        if self._arrived is None:
            self._arrived = now
        if self._begin is None:
            settled = self._arrived + self._plan["settle_s"]
            if now < settled:
                return None
            is_edge, self._first_step = self._edge(settled, now)
            if not is_edge:
                return None
            self._begin = now
            return "begin"
        whole = self._begin + self._plan["window_s"] - self.SHARP_S
        is_edge, self._last_step = self._edge(whole, now)
        return "end" if is_edge else None

    def _edge(self, since, now):
        """Whether the window may begin or end now, which it might since then, and the step."""
        step = self._next_step() if self._counts else None
        if now < since:
            return False, None
        if step is None and now - since > self.PATIENCE_S:
            self._counts = False
        return step is not None or not self._counts, step

    def _next_step(self):
        """(when, joules) of a step that is known to SHARP_S, if there was one."""
        asked, joules = time.monotonic(), self._read()
        answered = time.monotonic()
        if joules is None:
            self._counts = False
            return None
        last, self._last = self._last, (asked, joules)
        if last is None or joules == last[1] or answered - last[0] > self.SHARP_S:
            return None
        return (last[0] + answered) / 2, joules

    def energy(self):
        """What a sample says of it; nothing where there was no counter."""
        if None in (self._first_step, self._last_step):
            return {}
        return {"energy_j": self._last_step[1] - self._first_step[1],
                "energy_s": self._last_step[0] - self._first_step[0]}


class WatchedWindow:
    """A window whose counter a thread of its own reads: next() never waits for NVML, which may take
    longer for an answer than the GPU has work queued. `at_end` is called in that thread."""

    READ_EVERY_S = 0.002

    def __init__(self, window, at_end):
        self._window, self._at_end = window, at_end
        self._begun, self._ended, self._told = False, False, False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._stop.is_set():
            what = self._window.next()
            if what == "begin":
                self._begun = True
            if what == "end":
                self._at_end()
                self._ended = True
                return
            self._stop.wait(self.READ_EVERY_S)

    def next(self):
        if self._begun and not self._told:
            self._told = True
            return "begin"
        return "end" if self._ended else None

    def stop(self):
        """Waits for the thread."""
        self._stop.set()
        self._thread.join()


class Stay:
    """Replays without a pause, a part of them timed: the same as micro/harness/stay.h, which has
    the contract. `stream` has submit(), record(i), wait(i), is_past(i), ms_between(i, j) of events
    with any number, stamp(0 or 1) of the clock, and the host's now() in seconds."""

    QUEUED_S = 0.1
    GROUP_S = 0.002
    ASK_EVERY_S = 0.002
    MOST_GROUPS = 256
    SLOTS = MOST_GROUPS + 1

    def __init__(self, stream, replay_s, launches):
        self._stream, self._launches = stream, launches
        self._replays = max(1, math.ceil(self.GROUP_S / max(replay_s, 1e-9)))  # of a group
        self._fastest_s = self._replays * replay_s
        self._groups = {}  # slot: (event that its wait began with or None, late_ms)
        self._submitted = self._retired = self._timed = 0
        self._begun, self._idle_ms = None, 0.0

    def on(self, ask):
        """Until `ask` has said "begin" and "end"; what a sample says of the window."""
        stream, ask_at = self._stream, -math.inf
        while True:
            if stream.now() >= ask_at:
                what, ask_at = ask(), stream.now() + self.ASK_EVERY_S
                if what == "begin":
                    stream.stamp(0)
                    stream.record("begin")
                    self._begun = self._submitted
                if what == "end" and self._timed > 0:  # a window holds a replay at least
                    break
            # A replay takes less at a higher clock: the fastest says how many are enough.
            depth = math.ceil(self.QUEUED_S / max(self._fastest_s, 1e-9))
            while self._submitted - self._retired < min(max(2, depth), self.MOST_GROUPS):
                self._submit_group()
            self._retire()
            while self._retired < self._submitted and stream.is_past(self._after(self._retired)):
                self._retire()
        stream.record("end")
        stream.stamp(1)
        while self._retired < self._submitted:
            self._retire()
        stream.wait("end")
        ms = stream.ms_between("begin", "end")
        return {"us": 1000.0 * ms / self._timed, "launches": self._timed, "window_s": ms / 1000.0,
                "idle_share": min(1.0, self._idle_ms / ms)}

    def _before(self, group):
        return 2 * (group % self.SLOTS)

    def _after(self, group):
        return self._before(group) + 1

    def _submit_group(self):
        stream, group, now = self._stream, self._submitted, self._stream.now()
        stream.record(self._before(group))
        for _ in range(self._replays):
            stream.submit()
        stream.record(self._after(group))
        waits_from = None
        if self._begun is not None:
            waits_from = "begin" if self._begun == group else self._after(group - 1)
            self._timed += self._launches * self._replays
        late = group > 0 and stream.is_past(self._after(group - 1))
        self._groups[group % self.SLOTS] = waits_from, 1000 * (stream.now() - now) if late else 0
        self._submitted += 1

    def _retire(self):
        """Waits for the oldest group, and counts what the stream waited for it."""
        stream, group = self._stream, self._retired
        stream.wait(self._after(group))
        took_ms = stream.ms_between(self._before(group), self._after(group))
        self._fastest_s = min(self._fastest_s, took_ms / 1000)
        waits_from, late_ms = self._groups[group % self.SLOTS]
        if waits_from is not None:
            self._idle_ms += late_ms + stream.ms_between(waits_from, self._before(group))
        self._retired += 1


# --- The GPU -----------------------------------------------------------------


class Sensors:
    """Clock, temperature, power and clock event reasons through NVML.

    The functions are those of NVIDIA's NVML API reference; kernels/common/nvml.h
    reads the same in our own worker. Whatever can't be read is None.
    """

    CLOCK_SM = 1
    TEMPERATURE_GPU = 0

    def __init__(self, uuid, library=None):
        self._library = None
        self._handle = ctypes.c_void_p()
        try:
            library = library or ctypes.CDLL("libnvidia-ml.so.1")
            if (library.nvmlInit_v2() == 0 and
                    library.nvmlDeviceGetHandleByUUID(uuid.encode(),
                                                      ctypes.byref(self._handle)) == 0):
                self._library = library
        except (OSError, AttributeError):
            pass

    def read(self):
        milliwatts = self._get("nvmlDeviceGetPowerUsage", ctypes.c_uint)
        throttle = self._get("nvmlDeviceGetCurrentClocksEventReasons", ctypes.c_ulonglong)
        if throttle is None:  # the name in older drivers
            throttle = self._get("nvmlDeviceGetCurrentClocksThrottleReasons", ctypes.c_ulonglong)
        return {
            "sm_mhz": self._get("nvmlDeviceGetClockInfo", ctypes.c_uint, self.CLOCK_SM),
            "temp_c": self._get("nvmlDeviceGetTemperature", ctypes.c_uint, self.TEMPERATURE_GPU),
            "power_w": None if milliwatts is None else milliwatts / 1000,
            "throttle": throttle,
        }

    def joules(self):
        """Since the driver was loaded, in steps."""
        millijoules = self._get("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong)
        return None if millijoules is None else millijoules / 1000

    def _get(self, function, value_type, *arguments):
        value = value_type()
        try:
            # AttributeError: no library, or one without this function.
            code = getattr(self._library, function)(self._handle, *arguments, ctypes.byref(value))
        except AttributeError:
            return None
        return value.value if code == 0 else None


class ClockProbe:
    """The mean SM clock between two places of a stream, by the SMs' own counters.

    micro/harness/clock_probe.h does the same for our arms: stamps of each SM's cycle counter and of
    the global timer; the median over the SMs counts. Without CUDA's driver there is no clock.
    """

    PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry stamp(.param .u64 stamps) {
  .reg .u32 %r<3>;
  .reg .u64 %d<6>;
  ld.param.u64 %d1, [stamps];
  cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %d2, %r1, 24;
  add.u64 %d1, %d1, %d2;
  mov.u32 %r2, %smid;
  cvt.u64.u32 %d3, %r2;
  mov.u64 %d4, %clock64;
  mov.u64 %d5, %globaltimer;
  st.global.u64 [%d1], %d3;
  st.global.u64 [%d1+8], %d4;
  st.global.u64 [%d1+16], %d5;
  ret;
}
"""

    def __init__(self, torch):
        self._torch = torch
        self._function = None
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
            self._sms = torch.cuda.get_device_properties(0).multi_processor_count
            self._stamps = torch.zeros((2, self._sms, 3), dtype=torch.int64, device="cuda")
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            if (self._cuda.cuModuleLoadData(ctypes.byref(module), self.PTX) == 0 and
                    self._cuda.cuModuleGetFunction(ctypes.byref(function), module, b"stamp") == 0):
                self._function = function
        except (OSError, AttributeError):
            pass

    def stamp(self, which):
        """On the current stream; `which` is 0 at the beginning and 1 at the end."""
        if self._function is None:
            return
        place = ctypes.c_uint64(self._stamps[which].data_ptr())
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(place))
        stream = ctypes.c_void_p(self._torch.cuda.current_stream().cuda_stream)
        if self._cuda.cuLaunchKernel(self._function, self._sms, 1, 1, 1, 1, 1, 0, stream, arguments,
                                     None) != 0:
            self._function = None

    def mhz(self):
        """Once the stream is done."""
        return None if self._function is None else mhz_between(*self._stamps.tolist())


def mhz_between(begin, end):
    """The median of the SMs that stamped both, of stamps (sm, cycles, ns); None: there is none."""
    began = {sm: (cycles, ns) for sm, cycles, ns in begin}
    mhz = sorted(1000 * (cycles - began[sm][0]) / (ns - began[sm][1])
                 for sm, cycles, ns in end if sm in began and ns > began[sm][1])
    return round(mhz[len(mhz) // 2], 1) if mhz else None


class TorchBench:
    """Everything that needs PyTorch and a GPU."""

    def __init__(self, torch, request):
        # Imported here, so that a broken PyTorch is one reported line.
        from torch.nn.attention import SDPBackend, sdpa_kernel
        self.torch = torch
        self.request = request
        self.backends = SDPBackend
        self.sdpa_kernel = sdpa_kernel
        # The naive result is a yardstick: it must not be loosened by sums in 16 bits.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
        self.sensors = Sensors(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        self.read_sensors = self.sensors.read
        self.clock = ClockProbe(torch) if request["alone"] is not None else None
        self._fa3 = None

    def fa3(self):
        """FlashAttention-3's operator. Raises Refused."""
        path = os.environ.get(FA3_LIBRARY, "")
        if self._fa3 is None:
            if not path:
                raise Refused(f"{FA3_LIBRARY} names no library: the file _vllm_fa3_C.abi3.so of the "
                              "wheel vllm 0.33.0")
            try:
                self.torch.ops.load_library(path)
                self._fa3 = self.torch.ops._vllm_fa3_C.fwd
            except (OSError, RuntimeError, AttributeError) as error:
                raise Refused(f"{FA3_LIBRARY}: {' '.join(str(error).split())[:150]}") from error
        return self._fa3

    def version(self, name):
        if name == FA3:
            return f"torch {self.torch.__version__}, FlashAttention-3 of vllm 0.33.0"
        return version_text(self.torch.__version__, self.torch.backends.cudnn.version(), name)

    def shape(self, shape):
        return ShapeInputs(self, shape)


class ShapeInputs:
    """The rotating input sets of a shape, with their references.

    Made at the first use: a shape that no backend is asked for costs nothing.
    """

    def __init__(self, bench, shape):
        self.bench = bench
        self.torch = bench.torch
        self.shape = shape
        self.sets = []        # (q, k, v) of each set
        self.references = []  # (fp64 output, errors of the naive formula)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sets, self.references = [], []
        self.torch.cuda.empty_cache()

    def prepare(self, name):
        """The backend captured into a graph, and checked. Raises Refused."""
        backend = None
        if name == FA3:
            self.bench.fa3()
        else:
            backend = getattr(self.bench.backends, BACKENDS[name][0], None)
            if backend is None:
                raise Refused(f"torch {self.torch.__version__} has no backend {BACKENDS[name][0]}")
        with warnings.catch_warnings(record=True) as caught, self.torch.no_grad():
            warnings.simplefilter("always")
            try:
                if not self.sets:
                    self._make_sets()
                return Fa3Arm(self) if name == FA3 else Arm(self, backend)
            # NotImplementedError and CUDA's own errors are RuntimeErrors too.
            except RuntimeError as error:
                reason = refusal_reason(name, [w.message for w in caught], error)
        # After the except clause: its traceback would keep a graph's memory alive.
        raise Refused(reason)

    def call(self, tensors):
        q, k, v = tensors
        options = {"is_causal": self.shape["causal"]}
        if self.shape["heads_q"] != self.shape["heads_kv"]:
            options["enable_gqa"] = True
        return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    def _make_sets(self):
        torch, s, request = self.torch, self.shape, self.bench.request
        generator = torch.Generator(device="cuda")
        dtype = getattr(torch, DTYPES[s["dtype"]][0])
        generator.manual_seed(input_seed(request["seed"], request["process"], s["name"]))

        def normal(heads, rows):
            return torch.randn((s["batch"], heads, rows, s["head_dim"]), generator=generator,
                               device="cuda", dtype=torch.float32).to(dtype)

        sets = [(normal(s["heads_q"], s["seq_q"]), normal(s["heads_kv"], s["seq_kv"]),
                 normal(s["heads_kv"], s["seq_kv"])) for _ in range(request["input_sets"])]
        self.references = [self._reference(*tensors) for tensors in sets]
        while len(sets) < s["rotation"]:
            sets.append(tuple(tensor.clone() for tensor in sets[len(sets) % request["input_sets"]]))
        self.sets = sets  # last: only a complete shape counts as made

    def _reference(self, q, k, v):
        """The output in fp64, and how far the naive formula in the dtype is from it."""
        torch, s = self.torch, self.shape
        group = s["heads_q"] // s["heads_kv"]
        scale = 1.0 / math.sqrt(s["head_dim"])
        hidden = None
        if s["causal"]:  # seq_q == seq_kv here, so both alignments agree
            hidden = torch.ones((s["seq_q"], s["seq_kv"]), dtype=torch.bool, device="cuda").triu(1)
        reference = torch.empty(q.shape, dtype=torch.float64, device="cuda")
        naive = torch.empty_like(q)
        # Head by head: the fp64 scores of all heads at once can exceed the memory.
        for b in range(s["batch"]):
            for h in range(s["heads_q"]):
                qh, kh, vh = q[b, h], k[b, h // group], v[b, h // group]
                scores = (qh.double() @ kh.double().T) * scale
                scores16 = (qh @ kh.T) * scale
                if hidden is not None:
                    scores = scores.masked_fill(hidden, -math.inf)
                    scores16 = scores16.masked_fill(hidden, -math.inf)
                reference[b, h] = torch.softmax(scores, dim=-1) @ vh.double()
                naive[b, h] = torch.softmax(scores16.float(), dim=-1).to(q.dtype) @ vh
        error = (naive.double() - reference).abs()
        return reference, {"naive_max_err": error.max().item(),
                           "naive_mean_err": error.mean().item(),
                           "max_ref": reference.abs().max().item()}


class ArmStream:
    """What Stay needs, of the current stream and one graph."""

    def __init__(self, torch, graph, clock):
        self._torch, self._graph, self._clock = torch, graph, clock
        self._events = {}

    def submit(self):
        self._graph.replay()

    def record(self, event):
        if event not in self._events:
            self._events[event] = self._torch.cuda.Event(enable_timing=True)
        self._events[event].record()

    def wait(self, event):
        self._events[event].synchronize()

    def is_past(self, event):
        return self._events[event].query()

    def ms_between(self, start, end):
        return self._events[start].elapsed_time(self._events[end])

    def stamp(self, which):
        self._clock.stamp(which)

    def now(self):
        return time.monotonic()


class Arm:
    """One backend on one shape, as a CUDA graph of `launches` calls."""

    def __init__(self, inputs, backend):
        self.torch = inputs.torch
        self._inputs = inputs
        self._backend = backend
        self._warm_up()
        self.launches = least_launches(inputs.bench.request, len(inputs.sets))
        self._capture()
        self.time()
        self.launches = choose_launches(self.time(), inputs.bench.request, len(inputs.sets))
        self._capture()
        self.check = self._check()

    def time(self):
        """Microseconds per launch, of one replay."""
        start = self.torch.cuda.Event(enable_timing=True)
        end = self.torch.cuda.Event(enable_timing=True)
        # The untimed replay keeps the GPU busy while the timed one is queued, so
        # that the host's launch latency stays out of the time.
        self._graph.replay()
        start.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000.0 / self.launches

    def stay(self, plan):
        """Replays without a pause; what a sample says of the window that is timed."""
        bench, sensors = self._inputs.bench, {}
        stream = ArmStream(self.torch, self._graph, bench.clock)
        replay_s = 1e-6 * self.time() * self.launches
        energy = EnergyWindow(plan, bench.sensors.joules)
        # NVML is the other thread's until the window is stopped.
        window = WatchedWindow(energy, lambda: sensors.update(bench.read_sensors()))
        try:
            timed = Stay(stream, replay_s, self.launches).on(window.next)
        finally:
            window.stop()
        self.torch.cuda.synchronize()
        return {**sensors, **timed, "sm_mhz": bench.clock.mhz(), **energy.energy()}

    def _attend(self, tensors):
        with self._inputs.bench.sdpa_kernel([self._backend]):
            return self._inputs.call(tensors)

    def _calls(self, launches):
        """The last output of each input set, after `launches` calls."""
        sets = self._inputs.sets
        outputs = [None] * len(sets)
        for i in range(launches):
            outputs[i % len(sets)] = self._attend(sets[i % len(sets)])
        return outputs

    def _warm_up(self):
        # On a side stream, as PyTorch asks before a capture. A refusal comes here.
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            self._calls(len(self._inputs.sets))
        self.torch.cuda.current_stream().wait_stream(stream)
        self.torch.cuda.synchronize()

    def _capture(self):
        self._graph, self._outputs = None, None  # frees the memory of the graph before
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self._outputs = self._calls(self.launches)
        self._graph = graph

    def _as_heads(self, output):
        """As the reference lies: (batch, heads, rows, head_dim)."""
        return output

    def _check(self):
        for output in self._outputs:
            output.fill_(math.nan)
        self._graph.replay()
        self.torch.cuda.synchronize()
        errors = []
        references = itertools.cycle(self._inputs.references)  # further sets are copies
        for output, (reference, naive) in zip(self._outputs, references):
            error = (self._as_heads(output).double() - reference).abs()
            errors.append({"max_err": error.max().item(), "mean_err": error.mean().item(), **naive})
        return judge(self._inputs.shape["name"], errors, self._inputs.shape["dtype"])


class Fa3Arm(Arm):
    """FlashAttention-3: tensors of all rows, (batch x rows, heads, head_dim), made beforehand."""

    def __init__(self, inputs):
        torch, s = inputs.torch, inputs.shape
        self._rows = [tuple(t.transpose(1, 2).reshape(-1, t.shape[1], t.shape[3]).contiguous()
                            for t in tensors) for tensors in inputs.sets]
        self._of = {id(tensors): rows for tensors, rows in zip(inputs.sets, self._rows)}

        def ends(rows):
            return torch.arange(0, (s["batch"] + 1) * rows, rows, dtype=torch.int32, device="cuda")
        self._ends_q, self._ends_kv = ends(s["seq_q"]), ends(s["seq_kv"])
        super().__init__(inputs, None)

    def _attend(self, tensors):
        q, k, v = self._of[id(tensors)]
        s = self._inputs.shape
        out, *_ = self._inputs.bench.fa3()(
            q, k, v, None, None, None, None,  # k_new, v_new, q_v, out
            self._ends_q, self._ends_kv, None, None, None,  # cu_seqlens_k_new, seqused_q and _k
            s["seq_q"], s["seq_kv"], None, None, None,  # page_table, kv_batch_idx, leftpad_k
            None, None, None, None, None, None,  # rotary cos, sin, lengths; scales of q, k, v
            s["head_dim"] ** -0.5, s["causal"], -1, -1, 0.0,  # windows, softcap
            True, None, 0, None, 0,  # interleaved, scheduler's metadata, splits, pack_gqa, margin
            None, 1, 0, None)  # sinks, context parallelism
        return out

    def _as_heads(self, output):
        s = self._inputs.shape
        return output.reshape(s["batch"], s["seq_q"], s["heads_q"], -1).transpose(1, 2)


def open_bench(request):
    """The bench, and "" or the reason why there is none."""
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: one of its libraries is missing
        return None, f"PyTorch can't be imported: {' '.join(str(error).split())}"
    if not torch.cuda.is_available():
        return None, f"torch {torch.__version__} sees no CUDA GPU"
    try:
        return TorchBench(torch, request), ""
    except (ImportError, RuntimeError) as error:
        return None, f"torch {torch.__version__}: {' '.join(str(error).split())}"


def main(argv=None, stdin=None, make_bench=open_bench):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes-json", default="-", metavar="FILE", help="the request; -: stdin")
    parser.add_argument("--process", type=int, help="overrides the request's")
    parser.add_argument("--seed", type=int, help="overrides the request's")
    parser.add_argument("--blocks", type=int, help="overrides the request's")
    parser.add_argument("--out", default="-", metavar="FILE", help="where lines go; -: stdout")
    parser.add_argument("--list", action="store_true", help="print the backends, and no more")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(PEERS))
        return 0
    try:
        if args.shapes_json == "-":
            text = (stdin or sys.stdin).read()
        else:
            with open(args.shapes_json, encoding="utf-8") as file:
                text = file.read()
        overrides = {"process": args.process, "seed": args.seed, "blocks": args.blocks}
        request = parse_request(text, overrides)
        out = sys.stdout if args.out == "-" else open(args.out, "w", encoding="utf-8")
    except (OSError, RequestError, UnicodeDecodeError) as error:
        said = "".join(c if c.isprintable() else "?" for c in str(error))
        print(f"peers.py: {said[:500]}", file=sys.stderr)
        return 2

    def emit(line):
        # Flushed, so that a kill loses no finished line.
        print(to_json(line), file=out, flush=True)

    try:
        bench, reason = make_bench(request)
        if bench is None:
            emit(peer_line("torch", "", "", False, reason))
        else:
            run(request, bench, emit)
    finally:
        if out is not sys.stdout:
            out.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
