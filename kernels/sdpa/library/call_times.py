#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the library's call beside PyTorch's backends and FlashAttention-3, and checks each.

    export PYTHONPATH=ablations/subjects/python:ablations/subjects/sdpa/peers
    python3 kernels/sdpa/library/call_times.py few
    … call_times.py few --before main/libwarpledger_sdpa.so
    … call_times.py varlen --fa3 _vllm_fa3_C.abi3.so --out varlen.json
    … call_times.py host

few     2 to 16 queries a sequence against 8,192 keys, 64 heads on 8: nothing of K and V is in the L2
varlen  packed sequences of random lengths (reports/decisions/0046), by cumulative lengths
host    microseconds that a call takes of the host

Needs PyTorch, a GPU of compute capability 9.0 and the library. FlashAttention-3 is any library that
registers torch.ops._vllm_fa3_C, as vLLM's wheel has one. --before adds another build of the library as
a contender. Each contender is captured into a graph whose calls rotate over input sets, is checked
against FP64 on new inputs by a replay, and runs alone, in a random order in each of the rounds; the
figure is the median over rounds of each one's median. Then each runs for --energy seconds more without a pause, between
two steps of NVML's energy counter: joules a call, watts, the SM clock, and the time of a call there.
"""

import argparse
import importlib.util
import json
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

from peer_arms import ArmStream
from peer_gpu import ClockProbe, EnergyWindow, Sensors, Stay, WatchedWindow
from warpledger import attention

L2_BYTES = 64 << 20
WARM_UP_S = 0.4


# --- Problems -------------------------------------------------------------------

def few_problems():
    return [{"name": f"b{b}_h64x8_s{rows}x8192_d128", "batch": b, "heads_q": 64, "heads_kv": 8, "rows": rows,
             "keys": 8192, "head_dim": 128} for b in (1, 16) for rows in (2, 4, 8, 16)]


def few_inputs(p, generator):
    def normal(heads, rows):
        return torch.randn((p["batch"], heads, rows, p["head_dim"]), generator=generator, device="cuda").half()
    return normal(p["heads_q"], p["rows"]), normal(p["heads_kv"], p["keys"]), normal(p["heads_kv"], p["keys"])


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


def lengths_of(name, seed):
    draw = random.Random(seed)
    if name == "prompts":
        return [draw.randint(100, 2000) for _ in range(64)]
    if name == "mixed":  # a long one, some prompts, many short ones
        return [16384] + [draw.randint(500, 4000) for _ in range(12)] + [draw.randint(16, 128) for _ in range(100)]
    count, length = name.split("x")  # all of one length
    return [int(length)] * int(count)


def varlen_problems(args):
    """Lengths, heads and masks: FlashAttention-3's heads (hidden size 2048), and groups of 8."""
    made = []
    for d, hq, hk in ((128, 16, 16), (128, 32, 8), (64, 32, 32), (256, 8, 8)):
        for lengths in ("prompts", "mixed", "32x512", "4x4096"):
            if (hq != hk and lengths != "prompts") or (lengths == "mixed" and d != 128):
                continue
            made += [{"name": f"{lengths}_h{hq}x{hk}_d{d}" + "_causal" * causal, "lengths": lengths_of(lengths, args.seed),
                      "heads_q": hq, "heads_kv": hk, "head_dim": d, "causal": causal} for causal in (False, True)]
    return made


def varlen_flop(p):
    pairs = sum(n * (n + 1) // 2 if p["causal"] else n * n for n in p["lengths"])
    return 4 * p["heads_q"] * p["head_dim"] * pairs


def packed_inputs(p, generator):
    total = sum(p["lengths"])
    cu = torch.tensor([0, *p["lengths"]], device="cuda").cumsum(0, dtype=torch.int32)

    def normal(heads):
        return torch.randn((total, heads, p["head_dim"]), generator=generator, device="cuda").half()
    return normal(p["heads_q"]), normal(p["heads_kv"]), normal(p["heads_kv"]), cu, max(p["lengths"]), p["causal"]


# --- Contenders: a function of inputs that returns a call, which returns its output, and what it is ------------

def ours_few(q, k, v):
    return ours_of(q, k, v, torch.empty_like(q), False)


def another_build(path):
    """warpledger.attention once more, with the library at `path`."""
    spec = importlib.util.find_spec("warpledger.attention")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.library_path = lambda: path
    return module


def few_by(module):
    return lambda q, k, v: ours_of(q, k, v, torch.empty_like(q), False, module)


def ours_of(q, k, v, out, causal, module=attention):
    given = [module.tensor_of(each, "", 0) for each in (q, k, v, out)]
    made = module.plan_of(*given, causal, None)
    space = torch.zeros(made.workspace_bytes, dtype=torch.uint8, device="cuda")

    def call():
        module.launch(made, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), None, space.data_ptr(),
                      torch.cuda.current_stream().cuda_stream)
        return out
    return call, f"{made.kernel}, {made.launches} launches, {made.expected_us:.1f} us expected"


def torch_few(backend):
    def prepare(q, k, v):
        def call():
            with torch.nn.attention.sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return call, f"torch {torch.__version__}"
    return prepare


def fa3_call(q, k, v, out, cu_q, cu_k, max_q, max_k, causal):
    """Of packed (total, heads, head_dim)."""
    torch.ops._vllm_fa3_C.fwd(
        q, k, v, None, None, None, out, cu_q, cu_k, None, None, None, max_q, max_k, None, None, None, None, None, None,
        None, None, None, 1 / math.sqrt(q.shape[2]), causal, -1, -1, 0.0, True, None, 0, None, 0, None, 1, 0, None)
    return out


def ours_varlen(q, k, v, cu, longest, causal):
    out = torch.empty_like(q)
    given = [attention.packed_by_heads(attention.tensor_of(each, "", 0), "") for each in (q, k, v, out)]
    made = attention.plan_of_packed(*given, cu.shape[0] - 1, (longest, longest), causal, None)
    space = torch.zeros(made.workspace_bytes, dtype=torch.uint8, device="cuda")

    def call():
        attention.launch_packed(made, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), None, cu.data_ptr(),
                                cu.data_ptr(), space.data_ptr(), torch.cuda.current_stream().cuda_stream)
        return out
    return call, f"{made.kernel}, {made.expected_us:.0f} us expected"


def as_batches(contiguous):
    """The same call without cumulative lengths, where all are one: of (batch, heads, seq, head_dim), contiguous or as
    (batch, seq, heads, head_dim)."""
    def prepare(q, k, v, cu, longest, causal):
        if q.shape[0] != longest * (cu.shape[0] - 1):
            raise NotImplementedError("lengths differ")
        q, k, v = (each.unflatten(0, (-1, longest)).transpose(1, 2) for each in (q, k, v))
        if contiguous:
            q, k, v = (each.contiguous() for each in (q, k, v))
        return ours_of(q, k, v, torch.empty_like(q), causal)
    return prepare


def flash_varlen(q, k, v, cu, longest, causal):
    if q.shape[1] != k.shape[1]:
        k, v = (each.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for each in (k, v))

    def call():
        return torch.ops.aten._flash_attention_forward(q, k, v, cu, cu, longest, longest, 0.0, causal, False)[0]
    return call, f"torch {torch.__version__}"


def fa3_varlen(q, k, v, cu, longest, causal):
    out = torch.empty_like(q)
    return lambda: fa3_call(q, k, v, out, cu, cu, longest, longest, causal), "torch.ops._vllm_fa3_C"


def fa3_few(q, k, v):
    batch, _, rows, _ = q.shape
    keys = k.shape[2]
    q_, k_, v_ = (each.transpose(1, 2).flatten(0, 1).contiguous() for each in (q, k, v))
    out = torch.empty_like(q_)
    cu_q, cu_k = (torch.arange(batch + 1, dtype=torch.int32, device="cuda") * each for each in (rows, keys))

    def call():
        fa3_call(q_, k_, v_, out, cu_q, cu_k, rows, keys, False)
        return out.unflatten(0, (batch, rows)).transpose(1, 2)
    return call, "torch.ops._vllm_fa3_C"


def board():
    """Its UUID, as NVML takes it; older PyTorch doesn't tell."""
    uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
    return uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"


# --- Times ----------------------------------------------------------------------

class Graph:
    """`calls` calls over the prepared ones in turn."""

    def __init__(self, prepared, calls):
        for call, _ in prepared:
            call()
        torch.cuda.synchronize()
        self.calls = calls
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

    def median(self):
        start = time.monotonic()
        while time.monotonic() - start < WARM_UP_S:
            self.time()
        return statistics.median(self.time() for _ in range(15))

    def energy(self, seconds, sensors):
        """{joules, watts, sm_mhz} of calls without a pause, as a peer's visit in a record; empty without a counter."""
        clock = ClockProbe(torch)
        window = EnergyWindow({"settle_s": 0.5, "window_s": seconds}, sensors.joules)
        watched = WatchedWindow(window, lambda: None)
        try:
            timed = Stay(ArmStream(torch, self.graph, clock), self.time() * self.calls / 1e6, self.calls).on(watched.next)
        finally:
            watched.stop()
        torch.cuda.synchronize()
        found = window.energy()
        if not found:
            return {}
        watts = found["energy_j"] / found["energy_s"]
        return {"joules": watts * timed["us"] / 1e6, "watts": watts, "sm_mhz": clock.mhz(), "steady_us": timed["us"]}


def times_of(contenders, sets, right, args):
    """{name: {p50_us, said, error, …}} of those that run and are right.

    right(out, inputs): the largest error over its limit, of one set
    """
    graphs, found = {}, {}
    if args.once:
        call, said = contenders[args.once](*sets[0])
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        call()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()
        return {args.once: {"said": said, "why_not": "called once"}}
    for name, prepare in contenders.items():
        try:
            prepared = [prepare(*each) for each in sets]
            graph = Graph(prepared, max(len(sets), 8 // len(sets) * len(sets)))
            for out in graph.outputs:
                out.fill_(math.nan)
            graph.graph.replay()
            torch.cuda.synchronize()
            worst = max(right(graph.outputs[i], sets[i]) for i in (0, len(sets) - 1))
            found[name] = {"said": prepared[0][1], "error": worst}
            if worst <= 1:
                graphs[name] = (graph, prepared)
            else:
                found[name]["why_not"] = "wrong"
        except (RuntimeError, NotImplementedError, ValueError) as error:
            found[name] = {"why_not": str(error).splitlines()[0][:200]}
    order = random.Random(args.seed)
    medians = {name: [] for name in graphs}
    for _ in range(args.rounds):
        for name in order.sample(sorted(graphs), len(graphs)):
            medians[name].append(graphs[name][0].median())
    for name, each in medians.items():
        found[name] |= {"p50_us": statistics.median(each), "rounds_us": each}
    if args.energy > 0:
        sensors = Sensors(board())
        for name, graph in graphs.items():
            found[name] |= graph[0].energy(args.energy, sensors)
    return found


def run_few(args, contenders):
    rows = []
    for p in (each for each in few_problems() if args.only in each["name"]):
        generator = torch.Generator(device="cuda")
        generator.manual_seed(args.seed)
        kv_bytes = 4 * p["batch"] * p["heads_kv"] * p["keys"] * p["head_dim"]
        count = max(2, 1 + -(-3 * L2_BYTES // kv_bytes))

        def right(out, inputs):
            return over_limit(out[-1], *(each[-1] for each in inputs), False)
        sets = [few_inputs(p, generator) for _ in range(count)]
        found = times_of(contenders, sets, right, args)
        rows.append({"problem": p["name"], "bytes": kv_bytes, "found": found})
        show(rows[-1])
    return rows


def run_varlen(args, contenders):
    rows = []
    for p in (each for each in varlen_problems(args) if args.only in each["name"]):
        generator = torch.Generator(device="cuda")
        generator.manual_seed(args.seed)
        ends = torch.tensor([0, *p["lengths"]]).cumsum(0).tolist()

        def right(out, inputs, ends=ends, p=p):
            q, k, v, *_, causal = inputs
            if out.dim() == 4:
                out = out.transpose(1, 2).flatten(0, 1)
            checked = {0, len(ends) - 2, p["lengths"].index(min(p["lengths"]))}
            return max(over_limit(out[a:b].transpose(0, 1), *(each[a:b].transpose(0, 1) for each in (q, k, v)), causal)
                       for a, b in ((ends[i], ends[i + 1]) for i in checked) if b - a <= 4096)
        sets = [packed_inputs(p, generator) for _ in range(3)]
        found = times_of(contenders, sets, right, args)
        rows.append({"problem": p["name"], "flop": varlen_flop(p), "lengths": p["lengths"], "found": found})
        show(rows[-1])
    return rows


def show(row):
    found = row["found"]
    ours = found.get("ours", {}).get("p50_us")
    text = []
    for name, each in found.items():
        if "p50_us" not in each:
            text.append(f"{name}: {each['why_not'][:60]}")
            continue
        joules = f", {1000 * each['joules']:.3g} mJ" if "joules" in each else ""
        text.append(f"{name} {each['p50_us']:.1f} us{joules}" + (f" ({each['p50_us'] / ours:.2f}x)" if ours and name != "ours"
                                                         else f" [{each['said']}]"))
    rate = f", {row['bytes'] / ours / 1e6:.2f} TB/s" if ours and "bytes" in row else ""
    rate = f", {row['flop'] / ours / 1e6:.0f} TFLOP/s" if ours and "flop" in row else rate
    print(f"{row['problem']}: " + "; ".join(text) + rate, flush=True)


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


def run_host(_, __):
    import warpledger as wl
    from warpledger.torch import scaled_dot_product_attention
    library = attention.library()
    own = torch.nn.functional.scaled_dot_product_attention
    rows = []
    for b, hq, hk, sq, sk, d in ((1, 8, 8, 1, 64, 128), (1, 8, 8, 128, 128, 64), (1, 16, 16, 256, 256, 128)):
        q, k, v = (torch.randn(b, h, s, d, device="cuda").half() for h, s in ((hq, sq), (hk, sk), (hk, sk)))
        ours, said = ours_few(q, k, v)
        calls = {"ctypes alone": lambda: library.warpledger_sdpa_forward(None, 0, 0, 0, 0, None, 0, 0, 0),
                 "C call by ctypes": ours,
                 "operator": lambda q=q, k=k, v=v: torch.ops.warpledger.sdpa.default(q, k, v),
                 "drop-in": lambda q=q, k=k, v=v: scaled_dot_product_attention(q, k, v),
                 "warpledger.sdpa": lambda q=q, k=k, v=v: wl.sdpa(q, k, v),
                 "PyTorch": lambda q=q, k=k, v=v: own(q, k, v)}
        found = {name: host_us(call) for name, call in calls.items()}
        for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION"):
            with torch.nn.attention.sdpa_kernel([getattr(torch.nn.attention.SDPBackend, name)]):
                found[f"PyTorch {name}"] = host_us(calls["PyTorch"])
        problem = f"b{b}_h{hq}x{hk}_s{sq}x{sk}_d{d}"
        rows.append({"problem": problem, "kernel": said, "host_us": found})
        print(f"{problem} [{said}]: " + "; ".join(f"{name} {us:.1f} us" for name, us in found.items()), flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("few", "varlen", "host"))
    parser.add_argument("--fa3", metavar="LIBRARY", help="that registers torch.ops._vllm_fa3_C")
    parser.add_argument("--before", metavar="LIBRARY", help="another build of libwarpledger_sdpa.so (few)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--energy", type=float, default=2, metavar="SECONDS", help="0 measures none (default: 2)")
    parser.add_argument("--once", metavar="CONTENDER", help="no times: one call of it between the marks of CUDA's "
                        "profiler, for ncu --profile-from-start=off (few, varlen)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only problems whose names have it")
    parser.add_argument("--out", metavar="FILE", help="JSON")
    args = parser.parse_args()
    if args.before and args.mode != "few":
        parser.error("--before is of few")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
        sys.exit("call_times.py: there is no GPU of compute capability 9.0")
    # The naive result is a yardstick: sums in 16 bits would loosen it.
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    backends = torch.nn.attention.SDPBackend
    contenders = {"ours": ours_few, "cudnn": torch_few(backends.CUDNN_ATTENTION),
                  "flash": torch_few(backends.FLASH_ATTENTION), "fa3": fa3_few}
    if args.mode == "varlen":
        contenders = {"ours": ours_varlen, "one length": as_batches(True), "bshd": as_batches(False),
                      "flash": flash_varlen, "fa3": fa3_varlen}
    elif args.before:
        contenders["before"] = few_by(another_build(os.path.abspath(args.before)))
    if args.once and args.once not in contenders:
        parser.error(f"--once is one of {', '.join(contenders)}")
    if args.fa3:
        torch.ops.load_library(args.fa3)
    else:
        del contenders["fa3"]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}", flush=True)
    rows = {"few": run_few, "varlen": run_varlen, "host": run_host}[args.mode](args, contenders)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({"gpu": torch.cuda.get_device_name(), "uuid": board(), "torch": torch.__version__,
                       "mode": args.mode, "seed": args.seed, "rows": rows}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
