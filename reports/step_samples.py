#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the cycles of a kernel's main loop go: samples of the program counter, step by step.

  step_samples.py take VARIANT… --problem B,H,S,D[,causal] --out DIR   needs a GPU, ncu and NumPy
  step_samples.py report DIR --out FOLDER                              FOLDER/step_samples.md

`take` runs `warpledger exec` once for each variant (toggles joined by +) under Nsight Compute,
on random fp16 inputs of batch B, H heads, S queries and keys and head dimension D, and keeps
of its samples the loop that has most of them. DIR/step_samples.json is the record, whose content
reports/RECORD.md describes. Copy DIR to reports/data/<gpu>/step_samples-<time>, pack it with
`warpledger pack`, then run reports/regenerate.py.

Exit codes: 0 done; 1 a kernel gave no samples of a loop, or ncu's columns aren't those known here;
2 wrong use, or a record that can't be read; 3 no ncu, no NumPy, no GPU or no program.
"""

import argparse
import collections
import csv
import datetime
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "cmake"), str(ROOT / "reports")]

import record_files  # noqa: E402 (the path comes first)
from plots import json_text, whole_file  # noqa: E402
from machine_code_file import instances_of_tree  # noqa: E402

COMPUTE_CAPABILITY = "9.0"  # of the GPUs whose products are asynchronous
ARCH = "sm_90"
RECORD = "step_samples.json"
PAGE = "step_samples.md"
SCHEMA_VERSION = 1
STALL = "stall_"
ISSUED = "selected"  # ncu's word for the cycle in which an instruction is issued
SASS, EXECUTED, SAMPLES = "Source", "Instructions Executed", "# Samples"  # ncu's columns
# What a part of the loop ends with: products started, a wait for them, a barrier, a vote.
LANDMARK = re.compile(r"[HQI]GMMA.*gsb|WARPGROUP\.DEPBAR|BAR\.|SYNCS\.PHASECHK|VOTE\.")


class Refused(Exception):
    """An exit code and what to say."""


# --- Taking ------------------------------------------------------------------


def parse_source(text):
    """The rows of ncu's `--page source --csv`, one for each instruction."""
    lines = list(csv.reader(io.StringIO(text)))
    start = next((i for i, line in enumerate(lines) if SAMPLES in line), None)
    if start is None:
        raise Refused(1, "ncu gave no samples: " + text.strip()[-300:])
    header = lines[start]
    # A column under another name would read as zeros.
    for column in (SASS, EXECUTED, STALL + ISSUED):
        if column not in header:
            raise Refused(1, f"ncu's source page has no column \"{column}\", but "
                          f"{', '.join(header)[:600]}")
    stalls = [column for column in header if re.fullmatch(STALL + r"\w+", column)]

    def number(row, column):
        try:
            return int(float(row.get(column) or 0))
        except ValueError:
            raise Refused(1, f"ncu's column \"{column}\" holds {row[column]!r}, which is no number"
                          ) from None

    rows = []
    for line in lines[start + 1:]:
        row = dict(zip(header, line))
        if SASS not in row:  # an empty line, or a message of ncu's
            continue
        rows.append({"sass": " ".join(row[SASS].split()),
                     "executed": number(row, EXECUTED),
                     "samples": number(row, SAMPLES),
                     "stalls": {column[len(STALL):]: number(row, column) for column in stalls
                                if number(row, column)}})
    return rows


def issued(loop):
    """Samples of cycles in which an instruction was issued: what tells cycles from samples."""
    return sum(row["stalls"].get(ISSUED, 0) for row in loop)


def main_loop(rows):
    """The rows between the first and the last that run as often as the products with most samples
    around them: those in between that run less often are branches seldom taken."""
    weight = collections.Counter()
    for row in rows:
        weight[row["executed"]] += row["samples"]
    counts = {row["executed"] for row in rows if "GMMA" in row["sass"]}
    if not counts or not max(weight[count] for count in counts):
        raise Refused(1, "no loop with products has a sample")
    often = max(counts, key=lambda count: weight[count])
    at = [i for i, row in enumerate(rows) if row["executed"] == often]
    return rows[at[0]:at[-1] + 1]


def hash_of(program, variant, problem):
    """Of the instance's machine code, by what was collected when it was built."""
    prefix = pathlib.Path(program).resolve().parents[1]
    names = ([] if problem["head_dim"] == 64 else [f"d{problem['head_dim']}"]) + (
        ["causal"] if problem["causal"] else [])
    instance = variant + ("@" + "_".join(names) if names else "")
    for path in (prefix / "share/warpledger/codegen/codegen.json",
                 prefix / "codegen/codegen.json"):
        if path.exists():
            for row in json.loads(path.read_text(encoding="utf-8"))["instances"]:
                if row["variant"] == instance and row["arch"].startswith(ARCH):
                    return instance, row["code_sha256"]
    raise Refused(2, f"no instance {instance} beside {program}")


def take(options):
    try:
        batch, heads, seq, head_dim, *mask = options.problem.split(",")
        problem = {"batch": int(batch), "heads": int(heads), "seq": int(seq),
                   "head_dim": int(head_dim), "causal": mask == ["causal"]}
        if mask not in ([], ["causal"]):
            raise ValueError
    except ValueError:
        raise Refused(2, f"--problem={options.problem}: it is B,H,S,D or B,H,S,D,causal") from None
    for tool in (options.ncu, "nvidia-smi", options.program):
        if not shutil.which(tool):
            raise Refused(3, f"no {tool}")
    known = {variant: hash_of(options.program, variant, problem) for variant in options.variants}
    try:
        import numpy  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise Refused(3, f"no NumPy for {sys.executable} ({error}); it is in build/venv") from None
    gpus = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                          capture_output=True, text=True, check=True).stdout.splitlines()
    if not gpus:
        raise Refused(3, "no GPU: nvidia-smi lists none")
    kernels = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        random = numpy.random.default_rng(1)
        size = (problem["batch"], problem["heads"], problem["seq"], problem["head_dim"])
        for name in "qkv":
            values = random.standard_normal(size, dtype=numpy.float32)
            numpy.save(folder / f"{name}.npy", values.astype(numpy.float16))
        for variant, (instance, code) in known.items():
            report = folder / "samples.ncu-rep"
            subprocess.run(
                [options.ncu, "--clock-control", "none", "--cache-control", "none", "--section",
                 "SourceCounters", "--section", "WarpStateStats", "--import-source", "off",
                 "--kernel-name", "regex:^sdpa_", "--launch-count", "1", "-f", "-o", report,
                 options.program, "exec", f"--variant={variant}", f"--out={folder / 'o.npy'}",
                 *(f"--{name}={folder / name}.npy" for name in "qkv"),
                 *(["--causal"] if problem["causal"] else [])],
                check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
            text = subprocess.run([options.ncu, "--import", report, "--page", "source", "--csv"],
                                  check=True, capture_output=True, text=True, timeout=300).stdout
            rows = parse_source(text)
            loop = main_loop(rows)
            if not issued(loop):
                raise Refused(1, f"{variant}: no sample of its loop is of an issued instruction, "
                              "so nothing tells cycles from samples")
            kernels.append({"variant": variant, "instance": instance, "code_sha256": code,
                            "samples": sum(row["samples"] for row in rows), "loop": loop})
            print(f"{variant}: {kernels[-1]['samples']} samples", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    ncu = subprocess.run([options.ncu, "--version"], capture_output=True, text=True, check=True)
    record = {"schema_version": SCHEMA_VERSION, "run_id": options.out.name,
              "created_utc": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "gpu": gpus[0], "ncu": ncu.stdout.strip().splitlines()[-1], "problem": problem,
              "kernels": kernels}
    whole_file.replace(options.out / RECORD, json.dumps(record) + "\n")
    return 0


# --- Reporting ---------------------------------------------------------------


_SCHEMA = {"gpu": str, "ncu": str,
           "problem": {"batch": int, "heads": int, "seq": int, "head_dim": int, "causal": bool},
           "kernels": [{"instance": str, "code_sha256": str, "samples": int,
                        "loop": [{"sass": str, "executed": int, "samples": int,
                                  "stalls": {str: int}}]}]}


def load(folder):
    """The record; Refused names what is missing or can't be."""
    path = folder / RECORD
    try:
        record = record_files.open_record(folder).json(RECORD)
        version = json_text.checked(record, {"schema_version": int})["schema_version"]
        if version != SCHEMA_VERSION:
            raise ValueError(f"schema_version is {version}, but this script knows {SCHEMA_VERSION}")
        json_text.checked(record, _SCHEMA)
    except (OSError, ValueError, record_files.RecordError) as error:
        raise Refused(2, f"{path}: {error}") from None
    for i, kernel in enumerate(record["kernels"]):
        loop = kernel["loop"]
        if not issued(loop) or not any(row["executed"] for row in loop) or kernel["samples"] < 1:
            raise Refused(2, f"{path}: kernels[{i}]: no sample of the loop is of an issued "
                          "instruction, so nothing tells cycles from samples")
    return record


def executed(rows):
    return [row for row in rows if row["executed"]]


def parts(loop):
    """The loop cut behind its landmarks; one of fewer than four instructions, unless it waits for
    products, joins the next."""
    found, part = [], []
    for row in loop:
        part.append(row)
        if row["executed"] and LANDMARK.search(row["sass"]) and (
                len(executed(part)) > 3 or "DEPBAR" in row["sass"]):
            found.append(part)
            part = []
    return found + ([part] if part else [])


def opcode(sass):
    words = [word for word in sass.split() if not word.startswith("@")]
    return words[0].split(".")[0] if words else ""


def short(sass):
    """Guard, opcode and destination, whole; of a wait for products also how many groups it leaves.

    Where a branch leads is left out: the address is another in each run."""
    guard, name, operands = re.match(r"(@\S+ )?(\S*) ?([^;]*)", sass).groups()
    operands = [operand.strip() for operand in operands.split(",")]
    kept = operands if "DEPBAR" in name else operands[:1]
    if re.match("0x|`", kept[0]):
        kept = []
    return f"{guard or ''}{name} {', '.join(kept)}".strip()


def cycles_per_sample(loop):
    """An instruction is issued once each time that it is executed, in one cycle."""
    often = max(row["executed"] for row in loop)
    return sum(row["executed"] for row in loop) / often / issued(loop)


def cell(text):
    return json_text.markdown(text).replace("|", "\\|")


def table(kernel):
    loop = kernel["loop"]
    factor = cycles_per_sample(loop)
    lines = ["| cycles | instructions | most frequent opcodes | reasons to wait, cycles | ends with |",
             "| ---: | ---: | --- | --- | --- |"]
    for part in parts(loop):
        waits = collections.Counter()
        for row in part:
            waits.update(row["stalls"])
        waits.pop(ISSUED, None)
        run = executed(part)
        ops = collections.Counter(opcode(row["sass"]) for row in run).most_common(3)
        lines.append(
            f"| {factor * sum(row['samples'] for row in part):.0f} | {len(run)} | "
            + ", ".join(f"{count} {cell(name)}" for name, count in ops) + " | "
            + ", ".join(f"{cell(name)} {factor * samples:.0f}"
                        for name, samples in waits.most_common(3))
            + f" | `{cell(short(run[-1]['sass']))}` |")
    total = sum(row["samples"] for row in loop)
    count = len(executed(loop))
    of = "" if count == len(loop) else f" of {len(loop)}"
    lines.append(f"| **{factor * total:.0f}** | **{count}**{of} | | | |")
    return lines, total / kernel["samples"]


def report(options):
    try:
        page = page_of(load(options.record), record_files.plain(options.record.resolve()).name)
    except json_text.DAMAGE as error:
        raise Refused(2, f"{options.record} can't be read: {json_text.said(error)}") from error
    options.out.mkdir(parents=True, exist_ok=True)
    whole_file.replace(options.out / PAGE, page)
    return 0


def page_of(record, name):
    tree = instances_of_tree(COMPUTE_CAPABILITY)
    of = record["problem"]
    mask = "causal" if of["causal"] else "full"
    version = re.search(r"\d[\d.]*", record["ncu"])
    lines = [
        "# Where the cycles of a step go", "",
        "Each table divides one pass through a kernel's main loop (a step) into parts, and shows how "
        "many cycles a warp spends in each part and what it waits for there. Nsight Compute samples "
        "the program counter of every warp; samples become cycles because an instruction is issued "
        "in one cycle. While one warp waits, another may work. A part includes the wait at its "
        "start. A part ends with an instruction that starts products (`…GMMA`, the last of a group), "
        "waits for them (`WARPGROUP.DEPBAR`) or for a barrier (`SYNCS`, `BAR`), or votes; only the "
        "destination of that instruction is shown. Instructions that no warp executed, in a branch "
        "that is never taken, are not counted; the last row also has the number of all "
        "instructions.", "",
        f"Record `{name}`, by `reports/step_samples.py`: {json_text.markdown(record['gpu'])}, Nsight Compute "
        f"{version[0] if version else json_text.markdown(record['ncu'])}; batch {of['batch']}, {of['heads']} heads, "
        f"{of['seq']} queries and keys, head_dim {of['head_dim']}, {mask}, fp16 inputs; one launch "
        "of each kernel.", ""]
    for kernel in record["kernels"]:
        rows, share = table(kernel)
        lines += [f"## `{json_text.markdown(kernel['instance'])}`", "",
                  f"{100 * share:.0f}% of the samples of all the kernel's warps are in this loop (warps "
                  "that load or transpose count too)."
                  + ("" if kernel["code_sha256"] == tree.get(kernel["instance"])
                     else " **Its machine code is older than this tree's.**"), ""] + rows + [""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    taking = commands.add_parser("take", help="sample kernels")
    taking.add_argument("variants", nargs="+", metavar="VARIANT")
    taking.add_argument("--problem", required=True, metavar="B,H,S,D[,causal]")
    taking.add_argument("--out", required=True, type=pathlib.Path, metavar="DIR")
    taking.add_argument("--program", default=str(ROOT / "build" / "bin" / "warpledger"),
                        help="default: build/bin/warpledger")
    taking.add_argument("--ncu", default="ncu", help="Nsight Compute (default: ncu on PATH)")
    reporting = commands.add_parser("report", help="make the page of a record")
    reporting.add_argument("record", type=pathlib.Path, metavar="DIR")
    reporting.add_argument("--out", required=True, type=pathlib.Path, metavar="FOLDER")
    options = parser.parse_args()
    try:
        return take(options) if options.command == "take" else report(options)
    except Refused as refused:
        code, text = refused.args
    except OSError as error:
        code, text = 2, error
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = error.stdout if isinstance(error.stdout, str) else (error.stdout or b"").decode()
        code, text = 3, f"{error}\n{said[-800:]}"
    print(f"step_samples.py: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
