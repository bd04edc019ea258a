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

    def build(self, *variants, names=(), sources=("kernel.cc",), flags=(), **environment):
        variants = [{"name": name, "define": define, "flags": ["-O2", *flags], "sources": list(sources)}
                    for name, *define in variants]
        return self.ask(variants, names, **environment)

    def ask(self, variants, names=(), **environment):
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

    def test_what_code_refers_to_is_part_of_it(self):
        for name, line in (("a function", "x[0] = WHICH(sinf, cosf)(x[0]);"),
                           ("a constant", "x[0] = (float)(x[0] * WHICH(3.25, 4.5));"),
                           ("a text", 'x[0] = atof(WHICH("12", "34"));'),
                           ("a table", "static int t[2] = {3, WHICH(4, 5)}; t[0] += n; x[0] = t[n & 1];"),
                           ("a table of functions",
                            "static F const f[2] = {sinf, WHICH(cosf, expf)}; x[0] = f[n & 1](x[0]);")):
            with self.subTest(name):
                self.write("kernel.cc", f"""
#include <warpledger/study.h>
#include <math.h>
#include <stdlib.h>
#ifdef OTHER
#define WHICH(a, b) b
#else
#define WHICH(a, b) a
#endif
#ifdef DEAD
static inline double dead(double x) {{ return sin(x) + 8.125; }}
#endif
typedef float (*F)(float);
extern "C" int warpledger_call(const WarpledgerCall* call) {{
  float* x = (float*)call->outputs[0];
  const int n = (int)call->parameter_values[0];
  {line}
  return 0;
}}
""")
                hashes = self.hashes(self.build(("base",), ("other", "OTHER"), ("dead", "DEAD")))
                self.assertNotEqual(hashes["base"], hashes["other"])
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

    def test_a_changed_header_is_found_in_a_folder_of_any_name(self):
        here = self.path
        self.addCleanup(setattr, self, "path", here)
        for name in "st#1", "st$1", "st 1", "a#b $c\\d", "$$":
            with self.subTest(name):
                self.path = here / name
                self.path.mkdir()
                self.write("kernel.cc", SOURCE.replace('"sizes.h"', "<sizes.h>"))
                self.write("sizes.h", "#define SIZE 1\n")
                before = self.hashes(self.build(("base",)))
                self.write("sizes.h", "#define SIZE 7\n")
                self.assertNotEqual(self.hashes(self.build(("base",))), before)

    def test_a_build_that_read_a_file_that_is_not_found_is_made_each_time(self):
        self.write("cxx", """#!/bin/sh
c++ "$@" || exit
for each; do case $each in *.d) sed -i '1s/: /: nowhere.h /' "$each" ;; esac; done
""", mode=0o755)
        compiler = str(self.path / "cxx")
        self.build(("base",), CXX=compiler)
        before = self.libraries()
        self.assertEqual(len(before), 1)
        self.build(("base",), CXX=compiler)
        self.assertNotEqual(self.libraries(), before)

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

    def test_a_blank_compiler_is_none_and_a_broken_one_is_told(self):
        self.assertEqual(self.build(("a",), CXX="it's")["error"], "CXX is no command: No closing quotation")
        self.assertEqual(self.build(("a",), CXX=" ")["variants"][0]["error"], "")

    def test_a_source_that_is_there_twice_is_told(self):
        for sources in ("kernel.cc", "kernel.cc"), ("kernel.cc", "./kernel.cc"):
            self.assertEqual(self.build(("a",), sources=sources)["variants"][0]["error"],
                             "the source kernel.cc is there twice")
        self.write("other.cc", SOURCE)
        self.assertIn("multiple definition of `warpledger_call'",
                      self.build(("a",), sources=("kernel.cc", "other.cc"))["variants"][0]["error"])

    def compile(self, name, text, *flags):
        """Somebody's own build, of text into a file of the folder."""
        self.write("theirs.cc", text)
        self.ends(self.call("c++", f"-I{FOLDER}/include", "-O2", "-fPIC", *flags, "theirs.cc", "-o", name))

    def test_a_library_that_was_built_before_is_a_variant(self):
        self.write("sizes.h", "#define SIZE 3\n")
        self.compile("theirs.so", SOURCE, "-shared")
        self.build(("base",))
        base = self.hashes(self.build(("base",)))["base"]
        reply = self.build(("a",), ("b", "LARGE"), sources=["theirs.so"], names=[["LARGE", "b"]])
        variant = reply["variants"][0]
        self.assertEqual(pathlib.Path(variant["library"]).read_bytes(), (self.path / "theirs.so").read_bytes())
        self.assertEqual(reply["unread"], ["LARGE"])
        self.assertEqual(self.hashes(reply)["a"], self.hashes(reply)["b"])
        self.compile("theirs.so", SOURCE.replace("SIZE", "2 * SIZE"), "-shared")
        again = self.build(("a",), sources=["theirs.so"])
        self.assertNotEqual(self.hashes(again)["a"], self.hashes(reply)["a"])
        self.assertNotEqual(again["variants"][0]["library"], variant["library"])
        self.assertNotEqual(self.hashes(again)["a"], base)
        self.assertIn("stands alone among `sources`",
                      self.build(("a",), sources=["kernel.cc", "theirs.so"])["variants"][0]["error"])
        self.compile("theirs.so", "int x;", "-shared")
        self.assertIn("no function warpledger_call",
                      self.build(("a",), sources=["theirs.so"])["variants"][0]["error"])

    def test_objects_and_libraries_that_are_linked_in_count_as_read(self):
        self.write("kernel.cc", SOURCE.replace("extern", "float theirs();\nextern").replace("= SIZE", "= theirs()"))
        for sources, flags, make in (
                (["kernel.cc", "theirs.o"], [], lambda: None),
                (["kernel.cc"], ["-L.", "-ltheirs"],
                 lambda: self.ends(self.call("ar", "rcs", "libtheirs.a", "theirs.o")))):
            with self.subTest(sources):
                libraries = []
                for value in "1", "2", "1":
                    self.compile("theirs.o", f"float theirs() {{ return {value}; }}", "-c")
                    make()
                    variant = self.build(("a",), sources=sources, flags=flags)["variants"][0]
                    self.assertEqual(variant["error"], "")
                    libraries.append(variant["library"])
                self.assertNotEqual(libraries[0], libraries[1])
                self.assertEqual(libraries[0], libraries[2])

    def test_two_libraries_that_a_process_would_mix_up_are_refused(self):
        shared = SOURCE.replace("extern", "inline float kept = SIZE;\nextern").replace("= SIZE;\n  ret", "= kept;\n  ret")
        self.assertIn("= kept", shared)
        self.compile("one.so", shared, "-shared")
        self.compile("two.so", shared, "-shared", "-DLARGE")
        self.write("request", "")
        request = [{"name": name, "define": [], "flags": [], "sources": [f"{name}.so"]} for name in ("one", "two")]
        reply = self.ask(request)
        self.assertEqual(reply["variants"][0]["error"], "")
        self.assertIn("a process has one kept for it and for variant 'one'", reply["variants"][1]["error"])
        for name in "one", "two":
            self.compile(f"{name}.so", shared, "-shared", "-fno-gnu-unique", *["-DLARGE"] * (name == "two"))
        self.assertEqual([each["error"] for each in self.ask(request)["variants"]], ["", ""])
        # What is compiled here never is.
        self.write("kernel.cc", shared)
        self.assertEqual([each["error"] for each in self.build(("a",), ("b", "LARGE"))["variants"]], ["", ""])
