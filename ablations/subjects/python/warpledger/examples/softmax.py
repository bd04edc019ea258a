# SPDX-License-Identifier: Apache-2.0
"""Softmax over rows: PyTorch in three steps, compiled, and as one Triton kernel.

    python -m warpledger.examples.softmax [OUT]
"""

import sys

import torch
import triton
import triton.language as tl

import warpledger as wl


def eager(x):
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


@triton.jit
def softmax_kernel(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + columns, mask=columns < cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * cols + columns, e / tl.sum(e, axis=0), mask=columns < cols)


def fused(x):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=8 if block > 2048 else 4)
    return out


def make_inputs(seed, rows, cols):
    torch.manual_seed(seed)
    return torch.randn(rows, cols, device="cuda", dtype=torch.float16)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "out/softmax"
    result = wl.compare(
        {"eager": eager, "compiled": torch.compile(eager), "triton": fused},
        inputs=make_inputs, problems=[{"rows": 4096, "cols": 1024}, {"rows": 512, "cols": 512}],
        reference=eager, launches={"triton": "softmax_kernel"},
        min_bytes=lambda rows, cols: 4 * rows * cols, flops=lambda rows, cols: 5 * rows * cols)
    print(result)
    print("Page:", result.report(out))


if __name__ == "__main__":
    main()
