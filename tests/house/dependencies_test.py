# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the rules of the house, and a test that they can fail."""

import ast
import pathlib
import re
import sys
import tempfile

import house_tree
from fixture import ROOT, FolderTest

# The kernels' rooms (kernels/sdpa/README.md). A kernel family is a folder with its own folders.
DTYPE = {"kernels/common", "kernels/sdpa/dtype"}
REGISTRY = DTYPE | {"kernels/sdpa/registry"}
PROBLEM = DTYPE | {"kernels/sdpa/problem"}
SHARED = REGISTRY | {"kernels/sdpa/shared"}
SMEM = {"kernels/sdpa/smem", "kernels/sdpa/smem/simt", "kernels/sdpa/smem/wmma"}
MMA = {"kernels/sdpa/mma", "kernels/sdpa/mma/projection"}
WGMMA = {"kernels/sdpa/wgmma", "kernels/sdpa/wgmma/join", "kernels/sdpa/wgmma/load", "kernels/sdpa/wgmma/varlen"}
RULES = SHARED | PROBLEM | {"kernels/sdpa/rules", "kernels/sdpa/smem", "kernels/sdpa/mma",
                            "kernels/sdpa/wgmma", "kernels/sdpa/resident"}
KERNEL_ROOMS = {
    "kernels/sdpa/dtype": DTYPE,
    "kernels/sdpa/registry": REGISTRY,
    "kernels/sdpa/problem": PROBLEM,
    "kernels/sdpa/shared": SHARED,
    **dict.fromkeys(SMEM, SHARED | PROBLEM | SMEM),
    **dict.fromkeys(MMA, SHARED | PROBLEM | MMA),
    **dict.fromkeys(WGMMA, SHARED | PROBLEM | WGMMA),
    "kernels/sdpa/resident": SHARED | PROBLEM | {"kernels/sdpa/resident"},
    "kernels/sdpa/rules": RULES,
    "kernels/sdpa/launch": RULES | {"kernels/sdpa/launch"},
    # The library says how much memory a plan of packed sequences takes, and loads what is launched beside a kernel.
    "kernels/sdpa/library": RULES | {"kernels/sdpa/library", "kernels/sdpa/wgmma/varlen", "kernels/sdpa/wgmma/join"},
}
# What who measures kernels sees of them: no family, but for the projection's kernel, which is
# launched in front of those of the designs.
KERNELS = SHARED | PROBLEM | {"kernels/sdpa/rules", "kernels/sdpa/launch", "kernels/sdpa/library",
                              "kernels/sdpa/mma/projection"}
# The engine's rooms (ablations/README.md). None of them knows what is measured.
BASE = {"ablations/base", "kernels/common"}
RECORD = BASE | {"ablations/record"}
PLAN = RECORD | {"ablations/stats", "ablations/plan"}
FACTORIAL = PLAN | {"ablations/stats/factorial", "ablations/summary", "ablations/judge/factorial"}
JUDGE = FACTORIAL | {"ablations/stats/effects", "ablations/judge"}
SUBJECTS = {"ablations/subjects/sdpa", "ablations/subjects/sdpa/designs",
            "ablations/subjects/sdpa/dtypes"}
STUDY = {"ablations/subjects/host", "ablations/subjects/study", "ablations/subjects/study/rig"}
ROOMS = {
    "ablations/base": BASE,
    "ablations/stats": {"ablations/stats", "ablations/stats/effects", "kernels/common"},
    "ablations/stats/effects": {"ablations/stats", "ablations/stats/effects"},
    "ablations/stats/factorial": {"ablations/stats", "ablations/stats/factorial"},
    "ablations/record": RECORD,
    # What a replay is, a machine must know too.
    "ablations/plan": PLAN | {"micro/harness"},
    "ablations/summary": RECORD | {"ablations/plan", "ablations/summary"},
    # A record is all that passes between these two.
    "ablations/measure": PLAN | {"ablations/measure", "micro/harness"},
    "ablations/judge": JUDGE,
    "ablations/judge/factorial": FACTORIAL,
    "ablations/judge/compare": JUDGE | {"ablations/judge/compare"},
    "ablations/subjects/sdpa": PLAN | SUBJECTS | KERNELS | {"micro/harness"},
    "ablations/subjects/sdpa/gpu": PLAN | SUBJECTS | KERNELS | {"ablations/subjects/sdpa/gpu"},
    "ablations/subjects/sdpa/designs": {"ablations/subjects/sdpa/designs", "ablations/plan"} | KERNELS,
    "ablations/subjects/host": PLAN | {"ablations/subjects/host", "micro/harness"},
    "ablations/subjects/stand_in": PLAN | {"ablations/subjects/host", "ablations/subjects/stand_in",
                                           "micro/harness"},
    "ablations/subjects/python": PLAN | {"ablations/subjects/host", "ablations/subjects/python"},
    "ablations/subjects/study": PLAN | {"ablations/subjects/host", "ablations/subjects/study"},
    "ablations/subjects/study/rig": PLAN | STUDY,
    "ablations/subjects/study/rig/gpu": {"ablations/subjects/study/rig", "ablations/subjects/study/rig/gpu",
                                         "kernels/common"},
    "ablations/subjects/sdpa/dtypes": PLAN | {"ablations/subjects/sdpa/dtypes"} | KERNELS,
    "ablations/studies": set(),
}
# What a page knows, its parts, whole pages (reports/README.md). They see a summary and its subject;
# those of attention alone also its registry.
MODEL = {"ablations/plan", "ablations/summary", "reports/model", "kernels/sdpa/rules"} | REGISTRY | PROBLEM
DERIVED = MODEL | {"reports/model/derived", "kernels/sdpa/library"}
# A section holds the model of the mma family's bank conflicts against a profile.
SECTIONS = DERIVED | {"reports/sections", "kernels/sdpa/mma"}
REPORTS = {
    "reports/model": MODEL,
    "reports/model/derived": DERIVED,
    "reports/compared": MODEL | {"reports/compared"},
    "reports/sections": SECTIONS,
    "reports/sections/answers": SECTIONS | {"reports/sections/answers"},
    "reports/pages": SECTIONS | {"reports/sections/answers", "reports/pages"},
}
ENGINE = {"kernels/common"} | {room for room in ROOMS if "subjects" not in room}
# The program. Commands that know SDPA have a room of their own.
CLI_ROOMS = {"ablations/cli/archive", "ablations/cli/measure", "ablations/cli/records"}
CLI = {*ROOMS, *REPORTS, "ablations/cli", "ablations/cli/sdpa", "ablations/cli/study", *CLI_ROOMS} | KERNELS
ROOMS |= {"ablations/cli": CLI, "ablations/cli/sdpa": CLI - CLI_ROOMS,
          "ablations/cli/study": ENGINE | STUDY | {"ablations/cli", "ablations/cli/study"},
          **{room: ENGINE | {room, "ablations/cli", "ablations/cli/records", *REPORTS}
             for room in CLI_ROOMS}}
# Most source files of a room.
ROOM_FILES = 17

# Folder -> the folders that its files may include. The longest matching folder
# counts, on both sides.
MAY_INCLUDE = {
    "kernels/common": {"kernels/common"},
    # Found by the toolkit's names alone, where an instance is compiled.
    "kernels/lean_cuda": set(),
    **KERNEL_ROOMS,
    "micro/harness": {"micro/harness", "kernels/common"},
    "micro": {"micro", "micro/harness", "kernels/common"},
    **REPORTS,
    **ROOMS,
    "tests": {"tests", "micro", "micro/harness", *KERNEL_ROOMS} | CLI,
}
THIRD_PARTY = re.compile(r"^(absl|nlohmann|gtest|gmock|benchmark|cuda|cute|cooperative_groups)\b|"
                         r"^(cuda\w*|mma)\.h$")
GENERATED = re.compile(r"^warpledger_\w+\.h$")
TEST_AND_BENCHMARK = re.compile(r"^(gtest|gmock|benchmark)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
REGISTRY_TEXTS = ("kernels/sdpa/registry/toggles.def", "kernels/sdpa/registry/registry.h")
PLOT_PACKAGES = {"matplotlib", "numpy", "plots"}


def layer(path):
    """The longest folder of the table that holds `path`, or None."""
    holders = [name for name in MAY_INCLUDE if path.startswith(name + "/")]
    return max(holders, key=len, default=None)


def include_violations(root):
    """One line for each include that breaks a rule."""
    violations = []
    for path in house_tree.files(root, house_tree.CPP_SUFFIXES):
        name = path.as_posix()
        source_layer = layer(name)
        if source_layer is None:
            violations.append(f"{name}: belongs to no folder of the house")
            continue
        text = (root / path).read_text(encoding="utf-8")
        for quote, target in INCLUDE.findall(text):
            if source_layer.startswith("kernels") and TEST_AND_BENCHMARK.match(target):
                violations.append(f"{name}: kernels include no {target}")
            if name.endswith(".h") and target.endswith(".cuh"):
                violations.append(f"{name}: a .h is host-safe and can't include {target}")
            if quote == "<":
                continue
            target_layer = layer(target)
            if target_layer is None:
                if not THIRD_PARTY.match(target) and not GENERATED.match(target):
                    violations.append(f"{name}: {target} isn't written from the repository's root")
                continue
            if not (root / target).is_file():
                violations.append(f"{name}: there is no {target}")
            if target_layer not in MAY_INCLUDE[source_layer]:
                violations.append(f"{name}: {source_layer} may not include {target}")
    return violations


def cycles(root):
    """Chains of files that include each other in a circle. In reports/ a header and the source of
    the same name are one module, which is called as its header."""
    includes = {}
    for path in house_tree.files(root, house_tree.CPP_SUFFIXES):
        header = path.with_suffix(".h")
        is_part = path.parts[0] == "reports" and (root / header).is_file()
        module = (header if is_part else path).as_posix()
        text = (root / path).read_text(encoding="utf-8")
        includes.setdefault(module, []).extend(
            target for quote, target in INCLUDE.findall(text) if quote == '"' and target != module)
    found, done = [], set()

    def walk(name, chain):
        if name in chain:
            found.append(" includes ".join([*chain[chain.index(name):], name]))
        elif name in includes and name not in done:
            for target in includes[name]:
                walk(target, [*chain, name])
            done.add(name)

    for name in includes:
        walk(name, [])
    return found


def large_rooms(root):
    """Rooms of the engine, the pages and the kernels with more source files than a room may have."""
    rooms = {}
    for path in house_tree.files(root, house_tree.CPP_SUFFIXES):
        room = path.parent.as_posix()
        if room.startswith(("ablations/", "reports/", "kernels/sdpa")):
            rooms[room] = rooms.get(room, 0) + 1
    return [f"{room}: {count} files; it may have {ROOM_FILES}"
            for room, count in rooms.items() if count > ROOM_FILES]


def kernels_that_read_texts(root):
    """A chain of includes for each kernel header that leads to the registry's texts: a word that is
    mended there must not compile every kernel again."""
    violations = []
    for path in house_tree.files(root / "kernels/sdpa", (".cuh",)):
        chains = [[f"kernels/sdpa/{path.as_posix()}"]]
        seen = set(chains[0])
        for chain in chains:
            if chain[-1] in REGISTRY_TEXTS:
                violations.append(" includes ".join(chain))
                break
            if not (root / chain[-1]).is_file():
                continue
            for _, target in INCLUDE.findall((root / chain[-1]).read_text(encoding="utf-8")):
                if target not in seen:
                    seen.add(target)
                    chains.append(chain + [target])
    return violations


def plot_violations(root):
    """One line for each import of a plot script beyond Python, matplotlib and numpy."""
    violations = []
    plots = root / "plots"
    scripts = sorted(plots.rglob("*.py"))
    siblings = {script.stem for script in scripts}
    for script in scripts:
        for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module]
            else:
                continue
            for module in modules:
                package = module.split(".")[0]
                if package not in sys.stdlib_module_names | PLOT_PACKAGES | siblings:
                    violations.append(f"{script.relative_to(root)}: imports {module}")
    return violations


class TheTree(FolderTest):
    def test_includes_only_what_each_folder_may_include(self):
        self.assertEqual(include_violations(ROOT), [])

    def test_has_no_cycle_of_files(self):
        self.assertEqual(cycles(ROOT), [])

    def test_has_small_rooms_each_with_a_readme(self):
        self.assertEqual(large_rooms(ROOT), [])
        lacking = [room for room in (*ROOMS, *REPORTS, *KERNEL_ROOMS, "kernels/common",
                                     "kernels/lean_cuda")
                   if not (ROOT / room / "README.md").is_file()]
        self.assertEqual(lacking, [])

    def test_is_not_empty(self):
        self.assertGreater(len(house_tree.files(ROOT, house_tree.CPP_SUFFIXES)), 10)

    def test_kernels_see_no_text_of_the_registry(self):
        for name in REGISTRY_TEXTS:
            self.assertTrue((ROOT / name).is_file(), name)
        self.assertEqual(kernels_that_read_texts(ROOT), [])

    def test_plots_see_nothing_but_json(self):
        self.assertTrue(list((ROOT / "plots").rglob("*.py")), "no plot script found")
        self.assertEqual(plot_violations(ROOT), [])


class TheChecker(FolderTest):
    def test_accepts_an_allowed_include(self):
        self.write("kernels/common/a.h", "")
        self.write("ablations/base/b.cc", '#include <vector>\n#include "kernels/common/a.h"\n'
                                     '#include "absl/status/status.h"\n'
                                     '#include "warpledger_build_info.h"\n')
        self.assertEqual(include_violations(self.path), [])

    def test_finds_each_kind_of_violation(self):
        planted = {
            "kernels must not know the suite": ("kernels/sdpa/launch/a.cc", "ablations/base/x.h"),
            "statistics know no record": ("ablations/stats/a.h", "ablations/record/x.h"),
            "the engine knows no attention": ("ablations/measure/a.cc", "kernels/sdpa/launch/x.h"),
            "what measures never judges": ("ablations/measure/a.cc", "ablations/judge/x.h"),
            "what judges never measures": ("ablations/judge/a.cc", "ablations/measure/x.h"),
            "a plan knows no subject": ("ablations/plan/a.h", "ablations/subjects/sdpa/x.h"),
            "common is below sdpa": ("kernels/common/a.h", "kernels/sdpa/dtype/x.h"),
            "a family knows no other": ("kernels/sdpa/mma/a.h", "kernels/sdpa/wgmma/x.h"),
            "nor a part of another": ("kernels/sdpa/mma/a.h", "kernels/sdpa/wgmma/join/x.h"),
            "what families share knows none": ("kernels/sdpa/shared/a.h", "kernels/sdpa/mma/x.h"),
            "no kernel asks for the rules": ("kernels/sdpa/mma/a.cuh", "kernels/sdpa/rules/x.h"),
            "the registry knows no family": ("kernels/sdpa/registry/a.h", "kernels/sdpa/mma/x.h"),
            "a problem knows no kernel": ("kernels/sdpa/problem/a.cc", "kernels/sdpa/rules/x.h"),
            "every file is in a room": ("kernels/sdpa/a.h", "kernels/common/x.h"),
            "microbenchmarks see no attention": ("micro/a.cu", "kernels/sdpa/shared/x.cuh"),
            "the harness knows no benchmark": ("micro/harness/a.h", "micro/x.h"),
            "reports see the summary only": ("reports/model/a.cc", "ablations/base/x.h"),
            "what judges writes no page": ("ablations/judge/compare/a.cc", "reports/model/x.h"),
            "a command asks the subject": ("ablations/cli/measure/a.cc", "ablations/subjects/sdpa/x.h"),
            "a page has sections, no section a page": ("reports/sections/a.cc", "reports/pages/x.h"),
            "what a page knows has no look": ("reports/model/a.cc", "reports/sections/x.h"),
            "a source file is in a room": ("reports/a.cc", "reports/model/x.h"),
            "nobody includes tests": ("ablations/cli/a.cc", "tests/x.h"),
            "no gtest in kernels": ("kernels/common/a.cc", "gtest/gtest.h"),
            "includes start at the root": ("ablations/base/a.cc", "../ablations/x.h"),
            "a host header stays host-safe": ("kernels/sdpa/mma/a.h", "kernels/common/x.cuh"),
        }
        for why, (name, target) in planted.items():
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                # A folder in it, so that ../ is in it too.
                self.path = pathlib.Path(folder) / "tree"
                self.write(target, "")
                self.write(name, f'#include "{target}"\n')
                violations = include_violations(self.path)
                self.assertTrue([line for line in violations if line.startswith(name + ":")],
                                violations)

    def test_finds_a_cycle(self):
        self.write("ablations/base/a.h", '#include "ablations/base/b.h"\n')
        self.write("ablations/base/b.h", '#include "ablations/base/c.h"\n')
        self.write("ablations/base/c.h", '#include "ablations/base/b.h"\n')
        self.assertEqual(cycles(self.path),
                         ["ablations/base/b.h includes ablations/base/c.h "
                          "includes ablations/base/b.h"])

    def test_finds_a_cycle_by_way_of_a_source(self):
        self.write("reports/model/a.h", "")
        self.write("reports/model/a.cc", '#include "reports/model/a.h"\n'
                                         '#include "reports/model/b.h"\n')
        self.write("reports/model/b.h", '#include "reports/model/a.h"\n')
        self.assertEqual(cycles(self.path), ["reports/model/a.h includes reports/model/b.h "
                                             "includes reports/model/a.h"])

    def test_finds_a_room_that_is_too_large(self):
        for number in range(ROOM_FILES + 1):
            self.write(f"ablations/base/{number}.cc", "")
            self.write(f"ablations/base/{number}.md", "")
            self.write(f"kernels/sdpa/mma/{number}.cuh", "")
        self.write("ablations/plan/a.h", "")
        self.assertEqual(large_rooms(self.path), ["ablations/base: 18 files; it may have 17",
                                                  "kernels/sdpa/mma: 18 files; it may have 17"])

    def test_finds_an_include_of_a_file_that_is_not_there(self):
        self.write("ablations/base/a.cc", '#include "ablations/base/gone.h"\n')
        self.assertEqual(include_violations(self.path),
                         ["ablations/base/a.cc: there is no ablations/base/gone.h"])

    def test_finds_a_kernel_that_reads_texts_by_way_of_another_header(self):
        self.write("kernels/sdpa/mma/a.cuh", '#include "kernels/sdpa/b.h"\n')
        self.write("kernels/sdpa/b.h",
                   '#include <vector>\n#include "kernels/sdpa/registry/registry.h"\n')
        self.write("kernels/sdpa/c.cuh", '#include "warpledger_build_info.h"\n')
        self.assertEqual(kernels_that_read_texts(self.path),
                         ["kernels/sdpa/mma/a.cuh includes kernels/sdpa/b.h "
                          "includes kernels/sdpa/registry/registry.h"])

    def test_finds_a_plot_that_imports_from_the_suite(self):
        self.write("plots/a.py", "import json\nimport numpy\nfrom ablations import peers\n")
        self.assertEqual(plot_violations(self.path), ["plots/a.py: imports ablations"])
