# SPDX-License-Identifier: Apache-2.0
"""Which problems call_times.py and call_counters.py have, and what they make of figures. Without PyTorch.

Names and sizes are those of kernels/sdpa/problem/shapes.h where it has the problem.
"""

import json
import math
import os
import pathlib
import random
import re
import statistics
import sys
import time
from dataclasses import asdict, dataclass

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / "reports"))
import random_problems  # noqa: E402 (the path comes first)
from peer_rules import CAPPED_WARM_UP_S

L2_BYTES = 64 << 20  # at least those of an H100 and an H200
WARM_SETS = 4  # as a record with a warm L2 rotates over
MOST_CALLS = 512  # of a graph
WARM_UP_S = 0.4
LONG_REPLAY_US = 2000
SETTLE_S = 0.5  # of each window of joules, as `warpledger run --alone` has it
FA3 = ("fa3", "fa3_planned")  # its schedule is made in each call, or once ahead
ONE_LENGTH = ("one length", "bshd")  # contenders that refuse sequences of several lengths


# --- Problems -------------------------------------------------------------------

@dataclass(frozen=True)
class Dense:
    """Batches of sequences of one length. in_l2: whether calls find K and V in the L2, or nothing of them."""
    name: str
    batch: int
    heads_q: int
    heads_kv: int
    rows: int
    keys: int
    head_dim: int
    causal: bool = False
    dtype: str = "float16"
    in_l2: bool = False
    shown: str = "bytes"  # the rate that matters: bytes or flop

    def kv_bytes(self):
        return 4 * self.batch * self.heads_kv * self.keys * self.head_dim

    def flop(self):
        pairs = self.rows * self.keys - (self.rows * (self.rows - 1) // 2 if self.causal else 0)
        return 4 * self.batch * self.heads_q * self.head_dim * pairs

    def input_sets(self):
        """Sets that calls take in turn: one that stays in the L2, small ones that do together, or as many as leave
        nothing of a set before its turn comes again."""
        if not self.in_l2:
            return max(2, 1 + -(-3 * L2_BYTES // self.kv_bytes()))
        all_bytes = 2 * self.kv_bytes() * WARM_SETS
        return WARM_SETS if all_bytes <= L2_BYTES // 2 else 1


@dataclass(frozen=True)
class Packed:
    """Sequences of `lengths` without gaps."""
    name: str
    lengths: tuple
    heads_q: int
    heads_kv: int
    head_dim: int
    causal: bool

    def input_sets(self):
        return 3

    def flop(self):
        pairs = sum(n * (n + 1) // 2 if self.causal else n * n for n in self.lengths)
        return 4 * self.heads_q * self.head_dim * pairs


def few_problems(_seed):
    return [Dense(f"b{b}_h64x8_s{rows}x8192_d128", b, 64, 8, rows, 8192, 128)
            for b in (1, 16) for rows in (2, 4, 8, 16)]


def small_problems(_seed):
    return [Dense(name, b, 8, 8, rows, rows, 64, in_l2=True, shown="flop")
            for name, b, rows in (("b2_h8_s256_d64", 2, 256), ("b1_h8_s512_d64", 1, 512), ("long", 1, 2048))]


def decode_problems(_seed):
    """K and V of decode_b16 have 537 MB, more than any L2: it is cold either way."""
    return [Dense(name, b, 32, 8, 1, 8192, 128, in_l2=warm)
            for name, b, warm in (("decode_b1_warm", 1, True), ("decode_b1_cold", 1, False),
                                  ("decode_b16_cold", 16, False))]


def bf16_problems(_seed):
    return [Dense(f"fa3_d128_s8192_{mask}_bf16", 2, 16, 16, 8192, 8192, 128, mask == "causal", "bfloat16", shown="flop")
            for mask in ("full", "causal")]


def random_problems_of(seed):
    """By turns of head_dim 64 and 128."""
    drawn = zip(*(random_problems.problems(head_dim, "fp16", 20, seed) for head_dim in (64, 128)))
    return [dense_of(name) for pair in drawn for name in pair]


def dense_of(name):
    """A problem by its name: b2_h8x4_s100x300_d64_causal"""
    sizes = re.fullmatch(r"b(\d+)_h(\d+)(?:x(\d+))?_s(\d+)(?:x(\d+))?_d(\d+)(_causal)?", name)
    batch, heads_q, heads_kv, rows, keys, head_dim = (int(each or 0) for each in sizes.groups()[:6])
    return Dense(name, batch, heads_q, heads_kv or heads_q, rows, keys or rows, head_dim, sizes[7] is not None)


def lengths_of(name, seed):
    draw = random.Random(seed)
    if name == "prompts":
        return tuple(draw.randint(100, 2000) for _ in range(64))
    if name == "mixed":  # a long one, some prompts, many short ones
        return (16384, *(draw.randint(500, 4000) for _ in range(12)), *(draw.randint(16, 128) for _ in range(100)))
    count, length = name.split("x")  # all of one length
    return (int(length),) * int(count)


def varlen_problems(seed):
    """Lengths, heads and masks: FlashAttention-3's heads (hidden size 2048), and groups of 8."""
    made = []
    for d, hq, hk in ((128, 16, 16), (128, 32, 8), (64, 32, 32), (256, 8, 8)):
        for lengths in ("prompts", "mixed", "32x512", "4x4096"):
            if (hq != hk and lengths != "prompts") or (lengths == "mixed" and d != 128):
                continue
            made += [Packed(f"{lengths}_h{hq}x{hk}_d{d}" + "_causal" * causal, lengths_of(lengths, seed), hq, hk, d,
                            causal) for causal in (False, True)]
    return made


PROBLEMS = {"few": few_problems, "varlen": varlen_problems, "small": small_problems, "decode": decode_problems,
            "bf16": bf16_problems, "random": random_problems_of}


def chosen(problems, only):
    """Those that `only` names, texts with commas between: each names one problem, or all whose names have it."""
    names = {each.name for each in problems}
    texts = only.split(",")
    return [each for each in problems
            if any(text == each.name or (text not in names and text in each.name) for text in texts)]


def wanted_contenders(names, known, has_fa3):
    """Those of `known` that `names` asks for. "fa3" asks for all its forms, since a peer is as fast as its fastest;
    without its library there is none. ValueError says which name is unknown."""
    for name in names:
        if name not in known:
            raise ValueError(f"{name} is none of the contenders {', '.join(known)}")
    asked = dict.fromkeys(form for name in names for form in (FA3 if name == "fa3" else (name,)))
    return [name for name in asked if name in known and (has_fa3 or name not in FA3)]


# --- How long it takes ----------------------------------------------------------

def warm_up_s(replay_us):
    """Seconds of replays ahead of samples. Long ones keep the tensor cores busy up to the power limit, where clocks
    take longer to settle."""
    return CAPPED_WARM_UP_S if replay_us > LONG_REPLAY_US else WARM_UP_S


def first_calls(sets):
    """Of a graph, before its time is known: about eight, each set equally often."""
    return max(sets, 8 // sets * sets)


def expected_s(problem, contenders, rounds, energy_s):
    """About how long a problem takes: plans and checks (a second each), rounds, and two windows of joules, each of
    which waits for steps of the energy counter."""
    names = set(contenders)
    us = problem.flop() / 400e6  # a slow peer has 400 TFLOP/s and 2 TB/s
    if isinstance(problem, Dense):
        us = max(us, problem.kv_bytes() / 2e6)
    elif len(set(problem.lengths)) > 1:
        names -= set(ONE_LENGTH)
    windows_s = energy_s + 2 * (SETTLE_S + 0.1) if energy_s else 0
    return len(names) * (1 + rounds * warm_up_s(us * first_calls(problem.input_sets())) + windows_s)


# --- Figures --------------------------------------------------------------------

def calls_of_graph(us, sets, least_us):
    """So many that a replay takes least_us, each set equally often. us: of one call"""
    return sets * max(1, min(math.ceil(least_us / max(us, 0.1) / sets), MOST_CALLS // sets))


def energy_of(window, timed, sm_mhz):
    """What a row says of a stay. window: of EnergyWindow.energy(); timed: of Stay.on()"""
    said = {"steady_us": timed["us"], "idle_share": timed["idle_share"], "sm_mhz": sm_mhz}
    if not window:
        return {**said, "why_no_joules": "the energy counter showed no two steps"}
    watts = window["energy_j"] / window["energy_s"]
    return {**said, "joules": watts * timed["us"] / 1e6, "watts": watts, "energy_s": window["energy_s"]}


def mean_of_windows(windows):
    """What a row says of several windows: means of figures that all have, the seconds of all, and the largest idle
    share, which decides whether the joules count."""
    said = {}
    for name, of in (("steady_us", statistics.fmean), ("idle_share", max), ("sm_mhz", statistics.fmean),
                     ("joules", statistics.fmean), ("watts", statistics.fmean), ("energy_s", sum)):
        figures = [each.get(name) for each in windows]
        if None not in figures:
            said[name] = of(figures)
    reasons = [each["why_no_joules"] for each in windows if "why_no_joules" in each]
    return {**said, **({"why_no_joules": reasons[0]} if reasons else {})}


def rate_of(row, us):
    """(figure, unit)"""
    if "flop" in row:
        return row["flop"] / us / 1e6, "TFLOP/s"
    return row["bytes"] / us / 1e6, "TB/s"


def text_of(row):
    """A line for who waits."""
    if "why_not" in row:
        return f"{row['problem']}: {row['why_not']}"
    ours = row["found"].get("ours", {}).get("p50_us")
    text = []
    for name, each in row["found"].items():
        if "p50_us" not in each:
            text.append(f"{name}: {each.get('why_not', '?')[:60]}")
            continue
        us = each["p50_us"]
        rate, unit = rate_of(row, us)
        said = [f"{name} {us:.2f} us", f"{rate:.3g} {unit}"]
        if "joules" in each:
            said.append(f"{1000 * each['joules']:.3g} mJ at {each['watts']:.0f} W")
        if each.get("idle_share", 0) > 0.01:
            said.append(f"INVALID joules: idle for {100 * each['idle_share']:.1f}%")
        said.append(f"{us / ours:.2f}x" if ours and name != "ours" else f"[{each['said']}]")
        text.append(", ".join(said))
    return f"{row['problem']}: " + "; ".join(text)


class Record:
    """A JSON file that has each row as soon as it is there. Without a path it is written nowhere."""

    def __init__(self, path, head, limit_s=0, now=time.monotonic):
        self._path, self._head, self._rows = path, head, []
        self._now, self._ends = now, now() + limit_s if limit_s else None

    def row(self, row):
        """The caller may add to it, and call save()."""
        self._rows.append(row)
        self.save()
        return row

    def save(self):
        if self._path:
            with open(f"{self._path}.new", "w", encoding="utf-8") as file:
                json.dump({**self._head, "rows": self._rows}, file, indent=1)
            os.replace(f"{self._path}.new", self._path)

    def left_s(self):
        return math.inf if self._ends is None else self._ends - self._now()

    def is_late(self):
        return self.left_s() <= 0


def described(problem):
    """Of a row."""
    if isinstance(problem, Packed):
        return {"problem": problem.name, "flop": problem.flop(), "lengths": problem.lengths}
    figure = {"bytes": problem.kv_bytes()} if problem.shown == "bytes" else {"flop": problem.flop()}
    return {"problem": problem.name, **figure, "sizes": asdict(problem), "input_sets": problem.input_sets()}
