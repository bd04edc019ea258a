# SPDX-License-Identifier: Apache-2.0
"""cmake/source_hash.cmake: a licence line leaves the hash of a source as it is."""

import hashlib
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINE = "SPDX-License-Identifier: Apache-2.0"
# What CMake's own lists and references could stumble over.
SOURCE = '// A head; with [brackets] and ${x} and @y@.\n\nint a[2];  // "a\\nb" \\\n\nint b;\n'


class SourceHash(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def hash_of(self, text):
        source, script = self.folder / "source.cc", self.folder / "call.cmake"
        source.write_text(text, encoding="utf-8")
        script.write_text("cmake_minimum_required(VERSION 3.25)\n"
                          f'include("{ROOT}/cmake/source_hash.cmake")\n'
                          f'warpledger_source_sha256(found "{source}")\n'
                          'message(STATUS "${found}")\n', encoding="utf-8")
        done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
        return re.search(r"[0-9a-f]{64}", done.stdout).group()

    def test_is_that_of_the_bytes_where_there_is_no_licence_line(self):
        self.assertEqual(self.hash_of(SOURCE), hashlib.sha256(SOURCE.encode()).hexdigest())

    def test_is_the_same_with_and_without_a_licence_line(self):
        for text, licensed in ((SOURCE, f"// {LINE}\n{SOURCE}"),
                               (f"#!/bin/sh\n{SOURCE}", f"#!/bin/sh\n# {LINE}\n{SOURCE}")):
            with self.subTest(licensed):
                self.assertEqual(self.hash_of(licensed), self.hash_of(text))

    def test_changes_with_any_other_line(self):
        self.assertNotEqual(self.hash_of(f"// {LINE}\n\n{SOURCE}"), self.hash_of(SOURCE))
        self.assertNotEqual(self.hash_of(f"// Licence: Apache-2.0\n{SOURCE}"),
                            self.hash_of(SOURCE))

    def test_is_what_every_hash_of_the_sources_is_made_of(self):
        text = (ROOT / "kernels/CMakeLists.txt").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"file\((?:SHA256|READ)\b.*", text), [])
        self.assertEqual(len(re.findall(r"warpledger_source_(?:text|sha256)\(", text)), 3)


if __name__ == "__main__":
    unittest.main()
