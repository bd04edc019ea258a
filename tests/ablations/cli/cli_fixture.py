# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line `warpledger` share: how it is called, with invented records.

Cases that need a build with kernels, or a machine without a GPU, skip with the reason elsewhere.
"""

import json
import subprocess

from fixture import HAS_KERNELS, PROGRAM, FolderTest, run
from invented_record import check_lines, run_json, sample_lines, write_no_micro

# Exit codes, as `warpledger --help` explains them.
OK, USAGE, MISSING, DAMAGED = 0, 2, 3, 4

def gpu_is_listed():
    """True when the NVIDIA driver lists a GPU."""
    try:
        listed = run("nvidia-smi", "-L", timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "GPU 0" in listed.stdout


class CliTest(FolderTest):
    def run_program(self, *arguments, **options):
        return self.call(PROGRAM, *arguments, **options)

    def said(self, *arguments, code=OK):
        """What the program prints, where it ends with this code."""
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result.stdout + result.stderr

    def refused(self, code, *arguments):
        """Its one line on stderr; nothing on stdout, nothing new in the folder."""
        before = self.files()
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")
        self.assertEqual(self.files(), before)
        return result.stderr

    def files(self):
        return {str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else None
                for path in self.path.rglob("*")}

    def write_record(self, run, samples=None, checks=None, name="record"):
        """With all samples and checks, unless told otherwise."""
        samples = sample_lines(run) if samples is None else samples
        checks = check_lines(run) if checks is None else checks
        self.write(f"{name}/run.json", json.dumps(run))
        self.write(f"{name}/samples.jsonl", "".join(line + "\n" for line in samples))
        self.write(f"{name}/correctness.jsonl", "".join(line + "\n" for line in checks))

    def needs_kernels(self):
        if not HAS_KERNELS:
            self.skipTest("this build holds no kernels, so their commands say that first")

    def needs_no_gpu(self):
        if gpu_is_listed():
            self.skipTest("nvidia-smi lists a GPU, so the command would use it")


class RecordTest(CliTest):
    def setUp(self):
        super().setUp()
        self.record = self.path / "record"
        self.write_record(run_json())
        write_no_micro(self.path)
