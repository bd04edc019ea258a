# SPDX-License-Identifier: Apache-2.0
"""Every record gives the summary whose hash is committed, to the byte.

    summaries_test.py path/to/warpledger
"""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "reports"))
import summaries  # noqa: E402 (the path comes first)

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

    def test_every_committed_record_is_a_pack(self):
        folders = [str(path.relative_to(ROOT)) for path in DATA.glob("*/*") if path.is_dir()]
        self.assertEqual(folders, [], "close them with `warpledger pack`")


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
