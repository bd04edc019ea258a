# SPDX-License-Identifier: Apache-2.0
"""What tests of warpledger.sdpa share: stand-ins for arrays, for libwarpledger_sdpa and for the driver."""

import contextlib
import ctypes
import importlib.util
import types
import unittest
from unittest import mock

import python_fixture  # noqa: F401  finds the package

from warpledger import attention
from warpledger.workspaces import Workspaces

TORCH = importlib.util.find_spec("torch") is not None


class Stands:
    """An array of a GPU, as __cuda_array_interface__ tells it."""

    def __init__(self, shape, strides=None, kind="<f2", pointer=4096, stream=None):
        self.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": kind,
                                         "data": (pointer, False), "version": 3, "stream": stream}


class Exported:
    """The same by DLPack."""

    def __init__(self, shape, strides=None, code=4, device=2, offset=0, bits=16):
        self.kind = device
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.steps = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.it = attention._DLTensor(4096, device, 3, len(shape), code, bits, 1, self.sizes, self.steps, offset)
        self.streams = []

    def __dlpack_device__(self):
        return self.kind, 3

    def __dlpack__(self, stream):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.it), b"dltensor", None)


class Library:
    """libwarpledger_sdpa: keeps the problems that it was called with."""

    def __init__(self):
        self.problems = []
        self.streams = []
        self.scales = []  # addresses

    def warpledger_sdpa_describe(self, problem, choice):
        it = choice._obj
        it.kernel, it.explanation, it.workspace_bytes, it.launches = b"stand-in", b"", 4096, 1
        return 0

    def warpledger_sdpa_forward(self, problem, *rest):
        self.problems.append(problem[0])
        self.streams.append(rest[-1])
        return 0

    warpledger_sdpa_forward_varlen = warpledger_sdpa_forward

    def warpledger_sdpa_forward_e4m3(self, problem, q, k, v, *rest):
        self.scales.append(rest[:3])
        return self.warpledger_sdpa_forward(problem, q, k, v, *rest[3:])

    def warpledger_sdpa_forward_e4m3_output(self, problem, q, k, v, *rest):
        self.scales.append(rest[:4])
        return self.warpledger_sdpa_forward(problem, q, k, v, *rest[4:])


class Driver(Workspaces):
    """Keeps what was asked of the driver, and gives memory by numbers."""

    def __init__(self):
        with mock.patch("ctypes.CDLL"):
            super().__init__()
        self.calls = []
        self.sizes = []
        self.waits = []  # a stream that waits, and whose event it waits for
        self.devices = {}  # by pointers, where they are not of the first

    def call(self, name, *arguments):
        self.calls.append(name)
        if name == "cuPointerGetAttribute":
            arguments[0]._obj.value = self.devices.get(arguments[2].value, 0)
        if name == "cuEventRecord":
            self.recorded = arguments[1].value
        if name == "cuStreamWaitEvent":
            self.waits.append((arguments[0].value or 0, self.recorded))
        if name == "cuMemAlloc_v2":
            self.sizes.append(arguments[1].value)
            arguments[0]._obj.value = 4096 * len(self.sizes)


class WithoutADriver(unittest.TestCase):
    """Calls whose driver is a stand-in."""

    def setUp(self):
        self.driver = Driver()
        self.replace(attention, "workspaces", lambda: self.driver)

    def replace(self, of, name, stand_in):
        patch = mock.patch.object(of, name, stand_in)
        patch.start()
        self.addCleanup(patch.stop)


class WithoutAGpu(WithoutADriver):
    """Calls whose library is one too."""

    def setUp(self):
        super().setUp()
        self.library = Library()
        self.replace(attention, "library", lambda: self.library)
        attention.plan.cache_clear()
        self.addCleanup(attention.plan.cache_clear)


class OfCupy(Exported):
    """An array of CuPy, whose module is FakeCupy."""
    __module__ = "cupy"
    dtype = "float16"

    @property
    def device(self):
        return mock.patch.object(FakeCupy, "current", 3)


class FakeCupy(types.ModuleType):
    ndarray = OfCupy
    current = 0  # device
    made = []  # on which devices

    class cuda:  # noqa: N801
        @staticmethod
        def get_current_stream():
            return types.SimpleNamespace(ptr=100 + FakeCupy.current)

    def empty(self, shape, dtype):
        self.made.append((FakeCupy.current, dtype))
        made = OfCupy(shape, code=1, bits=8) if dtype == "uint8" else OfCupy(shape, code=2)
        made.data = types.SimpleNamespace(ptr=4096)
        return made


class WithOperatorsOnACpu(WithoutAGpu):
    """The operators with kernels for tensors of a CPU, which leave out as it was made."""

    def setUp(self):
        super().setUp()
        import torch
        import warpledger.torch as ours
        self.torch, self.ours = torch, ours
        self.kernels = torch.library.Library("warpledger", "IMPL")
        self.addCleanup(self.kernels._destroy)
        for name in "sdpa", "sdpa_lse":
            self.kernels.impl(name, getattr(ours, f"_{name}_cuda"), "CPU")
        for name in "sdpa_e4m3", "sdpa_e4m3_lse":
            self.kernels.impl(name, getattr(ours, f"_{name}_cuda"), "CPU")
        self.kernels.impl("sdpa_varlen", lambda q, *_: torch.empty_like(q), "CPU")
        self.kernels.impl("sdpa_varlen_lse", lambda q, *_: (torch.empty_like(q), q.new_empty(q.shape[:2])), "CPU")
        for of, name, stand_in in ((attention, "device_of_torch", lambda *_: contextlib.nullcontext()),
                                   (attention, "stream_of_torch", lambda *_: 0),
                                   (torch.cuda, "is_current_stream_capturing", lambda: False)):
            self.replace(of, name, stand_in)
        for kept in ours._calls, ours._whys:
            kept.clear()
            self.addCleanup(kept.clear)

    def halves(self, *shape):
        return self.torch.randn(shape).half()
