# SPDX-License-Identifier: Apache-2.0
"""plots/whole_file.py: a file is replaced whole, and nothing stays beside it."""

import os
import pathlib
import subprocess
from unittest import mock

from fixture import FolderTest

from plots import whole_file


class WholeFileTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.page = self.path / "page.md"

    def names(self):
        return {path.name for path in self.path.iterdir()}

    def test_replaces_text_and_bytes_and_keeps_the_mode(self):
        whole_file.replace(self.page, "ä")
        self.page.chmod(0o600)
        whole_file.replace(self.page, b"b")
        self.assertEqual((self.page.read_bytes(), self.page.stat().st_mode & 0o777), (b"b", 0o600))
        self.assertEqual(self.names(), {"page.md"})

    def test_writes_behind_a_link_and_into_a_device(self):
        self.page.symlink_to("target.md")
        whole_file.replace(self.page, "text")
        self.assertTrue(self.page.is_symlink())
        self.assertEqual((self.path / "target.md").read_text(), "text")
        whole_file.replace("/dev/null", "text")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())

    def test_what_fails_leaves_the_old_file_and_nothing_else(self):
        whole_file.replace(self.page, "old")
        for call in "write_bytes", "replace":
            with mock.patch.object(pathlib.Path, call, side_effect=OSError("the disk is full")), \
                    self.assertRaisesRegex(OSError, "full"):
                whole_file.replace(self.page, "new")
            self.assertEqual((self.page.read_text(), self.names()), ("old", {"page.md"}))

    def test_removes_what_a_killed_writer_of_the_same_file_left(self):
        killed = subprocess.Popen(["true"])
        killed.wait()
        kept = {f"page.md.tmp.{os.getpid()}.9", f"other.md.tmp.{killed.pid}.0",
                f"page.md.tmp.{killed.pid}.old", f"page.md.tmp.{killed.pid}", "page.md.tmp.9"}
        for name in kept | {f"page.md.tmp.{killed.pid}.0", f"page.md.tmp.{killed.pid}.12"}:
            self.write(name, "half")
        whole_file.replace(self.page, "whole")
        self.assertEqual(self.names(), kept | {"page.md"})
