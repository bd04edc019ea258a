#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the library's call beside PyTorch's backends and FlashAttention-3, with its joules, and checks each.

    export PYTHONPATH=ablations/subjects/python:ablations/subjects/sdpa/peers
    python3 kernels/sdpa/library/call_times.py few
    … call_times.py few --before main/libwarpledger_sdpa.so
    … call_times.py varlen --fa3 _vllm_fa3_C.abi3.so --out varlen.json
    … call_times.py host

few     2 to 16 queries a sequence against 8,192 keys, 64 heads on 8: nothing of K and V is in the L2
small   b2_h8_s256_d64, b1_h8_s512_d64 and long: four input sets, which stay in the L2
decode  one query against 8,192 keys, 32 heads on 8: K and V in the L2 (warm) or nothing of them (cold), beside
        plain reads of the same K and V, which say what the memory allows
bf16    2 sequences of 8,192, 16 heads, head_dim 128
random  40 problems as reports/random_problems.py draws them, head_dim 64 and 128 by turns; with
        WARPLEDGER_SDPA_KERNELS=mma:NAME by one kernel, so that call_regret.py can tell what the choice costs
varlen  packed sequences of random lengths (reports/decisions/0046), by cumulative lengths
host    microseconds that a call takes of the host

Needs PyTorch, a GPU of compute capability 8.0 or newer and the library, which WARPLEDGER_SDPA_LIBRARY may name.
FlashAttention-3 is any library that registers torch.ops._vllm_fa3_C, as vLLM's wheel has one. --before adds
another build of the library as a contender.

Each contender is captured into a graph whose calls rotate over input sets, is checked against FP64 on new inputs
by a replay, and runs alone, in a random order in each of the rounds; the figure is the median over rounds of each
one's median. Then each runs for --energy seconds more without a pause, in two windows between steps of NVML's energy
counter: joules a call, watts, the mean SM clock by the SMs' own counters, and the time of a call there. The second
windows come in the reverse order, so that the means of both have the same drift. Where the GPU waited for the host for
more than 1% of a window (idle_share), they count for nothing.

FlashAttention-3 has two forms: fa3 makes its schedule in each call, fa3_planned once ahead, as vLLM does. The faster
one is the peer, and --contenders fa3 times both. A mode first prints about how long it takes.

--out has each row as soon as it is known. What fails is recorded, and the rest goes on.
"""

import argparse
import contextlib
import functools
import math
import os
import random
import statistics
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("call_times.py: there is no PyTorch")

import call_contenders
from call_rules import (PROBLEMS, SETTLE_S, Packed, Record, calls_of_graph, chosen, described, energy_of, expected_s,
                        first_calls, mean_of_windows, text_of, wanted_contenders, warm_up_s)
from peer_arms import ArmStream
from peer_gpu import ClockProbe, EnergyWindow, Sensors, Stay, WatchedWindow
from warpledger import attention

LEAST_GRAPH_US = {"small": 400, "decode": 400}  # a graph's ends cost a microsecond or two


# --- Inputs and their checks ----------------------------------------------------

def dense_inputs(p, generator):
    def normal(*shape):
        return torch.randn(shape, generator=generator, device="cuda").to(getattr(torch, p.dtype))
    kv = normal(2, p.batch, p.heads_kv, p.keys, p.head_dim)
    return normal(p.batch, p.heads_q, p.rows, p.head_dim), kv[0], kv[1], p.causal


def packed_inputs(p, generator):
    total = sum(p.lengths)
    cu = torch.tensor([0, *p.lengths], device="cuda").cumsum(0, dtype=torch.int32)

    def normal(heads):
        return torch.randn((total, heads, p.head_dim), generator=generator, device="cuda").half()
    return normal(p.heads_q), normal(p.heads_kv), normal(p.heads_kv), cu, max(p.lengths), p.causal


def exact_and_naive(q, k, v, causal):
    """Of one sequence, (heads, rows, head_dim): in FP64, and with S, P and O rounded to q's dtype."""
    group = q.shape[0] // k.shape[0]
    exact, naive = torch.empty(q.shape, dtype=torch.float64, device=q.device), torch.empty_like(q)
    scale = 1 / math.sqrt(q.shape[2])
    for head in range(q.shape[0]):
        mine, keys, values = q[head], k[head // group], v[head // group]
        scores, rounded = mine.double() @ keys.double().T * scale, (mine @ keys.T * scale).float()
        if causal:
            seen = torch.ones(scores.shape, dtype=torch.bool, device=q.device).tril(scores.shape[1] - scores.shape[0])
            scores, rounded = (each.masked_fill(~seen, -math.inf) for each in (scores, rounded))
        exact[head] = torch.softmax(scores, dim=1).nan_to_num(0.0) @ values.double()
        naive[head] = torch.softmax(rounded, dim=1).nan_to_num(0.0).to(q.dtype) @ values
    return exact, naive


def over_limit(out, q, k, v, causal):
    """The largest error over its limit, by the rule of ablations/subjects/sdpa/correctness.h."""
    exact, naive = exact_and_naive(q, k, v, causal)
    largest = max(float(exact.abs().max()), torch.finfo(q.dtype).tiny)
    half_ulp = torch.finfo(q.dtype).eps * 2.0 ** math.floor(math.log2(largest)) / 2
    error = (out.double() - exact).abs().nan_to_num(math.inf)
    return float(error.max()) / (2 * float((naive.double() - exact).abs().max()) + half_ulp)


def dense_error(_p, out, inputs):
    """Of the last sequence; where scores of all heads are large, of its last group of heads."""
    q, k, v, causal = inputs
    queries, keys = q.shape[1], k.shape[1]
    if q.shape[2] * k.shape[2] > 1 << 24:
        queries, keys = queries // keys, 1
    return over_limit(out[-1, -queries:], q[-1, -queries:], k[-1, -keys:], v[-1, -keys:], causal)


def packed_error(p, out, inputs):
    """Of the first sequence, the last and the shortest."""
    q, k, v, *_, causal = inputs
    ends = torch.tensor([0, *p.lengths]).cumsum(0).tolist()
    if out.dim() == 4:
        out = out.transpose(1, 2).flatten(0, 1)
    checked = {0, len(ends) - 2, p.lengths.index(min(p.lengths))}
    return max(over_limit(out[a:b].transpose(0, 1), *(each[a:b].transpose(0, 1) for each in (q, k, v)), causal)
               for a, b in ((ends[i], ends[i + 1]) for i in checked) if b - a <= 4096)


# --- Times ----------------------------------------------------------------------

def board():
    """The UUID of the current GPU, whatever its number is here, as NVML takes it; older PyTorch doesn't tell."""
    uuid = str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
    return uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"


class Graph:
    """`calls` calls over the prepared ones in turn."""

    def __init__(self, prepared, calls):
        for call, _ in prepared:
            call()
        torch.cuda.synchronize()
        self.calls = calls
        self._prepared = prepared  # keeps the memory that the captured calls work on
        self.outputs = [None] * len(prepared)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(calls):
                self.outputs[i % len(prepared)] = prepared[i % len(prepared)][0]()

    def time(self):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.graph.replay()  # keeps the GPU busy while the timed one is queued
        begin.record()
        self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / self.calls

    def replay_us(self):
        return self.time() * self.calls

    def median(self, warm_s):
        start = time.monotonic()
        while time.monotonic() - start < warm_s:
            self.time()
        return statistics.median(self.time() for _ in range(15))

    def energy(self, seconds, sensors):
        """What energy_of() says of calls without a pause."""
        clock = ClockProbe(torch)
        window = EnergyWindow({"settle_s": SETTLE_S, "window_s": seconds}, sensors.joules)
        watched = WatchedWindow(window, lambda: None)
        try:
            stay = Stay(ArmStream(torch, self.graph, clock), self.replay_us() / 1e6, self.calls)
            timed = stay.on(watched.next)
        finally:
            watched.stop()
        torch.cuda.synchronize()
        return energy_of(window.energy(), timed, clock.mhz())


def words_of(error):
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def prepared_graph(prepare, sets, error_of, least_us):
    """(graph, what a row says of it)"""
    prepared = [prepare(*each) for each in sets]
    graph = Graph(prepared, first_calls(len(sets)))
    wanted = calls_of_graph(graph.time(), len(sets), least_us)
    if wanted > graph.calls:
        graph = Graph(prepared, wanted)
    if graph.outputs[0] is None:  # it reads, and that is all
        return graph, {"said": prepared[0][1]}
    for out in graph.outputs:
        out.fill_(math.nan)
    graph.graph.replay()
    torch.cuda.synchronize()
    return graph, {"said": prepared[0][1],
                   "error": max(error_of(graph.outputs[i], sets[i]) for i in {0, len(sets) - 1})}


def times_of(contenders, sets, error_of, found, save, args):
    """Fills `found` with {name: {p50_us, said, error, joules, …}} of those that run and are right, and with why_not
    of the others; calls save() whenever there is more.

    error_of(out, inputs): the largest error over its limit, of one set
    """
    graphs = {}
    for name, prepare in contenders.items():
        try:
            graph, found[name] = prepared_graph(prepare, sets, error_of, LEAST_GRAPH_US.get(args.mode, 0))
            if found[name].get("error", 0) <= 1:
                graphs[name] = graph
            else:
                found[name]["why_not"] = "wrong"
        except Exception as error:  # whatever a contender raises: the others go on
            found[name] = {"why_not": words_of(error)}
        save()
    # As the slowest needs it: all of a row are timed under one rule.
    warm_s = warm_up_s(max((graph.replay_us() for graph in graphs.values()), default=0))
    order = random.Random(args.seed)
    medians = {name: [] for name in graphs}
    for _ in range(args.rounds):
        for name in order.sample(sorted(graphs), len(graphs)):
            medians[name].append(graphs[name].median(warm_s))
    for name, each in medians.items():
        found[name] |= {"p50_us": statistics.median(each), "rounds_us": each}
    save()
    sensors = Sensors(board()) if args.energy > 0 else None
    # There and back, so that drift falls on all alike.
    for name in [*graphs, *reversed(graphs)] if sensors else ():
        windows = found[name].setdefault("windows", [])
        try:
            windows.append(graphs[name].energy(args.energy / 2, sensors))
        except Exception as error:
            windows.append({"why_no_joules": words_of(error)})
        if len(windows) == 2:
            found[name] |= mean_of_windows(windows)
        save()


def call_once(contenders, inputs, found):
    """One call of each between the marks of CUDA's profiler, behind a kernel named `stamp`, by which call_counters.py
    tells whose kernels follow. is_called: its stamp is there, though the call may have failed."""
    clock = ClockProbe(torch)
    for name, prepare in contenders.items():
        is_called = False
        try:
            call, said = prepare(*inputs)
            call()
            clock.stamp(0)
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            try:
                clock.stamp(0)
                is_called = True
                call()
                torch.cuda.synchronize()
            finally:
                torch.cuda.profiler.stop()
            found[name] = {"said": said, "why_not": "called once", "is_called": True}
        except Exception as error:  # whatever a contender raises: the others go on
            found[name] = {"why_not": words_of(error), "is_called": is_called}


def run_problem(p, contenders, row, record, args):
    generator = torch.Generator(device="cuda")
    generator.manual_seed(args.seed)
    is_packed = isinstance(p, Packed)
    inputs_of, error = (packed_inputs, packed_error) if is_packed else (dense_inputs, dense_error)
    count = 1 if args.once else p.input_sets()
    sets = [inputs_of(p, generator) for _ in range(count)]
    if args.once:
        call_once(contenders, sets[0], row["found"])
        return
    times_of(contenders, sets, lambda out, inputs: error(p, out, inputs), row["found"], record.save, args)


def run_mode(args, contenders, record):
    problems = chosen(PROBLEMS[args.mode](args.seed), args.only)
    if not args.once:
        seconds = sum(expected_s(p, contenders, args.rounds, args.energy) for p in problems)
        print(f"{len(problems)} problems, {len(contenders)} contenders: about {seconds:.0f} s", flush=True)
    for p in problems:
        row = record.row({**described(p), "found": {}})
        if record.is_late():
            row["why_not"] = "the time limit came first"
        else:
            try:
                run_problem(p, contenders, row, record, args)
            except Exception as error:
                row["why_not"] = words_of(error)
            with contextlib.suppress(RuntimeError):  # a GPU that failed fails again
                torch.cuda.empty_cache()
        record.save()
        print(text_of(row), flush=True)


# --- The host -------------------------------------------------------------------

def host_us(call, calls=50, repeats=20):
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - begin) * 1e6 / calls)
    return statistics.median(times)


def host_times(calls):
    """({name: us}, {name: why there is none}) of {name: (call, a context to call it in)}"""
    found, why_not = {}, {}
    for name, (call, context) in calls.items():
        try:
            with context():
                found[name] = host_us(call)
        except Exception as error:  # a backend that refuses: the others go on
            why_not[name] = words_of(error)
    return found, why_not


def by_backend(name):
    return torch.nn.attention.sdpa_kernel([getattr(torch.nn.attention.SDPBackend, name)])


def run_host(record):
    import warpledger as wl
    from warpledger.torch import scaled_dot_product_attention
    library = attention.library()
    own = torch.nn.functional.scaled_dot_product_attention
    for b, hq, hk, sq, sk, d in ((1, 8, 8, 1, 64, 128), (1, 8, 8, 128, 128, 64), (1, 16, 16, 256, 256, 128)):
        q, k, v = (torch.randn(b, h, s, d, device="cuda").half() for h, s in ((hq, sq), (hk, sk), (hk, sk)))
        ours, said = call_contenders.ours(q, k, v, False)
        calls = {"ctypes alone": lambda: library.warpledger_sdpa_forward(None, 0, 0, 0, 0, None, 0, 0, 0),
                 "C call by ctypes": ours,
                 "operator": lambda q=q, k=k, v=v: torch.ops.warpledger.sdpa.default(q, k, v),
                 "drop-in": lambda q=q, k=k, v=v: scaled_dot_product_attention(q, k, v),
                 "warpledger.sdpa": lambda q=q, k=k, v=v: wl.sdpa(q, k, v),
                 "PyTorch": lambda q=q, k=k, v=v: own(q, k, v)}
        calls = {name: (call, contextlib.nullcontext) for name, call in calls.items()}
        calls |= {f"PyTorch {name}": (calls["PyTorch"][0], functools.partial(by_backend, name))
                  for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION")}
        found, why_not = host_times(calls)
        problem = f"b{b}_h{hq}x{hk}_s{sq}x{sk}_d{d}"
        record.row({"problem": problem, "kernel": said, "host_us": found, "host_why_not": why_not})
        text = [f"{name} {us:.1f} us" for name, us in found.items()]
        text += [f"{name}: {why[:60]}" for name, why in why_not.items()]
        print(f"{problem} [{said}]: " + "; ".join(text), flush=True)


def contenders_of(args, parser):
    known = call_contenders.contenders(args.mode, args.before and os.path.abspath(args.before))
    asked = args.once or args.contenders
    try:
        return {name: known[name] for name in wanted_contenders(asked.split(",") if asked else known, known, args.fa3)}
    except ValueError as error:
        parser.error(str(error))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=(*PROBLEMS, "host"))
    parser.add_argument("--fa3", metavar="LIBRARY", help="that registers torch.ops._vllm_fa3_C")
    parser.add_argument("--before", metavar="LIBRARY", help="another build of libwarpledger_sdpa.so (not varlen, host)")
    parser.add_argument("--contenders", metavar="NAME,…", default="", help="those alone, which takes less time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--energy", type=float, default=3, metavar="SECONDS",
                        help="of both windows; 0 measures none (default: 3)")
    parser.add_argument("--once", metavar="NAME,…", default="", help="no times: one call of each contender between the "
                        "marks of CUDA's profiler, for ncu --profile-from-start=off (not host)")
    parser.add_argument("--only", metavar="TEXT,…", default="", help="only problems of that name, or with it in theirs")
    parser.add_argument("--limit", type=float, default=0, metavar="SECONDS", help="begins no problem after that")
    parser.add_argument("--out", metavar="FILE", help="JSON")
    args = parser.parse_args()
    if args.before and args.mode in ("varlen", "host"):
        parser.error(f"--before is not of {args.mode}")
    contenders = {} if args.mode == "host" else contenders_of(args, parser)
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        sys.exit("call_times.py: there is no GPU of compute capability 8.0 or newer")
    # The naive result is a yardstick: sums in 16 bits would loosen it.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    if args.fa3:
        torch.ops.load_library(args.fa3)
    head = {"gpu": torch.cuda.get_device_name(), "uuid": board(), "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(), "mode": args.mode, "seed": args.seed, "rounds": args.rounds,
            "energy_s": args.energy}
    print("{gpu} {uuid}, torch {torch}, cuDNN {cudnn}".format(**head), flush=True)
    record = Record(args.out, head, args.limit)
    if args.mode == "host":
        run_host(record)
    else:
        run_mode(args, contenders, record)
    record.save()
    return 0


if __name__ == "__main__":
    sys.exit(main())
