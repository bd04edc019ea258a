# SPDX-License-Identifier: Apache-2.0
"""What a bundle takes in, and what its check refuses, part by part; bundle_test.py has the whole."""

import importlib
import os
import shutil
import signal
import sys
from unittest import mock

from fixture import ROOT, FolderTest

sys.path.insert(0, str(ROOT / "ablations/cli/archive"))
bundle = importlib.import_module("bundle")
bundle_replay = importlib.import_module("bundle_replay")


# Gets two signals, while it is at work or in the middle of tidying up.
STOPPED = """\
import os, signal, sys
import bundle_replay

def stopped(*arguments, unlink=os.unlink, **keywords):
    for number in signal.SIGINT, signal.SIGTERM:
        os.kill(os.getpid(), number)
    return unlink(*arguments, **keywords)

bundle_replay.stop_once()
with bundle_replay.scratch_folder() as folder:
    for name in "abc":
        (folder / name).touch()
    os.unlink = stopped
    if sys.argv[1] == "inside":
        os.unlink(folder / "a")
"""


class BundlePartsTest(FolderTest):
    def copied(self):
        bundle.copy_records([self.path / "record"], self.path / "data")
        return {path.name for path in (self.path / "data").rglob("*") if path.is_file()}

    def test_what_a_killed_program_left_stays_out(self):
        for name in "run.json", "summary.json.tmp.123.0", ".lock":
            self.write(f"record/{name}", "{}")
        self.assertEqual(self.copied(), {"run.json"})

    def test_links_and_pipes_are_refused_by_name(self):
        self.write("record/run.json", "{}")
        for make in (lambda path: path.symlink_to("/etc/passwd"), lambda path: path.symlink_to("/etc"),
                     os.mkfifo):
            odd = self.path / "record/odd"
            make(odd)
            with self.assertRaisesRegex(bundle.BundleError, "record/odd: no regular file"):
                self.copied()
            self.assertEqual(list((self.path / "data").rglob("odd")), [])
            odd.unlink()
            shutil.rmtree(self.path / "data")

    def test_a_tarball_that_fits_on_no_disk_leaves_nothing(self):
        self.write("folder/file", "x")
        (self.path / "out.tar.gz").mkdir()  # which no file can replace
        with self.assertRaises(OSError):
            bundle.write_tarball(self.path / "folder", "name", self.path / "out.tar.gz")
        self.assertEqual({path.name for path in self.path.iterdir()}, {"folder", "out.tar.gz"})

    def test_its_scratch_folder_goes_whenever_signals_come(self):
        # The caller ends of the first, and its end sends the second.
        for where in "inside", "while the folder is removed":
            with self.subTest(where):
                (self.path / "tmp").mkdir(exist_ok=True)
                done = self.call(sys.executable, "-B", self.write("bundles.py", STOPPED), where,
                                 PYTHONPATH=str(ROOT / "ablations/cli/archive"),
                                 TMPDIR=str(self.path / "tmp"))
                self.ends(done, 128 + signal.SIGINT)
                self.assertEqual(list((self.path / "tmp").iterdir()), [])

    def test_its_scratch_folder_goes_where_a_dying_child_still_writes(self):
        rmdir, late = os.rmdir, []

        def meanwhile(path, **keywords):
            if not late:
                late.append(folder / "late")
                late[0].touch()
            return rmdir(path, **keywords)

        with mock.patch("os.rmdir", meanwhile), bundle_replay.scratch_folder() as folder:
            pass
        self.assertTrue(late)
        self.assertFalse(folder.exists())

    def test_a_linked_folder_is_unknown(self):
        self.write("bundle/file", "x")
        promised = {"files": {"file": {"sha256": bundle_replay.sha256(self.path / "bundle/file"),
                                       "bytes": 1}}}
        self.assertEqual(bundle_replay.damaged_files(self.path / "bundle", promised), [])
        (self.path / "bundle/extra").symlink_to("/etc")
        self.assertEqual(bundle_replay.damaged_files(self.path / "bundle", promised),
                         ["unknown: extra"])

    def test_commands_that_lead_elsewhere_are_refused(self):
        def command(run, calls=None):
            return {"run": run, "calls": calls or bundle_replay.calls_of(run)["run"]}
        self.assertEqual(bundle_replay.foreign_commands([command("ladder-1")]), [])
        for bad in (command("../../x"), command(".."), command("/x"), command("a/b"),
                    command("ladder-1", [["judge", "--record={data}/ladder-1", "--out=/x"]])):
            with self.subTest(bad):
                self.assertEqual(len(bundle_replay.foreign_commands([bad])), 1)
