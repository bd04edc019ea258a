# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line `warpledger` share: how it is called, and an invented record.

Cases that need a build with kernels, or a machine without a GPU, skip with the reason elsewhere.
"""

import json
import pathlib
import subprocess
import sys
import unittest

from fixture import FolderTest

# Exit codes, as `warpledger --help` explains them.
OK, USAGE, MISSING, DAMAGED = 0, 2, 3, 4

PROCESSES = 3
BLOCKS = 6
ARMS = (
    # name, config, role, toggle, base, median us
    ("minimal_scalar", "minimal_scalar", "base", "", "", 10.0),
    ("ladder:kv_tiling", "kv_tiling", "step", "kv_tiling", "minimal_scalar", 5.0),
    ("control:aa", "kv_tiling", "aa", "", "ladder:kv_tiling", 5.0),
)


def gpu_is_listed():
    """True when the NVIDIA driver lists a GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False,
                                timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "GPU 0" in listed.stdout


def run_json():
    """A run of three arms on one shape."""
    return {
        "schema_version": 1, "run_id": "2026-01-02-example", "created_utc": "2026-01-02T03:04:05Z",
        "design": "ladder", "family": "ladder", "argv": ["warpledger", "run"], "seed": 1,
        "processes": PROCESSES, "blocks_per_process": BLOCKS, "cache": "warm",
        "shapes": [{"name": "small", "batch": 1, "heads_q": 1, "heads_kv": 1, "seq_q": 32,
                    "seq_kv": 32, "head_dim": 64, "causal": False}],
        "arms": [dict(zip(("name", "config", "role", "toggle", "base"), arm)) for arm in ARMS],
        "git": {"sha": "0123abcd", "dirty": False}, "registry_sha256": "aa",
        "kernel_source_sha256": "bb",
        "toolchain": {"nvcc": "13.0", "host_compiler": "g++ 12", "build_type": "Release",
                      "cuda_flags": "", "architectures": "90"},
        "gpu": {"name": "NVIDIA H200", "slug": "h200", "uuid": "GPU-1",
                "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 62914560,
                "memory_bytes": 150754820096, "driver": "580.0", "cuda_runtime": "13.0",
                "ecc": True, "max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201,
                "power_limit_w": 700.0},
    }


def sample_lines():
    """Every block of every process: each arm once, with a scatter of about one per cent."""
    lines = []
    for process in range(PROCESSES):
        for block in range(BLOCKS):
            for order, arm in enumerate(ARMS):
                scatter = 1 + 0.01 * ((7 * process + 3 * block + 5 * order) % 5 - 2)
                lines.append(json.dumps({
                    "seq": len(lines), "process": process, "shape": "small", "block": block,
                    "order": order, "of": len(ARMS), "arm": arm[0], "launches": 64,
                    "us": arm[5] * scatter, "sm_mhz": 1980, "temp_c": 41, "power_w": 310.5,
                    "throttle": 0, "cache": "warm"}))
    return lines


def check_lines():
    """One passed check per arm."""
    return [json.dumps({"process": 0, "arm": arm[0], "shape": "small", "inputs": "normal",
                        "seed": 1, "correct": True, "max_err": 1e-5, "max_err_limit": 1e-4,
                        "mean_err": 1e-6, "mean_err_limit": 1e-5, "lse_err": 1e-7,
                        "lse_limit": 1e-6, "guards_intact": True, "bit_identical": True,
                        "reason": ""}) for arm in ARMS]


class CliTest(FolderTest):
    program = ""  # call() sets both
    has_kernels = False

    def run_program(self, *arguments, **options):
        return self.call(self.program, *arguments, **options)

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

    def write_record(self, run, samples, checks, name="record"):
        self.write(f"{name}/run.json", json.dumps(run))
        self.write(f"{name}/samples.jsonl", "".join(line + "\n" for line in samples))
        self.write(f"{name}/correctness.jsonl", "".join(line + "\n" for line in checks))

    def needs_kernels(self):
        if not self.has_kernels:
            self.skipTest("this build holds no kernels, so their commands say that first")

    def needs_no_gpu(self):
        if gpu_is_listed():
            self.skipTest("nvidia-smi lists a GPU, so the command would use it")


class RecordTest(CliTest):
    def setUp(self):
        super().setUp()
        self.record = self.path / "record"
        self.write_record(run_json(), sample_lines(), check_lines())


def call(doc):
    """Runs the module's tests: `path/to/warpledger kernels|no_kernels`, then unittest's arguments."""
    if len(sys.argv) < 3 or sys.argv[2] not in ("kernels", "no_kernels"):
        sys.exit(doc)
    CliTest.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    CliTest.has_kernels = sys.argv.pop(1) == "kernels"
    unittest.main()
