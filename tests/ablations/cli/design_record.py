# SPDX-License-Identifier: Apache-2.0
"""Writes an invented record of any design, for tests; it says nothing about any GPU.

The arms are those that `warpledger list designs --format=json` prints. Times follow a model of the
caller's: microseconds of a set of toggles, with a known scatter and no other noise.
"""

import hashlib
import json

PROCESSES = 3
BLOCKS = 5


def toggles_of(config):
    """The toggles that a printed configuration turns on."""
    return set() if config == "minimal_scalar" else {part.split("=")[0]
                                                     for part in config.split("+")}


def run_json(design, arms, shapes, cache):
    return {
        "schema_version": 1, "run_id": f"{design}-invented", "created_utc": "2026-01-02T03:04:05Z",
        "design": design, "family": design, "argv": ["warpledger", "run"], "seed": 1,
        "processes": PROCESSES, "blocks_per_process": BLOCKS, "cache": cache,
        "shapes": [{"name": name, "batch": 1, "heads_q": 8, "heads_kv": 8, "seq_q": 512,
                    "seq_kv": 512, "head_dim": 64, "causal": False} for name in shapes],
        "arms": arms + [{"name": "floor:empty_kernel", "config": "", "role": "floor",
                         "toggle": "", "base": ""}],
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


def write(folder, design, arms, shapes, us_of, wrong=(), cache="warm"):
    """A whole record in `folder`.

    us_of(toggles, shape) is the time; every arm of a block shares the block's drift, and a scatter
    of 0.1% moves single samples. The arms named in `wrong` fail their checks on every shape.
    """
    folder.mkdir(parents=True)
    run = run_json(design, arms, shapes, cache)
    (folder / "run.json").write_text(json.dumps(run))
    samples, checks = [], []
    for process in range(PROCESSES):
        for shape in shapes:
            for block in range(BLOCKS):
                drift = 1 + 0.01 * block + 0.005 * process
                for order, arm in enumerate(run["arms"]):
                    us = (2.0 if arm["role"] == "floor"
                          else us_of(toggles_of(arm["config"]) - {"null_toggle"}, shape))
                    scatter = 1 + 0.001 * ((7 * process + 3 * block + 5 * order) % 5 - 2) / 2
                    samples.append({
                        "seq": len(samples), "process": process, "shape": shape, "block": block,
                        "order": order, "of": len(run["arms"]), "arm": arm["name"], "launches": 64,
                        "us": us * drift * scatter, "sm_mhz": 1980, "temp_c": 41, "power_w": 310.5,
                        "throttle": 0, "cache": cache})
    for arm in arms:
        for shape in shapes:
            correct = arm["name"] not in wrong
            checks.append({
                "process": 0, "arm": arm["name"], "shape": shape, "inputs": "normal", "seed": 1,
                "correct": correct, "max_err": 1e-5 if correct else 1.0, "max_err_limit": 1e-4,
                "mean_err": 1e-6, "mean_err_limit": 1e-5, "lse_err": 1e-7, "lse_limit": 1e-6,
                "guards_intact": True, "bit_identical": True,
                "reason": "" if correct else "off by one"})
    for name, lines in (("samples.jsonl", samples), ("correctness.jsonl", checks)):
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    instances = []
    for config in dict.fromkeys(arm["config"] for arm in arms):
        # The null toggle reaches no code.
        code = hashlib.sha256(config.replace("+null_toggle", "").encode()).hexdigest()
        instances.append({"variant": config, "arch": "sm_90", "code_sha256": code,
                          "ptx_sha256": code, "opcodes": {}})
    (folder / "codegen.json").write_text(json.dumps(
        {"schema_version": 1, "disassembler": "", "instances": instances}))
