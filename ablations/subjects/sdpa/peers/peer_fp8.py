# SPDX-License-Identifier: Apache-2.0
"""Attention in FP8: inputs as codes of E4M3, and the reference that judges what a peer makes of them.

The rule is that of our own FP8 variants (kernels/sdpa/problem/reference.h). The truth is FP64 of
the numbers that the codes stand for, because a kernel never sees others. The yardstick is the naive
formula: scores in fp16, P in E4M3 after a factor of 2^8, sums in fp32. The limits are those of
judge(). Two things differ, because a peer dictates them:

  a scale   is of a whole tensor; our variants have one per head of a batch
  O         is in E4M3 with a scale that is known beforehand. Our variants with wgmma_fp8_output write
            it so too, the others fp16. So the naive O is rounded to E4M3 too, and half a step of it
            is what no output escapes.

A factor of 1.05 on the output fails the check; one of 1.02 hides behind the rounding of O.
"""

from peer_arms import by_heads, naive_errors, softmax_scale, with_hidden
from peer_rules import judge

LARGEST = 448.0  # of E4M3
# P times this is rounded, as our kernels do it: small probabilities would round to 0.
RISE = 256.0


def scalar(torch, value):
    """A scale as kernels read it, and its number."""
    tensor = torch.full((1, 1, 1, 1), value, dtype=torch.float32, device="cuda")
    return tensor, tensor.item()


class Quantised:
    """A tensor in E4M3, whose scale maps its largest magnitude onto the largest code."""

    def __init__(self, torch, tensor):
        self.descale, self._unit = scalar(torch, tensor.abs().max().item() / LARGEST)
        self.codes = (tensor.float() / self._unit).to(torch.float8_e4m3fn)

    def numbers(self):
        """What the codes stand for, in fp64."""
        return self.codes.float().double() * self._unit


class Fp8Inputs:
    """The input sets of a shape in E4M3, with their references.

    sets: (q, k, v) of each, Quantised
    unit: of the output's codes. From the references, as a framework takes it from the calls before;
          one for all sets, for a call does not know its output.
    references: as ShapeInputs has them
    """

    def __init__(self, inputs):
        self._torch, self._shape = inputs.torch, inputs.shape
        # The further sets too: they lie at other addresses.
        self.sets = [tuple(Quantised(self._torch, tensor) for tensor in tensors) for tensors in inputs.sets]
        found = [by_heads(self._torch, self._shape, *(each.numbers() for each in tensors), self._naive)
                 for tensors in self.sets[:len(inputs.references)]]
        largest = max(reference.abs().max().item() for reference, _ in found)
        self.scale, factor = scalar(self._torch, LARGEST / largest)
        self.unit = 1.0 / factor
        self.references = [(reference, naive_errors(reference, self._rounded(naive)))
                           for reference, naive in found]

    def judged(self, errors):
        return judge(self._shape["name"], errors, "e4m3", self.unit)

    def _naive(self, q, k, v, hidden):
        """A head of the naive output, before it is rounded."""
        torch = self._torch
        q, k, v = (tensor.to(torch.float16) for tensor in (q, k, v))
        scores = with_hidden((q @ k.T) * softmax_scale(self._shape), hidden).float()
        weights = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * RISE
        sums = weights.sum(dim=-1, keepdim=True)
        return weights.to(torch.float8_e4m3fn).float() @ v.float() / sums

    def _rounded(self, output):
        # PyTorch makes a NaN of what exceeds the largest code; kernels saturate.
        codes = (output / self.unit).clamp(-LARGEST, LARGEST).to(self._torch.float8_e4m3fn)
        return codes.float() * self.unit
