# SPDX-License-Identifier: Apache-2.0
"""The designs beyond the ladder, from a record to verdicts, shares, report and pictures.

Records are invented from a model whose effects are known.
"""

import copy
import hashlib
import json
import math
import re
import shutil
import sys

import cli_fixture
import record_files
from fixture import ROOT
from invented_record import check_lines, run_json, sample_lines, scatter, write_no_micro

# ln of what each toggle gains wherever it is on.
GAINS = {"kv_tiling": 1.0, "tile_m32_warps4": 0.2, "warp_shuffle": 0.25, "vector_loads": 0.3,
         "wmma_qk": 0.15, "cp_async_stages": 0.03, "wmma_pv": 0.4}
# ln of what a pair gains on top of both.
PAIRS = {("cp_async_stages", "wmma_pv"): 0.2, ("wmma_qk", "wmma_pv"): -0.1}
FACTORS = ["warp_shuffle", "vector_loads", "wmma_qk", "cp_async_stages", "wmma_pv"]


def us_of(toggles, shape):
    gain = sum(GAINS[toggle] for toggle in toggles)
    gain += sum(more for pair, more in PAIRS.items() if toggles.issuperset(pair))
    return {"mission_b": 500.0, "small": 50.0}[shape] * math.exp(-gain)


def toggles_of(arm):
    """The toggles that it turns on, but for the one that changes nothing."""
    toggles = {part.split("=")[0] for part in arm["config"].split("+")}
    return toggles - {"minimal_scalar", "null_toggle"}


class DesignTest(cli_fixture.CliTest):
    designs = None  # as the program lists them: asked once for all tests

    def arms(self, design):
        if DesignTest.designs is None:
            DesignTest.designs = json.loads(self.said("list", "designs", "--format=json"))["designs"]
        return next(copy.deepcopy(row["arms"]) for row in self.designs if row["name"] == design)

    def write_design(self, design, arms, shapes, us_of, wrong=(), cache="warm"):
        """Every arm of a block shares its drift, and a scatter of 0.1% moves single samples."""
        def sample(arm, shape, process, block, order):
            us = us_of(toggles_of(arm), shape) if arm["role"] != "floor" else 2.0
            drift = 1 + 0.01 * block + 0.005 * process
            return us * drift * (1 + 0.0005 * scatter(process, block, order))

        floor = {"name": "floor:empty_kernel", "config": "", "role": "floor", "toggle": "", "base": ""}
        run = run_json(design, [*arms, floor], shapes, run_id=f"{design}-invented", cache=cache,
                       blocks_per_process=5)
        self.write_record(run, sample_lines(run, sample), check_lines(run, wrong))
        write_no_micro(self.path)
        # The null toggle reaches no code.
        codes = {arm["config"]: hashlib.sha256(
            arm["config"].replace("+null_toggle", "").encode()).hexdigest() for arm in arms}
        self.write("record/codegen.json", json.dumps({
            "schema_version": 1, "disassembler": "", "instances": [
                {"variant": config, "arch": "sm_90", "code_sha256": code, "ptx_sha256": code,
                 "opcodes": {}} for config, code in codes.items()]}))

    def judged(self, design, shapes=("mission_b",), **options):
        self.write_design(design, self.arms(design), shapes, us_of, **options)
        self.said("judge", "--record=record")
        return json.loads((self.path / "record/summary.json").read_text())

    def report(self, *arguments):
        self.said("report", f"--record={self.path / 'record'}", f"--out={self.path / 'out'}",
                  f"--python={sys.executable}", *arguments)
        return sorted(path.name for path in (self.path / "out").iterdir())


class OneOn(DesignTest):
    def test_judges_each_toggle_against_what_it_needs(self):
        verdicts = self.judged("one_on")["verdicts"]
        self.assertEqual([v["toggle"] for v in verdicts], list(GAINS))
        for verdict in verdicts:
            self.assertAlmostEqual(math.log(verdict["ratio"]), GAINS[verdict["toggle"]], delta=2e-3)
            # Predictions were written for the ladder's order.
            self.assertIsNone(verdict["prediction_held"])
        base_of = {v["toggle"]: v["base"] for v in verdicts}
        self.assertEqual(base_of["kv_tiling"], "minimal_scalar")
        self.assertEqual(base_of["warp_shuffle"], "minimal_scalar")
        self.assertEqual(base_of["wmma_pv"], "one_on:kv_tiling")
        self.assertEqual(base_of["cp_async_stages"], "one_on:vector_loads")

    def test_has_a_page_and_a_picture_of_its_own(self):
        self.judged("one_on")
        self.assertEqual(self.report(), ["one_on.md", "one_on_effects.svg", "one_on_matrix.svg"])
        page = (self.path / "out/one_on.md").read_text()
        self.assertIn("# Each toggle alone on NVIDIA H200, 2026-01-02\n", page)
        self.assertIn("(one_on_effects.svg)", page)
        self.assertIn("| `wmma_pv` | `minimal_scalar{kv_tiling}` |", page)


class ColdL2(DesignTest):
    def test_has_a_page_and_pictures_beside_those_of_the_warm_record(self):
        for design, linked in (("one_on", ["one_on_effects_cold", "one_on_matrix_cold"]),
                               ("ladder", ["effects_cold", "ladder_b1_h8_s512_d64_cold", "matrix_cold",
                                           "speedup_overview_cold"])):
            with self.subTest(design):
                self.judged(design, cache="cold")
                files = self.report()
                self.assertEqual([name for name in files if name.endswith(".md")],
                                 [f"{design}_cold.md"])
                page = (self.path / "out" / f"{design}_cold.md").read_text()
                self.assertIn(" with a cold L2, 2026-01-02\n", page.partition("\n\n")[0] + "\n")
                self.assertEqual(sorted(set(re.findall(r"\((\w+)\.svg\)", page))), linked)
                for name in linked:
                    self.assertIn(f"{name}.svg", files)
                for name in files:
                    self.assertIn("_cold.", name)
                for folder in "record", "out":
                    shutil.rmtree(self.path / folder)

    def test_stands_in_no_calibration(self):
        calibration = record_files.records(ROOT / "reports/data", "run.json", "calibrate-")[0]
        with calibration.folder() as folder:
            shutil.copytree(folder, self.path / "calibration")
        for cache in "warm", "cold":
            self.judged("one_on", cache=cache)
            self.said("report", f"--record={self.path / 'calibration'}", "--out=out", "--noplots")
            page = (self.path / "out/calibration.md").read_text()
            self.assertEqual("`one_on-invented`" in page, cache == "warm")
            shutil.rmtree(self.path / "record")


class PackedBeside(DesignTest):
    """Pages that quote what lies beside their record say the same once that is packed."""

    def place(self, record):
        with record.folder() as folder:
            return shutil.copytree(folder, self.path / "data" / record.name)

    def reported(self, record, page):
        self.said("report", f"--record={record}", "--out=out", "--noplots", "--summary=summary.json")
        return (self.path / "out" / page).read_text()

    def test_a_calibration(self):
        earlier, later = map(self.place, record_files.records(
            ROOT / "reports/data", "run.json", "calibrate-")[-2:])
        plain = self.reported(later, "calibration.md")
        self.assertIn(f"Together with `{earlier.name}`", plain)
        self.said("pack", "--unfinished", earlier)
        self.assertEqual(self.reported(later, "calibration.md"), plain)

    def test_the_record_whose_times_stand_beside_counters(self):
        newest = record_files.records(ROOT / "reports/data", "profile.json", "profile-")[-1]
        # Its committed page names these records: to find them, the program would judge every other.
        page = next(text for text in (path.read_text(encoding="utf-8") for path in
                                      (ROOT / "reports" / newest.path.parent.name).rglob("profile.md"))
                    if f"| run | {newest.name} |" in text)
        timed_in = re.search(r"(?m)^\| times from \| .*`([^`]+)` \|$", page)[1]
        profile = self.place(newest)
        # A set's file begins with the set's name; boards that began in the same second share one of the run.
        of_that_second = newest.path.parent.glob(f"*{timed_in.rpartition('-')[2]}*")
        timed = [self.place(record) for record in map(record_files.open_record, sorted(of_that_second))
                 if record.json("run.json")["run_id"] == timed_in]
        self.assertTrue(timed)
        plain = self.reported(profile, "profile.md")
        self.assertIn(timed_in, plain)
        for each in timed:
            self.said("pack", "--unfinished", each)
        self.assertEqual(self.reported(profile, "profile.md"), plain)


class LeaveOneOut(DesignTest):
    def test_judges_the_full_kernel_against_the_one_without_the_toggle(self):
        verdicts = {v["toggle"]: v for v in self.judged("leave_one_out")["verdicts"]}
        self.assertEqual(list(verdicts), list(GAINS))
        wmma = verdicts["wmma_pv"]
        self.assertEqual((wmma["base"], wmma["candidate"]), ("without:wmma_pv", "leave_one_out:full"))
        # On top of everything else it brings both of its pairs.
        self.assertAlmostEqual(math.log(wmma["ratio"]), 0.4 + 0.2 - 0.1, delta=2e-3)
        vector = verdicts["vector_loads"]
        self.assertEqual(vector["base"], "without:vector_loads(+dependents)")
        self.assertAlmostEqual(math.log(vector["ratio"]), 0.3 + 0.03 + 0.2, delta=2e-3)
        tiling = verdicts["kv_tiling"]
        self.assertEqual(tiling["base"], "without:kv_tiling(+dependents)")
        self.assertAlmostEqual(math.log(tiling["ratio"]), sum(GAINS.values()) - 0.25 + 0.1,
                               delta=2e-3)

    def test_a_broken_reduced_kernel_breaks_its_own_verdict_only(self):
        verdicts = {v["toggle"]: v for v in
                    self.judged("leave_one_out", wrong=["without:wmma_qk"])["verdicts"]}
        self.assertEqual(verdicts["wmma_qk"]["verdict"], "BROKEN")
        self.assertEqual(verdicts["wmma_pv"]["verdict"], "ADOPT")

    def test_has_a_page_and_a_picture_of_its_own(self):
        self.judged("leave_one_out")
        self.assertEqual(self.report(), ["leave_one_out.md", "leave_one_out_effects.svg",
                                         "leave_one_out_matrix.svg"])
        page = (self.path / "out/leave_one_out.md").read_text()
        self.assertIn("| `vector_loads` | `leave_one_out:full{vector_loads=off, cp_async_stages=copy_through_registers}`, also without "
                      "`cp_async_stages` |", page)
        self.assertIn("| `wmma_pv` | `leave_one_out:full{wmma_pv=off}` |", page)


class Factorial(DesignTest):
    def test_finds_the_effects_that_were_planted(self):
        summary = self.judged("factorial")
        rows = {row["toggle"]: row for row in summary["attribution"]}
        self.assertEqual(list(rows), FACTORS)
        # No pair: the same everywhere.
        for figure in ("main_effect_ratio", "first_ratio", "last_ratio"):
            self.assertAlmostEqual(math.log(rows["warp_shuffle"][figure]), 0.25, delta=2e-3)
        self.assertEqual(rows["warp_shuffle"]["n_pairs"], 12)
        copies = rows["cp_async_stages"]
        self.assertEqual(copies["n_pairs"], 8)  # with vector_loads on
        self.assertEqual((copies["first_base"], copies["last_base"]),
                         ("cell:vector_loads", "cell:warp_shuffle+vector_loads+wmma_qk+wmma_pv"))
        self.assertAlmostEqual(math.log(copies["first_ratio"]), 0.03, delta=2e-3)
        self.assertAlmostEqual(math.log(copies["last_ratio"]), 0.23, delta=2e-3)
        self.assertAlmostEqual(math.log(copies["main_effect_ratio"]), 0.03 + 0.1, delta=2e-3)
        for row in rows.values():
            self.assertLessEqual(row["ci_low"], row["main_effect_ratio"])
            self.assertGreaterEqual(row["ci_high"], row["main_effect_ratio"])

    def test_shares_the_whole_gain_out(self):
        summary = self.judged("factorial")
        rows = {row["toggle"]: row for row in summary["attribution"]}
        total = rows["wmma_pv"]["total_log"]
        self.assertAlmostEqual(total, sum(GAINS[t] for t in FACTORS) + 0.1, delta=2e-3)
        self.assertAlmostEqual(sum(row["shapley_log"] for row in rows.values()), total, delta=1e-5)
        self.assertAlmostEqual(sum(row["shapley_share"] for row in rows.values()), 1, delta=1e-5)
        # By hand. wmma_qk shares -0.1 with wmma_pv. cp_async_stages and vector_loads share 0.03;
        # those two and wmma_pv share 0.2, a third each: all three are needed for it.
        planted = {"warp_shuffle": 0.25, "vector_loads": 0.3 + 0.015 + 0.2 / 3,
                   "wmma_qk": 0.15 - 0.05, "cp_async_stages": 0.015 + 0.2 / 3,
                   "wmma_pv": 0.4 - 0.05 + 0.2 / 3}
        for toggle, share in planted.items():
            self.assertAlmostEqual(rows[toggle]["shapley_log"], share, delta=2e-3)

    def test_finds_the_pairs_that_were_planted_and_no_other(self):
        pairs = {(row["a"], row["b"]): row for row in self.judged("factorial")["interactions"]}
        self.assertEqual(len(pairs), 10)
        self.assertIsNone(pairs["vector_loads", "cp_async_stages"]["interaction_ratio"])
        self.assertIn("needs the other", pairs["vector_loads", "cp_async_stages"]["reason"])
        for (a, b), row in pairs.items():
            if (a, b) == ("vector_loads", "cp_async_stages"):
                continue
            self.assertAlmostEqual(math.log(row["interaction_ratio"]), PAIRS.get((a, b), 0),
                                   delta=3e-3, msg=f"{a}, {b}")
        pair = pairs["cp_async_stages", "wmma_pv"]
        self.assertAlmostEqual(math.log(pair["a_without_b"]), 0.03, delta=2e-3)
        self.assertAlmostEqual(math.log(pair["a_with_b"]), 0.23, delta=2e-3)

    def test_the_table_says_where_each_verdict_was_taken(self):
        self.judged("factorial")
        lines = self.said("judge", f"--record={self.path / 'record'}").splitlines()
        at = lines.index("    on cell:vector_loads+wmma_qk")
        self.assertRegex(lines[at - 1], r"^cp_async_stages +mission_b +1\.03\d .* REAL_BELOW_GATE$")
        self.assertLessEqual(max(map(len, lines)), 110)

    def test_declares_what_is_not_possible(self):
        summary = self.judged("factorial")
        self.assertEqual(len(summary["infeasible"]), 8)
        for cell in summary["infeasible"]:
            self.assertEqual((cell["toggle"], cell["missing"]),
                             ("cp_async_stages", "vector_loads"))
            self.assertNotIn("why", cell)
            self.assertIn("cp_async_stages", cell["variant"])
            self.assertNotIn("vector_loads", cell["variant"])

    def test_says_of_an_excluded_cell_what_excludes_it_and_why(self):
        # wmma_qk is always on: smem_layout needs it.
        base = "kv_tiling+vector_loads+wmma_qk+wmma_pv"
        arms = [("none", "", "base", "", ""),
                ("cp_async_stages", "+cp_async_stages", "step", "cp_async_stages", "cell:none"),
                ("smem_layout", "+smem_layout", "step", "smem_layout", "cell:none"),
                ("cp_async_stages+smem_layout", "+cp_async_stages+smem_layout", "step",
                 "smem_layout", "cell:cp_async_stages")]
        arms = [{"name": f"cell:{cell}", "config": base + config, "role": role, "toggle": toggle,
                 "base": against} for cell, config, role, toggle, against in arms]
        self.write_design("factorial:cp_async_stages,smem_layout,xor_swizzle", arms, ["mission_b"],
                          lambda toggles, shape: 100.0 / (1 + len(toggles)))
        self.said("judge", "--record=record")
        cells = json.loads((self.path / "record/summary.json").read_text())["infeasible"]
        self.assertEqual([cell["variant"] for cell in cells],
                         ["cell:xor_swizzle", "cell:cp_async_stages+xor_swizzle",
                          "cell:smem_layout+xor_swizzle",
                          "cell:cp_async_stages+smem_layout+xor_swizzle"])
        for cell in cells:
            self.assertEqual((cell["toggle"], cell["missing"], cell["verdict"]),
                             ("xor_swizzle", "wmma_qk", "NOT_APPLICABLE"))
            self.assertIn("leading dimension", cell["why"])
        self.report("--noplots")
        self.assertIn("`xor_swizzle` can't go with `wmma_qk`, for ",
                      next((self.path / "out").glob("*.md")).read_text())

    def test_a_broken_cell_takes_the_shares_but_not_the_main_effects(self):
        summary = self.judged("factorial", wrong=["cell:wmma_qk"])
        rows = {row["toggle"]: row for row in summary["attribution"]}
        for row in rows.values():
            self.assertIsNone(row["shapley_share"])
            self.assertIn("cell:wmma_qk: cell:wmma_qk failed", row["reason"])
        self.assertEqual(rows["warp_shuffle"]["n_pairs"], 11)
        self.assertAlmostEqual(math.log(rows["warp_shuffle"]["main_effect_ratio"]), 0.25,
                               delta=2e-3)
        self.assertEqual(self.report(), [
            "factorial.md", "factorial_interactions_b1_h8_s512_d64.svg"])
        self.assertIn("shares can't be computed", (self.path / "out/factorial.md").read_text())

    def test_the_page_says_what_a_ladder_hides(self):
        self.judged("factorial", shapes=("small", "mission_b"))
        self.assertEqual(self.report(), [
            "factorial.md", "factorial_b1_h8_s512_d64.svg",
            "factorial_interactions_b1_h8_s512_d64.svg", "factorial_interactions_small.svg",
            "factorial_small.svg"])
        page = (self.path / "out/factorial.md").read_text()
        self.assertRegex(page, r"- `cp_async_stages`: \+3\.\d% \[.*\] on `cell:vector_loads`, "
                               r"\+25\.\d% \[.*\] once all else is on")
        self.assertRegex(page, r"- `wmma_pv`: \+4\d\.\d% without `cp_async_stages`, \+\d+\.\d% with "
                               r"it: the two help each other \(interaction 1\.22\d×")
        self.assertIn("share a gain", page)
        self.assertIn("- `cell:cp_async_stages`: `cp_async_stages` needs `vector_loads`\n", page)

    def test_is_refused_for_a_readme(self):
        self.judged("factorial")
        readme = self.path / "README.md"
        readme.write_text("<!-- generated:ladder begin -->\n<!-- generated:ladder end -->\n")
        message = self.said("report", f"--record={self.path / 'record'}", f"--out={self.path}",
                            "--noplots", f"--readme={readme}", code=2)
        self.assertIn("the README shows a ladder", message)


class DryRun(DesignTest):
    def run_dry(self, *arguments):
        done = self.run_program("run", "--dry_run", *arguments)
        return done.returncode, done.stdout, done.stderr

    def test_counts_arms_samples_and_what_can_not_be(self):
        code, out, _ = self.run_dry("--design=factorial", "--shapes=small", "--processes=2",
                                    "--blocks=3")
        self.assertEqual(code, 0, out)
        self.assertIn("Cells: 24 of 32 that it spans\n", out)
        self.assertIn("Arms: 27, of 25 distinct kernels", out)
        self.assertIn("never timed: 8\n", out)
        self.assertIn("Samples: 162 = 2 processes x 1 shapes x 3 blocks x 27 arms\n", out)
        self.assertIn("Left: 162 samples", out)

    def test_says_what_the_record_holds_and_changes_nothing_there(self):
        self.judged("factorial")
        record = self.path / "record"
        before = {path.name: path.read_bytes() for path in record.iterdir()}
        code, out, _ = self.run_dry("--design=factorial", "--shapes=mission_b", "--processes=4",
                                    "--blocks=5", f"--out={record}")
        self.assertEqual(code, 0, out)
        self.assertIn(": 15 of 20 blocks are there\n", out)
        self.assertIn(f"Left: {5 * 27} samples", out)
        self.assertEqual({path.name: path.read_bytes() for path in record.iterdir()}, before)

    def test_takes_the_times_that_a_record_holds_for_its_estimate(self):
        self.judged("factorial")
        flags = ("--design=factorial", "--shapes=mission_b")
        record = f"--record={self.path / 'record'}"
        _, blind, _ = self.run_dry(*flags)
        self.assertIn("Times: 0 of 27,", blind)
        self.assertRegex(blind, r"about \d+ (s|min) at least with")
        code, out, error = self.run_dry(*flags, record)
        self.assertEqual(code, 0, error)
        self.assertIn("Times: 27 of 27,", out)
        self.assertRegex(out, r"about \d+ (s|min) with")
        _, half, _ = self.run_dry("--design=factorial", "--shapes=mission_b,small", record)
        self.assertIn("Times: 27 of 54,", half)
        # The record was measured warm.
        code, _, error = self.run_dry(*flags, record, "--cache=cold")
        self.assertEqual(code, 2)
        self.assertIn("measured with --cache=warm", error)

    def test_says_what_excludes_a_cell(self):
        _, out, _ = self.run_dry("--design=factorial:cp_async_stages,smem_layout,xor_swizzle")
        self.assertIn("Cells: 4 of 8 that it spans\n", out)
        self.assertRegex(out, r"\(xor_swizzle can't go with \w+: .*leading dimension")
        self.assertNotIn("xor_swizzle needs", out)

    def test_refuses_what_a_run_would_refuse(self):
        for flag, why in (("--stop=ci:0%", "it is off, or ci:1%"),
                          ("--cache=hot", "it is warm or cold"),
                          ("--peers=on", "it is auto, off, or some of flash,cudnn"),
                          ("--peers=flash,flash", "it is auto, off"),
                          ("--plant=trap@nonesuch", "nonesuch"),
                          ("--processes=0", "must be positive"),
                          ("--processes=10001", "--processes may be 10000 at most"),
                          ("--blocks=2000000000", "--blocks 10000"),
                          ("--replay_us=nan", "must be positive"),
                          ("--max_launches=1", "--max_launches at least 4")):
            code, _, error = self.run_dry(flag)
            self.assertEqual(code, 2, flag)
            self.assertIn(why, error)
        code, _, error = self.run_dry("--stop=ci:1%", "--processes=2")
        self.assertEqual(code, 2)
        self.assertIn("needs --processes=5 or more", error)

    def test_names_cache_mode_and_looks(self):
        _, out, _ = self.run_dry("--stop=ci:1%", "--cache=cold", "--shapes=mission_b")
        self.assertIn("Cache: cold, of an L2 of 60 MiB; a run asks its GPU, and refuses shapes "
                      "that take more than 2048 input sets", out)
        self.assertIn("Looks: after 3, 5 processes", out)
        _, out, _ = self.run_dry()
        self.assertIn("Cache: warm\n", out)
        self.assertNotIn("Looks", out)

    def test_a_cold_l2_is_that_of_the_record_where_there_is_one(self):
        self.judged("one_on", cache="cold")
        path = self.path / "record/run.json"
        run = json.loads(path.read_text())
        run["gpu"]["l2_bytes"] = 1 << 20
        path.write_text(json.dumps(run))
        for flag in ("--out", "--record"):
            code, out, error = self.run_dry("--design=one_on", "--shapes=mission_b",
                                            "--cache=cold", f"{flag}={self.path / 'record'}")
            self.assertEqual(code, 0, error)
            self.assertIn("of an L2 of 1 MiB;", out)

    def test_says_how_to_build_a_design_that_the_build_lacks(self):
        code, out, _ = self.run_dry("--design=factorial:cp_async_stages,smem_layout")
        if "this is a build without CUDA" in out:
            self.skipTest("a build without kernels lacks none of them")
        self.assertEqual(code, 1)
        self.assertIn("To build them: cmake --preset release '-DWARPLEDGER_EXTRA_DESIGNS="
                      "factorial:cp_async_stages,smem_layout' && cmake --build", out)
        refusal = self.said("run", "--design=factorial:cp_async_stages,smem_layout", "--out=o", code=2)
        self.assertIn("-DWARPLEDGER_EXTRA_DESIGNS=", refusal)
        # Both count distinct kernels.
        lacks = re.search(r"this build lacks (\d+)", out)[1]
        self.assertIn(f"this build lacks {lacks} of its kernels", refusal)

    def test_refuses_the_record_of_another_design(self):
        self.judged("one_on")
        code, _, error = self.run_dry("--design=factorial", f"--out={self.path / 'record'}")
        self.assertEqual(code, 2)
        self.assertIn("holds a run of design 'one_on'", error)
