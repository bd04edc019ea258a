# SPDX-License-Identifier: Apache-2.0
"""Attention by libwarpledger_sdpa: arrays of PyTorch, CuPy or whatever else has DLPack, on a GPU of compute
capability 8.0 or newer, and in E4M3 of 9.0.

    out = warpledger.sdpa(q, k, v, causal=True)
    out = warpledger.sdpa_varlen(q, k, v, cu_seqlens, cu_seqlens, longest, longest, causal=True)
    out = warpledger.sdpa(q, k, v, q_scale=a, k_scale=b, v_scale=c)  # E4M3; with out_scale=d out is, too

The C header, warpledger_sdpa.h, says what is computed, and which strides it takes. Nothing here needs
PyTorch; outputs are made by the library that q is of.
"""

import ctypes
import functools
import os
import pathlib
import sys
import threading
from typing import NamedTuple

from . import program
from .dtypes import (BF16, DTYPES, E4M3, FP16, INT32, SCALES, TYPESTRS, as_e4m3, check_out_scale, dtype_of_torch,
                     out_dtype, scales_of, scopes_of, without_gaps)
from .workspaces import AS_IT_IS, workspaces

HEAD_DIMS = (64, 128, 256)
MOST_OF_ONE_SIZE = 1 << 20
CUDA, CUDA_MANAGED = 2, 13  # kDLCUDA, kDLCUDAManaged
LEGACY = 1  # CU_STREAM_LEGACY
_HERE = pathlib.Path(__file__).resolve().parent


class Strides(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "head", "row")]


class Problem(ctypes.Structure):
    """warpledger_sdpa_problem"""
    _fields_ = [("size", ctypes.c_size_t),
                *((name, ctypes.c_int32) for name in ("dtype", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv",
                                                      "head_dim", "causal")),
                ("softmax_scale", ctypes.c_float), *((name, Strides) for name in "qkvo"),
                ("total_q", ctypes.c_int64), ("total_kv", ctypes.c_int64),
                ("q_scale_scope", ctypes.c_int32), ("kv_scale_scope", ctypes.c_int32), ("o_dtype", ctypes.c_int32),
                ("reserved", ctypes.c_int32)]


class Choice(ctypes.Structure):
    """warpledger_sdpa_choice"""
    _fields_ = [("size", ctypes.c_size_t), ("kernel", ctypes.c_char_p), ("expected_us", ctypes.c_float),
                ("workspace_bytes", ctypes.c_size_t), ("launches", ctypes.c_int32),
                ("zeroed_bytes", ctypes.c_size_t), ("explanation", ctypes.c_char_p)]


class Tensor(NamedTuple):
    """Device memory. Strides are in elements."""
    pointer: int
    shape: tuple
    strides: tuple
    dtype: int  # of dtypes.DTYPES; -1 for another
    device: int


class Plan(NamedTuple):
    """What describe() says of a problem."""
    given: object  # a pointer to the Problem
    kernel: str
    expected_us: float
    workspace_bytes: int
    zeroed_bytes: int
    launches: int
    explanation: str


# --- The library ----------------------------------------------------------------

def library_path():
    """Of the shared library: $WARPLEDGER_SDPA_LIBRARY where it is set. FileNotFoundError says what to do."""
    named = os.environ.get("WARPLEDGER_SDPA_LIBRARY")
    if named:
        # No other library in its place: the caller would take its results for this one's. The loader looks for a name
        # without a folder elsewhere.
        if not pathlib.Path(named).is_file():
            raise FileNotFoundError(f"WARPLEDGER_SDPA_LIBRARY is {named!r}, and there is no such file")
        return str(pathlib.Path(named).absolute())
    name = "libwarpledger_sdpa.so"
    known = [_HERE / "program/lib" / name, *(tree / build / "library" / name for tree in program.checkouts(_HERE)
                                             for build in ("build-library", "build"))]
    for each in known:
        if each.is_file():
            return str(each)
    raise FileNotFoundError(
        "there is no libwarpledger_sdpa.so: install the wheel where there is a CUDA toolkit "
        "(WARPLEDGER_WHEEL_CUDA=1 pip install .), or build it (cmake --preset library && cmake --build --preset "
        "library), or name it in WARPLEDGER_SDPA_LIBRARY")


@functools.cache
def library():
    shared = ctypes.CDLL(library_path())
    shared.warpledger_sdpa_last_error.restype = ctypes.c_char_p
    for name, pointers in ("forward", 6), ("forward_varlen", 8), ("forward_e4m3", 9), ("forward_e4m3_output", 10):
        if not hasattr(shared, f"warpledger_sdpa_{name}"):  # an earlier library
            continue
        getattr(shared, f"warpledger_sdpa_{name}").argtypes = [
            ctypes.POINTER(Problem), *[ctypes.c_void_p] * pointers, ctypes.c_size_t, ctypes.c_void_p]
    return shared


def _check(status):
    """Of warpledger_sdpa_status."""
    if status:
        kind = {1: ValueError, 2: NotImplementedError}.get(status, RuntimeError)
        raise kind(library().warpledger_sdpa_last_error().decode())


@functools.lru_cache(maxsize=4096)
def plan(dtype, shape, kv_heads, kv_rows, causal, scale, strides, device, totals=(0, 0), scopes=(0, 0),
         o_dtype=0):
    """On the current device, whose number is in the cache's key.

    shape: (batch, heads, rows, head_dim) of q;  strides: of q, k, v and out, (batch, head, row) each
    totals: rows of packed q, and of k and v; then shape and kv_rows have the largest lengths
    scopes: what shares a scale, of q, and of k and v
    o_dtype: E4M3 where out is, else 0
    """
    batch, heads, rows, head_dim = shape
    # An earlier library takes no structure that is longer than its own.
    size = ctypes.sizeof(Problem) if o_dtype else Problem.o_dtype.offset
    given = Problem(size, dtype, batch, heads, kv_heads, rows, kv_rows, head_dim, int(causal),
                    scale or 0.0, *(Strides(*each) for each in strides), *totals, *scopes, o_dtype)
    choice = Choice(ctypes.sizeof(Choice))
    with workspaces().beside_captures():  # it may load a kernel
        _check(library().warpledger_sdpa_describe(ctypes.byref(given), ctypes.byref(choice)))
    return Plan(ctypes.pointer(given), choice.kernel.decode(), choice.expected_us, choice.workspace_bytes,
                choice.zeroed_bytes, choice.launches, choice.explanation.decode())


# --- Arrays ---------------------------------------------------------------------

class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_POINTER_OF = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER_OF.restype, _POINTER_OF.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def refuse_gradients(torch, *tensors):
    """RuntimeError where a backward, or forward-mode differentiation, is to follow from them."""
    if torch.is_grad_enabled():
        for each in tensors:
            if each.requires_grad:
                raise RuntimeError("a tensor requires a gradient, and there is no backward: detach it")
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(each).tangent is not None for each in tensors):
        raise RuntimeError("a tensor has a tangent, and there is no forward derivative: detach it")


def tensor_of(array, name, stream, of_torch=True):
    """What `array` is, ready for `stream`, which waits for whatever writes it.

    of_torch: whether the stream is PyTorch's current one
    """
    torch = sys.modules.get("torch") if of_torch else None
    if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
        # As DLPack would say it, which takes 25 us to. `stream` is PyTorch's current one.
        refuse_gradients(torch, array)
        return Tensor(array.data_ptr(), tuple(array.shape), array.stride(), dtype_of_torch(torch, array.dtype),
                      array.device.index)
    if hasattr(array, "__dlpack__"):
        kind = array.__dlpack_device__()[0]
        if kind not in (CUDA, CUDA_MANAGED):
            raise ValueError(f"{name} is not on a GPU")
        # The stream 0 is ambiguous in this protocol; 1 is the legacy default stream. The capsule, which
        # nobody consumes, frees what it holds; the caller's array keeps the memory.
        capsule = array.__dlpack__(stream=stream or 1)
        it = _DLTensor.from_address(_POINTER_OF(capsule, b"dltensor"))
        shape = tuple(it.shape[:it.ndim])
        strides = tuple(it.strides[:it.ndim]) if it.strides else without_gaps(shape)
        pointer = (it.data or 0) + it.byte_offset
        # Managed memory is no device's in this protocol: its number there is 0 on each of them.
        device = workspaces().device_of(pointer) if kind == CUDA_MANAGED and it.data else it.device_id
        return Tensor(pointer, shape, strides, DTYPES.get((it.code, it.bits), -1) if it.lanes == 1 else -1, device)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} has neither __dlpack__ nor __cuda_array_interface__: {type(array).__name__}")
    shape, kind = tuple(interface["shape"]), interface["typestr"]
    size = int(kind[2:])
    steps = interface.get("strides")
    strides = tuple(step // size for step in steps) if steps else without_gaps(shape)
    pointer = interface["data"][0]
    if not pointer:
        raise ValueError(f"{name} has no memory: its shape is {shape}")
    device = workspaces().device_of(pointer)
    writer = interface.get("stream")
    if writer is not None and (writer or LEGACY) != (stream or LEGACY):
        with workspaces().device(device):
            workspaces().wait(stream, writer)
    return Tensor(pointer, shape, strides, TYPESTRS.get(kind[1:], -1), device)


class _Framework:
    """The library of arrays that makes outputs, and knows its current stream."""

    def __init__(self, array):
        self.name = self.module = None
        for name, kind in ("torch", "Tensor"), ("cupy", "ndarray"):
            module = sys.modules.get(name)
            # Not by the module of its type: subclasses are of others, and on the same streams.
            if isinstance(array, getattr(module, kind, ())):
                self.name, self.module = name, module

    def stream(self, array):
        if self.name == "torch":
            return self.module.cuda.current_stream(array.device).cuda_stream
        if self.name == "cupy":  # each of its devices has a current one
            with array.device:
                return self.module.cuda.get_current_stream().ptr
        return 0

    def empty(self, shape, like, dtype=None):
        if self.name == "torch":
            return self.module.empty(shape, dtype=getattr(self.module, dtype or "") if dtype else like.dtype,
                                     device=like.device)
        if self.name == "cupy":
            with like.device:
                return self.module.empty(shape, dtype=dtype or like.dtype)
        raise TypeError("out must be given: only arrays of PyTorch and CuPy are made here")

    def empty_lse(self, shape, like):
        if self.name is None:
            raise TypeError("return_lse must be False: an LSE is made only for arrays of PyTorch and CuPy")
        return self.empty(shape, like, "float32")


# --- Calls ----------------------------------------------------------------------

def by_heads(values, layout):
    """(batch, head, row, column) of what is in the order of `layout`."""
    return (values[0], values[2], values[1], values[3]) if layout == "bshd" else tuple(values)


def has_rows_outside(shape, strides):
    """Whether a row of all heads is before the next row, as in (batch, seq, heads, head_dim)."""
    return shape[1] > 1 and shape[2] > 1 and strides[2] > strides[1]


def keeps_rows_outside(shape, strides, kv_rows, causal, in_e4m3=False):
    """Whether the output is laid out so: as q is, where a kernel stores it so."""
    stores = in_e4m3 or (shape[3] != 256 and not (causal and shape[2] > kv_rows))
    return stores and has_rows_outside(shape, strides)


def is_scale(scale):
    """Whether it is above 0 and finite as the library's float. In comparisons alone, which a compiler traces."""
    return scale is None or 2.0 ** -150 < scale < (2 - 2.0 ** -24) * 2.0 ** 127


def scale_of(given):
    """As a number. A tensor's value may change, while plans are kept by what they are asked for."""
    torch = sys.modules.get("torch")
    if isinstance(given, getattr(torch, "Tensor", ())):
        refuse_gradients(torch, given)
    return None if given is None else float(given)


def check_scale(scale):
    if not is_scale(scale):
        raise ValueError(f"scale is {scale}; it must be above 0 and finite, in float32")


def check_inputs(q, k, v, scaled=False):
    """ValueError where shapes and dtypes, of tensors by heads, don't go together.

    scaled: whether there are scales
    """
    for name, it in ("k", k), ("v", v):
        if it.dtype != q.dtype:
            raise ValueError(f"{name} has another dtype than q")
        if it.device != q.device:
            raise ValueError(f"{name} is on another GPU than q")
        if (it.shape[0], it.shape[3]) != (q.shape[0], q.shape[3]):
            raise ValueError(f"{name} has batch {it.shape[0]} and head_dim {it.shape[3]}, q {q.shape[0]} and "
                             f"{q.shape[3]}")
    if k.shape != v.shape:
        raise ValueError(f"k has shape {k.shape} and v {v.shape}: (batch, heads, seq, head_dim)")
    if scaled and q.dtype != E4M3:
        raise ValueError("with scales q, k and v must be float8_e4m3fn, or uint8 and dtype='e4m3'")
    if not scaled and q.dtype == E4M3:
        raise ValueError("q, k and v are E4M3 without scales: sdpa() takes them as q_scale, k_scale and v_scale")
    if q.dtype not in (FP16, BF16, E4M3):
        raise ValueError("q, k and v must be float16 or bfloat16, or with scales E4M3")
    for name, it in ("q", q), ("k", k), ("v", v):
        if it.strides[3] != 1 and it.shape[3] != 1:
            raise ValueError(f"the elements of a row of {name} must lie side by side: its last stride is "
                             f"{it.strides[3]}")


def check_out(o, q, has_scale=False):
    """The same of what is written, and perhaps has a scale."""
    if (o.shape != q.shape or o.dtype != out_dtype(q.dtype, has_scale) or o.device != q.device or
            o.strides[3] != 1):
        its = "float16" if q.dtype == E4M3 and not has_scale else "of its dtype"
        raise ValueError(f"out must be as q: {q.shape} (batch, heads, seq, head_dim), {its}, on its GPU, "
                         "with the elements of a row side by side")


def check_cu_seqlens(cu_seqlens_q, cu_seqlens_k, q):
    """ValueError unless each is (batch + 1) int32, beside q."""
    for name, it in ("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k):
        if it.dtype != INT32 or it.device != q.device or len(it.shape) != 1 or it.shape[0] < 2 or it.strides[0] != 1:
            raise ValueError(f"{name} must be (batch + 1) int32 side by side, on q's GPU")
    if cu_seqlens_q.shape != cu_seqlens_k.shape:
        raise ValueError(f"cu_seqlens_q has {cu_seqlens_q.shape[0]} values and cu_seqlens_k {cu_seqlens_k.shape[0]}")


def _by_heads(tensor, name, layout):
    if len(tensor.shape) != 4:
        raise ValueError(f"{name} has {len(tensor.shape)} dimensions, not 4 ({layout})")
    return tensor._replace(shape=by_heads(tensor.shape, layout), strides=by_heads(tensor.strides, layout))


def _strides_of(**tensors):
    """Of the library's Problem, which takes strides of 0, 0, 0 for a tensor without gaps. One row that stands for
    all others has them too: ValueError."""
    for name, each in tensors.items():
        if not any(each.strides[:3]) and max(each.shape[:3]) > 1:
            raise ValueError(f"{name} is one row expanded over all others, without memory of their own: copy it first")
    return tuple(each.strides[:3] for each in tensors.values())


def plan_of(q, k, v, o, causal, scale, scopes=(0, 0)):
    """Of tensors by heads; on the current device."""
    return plan(q.dtype, q.shape, k.shape[1], k.shape[2], causal, scale, _strides_of(q=q, k=k, v=v, out=o), q.device,
                scopes=scopes, o_dtype=E4M3 if o.dtype == E4M3 else 0)


# One call may be several launches that hand results on in the workspace: a plan and the kernel, or parts and their
# join. ctypes lets other threads run meanwhile, and threads on one stream share its workspace: their launches must
# not lie between these.
_enqueuing = threading.Lock()


def launch(made, q, k, v, o, lse, workspace, stream, scales=()):
    """All but `made` are addresses. scales: those of q, k and v, in E4M3, and of out, if it is, too"""
    its = library()
    with _enqueuing:
        if not scales:
            status = its.warpledger_sdpa_forward(made.given, q, k, v, o, lse, workspace, made.workspace_bytes, stream)
        else:
            forward = its.warpledger_sdpa_forward_e4m3 if len(scales) == 3 else its.warpledger_sdpa_forward_e4m3_output
            status = forward(made.given, q, k, v, *scales, o, lse, workspace, made.workspace_bytes, stream)
    _check(status)


def sdpa(q, k, v, *, causal=False, scale=None, return_lse=False, out=None, layout="bhsd", dtype=None, q_scale=None,
         k_scale=None, v_scale=None, out_scale=None):
    """softmax(scale q k^T + mask) v, on the current stream of q's library.

    q: (batch, heads, seq, head_dim), float16 or bfloat16, head_dim 64, 128 or 256; layout="bshd" for
        (batch, seq, heads, head_dim), here and in all others
    k, v: the same with their own seq, and heads of which q's are a multiple
    causal: query i sees keys j <= i + seq_kv - seq_q
    scale: above 0; None for 1 / sqrt(head_dim)
    out: where the result goes; else it is made, with its rows and heads in q's order where a kernel stores
        them so
    dtype: "e4m3" where q, k and v are bytes of E4M3 (uint8); float8_e4m3fn says it itself
    q_scale, k_scale, v_scale: with E4M3: what its numbers are multiplied by, float32 on the GPU. One element
        for all values, or (batch, heads), in each layout; k_scale and v_scale also
        (batch, heads, ceil(seq / 128)), for blocks of keys. out is float16 then, unless there is an out_scale
    out_scale: one float32 on the GPU, with E4M3: out is E4M3 too (q's dtype), and the result is out times it.
        Values beyond 448 times it in magnitude become that. Not for blocks of keys.
    Returns out, or (out, lse) with lse (batch, heads, seq) float32, log(sum(exp(scale q k))).

    ValueError: an argument makes no sense. NotImplementedError: it does, but no kernel does it on this GPU.
    """
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout is {layout!r}; it must be 'bhsd' or 'bshd'")
    scale = scale_of(scale)
    check_scale(scale)
    if dtype not in (None, "e4m3"):
        raise ValueError(f"dtype is {dtype!r}; it must be 'e4m3' or None")
    scales = scales_of(q_scale, k_scale, v_scale, out_scale)
    in_e4m3 = out_scale is not None
    torch = sys.modules.get("torch")
    if torch is not None and all(isinstance(each, torch.Tensor) and each.is_cuda for each in (q, k, v, *scales)) and (
            out is None or isinstance(out, torch.Tensor)):
        return _sdpa_of_torch(torch, q, k, v, bool(causal), scale, return_lse, out, layout, dtype, scales)
    framework = _Framework(q)
    stream = framework.stream(q)
    of_torch = framework.name == "torch"
    q_, k_, v_ = (as_e4m3(_by_heads(tensor_of(array, name, stream, of_torch), name, layout), dtype)
                  for name, array in (("q", q), ("k", k), ("v", v)))
    check_inputs(q_, k_, v_, bool(scales))
    scales_ = [tensor_of(array, name, stream, of_torch) for name, array in zip((*SCALES, "out_scale"), scales)]
    scopes = scopes_of(q_, k_, scales_) if scales else (0, 0)
    if in_e4m3:
        check_out_scale(scales_[3], q_)
    batch, heads, rows, head_dim = q_.shape
    kind = "float16" if scales and not in_e4m3 else None
    if out is None and keeps_rows_outside(q_.shape, q_.strides, k_.shape[2], causal, in_e4m3):
        out = framework.empty((batch, rows, heads, head_dim), q, kind)
        out = out if layout == "bshd" else out.swapaxes(1, 2)
    elif out is None:
        out = framework.empty(q_.shape, q, kind)
        out = out.swapaxes(1, 2) if layout == "bshd" else out
    o_ = as_e4m3(_by_heads(tensor_of(out, "out", stream, of_torch), "out", layout), dtype)
    check_out(o_, q_, in_e4m3)
    lse = framework.empty_lse(q_.shape[:3], q) if return_lse else None
    with workspaces().device(q_.device):
        made = plan_of(q_, k_, v_, o_, bool(causal), scale, scopes)
        workspace, _kept = _workspace(framework, made, q, q_.device, stream)
        launch(made, q_.pointer, k_.pointer, v_.pointer, o_.pointer, _address(lse) if return_lse else None, workspace,
               stream, [each.pointer for each in scales_])
    return (out, lse) if return_lse else out


# By all that a call of PyTorch's tensors is but addresses: (plan, shape and strides of out, shape of lse).
_known = {}
MOST_KEPT = 65536


def keep(where, key, value):
    if len(where) >= MOST_KEPT:
        where.clear()
    where[key] = value
    return value


def _sdpa_of_torch(torch, q, k, v, causal, scale, return_lse, out, layout, dtype=None, scales=()):
    refuse_gradients(torch, q, k, v, *scales, *(() if out is None else (out,)))
    key = (q.shape, q.stride(), k.shape, k.stride(), v.shape, v.stride(), q.dtype, k.dtype, v.dtype, q.device, k.device,
           v.device, causal, scale, layout, out if out is None else (out.shape, out.stride(), out.dtype, out.device),
           dtype, *((each.shape, each.stride(), each.dtype, each.device) for each in scales))
    device = q.get_device()
    with device_of_torch(torch, device):
        known = _known.get(key)
        if known is None:
            q_, k_, v_ = (as_e4m3(_by_heads(tensor_of(array, name, 0), name, layout), dtype)
                          for name, array in (("q", q), ("k", k), ("v", v)))
            check_inputs(q_, k_, v_, bool(scales))
            scopes = scopes_of(q_, k_, [tensor_of(*each, 0) for each in zip(scales, SCALES)]) if scales else (0, 0)
            in_e4m3 = len(scales) == 4
            if in_e4m3:
                check_out_scale(tensor_of(scales[3], "out_scale", 0), q_)
            batch, heads, rows, head_dim = q_.shape
            by_rows = keeps_rows_outside(q_.shape, q_.strides, k_.shape[2], causal, in_e4m3)
            strides = ((rows * heads * head_dim, head_dim, heads * head_dim, 1) if by_rows else
                       without_gaps(q_.shape))
            o_ = (q_._replace(strides=strides, dtype=out_dtype(q_.dtype, in_e4m3)) if out is None else
                  as_e4m3(_by_heads(tensor_of(out, "out", 0), "out", layout), dtype))
            check_out(o_, q_, in_e4m3)
            known = keep(_known, key, (plan_of(q_, k_, v_, o_, causal, scale, scopes), by_heads(o_.shape, layout),
                                       by_heads(o_.strides, layout), q_.shape[:3]))
        made, shape, strides, lse_shape = known
        if out is None:
            out = q.new_empty_strided(shape, strides, dtype=torch.float16 if len(scales) == 3 else q.dtype)
        lse = q.new_empty(lse_shape, dtype=torch.float32) if return_lse else None
        stream = stream_of_torch(torch, device)
        if torch.cuda.is_current_stream_capturing():
            kept = captured_workspace(torch, made, q.device)
            workspace = kept.data_ptr()
        else:
            workspace = workspaces().of(device, stream, made.workspace_bytes)
        launch(made, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), lse.data_ptr() if return_lse else None,
               workspace, stream, [each.data_ptr() for each in scales])
    return (out, lse) if return_lse else out


def device_of_torch(torch, device):
    """A context in which it is the current one."""
    return AS_IT_IS if torch.cuda.current_device() == device else workspaces().device(device)


def stream_of_torch(torch, device):
    """PyTorch's current one, without an object of it, which takes longer than all else here."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return raw(device) if raw else torch.cuda.current_stream(device).cuda_stream


def sdpa_varlen(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *, causal=False, scale=None,
                return_lse=False, out=None):
    """The same of packed sequences, each with a length of its own.

    q: (total_q, heads, head_dim);  k, v: (total_k, heads, head_dim)
    cu_seqlens_q, cu_seqlens_k: (batch + 1) int32 on the GPU: sequence i has the rows from cu_seqlens[i] to
        before cu_seqlens[i + 1]. A captured graph follows what is written there.
    max_seqlen_q, max_seqlen_k: the largest lengths, or about: no kernel reads them so far
    Returns out as q, or (out, lse) with lse (heads, total_q) float32. Rows of no sequence are not written.
    """
    scale = scale_of(scale)
    check_scale(scale)
    framework = _Framework(q)
    stream = framework.stream(q)
    of_torch = framework.name == "torch"
    q_, k_, v_ = (packed_by_heads(tensor_of(array, name, stream, of_torch), name)
                  for name, array in (("q", q), ("k", k), ("v", v)))
    cu_q, cu_k = (tensor_of(array, name, stream, of_torch)
                  for name, array in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)))
    check_inputs(q_, k_, v_)
    check_cu_seqlens(cu_q, cu_k, q_)
    out = framework.empty((q_.shape[2], q_.shape[1], q_.shape[3]), q) if out is None else out
    o_ = packed_by_heads(tensor_of(out, "out", stream, of_torch), "out")
    check_out(o_, q_)
    lse = framework.empty_lse((q_.shape[1], q_.shape[2]), q) if return_lse else None
    with workspaces().device(q_.device):
        made = plan_of_packed(q_, k_, v_, o_, cu_q.shape[0] - 1, (int(max_seqlen_q), int(max_seqlen_k)), bool(causal),
                              scale)
        workspace, _kept = _workspace(framework, made, q, q_.device, stream)
        launch_packed(made, q_.pointer, k_.pointer, v_.pointer, o_.pointer, _address(lse) if return_lse else None,
                      cu_q.pointer, cu_k.pointer, workspace, stream)
    return (out, lse) if return_lse else out


def packed_by_heads(tensor, name):
    """(total, heads, head_dim) as one batch of tensors by heads."""
    if len(tensor.shape) != 3:
        raise ValueError(f"{name} has {len(tensor.shape)} dimensions, not 3 (total, heads, head_dim)")
    (rows, heads, head_dim), (row, head, column) = tensor.shape, tensor.strides
    return tensor._replace(shape=(1, heads, rows, head_dim), strides=(0, head, row, column))


def plan_of_packed(q, k, v, o, batch, longest, causal, scale):
    """Of packed tensors by heads; on the current device."""
    if not q.shape[2] or not k.shape[2]:  # by 0 rows the library knows what is not packed
        raise ValueError("packed q, k and v must have rows")
    # No kernel reads the largest lengths; what 32 bits don't hold would become another number.
    rows, kv_rows = (min(max(each, 1), MOST_OF_ONE_SIZE) for each in longest)
    shape = (batch, q.shape[1], rows, q.shape[3])
    return plan(q.dtype, shape, k.shape[1], kv_rows, causal, scale, _strides_of(q=q, k=k, v=v, out=o),
                q.device, (q.shape[2], k.shape[2]))


def launch_packed(made, q, k, v, o, lse, cu_seqlens_q, cu_seqlens_k, workspace, stream):
    """All but `made` are addresses."""
    its = library()
    with _enqueuing:
        status = its.warpledger_sdpa_forward_varlen(made.given, q, k, v, o, lse, cu_seqlens_q, cu_seqlens_k, workspace,
                                                    made.workspace_bytes, stream)
    _check(status)


def _workspace(framework, made, q, device, stream):
    """Its address, and what to keep until the call is on the stream."""
    if not workspaces().is_capturing(stream):
        return workspaces().of(device, stream, made.workspace_bytes), None
    if framework.name != "torch":
        raise RuntimeError("calls are captured into CUDA graphs for PyTorch alone")
    memory = captured_workspace(framework.module, made, q.device)
    return memory.data_ptr(), memory


def captured_workspace(torch, made, device):
    """The graph's own, from its pool, so that graphs that run at the same time share none."""
    memory = torch.empty(made.workspace_bytes, dtype=torch.uint8, device=device)
    if made.zeroed_bytes:
        memory[:made.zeroed_bytes].zero_()
    return memory


def _address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr
