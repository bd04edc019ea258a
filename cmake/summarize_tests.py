#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Says what a ctest run amounts to: passed, failed, skipped and why, left out.

Reads ctest's JUnit file and the log of the configure step. Exits with 1 when
there was no test at all: a run that tested nothing must not look like a success.
"""

import argparse
import collections
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case):
    """The line in which the test says why it skipped itself."""
    output = case.findtext("system-out") or ""
    match = re.search(r"^SKIPPED: (.*)$", output, re.MULTILINE)
    if match:
        return match.group(1).strip()
    skipped = case.find("skipped")
    return skipped.get("message", "no reason given") if skipped is not None else "no reason given"


def summarize(junit_text, configure_log):
    """Returns (lines, number of tests, skipped ones among them)."""
    passed, failed = [], []
    skipped = collections.defaultdict(list)
    for case in ElementTree.fromstring(junit_text).iter("testcase"):
        status = case.get("status")
        if status == "run" and case.find("failure") is None:
            passed.append(case.get("name"))
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            skipped[skip_reason(case)].append(case.get("name"))
        else:
            failed.append(case.get("name"))
    count = sum(len(names) for names in skipped.values())
    lines = [f"Tests: {len(passed)} passed, {len(failed)} failed, {count} skipped"]
    if failed:
        lines.append(f"  failed: {', '.join(sorted(failed))}")
    for reason, names in sorted(skipped.items()):
        lines.append(f"  skipped ({reason}): {', '.join(sorted(names))}")
    for line in configure_log.splitlines():
        text = re.sub(r"^-- +", "", line)
        if text.startswith(("no nvcc:", "no Google Benchmark:", "tests left out:")):
            lines.append(f"  {text}")
    if count and not passed and not failed:
        lines.append("  nothing was tested: every test skipped itself")
    return lines, len(passed) + len(failed) + count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--junit", required=True)
    parser.add_argument("--configure-log", required=True)
    args = parser.parse_args()
    try:
        with open(args.configure_log, encoding="utf-8") as log, \
                open(args.junit, encoding="utf-8") as junit:
            lines, tests = summarize(junit.read(), log.read())
    except (OSError, ElementTree.ParseError, UnicodeDecodeError) as error:
        print(f"No test results: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines))
    if tests == 0:
        print("No test ran.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
