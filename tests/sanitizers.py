#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs compute-sanitizer's tools over every variant, keeps what they said, and makes a page of it.

  sanitizers.py run [WARPLEDGER] [--out DIR]   needs a GPU and the CUDA toolkit
  sanitizers.py report DIR… --out FOLDER       FOLDER/sanitizers.md from each DIR/sanitizers.json

A run is `warpledger check` under each tool on each small shape, in many processes at a time, on
all GPUs that CUDA_VISIBLE_DEVICES leaves. With --out it ends with DIR/sanitizers.json, whose
content reports/RECORD.md describes; after the same call was stopped, only what is left is run.
With --since=DIR,… a run leaves out the machine code that one of those records found clean under
the same tool on the same shape.
Copy DIR to reports/data/<gpu>/sanitizers-<time>, pack it with `warpledger pack`, then run
reports/regenerate.py.

Before anything else each tool has to find a fault that is planted for it
(tests/sanitizer_faults.cu).

Exit codes of `run`: 0 clean, 1 a tool found something, 2 wrong use, 3 no compute-sanitizer, one
that overlooks what is planted, or no GPU. Of `report`: 0 done, 2 a record can't be read, or two
are of different GPUs or versions.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

from sanitizer_records import (RECORD, TOOLS, Refused, json_text, page_of, read_record, read_records,
                               refuse_mixture)

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "cmake")]

from machine_code_file import instances_of_tree  # noqa: E402 (the path comes first)
from plots import whole_file  # noqa: E402

PAGE = "sanitizers.md"
# Of Q K^T: the ragged shapes have less, and the least of those that are timed for their speed more.
SMALL = 2**25
LIMIT_S = 550  # for a process, which takes a few seconds
SHOWN_LINES = 20


# --- Running -----------------------------------------------------------------


def multiply_adds(shape):
    return (shape["batch"] * shape["heads_q"] * shape["seq_q"] * shape["seq_kv"]
            * shape["head_dim"])


def listed(program, section):
    call = [program, "list", section, "--format=json"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)[section]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        raise Refused(2, f"{' '.join(call)} names none: {error}. Build it (./test), or name "
                         "another WARPLEDGER") from error


def visible_gpus():
    """[(what CUDA_VISIBLE_DEVICES calls it, its facts)]"""
    query = "index,uuid,name,compute_cap,driver_version"
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                              capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(3, f"nvidia-smi names no GPU: {error}") from error
    rows = [dict(zip(query.split(","), re.split(r", *", line)))
            for line in done.stdout.splitlines()]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is not None:
        rows = [row for name in wanted.split(",") for row in rows
                if name in (row["index"], row["uuid"])]
    if not rows:
        raise Refused(3, "no GPU is visible")
    return [(row["uuid"],
             {"name": row["name"], "compute_capability": row["compute_cap"],
              "driver": row["driver_version"]}) for row in rows]


def is_made_for(program, variants, shape):
    """Whether one of the variants has a kernel for the shape's head_dim and dtype."""
    call = [program, "check", "--dry_run", f"--variants={variants}", f"--shapes={shape}"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 0:
        return True
    if "none of these variants is compiled" in done.stderr:
        return False
    raise Refused(2, done.stderr.strip() or f"{' '.join(call)} failed")


def find_sanitizer():
    found = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not os.access(found, os.X_OK):
        raise Refused(3, "compute-sanitizer is not here; it is part of the CUDA toolkit")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, timeout=60,
                          check=False).stdout
    version = re.search(r"[Vv]ersion (\S+)", said)
    return found, version.group(1) if version else "unknown"


def convict(sanitizer, tools, gpu, program):
    """{tool: what it says of a fault that is planted for it}.

    A tool that overlooks its fault would call everything clean.
    """
    if not os.access(program, os.X_OK):
        raise Refused(3, f"{program}, which plants a fault for each tool, is not here. Build it "
                         "(./test), or name it with --faults")
    seen = {}
    for tool in tools:
        done = subprocess.run(["timeout", "--kill-after=10", str(LIMIT_S), sanitizer, "--tool",
                               tool, "--error-exitcode", "9", "--print-limit", "5", program, tool],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False, errors="replace",
                              env=os.environ | {"CUDA_VISIBLE_DEVICES": gpu})
        if done.returncode == 0 or not re.search(r"SUMMARY: [1-9]", done.stdout):
            last = done.stdout.strip().splitlines()[-1:] or ["nothing"]
            raise Refused(3, f"{tool} does not find the fault that {program} plants for it (exit "
                             f"code {done.returncode}, {last[0]!r}); that it finds none in a "
                             "kernel would say nothing")
        lines = [line.removeprefix("=========").strip() for line in done.stdout.splitlines()
                 if line.startswith("=========")]
        said = [line for line in lines if line and not line.startswith("COMPUTE-SANITIZER")]
        seen[tool] = said[0]
    return seen


def findings(returncode, log):
    """What a tool and the program under it complained of; empty where all is well.

    racecheck's warnings leave the exit code alone, so its summary is read too.
    """
    if returncode == 0 and re.search(r"SUMMARY: 0 (errors|hazards)", log):
        return []
    lines = [line for line in log.splitlines() if line.startswith("=========")]
    told = f"stopped after {LIMIT_S} s" if returncode == 124 else f"exit code {returncode}"
    return [told, *(lines or log.splitlines()[-5:])[:SHOWN_LINES]]


def known_code(records, tool, shape, tree):
    """Hashes of the machine code that one of the records found clean there, under all its names.

    The program leaves code out by its hash alone. An instance of the tree that shares it with
    another (as one with the null toggle does) and ran in no record would never run: then the
    code runs again.
    """
    clean = {pair for record in records for of in record["runs"]
             if (of["tool"], of["shape"]) == (tool, shape) and not of["findings"]
             for pair in of["pairs"]}
    missed = {code for name, code in tree.items() if (name, code) not in clean}
    return sorted({code for _, code in clean} - missed - {""})


def examine(work, sanitizer, gpu, piece, options, known):
    """One process: a tool on a part of a shape's variants. What it gave goes to work/.

    `known`: the file of machine code to leave out, or None.
    """
    tool, shape, part = piece
    stem = work / f"{tool}-{shape}-{part}"
    # A run that was killed may have left a process that still writes to its own.
    checks = work / f"{stem.name}-{os.getpid()}.jsonl"
    started = time.monotonic()
    # timeout(1) ends the program under the tool too.
    call = ["timeout", "--kill-after=10", str(LIMIT_S), sanitizer, "--tool", tool,
            "--error-exitcode", "9", "--print-limit", "5", options.program, "check",
            f"--shapes={shape}", f"--variants={options.variants}", "--inputs=normal", "--seeds=1",
            f"--shard={part}/{options.parts}", f"--out={checks}",
            *([f"--known={known}"] if known else [])]
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, errors="replace",
                          env=os.environ | {"CUDA_VISIBLE_DEVICES": gpu})
    found = findings(done.returncode, done.stdout)
    lines = checks.read_text(encoding="utf-8").splitlines() if checks.exists() else []
    result = {"tool": tool, "shape": shape, "seconds": round(time.monotonic() - started, 1),
              "instances": {row["instance"]: row["code_sha256"]
                            for row in map(json.loads, lines)},
              "findings": found}
    checks.unlink(missing_ok=True)
    whole_file.replace(stem.with_suffix(".json"), json.dumps(result))
    return result


def read_pieces(work, request, pieces):
    """{piece: what it gave} of those that are clean already; what found something runs again.

    Refuses a folder that holds parts of another request.
    """
    path = work / "request.json"
    if path.exists() and json.loads(path.read_text(encoding="utf-8")) != request:
        raise Refused(2, f"{work.parent} holds the beginning of another run (other tools, shapes, "
                         "variants, parts, GPU or --since); name another folder, or delete it")
    whole_file.replace(path, json.dumps(request))
    clean = {}
    for tool, shape, part in pieces:
        path = work / f"{tool}-{shape}-{part}.json"
        if path.exists():
            result = json.loads(path.read_text(encoding="utf-8"))
            if not result["findings"]:
                clean[tool, shape, part] = result
    return clean


def add_instances(result, instances):
    """Notes the machine code of a piece's instances, which every other piece must have run too."""
    for name, code in result["instances"].items():
        if instances.setdefault(name, code) != code:
            raise Refused(2, f"{name} was another kernel in an earlier call on this folder; name "
                             "another, or delete it")


def whole_record(facts, tools, shapes, instances, results):
    """The record of all pieces: instances once, and of each tool on each shape which of them."""
    names = sorted(instances)
    at = {name: i for i, name in enumerate(names)}
    runs = []
    for tool in tools:
        for shape in shapes:
            mine = [result for (of, on, _), result in sorted(results.items())
                    if (of, on) == (tool, shape)]
            runs.append({"tool": tool, "shape": shape, "processes": len(mine),
                         "seconds": round(sum(result["seconds"] for result in mine), 1),
                         "instances": sorted(at[name] for result in mine
                                             for name in result["instances"]),
                         "findings": [line for result in mine for line in result["findings"]]})
    return facts | {"instances": {name: instances[name] for name in names},
                    "runs": runs}


def choose(given, known, what):
    if not given:
        return known
    for name in given.split(","):
        if name not in known:
            raise Refused(2, f"no {what} '{name}'; it is one of {', '.join(known)}")
    return given.split(",")


def on_all_gpus(pieces, gpus, jobs, work):
    """Yields (piece, work(piece, gpu)) as they end, `jobs` at a time, spread over the GPUs."""
    free = queue.Queue()
    for i in range(jobs):
        free.put(gpus[i % len(gpus)][0])

    def on_some_gpu(piece):
        gpu = free.get()
        try:
            return piece, work(piece, gpu)
        finally:
            free.put(gpu)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waiting = [pool.submit(on_some_gpu, piece) for piece in pieces]
        try:
            for done in concurrent.futures.as_completed(waiting):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def run(options):
    tools = choose(options.tools, list(TOOLS), "tool")
    shapes = listed(options.program, "shapes")
    small = [shape["name"] for shape in shapes if multiply_adds(shape) <= SMALL]
    shapes = choose(options.shapes, [shape["name"] for shape in shapes], "shape")
    if not options.shapes:
        shapes = small
    if options.variants != "all":
        shapes = [shape for shape in shapes
                  if is_made_for(options.program, options.variants, shape)]
        if not shapes:
            raise Refused(2, "none of these variants has a kernel for these shapes")
    sanitizer, version = find_sanitizer()
    gpus = visible_gpus()
    now = datetime.datetime.now(datetime.timezone.utc)
    facts = {"schema_version": 1, "run_id": now.strftime("sanitizers-%Y%m%dT%H%M%SZ"),
             "created_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "gpu": gpus[0][1],
             "compute_sanitizer": version, "variants": options.variants}
    earlier = read_records(options.since)
    refuse_mixture(earlier, facts["gpu"], version, "this run")
    facts["since"] = sorted(record["run_id"] for record in earlier)
    temporary = None
    if options.out:
        if (options.out / RECORD).exists():
            found = any(run["findings"] for run in read_record(options.out)["runs"])
            print(f"{options.out / RECORD} is there already, "
                  + ("with findings" if found else "clean"))
            return 1 if found else 0
        work = options.out / "parts"
        work.mkdir(parents=True, exist_ok=True)
    else:
        temporary = tempfile.TemporaryDirectory()
        work = pathlib.Path(temporary.name)

    # The slowest tool first, and so that no GPU waits at the end.
    order = sorted(tools, key=lambda tool: tool != "racecheck")
    pieces = [(tool, shape, part) for tool in order for shape in shapes
              for part in range(1, options.parts + 1)]
    request = {"tools": tools, "shapes": shapes, "variants": options.variants,
               "parts": options.parts, "gpu": facts["gpu"], "compute_sanitizer": version,
               "since": facts["since"]}
    results = read_pieces(work, request, pieces)
    left = [piece for piece in pieces if piece not in results]
    instances = {}
    for result in results.values():
        add_instances(result, instances)
    if results:
        print(f"{len(results)} of {len(pieces)} processes were clean already")

    faults = options.faults or (pathlib.Path(options.program).resolve().parents[1] / "share"
                                / "warpledger" / "sanitizer_faults")
    facts["planted"] = convict(sanitizer, tools, gpus[0][0], faults)
    print(f"each of {', '.join(tools)} finds the fault that is planted for it", flush=True)

    known = {}
    tree = instances_of_tree(facts["gpu"]["compute_capability"])
    for tool, shape in dict.fromkeys(piece[:2] for piece in left):
        if hashes := known_code(earlier, tool, shape, tree):
            known[tool, shape] = work / f"known-{tool}-{shape}.txt"
            whole_file.replace(known[tool, shape], "".join(f"{code}\n" for code in hashes))

    def is_scout(piece):
        return piece[2] == 1 and piece[:2] in known

    def has_nothing(piece):
        """The program fills the parts from the first: where that is empty, all are."""
        first = results.get((*piece[:2], 1))
        return (piece[:2] in known and first is not None
                and not first["instances"] and not first["findings"])

    # Most of a process is the start of the program under the tool, also where nothing is left
    # to check. So the first parts go first where something is known.
    for scouts in (True, False):
        now_due = [piece for piece in left
                   if is_scout(piece) == scouts and not has_nothing(piece)]
        for piece, result in on_all_gpus(
                now_due, gpus, options.jobs,
                lambda piece, gpu: examine(work, sanitizer, gpu, piece, options,
                                           known.get(piece[:2]))):
            add_instances(result, instances)
            results[piece] = result
            said = "FOUND" if result["findings"] else "clean"
            print(f"{len(results)}/{len(pieces)} {piece[0]} on {piece[1]}, part {piece[2]}: "
                  f"{said}, {len(result['instances'])} instances, {result['seconds']:.0f} s",
                  flush=True)
            for line in result["findings"]:
                print(f"    {line}", flush=True)

    record = whole_record(facts, tools, shapes, instances, results)
    if options.out:
        whole_file.replace(options.out / RECORD, json.dumps(record) + "\n")
        shutil.rmtree(work)
        print(f"Record: {options.out / RECORD}")
    if temporary:
        temporary.cleanup()
    found = sum(bool(result["findings"]) for result in results.values())
    print(f"{len(record['instances'])} instances, {len(results)} processes: "
          + (f"{found} found something" if found else "clean: " + ", ".join(tools)))
    return 1 if found else 0


# --- Reporting ---------------------------------------------------------------


def report(options):
    try:
        records = read_records(options.records)
        newest = records[0]
        refuse_mixture(records, newest["gpu"], newest["compute_sanitizer"], newest["run_id"])
        page = page_of(records, instances_of_tree(newest["gpu"]["compute_capability"]))
    except json_text.DAMAGE as error:
        raise Refused(2, f"a record can't be read: {json_text.said(error)}") from error
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / PAGE).write_text(page, encoding="utf-8")
    return 0


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the tools")
    running.add_argument("program", nargs="?", default=str(ROOT / "build" / "bin" / "warpledger"),
                         metavar="WARPLEDGER", help="the program (default: build/bin/warpledger)")
    running.add_argument("--out", type=pathlib.Path, metavar="DIR", help="where the record goes")
    running.add_argument("--faults", type=pathlib.Path, metavar="PROGRAM",
                         help="plants a fault for each tool to find (default: "
                              "share/warpledger/sanitizer_faults beside WARPLEDGER's folder)")
    running.add_argument("--since", type=lambda text: list(map(pathlib.Path, text.split(","))),
                         default=[], metavar="DIR,…",
                         help="earlier records: leave out what one of them found clean")
    running.add_argument("--tools", metavar="TOOL,…", help=f"some of {', '.join(TOOLS)}")
    running.add_argument("--shapes", metavar="SHAPE,…",
                         help=f"default: those of up to {SMALL} multiply-adds in Q K^T")
    running.add_argument("--variants", metavar="VARIANT,…", default="all", help="default: all")
    running.add_argument("--parts", type=positive, default=8,
                         help="processes for each tool and shape (default: 8)")
    running.add_argument("--jobs", type=positive,
                         default=max(1, min(8, (os.cpu_count() or 2) // 2)),
                         help="processes at a time (default: half of the CPU cores, at most 8)")
    reporting = commands.add_parser("report", help="make the page of one or more records")
    reporting.add_argument("records", type=pathlib.Path, nargs="+", metavar="DIR")
    reporting.add_argument("--out", required=True, type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    try:
        return run(options) if options.command == "run" else report(options)
    except Refused as refused:
        code, text = refused.args
    except OSError as error:
        code, text = 2, error
    print(f"sanitizers.py: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
