#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's SDPA backends and other peers on our shapes, by our own worker's protocol.

Contract: runs as one process between ours and changes no GPU setting. It reads
a request (JSON, from standard input) and prints one JSON object per line:

  {"seq":-1,"process":0,"shape":"mission_b","block":0,"order":1,"arm":"peer:cudnn", ...}
      a sample, in the schema of reports/RECORD.md; `order` is the peer's
      place among those of its process and shape. `seq` is the controller's to
      fill in. Figures that NVML doesn't give are null.
  {"peer":{"name":"peer:cudnn","version":...,"shape":"mission_b","available":true,
           "reason":"","checks":[{...}]}}
      one peer on one shape, printed before its first sample. Objects of the
      same name merge into one entry of peers.json: `checks` are appended,
      `available` is true where any of them is, reasons are joined.
  {"call":{"arm":"peer:cudnn","shape":"mission_b","lines":["by graph","kernel ..."]}}
      what one call of it launches: a line of calls.jsonl, printed before its first sample.

The request, with the defaults of everything but `shapes`:

  {"shapes":[{"name":"mission_b","batch":1,"heads_q":8,"heads_kv":8,"seq_q":512,
              "seq_kv":512,"head_dim":64,"causal":false,"rotation":4}],
   "cache":"warm","process":0,"seed":1,"blocks":24,"input_sets":4,"target_replay_us":1000,
   "min_launches":4,"max_launches":256,"peers":["flash","cudnn","efficient","math"]}

A shape's `dtype` is "fp16" (default) or "bf16". Its `rotation` (default: input_sets) is how many input sets a replay rotates
over; those beyond input_sets are copies at other addresses, which keep the L2
cold. `cache` only labels the samples.

Of a shape each peer is timed for all of its blocks before the next one is; the
samples are printed when all are, so a kill loses those of the shape in flight.

With "alone": {"settle_s":0.5,"window_s":1} each sample is a visit, as in our own worker
(reports/decisions/0045): a peer's replays without a pause, with the SM clock by the SMs'
counters, the joules of NVML's energy counter and the share of the time that the GPU waited for
the host; it is printed when it is over. A shape's
"visited", [["cudnn",0],...], are those that the record has.

Peers that are no part of PyTorch's SDPA, each optional (peer_libraries.py):
  fa3     FlashAttention-3: WARPLEDGER_FA3 names vLLM's library of it
  fa4     FlashAttention-4: the package flash-attn-4
  flex    flex_attention() of PyTorch, compiled with max-autotune
  triton  Triton's tutorial on fused attention: WARPLEDGER_TRITON_TUTORIAL names its file
  cudnn_fp8  cuDNN's attention in E4M3, for fp16 shapes: the package nvidia-cudnn-frontend

A peer is checked before it is timed, on the outputs of the very graph that is
timed, by the rule that our kernels must pass; an FP8 peer by that of our FP8 kernels. One that refuses a shape, or fails
the check, is reported and not timed.

Errors: without PyTorch or a GPU, one line says so with available=false, and the
exit code is 0: peers are optional. A malformed request exits with 2.

  python3 ablations/subjects/sdpa/peers/peers.py --list      # the peers, one per line
  echo '{"shapes":[...]}' | python3 ablations/subjects/sdpa/peers/peers.py
"""

import argparse
import json
import pathlib
import sys
import time

# The files beside this one are its modules, however it was started.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peer_arms import TorchBench  # noqa: E402
from peer_libraries import PEERS, UNASKED  # noqa: E402
from peer_rules import DTYPES, Refused, call_line, is_warm, peer_line, peer_order, sample_line, to_json  # noqa: E402

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
    "peers": list(UNASKED),
}

SHAPE_SIZES = ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim")


class RequestError(Exception):
    """The request can't be carried out; the message says why and what to do."""


def parse_request(text):
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
    for key, default in DEFAULTS.items():
        least = 0 if key in ("process", "seed") else 1
        if isinstance(default, int) and not _is_int(request[key], least):
            raise RequestError(f"{key} is {request[key]!r}, "
                               f"an integer of at least {least} is needed")
    if request["cache"] not in ("warm", "cold"):
        raise RequestError(f"cache is {request['cache']!r}, it must be warm or cold")
    if not isinstance(request["peers"], list) or not request["peers"]:
        raise RequestError("peers must be a list of at least one")
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


# --- The protocol ------------------------------------------------------------


def run(request, bench, emit):
    """Checks and times every peer on every shape. `emit` takes one line."""
    for shape in request["shapes"]:
        arms = {}
        with bench.shape(shape) as inputs:
            for name in request["peers"]:
                version = bench.version(PEERS[name])
                try:
                    arm = inputs.prepare(PEERS[name])
                except Refused as refusal:
                    emit(peer_line(name, version, shape["name"], False, str(refusal)))
                    continue
                if arm.check["correct"]:
                    arms[name] = arm
                reason = "" if arm.check["correct"] else "incorrect, so not timed"
                emit(peer_line(name, version, shape["name"], True, reason, [arm.check]))
                emit(call_line(name, shape["name"], arm.lines))
            if request["alone"] is not None:
                visit_arms(request, shape, arms, emit)
            else:
                time_blocks(request, shape["name"], arms, bench.read_sensors, emit)


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


def open_bench(request):
    """The bench, and "" or the reason why there is none."""
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: one of its libraries is missing
        return None, (f"PyTorch can't be imported: {' '.join(str(error).split())}; install it, or "
                      "name a Python that has it with --python")
    if not torch.cuda.is_available():
        return None, f"torch {torch.__version__} sees no CUDA GPU"
    try:
        return TorchBench(torch, request), ""
    except (ImportError, RuntimeError) as error:
        return None, f"torch {torch.__version__}: {' '.join(str(error).split())}"


def main(argv=None, stdin=None, make_bench=open_bench):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the peers, and no more")
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(PEERS))
        return 0
    try:
        request = parse_request((stdin or sys.stdin).read())
    except (OSError, RequestError, UnicodeDecodeError) as error:
        said = "".join(c if c.isprintable() else "?" for c in str(error))
        print(f"peers.py: {said[:500]}", file=sys.stderr)
        return 2

    def emit(line):
        # Flushed, so that a kill loses no finished line.
        print(to_json(line), flush=True)

    bench, reason = make_bench(request)
    if bench is None:
        emit(peer_line("torch", "", "", False, reason))
    else:
        run(request, bench, emit)
    return 0


if __name__ == "__main__":
    sys.exit(main())
