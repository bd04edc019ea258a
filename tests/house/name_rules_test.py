# SPDX-License-Identifier: Apache-2.0
"""No prefix or ending of a name decides what a variant, a design or a claim is: the registry, the
design and the record say so in fields of their own."""

import re
import unittest

from fixture import ROOT

NAME = r"(?:arm|base|candidate|config|design|name|run\[1\]|toggle|variant)"
RULE = re.compile(
    rf"""(?:(?<!path\.)(?<!path\(\)\.)\b{NAME}(?:\[?["']?\]?|\(\))?\.(?:starts_with|ends_with|startswith|endswith)\()
       |(?:["']{NAME}["'](?:,\s*str)?[\])]\.(?:startswith|endswith)\()
       |(?:\b(?:StartsWith|EndsWith)\((?:Text\()?(?:\w+(?:\.|->))*{NAME}\b)""", re.VERBOSE)
FOLDERS = ("ablations", "kernels/sdpa", "plots", "reports")

# Lines that may ask how a name begins or ends, and why that decides nothing of the kind.
ALLOWED = {
    "ablations/base/files.cc": (1, "files of a folder"),
    "ablations/cli/archive/bundle.py": (1, "hidden files of a folder"),
    "ablations/cli/command.cc": (1, "flags of a command line"),
    "ablations/plan/job.h": (1, "floor: is a space of names beside the arms, by the record's format"),
    "ablations/cli/sdpa/ratchet.cc": (1, "since: is a formula, which the user writes"),
    "ablations/measure/controller.cc": (1, "peer: is a space of names beside the arms"),
    "ablations/record/record_lines.cc": (1, "peer: is a space of names beside the arms"),
    "ablations/subjects/host/listed_subject.cc": (2, "factorial: is a formula, which the user writes"),
    "ablations/subjects/study/study_subject.cc": (3, "since: is a formula, which the user writes"),
    "plots/calibration.py": (1, "a calibration's null arms; it judges no claim"),
    "plots/dtypes.py": (2, "colours of formats"),
    "plots/micro_curves.py": (1, "cases of a microbenchmark"),
    "plots/profile.py": (1, "counters"),
    "plots/summary.py": (1, "how much of two names a label repeats"),
    "reports/model/describe.cc": (1, "peer: is left out where a peer is named"),
    "reports/regenerate.py": (6, "study: is a space of names, which record_files.py puts there"),
}


def rules(text):
    return [line.strip() for line in text.splitlines() if RULE.search(line)]


class NameRules(unittest.TestCase):
    def test_finds_a_rule(self):
        for line in ('if (v.base.ends_with("(+dependents)")) {', 'design.name.starts_with("x")',
                     'if cell["variant"].endswith(MARK):', 'absl::StartsWith(arm.name, "hopper")',
                     'if not run[1].startswith("library_")'):
            self.assertEqual(rules(line), [line])
        self.assertEqual(rules('line.startswith("#")'), [])

    def test_no_affix_of_a_name_decides(self):
        found = {}
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix not in (".cc", ".cu", ".cuh", ".h", ".py"):
                    continue
                lines = rules(path.read_text(encoding="utf-8"))
                if lines:
                    found[path.relative_to(ROOT).as_posix()] = lines
        allowed = {path: count for path, (count, _) in ALLOWED.items()}
        self.assertEqual({path: len(lines) for path, lines in found.items()}, allowed, found)
