# SPDX-License-Identifier: Apache-2.0
"""`warpledger compare`, `pool`, `gate` and `ratchet` as a user or a CI job calls them."""

import json
import random
import re
import xml.etree.ElementTree

import cli_fixture
from cli_fixture import DAMAGED, USAGE
from fixture import ROOT
from invented_record import ARMS, MEDIAN_US, run_json, sample_lines

PASS, REGRESSION, CANNOT_TELL, NOT_COMPARED = 0, 1, 2, 3
CELLS = 2  # minimal_scalar and ladder:kv_tiling on `small`


class CompareTest(cli_fixture.CliTest):
    def make(self, name, seed, processes=5, scale=None, **run):
        """A record with 0.4% of scatter; `scale` holds {arm: factor}."""
        source = random.Random(seed)

        def us_of(arm, *_):
            us = MEDIAN_US[arm["name"]] * (scale or {}).get(arm["name"], 1)
            return us * (1 + 0.004 * (source.random() - 0.5))

        run = run_json(run_id=f"run-{name}", processes=processes, blocks_per_process=8) | run
        self.write_record(run, sample_lines(run, us_of), name=name)

    def gate(self, code, *flags):
        return self.ends(self.run_program("gate", "--record=new", "--baseline=old", *flags), code)


class Gate(CompareTest):
    def setUp(self):
        super().setUp()
        self.make("old", 1)

    def test_passes_two_runs_of_one_thing(self):
        self.make("new", 2)
        self.assertIn("No regression: of 2 cells, 2 passed", self.gate(PASS).stdout)

    def test_finds_a_planted_regression_of_five_per_cent(self):
        self.make("new", 2, scale={"ladder:kv_tiling": 1.05})
        result = self.gate(REGRESSION)
        self.assertRegex(result.stdout, r"ladder:kv_tiling +small +\+5\.\d% .* REGRESSION")
        self.assertRegex(result.stdout, r"minimal_scalar +small .* PASS")
        self.gate(PASS, "--tolerance=0.1")
        self.assertIn("none/here.xml", self.gate(REGRESSION, "--junit=none/here.xml").stderr)
        # Found is found, also where it could not be printed.
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = self.run_program("gate", "--record=new", "--baseline=old", stdout=full)
        self.assertEqual(done.returncode, REGRESSION, done.stderr)
        self.assertIn("standard output can't be written to its end", done.stderr)

    def test_cannot_tell_from_too_few_processes(self):
        self.make("new", 2, processes=1)
        self.assertIn("1 process only", self.gate(CANNOT_TELL).stdout)

    def test_refuses_a_record_with_a_missing_cell(self):
        self.make("new", 2, arms=[
            dict(arm, config="warp_shuffle") if arm["name"] == "ladder:kv_tiling" else arm
            for arm in ARMS])
        self.assertRegex(self.gate(NOT_COMPARED).stdout, "ladder:kv_tiling +small .* MISSING")

    def test_refuses_another_gpu_unless_it_is_allowed(self):
        self.make("new", 2, gpu=run_json()["gpu"] | {"uuid": "GPU-2"})
        self.assertIn("--allow_other_gpu", self.gate(NOT_COMPARED).stdout)
        self.gate(PASS, "--allow_other_gpu")

    def test_has_one_exit_code_for_all_that_keeps_it_from_comparing(self):
        self.gate(NOT_COMPARED)  # there is no `new`
        self.make("new", 2)
        for flags in (["--tolerance=0"], ["--tolerance=much"], ["--nonesuch"], ["--format=xml"],
                      ["--junit=none/here.xml"], ["argument"], ["--baseline="]):
            with self.subTest(flags=flags):
                result = self.gate(NOT_COMPARED, *flags)
                self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")
        (self.path / "new/samples.jsonl").write_text("{")
        self.assertIn("samples.jsonl:1", self.gate(NOT_COMPARED).stderr)

    def test_writes_junit_xml_with_a_test_case_for_each_cell(self):
        self.make("new", 2, scale={"ladder:kv_tiling": 1.05})
        self.gate(REGRESSION, "--junit=gate.xml")
        suite = xml.etree.ElementTree.parse(self.path / "gate.xml").getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures"), suite.get("errors"),
                          suite.get("skipped")), (str(CELLS), "1", "0", "0"))
        cases = {(case.get("classname"), case.get("name")): case for case in suite.iter("testcase")}
        self.assertEqual(set(cases), {("small", "minimal_scalar"), ("small", "ladder:kv_tiling")})
        failure = cases["small", "ladder:kv_tiling"].find("failure")
        self.assertIn("slower by at least +4.", failure.get("message"))
        self.assertIsNone(cases["small", "minimal_scalar"].find("failure"))
        properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
        self.assertEqual((properties["baseline"], properties["record"]), ("run-old", "run-new"))

    def test_writes_junit_xml_that_parses_whatever_a_record_is_called(self):
        self.make("new", 2, gpu=run_json()["gpu"] | {"uuid": "<&\"'\u0001\u00b5>"})
        self.gate(NOT_COMPARED, "--junit=gate.xml")
        root = xml.etree.ElementTree.parse(self.path / "gate.xml").getroot()
        message = root.find(".//error").get("message")
        self.assertIn("gpu.uuid: expected a plain name", message)
        self.assertIn("found \"<&\\\"\\'\\x01\u00b5>\"", message)

    def test_writes_markdown_for_a_pull_request(self):
        self.make("new", 2, scale={"ladder:kv_tiling": 1.05})
        self.gate(REGRESSION, "--markdown=gate.md")
        text = (self.path / "gate.md").read_text(encoding="utf-8")
        self.assertTrue(text.startswith("### Kernel times: Regression\n"), text)
        self.assertIn("| `ladder:kv_tiling` | `small` |", text)

    def test_writes_both_files_where_nothing_could_be_compared(self):
        for flags in ([], ["--format=yaml"], ["--tolerance=-1"]):
            result = self.gate(NOT_COMPARED, "--junit=gate.xml", "--markdown=gate.md",
                               *flags)
            why = result.stderr.removeprefix("warpledger: ").strip()
            suite = xml.etree.ElementTree.parse(
                self.path / "gate.xml").getroot().find("testsuite")
            self.assertEqual((suite.get("errors"), suite.get("failures")), ("1", "0"))
            self.assertEqual(suite.find("testcase/error").get("message"), why)
            text = (self.path / "gate.md").read_text(encoding="utf-8")
            self.assertIn("### Kernel times: Could not compare", text)
            self.assertIn(why, text)
            (self.path / "gate.xml").unlink()
            (self.path / "gate.md").unlink()
            if not flags:
                self.make("new", 2)  # then only the flags are wrong

    def test_prints_json_for_scripts(self):
        self.make("new", 2)
        gate = json.loads(self.gate(PASS, "--format=json").stdout)
        self.assertEqual(gate["exit"], PASS)
        self.assertEqual([cell["outcome"] for cell in gate["cells"]], ["PASS"] * CELLS)

    def test_explains_its_exit_codes(self):
        text = self.run_program("help", "gate").stdout
        for code in (PASS, REGRESSION, CANNOT_TELL, NOT_COMPARED):
            self.assertRegex(text, rf"\b{code} \w")


class Compare(CompareTest):
    def setUp(self):
        super().setUp()
        self.make("old", 1)
        self.make("new", 2, scale={"ladder:kv_tiling": 2.5})  # 2.0x becomes 0.8x

    def test_shows_ratios_and_the_verdict_that_changed_its_sign(self):
        result = self.ends(self.run_program("compare", "--a=old", "--b=new", "--out=compare.md"))
        self.assertRegex(result.stdout, r"ladder:kv_tiling +small .* 0\.400 .* SLOWER")
        self.assertRegex(result.stdout, r"minimal_scalar +small .* SAME")
        markdown = (self.path / "compare.md").read_text(encoding="utf-8")
        self.assertTrue(markdown.startswith("# Two records compared\n"))
        self.assertIn("`ladder:kv_tiling`", markdown)

    def test_prints_json_for_scripts(self):
        result = self.run_program("compare", "--a=old", "--b=new", "--format=json")
        comparison = json.loads(result.stdout)
        self.assertEqual([cell["outcome"] for cell in comparison["cells"]], ["SAME", "SLOWER"])
        self.assertEqual(comparison["verdicts"]["compared"], 1)

    def test_wants_two_records(self):
        for flags in ([], ["--a=old"], ["--b=new"], ["--a=old", "--b=none"]):
            result = self.ends(self.run_program("compare", *flags), USAGE)
            self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")

    def test_leaves_nothing_behind_when_it_fails(self):
        before = sorted(self.path.rglob("*"))
        self.run_program("compare", "--a=old", "--b=none", "--out=compare.md")
        self.assertEqual(sorted(self.path.rglob("*")), before)


class Pool(CompareTest):
    CODE = {"schema_version": 1, "disassembler": "", "instances": [
        {"variant": config, "arch": "sm_90", "code_sha256": f"code of {config}", "ptx_sha256": "p",
         "opcodes": {}} for config in ("minimal_scalar", "kv_tiling")]}

    def setUp(self):
        super().setUp()
        for at, board in enumerate(("GPU-1", "GPU-2", "GPU-3")):
            self.make(board, at, gpu=run_json()["gpu"] | {"uuid": board})
            self.write(f"{board}/codegen.json", json.dumps(self.CODE))

    def pool(self, *flags):
        return json.loads(self.said("pool", "--format=json", *flags))

    def test_pools_three_boards_by_name_or_by_their_folder(self):
        pooled = self.pool("--record=GPU-1,GPU-2,GPU-3")
        (tiling,) = pooled["comparisons"]
        self.assertEqual([board["gpu_uuid"] for board in tiling["boards"]],
                         ["GPU-1", "GPU-2", "GPU-3"])
        self.assertEqual(tiling["verdict"], "ADOPT")
        self.assertEqual(self.pool("--record=."), pooled)

    def test_one_record_is_enough(self):
        text = self.said("pool", "--record=GPU-1", "--out=pooled.json")
        self.assertRegex(text, r"kv_tiling +small +1 +(?:2\.0|1\.9)\d* +\[.*\] +\[.*\] +1\.\d\d +ADOPT")
        pooled = json.loads((self.path / "pooled.json").read_text(encoding="utf-8"))
        one = pooled["comparisons"][0]
        self.assertLess(one["another_board"]["ci_low"], one["same_board"]["ci_low"])

    def test_leaves_out_one_board_after_the_other(self):
        text = self.said("pool", "--record=.", "--leave_one_out")
        self.assertRegex(text, r"(?m)^ladder +not_capped +all +all +3 +3 +100\.0%")

    def test_refuses_what_it_can_not_pool(self):
        for flags, said in (
                ([], "--record=DIR"), (["--record=GPU-1,GPU-1"], "given twice"),
                (["--record=none"], "none"), (["--record=GPU-1", "--confidence=95"], "between 0"),
                (["--record=GPU-1", "--format=xml"], "--format=xml")):
            with self.subTest(flags=flags):
                result = self.run_program("pool", *flags)
                self.assertEqual(result.returncode, USAGE, result.stderr)
                self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")
                self.assertIn(said, result.stderr)

    def test_and_the_others_refuse_damaged_samples_in_one_line(self):
        self.said("judge", "--record=GPU-2")  # its summary.json is older than the damage
        with open(self.path / "GPU-2/samples.jsonl", "a", encoding="utf-8") as file:
            file.write("{")
        for call, code in ((["pool", "--record=GPU-1,GPU-2"], DAMAGED),
                           (["pool", "--record=."], DAMAGED),
                           (["report", "--record=GPU-2", "--out=out"], DAMAGED),
                           (["compare", "--a=GPU-1", "--b=GPU-2"], DAMAGED),
                           (["gate", "--record=GPU-2", "--baseline=GPU-1"], NOT_COMPARED)):
            with self.subTest(call=call):
                result = self.ends(self.run_program(*call), code)
                self.assertRegex(result.stderr,
                                 r"\Awarpledger: [^\n]*samples\.jsonl:\d+: [^\n]+\n\Z")
                self.assertEqual(result.stdout, "")
                if call[0] == "pool":
                    self.assertIn("GPU-2: samples.jsonl", result.stderr)


class RatchetOfNothing(CompareTest):
    def test_could_not_run_without_a_baseline_that_can_be_read(self):
        (self.path / "bad.json").write_text("{")
        for flags in ([], ["--baseline=none"], ["--baseline=bad.json"]):
            result = self.ends(self.run_program("ratchet", *flags), NOT_COMPARED)
            self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")


class Guide(CompareTest):
    def test_calls_the_program_as_it_is(self):
        text = (ROOT / "reports/CI.md").read_text(
            encoding="utf-8").replace("\\\n", " ")
        calls = re.findall(r"\bwarpledger (\w+)((?: +--[^\s`]+)+)", text)
        self.assertEqual({command for command, _ in calls}, {"run", "gate", "ratchet", "compare"})
        for command, flags in calls:
            known = re.findall(r"(?m)^  --(\w+)", self.run_program("help", command).stdout)
            for flag in re.findall(r"--(\w+)", flags):
                self.assertIn(flag, known, command)
