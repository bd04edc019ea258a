#!/usr/bin/env python3
"""Where the cycles of a kernel's main loop go: samples of the program counter, step by step.

  step_samples.py take VARIANT… --problem B,H,S,D[,causal] --out DIR   needs a GPU, ncu and NumPy
  step_samples.py report DIR --out FOLDER                              FOLDER/step_samples.md

`take` runs `warpledger exec` once for each variant (toggles joined by +) under Nsight Compute,
on random fp16 inputs of batch B, H heads, S queries and keys and head dimension D, and keeps
of its samples the loop that has most of them. DIR/step_samples.json is the record, whose content
reports/RECORD.md describes. Copy DIR to reports/data/<gpu>/step_samples-<time>, then run
reports/regenerate.py.

Exit codes: 0 done; 1 a kernel gave no samples of a loop; 2 wrong use, or a record that can't be
read; 3 no ncu, no GPU or no program.
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
sys.path.insert(0, str(ROOT / "cmake"))

from machine_code_file import instances_of_tree  # noqa: E402 (the path comes first)

COMPUTE_CAPABILITY = "9.0"  # of the GPUs whose products are asynchronous
ARCH = "sm_90"
RECORD = "step_samples.json"
PAGE = "step_samples.md"
STALL = "stall_"
ISSUED = "selected"  # ncu's word for the cycle in which an instruction is issued
# What a part of the loop ends with: products started, a wait for them, a barrier, a vote.
LANDMARK = re.compile(r"[HQI]GMMA.*gsb|WARPGROUP\.DEPBAR|BAR\.|SYNCS\.PHASECHK|VOTE\.")


class Refused(Exception):
    """An exit code and what to say."""


# --- Taking ------------------------------------------------------------------


def parse_source(text):
    """The rows of ncu's `--page source --csv`, one for each instruction."""
    lines = list(csv.reader(io.StringIO(text)))
    start = next((i for i, line in enumerate(lines) if "# Samples" in line), None)
    if start is None:
        raise Refused(1, "ncu gave no samples: " + text.strip()[-300:])
    header = lines[start]
    stalls = [column for column in header if re.fullmatch(STALL + r"\w+", column)]

    def number(row, column):
        return int(float(row.get(column) or 0))

    rows = []
    for line in lines[start + 1:]:
        row = dict(zip(header, line))
        rows.append({"sass": " ".join(row["Source"].split()),
                     "executed": number(row, "Instructions Executed"),
                     "samples": number(row, "# Samples"),
                     "stalls": {column[len(STALL):]: number(row, column) for column in stalls
                                if number(row, column)}})
    return rows


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
    import numpy  # pylint: disable=import-outside-toplevel

    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                         capture_output=True, text=True, check=True).stdout.splitlines()[0]
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
            kernels.append({"variant": variant, "instance": instance, "code_sha256": code,
                            "samples": sum(row["samples"] for row in rows),
                            "loop": main_loop(rows)})
            print(f"{variant}: {kernels[-1]['samples']} samples", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    ncu = subprocess.run([options.ncu, "--version"], capture_output=True, text=True, check=True)
    record = {"schema_version": 1, "run_id": options.out.name,
              "created_utc": datetime.datetime.now(datetime.timezone.utc).strftime(
                  "%Y-%m-%dT%H:%M:%SZ"),
              "gpu": gpu, "ncu": ncu.stdout.strip().splitlines()[-1], "problem": problem,
              "kernels": kernels}
    rows = [f' "{key}": {json.dumps(value)}' for key, value in record.items() if key != "kernels"]
    rows.append(' "kernels": [\n' + ",\n".join(
        "  " + json.dumps({key: value for key, value in kernel.items() if key != "loop"})[:-1]
        + ', "loop": [\n' + ",\n".join("   " + json.dumps(row) for row in kernel["loop"]) + "]}"
        for kernel in kernels) + "]")
    (options.out / RECORD).write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    return 0


# --- Reporting ---------------------------------------------------------------


def parts(loop):
    """The loop cut behind its landmarks; one of fewer than four instructions, unless it waits for
    products, joins the next."""
    found, part = [], []
    for row in loop:
        part.append(row)
        if LANDMARK.search(row["sass"]) and (len(part) > 3 or "DEPBAR" in row["sass"]):
            found.append(part)
            part = []
    return found + ([part] if part else [])


def opcode(sass):
    words = [word for word in sass.split() if not word.startswith("@")]
    return words[0].split(".")[0] if words else ""


def cycles_per_sample(loop):
    """An instruction is issued once each time that it is executed, in one cycle."""
    issued = sum(row["stalls"].get(ISSUED, 0) for row in loop)
    often = max(row["executed"] for row in loop)
    return sum(row["executed"] for row in loop) / often / issued if issued else 0.0


def table(kernel):
    loop = kernel["loop"]
    factor = cycles_per_sample(loop)
    lines = ["| cycles | instructions | of which | what warps wait for, cycles | ends with |",
             "| ---: | ---: | --- | --- | --- |"]
    for part in parts(loop):
        waits = collections.Counter()
        for row in part:
            waits.update(row["stalls"])
        waits.pop(ISSUED, None)
        ops = collections.Counter(opcode(row["sass"]) for row in part).most_common(3)
        lines.append(
            f"| {factor * sum(row['samples'] for row in part):.0f} | {len(part)} | "
            + ", ".join(f"{count} {name}" for name, count in ops) + " | "
            + ", ".join(f"{name} {factor * samples:.0f}" for name, samples in waits.most_common(3))
            + f" | `{part[-1]['sass'].split(' ;')[0][:44].rstrip(' ,;')}` |")
    total = sum(row["samples"] for row in loop)
    lines.append(f"| **{factor * total:.0f}** | **{len(loop)}** | | | |")
    return lines, total / kernel["samples"]


def report(options):
    path = options.record / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(2, f"{path}: {error}") from None
    tree = instances_of_tree(COMPUTE_CAPABILITY)
    of = record["problem"]
    mask = "causal" if of["causal"] else "full"
    lines = [
        "# Where the cycles of a step go", "",
        "Generated by `reports/step_samples.py`; change the record or the script, not this page.",
        "",
        f"{record['gpu']}, {record['ncu']}; batch {of['batch']}, {of['heads']} heads, "
        f"{of['seq']} queries and keys, head_dim {of['head_dim']}, {mask}, fp16 inputs; one launch "
        "of each kernel. The program counter of every warp is sampled, and the samples of the loop "
        "with the products are told as cycles that a warp spends in one pass: an instruction is "
        "issued in one. A warp's wait may be another's work, and a part's cycles count what it "
        "waits for at its start. Parts end with what starts products (`…GMMA … gsb0`), waits for "
        "them (`WARPGROUP.DEPBAR`) or for a barrier (`SYNCS`, `BAR`), or with a vote.", ""]
    for kernel in record["kernels"]:
        rows, share = table(kernel)
        lines += [f"## `{kernel['instance']}`", "",
                  f"{100 * share:.0f}% of the kernel's samples are in this loop (of all its warps, "
                  "those that load or transpose too)."
                  + ("" if kernel["code_sha256"] == tree.get(kernel["instance"])
                     else " **Its machine code is older than this tree's.**"), ""] + rows + [""]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / PAGE).write_text("\n".join(lines), encoding="utf-8")
    return 0


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
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        said = error.stdout if isinstance(error.stdout, str) else (error.stdout or b"").decode()
        code, text = 3, f"{error}\n{said[-800:]}"
    print(f"step_samples.py: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
