# SPDX-License-Identifier: Apache-2.0
"""This build's kernels need no more resources than those of the newest record.

Skips where another compiler, or other flags, made the record's kernels: those
give other resources from the same source. A growth that is wanted is waived, by
name and with a reason, in kernels/sdpa/ratchet_waivers.txt.

    ratchet_record_test.py path/to/warpledger
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import record_files
from fixture import ROOT

WAIVERS = ROOT / "kernels" / "sdpa" / "ratchet_waivers.txt"
PROGRAM = ""
HOLDS, GREW = 0, 1


def newest_record():
    """The recorded run of this build's kernels with the latest created_utc, or None."""
    runs = [records[-1]
            for (_, question, _), records in record_files.runs(ROOT / "reports" / "data").items()
            if not question.startswith(record_files.STUDY) and "resources.json" in records[-1]]
    return max(runs, key=lambda record: record.json("run.json")["created_utc"], default=None)


def ratchet(baseline, *flags):
    """(exit code, what it prints as JSON)."""
    done = subprocess.run([PROGRAM, "ratchet", f"--baseline={baseline}", "--format=json", *flags],
                          capture_output=True, text=True, check=False, timeout=120)
    if not done.stdout:
        sys.exit(f"{PROGRAM} ratchet: exit code {done.returncode}: {done.stderr}")
    return done.returncode, json.loads(done.stdout)


class RatchetTest(unittest.TestCase):
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
        with tempfile.TemporaryDirectory() as folder:
            planted = pathlib.Path(folder) / "resources.json"
            planted.write_text(json.dumps(resources), encoding="utf-8")
            code, result = ratchet(planted)
        self.assertEqual(code, GREW)
        self.assertEqual({change["resource"] for change in result["grew"]}, {"registers"})
        self.assertEqual(len(result["grew"]), result["compared"])


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    RECORD = newest_record()
    if RECORD is None:
        print("SKIPPED: no record under reports/data holds resources")
        sys.exit(77)
    if note := ratchet(RECORD.path)[1]["toolchain_note"]:
        print(f"SKIPPED: {note}")
        sys.exit(77)
    unittest.main()
