#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hardware counters of one call of the library and of its best peer, by Nsight Compute.

    export PYTHONPATH=ablations/subjects/python:ablations/subjects/sdpa/peers
    python3 kernels/sdpa/library/call_counters.py --fa3 _vllm_fa3_C.abi3.so --out counters.json
    … call_counters.py --only decode,long --peers flash,torch
    … call_counters.py --times few.json varlen.json

Profiles call_times.py --once: a call after a first one, between the marks of CUDA's profiler. --times takes files of
call_times.py, and the peer is then the fastest one of each problem there; otherwise it is the one of CASES. "fa3"
stands for both its forms (call_times.py).

A call has one kernel or several. Each is listed with its counters; `whole` adds up their durations and bytes, and has
percentages as means by duration. Few queries and cold decoding are profiled with --cache-control=all: ncu empties the
caches ahead of every kernel, and so a second kernel of a call finds nothing of the first one's results there. All
others leave caches as they are, as `warpledger profile` does. Clocks are left alone (--clock-control=none).

Counters explain times, they are none: ncu replays each kernel once per group of counters. --out has each problem as
soon as it is known; what fails is recorded, and the rest goes on. Needs what call_times.py needs, and ncu.
"""

import argparse
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

from call_rules import FA3, ONE_LENGTH, Record, chosen

TIMES = pathlib.Path(__file__).resolve().parent / "call_times.py"
MARK = "stamp"  # ClockProbe's kernel, ahead of each contender's
NO_PEERS = {"ours", "before", "read", "sum", *ONE_LENGTH}
TOOLKIT_NCU = "/usr/local/cuda/bin/ncu"  # as in ablations/cli/sdpa/profile.cc
END_S = 5  # for the output of a process that was killed


class Case(NamedTuple):
    """A problem of a mode, what ncu does to caches ahead of each kernel, and the peer without --times."""
    mode: str
    name: str
    cache_control: str
    peer: str


CASES = (Case("few", "b1_h64x8_s4x8192_d128", "all", "fa3"), Case("few", "b1_h64x8_s16x8192_d128", "all", "fa3"),
         Case("few", "b16_h64x8_s4x8192_d128", "all", "fa3"),
         Case("varlen", "prompts_h16x16_d128", "none", "fa3"), Case("varlen", "prompts_h8x8_d256", "none", "fa3"),
         Case("decode", "decode_b1_cold", "all", "flash"), Case("decode", "decode_b1_warm", "none", "flash"),
         Case("small", "b2_h8_s256_d64", "none", "cudnn"), Case("small", "b1_h8_s512_d64", "none", "cudnn"),
         Case("small", "long", "none", "cudnn"))

# Some of those of ablations/record/profile.cc, by a short name.
COUNTERS = {
    "duration_ns": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "cycles_active": "sm__cycles_active.avg",
    "registers": "launch__registers_per_thread",
    "warps_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "issue_pct": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "tensor_pct": "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_of_peak_sustained_active",
    "mufu_pct": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
    "fma_pct": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "l1_pct": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2_bytes": "lts__t_bytes.sum",
    "l2_pct": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_pct": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}
STALLS = ("barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
          "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected",
          "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait")
SUMS = ("duration_ns", "cycles", "instructions", "l2_bytes", "dram_read_bytes", "dram_write_bytes")
MEANS = ("warps_pct", "issue_pct", "tensor_pct", "mufu_pct", "fma_pct", "l1_pct", "l2_pct", "dram_pct")


def stall_counter(reason):
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def metrics():
    return [*COUNTERS.values(), *map(stall_counter, STALLS)]


def known_metrics(wanted, query_output):
    """Those that the GPU has, by `ncu --query-metrics`, which lists none of the launch. ncu refuses a whole call for
    one name that it doesn't know."""
    known = {line.partition(" ")[0] for line in query_output.splitlines()}
    return [each for each in wanted if each.startswith("launch__") or each.partition(".")[0] in known]


def ncu_call(ncu, cache_control, names, program):
    return [ncu, "--target-processes", "all", "--clock-control", "none", "--cache-control", cache_control, "--csv",
            "--print-units", "base", "--profile-from-start", "off", "--metrics", ",".join(names), *program]


# --- What ncu says --------------------------------------------------------------

def number(text):
    """None for what is none, as "n/a". Thousands have commas between them."""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def parse_csv(text):
    """[{kernel, grid, block, metrics}] of launches in their order. Lines ahead of the header, and whatever begins with
    no quotation mark, are no part of it. ValueError says what is wrong."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    begins = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if begins is None:
        raise ValueError("ncu gave no counters: " + last_words(text))
    launches = {}
    for row in csv.DictReader(lines[begins:]):
        if None in row or None in row.values():
            raise ValueError("ncu's CSV has a line that doesn't fit its header")
        try:
            launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"], "grid": row["Grid Size"],
                                                     "block": row["Block Size"], "metrics": {}})
            value = number(row["Metric Value"])
            if value is not None:
                launch["metrics"][row["Metric Name"]] = value
        except KeyError as missing:
            raise ValueError(f"ncu's CSV has no column {missing}") from None
    if not launches:
        raise ValueError("ncu gave no counters: " + last_words(text))
    return list(launches.values())


def last_words(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "Error" in line]
    return "; ".join(errors or lines[-1:])[:400] or "it printed nothing"


def by_marks(launches, mark=MARK):
    """The launches behind each mark."""
    groups = []
    for launch in launches:
        if launch["kernel"].partition("(")[0] == mark:
            groups.append([])
        elif groups:
            groups[-1].append(launch)
        else:
            raise ValueError(f"{launch['kernel'][:80]} comes ahead of the first mark")
    return groups


def named(launch):
    """A launch with short names: counters, and each stall reason's share of the time that a warp waits to issue."""
    found = {short: launch["metrics"][name] for short, name in COUNTERS.items() if name in launch["metrics"]}
    stalls = {reason: launch["metrics"].get(stall_counter(reason), 0.0) for reason in STALLS}
    total = sum(stalls.values())
    shares = {reason: round(value / total, 4) for reason, value in
              sorted(stalls.items(), key=lambda each: -each[1]) if value} if total else {}
    return {"kernel": launch["kernel"], "grid": launch["grid"], "block": launch["block"], **found, "stalls": shares}


def whole(kernels):
    """Of a call: sums, means by duration, and the stalls of its longest kernel. A figure that one lacks is absent."""
    sums = {name: sum(each[name] for each in kernels) for name in SUMS if all(name in each for each in kernels)}
    made = {"kernels": len(kernels), **sums}
    total = sums.get("duration_ns")
    if not total:
        return made
    for name in MEANS:
        if all(name in each for each in kernels):
            made[name] = round(sum(each[name] * each["duration_ns"] for each in kernels) / total, 3)
    if "dram_read_bytes" in made and "dram_write_bytes" in made:
        made["dram_tb_per_s"] = (made["dram_read_bytes"] + made["dram_write_bytes"]) / total / 1000
    if "l2_bytes" in made:
        made["l2_tb_per_s"] = made["l2_bytes"] / total / 1000
    return {**made, "stalls": max(kernels, key=lambda each: each["duration_ns"])["stalls"]}


def calls_of(ncu_output, found):
    """{contender: {said, whole, kernels}} of what call_times.py says was called, in its order. A call that failed
    behind its mark has why_not alone."""
    called = [name for name, each in found.items() if each.get("is_called")]
    groups = by_marks(parse_csv(ncu_output)) if called else []
    if len(groups) != len(called):
        raise ValueError(f"ncu has {len(groups)} marks for {len(called)} calls")
    behind = dict(zip(called, groups))
    calls = {}
    for name, each in found.items():
        if name in behind and "said" in each:
            kernels = [named(launch) for launch in behind[name]]
            calls[name] = {"said": each["said"], "whole": whole(kernels), "kernels": kernels}
        else:
            calls[name] = {"why_not": each["why_not"]}
    return calls


def best_peer(times, problem):
    """The fastest that is right, of rows of call_times.py; None where there is none."""
    rows = [row for row in times if row["problem"] == problem]
    peers = {name: each["p50_us"] for row in rows for name, each in row["found"].items()
             if name not in NO_PEERS and "p50_us" in each}
    return min(peers, key=peers.get) if peers else None


def text_of(row):
    if "why_not" in row:
        return f"{row['problem']}: {row['why_not']}"
    text = []
    for name, each in row["calls"].items():
        if "whole" not in each:
            text.append(f"{name}: {each['why_not'][:80]}")
            continue
        it = each["whole"]
        said = [f"{name} {it.get('duration_ns', 0) / 1000:.2f} us in {it['kernels']} kernels"]
        said += [f"{short.removesuffix('_pct')} {it[short]:.0f}%" for short in MEANS if short in it]
        said += [f"{it[short] / 1e6:.1f} MB {what}" for short, what in (("dram_read_bytes", "read"), ("l2_bytes", "L2"))
                 if short in it]
        said += [f"{reason} {100 * share:.0f}%" for reason, share in list(it.get("stalls", {}).items())[:3]]
        text.append(", ".join(said))
    return f"{row['problem']} ({row['cache_control']}): " + "; ".join(text)


# --- Calls of ncu ---------------------------------------------------------------

def output_of(command, seconds, raw=None):
    """What it prints, which the file `raw` keeps even where it fails. RuntimeError where it fails or takes longer; then
    it is killed."""
    # No `with`: that waits until the process has ended, and one that the GPU's driver keeps may never end.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        why = f"exit code {process.returncode}" if process.returncode else ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, why = last_output(process), f"no end within {seconds:.0f} s"
    if raw:
        raw.write_text(output, encoding="utf-8")
    if why:
        raise RuntimeError(f"{why}: {last_words(output)}")
    return output


def last_output(process):
    """Of a process that was killed; what it began in another group may keep the pipe open."""
    try:
        return process.communicate(timeout=END_S)[0]
    except subprocess.TimeoutExpired as late:
        process.stdout.close()
        process.poll()
        return (late.output or b"").decode(errors="replace")


def profile(case, contenders, names, seconds, args):
    """A row's calls."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "once.json"
        program = [sys.executable, str(TIMES), case.mode, "--only", case.name, "--once", ",".join(contenders), "--seed",
                   str(args.seed), "--out", str(out), *(["--fa3", args.fa3] if args.fa3 else [])]
        output = output_of(ncu_call(args.ncu, case.cache_control, names, program), seconds,
                           pathlib.Path(args.raw, f"{case.name}.txt") if args.raw else None)
        row, = json.loads(out.read_text(encoding="utf-8"))["rows"]
    if "why_not" in row:
        raise RuntimeError(row["why_not"])
    return calls_of(output, row["found"])


def peers_of(case, times, args):
    peers = args.peers.split(",") if args.peers else [best_peer(times, case.name) or case.peer]
    if args.fa3:
        return peers
    return [each for each in peers if each not in FA3] or ["flash"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fa3", metavar="LIBRARY", help="that registers torch.ops._vllm_fa3_C")
    parser.add_argument("--times", metavar="FILE", nargs="+", default=[], help="of call_times.py: say the best peers")
    parser.add_argument("--peers", metavar="NAME,…", help="these instead")
    parser.add_argument("--only", metavar="TEXT,…", default="", help="only problems of that name, or with it in theirs")
    parser.add_argument("--ncu", default=shutil.which("ncu") or TOOLKIT_NCU,
                        help="Nsight Compute (default: ncu on PATH, else the CUDA toolkit's)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=float, default=120, metavar="SECONDS", help="for a problem (default: 120)")
    parser.add_argument("--limit", type=float, default=0, metavar="SECONDS",
                        help="all ends by then: the last problem has what is left")
    parser.add_argument("--raw", metavar="FOLDER", help="keeps what ncu printed")
    parser.add_argument("--out", metavar="FILE", help="JSON")
    args = parser.parse_args()
    head = {}
    record = Record(args.out, head, args.limit)
    times = []
    for path in args.times:
        times += json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["rows"]
    try:
        version = output_of([args.ncu, "--version"], min(60, record.left_s())).strip().splitlines()[-1]
        names = known_metrics(metrics(), output_of([args.ncu, "--query-metrics"], min(120, record.left_s())))
    except (OSError, RuntimeError) as error:
        sys.exit(f"call_counters.py: {args.ncu}: {error}")
    if COUNTERS["cycles_active"] not in names:
        sys.exit(f"call_counters.py: {args.ncu} --query-metrics lists no counters of this machine's GPU")
    if args.raw:
        os.makedirs(args.raw, exist_ok=True)
    head.update({"ncu": version, "seed": args.seed, "metrics": names})
    for case in chosen(CASES, args.only):
        row = record.row({"problem": case.name, "mode": case.mode, "cache_control": case.cache_control})
        try:
            if record.is_late():
                raise RuntimeError("the time limit came first")
            row["calls"] = profile(case, ["ours", *peers_of(case, times, args)], names,
                                   min(args.each, record.left_s()), args)
        except (OSError, RuntimeError, ValueError) as error:  # the others go on
            row["why_not"] = str(error)
        record.save()
        print(text_of(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
