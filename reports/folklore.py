# SPDX-License-Identifier: Apache-2.0
"""The page that ranks what CUDA courses say: studies of ablations/studies, as their records judged them.

    claims = folklore.claims_of(run, summary, "folklore/reduction/ladder.md")   # of each study
    text = folklore.page("NVIDIA H200", claims)
    readme = folklore.renewed(readme, folklore.section(claims, "reports/h200/folklore.md"))

A claim's outcome follows from its verdicts at all problems of the study. A surprise is a ratio
outside the range that was predicted for it; the greatest is furthest outside, as a factor.
"""

import collections
import dataclasses
import math

PAGE = "folklore.md"
SURPRISES = 3
BEGIN, END = (f"<!-- generated:folklore {where} -->" for where in ("begin", "end"))

# Outcome: (title, what it means), in the page's order.
OUTCOMES = {
    "held": ("Held", "The interval lies above the gate at every problem."),
    "depends": ("Depends on the problem", "The claim meets its gate at some problems, but not at others."),
    "small": ("A gain below the gate", "Faster at some problem, but never by as much as the gate asks."),
    "history": ("No gain", "No problem shows a gain: the effect is within 1%, or the kernel is slower."),
    "no_code": ("No change in the code", "The compiler makes the same machine code without the technique."),
    "wrong": ("Wrong", "Results are wrong at some problem."),
    "open": ("Not decided", "The samples don't decide."),
}


@dataclasses.dataclass
class Claim:
    study: str
    link: str  # to the study's page
    id: str
    label: str
    source: dict
    prediction: dict
    verdicts: list  # of the summary, one for each problem

    @property
    def outcome(self):
        kinds = {verdict["verdict"] for verdict in self.verdicts}
        if "BROKEN" in kinds:
            return "wrong"
        if kinds == {"INVALID"}:
            same = all("machine code" in verdict["reason"] for verdict in self.verdicts)
            return "no_code" if same else "open"
        if "ADOPT" in kinds:
            return "held" if kinds == {"ADOPT"} else "depends"
        if "REAL_BELOW_GATE" in kinds:
            return "small"
        return "history" if kinds & {"NEUTRAL", "REGRESSION"} else "open"

    @property
    def foreseen(self):
        """The verdict that the prediction speaks of; None where there is none."""
        of_it = [verdict for verdict in self.verdicts
                 if verdict["shape"] == self.prediction.get("problem")]
        ranked = of_it and of_it[0]["verdict"] not in ("BROKEN", "INVALID")
        return of_it[0] if ranked else None

    @property
    def miss(self):
        """How far the interval lies outside of the predicted range: log of a factor, 0 within."""
        verdict = self.foreseen
        if verdict is None:
            return 0
        return max(0, math.log(verdict["ci_low"] / self.prediction["high"]),
                   math.log(self.prediction["low"] / verdict["ci_high"]))

    @property
    def mean(self):
        logs = [math.log(verdict["ratio"]) for verdict in self.verdicts if verdict["ratio"]]
        return math.fsum(logs) / len(logs) if logs else 0


def claims_of(run, summary, link):
    study = run["definition"]["study"]
    verdicts = collections.defaultdict(list)
    for verdict in summary["verdicts"]:
        verdicts[verdict["toggle"]].append(verdict)
    return [Claim(study["name"], link, claim["id"], claim["label"], claim["source"],
                  claim.get("prediction", {}), verdicts[claim["id"]])
            for claim in study["claim"] if "source" in claim and verdicts[claim["id"]]]


def number(value):
    """With three digits, so that an estimate has as many as its interval."""
    return f"{value:#.3g}".rstrip(".")


def interval(verdict):
    return f"{number(verdict['ratio'])}× [{number(verdict['ci_low'])}, {number(verdict['ci_high'])}]"


def measured(verdict):
    if verdict["verdict"] == "BROKEN" or not verdict["ratio"]:
        return f"**{verdict['verdict']}** at `{verdict['shape']}`"
    return f"{interval(verdict)} **{verdict['verdict']}** at `{verdict['shape']}`"


def predicted(claim):
    given = claim.prediction
    if not given:
        return "–"
    text = f"{given['low']:.3g} to {given['high']:.3g} at `{given['problem']}`"
    if claim.foreseen is None:
        return text
    if claim.miss == 0:
        return f"{text}: held"
    return f"{text}: measured {'more' if claim.foreseen['ratio'] > given['high'] else 'less'}"


def surprises(claims):
    return sorted((claim for claim in claims if claim.miss > 0), key=lambda claim: -claim.miss)[:SURPRISES]


def surprise(claim, link):
    given, verdict = claim.prediction, claim.foreseen
    why = f" (“{given['why'].rstrip('.')}”)" if given.get("why") else ""
    return (f"**{claim.label}** ([{claim.study}]({link})): predicted {given['low']:.3g}× to "
            f"{given['high']:.3g}×{why}, measured {interval(verdict)} at `{verdict['shape']}`")


def counted(claims):
    """As "3 held at every problem, 2 at some only"."""
    counts = collections.Counter(claim.outcome for claim in claims)
    words = {"held": "held at every problem", "depends": "held at some problems only",
             "small": "gained less than their gate", "history": "gained nothing",
             "no_code": "changed no machine code", "wrong": "gave wrong results",
             "open": "were not decided"}
    slower = sum(claim.outcome == "small" and any(verdict["verdict"] == "REGRESSION"
                                                  for verdict in claim.verdicts) for claim in claims)
    if slower:
        words["small"] += f" ({slower} of them slower at another problem)"
    return ", ".join(f"{counts[outcome]} {words[outcome]}" for outcome in OUTCOMES if counts[outcome])


def page(gpu, claims):
    foreseen = [claim for claim in claims if claim.foreseen is not None]
    lines = [
        f"# Folklore on trial on {gpu}", "",
        f"This page judges {len(claims)} claims that CUDA courses repeat, from "
        f"{len({claim.study for claim in claims})} [studies](../../ablations/studies/README.md): "
        f"{counted(claims)}. {sum(claim.miss == 0 for claim in foreseen)} of {len(foreseen)} predictions, "
        "written before the first run, agree with the measured interval.", "",
        "A ratio is time(without) / time(with): above 1 is faster. The baseline of a claim is the study's "
        "kernel with the steps before it, but without the claim. Intervals are for the board that was measured; "
        "another board can differ. They are adjusted within each claim, over its problems (false coverage rate). "
        "`reports/regenerate.py` writes this page from the records.", ""]
    if found := surprises(claims):
        lines += ["## The largest surprises", "",
                  *(f"{i}. {surprise(claim, claim.link)}." for i, claim in enumerate(found, 1)), ""]
    for outcome, (title, meaning) in OUTCOMES.items():
        those = sorted((claim for claim in claims if claim.outcome == outcome), key=lambda claim: -claim.mean)
        if not those:
            continue
        lines += [f"## {title}: {len(those)}", "", meaning, "",
                  "| claim | study | source | measured, time(without) / time(with) | predicted |",
                  "| :--- | :--- | :--- | :--- | :--- |"]
        for claim in those:
            said = f"[{claim.source['name']}]({claim.source['link']})"
            lines.append(f"| {claim.label} | [{claim.study}]({claim.link}) | {said} | "
                         f"{'<br>'.join(map(measured, claim.verdicts))} | {predicted(claim)} |")
        lines.append("")
    return "\n".join(lines)


def section(claims, link):
    """A README's, on one line: the answer, and what surprised most."""
    folder = link.rpartition("/")[0]
    text = (f"[**Folklore on trial**]({link}): of {len(claims)} claims that CUDA courses repeat, "
            f"{counted(claims)}.")
    if found := surprises(claims):
        text += " The largest surprises (intervals are for the measured board): " + "; ".join(
            surprise(claim, f"{folder}/{claim.link}") for claim in found) + "."
    return text


def renewed(page, text, begins=BEGIN, ends=END):
    """The page with the section replaced. ValueError: it has none."""
    before, begin, rest = page.partition(begins)
    _, end, after = rest.partition(ends)
    if not begin or not end:
        raise ValueError(f"no {begins} … {ends}")
    return f"{before}{begin}{text}{end}{after}"
