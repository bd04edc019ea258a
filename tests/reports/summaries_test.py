# SPDX-License-Identifier: Apache-2.0
"""Every record, a folder or a pack, gives the summary whose hash is committed, to the byte.

    summaries_test.py path/to/warpledger
"""

import hashlib
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reports"))
import record_files  # noqa: E402 (the path comes first)
import summaries  # noqa: E402

DATA = ROOT / "reports" / "data"
PROGRAM = ""


class SummariesTest(unittest.TestCase):
    def test_every_record_gives_the_summary_that_it_gave(self):
        committed = summaries.read(DATA)
        self.assertTrue(committed)
        computed = summaries.hashes(PROGRAM, DATA)
        self.assertEqual(sorted(committed), sorted(computed), "run reports/regenerate.py")
        differ = [name for name, digest in computed.items() if digest != committed[name]]
        self.assertEqual(differ, [], "if statistics were changed on purpose, run "
                         "reports/regenerate.py")

    def test_a_newest_folders_summary_is_the_one_of_the_table(self):
        committed = summaries.read(DATA)
        for records in record_files.runs(DATA).values():
            path = records[-1].path / "summary.json"
            if path.is_file():
                with self.subTest(path=str(path)):
                    self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(),
                                     committed[str(path.parent.relative_to(DATA))])


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
