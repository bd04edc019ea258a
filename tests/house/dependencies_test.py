# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the rules of the house, and a test that they can fail."""

import ast
import pathlib
import re
import sys
import tempfile
import unittest

import house_tree

# Folder -> the folders that its files may include. The longest matching folder
# counts, on both sides.
MAY_INCLUDE = {
    "kernels/common": {"kernels/common"},
    "kernels/sdpa": {"kernels/sdpa", "kernels/sdpa/parts", "kernels/common"},
    # The primitives that microbenchmarks isolate, hence on their own.
    "kernels/sdpa/parts": {"kernels/sdpa", "kernels/sdpa/parts", "kernels/common"},
    "micro/harness": {"micro/harness", "kernels/common"},
    "micro": {"micro", "micro/harness", "kernels/common", "kernels/sdpa/parts"},
    "reports": {"reports", "kernels/sdpa", "kernels/common"},
    "ablations": {
        "ablations",
        "reports",
        "micro/harness",
        "kernels/sdpa",
        "kernels/sdpa/parts",
        "kernels/common",
    },
    "tests": {
        "tests",
        "ablations",
        "reports",
        "micro",
        "micro/harness",
        "kernels/sdpa",
        "kernels/sdpa/parts",
        "kernels/common",
    },
}
THIRD_PARTY = re.compile(r"^(absl|nlohmann|gtest|gmock|benchmark|cuda|cute|cooperative_groups)\b|"
                         r"^(cuda\w*|mma)\.h$")
GENERATED = re.compile(r"^warpledger_\w+\.h$")
TEST_AND_BENCHMARK = re.compile(r"^(gtest|gmock|benchmark)/")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
REGISTRY_TEXTS = ("kernels/sdpa/toggles.def", "kernels/sdpa/registry.h")
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


class TheTree(unittest.TestCase):
    maxDiff = None

    def test_includes_only_what_each_folder_may_include(self):
        self.assertEqual(include_violations(house_tree.ROOT), [])

    def test_is_not_empty(self):
        self.assertGreater(len(house_tree.files(house_tree.ROOT, house_tree.CPP_SUFFIXES)), 10)

    def test_kernels_see_no_text_of_the_registry(self):
        for name in REGISTRY_TEXTS:
            self.assertTrue((house_tree.ROOT / name).is_file(), name)
        self.assertEqual(kernels_that_read_texts(house_tree.ROOT), [])

    def test_plots_see_nothing_but_json(self):
        self.assertTrue(list((house_tree.ROOT / "plots").rglob("*.py")), "no plot script found")
        self.assertEqual(plot_violations(house_tree.ROOT), [])


class TheChecker(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def test_accepts_an_allowed_include(self):
        self.write("kernels/common/a.h", "")
        self.write("ablations/b.cc", '#include <vector>\n#include "kernels/common/a.h"\n'
                                     '#include "absl/status/status.h"\n'
                                     '#include "warpledger_build_info.h"\n')
        self.assertEqual(include_violations(self.root), [])

    def test_finds_each_kind_of_violation(self):
        planted = {
            "kernels must not know the suite": ("kernels/sdpa/a.cc", "ablations/x.h"),
            "common is below sdpa": ("kernels/common/a.h", "kernels/sdpa/x.h"),
            "microbenchmarks see primitives only": ("micro/a.cu", "kernels/sdpa/x.h"),
            "the harness knows no benchmark": ("micro/harness/a.h", "micro/x.h"),
            "reports see the summary only": ("reports/a.cc", "ablations/x.h"),
            "nobody includes tests": ("ablations/a.cc", "tests/x.h"),
            "no gtest in kernels": ("kernels/common/a.cc", "gtest/gtest.h"),
            "includes start at the root": ("ablations/a.cc", "../ablations/x.h"),
            "a host header stays host-safe": ("kernels/sdpa/a.h", "kernels/common/x.cuh"),
        }
        for why, (name, target) in planted.items():
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                # A folder in it, so that ../ is in it too.
                self.root = pathlib.Path(folder) / "tree"
                self.root.mkdir()
                self.write(target, "")
                self.write(name, f'#include "{target}"\n')
                violations = include_violations(self.root)
                self.assertTrue([line for line in violations if line.startswith(name + ":")],
                                violations)

    def test_finds_an_include_of_a_file_that_is_not_there(self):
        self.write("ablations/a.cc", '#include "ablations/gone.h"\n')
        self.assertEqual(include_violations(self.root),
                         ["ablations/a.cc: there is no ablations/gone.h"])

    def test_finds_a_kernel_that_reads_texts_by_way_of_another_header(self):
        self.write("kernels/sdpa/mma/a.cuh", '#include "kernels/sdpa/b.h"\n')
        self.write("kernels/sdpa/b.h", '#include <vector>\n#include "kernels/sdpa/registry.h"\n')
        self.write("kernels/sdpa/c.cuh", '#include "warpledger_build_info.h"\n')
        self.assertEqual(kernels_that_read_texts(self.root),
                         ["kernels/sdpa/mma/a.cuh includes kernels/sdpa/b.h "
                          "includes kernels/sdpa/registry.h"])

    def test_finds_a_plot_that_imports_from_the_suite(self):
        self.write("plots/a.py", "import json\nimport numpy\nfrom ablations import peers\n")
        self.assertEqual(plot_violations(self.root), ["plots/a.py: imports ablations"])


if __name__ == "__main__":
    unittest.main()
