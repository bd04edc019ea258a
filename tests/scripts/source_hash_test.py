# SPDX-License-Identifier: Apache-2.0
"""cmake/source_hash.cmake: the hash of sources is that of their code, wherever it lies."""

import re

from fixture import ROOT, FolderTest

LINE = "SPDX-License-Identifier: Apache-2.0"
# What CMake's own lists and references could stumble over.
SOURCE = '// A head; with [brackets] and ${x} and @y@.\n\nint a[2];  // "a\\nb" \\\n\nint b;\n'


class SourceHash(FolderTest):
    def hash_of(self, *texts, former="", suffix=".cc"):
        named = " ".join(f'"{self.write(f"source{i}{suffix}", text)}"'
                         for i, text in enumerate(texts))
        self.write("former.txt", f"# head\n{former}")
        script = self.write("call.cmake", f"""
cmake_minimum_required(VERSION 3.25)
include("{ROOT}/cmake/source_hash.cmake")
set(WARPLEDGER_FORMER_HASHES "{self.path}/former.txt")
warpledger_source_hash(found {named})
message(STATUS "${{found}}")
""")
        return re.search(r"[0-9a-f]{64}", self.call("cmake", "-P", script).stdout).group()

    def test_is_the_same_for_the_same_code(self):
        same = (f"// {LINE}\n{SOURCE}", SOURCE.replace("A head", "Another one"),
                f'#include "a/b.h"\n{SOURCE}', SOURCE.replace("\n\n", "\n"),
                f"#ifndef WARPLEDGER_A_B_H_\n#define WARPLEDGER_A_B_H_\n{SOURCE}")
        for text in same:
            with self.subTest(text):
                self.assertEqual(self.hash_of(text), self.hash_of(SOURCE))

    def test_is_the_same_for_each_way_to_include_a_header_once(self):
        guard = "WARPLEDGER_A_B_H_"
        self.assertEqual(self.hash_of(f"// Head.\n#pragma once\n\n{SOURCE}"),
                         self.hash_of(f"#ifndef {guard}\n#define {guard}\n{SOURCE}\n#endif  // {guard}\n"))

    def test_does_not_ask_where_a_file_lies(self):
        self.assertEqual(self.hash_of("int a;", "int b;"), self.hash_of("int b;", "int a;"))

    def test_changes_with_the_code(self):
        others = (SOURCE.replace("a[2]", "a[3]"), SOURCE + "int c;\n",
                  SOURCE.replace("int b", "#define B 1\nint b"), SOURCE.replace("int b", "intb"))
        self.assertEqual(len({self.hash_of(text) for text in (*others, SOURCE)}), len(others) + 1)
        self.assertNotEqual(self.hash_of("int a;"), self.hash_of("int a;", "int a;"))
        # A division of Python's is no comment.
        self.assertNotEqual(self.hash_of("a = b // 2", suffix=".py"),
                            self.hash_of("a = b // 3", suffix=".py"))

    def test_is_the_former_one_where_a_line_says_that_it_means_the_same(self):
        line = f"{self.hash_of(SOURCE)} {'ab' * 32} moved\n"
        self.assertEqual(self.hash_of(SOURCE, former=line), "ab" * 32)
        self.assertNotEqual(self.hash_of(SOURCE + "int c;", former=line), "ab" * 32)

    def test_is_what_every_hash_of_the_sources_is_made_of(self):
        text = "".join((ROOT / folder / "CMakeLists.txt").read_text(encoding="utf-8")
                       for folder in ("kernels/sdpa", "ablations"))
        self.assertEqual(re.findall(r"file\((?:SHA256|READ)\b.*", text), [])
        self.assertEqual(len(re.findall(r"warpledger_source_(?:text|hash)\(", text)), 3)
