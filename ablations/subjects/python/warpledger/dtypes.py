# SPDX-License-Identifier: Apache-2.0
"""Types of elements that libwarpledger_sdpa takes, and the scales of E4M3.

Tensors here are attention.Tensor, by heads: (batch, heads, rows, head_dim).
"""

import math

FP16, BF16, E4M3 = range(3)  # as the library numbers them
INT32, FP32, UINT8 = range(16, 19)
# DLPack's code and bits.
DTYPES = {(2, 16): FP16, (4, 16): BF16, (10, 8): E4M3, (0, 32): INT32, (2, 32): FP32, (1, 8): UINT8}
TYPESTRS = {"f2": FP16, "i4": INT32, "f4": FP32, "u1": UINT8}  # of __cuda_array_interface__
BLOCK_KEYS = 128  # that share a scale
PER_TENSOR, PER_HEAD, PER_BLOCK = range(3)  # a warpledger_sdpa_scale_scope
SCALES = ("q_scale", "k_scale", "v_scale")


def without_gaps(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def dtype_of_torch(torch, dtype):
    """Of Tensor."""
    known = {torch.float16: FP16, torch.bfloat16: BF16, torch.int32: INT32, torch.float32: FP32, torch.uint8: UINT8,
             getattr(torch, "float8_e4m3fn", None): E4M3}
    return known.get(dtype, -1)


def out_dtype(dtype, has_scale=False):
    """Of out, by q's, and whether out has a scale."""
    return FP16 if dtype == E4M3 and not has_scale else dtype


def as_e4m3(tensor, dtype):
    """The tensor, whose bytes are E4M3 where the caller's `dtype` says so."""
    return tensor._replace(dtype=E4M3) if dtype == "e4m3" and tensor.dtype == UINT8 else tensor


def check_out_scale(scale, q):
    """ValueError unless it is one float32 on q's GPU."""
    if scale.dtype != FP32 or scale.device != q.device or math.prod(scale.shape) != 1:
        raise ValueError("out_scale must be one float32, on q's GPU")


def scopes_of(q, k, scales):
    """(scope of q_scale, scope of k_scale and v_scale) of tensors by heads; ValueError where there is none."""
    (batch, heads), (kv_heads, kv_rows) = q.shape[:2], k.shape[1:3]
    blocks = (kv_rows + BLOCK_KEYS - 1) // BLOCK_KEYS
    scopes = []
    for name, it, count in zip(SCALES, scales, (heads, kv_heads, kv_heads)):
        has_gaps = any(size > 1 and step != dense
                       for size, step, dense in zip(it.shape, it.strides, without_gaps(it.shape)))
        if it.dtype != FP32 or it.device != q.device or has_gaps:
            raise ValueError(f"{name} must be float32 without gaps, on q's GPU")
        shapes = {(batch, count): PER_HEAD} | ({} if name == "q_scale" else {(batch, count, blocks): PER_BLOCK})
        scope = PER_TENSOR if math.prod(it.shape) == 1 else shapes.get(it.shape)
        if scope is None:
            raise ValueError(f"{name} has shape {it.shape}; it must have one element, or be " +
                             " or ".join(map(str, shapes)))
        scopes.append(scope)
    if scopes[1] != scopes[2]:
        raise ValueError(f"k_scale has shape {scales[1].shape} and v_scale {scales[2].shape}: what shares a scale must "
                         "be the same in both")
    return tuple(scopes[:2])


def scales_of(q_scale, k_scale, v_scale, out_scale=None):
    """Those that there are; ValueError where some are there without the others."""
    inputs = q_scale, k_scale, v_scale
    given = [each is not None for each in inputs]
    if any(given) and not all(given):
        raise ValueError("q_scale, k_scale and v_scale go together")
    if not any(given):
        if out_scale is not None:
            raise ValueError("out_scale goes with q_scale, k_scale and v_scale")
        return ()
    return inputs if out_scale is None else (*inputs, out_scale)
