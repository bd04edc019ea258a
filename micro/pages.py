# SPDX-License-Identifier: Apache-2.0
"""The pages of a record of microbenchmarks in Markdown: one per question, and their index.

    pages = render(micro, cases, sources, figures=True)   # {"micro.md": text, "micro/wgmma.md": ..}

A page says what a benchmark asks and why (the head of its .cu file, the one home of that), what the
record answers (micro/answers.py), shows curve and table, holds the values against published figures
and says by which machine code they are proved. Same input, same text.
"""

import collections
import pathlib
import re

import answers
from plots.micro_data import number, spread_percent

# Above this, a difference from a published figure is spoken of.
NOTABLE_DIFFERENCE_PERCENT = 10.0
# Above this, the cause of a spread between processes is named.
NOTABLE_SPREAD_PERCENT = 2.0
NOTE = "<!-- Written by micro/record.py; edit the benchmarks, not this file. -->"
NOT_EXPLAINED = "Not explained yet"
# "Published" figures of this source are predictions of our own.
OWN_MODELS = "bank model"

SIGNS = {">=": "≥", "<=": "≤", "=": "="}

# What a .cu file's head says, by the word that opens the paragraph.
_SECTIONS = ("Question", "Mechanism", "Formula", "Expected", "Falsified")
_SYNONYMS = {"Falsifier": "Falsified"}
# Observations of other runs: a page speaks of its record alone, so it leaves them out.
_UNQUOTED = "Seen"
# Figures by benchmark; a figure is shown where plots/micro_render.py draws it from the record.
FIGURES = {
    "cp_async_depth": [("cp_async_depth", "Bandwidth against bytes in flight")],
    "exp_cost": [("exp_pareto", "Accuracy against throughput of exponentials")],
    "global_memory": [("memory_hierarchy", "Bandwidth and latency by footprint")],
    "overlap": [("overlap_matrix", "What a tensor-core product hides")],
    "warp_reduction": [("reduction_costs", "Cycles per row by rows at once")],
    "wgmma": [("wgmma_widths", "wgmma's rate by its width N")],
    "xor_swizzle": [("bank_conflict_slope", "Cycles per load by wavefronts"),
                    ("swizzle_dilution", "Cycles per load by arithmetic per load")],
}


# --- The head of a file ---------------------------------------------------------


def head_of(source):
    """{section: text} of the comment that opens a benchmark's file, its lines joined.

    A section opens with its word at the start of a line, up to a colon: "Question: .." or
    "Expected on H200: ..". It ends with the next one or with an empty comment line.
    """
    sections, current = {}, None
    for line in source.split("\n"):
        if not line.startswith("//"):
            break
        text = line[2:].strip()
        opened = re.match(r"(\w+)( [^:]*)?: *(.*)", text)
        word = _SYNONYMS.get(opened[1], opened[1]) if opened else None
        if word == _UNQUOTED and opened[2]:
            current, text = None, ""
        elif word in _SECTIONS:
            # "Expected on H200": the words between belong to what is said.
            current, where = word, (opened[2] or "").strip()
            if current in sections:
                raise ValueError(f"the head has two paragraphs '{current}'")
            sections[current] = [f"({where})"] if where and word == "Expected" else []
            text = opened[3]
        if not text:
            current = None
        elif current:
            sections[current].append(text)
    return {word: " ".join(lines) for word, lines in sections.items() if lines}


def missing_sections(source):
    return [word for word in _SECTIONS if word not in head_of(source)]


def heads_in(folder):
    """{benchmark: (file, head)} of a folder; a .cuh is the head of the .cu files that share it."""
    heads = {}
    for path in sorted(pathlib.Path(folder).glob("*.cu*"), reverse=True):
        head = head_of(path.read_text(encoding="utf-8"))
        if "Question" in head:
            heads[path.stem] = path.name, head
    return heads


# --- Parts ---------------------------------------------------------------------


def percent(value):
    return "–" if value is None else f"{value:.1f}%"


def prose(text):
    """Plain text as Markdown: a sentence's first letter, and no mark-up by accident."""
    if re.match(r"[a-z]+[ ,:]", text):
        text = text[0].upper() + text[1:]
    # Every other part lies between backticks.
    parts = text.split("`")
    parts[::2] = [re.sub(r"([_*<])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def escaped(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(header, rows, right=()):
    """A Markdown table; columns named in `right` are aligned to the right."""
    lines = ["| " + " | ".join(header) + " |",
             "|" + "|".join(" ---: " if name in right else " :--- " for name in header) + "|"]
    return lines + ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in rows]


_NUMBERS = ("value", "of the limit", "of the measured peak", "R²", "spread", "ours", "theirs",
            "difference", "target", "measured", "cases", "at least", "95% interval")


def processes_spread(entry):
    return spread_percent([process["value"] for process in entry["by_process"]])


def results(entries):
    """The table of a benchmark's values."""
    peaks = any(entry["percent_of_peak"] is not None for entry in entries)
    limits = any(entry["percent_of_limit"] is not None for entry in entries)
    fits = any(entry["r2"] is not None for entry in entries)
    header = ["case", "value", "unit", "95% interval", "spread"]
    header += ["of the limit"] * limits + ["of the measured peak"] * peaks + ["R²"] * fits
    rows = []
    for entry in entries:
        bounds = "–"
        if entry["ci_low"] is not None:
            bounds = f"{number(entry['ci_low'])} … {number(entry['ci_high'])}"
        row = [entry["name"].partition("/")[2], number(entry["value"]), entry["unit"] or "–", bounds,
               percent(processes_spread(entry))]
        row += [percent(entry["percent_of_limit"])] * limits
        row += [percent(entry["percent_of_peak"])] * peaks
        row += ["–" if entry["r2"] is None else f"{entry['r2']:.5f}"] * fits
        rows.append(row)
    lines = table(header, rows, _NUMBERS)
    sources = sorted({entry["limit_source"] for entry in entries if entry["limit_source"]})
    if sources:
        lines += ["", "Limits: " + "; ".join(sources) + "."]
    return lines + [""]


def differences(micro, entries):
    """(rows of the table of published figures, a sentence for each notable difference)."""
    rows, sentences = [], collections.OrderedDict()
    for entry in entries:
        for published in entry["published"]:
            difference = published["difference_percent"]
            rows.append([entry["name"], number(entry["value"]), number(published["value"]),
                         entry["unit"] or "–",
                         "–" if difference is None else f"{difference:+.1f}%", published["source"]])
            if difference is None or abs(difference) <= NOTABLE_DIFFERENCE_PERCENT:
                continue
            side = "above" if difference > 0 else "below"
            why = (answers.explanation(micro, entry["name"], published["source"])
                   or published["why"] or NOT_EXPLAINED)
            # Cases that differ for the same reason share its sentence.
            sentences.setdefault((published["source"], why.rstrip(".")), []).append(
                f"`{entry['name']}` is {abs(difference):.0f}% {side}")
    return rows, [f"- {', '.join(cases)} {prose(source)}. {prose(why)}."
                  for (source, why), cases in sentences.items()]


def published(micro, entries, heading, models=True):
    """What others measured or promised; with `models`, what our own models predict as well."""
    rows, sentences = differences(micro, [
        entry if models else entry | {"published": [
            row for row in entry["published"] if not row["source"].startswith(OWN_MODELS)]}
        for entry in entries])
    if not rows:
        return []
    lines = [heading, ""]
    if not models:
        lines += ["Predictions of the suite's own bank model are on the pages of single benchmarks.", ""]
    lines += table(["case", "ours", "theirs", "unit", "difference", "source"], rows, _NUMBERS)
    if sentences:
        lines += ["", f"Where the two differ by more than {NOTABLE_DIFFERENCE_PERCENT:.0f}%:", ""]
        lines += sentences
    return lines + [""]


def spreads(entries, heading):
    """The cases whose processes lie further apart than is notable, with the cause."""
    measured = [entry for entry in entries if processes_spread(entry) is not None]
    wide = sorted(((processes_spread(entry), entry) for entry in measured
                   if processes_spread(entry) > NOTABLE_SPREAD_PERCENT), key=lambda row: -row[0])
    if not measured:
        return []
    lines = [heading, "", f"{len(measured) - len(wide)} of {len(measured)} cases give medians "
             f"within {NOTABLE_SPREAD_PERCENT:.0f}% of each other in all processes."]
    if wide:
        lines += ["The others:", ""]
        lines += table(["case", "spread", "medians by process", "cause"], [
            [entry["name"], percent(spread),
             " ".join(number(process["value"]) for process in entry["by_process"]),
             answers.spread_cause(entry)] for spread, entry in wide], _NUMBERS)
    return lines + [""]


def targets(micro):
    """The figures that were to be reached, and whether they were."""
    rows, reasons = [], []
    for target in answers.TARGETS:
        what, _, comparison, goal, _, why = target
        judged = answers.judge_target(micro, target)
        if judged is None:
            rows.append([what, f"{SIGNS[comparison]} {goal:g}", "–", "not measured", "–"])
            continue
        name, value, met = judged
        rows.append([what, f"{SIGNS[comparison]} {goal:g}", number(value), "met" if met else "**not met**",
                     name])
        if not met:
            reasons.append(f"- {what}: {prose((answers.fill(micro, why) or NOT_EXPLAINED).rstrip('.'))}.")
    lines = ["## Figures to reach", ""]
    lines += table(["figure", "target", "measured", "outcome", "case"], rows, _NUMBERS)
    return lines + ([""] + reasons if reasons else []) + [""]


def evidence(entries, cases):
    """By which machine code the values are proved: patterns, and how many cases hold to each."""
    counts = collections.Counter()
    for entry in entries:
        for row in cases.get(entry["name"], {}).get("evidence", ()):
            most = "" if row["at_most"] < 0 else f"at most {row['at_most']}"
            if row["at_least"] == 0 and row["at_most"] == 0:
                most = "absent"
            code = " ".join(f"{kind} `{row[key]}`" for kind, key in (("SASS", "sass"), ("PTX", "ptx"))
                            if row[key])
            counts[code, row["at_least"], most] += 1
    if not counts:
        return []
    lines = ["## Evidence", "",
             "The kernels' machine code must contain these patterns between the two clock reads, or "
             "anywhere if a kernel is timed from outside. tests/micro/micro_codegen_test.py checks "
             "each build.", ""]
    return lines + table(["pattern", "at least", "at most", "cases"], [
        [code, least or "–", most.removeprefix("at most ") or "–", count]
        for (code, least, most), count in counts.items()], _NUMBERS) + [""]


# --- Pages ---------------------------------------------------------------------


def shown_figures(benchmark, drawn):
    return [(name, title) for name, title in FIGURES.get(benchmark, ()) if name in drawn]


def page(micro, benchmark, entries, file_and_head, cases, drawn):
    file, head = file_and_head
    lines = [f"# {benchmark}", "", NOTE, ""]
    if "Question" in head:
        lines += [f"**Question.** {prose(head['Question'])}", ""]
    lines += ["**Answer.** " + prose(" ".join(answers.answer(micro, benchmark, entries))), "",
              f"On {micro.gpu['name']}, {micro.provenance['started'][:10]}; how it is measured: "
              "[all microbenchmarks](../micro.md).", ""]
    for name, title in shown_figures(benchmark, drawn):
        lines += [f"![{title}]({name}.svg)", ""]
    for word, title in (("Mechanism", "Mechanism"), ("Formula", "Formula"),
                        ("Expected", "Expected beforehand"), ("Falsified", "What would refute it")):
        if word in head:
            lines += [f"**{title}.** {prose(head[word])}", ""]
    lines += ["## Values", ""] + results(entries)
    lines += published(micro, entries, "## Against published figures")
    if any((processes_spread(entry) or 0) > NOTABLE_SPREAD_PERCENT for entry in entries):
        lines += spreads(entries, "## Spread between processes")
    lines += evidence(entries, cases)
    if file:
        lines += [f"Source: [micro/{file}](../../../micro/{file})."]
    return "\n".join(lines).rstrip("\n") + "\n"


def index(micro, groups, heads, drawn):
    gpu, provenance, entries = micro.gpu, micro.provenance, micro.entries
    clocks = [entry["sm_mhz_p50"] for entry in entries if entry["sm_mhz_p50"] is not None]
    throttled = sum(entry["throttled_samples"] for entry in entries)
    lines = [
        f"# Microbenchmarks on {gpu['name']}", "", NOTE, "",
        f"{len(entries)} cases, {provenance['n_samples']} samples from {provenance['processes']} "
        f"processes, started {provenance['started']}; {gpu['sm_count']} SMs, compute capability "
        f"{gpu['compute_capability']}, nvcc {provenance['nvcc']}. "
        + (f"SM clock {min(clocks):.0f} to {max(clocks):.0f} MHz by case; " if clocks else
           "The SM clock is unknown; ")
        + f"{throttled} samples were taken while the GPU was throttled.", "",
        "Latencies and throughputs are slopes of in-kernel cycles over several lengths of the timed "
        "loop; R² is that of the fit. An interval is Student's t at 95% on the processes' medians. "
        "The spread is the difference between the largest and the smallest of these medians.", "",
        "## Questions and answers", ""]
    for benchmark, group in groups.items():
        _, head = heads.get(benchmark, ("", {}))
        lines += [f"- **[{benchmark}](micro/{benchmark}.md)**: {prose(head.get('Question', ''))}".rstrip(": "),
                  f"  - {prose(answers.answer(micro, benchmark, group)[0])}"]
    lines += [""]
    for benchmark in groups:
        for name, title in shown_figures(benchmark, drawn):
            lines += [f"[![{title}](micro/{name}.svg)](micro/{benchmark}.md)", ""]
    lines += targets(micro)
    lines += published(micro, entries, "## Against published figures", models=False)
    lines += spreads(entries, "## Spread between processes")
    if micro.not_run:
        lines += ["## Not measured", ""]
        lines += table(["case", "reason"], [[row["name"], row["reason"]] for row in micro.not_run])
    return "\n".join(lines).rstrip("\n") + "\n"


def render(micro, cases, heads, drawn):
    """{path below the report's folder: text}. `cases`: of cases.json; `drawn`: names of figures."""
    by_name = {case["name"]: case for case in cases}
    groups = micro.benchmarks()
    out = {"micro.md": index(micro, groups, heads, drawn)}
    for benchmark, entries in groups.items():
        out[f"micro/{benchmark}.md"] = page(micro, benchmark, entries,
                                            heads.get(benchmark, ("", {})), by_name, drawn)
    return out
