#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the synthetic summary that the tests of reports and plots read.

Every figure here is INVENTED: it has the shape of a record and the spread of a
plausible one, and says nothing about any GPU. Never copy it under reports/data.

    python3 tests/reports/testdata/make_summary.py > tests/reports/testdata/summary.json
"""

import json
import sys

SHAPES = {  # name: (batch, heads, seq)
    "small": (1, 1, 32),
    "medium": (1, 4, 128),
    "mission_a": (2, 8, 256),
    "mission_b": (1, 8, 512),
    "long": (1, 8, 2048),
}
HEAD_DIM = 64

# id, label, gate, predicted range, ratio over the step before at each shape.
STEPS = [
    ("kv_tiling", "K/V tiling, serial reductions", 1.10, (0.60, 1.00),
     (0.55, 0.62, 0.71, 0.78, 0.84)),
    ("tile_m32_warps4", "CTA tile 32 rows, 4 warps", 1.10, (1.00, 1.30),
     (1.002, 1.05, 1.12, 1.21, 1.31)),
    ("warp_shuffle", "Warp-shuffle reductions", 1.10, (1.30, 2.00),
     (1.52, 1.66, 1.70, 1.74, 1.71)),
    ("vector_loads", "16-byte vectorised loads", 1.10, (1.50, 2.50),
     (1.21, 1.48, 2.31, 2.86, 3.05)),
    ("wmma_qk", "WMMA for QK^T", 1.10, (1.30, 2.00),
     (1.18, 1.33, 1.44, 1.49, 1.52)),
    ("cp_async_stages", "Two-stage cp.async for K/V", 1.10, (1.00, 1.15),
     (0.97, 1.004, 1.013, 1.026, 1.034)),
    ("wmma_pv", "WMMA for P V", 1.15, (1.50, 2.50),
     (1.38, 1.81, 2.20, 2.41, 2.55)),
]
FIRST_US = {"small": 9.8, "medium": 31.5, "mission_a": 141.0, "mission_b": 246.0, "long": 3610.0}
PEERS_US = {  # in the order of SHAPES
    "peer:flash": (5.1, 5.25, 8.4, 10.2, 39.4),
    "peer:cudnn": (5.6, 5.7, 6.8, 9.0, 23.7),
    "peer:math": (27.0, 30.4, 47.3, 65.3, 565.0),
}
RESOURCES = {  # variant: registers, shared bytes, CTAs per SM
    "minimal_scalar": (32, 2304, 16),
    "kv_tiling": (40, 14592, 14),
    "tile_m32_warps4": (40, 18944, 12),
    "warp_shuffle": (48, 18944, 10),
    "vector_loads": (72, 18944, 6),
    "wmma_qk": (86, 23040, 5),
    "cp_async_stages": (88, 31232, 5),
    "wmma_pv": (96, 37120, 5),
}
HALF_WIDTH = {"small": 0.012, "medium": 0.008, "mission_a": 0.005, "mission_b": 0.004,
              "long": 0.003}
DELTA = 0.01


def rounded(value):
    return float(f"{value:.6g}")


def arithmetic(name):
    batch, heads, seq = SHAPES[name]
    pairs = batch * heads * seq * seq
    return {"flops": 4.0 * pairs * HEAD_DIM, "min_bytes": 8.0 * batch * heads * seq * HEAD_DIM,
            "exponentials": float(pairs)}


def judge(low, high, gate):
    if low >= 1 / (1 + DELTA) and high <= 1 + DELTA:
        return "NEUTRAL"
    if low >= gate:
        return "ADOPT"
    if low > 1:
        return "REAL_BELOW_GATE"
    return "REGRESSION" if high < 1 else "INCONCLUSIVE"


def cell(variant, config, role, toggle, label, shape, p50, first, resources, sha):
    half = HALF_WIDTH[shape]
    ratio = first / p50
    speedup = {"ratio": rounded(ratio), "ci_low": rounded(ratio * (1 - half)),
               "ci_high": rounded(ratio * (1 + half))}
    registers, smem, ctas = resources
    return {
        "variant": variant, "config": config, "role": role, "toggle": toggle, "label": label,
        "shape": shape, "correct": True, "max_err": 3.1e-05, "max_err_rule": 1.2e-04,
        "n_checks": 15, "n_samples": 72, "n_processes": 3, "p50_us": rounded(p50),
        "ci_low_us": rounded(p50 * (1 - half)), "ci_high_us": rounded(p50 * (1 + half)),
        "p10_us": rounded(p50 * (1 - 2 * half)), "p90_us": rounded(p50 * (1 + 2 * half)),
        "tflops": rounded(arithmetic(shape)["flops"] / p50 / 1e6),
        "speedup_over_first": None if role == "base" else speedup,
        "registers": registers, "smem_bytes": smem, "spill_bytes": 0, "stack_bytes": 0,
        "threads": 64 if role == "base" else 128, "ctas_per_sm": ctas,
        "code_sha256": sha, "sm_mhz_p50": 1965.0, "reason": "",
    }


def change(base, candidate, index):
    """What step `index` of the ladder does to the kernel."""
    (registers, smem, ctas), (registers_on, smem_on, ctas_on) = (
        RESOURCES[arm.removeprefix("ladder:")] for arm in (base, candidate))
    first = base == "minimal_scalar"
    return {"registers": [registers, registers_on], "smem_bytes": [smem, smem_on],
            "spill_bytes": [0, 0], "warps_per_sm": [ctas * (2 if first else 4), ctas_on * 4],
            "instructions": [1000 + 100 * index, 1100 + 100 * index], "evidence": [0, 32],
            "opcodes": {"HMMA": [0, 32], "LDS": [80, 60 - index], "MUFU": [8, 4]}}


def make_summary():
    cells, verdicts, controls, peers, floors = [], [], [], [], []
    for at, shape in enumerate(SHAPES):
        first = p50 = FIRST_US[shape]
        half = HALF_WIDTH[shape]
        base = "minimal_scalar"
        config = base
        cells.append(cell(base, config, "base", "", "Minimal scalar, one CTA per query row", shape,
                          p50, first, RESOURCES[base], "0" * 64))
        for index, (toggle, label, gate, predicted, ratios) in enumerate(STEPS):
            ratio = ratios[at]
            p50 /= ratio
            candidate = f"ladder:{toggle}"
            config = toggle if index == 0 else f"{config}+{toggle}"
            cells.append(cell(candidate, config, "step", toggle, label, shape, p50, first,
                              RESOURCES[toggle], str(index + 1) * 64))
            low, high = ratio * (1 - 1.6 * half), ratio * (1 + 1.6 * half)
            verdict = judge(low, high, gate)
            here = shape == "mission_b"
            verdicts.append({
                "toggle": toggle, "design": "ladder", "base": base, "candidate": candidate,
                "shape": shape, "n_pairs": 72, "n_processes": 3, "estimand": "time",
                "ratio": rounded(ratio), "ci_low": rounded(low), "ci_high": rounded(high),
                "this_board_low": rounded(ratio * (1 - half)),
                "this_board_high": rounded(ratio * (1 + half)),
                "standard_error": rounded(half / 4), "error_df": 2.0,
                "adjusted_confidence": 0.95,
                "gate": gate, "verdict": verdict, "reason": "",
                "mde_ratio": rounded(1 + 2.2 * half) if verdict == "INCONCLUSIVE" else None,
                "within_process_sd": rounded(half), "between_process_sd": rounded(half / 3),
                "predicted_low": predicted[0], "predicted_high": predicted[1],
                "prediction_held": (high >= predicted[0] and low <= predicted[1]) if here else None,
                "change": change(base, candidate, index),
            })
            base = candidate
        for kind, name, toggle, ratio in (("aa", "control:aa", "", 0.9995),
                                          ("null", "control:null_toggle", "null_toggle", 1.0007)):
            cells.append(cell(name, config, kind, toggle, name, shape, p50 / ratio,
                              first, RESOURCES["wmma_pv"], "7" * 64))
            low, high = ratio * (1 - 0.6 * half), ratio * (1 + 0.6 * half)
            timing = judge(low, high, 1.10)
            controls.append({
                "kind": kind, "shape": shape, "candidate": name, "estimand": "time",
                "ratio": rounded(ratio), "ci_low": rounded(low), "ci_high": rounded(high),
                "holds_one": low <= 1 <= high, "timing_verdict": timing,
                "verdict": "INVALID" if kind == "null" else timing, "false_verdict": False,
                "mde_ratio": rounded(1 + 1.4 * half), "within_process_sd": rounded(half),
                "between_process_sd": rounded(half / 4)})
        for peer, times in PEERS_US.items():
            peers.append({
                "name": peer, "version": "synthetic peer 1.0", "shape": shape, "available": True,
                "correct": True, "reason": "", "n_samples": 72, "n_processes": 3,
                "p50_us": times[at], "ci_low_us": rounded(times[at] * 0.99),
                "ci_high_us": rounded(times[at] * 1.01), "p10_us": rounded(times[at] * 0.98),
                "p90_us": rounded(times[at] * 1.02)})
        floors.append({"name": "floor:empty_kernel", "shape": shape, "n_samples": 72,
                       "p50_us": 0.512, "ci_low_us": 0.508, "ci_high_us": 0.517,
                       "p10_us": 0.505, "p90_us": 0.521})
    return {
        "synthetic": "INVENTED FIGURES for the tests of reports and plots; no GPU was measured",
        "schema_version": 2, "run_id": "synthetic-0001", "gpu": "h200", "design": "ladder",
        "family": "ladder",
        "provenance": {
            "schema_version": 1, "run_id": "synthetic-0001", "created_utc": "2026-01-02T03:04:05Z",
            "design": "ladder", "family": "ladder",
            "argv": ["warpledger", "run", "--design=ladder"],
            "seed": 1, "processes": 3, "blocks_per_process": 24, "cache": "warm", "replay_us": 1000,
            "max_launches": 2000,
            "processes_found": 3, "blocks_planned": 360, "blocks_missing": 0,
            "peer_blocks_planned": 360, "peer_blocks_missing": 0,
            "git": {"sha": "c0ffee" + "0" * 34, "dirty": False},
            "registry_sha256": "a" * 64, "kernel_source_sha256": "b" * 64,
            "protocol_sha256": "c" * 64,
            "toolchain": {"nvcc": "13.0.0", "host_compiler": "g++ 12.2.0", "build_type": "Release",
                          "cuda_flags": "-O3 -std=c++20", "architectures": "90"},
            "gpu": {"name": "NVIDIA H200", "slug": "h200", "uuid": "GPU-synthetic",
                    "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 62914560,
                    "memory_bytes": 150754820096, "driver": "580.0", "cuda_runtime": "13.0",
                    "ecc": True, "max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201,
                    "power_limit_w": 700.0},
            "n_samples": 3960, "throttled_samples": 0, "unknown_throttle_samples": 0,
            "sm_mhz_p50": 1965.0, "temp_c_p50": 41.0, "power_w_p50": 310.5},
        "statistics": {"confidence": 0.95, "bootstrap_resamples": 20000, "bootstrap_seed": 20240601,
                       "neutral_delta": DELTA, "error_ratio": 1.25,
                       "family_size": len(STEPS) * len(SHAPES), "correction": "an invented rate",
                       "interval": "the wider of two invented methods",
                       "spreads": [{"regime": "not_capped", "floor_sd": 0.001, "scale": 1.0,
                                    "df": 2.0}]},
        "shapes": [{"name": name, "batch": b, "heads_q": h, "heads_kv": h, "seq_q": s, "seq_kv": s,
                    "head_dim": HEAD_DIM, "causal": False, **arithmetic(name)}
                   for name, (b, h, s) in SHAPES.items()],
        "cells": cells, "peers": peers, "floors": floors, "verdicts": verdicts,
        "controls": controls,
        "controls_summary": {"trials": len(controls), "false_verdicts": 0,
                             "intervals_holding_one": sum(c["holds_one"] for c in controls)},
        "micro": [],
    }


GRID_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
GRID_US = {  # of the shortest: arm or peer -> time at head_dim 64, full
    "hopper:wgmma": 900.0, "hopper:ping_pong": 700.0, "peer:flash": 1100.0, "peer:cudnn": 720.0}


def make_grid(head_dims=(64, 128, 256), masks=(False, True), lengths=GRID_LENGTHS):
    """The synthetic summary as a Hopper record's over lengths, two arms and two peers. Invented."""
    data = make_summary()
    data.update(design="hopper", family="hopper", verdicts=[], controls=[], floors=[])
    first_cell, first_peer = data["cells"][0], data["peers"][0]
    data["shapes"], data["cells"], data["peers"] = [], [], []
    for head_dim in head_dims:
        for causal in masks:
            for step, seq in enumerate(lengths):
                shape = f"fa3_d{head_dim}_s{seq}_{'causal' if causal else 'full'}"
                heads, share = 2048 // head_dim, 0.5 if causal else 1.0
                pairs = 16384 // seq * heads * seq * seq * share
                data["shapes"].append({
                    "name": shape, "batch": 16384 // seq, "heads_q": heads, "heads_kv": heads,
                    "seq_q": seq, "seq_kv": seq, "head_dim": head_dim, "causal": causal,
                    "flops": 4.0 * pairs * head_dim, "min_bytes": 8.0 * 16384 * 2048,
                    "exponentials": pairs})
                for name, longest_us in GRID_US.items():
                    # Short and causal ones run below the rate that long ones reach.
                    slower = (1 + 1.2 * 0.5 ** step) * (1.25 if causal else 1.0)
                    us = rounded(longest_us * 2 ** step * share * slower
                                 * (1.1 if "cudnn" in name and causal else 1.0)
                                 * (64 / head_dim) ** 0.2)
                    interval = {"ci_low_us": rounded(us * 0.99), "ci_high_us": rounded(us * 1.01)}
                    if name.startswith("peer:"):
                        data["peers"].append(dict(first_peer, name=name, shape=shape, p50_us=us,
                                                  **interval))
                    else:
                        data["cells"].append(dict(
                            first_cell, variant=name, config=name.removeprefix("hopper:"),
                            role="step", toggle=name.removeprefix("hopper:"), label=name,
                            shape=shape, p50_us=us,
                            tflops=rounded(4.0 * pairs * head_dim / us / 1e6), **interval))
    return data


if __name__ == "__main__":
    json.dump(make_summary(), sys.stdout, indent=1)
    sys.stdout.write("\n")
