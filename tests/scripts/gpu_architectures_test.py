# SPDX-License-Identifier: Apache-2.0
"""cmake/gpu_architectures.cmake: what a build is compiled for on a machine with GPUs.

Stand-ins take the place of nvidia-smi and nvcc.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

MODULE = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "gpu_architectures.cmake"


class GpuArchitectures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.nvcc = self.program("nvcc", "printf 'sm_75\\nsm_86\\nsm_89\\nsm_90\\nsm_100\\n'")

    def program(self, name, body):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)
        return path

    def smi(self, *lines, code=0):
        told = "".join(f"echo '{line}'\n" for line in lines)
        self.program("nvidia-smi",
                     f'[ "$1" = --query-gpu=compute_cap ] || exit 9\n{told}exit {code}')

    def call(self):
        """(architectures, everything that was printed)"""
        script = self.folder / "call.cmake"
        script.write_text("cmake_minimum_required(VERSION 3.25)\n"
                          f'include("{MODULE}")\n'
                          "set(found before)\n"
                          f'warpledger_gpu_architectures(found "{self.nvcc}")\n'
                          'message(STATUS "found:${found}")\n', encoding="utf-8")
        done = subprocess.run([shutil.which("cmake"), "-P", script], capture_output=True, text=True,
                              check=True, env=os.environ | {"PATH": f"{self.folder}:/usr/bin:/bin"})
        return done.stdout.partition("found:")[2].strip(), done.stdout + done.stderr

    def test_names_each_architecture_once_and_the_oldest_first(self):
        self.smi("10.0", "9.0", "8.6", "9.0")
        self.assertEqual(self.call()[0], "86-real;90-real;100-real")

    def test_leaves_out_gpus_that_no_kernel_is_for(self):
        self.smi("7.5", "8.9")
        self.assertEqual(self.call()[0], "89-real")
        self.smi("6.1")
        self.assertEqual(self.call()[0], "")

    def test_leaves_out_and_names_what_nvcc_does_not_know(self):
        self.smi("8.6", "13.0")
        found, said = self.call()
        self.assertEqual(found, "86-real")
        self.assertIn("does not know this machine's sm_130", said)

    def test_takes_a_compiler_that_lists_nothing_at_the_machines_word(self):
        self.nvcc = self.program("nvcc", "exit 1")
        self.smi("8.6")
        self.assertEqual(self.call()[0], "86-real")

    def test_finds_nothing_without_a_driver_that_answers(self):
        self.smi("8.6", code=9)
        self.assertEqual(self.call()[0], "")
        self.smi("[N/A]", "Field compute_cap is not a valid field to query.")
        self.assertEqual(self.call()[0], "")

    def test_finds_nothing_without_nvidia_smi(self):
        if shutil.which("nvidia-smi", path="/usr/bin:/bin"):
            self.skipTest("this machine has one")
        self.assertEqual(self.call()[0], "")


if __name__ == "__main__":
    unittest.main()
