#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints random attention problems, by which the library's choice of kernels is fitted and checked.

    reports/random_problems.py --head_dim 128 --dtype bf16 --count 40 --seed 1
    reports/random_problems.py --head_dim 64 --kinds decode,few --count 20

Kinds by turns: prompts, decoding steps, few queries against many keys, small problems, and
queries against a cache that is longer than they are. Lengths are ragged half of the time, a K/V
head serves 1 to 16 query heads, the batch has 1 to 64, half of the prompts are causal. The names
say the sizes, as `warpledger run --shapes` takes them; they are joined by commas.
"""

import argparse
import random

KINDS = ("prompt", "decode", "few", "small", "cache")
MOST_FLOP = 2e11
MOST_KV_BYTES = 2**29


def log_uniform(source, low, high):
    return round(low * (high / low) ** source.random())


def length(source, low, high):
    """Half of them multiples of 64, as far as the range has any."""
    n = log_uniform(source, low, high)
    return max(n // 64 * 64, 64) if n >= 64 and source.random() < 0.5 else n


def draw(source, kind):
    """(batch, heads_kv, group, seq_q, seq_kv, causal)"""
    group = source.choice([1, 1, 2, 3, 4, 6, 8, 16])
    heads_kv = source.choice([1, 2, 4, 8, 12, 16, 32])
    batch = log_uniform(source, 1, 64)
    causal = source.random() < 0.5
    if kind == "prompt":
        n = length(source, 256, 16384)
        return batch, heads_kv, group, n, n, causal
    if kind == "decode":
        return batch, heads_kv, group, 1, length(source, 128, 65536), False
    if kind == "few":
        return batch, heads_kv, group, source.randint(2, 16), length(source, 512, 32768), causal
    if kind == "small":
        n = length(source, 16, 768)
        return source.randint(1, 4), source.choice([1, 2, 4, 8, 16]), source.choice([1, 1, 2, 4]), n, n, causal
    keys = length(source, 256, 16384)
    return batch, heads_kv, group, length(source, 16, max(keys // 2, 17)), keys, causal


def name(head_dim, dtype, problem):
    batch, heads_kv, group, seq_q, seq_kv, causal = problem
    heads = f"{heads_kv * group}x{heads_kv}" if group > 1 else str(heads_kv)
    seq = f"{seq_q}x{seq_kv}" if seq_q != seq_kv else str(seq_q)
    return (f"b{batch}_h{heads}_s{seq}_d{head_dim}" + ("_causal" if causal else "")
            + ("_bf16" if dtype == "bf16" else ""))


def problems(head_dim, dtype, count, seed, kinds=KINDS):
    source = random.Random(f"{head_dim} {dtype} {seed}")
    names = []
    while len(names) < count:
        problem = draw(source, kinds[len(names) % len(kinds)])
        batch, heads_kv, group, seq_q, seq_kv, _ = problem
        if 4.0 * batch * heads_kv * group * seq_q * seq_kv * head_dim > MOST_FLOP:
            continue
        if 4.0 * batch * heads_kv * seq_kv * head_dim > MOST_KV_BYTES:
            continue
        if name(head_dim, dtype, problem) not in names:
            names.append(name(head_dim, dtype, problem))
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--head_dim", type=int, choices=(64, 128, 256), default=64)
    parser.add_argument("--dtype", choices=("fp16", "bf16"), default="fp16")
    parser.add_argument("--kinds", default=",".join(KINDS), help="default: %(default)s")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    unknown = set(kinds) - set(KINDS)
    if unknown:
        parser.error(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    print(",".join(problems(arguments.head_dim, arguments.dtype, arguments.count, arguments.seed, kinds)))


if __name__ == "__main__":
    main()
