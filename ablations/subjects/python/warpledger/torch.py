# SPDX-License-Identifier: Apache-2.0
"""Attention by libwarpledger_sdpa as operators of PyTorch, torch.ops.warpledger.sdpa and sdpa_lse, sdpa_varlen and
sdpa_varlen_lse of packed sequences, and sdpa_e4m3 and sdpa_e4m3_lse of float8_e4m3fn and scales, which torch.compile
keeps in its graphs.

    from warpledger.torch import scaled_dot_product_attention

    out = scaled_dot_product_attention(q, k, v, is_causal=True)  # as torch.nn.functional's

Where the library has no kernel for a call (why_not() says why), it is PyTorch's own that runs. There is no
backward: what needs a gradient is PyTorch's too.
"""

import functools
import sys
from typing import NamedTuple

import torch
from torch.autograd import forward_ad

from . import attention
from .attention import HEAD_DIMS, Tensor
from .dtypes import SCALES, check_out_scale, dtype_of_torch, out_dtype, scales_of, scopes_of

_DTYPES = (torch.float16, torch.bfloat16)  # PyTorch's own function is replaced for
SMS = 132  # of an H100 or H200
# What a copy of q is taken to cost, where it spares a launch for each batch: for a token of each batch out of a
# packed product.
COPY_US, COPIED_BYTES_A_US = 3, 2e6
_own = torch.nn.functional.scaled_dot_product_attention
_functorch = torch._C._functorch

_library = torch.library.Library("warpledger", "DEF")
_tags = (torch.Tag.pt2_compliant_tag, getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order))
_takes = "(Tensor q, Tensor k, Tensor v, bool causal=False, float? scale=None)"
_library.define(f"sdpa{_takes} -> Tensor", tags=_tags)
_library.define(f"sdpa_lse{_takes} -> (Tensor, Tensor)", tags=_tags)
_takes = ("(Tensor q, Tensor k, Tensor v, Tensor cu_seqlens_q, Tensor cu_seqlens_k, SymInt max_seqlen_q, "
          "SymInt max_seqlen_k, bool causal=False, float? scale=None)")
_library.define(f"sdpa_varlen{_takes} -> Tensor", tags=_tags)
_library.define(f"sdpa_varlen_lse{_takes} -> (Tensor, Tensor)", tags=_tags)
_takes = ("(Tensor q, Tensor k, Tensor v, Tensor q_scale, Tensor k_scale, Tensor v_scale, bool causal=False, "
          "float? scale=None, Tensor? out_scale=None)")
_library.define(f"sdpa_e4m3{_takes} -> Tensor", tags=_tags)
_library.define(f"sdpa_e4m3_lse{_takes} -> (Tensor, Tensor)", tags=_tags)


def _output(q, strides, k, causal, in_e4m3=False):
    """(shape, strides) of out. `strides` are those of the caller's q, as a fake q has them."""
    batch, heads, rows, head_dim = q.shape
    if attention.keeps_rows_outside(q.shape, strides, k.shape[2], causal, in_e4m3):
        return (batch, heads, rows, head_dim), (rows * heads * head_dim, head_dim, heads * head_dim, 1)
    return (batch, heads, rows, head_dim), (heads * rows * head_dim, rows * head_dim, head_dim, 1)


@torch.library.register_fake("warpledger::sdpa", lib=_library)
def _sdpa_fake(q, k, v, causal=False, scale=None):
    torch._check(q.dim() == 4 and k.dim() == 4 and v.dim() == 4, lambda: "q, k and v must have 4 dimensions")
    return q.new_empty_strided(*_output(q, q.stride(), k, causal))


@torch.library.register_fake("warpledger::sdpa_lse", lib=_library)
def _sdpa_lse_fake(q, k, v, causal=False, scale=None):
    return _sdpa_fake(q, k, v, causal, scale), q.new_empty(q.shape[:3], dtype=torch.float32)


@torch.library.register_fake("warpledger::sdpa_e4m3", lib=_library)
def _sdpa_e4m3_fake(q, k, v, q_scale, k_scale, v_scale, causal=False, scale=None, out_scale=None):
    torch._check(q.dim() == 4 and k.dim() == 4 and v.dim() == 4, lambda: "q, k and v must have 4 dimensions")
    return q.new_empty_strided(*_output(q, q.stride(), k, causal, out_scale is not None),
                               dtype=torch.float16 if out_scale is None else q.dtype)


@torch.library.register_fake("warpledger::sdpa_e4m3_lse", lib=_library)
def _sdpa_e4m3_lse_fake(q, k, v, q_scale, k_scale, v_scale, causal=False, scale=None, out_scale=None):
    return (_sdpa_e4m3_fake(q, k, v, q_scale, k_scale, v_scale, causal, scale, out_scale),
            q.new_empty(q.shape[:3], dtype=torch.float32))


@torch.library.register_fake("warpledger::sdpa_varlen", lib=_library)
def _sdpa_varlen_fake(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, scale=None):
    torch._check(q.dim() == 3 and k.dim() == 3 and v.dim() == 3, lambda: "q, k and v must have 3 dimensions")
    return q.new_empty(q.shape)


@torch.library.register_fake("warpledger::sdpa_varlen_lse", lib=_library)
def _sdpa_varlen_lse_fake(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, scale=None):
    return (_sdpa_varlen_fake(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k),
            q.new_empty((q.shape[1], q.shape[0]), dtype=torch.float32))


class _Call(NamedTuple):
    """What is known of a call before its tensors' addresses."""
    plan: attention.Plan
    copies_q: bool
    out: tuple  # (shape, strides)


# By all that a call is but addresses: a call takes microseconds, and so does each look at a tensor.
_calls = {}
_whys = {}


def _tensor(given):
    return Tensor(0, tuple(given.shape), given.stride(), dtype_of_torch(torch, given.dtype), given.device.index)


def _prepare(q, callers, k, v, causal, scale, scales):
    """On the current device. `callers`: the strides of q before it was copied."""
    attention.check_scale(scale)
    for name, each in ("q", q), ("k", k), ("v", v):
        if each.dim() != 4:
            raise ValueError(f"{name} has {each.dim()} dimensions, not 4 (bhsd)")
    in_e4m3 = len(scales) == 4
    out = _output(q, callers, k, causal, in_e4m3)
    q_, k_, v_ = (_tensor(each) for each in (q, k, v))
    attention.check_inputs(q_, k_, v_, bool(scales))
    scopes = scopes_of(q_, k_, [_tensor(each) for each in scales]) if scales else (0, 0)
    if in_e4m3:
        check_out_scale(_tensor(scales[3]), q_)
    o_ = q_._replace(shape=out[0], strides=out[1], dtype=out_dtype(q_.dtype, in_e4m3))
    plan = attention.plan_of(q_, k_, v_, o_, causal, scale, scopes)
    if plan.launches > 1:
        copied = attention.plan_of(q_._replace(strides=attention.without_gaps(q_.shape)), k_, v_, o_, causal, scale,
                                   scopes)
        copy_us = COPY_US + 2 * q.nbytes / COPIED_BYTES_A_US
        if copied.launches == 1 and copied.expected_us + copy_us < plan.expected_us:
            return _Call(copied, True, out)
    return _Call(plan, False, out)


def _run(q, k, v, causal, scale, lse, scales=()):
    """lse: a tensor or None;  scales: of q, k and v in E4M3, and of out if it is, too"""
    strides = callers = q.stride()
    # A view that begins between two 16 bytes is copied, into memory without gaps.
    if (q.data_ptr() | k.data_ptr() | v.data_ptr()) % 16:
        q, k, v = (each.clone(memory_format=torch.contiguous_format) if each.data_ptr() % 16 else each
                   for each in (q, k, v))
        strides = q.stride()
    device = q.device.index
    with attention.device_of_torch(torch, device):
        key = (q.shape, strides, callers, k.shape, k.stride(), v.shape, v.stride(), q.dtype, k.dtype, v.dtype, device,
               k.device.index, v.device.index, causal, scale,
               *((each.shape, each.stride(), each.dtype, each.device.index) for each in scales))
        call = _calls.get(key) or attention.keep(_calls, key, _prepare(q, callers, k, v, causal, scale, scales))
        plan = call.plan
        out = q.new_empty_strided(*call.out, dtype=torch.float16 if len(scales) == 3 else q.dtype)
        if call.copies_q:
            q = q.contiguous()
        stream = attention.stream_of_torch(torch, device)
        if torch.cuda.is_current_stream_capturing():
            space = attention.captured_workspace(torch, plan, q.device)
            at = space.data_ptr()
        else:
            at = attention.workspaces().of(device, stream, plan.workspace_bytes)
        attention.launch(plan, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(),
                         None if lse is None else lse.data_ptr(), at, stream,
                         [each.data_ptr() for each in scales])
    return out


def _sdpa_cuda(q, k, v, causal=False, scale=None):
    return _run(q, k, v, causal, scale, None)


def _sdpa_lse_cuda(q, k, v, causal=False, scale=None):
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    return _run(q, k, v, causal, scale, lse), lse


def _sdpa_e4m3_cuda(q, k, v, q_scale, k_scale, v_scale, causal=False, scale=None, out_scale=None):
    return _run(q, k, v, causal, scale, None, scales_of(q_scale, k_scale, v_scale, out_scale))


def _sdpa_e4m3_lse_cuda(q, k, v, q_scale, k_scale, v_scale, causal=False, scale=None, out_scale=None):
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    return _run(q, k, v, causal, scale, lse, scales_of(q_scale, k_scale, v_scale, out_scale)), lse


def _sdpa_varlen_cuda(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, scale=None):
    return attention.sdpa_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=causal,
                                 scale=scale)


def _sdpa_varlen_lse_cuda(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False, scale=None):
    return attention.sdpa_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=causal,
                                 scale=scale, return_lse=True)


_BACKEND = torch._C.DispatchKey.CUDA


def _refuse_gradients(operator, kernel):
    """Without a kernel of autograd an operator's outputs look as if nothing had to be differentiated.

    kernel: what runs where nothing is between autograd and the GPU, such as a fake tensor or a transform, for to
        dispatch once more takes microseconds
    """
    below = torch._C._after_autograd_keyset
    is_last = {}  # by the bits of a call's keys, for a look at the keys themselves takes 2 us

    takes_scales = operator._schema.arguments[3].name == SCALES[0]

    def autograd(keys, q, k, v, *rest):
        scales = [each for each in rest if isinstance(each, torch.Tensor)] if takes_scales else ()
        attention.refuse_gradients(torch, q, k, v, *scales)
        bits = keys.raw_repr()
        last = is_last.get(bits)
        if last is None:
            last = is_last[bits] = (keys & below).highestPriorityTypeId() == _BACKEND
        if last:
            return kernel(q, k, v, *rest)
        with torch._C._AutoDispatchBelowAutograd():
            return operator.redispatch(keys & below, q, k, v, *rest)

    return autograd


for _name, _kernel in {"sdpa": _sdpa_cuda, "sdpa_lse": _sdpa_lse_cuda, "sdpa_varlen": _sdpa_varlen_cuda,
                       "sdpa_varlen_lse": _sdpa_varlen_lse_cuda, "sdpa_e4m3": _sdpa_e4m3_cuda,
                       "sdpa_e4m3_lse": _sdpa_e4m3_lse_cuda}.items():
    _library.impl(_name, _kernel, "CUDA")
    _library.impl(_name, _refuse_gradients(getattr(torch.ops.warpledger, _name).default, _kernel), "Autograd",
                  with_keyset=True)


def sdpa(q, k, v, *, causal=False, scale=None, return_lse=False, q_scale=None, k_scale=None, v_scale=None,
         out_scale=None):
    """As warpledger.sdpa of (batch, heads, seq, head_dim), as an operator."""
    if isinstance(scale, torch.Tensor):
        scale = attention.scale_of(scale)  # the operator would leave out its gradient
    if scales_of(q_scale, k_scale, v_scale, out_scale):
        operator = torch.ops.warpledger.sdpa_e4m3_lse if return_lse else torch.ops.warpledger.sdpa_e4m3
        return operator.default(q, k, v, q_scale, k_scale, v_scale, causal, scale, out_scale)
    if return_lse:
        return torch.ops.warpledger.sdpa_lse.default(q, k, v, causal, scale)
    return torch.ops.warpledger.sdpa.default(q, k, v, causal, scale)


@functools.cache
def _why_not_on(index):
    try:
        attention.library()
    except (FileNotFoundError, OSError) as error:
        return str(error)
    capability = torch.cuda.get_device_capability(index)
    # On others its kernels were compared with nobody's.
    return "" if capability == (9, 0) else f"the GPU has compute capability {capability}, not (9, 0)"


@torch.compiler.assume_constant_result
def _why_not_here(index):
    """"" where the library runs on that GPU."""
    return _why_not_on(index)


def _is_transformed():
    """Whether a transform of torch.func, or forward-mode differentiation, is around a call."""
    return _functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0


def _is_followed(given):
    """Whether one of those differentiates what is done with the tensor."""
    while _functorch.is_functorch_wrapped_tensor(given):
        if _functorch.is_gradtrackingtensor(given):
            return True
        given = _functorch.get_unwrapped(given)
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(given).tangent is not None


def _is_distributed(given):
    """Whether it is a DTensor: there is none before its module is loaded, which takes a second."""
    return isinstance(given, getattr(sys.modules.get("torch.distributed.tensor"), "DTensor", ()))


def _why_not_now(query, key, value, scale):
    """As why_not(), of all that _known_why_not() can't keep: of states, and of tensors without one shape or address."""
    given = query, key, value
    # Strides of nested tensors are an error.
    if any(each.is_nested for each in given):
        return "a tensor is nested"
    # A compiler traces what each process does with its part.
    if not torch.compiler.is_compiling() and any(map(_is_distributed, given)):
        return "a tensor is distributed"
    if torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") != query.dtype:
        return "autocast asks for another dtype"
    # PyTorch's own reads its value, and refuses a gradient.
    return "scale is a tensor" if isinstance(scale, torch.Tensor) else ""


def why_not(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Why a call is PyTorch's: a clause; "" where it is the library's."""
    given = query, key, value
    if attn_mask is not None or dropout_p != 0:
        return "there is a mask or dropout"
    now = _why_not_now(query, key, value, scale)
    if now:
        return now
    if torch.is_grad_enabled() and any(each.requires_grad for each in given):
        return "a gradient is asked for"
    # A compiler would have to look into these; what it traces is refused by the operator.
    if not torch.compiler.is_compiling() and _is_transformed() and any(map(_is_followed, given)):
        return "a gradient is asked for by a transform, or a forward derivative"
    if not all(each.is_cuda and each.dim() == 4 and each.dtype in _DTYPES for each in given):
        return "a tensor is not of 4 dimensions of float16 or bfloat16 on a GPU"
    if query.dtype != key.dtype or query.dtype != value.dtype or key.shape != value.shape:
        return "dtypes, or the shapes of key and value, differ"
    batch, heads, rows, head_dim = query.shape
    kv_heads, kv_rows = key.shape[1], key.shape[2]
    if head_dim not in HEAD_DIMS or key.shape[3] != head_dim or key.shape[0] != batch:
        return "head_dim is not 64, 128 or 256, or key's shape is another"
    if query.numel() == 0 or key.numel() == 0:
        return "a tensor is empty"
    if any(each > attention.MOST_OF_ONE_SIZE for each in (batch, heads, rows, kv_heads, kv_rows)):
        return "a size is above 2^20"
    if heads != kv_heads and not (enable_gqa and heads % kv_heads == 0):
        return "heads differ"
    if is_causal and rows != kv_rows:
        return "PyTorch aligns this mask to the top left"
    if not attention.is_scale(scale):
        return "scale is not above 0 and finite in float32"
    for each in given:
        steps = zip(each.shape[:3], each.stride())
        if each.stride(3) != 1 or any(size > 1 and (step % 8 != 0 or step < head_dim) for size, step in steps):
            return "strides are no multiples of 16 bytes"
    # Each batch is a launch where neither head strides fold nor rows, but for a query that is cheap to copy.
    folds = all(kv_heads == 1 or each.stride(0) == kv_heads * each.stride(1) for each in (key, value))
    outside = attention.has_rows_outside(query.shape, query.stride())
    rows_fold = (key.stride(0) * value.stride(2) == value.stride(0) * key.stride(2) and
                 all(each.shape[2] == 1 or each.stride(0) % each.stride(2) == 0 for each in given))
    if batch > 1 and (outside or not folds) and not rows_fold and heads * ((rows + 127) // 128) < SMS:
        return "each batch would be a launch, of too little work to fill the GPU"
    return _why_not_here(query.device.index)


def _known_why_not(query, key, value, is_causal, scale, enable_gqa):
    """why_not(), asked once for calls that differ in addresses alone."""
    needs_gradient = torch.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    same = (query.shape, query.stride(), key.shape, key.stride(), value.shape, value.stride(), query.dtype, key.dtype,
            value.dtype, query.device, key.device, value.device, is_causal, scale, enable_gqa, needs_gradient)
    why = _whys.get(same)
    if why is None:
        why = attention.keep(_whys, same, why_not(query, key, value, None, 0.0, is_causal, scale, enable_gqa))
    return why


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    """torch.nn.functional's, by the library where it has a kernel."""
    if attn_mask is not None or dropout_p != 0 or torch.compiler.is_compiling() or _is_transformed():
        why = why_not(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    else:
        why = (_why_not_now(query, key, value, scale) or
               _known_why_not(query, key, value, is_causal, scale, enable_gqa))
    if why:
        return _own(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, is_causal=is_causal, scale=scale,
                    enable_gqa=enable_gqa)
    return torch.ops.warpledger.sdpa.default(query, key, value, is_causal, scale)
