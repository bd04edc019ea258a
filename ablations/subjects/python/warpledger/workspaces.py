# SPDX-License-Identifier: Apache-2.0
"""Device memory that the library's kernels work with, and the driver's calls around it."""

import contextlib
import ctypes
import functools
import threading

from . import driver

LEAST_BYTES = 1 << 20  # of a workspace
PER_THREAD = 2  # CU_STREAM_PER_THREAD: one handle, a stream for each thread
AS_IT_IS = contextlib.nullcontext()


class Workspaces(driver.Calls):
    """Device memory, 0 once, for each stream of each device, from the driver: no framework's pool may take it
    back, and captured graphs of PyTorch count what is in theirs. It is never freed."""

    def __init__(self):
        super().__init__()
        self._lock = threading.Lock()
        self._kept = {}  # (device, stream), and the thread of PER_THREAD: (pointer, bytes)
        self._thread = threading.local()
        self._contexts = {}

    def device(self, ordinal):
        """A context in which it is the current one, as the CUDA runtime sees it."""
        current = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(current))
        wanted = self._contexts.get(ordinal)
        return AS_IT_IS if wanted and current.value == wanted else self._entered(ordinal)

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

    def device_of(self, pointer):
        """The number of the GPU that the memory is of."""
        ordinal = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuPointerGetAttribute", ctypes.byref(ordinal), 9, ctypes.c_uint64(pointer))  # DEVICE_ORDINAL
        return ordinal.value

    def wait(self, stream, other):
        """Lets `stream` wait for what is on another one. The device is the current one."""
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), 2)  # without times
        try:
            self.call("cuEventRecord", event, ctypes.c_void_p(other))
            self.call("cuStreamWaitEvent", ctypes.c_void_p(stream), event, 0)
        finally:
            self.call("cuEventDestroy_v2", event)

    def is_capturing(self, stream):
        status = ctypes.c_int()
        self.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def of(self, device, stream, size):
        """At least so many bytes. The device is the current one."""
        key = self._of_this_thread(device) if stream == PER_THREAD else (device, stream)
        with self._lock:
            pointer, have = self._kept.get(key, (0, 0))
            if have < size:
                # Twice as many at the least: the former ones, which may be in use yet, are not freed.
                size = max(LEAST_BYTES, 1 << (size - 1).bit_length())
                pointer = self._allocate(size)
                self._kept[key] = pointer, size
            return pointer

    def _of_this_thread(self, device):
        """The key of the stream that each thread has under one handle. A thread that has ended may leave its
        number to a new one, and calls that still run."""
        key = device, PER_THREAD, threading.get_ident()
        known = self._thread.__dict__.setdefault("devices", set())
        if device not in known:
            known.add(device)
            if key in self._kept:
                with self.beside_captures():
                    self.call("cuCtxSynchronize")
        return key

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


@functools.cache
def workspaces():
    return Workspaces()
