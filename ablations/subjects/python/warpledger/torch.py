# SPDX-License-Identifier: Apache-2.0
"""Attention by libwarpledger_sdpa as an operator of PyTorch, torch.ops.warpledger.sdpa, which torch.compile
keeps in its graphs.

    from warpledger.torch import scaled_dot_product_attention

    out = scaled_dot_product_attention(q, k, v, is_causal=True)  # as torch.nn.functional's

Where the library has no kernel for a call (why_not() says why), it is PyTorch's own that runs. There is no
backward: what needs a gradient is PyTorch's too.
"""

import functools

import torch

from . import attention
from .attention import HEAD_DIMS, Tensor

_DTYPES = {torch.float16: 0, torch.bfloat16: 1}
SMS = 132  # of an H100 or H200
# What a copy of q is taken to cost, where it spares a launch for each batch: for a token of each batch out of a
# packed product.
COPY_US, COPIED_BYTES_A_US = 3, 2e6
_own = torch.nn.functional.scaled_dot_product_attention

_library = torch.library.Library("warpledger", "DEF")
_library.define(
    "sdpa(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None, bool return_lse=False) "
    "-> (Tensor, Tensor)",
    tags=(torch.Tag.pt2_compliant_tag,
          getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)))


def _outputs(q, k, causal, return_lse):
    """out, and lse or an empty one."""
    batch, heads, rows, head_dim = q.shape
    if attention.keeps_rows_outside(q.shape, q.stride(), k.shape[2], causal):
        out = q.new_empty((batch, rows, heads, head_dim)).transpose(1, 2)
    else:
        out = q.new_empty((batch, heads, rows, head_dim))
    return out, q.new_empty((batch, heads, rows) if return_lse else (0,), dtype=torch.float32)


@torch.library.register_fake("warpledger::sdpa", lib=_library)
def _sdpa_fake(q, k, v, causal=False, scale=None, return_lse=False):
    torch._check(q.dim() == 4 and k.dim() == 4 and v.dim() == 4, lambda: "q, k and v must have 4 dimensions")
    return _outputs(q, k, causal, return_lse)


def _tensor(given):
    return Tensor(given.data_ptr(), given.shape, given.stride(), _DTYPES.get(given.dtype, -1), given.device.index)


@functools.lru_cache(maxsize=4096)
def _plan(q, k, v, o, causal, scale):
    """(plan, whether it is of a contiguous q). Of tensors whose addresses are 0."""
    for name, each in ("q", q), ("k", k), ("v", v):
        if len(each.shape) != 4:
            raise ValueError(f"{name} has {len(each.shape)} dimensions, not 4 (bhsd)")
    attention.check_inputs(q, k, v)
    plan = attention.plan_of(q, k, v, o, causal, scale)
    if plan.launches > 1:
        copied = attention.plan_of(q._replace(strides=attention.without_gaps(q.shape)), k, v, o, causal, scale)
        elements = q.shape[0] * q.shape[1] * q.shape[2] * q.shape[3]
        if copied.launches == 1 and copied.expected_us + COPY_US + 4 * elements / COPIED_BYTES_A_US < plan.expected_us:
            return copied, True
    return plan, False


def _sdpa_cuda(q, k, v, causal=False, scale=None, return_lse=False):
    if scale is not None and not scale > 0:
        raise ValueError(f"scale is {scale}; it must be above 0")
    out, lse = _outputs(q, k, causal, return_lse)
    # A view that begins between two 16 bytes: strides are multiples of them, so that a copy has none.
    q, k, v = (each.clone() if each.data_ptr() % 16 else each for each in (q, k, v))
    given = [_tensor(each) for each in (q, k, v, out)]
    device = q.device.index
    stream = torch.cuda.current_stream(device).cuda_stream
    memory = attention.workspaces()
    with memory.device(device):
        plan, copies = _plan(*(each._replace(pointer=0) for each in given), causal, scale)
        if copies:
            q = q.contiguous()
            given[0] = _tensor(q)
        if torch.cuda.is_current_stream_capturing():
            space = attention.captured_workspace(torch, plan, q.device)
            at = space.data_ptr()
        else:
            at = memory.of(device, stream, plan.workspace_bytes)
        attention.launch(plan, *given, lse.data_ptr() if return_lse else None, at, stream)
    return out, lse


_library.impl("sdpa", _sdpa_cuda, "CUDA")


def sdpa(q, k, v, *, causal=False, scale=None, return_lse=False):
    """As warpledger.sdpa of (batch, heads, seq, head_dim), as an operator."""
    out, lse = torch.ops.warpledger.sdpa(q, k, v, causal, scale, return_lse)
    return (out, lse) if return_lse else out


@functools.cache
def _why_not_on(index):
    try:
        attention.library()
    except (FileNotFoundError, OSError) as error:
        return str(error)
    capability = torch.cuda.get_device_capability(index)
    return "" if capability == (9, 0) else f"the GPU has compute capability {capability}, not (9, 0)"


@torch.compiler.assume_constant_result
def _why_not_here(index):
    """"" where the library runs on that GPU."""
    return _why_not_on(index)


def why_not(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Why a call is PyTorch's: a clause; "" where it is the library's."""
    given = (query, key, value)
    if attn_mask is not None or dropout_p != 0:
        return "there is a mask or dropout"
    if not all(each.is_cuda and each.dim() == 4 and each.dtype in _DTYPES for each in given):
        return "a tensor is not of 4 dimensions of float16 or bfloat16 on a GPU"
    if torch.is_grad_enabled() and any(each.requires_grad for each in given):
        return "a gradient is asked for"
    if query.dtype != key.dtype or query.dtype != value.dtype or key.shape != value.shape:
        return "dtypes, or the shapes of key and value, differ"
    batch, heads, rows, head_dim = query.shape
    kv_heads, kv_rows = key.shape[1], key.shape[2]
    if head_dim not in HEAD_DIMS or key.shape[3] != head_dim or key.shape[0] != batch:
        return "head_dim is not 64, 128 or 256, or key's shape is another"
    if query.numel() == 0 or key.numel() == 0:
        return "a tensor is empty"
    if heads != kv_heads and not (enable_gqa and heads % kv_heads == 0):
        return "heads differ"
    if is_causal and rows != kv_rows:
        return "PyTorch aligns this mask to the top left"
    if scale is not None and not scale > 0:
        return "scale is not above 0"
    for each in given:
        steps = zip(each.shape[:3], each.stride())
        if each.stride(3) != 1 or any(size > 1 and (step % 8 != 0 or step < head_dim) for size, step in steps):
            return "strides are no multiples of 16 bytes"
    # Each batch is a launch where head strides don't fold, but for a query that is cheap to copy.
    folds = all(kv_heads == 1 or each.stride(0) == kv_heads * each.stride(1) for each in (key, value))
    outside = attention.has_rows_outside(query.shape, query.stride())
    if batch > 1 and (outside or not folds) and heads * ((rows + 127) // 128) < SMS:
        return "each batch would be a launch, of too little work to fill the GPU"
    return _why_not_here(query.device.index)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """torch.nn.functional's, by the library where it has a kernel."""
    if why_not(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
        return _own(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
                    enable_gqa=enable_gqa)
    return torch.ops.warpledger.sdpa(query, key, value, is_causal, scale, False)[0]
