#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one page of all verdicts, to filter, sort and open down to the samples.

  build/bin/warpledger techniques --record=out/mine --out=out/pages --claims=out/claims.json
  reports/explorer/explorer.py --claims out/claims.json --record out/mine --out out/explorer.html

The page is one file without a server and without a network: explorer.html with the data in its
place. The same records give the same bytes. reports/regenerate.py makes reports/explorer.html of the
records that the other pages are of.

Exit codes: 0 done; 1 a file can't be read, or a claim's samples are in none of the records.
"""

import argparse
import collections
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reports"))
import record_files  # noqa: E402 (the path comes first)
from plots import json_text, whole_file  # noqa: E402

TEMPLATE = pathlib.Path(__file__).with_name("explorer.html")
PLACE = "/* data */"
# Ratios are kept as whole parts of this size, a tenth of the smallest effect that counts: the claim's
# own ratio is near all of them, so what they have more or less than it takes few digits.
RATIO_PARTS = 10_000
# Their reason says in words what interval, level, gate and times in their columns say.
DECIDED = ("ADOPT", "NEUTRAL", "REAL_BELOW_GATE", "REGRESSION")


def timings(record):
    """{(problem, arm): {(process, block): (microseconds, SM clock or None)}}"""
    found = collections.defaultdict(dict)
    for sample in record.lines("samples.jsonl"):
        found[sample["shape"], sample["arm"]][sample["process"], sample["block"]] = (
            sample["us"], sample.get("sm_mhz"))
    return found


def ratios(claim, times):
    """A list per process: of each pair that the verdict is of, the parts by which its ratio is above
    the claim's, or above 1 where the claim has none. Of times, or of cycles, as the verdict is."""
    base = times[claim["problem_in_record"], claim["base"]]
    candidate = times[claim["problem_in_record"], claim["candidate"]]
    # Pairs of processes behind the interim analysis that ended a run come last.
    pairs = sorted(base.keys() & candidate.keys())[:claim["n_pairs"]]
    if len(pairs) < claim["n_pairs"]:
        raise record_files.RecordError(
            f"{claim['record']} has {len(pairs)} pairs of {claim['candidate']} on "
            f"{claim['problem']}, and the verdict is of {claim['n_pairs']}")

    def cost(us, sm_mhz):
        return us * sm_mhz if claim["estimand"] == "cycles" else us

    # The page's script computes the same.
    claimed = math.floor((1 if claim["ratio"] is None else claim["ratio"]) * RATIO_PARTS)
    of_process = collections.defaultdict(list)
    for pair in pairs:
        of_process[pair[0]].append(
            round(cost(*base[pair]) / cost(*candidate[pair]) * RATIO_PARTS) - claimed)
    return list(of_process.values())


def shortened(claim):
    """Its figures with five digits, a tenth of what pages show and a part of RATIO_PARTS, and no reason
    that its columns state."""
    short = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in claim.items()}
    return short | ({"reason": ""} if claim["verdict"] in DECIDED else {})


def packed(claims):
    """The cells by column, in which a text stands once and is a number wherever it recurs."""
    texts = {}

    def value(cell):
        return texts.setdefault(cell, len(texts)) if isinstance(cell, str) else cell

    names = dict.fromkeys(key for claim in claims for key in claim)
    columns = {name: [value(claim.get(name)) for claim in claims] for name in names}
    text_columns = [name for name in names if any(isinstance(claim.get(name), str) for claim in claims)]
    return {"columns": columns, "text_columns": text_columns, "texts": list(texts)}


def page(claims, records):
    """The page's text. claims: rows of `warpledger techniques --claims`; records: theirs."""
    by_name = {record.name: record for record in records}
    times_of, rows = {}, []
    for claim in map(shortened, claims):
        name = claim["record"]
        if name not in by_name:
            raise record_files.RecordError(f"{name} is not among the records: no samples of it")
        if name not in times_of:
            times_of[name] = timings(by_name[name])
        shown = {key: value for key, value in claim.items() if key != "problem_in_record"}
        rows.append(shown | {"samples": ratios(claim, times_of[name])})
    data = json.dumps(packed(rows), ensure_ascii=False, separators=(",", ":"))
    before, after = TEMPLATE.read_text(encoding="utf-8").split(PLACE)
    return before + data.replace("</", "<\\/") + after


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--claims", type=pathlib.Path, action="append", required=True,
                        help="what `warpledger techniques --claims` wrote; may be repeated")
    parser.add_argument("--record", type=pathlib.Path, action="append", required=True,
                        help="a record that the claims are of; may be repeated")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the page")
    options = parser.parse_args()
    try:
        claims = [claim for file in options.claims
                  for claim in json_text.loads(file.read_bytes())]
        records = [record_files.open_record(path) for path in options.record]
        whole_file.replace(options.out, page(claims, records))
    except (OSError, record_files.RecordError) as error:
        print(f"explorer.py: {error}", file=sys.stderr)
        return 1
    except json_text.DAMAGE as error:
        print(f"explorer.py: the claims or samples can't be read: {json_text.said(error)}",
              file=sys.stderr)
        return 1
    print(f"{options.out}: {len(claims)} verdicts")
    return 0


if __name__ == "__main__":
    sys.exit(main())
