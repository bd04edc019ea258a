# SPDX-License-Identifier: Apache-2.0
"""Records of what compute-sanitizer said, as tests/sanitizers.py writes them: reading them, what
they cover of the tree's machine code, and the page of several.
"""

import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "reports"))
import record_files  # noqa: E402 (the path comes first)
from plots import json_text  # noqa: E402

RECORD = "sanitizers.json"
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


class Refused(Exception):
    """Wrong use, or something is missing; the first argument is the exit code."""


def read_record(folder):
    """What is used of a record; its runs have pairs (instance, machine code) for positions."""
    try:
        record = json_text.markdown(record_files.open_record(folder).json(RECORD))
        instances = list(record["instances"].items())
        if any(of["tool"] not in TOOLS for of in record["runs"]):
            raise ValueError(f"its tools are not all of {', '.join(TOOLS)}")
        return {"run_id": record["run_id"], "created_utc": record["created_utc"],
                "gpu": {key: record["gpu"][key]
                        for key in ("name", "compute_capability", "driver")},
                "compute_sanitizer": record["compute_sanitizer"],
                "since": list(record.get("since", [])),
                "planted": dict(record.get("planted", {})),
                "instances": instances,
                "runs": [{"tool": of["tool"], "shape": of["shape"], "findings": of["findings"],
                          "pairs": [instances[i] for i in of["instances"]]}
                         for of in record["runs"]]}
    except KeyError as error:
        raise Refused(2, f"{folder / RECORD} can't be read: it lacks {error}") from error
    except (OSError, record_files.RecordError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise Refused(2, f"{folder / RECORD} can't be read: {error}") from error


def read_records(folders):
    """Each record once, the newest first."""
    records = {record["run_id"]: record for record in map(read_record, folders)}
    return [records[run_id] for run_id in sorted(records, reverse=True)]


def refuse_mixture(records, gpu, sanitizer_version, whose):
    """A page names one GPU and one compute-sanitizer. Their driver may differ."""
    for record in records:
        theirs = record["gpu"]["name"], record["compute_sanitizer"]
        if theirs != (gpu["name"], sanitizer_version):
            raise Refused(2, f"{record['run_id']} is of an {theirs[0]} under compute-sanitizer "
                             f"{theirs[1]}, and {whose} of an {gpu['name']} under "
                             f"{sanitizer_version}: one page can't speak of both")


def coverage(records, tree):
    """Of each instance of the tree, the tools that ran clean on this very machine code."""
    clean = collections.defaultdict(set)
    for record in records:
        for of in record["runs"]:
            for pair in () if of["findings"] else of["pairs"]:
                clean[pair].add(of["tool"])
    return {name: clean[name, code] for name, code in tree.items()}


def code_list(names):
    return "".join(f"- `{name}`\n" for name in names)


def count_checks(record):
    return sum(len(of["pairs"]) for of in record["runs"])


def count_checks_of(records, tree):
    """Those that ran the machine code of the tree."""
    return sum(tree.get(name) == code for record in records for of in record["runs"]
               for name, code in of["pairs"])


def line_of_run(record):
    gpu = record["gpu"]
    earlier = " and ".join(f"`{run_id}`" for run_id in record["since"])
    return (f"- `{record['run_id']}` ({record['created_utc']}): {gpu['name']}, driver "
            f"{gpu['driver']}, compute-sanitizer {record['compute_sanitizer']}, "
            f"{count_checks(record)} checks, "
            + (f"without instances that {earlier} had found clean\n" if earlier
               else "nothing left out\n"))


def lines_of_plants(records):
    """What the tools said of planted faults, once for the runs in which it was the same."""
    runs = collections.defaultdict(list)
    for record in records:
        if record["planted"]:
            said = "; ".join(f"{tool}, \"{said}\"" for tool, said in record["planted"].items())
            runs[said].append(f"`{record['run_id']}`")
    return [f"\nBefore {' and '.join(names)} each tool had to find a fault that was planted for it: "
            f"{said}.\n" for said, names in runs.items()]


def reach_of(shapes, one_tile):
    """What these shapes can't show, having few tiles.

    one_tile: how many kernels with the dynamic schedule never ran where there are many
    """
    many = [f"`{shape}`" for shape in shapes if shape.startswith("many_heads")]
    if many:
        return ("Small shapes have few tiles. None of those above has more than an H200 has SMs, "
                f"but for {', '.join(many)}: there, a persistent kernel has several tiles, uses "
                "again what the first of them used, and its rings of several stages turn over"
                + (f" (but for {one_tile} instances with the dynamic schedule, which had one tile a "
                   "CTA at most)" if one_tile else "")
                + ". At the decoding shapes, where keys are many, rings turn over too.\n")
    return ("Small shapes have few tiles. None of those above has more than an H200 has SMs, so "
            "that a persistent kernel's second tile, and what it then uses again, ran under no "
            "tool (`many_heads…` are for that); and rings of several stages turn over at the "
            "decoding shapes alone, where keys are many. The checks of recorded cells reach both, "
            "the correctness tests in part. What racecheck says where they do: "
            "[0022](../decisions/0022-hopper-decode.md).\n")


def page_of(records, tree):
    """The page of all the records together; the newest is the first of them."""
    runs = [(record, of) for record in records for of in record["runs"]]
    tools = sorted({of["tool"] for _, of in runs}, key=TOOLS.index)
    shapes = list(dict.fromkeys(of["shape"] for _, of in runs))
    ran = collections.defaultdict(set)  # {(tool, shape): instances, with their code of today}
    for _, of in runs:
        ran[of["tool"], of["shape"]].update(name for name, code in of["pairs"]
                                            if tree.get(name) == code)
    # What was said of code that is gone stays in its record.
    found = [(record, of) for record, of in runs if of["findings"]
             and (not of["pairs"] or any(tree.get(name) == code for name, code in of["pairs"]))]
    with_findings = {(of["tool"], of["shape"]) for _, of in found}
    gone_shapes = [shape for shape in shapes
                   if not any(ran.get((tool, shape)) or (tool, shape) in with_findings
                              for tool in tools)]
    shapes = [shape for shape in shapes if shape not in gone_shapes]
    ran = {pair: names for pair, names in ran.items() if pair[1] not in gone_shapes}
    covered = coverage(records, tree)
    lacking = [name for name, clean in covered.items() if len(clean) < len(TOOLS)]
    codes = collections.defaultdict(set)
    for record in records:
        for name, code in record["instances"]:
            codes[name].add(code)
    out = ["# compute-sanitizer on every variant\n\n"]
    out.append(f"**{len(covered) - len(lacking)} of the {len(covered)} instances that this tree "
               f"compiles for this GPU ran clean under {', '.join(TOOLS[:-1])} and {TOOLS[-1]}, "
               f"with the machine code that they have in this tree; "
               f"{len(with_findings)} of {len(ran)} pairs of a tool and a shape have "
               f"findings, in {sum(map(count_checks, records))} checks, of which "
               f"{count_checks_of(records, tree)} ran that code.**\n\n"
               "A check launches an instance twice on a shape, between guard bands and into poisoned "
               "memory, under the tool, and compares the result with the FP64 reference. ")
    out.append("An instance is a variant compiled for a head dimension, a mask and a dtype. "
               "The table counts the instances that ran clean with the machine code that they have "
               "in this tree; bold: the instances that ran in a pair with findings.\n\n")
    out.append("| shape | " + " | ".join(tools) + " |\n|---" + "|--:" * len(tools) + "|\n")
    for shape in shapes:
        cells = []
        for tool in tools:
            count = str(len(ran[tool, shape])) if (tool, shape) in ran else "-"
            cells.append(f"**{count}**" if (tool, shape) in with_findings else count)
        out.append(f"| `{shape}` | " + " | ".join(cells) + " |\n")
    if gone_shapes:
        out.append("\nNothing of this tree's code ran at "
                   + ", ".join(f"`{shape}`" for shape in gone_shapes) + ".\n")
    if found:
        out.append("\n## Findings\n")
        for record, of in found:
            out.append(f"\n{of['tool']} on `{of['shape']}` in `{record['run_id']}`:\n\n```\n"
                       + "\n".join(of["findings"]) + "\n```\n")
    never = [name for name in lacking if name not in codes]
    changed = [name for name in lacking if name in codes and tree[name] not in codes[name]]
    others = [name for name in lacking if name in codes and tree[name] in codes[name]]
    gone = sorted(name for name in codes if name not in tree)
    out += ["\n## Runs\n\nThe newest first:\n\n", *map(line_of_run, records),
            *lines_of_plants(records),
            f"\nThe record of a run is its `{RECORD}` (schema: [RECORD.md](../RECORD.md)), made by "
            "`tests/sanitizers.py`.\n"]
    for title, which in (("Never run", never), ("Machine code changed since", changed),
                         ("Not clean under every tool", others),
                         ("Run, and no longer in this tree", gone)):
        if which:
            out.append(f"\n## {title}\n\n{code_list(which)}")
    out.append("\n## What the tools don't see\n\n"
               "memcheck sees accesses outside allocations and misaligned ones, initcheck reads of "
               "global memory that nobody wrote, synccheck barriers that not all threads reach, "
               "racecheck hazards in shared memory between accesses of threads. Writes of TMA by a "
               "tensor map, and reads of `wgmma`, belong to no thread, so racecheck does not see "
               "them (FlashAttention's AI/RACECHECK_TMA_HAZARD.md reports the same). These accesses "
               "are covered by the repeats of every check, which must give the same bits, and by the "
               "correctness tests.\n\n"
               + reach_of([shape for shape in shapes
                           if any(ran.get((tool, shape)) for tool in tools)],
                          len({name for name in tree if "+dynamic_schedule" in name}
                              - {name for (_, shape), names in ran.items()
                                 if shape.startswith("many_heads") for name in names})))
    return "".join(out)
