# SPDX-License-Identifier: Apache-2.0
"""Variants of studies, compiled for the CPU."""

import json
import pathlib
import sys

from fixture import ROOT, FolderTest

FOLDER = ROOT / "ablations/subjects/study"
SOURCE = """
#include <warpledger/study.h>
#include "sizes.h"
extern "C" int warpledger_call(const WarpledgerCall* call) {
  ((float*)call->outputs[0])[0] = SIZE;
  return 0;
}
"""


class Build(FolderTest):
    def setUp(self):
        super().setUp()
        self.write("kernel.cc", SOURCE)
        self.write("sizes.h", "#ifdef LARGE\n#define SIZE 100\n#else\n#define SIZE 1\n#endif\n")

    def build(self, *variants, names=(), **environment):
        variants = [{"name": name, "define": define, "flags": ["-O2"], "sources": ["kernel.cc"]}
                    for name, *define in variants]
        request = {"folder": str(self.path), "cache": str(self.path / "cache"),
                   "include": str(FOLDER / "include"), "device": "cpu", "architectures": [],
                   "variants": variants, "names": names, "ptx": []}
        self.write("request", json.dumps(request))
        done = self.call("sh", "-c", f"{sys.executable} -B {FOLDER}/study_build.py < request",
                         **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def libraries(self):
        return sorted((path.name, path.stat().st_mtime_ns)
                      for path in (self.path / "cache/builds").glob("*/study.so"))

    def hashes(self, reply):
        return {row["variant"]: row["code_sha256"] for row in reply["codegen"]["instances"]}

    def test_definitions_that_reach_the_code_change_its_hash_and_others_do_not(self):
        hashes = self.hashes(self.build(("base",), ("large", "LARGE"), ("dead", "NOTHING")))
        self.assertNotEqual(hashes["base"], hashes["large"])
        self.assertEqual(hashes["base"], hashes["dead"])

    def test_a_set_of_definitions_is_built_once_until_a_file_changes(self):
        reply = self.build(("base",), ("same",), ("large", "LARGE"))
        before = self.libraries()
        self.assertEqual(len(before), 2)
        self.assertEqual(reply["variants"][0]["library"], reply["variants"][1]["library"])
        self.build(("base",), ("large", "LARGE"))
        self.assertEqual(self.libraries(), before)
        self.write("sizes.h", "#define SIZE 7\n")
        changed = self.build(("base",))
        self.assertNotEqual(changed["variants"][0]["library"], reply["variants"][0]["library"])
        # A run that goes on with the older one finds it.
        self.assertTrue(pathlib.Path(reply["variants"][0]["library"]).is_file())

    def test_a_library_that_was_damaged_is_built_again(self):
        library = pathlib.Path(self.build(("base",))["variants"][0]["library"])
        before = library.read_bytes()
        library.write_bytes(b"x")
        self.build(("base",))
        self.assertEqual(library.read_bytes(), before)

    def test_a_folder_that_was_built_elsewhere_needs_no_compiler(self):
        before = self.build(("base",))
        moved = self.path.with_name(self.path.name + "_moved")
        self.path.rename(moved)
        self.addCleanup(moved.rename, self.path)
        here, self.path = self.path, moved
        self.addCleanup(setattr, self, "path", here)
        after = self.build(("base",), ("large", "LARGE"), CXX="/nonexistent")
        self.assertEqual(self.hashes(after), self.hashes(before))
        self.assertTrue(pathlib.Path(after["variants"][0]["library"]).is_relative_to(moved))
        self.assertIn("there is no compiler here; it was c++", after["variants"][1]["error"])
        self.write("sizes.h", "#define SIZE 2\n")
        self.assertIn("have changed since",
                      self.build(("base",), CXX="/nonexistent")["variants"][0]["error"])
        (self.path / "cache/tools_cpu.json").unlink()
        self.assertIn("no /nonexistent, which compiles",
                      self.build(("base",), CXX="/nonexistent")["error"])

    def test_finds_definitions_that_no_source_reads(self):
        reply = self.build(("a", "LARGE"), ("b", "LARG"), names=[["LARGE", "a"], ["LARG", "b"]])
        self.assertEqual(reply["unread"], ["LARG"])

    def test_a_variant_that_does_not_build_says_why_and_leaves_nothing(self):
        self.write("sizes.h", "#ifdef LARGE\nint broken = ;\n#endif\n#define SIZE 1\n")
        base, large = self.build(("base",), ("large", "LARGE"))["variants"]
        self.assertEqual(base["error"], "")
        self.assertRegex(large["error"], r"\Akernel.cc does not compile: sizes.h:2:\d+: error: [^\n]+\Z")
        self.assertEqual(len(self.libraries()), 1)

    def test_a_missing_entry_or_source_is_named(self):
        self.write("kernel.cc", "#include <warpledger/study.h>\n")
        self.assertIn("no function warpledger_call: define it", self.build(("a",))["variants"][0]["error"])
        self.write("kernel.cc", 'extern "C" int warpledger_call(const void*) { return 0; }\n')
        self.assertIn("include <warpledger/study.h>", self.build(("a",))["variants"][0]["error"])
        (self.path / "kernel.cc").unlink()
        self.assertEqual(self.build(("a",))["variants"][0]["error"], "there is no source kernel.cc")
