# SPDX-License-Identifier: Apache-2.0
"""A toy toggle and a toy subject, added to a copy of the tree by the steps of README.md and
CONTRIBUTING.md and no other, then built, listed, checked, measured and reported."""

import json
import os
import shutil
import subprocess
import sys

import house_tree
from fixture import BUILD, ROOT, FolderTest, skip

PASS, CANNOT_TELL = 0, 2  # of `warpledger gate`
FAILED = 8  # of ctest, where a test failed

if not shutil.which("nvcc") and "CUDACXX" not in os.environ:
    skip("a kernel is compiled, and there is no nvcc")

ROW = '''
WARPLEDGER_TOGGLE(
    toy_fence,
    .label = "A fence behind each tile",
    .needs = {&Config::kv_tiling},
    .claim = "A fence that nothing waits for costs a little and helps nobody.",
    .predicted = {.shape = "mission_b", .low = 0.90, .high = 1.00, .why = "It orders what is done."},
    .gate = 1.10,
    .evidence = {.change = EvidenceChange::kAppears, .ptx = "fence|membar", .sass = "MEMBAR"},
    .micro = "shared_memory/load_32/throughput",
    .micro_off = "shared_memory/load_32/throughput",
    .prior = {.text = "None"},
    .elsewhere = "No other family has one")
'''
BRANCH = "      if constexpr (kConfig.toy_fence) __threadfence_block();\n"


def replace_once(path, old, new):
    text = path.read_text()
    assert text.count(old) == 1, f"{path}: {old!r} stands there {text.count(old)} times"
    path.write_text(text.replace(old, new))


class NewcomerTest(FolderTest):
    def run_here(self, *command, codes=(0,)):
        done = subprocess.run(command, cwd=self.path, capture_output=True, text=True, check=False)
        said = f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        self.assertIn(done.returncode, codes, said)
        return done.stdout + done.stderr

    def build(self, *targets):
        self.run_here("cmake", "--build", "build", "--target", "warpledger", "warpledger_codegen",
                      "warpledger_registry_json", *targets)

    def run_test(self, name, codes=(0,)):
        return self.run_here("ctest", "--test-dir", "build", "--output-on-failure",
                             "--no-tests=error", "-R", f"^{name}$", codes=codes)

    def test_a_toggle_and_a_subject_come_in_by_the_steps_of_the_readme(self):
        for path in house_tree.files(ROOT):
            if path.parts[:2] != ("reports", "data"):
                (self.path / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, self.path / path)
        # "Adding a toggle": a row, and a branch.
        toggles = self.path / "kernels/sdpa/registry/toggles.def"
        at_its_place = "\nWARPLEDGER_TOGGLE(\n    wgmma,\n"  # where the ladder of its family ends
        replace_once(toggles, at_its_place, ROW + at_its_place)
        replace_once(self.path / "kernels/sdpa/smem/forward.cuh",
                     "      output.Accumulate(softmax, kv, work.seq_kv);\n",
                     "      output.Accumulate(softmax, kv, work.seq_kv);\n" + BRANCH)
        # "Adding a subject": a file, and a line.
        (self.path / "ablations/subjects/toy").mkdir()
        shutil.copyfile(ROOT / "tests/newcomer/toy.cc", self.path / "ablations/subjects/toy/toy.cc")
        with open(self.path / "ablations/subjects/CMakeLists.txt", "a", encoding="utf-8") as lines:
            lines.write("warpledger_subject(toy toy.cc)\n")

        # Host code is not optimised, which halves the time, and nothing measured here is kept.
        ninja = BUILD / "venv/bin/ninja"
        make = [f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja.exists() else []
        self.run_here("cmake", "-S", ".", "-B", "build", "-G", "Ninja", *make,
                      f"-DWARPLEDGER_PYTHON={sys.executable}", "-DCMAKE_BUILD_TYPE=Release",
                      "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DNDEBUG", "-DWARPLEDGER_DESIGNS=ladder;a_step_per_family",
                      "-DWARPLEDGER_MICRO=OFF", "-DWARPLEDGER_CUDA_ARCHITECTURES=90-real",
                      "-DWARPLEDGER_LADDER_ARCHITECTURES=")
        self.build("sdpa_tests")
        warpledger = self.path / "build/bin/warpledger"

        listed = json.loads(self.run_here(warpledger, "list", "--format=json"))
        self.assertIn("toy_fence", [toggle["id"] for toggle in listed["toggles"]])
        ladder = next(design for design in listed["designs"] if design["name"] == "ladder")
        self.assertIn("ladder:toy_fence", [arm["name"] for arm in ladder["arms"]])
        # The machine code changed as the row says, and the row is sound.
        for test in "sdpa_registry_registry_test", "codegen_test":
            self.run_test(test)
        # Without the branch, the toggle is found out.
        replace_once(self.path / "kernels/sdpa/smem/forward.cuh", BRANCH, "")
        self.build()
        said = self.run_test("codegen_test", codes=(FAILED,))
        self.assertIn("toy_fence", said)

        # The subject goes the whole way.
        self.run_here(warpledger, "run", "--subject=toy", "--out=record", "--processes=2",
                      "--blocks=4")
        self.run_here(warpledger, "judge", "--record=record", "--out=summary.json")
        summary = json.loads((self.path / "summary.json").read_text())
        verdicts = {verdict["toggle"]: verdict for verdict in summary["verdicts"]}
        self.assertGreater(verdicts["four_accumulators"]["ratio"], 0)
        self.assertNotEqual(verdicts["four_accumulators"]["verdict"], "BROKEN")
        self.run_here(warpledger, "report", "--record=record", "--out=pages", "--plots=false")
        self.assertIn("Four accumulators",
                      "".join(page.read_text() for page in (self.path / "pages").rglob("*.md")))
        # By a true clock on a busy machine two processes can't always tell.
        self.run_here(warpledger, "gate", "--record=record", "--baseline=record",
                      codes=(PASS, CANNOT_TELL))
