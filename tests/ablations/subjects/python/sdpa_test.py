# SPDX-License-Identifier: Apache-2.0
"""warpledger.sdpa without a GPU: what it reads of arrays, what it refuses, and the operator's fake outputs."""

import ctypes
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from python_fixture import PACKAGE, ROOT

import warpledger
from warpledger import attention
from warpledger.attention import Choice, Problem, Tensor


class Stands:
    """An array of a GPU, as __cuda_array_interface__ tells it."""

    def __init__(self, shape, strides=None, kind="<f2", pointer=4096):
        self.__cuda_array_interface__ = {"shape": shape, "strides": strides, "typestr": kind,
                                         "data": (pointer, False), "version": 3}


class Exported:
    """The same by DLPack."""

    def __init__(self, shape, strides=None, code=4, device=2, offset=0):
        self.device = device
        self.sizes = (ctypes.c_int64 * len(shape))(*shape)
        self.steps = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.it = attention._DLTensor(4096, device, 3, len(shape), code, 16, 1, self.sizes, self.steps, offset)
        self.streams = []

    def __dlpack_device__(self):
        return self.device, 3

    def __dlpack__(self, stream):
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.it), b"dltensor", None)


class Structures(unittest.TestCase):
    def test_are_the_headers(self):
        """Compiled in C99: the size of each structure and where each field is."""
        lines = [f'printf("{kind} {name} %zu\\n", offsetof(warpledger_sdpa_{kind}, {name}));'
                 for kind, of in (("problem", Problem), ("choice", Choice)) for name, _ in of._fields_]
        lines += [f'printf("{kind} %zu\\n", sizeof(warpledger_sdpa_{kind}));' for kind in ("problem", "choice")]
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "offsets.c"
            source.write_text('#include <stddef.h>\n#include <stdio.h>\n#include "warpledger_sdpa.h"\n'
                              f"int main(void) {{ {' '.join(lines)} return 0; }}\n", encoding="utf-8")
            program = source.with_suffix("")
            subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror",
                            f"-I{ROOT / 'kernels/sdpa/library'}", source, "-o", program], check=True)
            said = subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        ours = [f"{kind} {name} {getattr(of, name).offset}"
                for kind, of in (("problem", Problem), ("choice", Choice)) for name, _ in of._fields_]
        self.assertEqual(said, [*ours, f"problem {ctypes.sizeof(Problem)}", f"choice {ctypes.sizeof(Choice)}"])


class Arrays(unittest.TestCase):
    def test_are_read_by_dlpack(self):
        array = Exported((2, 3, 5, 64), (960, 64, 192, 1), offset=32)
        self.assertEqual(attention.tensor_of(array, "q", 0), Tensor(4128, (2, 3, 5, 64), (960, 64, 192, 1), 1, 3))
        self.assertEqual(attention.tensor_of(Exported((2, 3, 5, 64), code=2), "q", 77).strides, (960, 320, 64, 1))
        self.assertEqual(array.streams, [1])  # the legacy default stream's name there
        with self.assertRaisesRegex(ValueError, "q is not on a GPU"):
            attention.tensor_of(Exported((1,), device=1), "q", 0)

    def test_are_read_by_cuda_array_interface(self):
        self.assertEqual(attention.tensor_of(Stands((2, 3, 5, 64), (1920, 128, 384, 2)), "q", 0),
                         Tensor(4096, (2, 3, 5, 64), (960, 64, 192, 1), 0, None))
        self.assertEqual(attention.tensor_of(Stands((5, 64), kind="<f4"), "q", 0).dtype, -1)
        with self.assertRaisesRegex(TypeError, "k has neither __dlpack__ nor"):
            attention.tensor_of([1, 2], "k", 0)


class Refusals(unittest.TestCase):
    def refused(self, said, q=None, k=None, v=None, kind=ValueError, **options):
        q = q or Stands((2, 8, 5, 64))
        k = k or Stands((2, 2, 7, 64))
        with self.assertRaisesRegex(kind, said):
            warpledger.sdpa(q, k, v or k, **options)

    def test_before_a_library_is_looked_for(self):
        self.refused("layout is 'sbhd'", layout="sbhd")
        for scale in 0, -1, float("nan"):
            self.refused("it must be above 0", scale=scale)
        self.refused("q has 3 dimensions, not 4", q=Stands((8, 5, 64)))
        self.refused("k has another dtype than q", k=Stands((2, 2, 7, 64), kind="<f4"))
        self.refused("must be float16 or bfloat16", *[Stands((2, 8, 5, 64), kind="<f4")] * 3)
        self.refused("k has batch 3 and head_dim 64, q 2 and 64", k=Stands((3, 2, 7, 64)))
        self.refused(r"k has shape \(2, 2, 7, 64\) and v \(2, 2, 8, 64\)", v=Stands((2, 2, 8, 64)))
        self.refused("q must lie side by side: its last stride is 5", q=Stands((2, 8, 5, 64), (5120, 640, 2, 10)))
        self.refused("out must be given", kind=TypeError)
        self.refused("out must be as q", out=Stands((2, 8, 6, 64)))
        # (batch, seq, heads, head_dim)
        self.refused("k has batch 3", k=Stands((3, 7, 2, 64)), layout="bshd")

    def test_packed_sequences_before_a_library_is_looked_for(self):
        q, cu = Stands((9, 8, 64)), Stands((3,), kind="<i4")
        for change, said in (({"q": Stands((1, 9, 8, 64))}, r"q has 4 dimensions, not 3 \(total, heads, head_dim\)"),
                             ({"cu_seqlens_q": Stands((3,), kind="<i8")}, r"cu_seqlens_q must be \(batch \+ 1\) int32"),
                             ({"cu_seqlens_k": Stands((1,), kind="<i4")}, "cu_seqlens_k must be"),
                             ({"cu_seqlens_k": Stands((3,), (8,), kind="<i4")}, "cu_seqlens_k must be"),
                             ({"cu_seqlens_k": Stands((4,), kind="<i4")}, "has 3 values and cu_seqlens_k 4"),
                             ({"k": Stands((9, 8, 128))}, "k has batch 1 and head_dim 128"),
                             ({"out": Stands((9, 4, 64))}, "out must be as q"), ({"scale": 0}, "above 0")):
            given = {"q": q, "k": q, "v": q, "cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 5,
                     "max_seqlen_k": 5} | change
            with self.assertRaisesRegex(ValueError, said):
                warpledger.sdpa_varlen(**given)

    def test_says_where_the_library_may_be(self):
        with mock.patch.dict(os.environ, {"WARPLEDGER_SDPA_LIBRARY": "/nowhere.so"}), \
                mock.patch.object(attention, "_HERE", pathlib.Path("/a/b/c/d/e")), \
                self.assertRaisesRegex(FileNotFoundError, "name it in WARPLEDGER_SDPA_LIBRARY"):
            attention.library_path()


class Layouts(unittest.TestCase):
    def test_the_output_keeps_qs_order_where_a_kernel_stores_it(self):
        shape, outside = (2, 8, 5, 64), (2560, 64, 512, 1)
        self.assertTrue(attention.keeps_rows_outside(shape, outside, 5, True))
        self.assertFalse(attention.keeps_rows_outside(shape, attention.without_gaps(shape), 5, True))
        self.assertFalse(attention.keeps_rows_outside(shape, outside, 4, True))
        self.assertTrue(attention.keeps_rows_outside(shape, outside, 4, False))
        self.assertFalse(attention.keeps_rows_outside((2, 8, 5, 256), (10240, 256, 2048, 1), 5, True))
        self.assertFalse(attention.keeps_rows_outside((2, 8, 1, 64), (512, 64, 512, 1), 5, True))


class Imports(unittest.TestCase):
    def test_without_pytorch_and_the_library(self):
        program = ("import sys; sys.modules['torch'] = None; import warpledger; "
                   "print(warpledger.sdpa.__module__, 'cupy' in sys.modules)")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False,
                              env=os.environ | {"PYTHONPATH": str(PACKAGE), "WARPLEDGER_SDPA_LIBRARY": "/nowhere"})
        self.assertEqual((done.returncode, done.stdout), (0, "warpledger.attention False\n"), done.stderr)


@unittest.skipUnless(importlib.util.find_spec("torch"), "no PyTorch")
class Operator(unittest.TestCase):
    def test_makes_fake_outputs_of_the_same_strides(self):
        import torch
        import warpledger.torch  # noqa: F401
        from torch._subclasses.fake_tensor import FakeTensorMode
        with FakeTensorMode():
            q, k = (torch.empty(2, s, 8, 64, dtype=torch.float16, device="cuda").transpose(1, 2) for s in (5, 7))
            out, lse = torch.ops.warpledger.sdpa_lse(q, k, k)
            self.assertEqual((out.shape, out.stride()), (q.shape, q.stride()))
            self.assertEqual((lse.shape, lse.dtype), ((2, 8, 5), torch.float32))
            self.assertTrue(torch.ops.warpledger.sdpa(q.contiguous(), k, k).is_contiguous())

    def test_says_why_a_call_is_pytorchs(self):
        import torch
        from warpledger.torch import scaled_dot_product_attention, why_not
        q = torch.randn(1, 2, 8, 64)
        self.assertIn("on a GPU", why_not(q, q, q))
        self.assertIn("mask", why_not(q, q, q, dropout_p=0.5))
        self.assertTrue(torch.equal(scaled_dot_product_attention(q, q, q),
                                    torch.nn.functional.scaled_dot_product_attention(q, q, q)))


if __name__ == "__main__":
    unittest.main()
