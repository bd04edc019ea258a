# SPDX-License-Identifier: Apache-2.0
"""cmake/gpu_architectures.cmake: what a build is compiled for on a machine with GPUs.

Stand-ins take the place of nvidia-smi and nvcc.
"""

import shutil

from fixture import ROOT, FolderTest


class GpuArchitectures(FolderTest):
    def setUp(self):
        super().setUp()
        self.nvcc = self.program("nvcc", "printf 'sm_75\\nsm_86\\nsm_89\\nsm_90\\nsm_100\\n'")

    def program(self, name, body):
        return self.write(name, f"#!/bin/sh\n{body}\n", mode=0o755)

    def smi(self, *lines, code=0):
        told = "".join(f"echo '{line}'\n" for line in lines)
        self.program("nvidia-smi",
                     f'[ "$1" = --query-gpu=compute_cap ] || exit 9\n{told}exit {code}')

    def found(self):
        """(architectures, everything that was printed)"""
        script = self.write("call.cmake", f"""
cmake_minimum_required(VERSION 3.25)
include("{ROOT}/cmake/gpu_architectures.cmake")
set(found before)
warpledger_gpu_architectures(found "{self.nvcc}")
message(STATUS "found:${{found}}")
""")
        done = self.call(shutil.which("cmake"), "-P", script, PATH=f"{self.path}:/usr/bin:/bin")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.partition("found:")[2].strip(), done.stdout + done.stderr

    def test_names_each_architecture_once_and_the_oldest_first(self):
        self.smi("10.0", "9.0", "8.6", "9.0")
        self.assertEqual(self.found()[0], "86-real;90-real;100-real")

    def test_leaves_out_gpus_that_no_kernel_is_for(self):
        self.smi("7.5", "8.9")
        self.assertEqual(self.found()[0], "89-real")
        self.smi("6.1")
        self.assertEqual(self.found()[0], "")

    def test_leaves_out_and_names_what_nvcc_does_not_know(self):
        self.smi("8.6", "13.0")
        found, said = self.found()
        self.assertEqual(found, "86-real")
        self.assertIn("does not know this machine's sm_130", said)

    def test_takes_a_compiler_that_lists_nothing_at_the_machines_word(self):
        self.nvcc = self.program("nvcc", "exit 1")
        self.smi("8.6")
        self.assertEqual(self.found()[0], "86-real")

    def test_finds_nothing_without_a_driver_that_answers(self):
        self.smi("8.6", code=9)
        self.assertEqual(self.found()[0], "")
        self.smi("[N/A]", "Field compute_cap is not a valid field to query.")
        self.assertEqual(self.found()[0], "")

    def test_finds_nothing_without_nvidia_smi(self):
        if shutil.which("nvidia-smi", path="/usr/bin:/bin"):
            self.skipTest("this machine has one")
        self.assertEqual(self.found()[0], "")
