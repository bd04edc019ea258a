# SPDX-License-Identifier: Apache-2.0
"""Invented records, for tests; they say nothing about any GPU."""

import json

PROCESSES = 3
BLOCKS = 6
# name, config, role, toggle, base
ARMS = [dict(zip(("name", "config", "role", "toggle", "base"), arm)) for arm in (
    ("minimal_scalar", "minimal_scalar", "base", "", ""),
    ("ladder:kv_tiling", "kv_tiling", "step", "kv_tiling", "minimal_scalar"),
    ("control:aa", "kv_tiling", "aa", "", "ladder:kv_tiling"))]
MEDIAN_US = {"minimal_scalar": 10.0, "ladder:kv_tiling": 5.0, "control:aa": 5.0}


def run_json(design="ladder", arms=ARMS, shapes=("small",), **changed):
    return {
        "schema_version": 1, "run_id": "2026-01-02-example", "created_utc": "2026-01-02T03:04:05Z",
        "design": design, "family": design, "argv": ["warpledger", "run"], "seed": 1,
        "processes": PROCESSES, "blocks_per_process": BLOCKS, "cache": "warm",
        "shapes": [{"name": name, "batch": 1, "heads_q": 8, "heads_kv": 8, "seq_q": 512,
                    "seq_kv": 512, "head_dim": 64, "causal": False, "flops": 536870912.0,
                    "min_bytes": 2097152.0, "exponentials": 2097152.0} for name in shapes],
        "arms": arms, "git": {"sha": "0123abcd", "dirty": False}, "registry_sha256": "aa",
        "kernel_source_sha256": "bb",
        "toolchain": {"nvcc": "13.0", "host_compiler": "g++ 12", "build_type": "Release",
                      "cuda_flags": "", "architectures": "90"},
        "gpu": {"name": "NVIDIA H200", "slug": "h200", "uuid": "GPU-1",
                "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 62914560,
                "memory_bytes": 150754820096, "driver": "580.0", "cuda_runtime": "13.0",
                "ecc": True, "max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201,
                "power_limit_w": 700.0},
    } | changed


def scatter(process, block, order):
    """From -2 to 2, without a system that a test could see."""
    return (7 * process + 3 * block + 5 * order) % 5 - 2


def sample_lines(run, us_of=None):
    """Every block of every process: each arm once, in us_of(arm, shape, process, block, order)
    microseconds; else the medians with a scatter of about one per cent."""
    us_of = us_of or (lambda arm, _, *at: MEDIAN_US[arm["name"]] * (1 + 0.01 * scatter(*at)))
    lines = []
    for process in range(run["processes"]):
        for shape in run["shapes"]:
            for block in range(run["blocks_per_process"]):
                for order, arm in enumerate(run["arms"]):
                    lines.append(json.dumps({
                        "seq": len(lines), "process": process, "shape": shape["name"],
                        "block": block, "order": order, "of": len(run["arms"]), "arm": arm["name"],
                        "launches": 64, "us": us_of(arm, shape["name"], process, block, order),
                        "sm_mhz": 1980, "temp_c": 41, "power_w": 310.5, "throttle": 0,
                        "cache": run["cache"]}))
    return lines


def check_lines(run, wrong=()):
    """A check of every arm on every shape; those of the arms named in `wrong` failed."""
    return [json.dumps({
        "process": 0, "arm": arm["name"], "shape": shape["name"], "inputs": "normal", "seed": 1,
        "correct": arm["name"] not in wrong, "max_err": 1.0 if arm["name"] in wrong else 1e-5,
        "max_err_limit": 1e-4, "mean_err": 1e-6, "mean_err_limit": 1e-5, "lse_err": 1e-7,
        "lse_limit": 1e-6, "guards_intact": True, "bit_identical": True,
        "reason": "off by one" if arm["name"] in wrong else ""})
            for arm in run["arms"] if arm["role"] != "floor" for shape in run["shapes"]]


def write_no_micro(folder, slug="h200"):
    """A record of no microbenchmark beside the records of a folder. No verdict depends on one; where
    none is there, the program unpacks those of the tree, which takes as long as to judge a small
    record."""
    (folder / "micro-none").mkdir(exist_ok=True)
    (folder / "micro-none/micro.json").write_text(json.dumps(
        {"gpu": {"slug": slug, "uuid": ""}, "micro": [],
         "provenance": {"started": "", "processes": 0, "n_samples": 0}}), encoding="utf-8")
