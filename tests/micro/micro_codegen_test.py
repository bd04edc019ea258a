# SPDX-License-Identifier: Apache-2.0
"""Each microbenchmark's kernel holds what its case promises; needs no GPU."""

import dataclasses
import json
import re
import subprocess
import unittest

import micro_codegen
from fixture import BUILD, run
from micro_codegen import collect_codegen

MICRO = BUILD / "bin/warpledger_micro"
DISASSEMBLY = """\
\t.section\t.text._Z1k,"ax",@progbits
        /*0000*/                   CS2R R2, SR_CLOCKLO ;
.L_x_0:
        /*0010*/                   MUFU.EX2 R3, R3 ;
        /*0020*/              @!P0 MUFU.EX2 R4, R4 ;
        /*0030*/               @P1 BRA `(.L_x_0) ;
        /*0040*/                   CS2R R6, SR_CLOCKLO ;
        /*0050*/                   MUFU.RCP R3, R3 ;
\t.section\t.text._Z1j,"ax",@progbits
        /*0000*/                   FFMA R3, R3, R3, R3 ;
"""
PTX = """\
.visible .entry _Z1k(.param .u64 p)
{
 ex2.approx.ftz.f32 %f1, %f2; // ex2.approx.ftz.f32
 bra L;
}
.visible .entry _Z1kk(.param .u64 p)
{
 ex2.approx.f32 %f1, %f2;
}
"""


def kernel(name="_Z1k"):
    return micro_codegen.Kernel(
        tuple(collect_codegen.parse_disassembly_by_kernel(DISASSEMBLY)[name]),
        micro_codegen.ptx_of_kernel(PTX, name))


def plant(right, pattern):
    """The same kernel with an opcode that no GPU has wherever the pattern finds one."""
    sass = tuple(("PLANTED", "") if re.search(pattern, opcode) else (opcode, rest)
                 for opcode, rest in right.sass)
    return dataclasses.replace(right, sass=sass)


def case(evidence=None, **changes):
    row = {"sass": r"^MUFU\.EX2", "ptx": "", "at_least": 2, "at_most": -1, "min_cc": 0, "max_cc": 0}
    return {"name": "a/b/latency", "kind": "cycles", "kernels": ["_Z1k"], "min_cc": 80, "max_cc": 0,
            "evidence": [row | (evidence or {})]} | changes


class Checks(unittest.TestCase):
    """The checks themselves, on a small kernel."""

    kernels = {"_Z1k": {90: kernel()}}

    def failures(self, *args, **changes):
        return micro_codegen.case_failures(case(*args, **changes), self.kernels)[0]

    def test_count_between_the_clock_reads_only(self):
        self.assertEqual([opcode for opcode, _ in kernel().timed()],
                         [".L_x_0", "MUFU.EX2", "MUFU.EX2", "BRA"])
        self.assertEqual(self.failures(), [])
        self.assertEqual(len(self.failures({"sass": r"^MUFU\.RCP", "at_least": 1})), 1)

    def test_count_in_the_loop_only_what_must_be_there(self):
        hoisted = kernel().sass
        moved = hoisted[:1] + (hoisted[2], hoisted[1]) + hoisted[3:]  # one MUFU before the label
        self.assertEqual([opcode for opcode, _ in moved[1:3]], ["MUFU.EX2", ".L_x_0"])
        self.kernels = {"_Z1k": {90: micro_codegen.Kernel(moved, kernel().ptx)}}
        self.assertEqual(len(self.failures()), 1)
        self.assertEqual(self.failures({"at_least": 1}), [])
        # A promise of at most so many speaks of all between the clock reads.
        self.assertEqual(len(self.failures({"at_least": 1, "at_most": 1})), 1)
        self.assertEqual(self.failures(kind="time"), [])

    def test_hold_the_least_and_the_most(self):
        self.assertEqual(len(self.failures({"at_least": 3})), 1)
        self.assertEqual(len(self.failures({"at_most": 1})), 1)
        self.assertEqual(self.failures({"at_most": 2}), [])
        self.assertEqual(len(self.failures({"at_least": 0, "at_most": 0})), 1)

    def test_read_the_ptx_of_one_kernel_without_comments(self):
        self.assertEqual(kernel().ptx_count(r"ex2\.approx\.ftz\.f32"), 1)
        ptx = {"sass": "", "ptx": r"ex2\.approx\.f32", "at_least": 1}
        self.assertEqual(len(self.failures(ptx)), 1)

    def test_skip_what_another_architecture_promises(self):
        self.assertEqual(self.failures({"at_least": 3, "max_cc": 89}), [])
        self.assertEqual(self.failures({"at_least": 3}, max_cc=89), [])

    def test_find_a_kernel_that_was_not_compiled(self):
        self.assertEqual(len(self.failures(kernels=["_Z1x"])), 1)

    def test_find_a_kernel_that_times_nothing(self):
        self.kernels = {"_Z1k": {90: kernel("_Z1j")}}
        self.assertIn("clock", self.failures({"sass": "^FFMA", "at_least": 1})[0])

    def test_find_a_loop_that_vanished_and_local_memory(self):
        straight = micro_codegen.Kernel(
            (("CS2R", "R2, SR_CLOCKLO"), ("LDL", "R1, [R1]"), ("CS2R", "R4, SR_CLOCKLO")), ())
        self.assertEqual(len(micro_codegen.timing_failures("x", straight)), 2)

    def test_refuse_a_disassembly_without_instructions(self):
        with self.assertRaises(collect_codegen.CodegenError):
            collect_codegen.parse_disassembly_by_kernel('.section\t.text._Z1k,"ax"\n')


class TheProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        listed = run(MICRO, "--warpledger_list", check=True)
        cls.cases = json.loads(listed.stdout)["cases"]
        cls.disassembler = collect_codegen.Disassembler(collect_codegen.find_nvdisasm())
        cls.kernels = micro_codegen.load_kernels(BUILD / "micro", cls.disassembler)

    def test_says_that_a_disk_is_full(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([MICRO, "--warpledger_list"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("standard output can't be written to its end", done.stderr)

    def test_holds_the_evidence_of_every_case(self):
        if not self.disassembler.name:
            self.skipTest("no nvdisasm (pip install nvidia-cuda-nvdisasm), so no SASS to look at")
        self.assertTrue(self.cases)
        for row in self.cases:
            with self.subTest(case=row["name"]):
                failures, checked = micro_codegen.case_failures(row, self.kernels)
                self.assertEqual(failures, [])
                compiled = {cc for symbol in row["kernels"] for cc in self.kernels[symbol]
                            if micro_codegen.covers(row, cc)}
                due = [evidence for evidence in row["evidence"]
                       if any(micro_codegen.covers(evidence, cc) for cc in compiled)]
                self.assertGreaterEqual(checked, len(due))

    def test_misses_each_instruction_of_every_case_that_is_replaced_by_another(self):
        if not self.disassembler.name:
            self.skipTest("no nvdisasm (pip install nvidia-cuda-nvdisasm), so no SASS to look at")
        planted = 0
        for row in self.cases:
            for evidence in row["evidence"]:
                if not evidence["sass"] or evidence["at_least"] == 0:
                    continue
                wrong = {symbol: {cc: plant(kernel_of, evidence["sass"])
                                  for cc, kernel_of in self.kernels[symbol].items()
                                  if micro_codegen.covers(row, cc) and
                                  micro_codegen.covers(evidence, cc)}
                         for symbol in row["kernels"]}
                if any(wrong.values()):
                    planted += 1
                    with self.subTest(case=row["name"], sass=evidence["sass"]):
                        self.assertNotEqual(micro_codegen.case_failures(row, wrong)[0], [])
        self.assertGreater(planted, 0)

    def test_was_compiled_without_fast_math(self):
        # Else expf() and __expf() would be the same instructions.
        if not self.disassembler.name:
            self.skipTest("no nvdisasm (pip install nvidia-cuda-nvdisasm), so no SASS to look at")
        symbols = {row["name"]: row["kernels"][0] for row in self.cases if row["kernels"]}
        for cc, accurate in self.kernels[symbols["exp_cost/expf/throughput"]].items():
            fast = self.kernels[symbols["exp_cost/fast_expf/throughput"]][cc]
            self.assertNotEqual(*(sorted(opcode for opcode, _ in kernel.timed())
                                  for kernel in (accurate, fast)))
