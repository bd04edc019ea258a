"""What is committed equals what the committed records give, to the byte.

For the newest record of each GPU under reports/data: its summary.json, the
report and pictures under reports/<gpu>, and for the newest of all the generated
section of README.md.

    fresh_test.py path/to/warpledger
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ""


def newest_records():
    """{gpu slug: (created_utc, folder)} of the newest record of each GPU."""
    newest = {}
    for run in (ROOT / "reports" / "data").glob("*/*/run.json"):
        entry = (json.loads(run.read_text(encoding="utf-8"))["created_utc"], run.parent)
        gpu = run.parent.parent.name
        newest[gpu] = max(newest.get(gpu, entry), entry)
    return newest


class FreshTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)

    def call(self, *arguments):
        done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, cwd=ROOT,
                              timeout=280, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def assert_same(self, made, committed):
        self.assertTrue(committed.exists(), f"{committed} is not committed")
        self.assertEqual(made.read_bytes(), committed.read_bytes(),
                         f"{committed.relative_to(ROOT)} is not what its record gives")

    def test_there_is_a_record(self):
        self.assertTrue(newest_records(), "no record under reports/data")

    def test_summaries_reports_and_pictures_are_what_the_records_give(self):
        for gpu, (_, record) in newest_records().items():
            with self.subTest(gpu=gpu):
                out = self.out / gpu
                out.mkdir()
                self.call("judge", f"--record={record}", f"--out={out}/summary.json")
                self.assert_same(out / "summary.json", record / "summary.json")
                (out / "summary.json").unlink()
                self.call("report", f"--record={record}", f"--out={out}",
                          f"--python={sys.executable}")
                made = sorted(path.name for path in out.iterdir())
                committed = ROOT / "reports" / gpu
                self.assertIn("ladder.md", made)
                self.assertTrue(any(name.endswith(".png") for name in made))
                self.assertEqual(made, sorted(path.name for path in committed.iterdir()))
                for name in made:
                    self.assert_same(out / name, committed / name)

    def test_the_readme_shows_the_newest_record(self):
        _, record = max(newest_records().values())
        gpu = record.parent.name
        readme = self.out / "README.md"
        shutil.copy(ROOT / "README.md", readme)
        self.call("report", f"--record={record.relative_to(ROOT)}", f"--out={self.out}", "--noplots",
                  f"--readme={readme}", f"--readme_pictures=reports/{gpu}")
        self.assert_same(readme, ROOT / "README.md")


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
