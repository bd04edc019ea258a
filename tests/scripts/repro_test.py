# SPDX-License-Identifier: Apache-2.0
"""./repro: when it measures, when it replays, and what it says of the comparison.

Runs the real script in a tree of its own, with a stand-in for the build and
for the program, so that nothing is compiled and no GPU is needed.
"""

import hashlib
import json
import os
import shlex
import shutil
import sys

import pack_fixture
from fixture import ROOT, FolderTest

# Configuring and building leave the program in the preset's folder.
CMAKE = """#!/bin/bash
echo "-- Warpledger 0.1.0, Release"
echo "-- Configuring done"
while (($# > 0)); do
  [[ $1 != --preset ]] || preset=$2
  shift
done
echo "$preset" >>presets.log
[[ $preset != release ]] || exit 1
mkdir -p "build-$preset/bin"
cp program "build-$preset/bin/warpledger"
"""
# Judging writes what the record holds in `judged`; a report is its summary, with the
# pictures that the file `pictures` names.
PROGRAM = """#!/bin/bash
echo "$*" >>calls.log
for argument; do
  case $argument in
    --record=*) record=${argument#*=} ;;
    --out=*) out=${argument#*=} ;;
  esac
done
case $1 in
  run) mkdir -p "$out" && echo '{}' >"$out/run.json" && echo new >"$out/judged" ;;
  judge) cp "$record/judged" "${out:-$record/summary.json}" 2>/dev/null || echo packed >"$out" ;;
  report)
    mkdir -p "$out" && cp "$record/judged" "$out/ladder.md" 2>/dev/null || echo packed >"$out/ladder.md"
    for name in $(cat pictures 2>/dev/null); do echo drawn >"$out/$name"; done
    ;;
esac
"""


class Repro(FolderTest):
    def setUp(self):
        super().setUp()
        self.root = self.path / "a tree"
        for name in "repro", "reports/record_files.py", "plots/json_text.py", "cmake/setup.sh":
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.program("bin/cmake", CMAKE)
        self.program("program", PROGRAM)
        self.program("bin/nvcc", "#!/bin/bash\n")
        self.gpu(False)

    def program(self, name, text):
        self.write(f"a tree/{name}", text, mode=0o755)

    def gpu(self, present):
        self.program("bin/nvidia-smi",
                     "#!/bin/bash\n" + ("echo 'GPU 0: some GPU'\n" if present else "exit 9\n"))

    def record(self, name, created_utc, judged="as committed\n", design="ladder", cache="warm"):
        folder = f"a tree/reports/data/{name}"
        self.write(f"{folder}/run.json", json.dumps({"created_utc": created_utc,
                                                     "design": design, "cache": cache}))
        self.write(f"{folder}/judged", judged)
        return self.write(f"{folder}/summary.json", "as committed\n").parent

    def repro(self, *arguments, **environment):
        return self.call(self.root / "repro", *arguments, **{
            "PATH": f"{self.root}/bin:{os.environ['PATH']}", "CUDACXX": "nvcc",
            "WARPLEDGER_SKIP_SETUP": "1", **environment})

    def presets(self):
        return set((self.root / "presets.log").read_text(encoding="utf-8").split())

    def calls(self):
        return (self.root / "calls.log").read_text(encoding="utf-8").splitlines()

    def test_explains_itself(self):
        self.ends(self.repro("--help"), out="--replay")

    def test_refuses_an_unknown_argument(self):
        self.ends(self.repro("--rePlay"), 2, err="--rePlay")

    def test_replays_the_newest_record_where_there_is_no_gpu(self):
        self.record("h100/zz", "2025-01-02T00:00:00Z")
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        result = self.ends(self.repro(), out="the NVIDIA driver lists no GPU")
        self.assertEqual(
            self.calls()[0],
            "judge --record=reports/data/h200/aa --out=out/replay/summary.json")
        self.assertTrue(self.calls()[1].startswith("report --record=reports/data/h200/aa --out="))
        self.assertIn("equals what is committed (1 files)", result.stdout)

    def test_replays_a_packed_record_and_holds_it_against_the_table_of_hashes(self):
        # The one that has zstandard: without build/venv the script takes python3.
        self.program("bin/python3", f'#!/bin/bash\nexec {shlex.quote(sys.executable)} "$@"\n')
        path = self.root / "reports/data/h200/aa.tar.zst"
        path.parent.mkdir(parents=True)
        path.write_bytes(pack_fixture.pack("aa", {"run.json": json.dumps(
            {"created_utc": "2025-03-04T00:00:00Z", "design": "ladder",
             "cache": "warm"}).encode()}))
        table = self.root / "reports/data/summaries.sha256"
        right = hashlib.sha256(b"packed\n").hexdigest()
        for arguments in (), (self.root / "reports/data/h200/aa",):
            table.write_text(f"{right}  h200/aa\n")
            self.ends(self.repro("--replay", *arguments), out="equals what is committed (1 files)")
            table.write_text(f"{'0' * 64}  h200/aa\n{right}  h200/aaa\n")
            self.ends(self.repro("--replay", *arguments), 1,
                      out="DIFFERS from what is committed: reports/data/summaries.sha256\n")

    def test_replays_the_newest_ladder_though_another_design_is_newer(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.record("h200/bb", "2025-03-05T00:00:00Z", design="leave_one_out")
        self.assertEqual(self.repro().returncode, 0)
        self.assertIn("--record=reports/data/h200/aa", self.calls()[0])

    def test_replays_the_newest_warm_ladder_though_a_cold_one_is_newer(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.record("h200/bb", "2025-03-05T00:00:00Z", cache="cold")
        self.assertEqual(self.repro().returncode, 0)
        self.assertIn("--record=reports/data/h200/aa", self.calls()[0])

    def test_compares_only_what_this_replay_has_made(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        (self.root / "reports/h200").mkdir()
        (self.root / "reports/h200/factorial.md").write_text("committed\n")
        (self.root / "out/replay").mkdir(parents=True)
        stale = self.root / "out/replay/factorial.md"
        stale.write_text("of another replay\n")
        os.utime(stale, (1, 1))
        self.ends(self.repro())

    def test_names_fresh_where_the_unfinished_run_is_of_other_shapes_or_code(self):
        self.gpu(True)
        unfinished = self.root / "out/ladder-20250101T000000Z"
        unfinished.mkdir(parents=True)
        (unfinished / "run.json").write_text("{}")
        self.program("program", "#!/bin/bash\necho \"$*\" >>calls.log\nexit 2\n")
        self.ends(self.repro("--shapes=small"), 2, err="./repro --fresh")
        self.assertEqual(len(self.calls()), 1)
        self.assertNotIn("--fresh", self.repro("--fresh").stderr)

    def test_compares_the_report_with_the_committed_one_too(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        (self.root / "reports/h200").mkdir()
        (self.root / "reports/h200/ladder.md").write_text("an older report\n")
        self.ends(self.repro(), 1, out="DIFFERS from what is committed: reports/h200/ladder.md\n")

    def test_of_an_older_record_the_verdicts_alone_are_compared(self):
        older = self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.record("h200/bb", "2025-03-05T00:00:00Z")
        self.record("h100/zz", "2025-03-06T00:00:00Z")  # of another GPU
        (self.root / "reports/h200").mkdir()
        page = self.root / "reports/h200/ladder.md"
        page.write_text("of the newer record\n")
        self.ends(self.repro("--replay", older),
                  out=("equals what is committed (1 files)", "are of a newer record"))
        (older / "judged").write_text("otherwise\n")
        result = self.repro("--replay", older)
        self.assertEqual(result.returncode, 1)
        self.assertIn("DIFFERS from what is committed: reports/data/h200/aa/summary.json\n",
                      result.stdout)
        # Following the advice would overwrite the newer record's pages.
        self.assertNotIn("--out=reports/h200", result.stdout)
        self.assertIn("--out=reports/h200", self.repro(
            f"--replay={self.record('h200/cc', '2025-03-07T00:00:00Z')}").stdout)

    def test_of_another_design_the_newest_records_pages_are_compared(self):
        record = self.record("h200/aa", "2025-03-04T00:00:00Z", design="one_on")
        self.record("h200/bb", "2025-03-05T00:00:00Z")
        (self.root / "reports/h200").mkdir()
        (self.root / "reports/h200/ladder.md").write_text("an older report\n")
        self.assertIn("reports/h200/ladder.md", self.repro("--replay", record).stdout)

    def test_nothing_to_compare_with_is_no_success(self):
        (self.record("h200/aa", "2025-03-04T00:00:00Z") / "summary.json").unlink()
        self.ends(self.repro(), 1, out="Nothing is committed beside this record")

    def test_a_committed_picture_that_is_not_made_again_is_a_difference(self):
        # The ladder's page shows two of them, and another design's a third.
        judged = "![](effects.svg)\n![](overview.svg)\n"
        record = self.record("h200/aa", "2025-03-04T00:00:00Z", judged=judged)
        (record / "summary.json").write_text(judged)
        reports = self.root / "reports/h200"
        reports.mkdir()
        (reports / "ladder.md").write_text(judged)
        (reports / "hopper.md").write_text("![](hopper_effects.svg)\n")
        for name in "effects", "overview", "hopper_effects":
            (reports / f"{name}.svg").write_text("drawn\n")
        all_of_it = ["effects.svg", "overview.svg"]
        for missing in all_of_it:
            (self.root / "pictures").write_text(" ".join(set(all_of_it) - {missing}))
            shutil.rmtree(self.root / "out", ignore_errors=True)
            self.ends(self.repro(), 1, out=f"committed: reports/h200/{missing} (not made)\n")
        (self.root / "pictures").write_text(" ".join(all_of_it))
        self.ends(self.repro(), out="equals what is committed (4 files)")

    def test_fails_when_the_verdicts_differ_from_the_committed_ones(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z", judged="otherwise\n")
        self.ends(self.repro(), 1, out="reports/data/h200/aa/summary.json")

    def test_fails_where_there_is_neither_gpu_nor_record(self):
        self.ends(self.repro(), 1, err="no recorded run")

    def test_measures_judges_and_reports_where_there_is_a_gpu(self):
        self.gpu(True)
        result = self.ends(self.repro("--shapes=small,long"))
        run, judge, report = self.calls()
        self.assertRegex(run, r"^run --design=ladder --out=out/ladder-\d{8}T\d{6}Z --python=\S+ "
                              r"--shapes=small,long$")
        self.assertRegex(judge, r"^judge --record=out/ladder-\d{8}T\d{6}Z$")
        self.assertRegex(report, r"^report --record=(\S+) --out=\1 ")
        self.assertRegex(result.stdout, r"Report: out/ladder-\w+/ladder.md")

    def test_resumes_an_unfinished_run_unless_told_otherwise(self):
        self.gpu(True)
        unfinished = self.root / "out/ladder-20250101T000000Z"
        unfinished.mkdir(parents=True)
        (unfinished / "run.json").write_text("{}")
        self.ends(self.repro("--fresh"))
        self.assertNotIn("20250101T000000Z", self.calls()[0])
        self.assertEqual(self.repro().returncode, 0)
        self.assertIn("--out=out/ladder-20250101T000000Z", self.calls()[3])

    def test_replays_on_demand_even_where_there_is_a_gpu(self):
        self.gpu(True)
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.record("h200/bb", "2025-03-05T00:00:00Z")
        self.ends(self.repro("--replay", str(self.root / "reports/data/h200/aa")))
        self.assertIn("--record=reports/data/h200/aa", self.calls()[0])

    def test_does_not_measure_without_nvcc(self):
        self.gpu(True)
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.assertIn("there is no nvcc here", self.repro(CUDACXX="no-nvcc").stdout)

    def test_builds_no_more_than_it_needs(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        self.assertEqual(self.repro().returncode, 0)
        self.assertEqual(self.presets(), {"replay"})
        (self.root / "presets.log").unlink()
        self.gpu(True)
        self.assertEqual(self.repro().returncode, 0)
        self.assertEqual(self.presets(), {"ladder"})

    def test_uses_a_finished_build_of_everything_and_no_other(self):
        self.record("h200/aa", "2025-03-04T00:00:00Z")
        (self.root / "build/bin").mkdir(parents=True)
        shutil.copy(self.root / "program", self.root / "build/bin/warpledger")
        source = self.root / "kernels/sdpa/x.cuh"
        source.parent.mkdir(parents=True)
        source.touch()
        for seconds, preset in ((10, "replay"), (-10, "release")):
            then = (self.root / "build/bin/warpledger").stat().st_mtime + seconds
            os.utime(source, (then, then))
            (self.root / "presets.log").unlink(missing_ok=True)
            self.repro()
            self.assertEqual(self.presets(), {preset})

    def test_refuses_a_flag_without_its_value_or_given_twice(self):
        for arguments, told in ((["--out"], "--out needs a value"),
                                (["--shapes="], "--shapes needs a value"),
                                (["--shapes=a", "--shapes", "b"], "--shapes is given twice"),
                                (["--replay="], "unknown argument '--replay='")):
            result = self.repro(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ""), arguments)
            self.assertIn(told, result.stderr)

    def test_stops_when_a_step_fails(self):
        self.gpu(True)
        self.program("program", "#!/bin/bash\necho \"$*\" >>calls.log\n[[ $1 != run ]]\n")
        result = self.repro()
        self.assertNotEqual(result.returncode, 0)
        self.assertEqual(len(self.calls()), 1)
