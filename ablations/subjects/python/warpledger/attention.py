# SPDX-License-Identifier: Apache-2.0
"""Attention by libwarpledger_sdpa: arrays of PyTorch, CuPy or whatever else has DLPack, on a GPU of compute
capability 9.0.

    out = warpledger.sdpa(q, k, v, causal=True)

The C header, warpledger_sdpa.h, says what is computed, and which strides it takes. Nothing here needs
PyTorch; outputs are made by the library that q is of.
"""

import contextlib
import ctypes
import functools
import os
import pathlib
import sys
import threading
from typing import NamedTuple

DTYPES = {(2, 16): 0, (4, 16): 1}  # DLPack's code and bits: fp16, bf16
HEAD_DIMS = (64, 128, 256)
CUDA = 2  # kDLCUDA
_HERE = pathlib.Path(__file__).resolve().parent


class Strides(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("batch", "head", "row")]


class Problem(ctypes.Structure):
    """warpledger_sdpa_problem"""
    _fields_ = [("size", ctypes.c_size_t),
                *((name, ctypes.c_int32) for name in ("dtype", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv",
                                                      "head_dim", "causal")),
                ("softmax_scale", ctypes.c_float), *((name, Strides) for name in "qkvo")]


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
    dtype: int  # of DTYPES; -1 for another
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
    """Of the shared library; $WARPLEDGER_SDPA_LIBRARY goes first. FileNotFoundError says what to do."""
    name = "libwarpledger_sdpa.so"
    tree = _HERE.parents[3]
    known = [os.environ.get("WARPLEDGER_SDPA_LIBRARY"), _HERE / "program/lib" / name,
             tree / "build-library/library" / name, tree / "build/library" / name]
    for each in known:
        if each and pathlib.Path(each).is_file():
            return str(each)
    raise FileNotFoundError(
        "there is no libwarpledger_sdpa.so: install the wheel where there is a CUDA toolkit "
        "(WARPLEDGER_WHEEL_CUDA=1 pip install .), or build it (cmake --preset library && cmake --build --preset "
        "library), or name it in WARPLEDGER_SDPA_LIBRARY")


@functools.cache
def library():
    shared = ctypes.CDLL(library_path())
    shared.warpledger_sdpa_last_error.restype = ctypes.c_char_p
    shared.warpledger_sdpa_forward.argtypes = [ctypes.POINTER(Problem), *[ctypes.c_void_p] * 6, ctypes.c_size_t,
                                               ctypes.c_void_p]
    return shared


def _check(status):
    """Of warpledger_sdpa_status."""
    if status:
        kind = {1: ValueError, 2: NotImplementedError}.get(status, RuntimeError)
        raise kind(library().warpledger_sdpa_last_error().decode())


@functools.lru_cache(maxsize=4096)
def plan(dtype, shape, kv_heads, kv_rows, causal, scale, strides, device):
    """On the current device, whose number is in the cache's key.

    shape: (batch, heads, rows, head_dim) of q;  strides: of q, k, v and out, (batch, head, row) each
    """
    batch, heads, rows, head_dim = shape
    given = Problem(ctypes.sizeof(Problem), dtype, batch, heads, kv_heads, rows, kv_rows, head_dim, int(causal),
                    scale or 0.0, *(Strides(*each) for each in strides))
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


def without_gaps(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def tensor_of(array, name, stream):
    """What `array` is, ready for `stream`, which waits for whatever writes it."""
    if hasattr(array, "__dlpack__"):
        if array.__dlpack_device__()[0] != CUDA:
            raise ValueError(f"{name} is not on a GPU")
        # The stream 0 is ambiguous in this protocol; 1 is the legacy default stream. The capsule, which
        # nobody consumes, frees what it holds; the caller's array keeps the memory.
        capsule = array.__dlpack__(stream=stream or 1)
        it = _DLTensor.from_address(_POINTER_OF(capsule, b"dltensor"))
        shape = tuple(it.shape[:it.ndim])
        strides = tuple(it.strides[:it.ndim]) if it.strides else without_gaps(shape)
        return Tensor((it.data or 0) + it.byte_offset, shape, strides,
                      DTYPES.get((it.code, it.bits), -1) if it.lanes == 1 else -1, it.device_id)
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"{name} has neither __dlpack__ nor __cuda_array_interface__: {type(array).__name__}")
    shape, kind = tuple(interface["shape"]), interface["typestr"]
    size = int(kind[2:])
    steps = interface.get("strides")
    strides = tuple(step // size for step in steps) if steps else without_gaps(shape)
    return Tensor(interface["data"][0], shape, strides, 0 if kind[1:] == "f2" else -1, None)


class _Framework:
    """The library of arrays that makes outputs, and knows its current stream."""

    def __init__(self, array):
        name = type(array).__module__.partition(".")[0]
        self.name = name if name in ("torch", "cupy") else None
        self.module = sys.modules.get(name) if self.name else None

    def stream(self, array):
        if self.name == "torch":
            return self.module.cuda.current_stream(array.device).cuda_stream
        return self.module.cuda.get_current_stream().ptr if self.name == "cupy" else 0

    def empty(self, shape, like, dtype=None):
        if self.name == "torch":
            return self.module.empty(shape, dtype=getattr(self.module, dtype or "") if dtype else like.dtype,
                                     device=like.device)
        if self.name == "cupy":
            return self.module.empty(shape, dtype=dtype or like.dtype)
        raise TypeError("out must be given: only arrays of PyTorch and CuPy are made here")


# --- Memory that kernels work with -----------------------------------------------

class _Workspaces:
    """Device memory, 0 once, for each stream of each device, from the driver: no framework's pool may take it
    back, and captured graphs of PyTorch count what is in theirs. It is never freed."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._lock = threading.Lock()
        self._kept = {}  # (device, stream): (pointer, bytes)
        self._contexts = {}

    def call(self, name, *arguments):
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")

    def device(self, ordinal):
        """A context in which it is the current one, as the CUDA runtime sees it."""
        current = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(current))
        wanted = self._contexts.get(ordinal)
        return _AS_IT_IS if wanted and current.value == wanted else self._entered(ordinal)

    @contextlib.contextmanager
    def _entered(self, ordinal):
        if ordinal not in self._contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self.call("cuInit", 0)
            self.call("cuDeviceGet", ctypes.byref(device), ordinal)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._contexts[ordinal] = context.value
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self._contexts[ordinal]))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def is_capturing(self, stream):
        status = ctypes.c_int()
        self.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def of(self, device, stream, size):
        """At least so many bytes. The device is the current one."""
        with self._lock:
            pointer, have = self._kept.get((device, stream), (0, 0))
            if have < size:
                pointer = self._allocate(size)
                self._kept[device, stream] = pointer, size  # the former one may be in use yet
            return pointer

    @contextlib.contextmanager
    def beside_captures(self):
        """Calls that a capture of this or another thread would refuse, but need not."""
        mode = ctypes.c_int(2)  # relaxed
        self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        try:
            yield
        finally:
            self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def _allocate(self, size):
        pointer, own = ctypes.c_uint64(), ctypes.c_void_p()
        with self.beside_captures():
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            self.call("cuStreamCreate", ctypes.byref(own), 1)  # waits for no other stream
            self.call("cuMemsetD8Async", pointer, ctypes.c_ubyte(0), ctypes.c_size_t(size), own)
            self.call("cuStreamSynchronize", own)
            self.call("cuStreamDestroy_v2", own)
        return pointer.value


_AS_IT_IS = contextlib.nullcontext()


@functools.cache
def workspaces():
    return _Workspaces()


# --- Calls ----------------------------------------------------------------------

def by_heads(values, layout):
    """(batch, head, row, column) of what is in the order of `layout`."""
    return (values[0], values[2], values[1], values[3]) if layout == "bshd" else tuple(values)


def has_rows_outside(shape, strides):
    """Whether a row of all heads is before the next row, as in (batch, seq, heads, head_dim)."""
    return shape[1] > 1 and shape[2] > 1 and strides[2] > strides[1]


def keeps_rows_outside(shape, strides, kv_rows, causal):
    """Whether the output is laid out so: as q is, where a kernel stores it so."""
    return has_rows_outside(shape, strides) and shape[3] != 256 and not (causal and shape[2] > kv_rows)


def check_inputs(q, k, v):
    """ValueError where shapes and dtypes, of tensors by heads, don't go together."""
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
    if q.dtype < 0:
        raise ValueError("q, k and v must be float16 or bfloat16")
    for name, it in ("q", q), ("k", k), ("v", v):
        if it.strides[3] != 1 and it.shape[3] != 1:
            raise ValueError(f"the elements of a row of {name} must lie side by side: its last stride is "
                             f"{it.strides[3]}")


def _by_heads(tensor, name, layout):
    if len(tensor.shape) != 4:
        raise ValueError(f"{name} has {len(tensor.shape)} dimensions, not 4 ({layout})")
    return tensor._replace(shape=by_heads(tensor.shape, layout), strides=by_heads(tensor.strides, layout))


def plan_of(q, k, v, o, causal, scale):
    """Of tensors by heads; on the current device."""
    return plan(q.dtype, q.shape, k.shape[1], k.shape[2], causal, scale,
                tuple(each.strides[:3] for each in (q, k, v, o)), q.device)


def launch(made, q, k, v, o, lse, workspace, stream):
    """All but `made` are addresses."""
    _check(library().warpledger_sdpa_forward(made.given, q, k, v, o, lse, workspace, made.workspace_bytes, stream))


def sdpa(q, k, v, *, causal=False, scale=None, return_lse=False, out=None, layout="bhsd"):
    """softmax(scale q k^T + mask) v, on the current stream of q's library.

    q: (batch, heads, seq, head_dim), float16 or bfloat16, head_dim 64, 128 or 256; layout="bshd" for
        (batch, seq, heads, head_dim), here and in all others
    k, v: the same with their own seq, and heads of which q's are a multiple
    causal: query i sees keys j <= i + seq_kv - seq_q
    scale: above 0; None for 1 / sqrt(head_dim)
    out: where the result goes; else it is made, with its rows and heads in q's order where a kernel stores
        them so
    Returns out, or (out, lse) with lse (batch, heads, seq) float32, log(sum(exp(scale q k))).

    ValueError: an argument makes no sense. NotImplementedError: it does, but no kernel does it on this GPU.
    """
    if layout not in ("bhsd", "bshd"):
        raise ValueError(f"layout is {layout!r}; it must be 'bhsd' or 'bshd'")
    if scale is not None and not scale > 0:
        raise ValueError(f"scale is {scale}; it must be above 0")
    framework = _Framework(q)
    stream = framework.stream(q)
    q_, k_, v_ = (_by_heads(tensor_of(array, name, stream), name, layout)
                  for name, array in (("q", q), ("k", k), ("v", v)))
    check_inputs(q_, k_, v_)
    batch, heads, rows, head_dim = q_.shape
    if out is None:
        if keeps_rows_outside(q_.shape, q_.strides, k_.shape[2], causal):
            by_rows = framework.empty((batch, rows, heads, head_dim), q)
            out = by_rows if layout == "bshd" else by_rows.swapaxes(1, 2)
        else:
            out = framework.empty(q_.shape, q)
            out = out.swapaxes(1, 2) if layout == "bshd" else out
    o_ = _by_heads(tensor_of(out, "out", stream), "out", layout)
    if o_.shape != q_.shape or o_.dtype != q_.dtype or o_.device != q_.device or o_.strides[3] != 1:
        raise ValueError(f"out must be as q: {q_.shape} (batch, heads, seq, head_dim), of its dtype, on its GPU, "
                         "with the elements of a row side by side")
    lse = framework.empty((batch, heads, rows), q, "float32") if return_lse else None
    lse_at = _address(lse) if return_lse else None
    device = q_.device if q_.device is not None else 0
    with workspaces().device(device):
        made = plan_of(q_, k_, v_, o_, bool(causal), scale)
        if workspaces().is_capturing(stream):
            if framework.name != "torch":
                raise RuntimeError("calls are captured into CUDA graphs for PyTorch alone")
            memory = captured_workspace(framework.module, made, q.device)
            workspace = memory.data_ptr()
        else:
            workspace = workspaces().of(device, stream, made.workspace_bytes)
        launch(made, q_.pointer, k_.pointer, v_.pointer, o_.pointer, lse_at, workspace, stream)
    return (out, lse) if return_lse else out


def captured_workspace(torch, made, device):
    """The graph's own, from its pool, so that graphs that run at the same time share none."""
    memory = torch.empty(made.workspace_bytes, dtype=torch.uint8, device=device)
    if made.zeroed_bytes:
        memory[:made.zeroed_bytes].zero_()
    return memory


def _address(array):
    return array.data_ptr() if hasattr(array, "data_ptr") else array.data.ptr
