# SPDX-License-Identifier: Apache-2.0
"""What `warpledger judge`, `report`, `techniques` and `standings` make of records, whole or damaged."""

import json
import os
import pathlib
import shlex
import sys

import record_files
from cli_fixture import DAMAGED, MISSING, OK, USAGE, RecordTest
from fixture import ROOT
from invented_record import ARMS, BLOCKS, PROCESSES, check_lines, run_json, sample_lines



class Judge(RecordTest):
    def judge(self, *arguments):
        return self.said("judge", "--record=record", *arguments)

    def damaged(self):
        error = self.refused(DAMAGED, "judge", "--record=record")
        self.assertFalse((self.record / "summary.json").exists())
        return error

    def test_writes_the_summary_and_prints_the_verdicts(self):
        table = self.judge()
        self.assertIn("kv_tiling", table)
        self.assertIn("record/summary.json", table)
        summary = json.loads((self.record / "summary.json").read_text())
        medians = {cell["variant"]: cell["p50_us"] for cell in summary["cells"]}
        self.assertAlmostEqual(medians["minimal_scalar"], 10, delta=0.2)
        self.assertAlmostEqual(medians["ladder:kv_tiling"], 5, delta=0.1)
        [verdict] = summary["verdicts"]
        self.assertEqual((verdict["toggle"], verdict["base"]), ("kv_tiling", "minimal_scalar"))
        self.assertAlmostEqual(verdict["ratio"], 2, delta=0.05)
        self.assertEqual(summary["provenance"]["n_samples"], PROCESSES * BLOCKS * len(ARMS))

    def test_changes_no_raw_file_and_gives_the_same_bytes_again(self):
        raw = self.files()
        self.judge()
        first = (self.record / "summary.json").read_bytes()
        self.judge()
        self.assertEqual((self.record / "summary.json").read_bytes(), first)
        after = self.files()
        del after["record/summary.json"]
        self.assertEqual(after, raw)

    def test_writes_where_it_is_told_and_nowhere_else(self):
        before = set(self.files())
        self.judge("--out=elsewhere.json")
        self.assertEqual(set(self.files()) - before, {"elsewhere.json"})

    def test_replaces_no_file_of_a_record_and_no_pack(self):
        self.said("pack", "record", "--keep")
        (self.path / "link.json").symlink_to(self.record / "run.json")
        for command, flag, name in (
                ("judge", "out", "record/samples.jsonl"), ("judge", "out", "record/run.json"),
                ("judge", "out", "link.json"), ("judge", "out", "record.tar.zst"),
                ("report", "summary", "record/correctness.jsonl")):
            with self.subTest(command=command, name=name):
                pages = ["--out=pages", "--plots=false"] if command == "report" else []
                result = self.run_program(command, "--record=record", f"--{flag}={name}", *pages)
                self.assertEqual(result.returncode, USAGE, result.stdout + result.stderr)
                self.assertIn("name another file", result.stderr)
                self.assertTrue((self.record / "run.json").read_text().startswith("{"))
        self.judge("--out=record/summary.json")
        self.assertEqual(self.judge("--out=s.json").count("s.json"), 1)

    def test_links_no_picture_outside_of_the_folder(self):
        self.write_record(run_json(design="/../../victim"))
        self.said("report", "--record=record", "--out=pages", "--plots=false")
        [page] = (self.path / "pages").iterdir()
        self.assertEqual(page.name, "-------victim.md")
        self.assertIn("(-------victim_effects.svg)", page.read_text())
        self.assertNotIn("(/../", page.read_text())

    def test_goes_through_a_link_and_into_a_device(self):
        (self.path / "link.json").symlink_to("target.json")
        self.judge("--out=link.json")
        self.assertTrue((self.path / "link.json").is_symlink())
        self.assertIn("verdicts", json.loads((self.path / "target.json").read_text()))
        self.judge("--out=/dev/null")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())

    def test_waits_for_no_pipe_and_reads_no_device(self):
        for name in "run.json", "samples.jsonl", "correctness.jsonl", "broken.jsonl":
            with self.subTest(file=name):
                path = self.record / name
                kept = path.read_bytes() if path.exists() else None
                path.unlink(missing_ok=True)
                os.mkfifo(path)
                self.assertIn("no regular file", self.refused(USAGE, "judge", "--record=record"))
                path.unlink()
                path.symlink_to("/dev/zero")
                self.assertIn("no regular file", self.refused(USAGE, "judge", "--record=record"))
                path.unlink()
                if kept is not None:
                    path.write_bytes(kept)

    def test_wants_a_record(self):
        self.assertIn("--record=DIR is missing", self.refused(USAGE, "judge"))

    def test_of_a_directory_that_is_not_there_or_holds_no_record_says_so(self):
        self.assertIn("nowhere: no record here", self.refused(USAGE, "judge", "--record=nowhere"))
        (self.path / "empty").mkdir()
        self.assertIn("no record here", self.refused(USAGE, "judge", "--record=empty"))

    def test_names_a_record_of_another_kind(self):
        for file, kind in (("blocks.jsonl", "a calibration"), ("profile.json", "a profile"),
                           ("micro.json", "a record of microbenchmarks"),
                           ("dtypes.json", "a study of data types")):
            (self.path / kind).mkdir()
            (self.path / kind / file).write_text("{}\n")
            for call in (["compare", f"--a={kind}", "--b=record", "--out=c.md"],
                         ["gate", f"--record={kind}", "--baseline=record"]):
                done = self.run_program(*call)
                self.assertIn(f"{kind}: {kind}, which holds no samples of a design's arms",
                              done.stderr)
                self.assertEqual(done.returncode, 3 if call[0] == "gate" else USAGE)
            for command in ("standings", "techniques") if kind != "a calibration" else ():
                error = self.refused(USAGE, command, f"--record={kind}", "--out=pages")
                self.assertIn("Name a record of `warpledger run`", error)
                self.assertNotIn("judge", error)

    def test_of_a_file_wants_a_folder(self):
        self.assertIn("name a folder", self.refused(USAGE, "judge", "--record=record/run.json"))

    def test_of_a_record_that_lost_its_samples_or_has_none_is_refused_as_damage(self):
        self.write_record(run_json(), samples=[])
        self.assertIn("samples.jsonl: holds no sample", self.damaged())
        (self.record / "samples.jsonl").unlink()
        self.assertIn("no samples.jsonl", self.damaged())

    def test_of_an_unfinished_record_says_so_on_stderr(self):
        whole = self.run_program("judge", "--record=record")
        self.assertEqual((whole.returncode, whole.stderr), (OK, ""))
        lines = sample_lines(run_json())[:4 * BLOCKS // 3 * len(ARMS)]  # a third of the second process
        self.write_record(run_json(), lines)
        part = self.ends(self.run_program("judge", "--record=record"), OK)
        self.assertRegex(part.stderr, r"unfinished: 8 of 18 blocks; .*`warpledger run`")
        provenance = json.loads((self.record / "summary.json").read_text())["provenance"]
        self.assertEqual((provenance["processes_found"], provenance["blocks_missing"]), (2, 10))

    def test_names_file_and_place_of_what_is_damaged(self):
        run = run_json()
        samples, checks = sample_lines(run), check_lines(run)
        no_us = {key: value for key, value in json.loads(samples[7]).items() if key != "us"}
        no_arms = {key: value for key, value in run.items() if key != "arms"}
        for why, told, files in (
                ("no JSON", "samples.jsonl:5: ",
                 (run, [*samples[:4], samples[4][:20], *samples[5:]], checks)),
                ("a sample without a field", "samples.jsonl:8: us: missing",
                 (run, [*samples[:7], json.dumps(no_us), *samples[8:]], checks)),
                ("deleted lines", "samples.jsonl:4: ", (run, samples[:3] + samples[6:], checks)),
                ("an empty check", "correctness.jsonl:2: ",
                 (run, samples, [checks[0], "{}", *checks[2:]])),
                ("a run without arms", "run.json: arms: missing", (no_arms, samples, checks))):
            with self.subTest(why):
                self.write_record(*files)
                self.assertIn(told, self.damaged())
        self.write("record/run.json", '{"schema_version": 1,')
        self.assertIn("run.json: ", self.damaged())

    def test_finds_a_last_line_that_is_cut_off_and_says_how_to_go_on(self):
        text = (self.record / "samples.jsonl").read_text()
        (self.record / "samples.jsonl").write_text(text[:-9])
        error = self.damaged()
        self.assertIn(f"samples.jsonl:{len(sample_lines(run_json()))}: ", error)
        self.assertIn("`warpledger run` on the same directory", error)

    def test_leaves_an_older_summary_alone_when_the_record_is_damaged(self):
        self.judge()
        old = (self.record / "summary.json").read_bytes()
        with open(self.record / "samples.jsonl", "a", encoding="utf-8") as file:
            file.write("{")
        self.refused(DAMAGED, "judge", "--record=record")
        self.assertEqual((self.record / "summary.json").read_bytes(), old)


class Report(RecordTest):
    def test_writes_a_report_that_speaks_of_the_record(self):
        self.said("report", "--record=record", "--out=out", "--noplots")
        report = (self.path / "out/ladder.md").read_text(encoding="utf-8")
        for word in ("H200", "kv_tiling", "2026-01-02-example"):
            self.assertIn(word, report)
        self.assertEqual([path.name for path in (self.path / "out").iterdir()], ["ladder.md"])

    def test_also_writes_the_summary_that_judge_writes(self):
        for call in (["judge", "--out=judged.json"],
                     ["report", "--out=out", "--noplots", "--summary=reported.json"]):
            self.said(*call, "--record=record")
        self.assertEqual((self.path / "reported.json").read_text(),
                         (self.path / "judged.json").read_text())

    def test_wants_a_record_and_a_place(self):
        self.assertIn("--out=DIR is missing", self.refused(USAGE, "report", "--record=record"))
        self.assertIn("--record=DIR is missing", self.refused(USAGE, "report", "--out=out"))

    def test_of_a_damaged_record_is_none(self):
        (self.record / "samples.jsonl").write_text("{}\n")
        self.assertIn("samples.jsonl:1: ",
                      self.refused(DAMAGED, "report", "--record=record", "--out=out"))

    def test_says_what_plots_need_where_the_interpreter_is_missing(self):
        self.ends(self.run_program("report", "--record=record", "--out=out",
                                   "--python=warpledger_no_python"), MISSING, err="--noplots")
        self.assertTrue((self.path / "out/ladder.md").exists())

    def drawn_by(self, *script):
        """What report does where this shell script is the interpreter."""
        python = self.path / "python"
        python.write_text("\n".join(("#!/bin/bash", *script, "")), encoding="utf-8")
        python.chmod(0o755)
        return self.run_program("report", "--record=record", "--out=out", f"--python={python}")

    def test_says_what_plots_need_only_where_it_is_missing(self):
        # -S: without the packages that a site has.
        self.ends(self.drawn_by(f'exec {shlex.quote(sys.executable)} -S -E "$@"'), MISSING,
                  err="They need Python with matplotlib")
        failed = self.drawn_by("echo plots: the disk is full >&2", "exit 2")
        self.ends(failed, 5, err="the plots are not")
        self.assertIn("the disk is full", failed.stderr)
        self.assertNotIn("matplotlib", failed.stderr)

    def test_two_reports_into_one_folder_share_no_scratch_file(self):
        self.ends(self.drawn_by('test ! -e out/.summary0.json || exit 9',
                                'for a; do case $a in out/*) exit 9 ;; */*.json) test -s "$a" ;; esac; done'))

    def test_renews_only_the_marked_section_of_a_readme(self):
        readme = self.path / "README.md"
        readme.write_text("# Title\n\nno section here\n")
        before = readme.read_bytes()
        result = self.run_program("report", "--record=record", "--out=out", "--noplots",
                                  "--readme=README.md")
        self.assertNotEqual(result.returncode, OK)
        self.assertEqual(readme.read_bytes(), before)


class ReportOfDtypes(RecordTest):
    def test_writes_the_summary_and_refuses_a_readme(self):
        study = record_files.records(ROOT / "reports/data", "dtypes.json", "dtypes-")[-1]
        report = ("report", f"--record={study.path}", "--out=out", "--noplots")
        self.assertIn("this is a study of data types",
                      self.refused(USAGE, *report, "--readme=README.md"))
        self.said(*report, "--summary=summary.json")
        self.assertEqual(json.loads((self.path / "summary.json").read_text()),
                         study.json("dtypes.json"))


class Techniques(RecordTest):
    def test_writes_an_index_and_pages_of_techniques_and_claims(self):
        self.said("techniques", "--record=record", "--out=out")
        index = (self.path / "out/techniques.md").read_text(encoding="utf-8")
        self.assertIn("2026-01-02-example", index)
        page = (self.path / "out/claims/kv_tiling.md").read_text(encoding="utf-8")
        self.assertIn("1 verdict in 1 design", page)
        self.assertIn("**No sound measurement yet.**", page)  # nor a picture of it
        self.assertFalse((self.path / "out/claims/kv_tiling.svg").exists())
        technique = (self.path / "out/techniques/kv_tiling.md").read_text(encoding="utf-8")
        self.assertIn("](../claims/kv_tiling.md)", technique)
        self.assertIn("](techniques/tensor_cores.md)", index)
        self.assertTrue((self.path / "out/techniques/tensor_cores.md").exists())

    def test_and_standings_want_records_and_a_place(self):
        for command in "techniques", "standings":
            for flags, told in ((["--record=record"], "--out=DIR is missing"),
                                (["--out=out"], "--record=DIR[,DIR..] is missing")):
                with self.subTest(command=command, flags=flags):
                    self.assertIn(told, self.refused(USAGE, command, *flags))

    def test_reads_samples_and_no_summary_that_may_be_older(self):
        self.said("techniques", "--record=record", "--out=fresh")
        (self.record / "summary.json").write_text("{")
        self.said("techniques", "--record=record", "--out=stale")
        pages = {path.name: path.read_bytes() for path in (self.path / "fresh").iterdir()
                 if path.is_file()}
        self.assertIn("techniques.md", pages)
        for name, page in pages.items():
            self.assertEqual((self.path / "stale" / name).read_bytes(), page)

    def test_refuses_two_records_of_one_design_and_damaged_samples(self):
        self.assertIn("both of design ladder",
                      self.refused(USAGE, "techniques", "--record=record,record", "--out=out"))
        self.said("judge", "--record=record")
        (self.record / "samples.jsonl").write_text("{")
        for command in "techniques", "standings":
            self.assertIn("record: samples.jsonl:1: ",
                          self.refused(DAMAGED, command, "--record=record", "--out=out"))
        self.assertFalse((self.path / "out").exists())


class StandingsCommand(RecordTest):
    def test_of_a_record_without_peers_it_says_so(self):
        self.said("standings", "--record=record", "--out=out")
        self.assertIn("No record has a variant of ours beside a peer",
                      (self.path / "out/standings.md").read_text(encoding="utf-8"))

    def test_writes_the_page_and_renews_the_readme(self):
        run = run_json(created_utc="2026-11-22T00:00:00Z")
        samples = sample_lines(run)
        of_peer = {"arm": "peer:flash", "order": 0, "of": 1}
        samples += [json.dumps(json.loads(line) | of_peer | {"seq": len(samples) + seq})
                    for seq, line in enumerate(samples[::len(ARMS)])]
        self.write_record(run, samples)
        self.write("record/peers.json", json.dumps({"schema_version": 1, "peers": [
            {"name": "peer:flash", "version": "torch 2.11.0", "available": True, "reason": "",
             "checks": [{"shape": "small", "correct": True, "max_err": 1e-5, "max_err_limit": 1e-4}]}]}))
        readme = self.path / "README.md"
        readme.write_text("before\n<!-- generated:standings begin -->\nold\n"
                          "<!-- generated:standings end -->\nafter\n")
        self.said("standings", "--record=record", "--out=out", "--noplots",
                                  "--readme=README.md", "--readme_pictures=pages")
        page = (self.path / "out/standings.md").read_text(encoding="utf-8")
        self.assertIn("## Other problems", page)
        text = readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertIn("](pages/standings.md)", text)
        self.assertNotIn("old", text.splitlines())
