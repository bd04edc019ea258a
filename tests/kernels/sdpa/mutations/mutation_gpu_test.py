# SPDX-License-Identifier: Apache-2.0
"""The suite's checks find every bug that is planted in a kernel, and pass every original.

    mutation_gpu_test.py path/to/check_mutant [--out mutations.json]

Runs check_mutant for each planted bug, GPU_TEST_SHARDS at a time, each in a process of its own: a
bug may trap, or hang, which counts as found. Prints the score by family, also of rules that others
use (weaker_rules.h), and with --out writes all of it as JSON. What depends on time (`race` in
mutations.toml) is printed and not demanded.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
from concurrent import futures

SKIPPED = 77
RULES = ("absolute_0.06", "relative_1e-3", "allclose", "assert_close_fp16")  # weaker_rules.h
LIMIT_S = 30  # for the original and the mutant, which take a second


def lines_of(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def check(program, mutant):
    """What became of the original and of the mutant; None where this GPU has no code for them."""
    try:
        done = subprocess.run([program, mutant["name"]], capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
        said, ended = done.stdout, f"exit code {done.returncode}: {done.stderr.strip()}"
        if done.returncode == SKIPPED:
            return None
    except subprocess.TimeoutExpired as expired:
        said, ended = (expired.stdout or b"").decode(), f"it hung for {LIMIT_S} s"
    found = {line.pop("of"): line for line in lines_of(said)}
    original = found.get("original", {"passes": False, "reason": ended, "caught_by": []})
    # Whoever waits for an output sees that none comes.
    none_came = {"passes": False, "reason": ended, "caught_by": list(RULES)}
    return {"mutant": mutant, "original": original, "outcome": found.get("mutant", none_came)}


def group_of(result):
    """smem's scalar and WMMA kernels stand apart."""
    return result["mutant"]["name"].split("_")[0]


def score(results):
    """By group and in all: mutants, and how many of them each rule finds."""
    table = collections.defaultdict(collections.Counter)
    for result in results:
        for group in group_of(result), "all":
            table[group]["mutants"] += 1
            table[group]["suite"] += not result["outcome"]["passes"]
            for rule in result["outcome"]["caught_by"]:
                table[group][rule] += 1
    return {group: {key: counts[key] for key in ("mutants", "suite", *RULES)}
            for group, counts in table.items()}


def originals(results):
    """How many different originals there are, and how many each rule refuses: a rule that does is
    of no use, whatever it finds."""
    cases = {(r["mutant"]["kernel"], r["mutant"]["problem"], r["mutant"]["input"]): r["original"]
             for r in results}
    refused = collections.Counter(rule for each in cases.values() for rule in each["caught_by"])
    return {"cases": len(cases), "suite": sum(not each["passes"] for each in cases.values()),
            **{rule: refused[rule] for rule in RULES}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--out")
    options = parser.parse_args()
    if not os.path.exists(options.program):
        print(f"SKIPPED: the planted bugs are not compiled; build the target {os.path.basename(options.program)}")
        return SKIPPED
    shards = int(os.environ.get("GPU_TEST_SHARDS") or max(1, min(6, (os.cpu_count() or 1) // 3)))
    listed = subprocess.run([options.program, "--list"], capture_output=True, text=True, check=True)
    mutants = lines_of(listed.stdout)
    with futures.ThreadPoolExecutor(shards) as pool:
        results = list(pool.map(lambda mutant: check(options.program, mutant), mutants))
    results = [each for each in results if each is not None]
    if not results:
        print("SKIPPED: no usable GPU, or none that the mutants are compiled for")
        return SKIPPED

    failures = []
    for result in results:
        mutant, outcome = result["mutant"], result["outcome"]
        if not result["original"]["passes"]:
            failures.append(f"the original of {mutant['name']} fails: "
                            f"{result['original']['reason']}")
        if outcome["passes"] and not mutant["race"]:
            failures.append(f"{mutant['name']} passes: {mutant['what']}")
        print(f"{mutant['name']}: {'PASSES' if outcome['passes'] else outcome['reason']}"
              f"{' (depends on time)' if mutant['race'] else ''}")
    document = {"schema": 1, "gpu": results[0]["original"].get("gpu", ""), "score": score(results), "originals": originals(results),
                "mutations": results}
    print(json.dumps({"score": document["score"], "originals": document["originals"]}, indent=1))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
    print("\n".join(failures) or f"all of {len(results)} planted bugs were judged as they should")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
