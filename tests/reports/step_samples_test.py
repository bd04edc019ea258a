"""reports/step_samples.py: what it reads from ncu, which loop it keeps and what it says of it."""

import argparse
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "reports"))
import step_samples  # noqa: E402 (the path comes first)

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
        rows = step_samples.parse_source(text(LINES))
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


class Page(unittest.TestCase):
    def page(self, code, instance="it@d128"):
        rows = step_samples.parse_source(text(LINES))
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            (out / step_samples.RECORD).write_text(json.dumps(
                {"gpu": "GPU", "ncu": "ncu 1", "kernels": [
                    {"variant": "it", "instance": instance, "code_sha256": code,
                     "samples": 2 * sum(row["samples"] for row in rows[1:8]),
                     "loop": step_samples.main_loop(rows)}],
                 "problem": {"batch": 1, "heads": 2, "seq": 64, "head_dim": 128,
                             "causal": False}}), encoding="utf-8")
            self.assertEqual(step_samples.report(argparse.Namespace(record=out, out=out)), 0)
            return (out / step_samples.PAGE).read_text(encoding="utf-8")

    def test_samples_become_cycles_of_a_pass(self):
        page = self.page("0" * 64)
        # Ten samples are a cycle of a pass: 60 until products are started, 1010 for them.
        self.assertIn("| 6 | 4 | 1 BRA, 1 UMOV, 1 WARPGROUP | wait 2 | `HGMMA.64x128x16", page)
        self.assertIn("| 101 | 1 | 1 WARPGROUP | barrier 100 | `WARPGROUP.DEPBAR.LE gsb0, 0x0` |",
                      page)
        self.assertIn("| **113** | **7** |", page)
        self.assertIn("50% of the kernel's samples", page)
        self.assertIn("older than this tree's", page)

    def test_machine_code_of_this_tree_is_not_called_older(self):
        tree = step_samples.instances_of_tree(step_samples.COMPUTE_CAPABILITY)
        instance, code = next(iter(tree.items()))
        self.assertNotIn("older than this tree's", self.page(code, instance))
        self.assertIn("older than this tree's", self.page(code))


class Take(unittest.TestCase):
    """With stand-ins for ncu and nvidia-smi, and a program that nobody calls."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "source.csv").write_text(text(LINES), encoding="utf-8")
        self.tool("ncu", f"""
echo "$*" >>{self.root}/calls
case $1 in
  --import) cat {self.root}/source.csv ;;
  --version) echo ncu 9 ;;
esac""")
        self.tool("nvidia-smi", "echo A GPU")
        self.tool("warpledger", "exit 1")
        codegen = self.root / "share/warpledger/codegen"
        codegen.mkdir(parents=True)
        (codegen / "codegen.json").write_text(json.dumps({"instances": [
            {"variant": "wgmma@d128_causal", "arch": "sm_90a", "code_sha256": "c0de"}]}))
        patch = mock.patch.dict("os.environ", {"PATH": f"{self.root}/bin:{os.environ['PATH']}"})
        patch.start()
        self.addCleanup(patch.stop)

    def tool(self, name, script):
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def take(self, *arguments):
        said = io.StringIO()
        sys.argv = ["step_samples.py", "take", *arguments, f"--out={self.root}/out",
                    f"--program={self.root}/bin/warpledger"]
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            return step_samples.main(), said.getvalue()

    def test_a_record_holds_the_loop_and_the_machine_code_of_each_variant(self):
        self.assertEqual(self.take("wgmma", "--problem=1,2,64,128,causal")[0], 0)
        record = json.loads((self.root / "out" / step_samples.RECORD).read_text())
        self.assertEqual(record["gpu"], "A GPU")
        self.assertEqual(record["ncu"], "ncu 9")
        self.assertEqual(record["problem"], {"batch": 1, "heads": 2, "seq": 64, "head_dim": 128,
                                             "causal": True})
        kernel = record["kernels"][0]
        self.assertEqual((kernel["instance"], kernel["code_sha256"]),
                         ("wgmma@d128_causal", "c0de"))
        self.assertEqual(len(kernel["loop"]), 7)
        call = (self.root / "calls").read_text().splitlines()[0]
        for argument in ("--clock-control none", "exec --variant=wgmma ", " --causal"):
            self.assertIn(argument, call)

    def test_a_variant_without_an_instance_is_refused_before_anything_runs(self):
        status, said = self.take("wgmma+tma_store", "--problem=1,2,64,128,causal")
        self.assertEqual(status, 2)
        self.assertIn("wgmma+tma_store@d128_causal", said)
        self.assertFalse((self.root / "calls").exists())

    def test_without_ncu_nothing_is_taken(self):
        (self.root / "bin" / "ncu").unlink()
        with mock.patch.dict("os.environ", {"PATH": f"{self.root}/bin"}):
            self.assertEqual(self.take("wgmma", "--problem=1,2,64,128,causal")[0], 3)


class Arguments(unittest.TestCase):
    def test_a_problem_of_other_numbers_is_refused(self):
        for problem in ("1,2,3", "1,2,3,128,both", "a,2,3,128"):
            said = io.StringIO()
            sys.argv = ["step_samples.py", "take", "wgmma", "--out=x", f"--problem={problem}"]
            with contextlib.redirect_stderr(said):
                self.assertEqual(step_samples.main(), 2)
            self.assertIn("B,H,S,D", said.getvalue())


if __name__ == "__main__":
    unittest.main()
