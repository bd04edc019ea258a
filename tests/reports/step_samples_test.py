# SPDX-License-Identifier: Apache-2.0
"""reports/step_samples.py: what it reads from ncu, which loop it keeps and what it says of it."""

import argparse
import json
import os
import unittest
from unittest import mock

import step_samples
from fixture import FolderTest

# A prologue, a loop of ten passes of one warp, in it a branch taken once, and an end. An
# instruction of the loop that is issued in one cycle of ten passes has ten samples.
HEADER = ('"Kernel Name","sdpa_it(Params)",\n'
          '"Address","Source","# Samples","Instructions Executed","stall_selected","stall_wait",'
          '"stall_barrier","stall_wait (Not Issued)"\n')
LINES = [("S2R R1, SR_TID.X", 3, 1, 1, 2, 0),
         ("@P0   BRA 0x10", 10, 10, 10, 0, 0),
         ("UMOV UR1, UR2", 10, 10, 10, 0, 0),
         ("WARPGROUP.ARRIVE", 10, 10, 10, 0, 0),
         ("HGMMA.64x128x16.F32 R24, gdesc[UR4], R24, gsb0", 30, 10, 10, 20, 0),
         ("WARPGROUP.DEPBAR.LE gsb0, 0x0", 1010, 10, 10, 0, 1000),
         ("SHFL.BFLY PT, R5, R4, 0x1, 0x1f", 1, 1, 1, 0, 0),
         ("@!P1  MUFU.EX2 R88, R88", 60, 10, 10, 50, 0),
         ("EXIT", 2, 1, 1, 1, 0)]


def text(lines):
    return HEADER + "".join(
        f'"0x{i}","      {sass}","{samples}","{executed}","{issued}","{wait}","{barrier}","7"\n'
        for i, (sass, samples, executed, issued, wait, barrier) in enumerate(lines))


class Source(unittest.TestCase):
    def test_of_each_instruction_samples_and_stalls_are_read(self):
        rows = step_samples.parse_source(text(LINES) + "\n==WARNING== a message\n")
        self.assertEqual(len(rows), len(LINES))
        self.assertEqual(rows[5], {"sass": "WARPGROUP.DEPBAR.LE gsb0, 0x0", "executed": 10,
                                   "samples": 1010, "stalls": {"selected": 10, "barrier": 1000}})

    def test_the_loop_holds_branches_taken_seldom_and_neither_prologue_nor_end(self):
        loop = step_samples.main_loop(step_samples.parse_source(text(LINES)))
        self.assertEqual([row["sass"] for row in loop],
                         [" ".join(line[0].split()) for line in LINES[1:8]])

    def test_no_samples_and_no_products_are_refused(self):
        with self.assertRaises(step_samples.Refused):
            step_samples.parse_source("==ERROR== no kernel was profiled\n")
        with self.assertRaises(step_samples.Refused):
            step_samples.main_loop(step_samples.parse_source(text(LINES[:4])))

    def test_columns_of_another_name_and_cells_that_are_no_numbers_are_refused(self):
        for column in ("Source", "Instructions Executed", "stall_selected"):
            renamed = text(LINES).replace(f'"{column}"', '"renamed"')
            with self.assertRaisesRegex(step_samples.Refused, f'no column "{column}"'):
                step_samples.parse_source(renamed)
        with self.assertRaisesRegex(step_samples.Refused, "many"):
            step_samples.parse_source(text([("EXIT", "many", 1, 1, 1, 0)]))


class Page(FolderTest):
    def setUp(self):
        super().setUp()
        self.out = self.path / "step_samples-1"
        self.out.mkdir()

    def record(self, code="0" * 64, instance="it@d128", lines=tuple(LINES)):
        rows = step_samples.parse_source(text(lines))
        return {"schema_version": 1, "gpu": "GPU", "ncu": "Version 2025.3.1.0 (build 3) (public)",
                "kernels": [{"variant": "it", "instance": instance, "code_sha256": code,
                             "samples": 2 * sum(row["samples"] for row in rows[1:-1]),
                             "loop": step_samples.main_loop(rows)}],
                "problem": {"batch": 1, "heads": 2, "seq": 64, "head_dim": 128, "causal": False}}

    def page_of(self, record):
        (self.out / step_samples.RECORD).write_text(json.dumps(record), encoding="utf-8")
        self.assertEqual(step_samples.report(argparse.Namespace(record=self.out, out=self.out)), 0)
        return (self.out / step_samples.PAGE).read_text(encoding="utf-8")

    def page(self, *what, **changes):
        return self.page_of(self.record(*what, **changes))

    def refused(self, record):
        """What the program says of a record that it can't read."""
        (self.out / step_samples.RECORD).write_text(json.dumps(record), encoding="utf-8")
        code, said = self.run_main(step_samples.main, "report", self.out, f"--out={self.out}")
        self.assertEqual((code, said.count("\n")), (2, 1))
        self.assertFalse((self.out / step_samples.PAGE).exists())
        return said

    def test_samples_become_cycles_of_a_pass(self):
        page = self.page("0" * 64)
        # Ten samples are a cycle of a pass: 60 until products are started, 1010 for them.
        self.assertIn("| 6 | 4 | 1 BRA, 1 UMOV, 1 WARPGROUP | wait 2 | `HGMMA.64x128x16.F32 R24` |",
                      page)
        self.assertIn("| 101 | 1 | 1 WARPGROUP | barrier 100 | `WARPGROUP.DEPBAR.LE gsb0, 0x0` |",
                      page)
        self.assertIn("| **113** | **7** |", page)
        self.assertIn("50% of the samples of all the kernel's warps", page)
        self.assertIn("older than this tree's", page)

    def test_machine_code_of_this_tree_is_not_called_older(self):
        tree = step_samples.instances_of_tree(step_samples.COMPUTE_CAPABILITY)
        instance, code = next(iter(tree.items()))
        self.assertNotIn("older than this tree's", self.page(code, instance))
        self.assertIn("older than this tree's", self.page(code))

    def test_the_page_names_its_record_and_the_tool_that_took_it(self):
        self.assertIn("\nRecord `step_samples-1`, by `reports/step_samples.py`: GPU, Nsight Compute 2025.3.1.0; batch 1,",
                      self.page())

    def test_instructions_of_a_branch_never_taken_are_not_counted_and_end_no_part(self):
        branch = [("@P0   BRA 0x7fc0077a4f10", 10, 10, 10, 0, 0)] + [
            ("FMUL R1, R1, R2", 0, 0, 0, 0, 0)] * 5 + [("VOTE.ANY P0, P0", 0, 0, 0, 0, 0)]
        page = self.page(lines=(*LINES[:7], *branch, *LINES[7:]))
        self.assertIn("| 7 | 3 | 1 SHFL, 1 BRA, 1 MUFU | wait 5 | `@!P1 MUFU.EX2 R88` |", page)
        self.assertIn("| **8** of 14 |", page)
        self.assertNotIn("VOTE.ANY", page)

    def test_an_instruction_is_shown_whole_without_addresses(self):
        for sass, shown in (
                ("@P0 BRA 0x7fc0077a4f10", "@P0 BRA"),
                ("BRA.DIV UR4, 0x7fc0077a4f10", "BRA.DIV UR4"),
                ("@!P0 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR13+0x38000], R4",
                 "@!P0 SYNCS.PHASECHK.TRANS64.TRYWAIT P0"),
                ("QGMMA.64x128x32.F32.E4M3.E4M3 R24, R152, gdesc[UR16], R24, gsb0 ; &wr=0",
                 "QGMMA.64x128x32.F32.E4M3.E4M3 R24"),
                ("WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", "WARPGROUP.DEPBAR.LE gsb0, 0x1"),
                ("BRA `(.L_x_1)", "BRA"), ("EXIT", "EXIT")):
            self.assertEqual(step_samples.short(sass), shown)

    def test_a_record_that_lacks_or_garbles_something_is_refused_by_its_path(self):
        self.assertIn("gpu is missing", self.refused({"schema_version": 1}))
        self.assertIn("must be an object", self.refused([]))
        self.assertIn("schema_version is 2", self.refused(self.record() | {"schema_version": 2}))
        self.assertIn("problem.seq must be an integer, but is null", self.refused(
            self.record() | {"problem": self.record()["problem"] | {"seq": None}}))
        for change, said in ((lambda kernel: kernel.pop("instance"), "kernels[0].instance is missing"),
                             (lambda kernel: kernel["loop"][2].pop("executed"),
                              "kernels[0].loop[2].executed is missing"),
                             (lambda kernel: kernel["loop"][2]["stalls"].update(wait="x"),
                              "kernels[0].loop[2].stalls.wait must be an integer")):
            record = self.record()
            change(record["kernels"][0])
            self.assertIn(said, self.refused(record))

    def test_a_loop_without_an_issued_sample_is_refused(self):
        record = self.record()
        for row in record["kernels"][0]["loop"]:
            row["stalls"].pop("selected", None)
        self.assertIn("no sample of the loop is of an issued instruction", self.refused(record))


class Take(FolderTest):
    """With stand-ins for ncu and nvidia-smi, and a program that nobody calls."""

    def setUp(self):
        super().setUp()
        (self.path / "source.csv").write_text(text(LINES), encoding="utf-8")
        self.tool("ncu", f"""
echo "$*" >>"{self.path}/calls"
case $1 in
  --import) cat "{self.path}/source.csv" ;;
  --version) echo ncu 9 ;;
esac""")
        self.tool("nvidia-smi", "echo A GPU")
        self.tool("warpledger", "exit 1")
        self.write("share/warpledger/codegen/codegen.json", json.dumps({"instances": [
            {"variant": "wgmma@d128_causal", "arch": "sm_90a", "code_sha256": "c0de"}]}))
        patch = mock.patch.dict("os.environ", {"PATH": f"{self.path}/bin:{os.environ['PATH']}"})
        patch.start()
        self.addCleanup(patch.stop)

    def tool(self, name, script):
        self.write(f"bin/{name}", f"#!/bin/bash\n{script}\n", 0o755)

    def take(self, *arguments):
        return self.run_main(step_samples.main, "take", *arguments, f"--out={self.path}/out",
                             f"--program={self.path}/bin/warpledger")

    def test_a_record_holds_the_loop_and_the_machine_code_of_each_variant(self):
        self.assertEqual(self.take("wgmma", "--problem=1,2,64,128,causal")[0], 0)
        record = json.loads((self.path / "out" / step_samples.RECORD).read_text())
        self.assertEqual(record["gpu"], "A GPU")
        self.assertEqual(record["ncu"], "ncu 9")
        self.assertEqual(record["problem"], {"batch": 1, "heads": 2, "seq": 64, "head_dim": 128,
                                             "causal": True})
        kernel = record["kernels"][0]
        self.assertEqual((kernel["instance"], kernel["code_sha256"]),
                         ("wgmma@d128_causal", "c0de"))
        self.assertEqual(len(kernel["loop"]), 7)
        call = (self.path / "calls").read_text().splitlines()[0]
        for argument in ("--clock-control none", "exec --variant=wgmma ", " --causal"):
            self.assertIn(argument, call)

    def test_a_variant_without_an_instance_is_refused_before_anything_runs(self):
        status, said = self.take("wgmma+tma_store", "--problem=1,2,64,128,causal")
        self.assertEqual(status, 2)
        self.assertIn("wgmma+tma_store@d128_causal", said)
        self.assertFalse((self.path / "calls").exists())

    def test_without_ncu_nothing_is_taken(self):
        (self.path / "bin" / "ncu").unlink()
        with mock.patch.dict("os.environ", {"PATH": f"{self.path}/bin"}):
            self.assertEqual(self.take("wgmma", "--problem=1,2,64,128,causal")[0], 3)

    def test_without_numpy_or_a_gpu_nothing_is_taken_and_one_line_says_so(self):
        with mock.patch.dict("sys.modules", {"numpy": None}):
            status, said = self.take("wgmma", "--problem=1,2,64,128,causal")
        self.assertEqual((status, said.count("\n")), (3, 1))
        self.assertIn("no NumPy", said)
        self.tool("nvidia-smi", "true")
        status, said = self.take("wgmma", "--problem=1,2,64,128,causal")
        self.assertEqual((status, said.count("\n")), (3, 1))
        self.assertIn("no GPU", said)
        self.assertFalse((self.path / "calls").exists())

    def test_samples_that_cant_be_told_as_cycles_are_not_kept(self):
        none_issued = [(sass, samples, executed, 0, wait, barrier)
                       for sass, samples, executed, _, wait, barrier in LINES]
        for source, what in ((text(none_issued), "wgmma: no sample of its loop"),
                             (text(LINES).replace("stall_selected", "stall_issued"),
                              "no column \"stall_selected\"")):
            (self.path / "source.csv").write_text(source, encoding="utf-8")
            status, said = self.take("wgmma", "--problem=1,2,64,128,causal")
            self.assertEqual(status, 1)
            self.assertIn(what, said)
            self.assertFalse((self.path / "out").exists())


class Arguments(FolderTest):
    def test_a_problem_of_other_numbers_is_refused(self):
        for problem in ("1,2,3", "1,2,3,128,both", "a,2,3,128"):
            code, said = self.run_main(step_samples.main, "take", "wgmma", "--out=x",
                                       f"--problem={problem}")
            self.assertEqual(code, 2)
            self.assertIn("B,H,S,D", said)
