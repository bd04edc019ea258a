# SPDX-License-Identifier: Apache-2.0
"""The CUDA driver by ctypes: what GPU this is, an empty kernel, and what a graph launches.

Structures and numbers are those of cuda.h of CUDA 12.
"""

import ctypes
import re
import uuid

SM_COUNT, L2_BYTES, MAJOR, MINOR, ECC, CLOCK_KHZ = 16, 38, 75, 76, 32, 13  # CUdevice_attribute
LOCAL_BYTES, STATIC_SMEM_BYTES, REGISTERS = 3, 1, 4  # CUfunction_attribute
KERNEL_NODE = 0
NODES = {1: "memcpy", 2: "memset", 3: "host", 4: "graph", 5: "empty"}
MOST_SYMBOL = 400  # a record's line has 2048 bytes
EMPTY_KERNEL = b".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry empty()\n{\n ret;\n}\n\0"


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2"""
    _fields_ = [("func", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("smem", ctypes.c_uint), ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p),
                ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class Calls:
    """RuntimeError where the driver refuses a call; OSError where there is none."""

    def __init__(self):
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        code = getattr(self._cuda, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")


class Driver(Calls):
    def __init__(self):
        super().__init__()
        self.call("cuInit", 0)
        self._empty = None

    def _got(self, kind, name, *arguments):
        value = kind()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def describe(self, ordinal, runtime):
        """run.json's `gpu`."""
        device = self._got(ctypes.c_int, "cuDeviceGet", ordinal)

        def attribute(which):
            return self._got(ctypes.c_int, "cuDeviceGetAttribute", which, device)

        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        raw = (ctypes.c_ubyte * 16)()
        self.call("cuDeviceGetUuid", raw, device)
        name = name.value.decode()
        version = self._got(ctypes.c_int, "cuDriverGetVersion")
        slug = re.sub(r"[^a-z0-9]+", "_", re.sub("^(NVIDIA |Tesla |GeForce )+", "", name).lower())
        return {"name": name, "slug": slug.strip("_"), "uuid": f"GPU-{uuid.UUID(bytes=bytes(raw))}",
                "compute_capability": f"{attribute(MAJOR)}.{attribute(MINOR)}",
                "sm_count": attribute(SM_COUNT), "l2_bytes": attribute(L2_BYTES),
                "memory_bytes": self._got(ctypes.c_size_t, "cuDeviceTotalMem_v2", device),
                "driver": f"CUDA {version // 1000}.{version % 1000 // 10}", "cuda_runtime": runtime,
                "ecc": bool(attribute(ECC)), "max_sm_clock_mhz": attribute(CLOCK_KHZ) // 1000,
                "max_memory_clock_mhz": None, "power_limit_w": None}

    def load_empty_kernel(self):
        """In the current context; before any capture, which refuses it."""
        module = self._got(ctypes.c_void_p, "cuModuleLoadData", EMPTY_KERNEL)
        self._empty = self._got(ctypes.c_void_p, "cuModuleGetFunction", ctypes.c_void_p(module), b"empty")

    def call_nothing(self, stream):
        self.call("cuLaunchKernel", ctypes.c_void_p(self._empty), *[1] * 6, 0, ctypes.c_void_p(stream),
                   None, None)

    def call_lines(self, graph, calls):
        """What the second of equal calls launches (the first, where there is one), a line per node."""
        if graph is None:
            return ["its nodes can't be read: its library keeps no graph"]
        graph, count = ctypes.c_void_p(graph), ctypes.c_size_t()
        self.call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        nodes = (ctypes.c_void_p * count.value)()
        self.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        each, rest = divmod(count.value, calls)
        if rest or not each:
            return [f"{count.value} nodes in {calls} calls"]
        first = each if calls > 1 else 0
        return [self._line(ctypes.c_void_p(node)) for node in nodes[first:first + each]]

    def _line(self, node):
        kind = ctypes.c_int()
        self.call("cuGraphNodeGetType", node, ctypes.byref(kind))
        if kind.value != KERNEL_NODE:
            return NODES.get(kind.value, f"node of type {kind.value}")
        launch = KernelNode()
        self.call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(launch))
        function = ctypes.c_void_p(launch.func) if launch.func else ctypes.c_void_p(
            self._got(ctypes.c_void_p, "cuKernelGetFunction", ctypes.c_void_p(launch.kernel)))
        symbol = self._got(ctypes.c_char_p, "cuFuncGetName", function).decode()

        def attribute(which):
            return self._got(ctypes.c_int, "cuFuncGetAttribute", which, function)

        local = attribute(LOCAL_BYTES)
        return (f"kernel {symbol[:MOST_SYMBOL]} grid {'x'.join(map(str, launch.grid))} block "
                f"{'x'.join(map(str, launch.block))} smem {launch.smem + attribute(STATIC_SMEM_BYTES)} B "
                f"registers {attribute(REGISTERS)}" + (f" local {local} B" if local else ""))
