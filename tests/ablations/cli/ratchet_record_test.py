# SPDX-License-Identifier: Apache-2.0
"""This build's kernels need no more resources than those of the newest record.

Skips where another compiler, or other flags, made the record's kernels: those
give other resources from the same source. A growth that is wanted is waived, by
name and with a reason, in kernels/sdpa/ratchet_waivers.txt.
"""

import json
import sys

import record_files
from fixture import ROOT, FolderTest, skip, warpledger

WAIVERS = ROOT / "kernels" / "sdpa" / "ratchet_waivers.txt"
HOLDS, GREW = 0, 1


def newest_record():
    """The recorded run of this build's kernels with the latest created_utc, or None."""
    runs = [records[-1]
            for (_, question, _), records in record_files.runs(ROOT / "reports" / "data").items()
            if not question.startswith(record_files.STUDY) and "resources.json" in records[-1]]
    return max(runs, key=lambda record: record.json("run.json")["created_utc"], default=None)


def ratchet(baseline, *flags):
    """(exit code, what it prints as JSON)."""
    done = warpledger("ratchet", f"--baseline={baseline}", "--format=json", *flags, timeout=120)
    if not done.stdout:
        sys.exit(f"warpledger ratchet: exit code {done.returncode}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


RECORD = newest_record()
if RECORD is None:
    skip("no record under reports/data holds resources")
if note := ratchet(RECORD.path)[1]["toolchain_note"]:
    skip(note)


class RatchetTest(FolderTest):
    def test_this_build_needs_no_more_than_the_newest_record(self):
        flags = [f"--waivers={WAIVERS}"] if WAIVERS.exists() else []
        code, result = ratchet(RECORD.path, *flags)
        self.assertEqual(code, HOLDS, json.dumps(
            {"grew": result["grew"], "gone": result["gone"]}, indent=1))
        self.assertGreater(result["compared"], 0)

    def test_growth_over_a_baseline_of_one_register_is_found_in_every_kernel(self):
        resources = RECORD.json("resources.json")
        for instance in resources["instances"]:
            instance["registers"] = 1
        code, result = ratchet(self.write("resources.json", json.dumps(resources)))
        self.assertEqual(code, GREW)
        self.assertEqual({change["resource"] for change in result["grew"]}, {"registers"})
        self.assertEqual(len(result["grew"]), result["compared"])
