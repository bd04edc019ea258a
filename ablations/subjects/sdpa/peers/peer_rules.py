# SPDX-License-Identifier: Apache-2.0
"""The rules by which peers are timed, without PyTorch or a GPU: seeds, orders, launches, checks, lines."""

import hashlib
import json
import math
import random
import re

# A dtype's name in PyTorch, explicit bits of its mantissa, exponent of its smallest normal number.
DTYPES = {"fp16": ("float16", 10, -14), "bf16": ("bfloat16", 7, -126)}
# What a peer may write besides them. No problem is of it.
FORMATS = {**DTYPES, "e4m3": ("float8_e4m3fn", 3, -6)}

# Replays of an arm before its first sample: the clocks of an idle GPU are low, and at
# the power limit they take longer to stand. As long as in our own worker (kWarmUp and
# kCappedWarmUp in ablations/measure/worker.cc).
WARM_UP_S = 0.3
CAPPED_WARM_UP_S = 1.0
POWER_CAP = 4  # nvmlClocksEventReasonSwPowerCap
MAX_REASON_CHARS = 200


class Refused(Exception):
    """A backend doesn't run a shape; the message is its reason."""


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
    _, mantissa_bits, least = FORMATS[dtype]
    # Below the smallest normal number the spacing stays.
    exponent = max(math.frexp(abs(value))[1] - 1, least) if value else least
    return 0.5 * math.ldexp(1.0, exponent - mantissa_bits)


def judge(shape_name, errors, dtype="fp16", unit=1.0):
    """A check's line from the errors of each input set: the worst set speaks.

    errors: dicts of max_err, mean_err (of the output against the reference),
    naive_max_err, naive_mean_err (of the same formula in the dtype) and max_ref.
    dtype: of the output, whose numbers are times `unit`.
    """
    checks = []
    for e in errors:
        max_limit = 2.0 * e["naive_max_err"] + unit * half_ulp(e["max_ref"] / unit, dtype)
        mean_limit = 1.5 * e["naive_mean_err"]
        # A NaN compares false, and so fails.
        correct = e["max_err"] <= max_limit and e["mean_err"] <= mean_limit
        checks.append({"shape": shape_name, "correct": correct, "max_err": e["max_err"],
                       "max_err_limit": max_limit, "mean_err": e["mean_err"],
                       "mean_err_limit": mean_limit})
    failed = [check for check in checks if not check["correct"]]
    return failed[0] if failed else max(checks, key=lambda c: c["max_err"] / c["max_err_limit"])


def refusal_reason(words, messages, error):
    """One line on why a peer refused, from PyTorch's warnings and its error. `words`: with which the
    warnings speak of it."""
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


def cudnn_text(version):
    """cuDNN's version as people write it; 91900 is 9.19.0."""
    major, rest = divmod(version, 10000)
    return f"cuDNN {major}.{rest // 100}.{rest % 100}"


def peer_line(name, version, shape_name, available, reason, checks=()):
    # Reasons of all shapes end up in one text, so each says whose it is.
    if reason and shape_name:
        reason = f"{shape_name}: {reason}"
    return {"peer": {"name": f"peer:{name}", "version": version, "shape": shape_name,
                     "available": available, "reason": reason, "checks": list(checks)}}


def call_line(name, shape_name, lines):
    return {"call": {"arm": f"peer:{name}", "shape": shape_name, "lines": lines}}


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


def is_warm(spent_s, read_sensors):
    """At the power limit it takes longer until the clocks stand."""
    if spent_s < WARM_UP_S:
        return False
    return spent_s >= CAPPED_WARM_UP_S or not (read_sensors()["throttle"] or 0) & POWER_CAP
