# SPDX-License-Identifier: Apache-2.0
"""The tree's own order: header guards and sizes, run bits, registered tests, one list of toggles."""

import pathlib
import re

import house_tree
from fixture import ROOT, FolderTest, run

MAX_HEADER_LINES = 600
MAX_TOGGLES_NAMED = 2
TOP = {"cmake", "micro", "kernels", "ablations", "plots", "reports", "tests",
       "CMakeLists.txt", "CMakePresets.json", "pyproject.toml", "requirements.txt", "repro", "test",
       "README.md", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE",
       ".ci", ".clang-format", ".clang-tidy", ".github", ".gitignore"}


def guard_violations(root):
    """Headers that are not included once. Where a change compiles every kernel again, they have
    guards that follow the path."""
    violations = []
    for path in house_tree.files(root, (".h", ".cuh")):
        wanted = "#pragma once\n"
        if path.parts[0] in ("kernels", "micro"):
            guard = "WARPLEDGER_" + re.sub(r"[^A-Z0-9]", "_", path.as_posix().upper()) + "_"
            wanted = f"#ifndef {guard}\n#define {guard}\n"
        if f"\n{wanted}" not in (root / path).read_text(encoding="utf-8"):
            violations.append(f"{path}: lacks {' '.join(wanted.split())}")
    return violations


def long_headers(root):
    return [
        f"{path}: {lines} lines; a header has at most {MAX_HEADER_LINES}"
        for path in house_tree.files(root, (".h", ".cuh"))
        if (lines := (root / path).read_text(encoding="utf-8").count("\n")) > MAX_HEADER_LINES
    ]


def unregistered_tests(root):
    """Test files that no CMakeLists.txt under tests/ names, so that nothing runs them. Folders
    count: several tests have the same name."""
    tests = root / "tests"
    registered = set()
    for path in house_tree.files(tests, ("CMakeLists.txt",)):
        names = re.findall(r"(\$\{PROJECT_SOURCE_DIR\}/tests/)?([\w./-]+)",
                           (tests / path).read_text(encoding="utf-8"))
        registered.update(pathlib.Path(name) if whole else path.parent / name
                          for whole, name in names)
    return [
        f"tests/{path}: no CMakeLists.txt registers it"
        for path in house_tree.files(tests, ("_test.cc", "_test.cu", "_test.py"))
        if path not in registered
    ]


def toggle_ids(root):
    rows = (root / "kernels/sdpa/registry/toggles.def").read_text(encoding="utf-8")
    return re.findall(r"^WARPLEDGER_TOGGLE\(\s*(\w+),", rows, re.MULTILINE)


def second_toggle_lists(root):
    """Files that spell out several toggles as strings: the registry is their only list."""
    ids = toggle_ids(root)
    violations = []
    for path in house_tree.files(root, house_tree.CPP_SUFFIXES + (".py", ".cmake", ".sh")):
        if path.parts[0] == "tests":  # tests state what they expect
            continue
        text = (root / path).read_text(encoding="utf-8")
        named = [name for name in ids if re.search(rf"[\"']{name}[\"']", text)]
        if len(named) > MAX_TOGGLES_NAMED:
            violations.append(f"{path}: names {', '.join(named)}; derive them from the registry")
    return violations


def scripts_without_run_bit(root):
    """Files that open with #! but can't be run."""
    violations = []
    hidden = [pathlib.Path(".ci/run")] if (root / ".ci/run").exists() else []
    for path in house_tree.files(root) + hidden:
        with open(root / path, "rb") as file:
            shebang = file.read(2) == b"#!"
        if shebang and not (root / path).stat().st_mode & 0o100:
            violations.append(f"{path}: opens with #! but has no run bit (chmod +x)")
    return violations


def unknown_at_the_top(names):
    """What git holds at the top, of `names`, that is no part of the layout."""
    return sorted({name.partition("/")[0] for name in names} - TOP)


def versions(root):
    """{file: the version that it says the tree is of}"""
    patterns = {"CMakeLists.txt": r"^project\(warpledger VERSION (\S+)",
                "CITATION.cff": r"^version: (\S+)$",
                "CHANGELOG.md": r"^## (\d\S*),"}
    return {name: match.group(1) if (match := re.search(
        pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)) else "none"
            for name, pattern in patterns.items()}


class TheTree(FolderTest):
    def test_has_one_version(self):
        found = versions(ROOT)
        self.assertEqual(len(set(found.values())), 1, found)
        self.assertNotIn("none", found.values())

    def test_has_a_workflow_that_runs_ci_run_and_nothing_else(self):
        workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\s*-? *run: *(.*)$", workflow, re.MULTILINE),
                         ["bash .ci/run"])

    def test_has_only_the_layout_at_its_top(self):
        if not (ROOT / ".git").exists():
            self.skipTest("a copy without its history: git lists the files")
        listed = run("git", "ls-files", "-z", cwd=ROOT, check=True)
        self.assertEqual(unknown_at_the_top(listed.stdout.rstrip("\0").split("\0")), [])

    def test_includes_each_header_once(self):
        self.assertEqual(guard_violations(ROOT), [])

    def test_has_no_header_of_more_than_600_lines(self):
        self.assertEqual(long_headers(ROOT), [])

    def test_registers_every_test_file(self):
        self.assertEqual(unregistered_tests(ROOT), [])

    def test_lists_the_toggles_once(self):
        self.assertGreater(len(toggle_ids(ROOT)), 1)
        self.assertEqual(second_toggle_lists(ROOT), [])

    def test_has_scripts_that_can_be_run(self):
        self.assertEqual(scripts_without_run_bit(ROOT), [])
        for name in ("repro", "test", ".ci/run"):
            self.assertTrue((ROOT / name).stat().st_mode & 0o100, name)


class TheChecks(FolderTest):
    def test_find_a_folder_that_is_no_part_of_the_layout(self):
        self.assertEqual(unknown_at_the_top(["tests/a.py", "RESULT/NOTE", "test"]), ["RESULT"])

    def test_find_a_header_that_is_not_included_once(self):
        self.write("ablations/good.h", "// Head\n#pragma once\n")
        self.write("ablations/bad.h", "// #pragma once\n")
        self.write("kernels/good.h", "\n#ifndef WARPLEDGER_KERNELS_GOOD_H_\n"
                                     "#define WARPLEDGER_KERNELS_GOOD_H_\n")
        self.write("kernels/bad.h", "\n#ifndef BAD_H\n#define BAD_H\n")
        self.assertEqual(guard_violations(self.path), [
            "ablations/bad.h: lacks #pragma once",
            "kernels/bad.h: lacks #ifndef WARPLEDGER_KERNELS_BAD_H_ #define WARPLEDGER_KERNELS_BAD_H_"])

    def test_find_a_long_header(self):
        self.write("ablations/long.h", "\n" * (MAX_HEADER_LINES + 1))
        self.assertEqual(len(long_headers(self.path)), 1)

    def test_find_a_test_that_nothing_runs(self):
        self.write("tests/a/CMakeLists.txt", "add(SOURCES a_test.cc)")
        self.write("tests/a/a_test.cc", "")
        self.write("tests/a/b_test.py", "")
        self.assertEqual(unregistered_tests(self.path),
                         ["tests/a/b_test.py: no CMakeLists.txt registers it"])

    def test_find_a_test_that_only_a_namesake_in_another_folder_is_run_for(self):
        self.write("tests/a/CMakeLists.txt", "add(SOURCES x_test.cc deep/y_test.cc\n"
                                         "  ${PROJECT_SOURCE_DIR}/tests/c/x_test.cc)")
        for name in ("a/x_test.cc", "a/deep/y_test.cc", "b/x_test.cc", "a/deep/x_test.cc",
                     "c/x_test.cc"):
            self.write(f"tests/{name}", "")
        self.assertEqual(unregistered_tests(self.path), [
            f"tests/{name}/x_test.cc: no CMakeLists.txt registers it" for name in ("a/deep", "b")])

    def test_find_a_second_list_of_toggles(self):
        self.write("kernels/sdpa/registry/toggles.def", "".join(
            f"WARPLEDGER_TOGGLE(\n    {name},\n    .x = 1)\n" for name in ("aa", "bb", "cc")))
        self.write("plots/one.py", "x = ['aa', 'bb']\n")
        self.write("plots/two.py", "x = ['aa', \"bb\", 'cc']\n")
        self.assertEqual(second_toggle_lists(self.path),
                         ["plots/two.py: names aa, bb, cc; derive them from the registry"])

    def test_find_a_script_without_run_bit(self):
        self.write("good", "#!/bin/sh\n", mode=0o755)
        self.write("bad", "#!/bin/sh\n", mode=0o644)
        self.write("data", "no script\n", mode=0o644)
        self.assertEqual(scripts_without_run_bit(self.path),
                         ["bad: opens with #! but has no run bit (chmod +x)"])
