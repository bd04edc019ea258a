# SPDX-License-Identifier: Apache-2.0
"""warpledger.sdpa without a GPU: what it reads of arrays, what it refuses, and the operator's fake outputs."""

import ctypes
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
from unittest import mock

from fixture import run
from python_fixture import PACKAGE, ROOT
from sdpa_fixture import TORCH, Exported, FakeCupy, OfCupy, Stands, WithoutADriver, WithoutAGpu, WithOperatorsOnACpu

import warpledger
from warpledger import attention, program
from warpledger.attention import Choice, Problem, Tensor


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


class Arrays(WithoutADriver):
    def test_are_read_by_dlpack(self):
        array = Exported((2, 3, 5, 64), (960, 64, 192, 1), offset=32)
        self.assertEqual(attention.tensor_of(array, "q", 0), Tensor(4128, (2, 3, 5, 64), (960, 64, 192, 1), 1, 3))
        self.assertEqual(attention.tensor_of(Exported((2, 3, 5, 64), code=2), "q", 77).strides, (960, 320, 64, 1))
        self.assertEqual(array.streams, [1])  # the legacy default stream's name there
        with self.assertRaisesRegex(ValueError, "q is not on a GPU"):
            attention.tensor_of(Exported((1,), device=1), "q", 0)

    def test_of_managed_memory_are_on_the_gpu_that_the_driver_says(self):
        self.driver.devices[4096 + 32] = 2
        self.assertEqual(attention.tensor_of(Exported((5, 64), device=13, offset=32), "q", 0).device, 2)
        self.assertEqual(attention.tensor_of(Exported((5, 64), offset=32), "q", 0).device, 3)

    def test_are_read_by_cuda_array_interface(self):
        self.assertEqual(attention.tensor_of(Stands((2, 3, 5, 64), (1920, 128, 384, 2)), "q", 0),
                         Tensor(4096, (2, 3, 5, 64), (960, 64, 192, 1), 0, 0))
        self.driver.devices[8192] = 3
        self.assertEqual(attention.tensor_of(Stands((5, 64), pointer=8192), "q", 0).device, 3)
        with self.assertRaisesRegex(ValueError, r"q has no memory: its shape is \(0, 64\)"):
            attention.tensor_of(Stands((0, 64), pointer=0), "q", 0)
        self.assertEqual(attention.tensor_of(Stands((5, 64), kind="<f8"), "q", 0).dtype, -1)
        with self.assertRaisesRegex(TypeError, "k has neither __dlpack__ nor"):
            attention.tensor_of([1, 2], "k", 0)


    def test_of_another_stream_are_waited_for(self):
        for stream, writer, waits in ((7, None, []), (7, 7, []), (0, 1, []), (7, 9, [(7, 9)]), (0, 2, [(0, 2)]),
                                      (7, 1, [(7, 1)]), (2, 1, [(2, 1)])):
            self.driver.waits.clear()
            attention.tensor_of(Stands((5, 64), stream=writer), "q", stream)
            self.assertEqual(self.driver.waits, waits, (stream, writer))
        self.assertEqual(self.driver.calls.count("cuEventCreate"), self.driver.calls.count("cuEventDestroy_v2"))

    def test_of_pytorch_are_read_by_dlpack_beside_another_librarys(self):
        """Its current stream, which writes them, is not that of the call."""
        class OfTorch(Exported):
            is_cuda = True

        array = OfTorch((2, 3, 5, 64))
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(Tensor=OfTorch)}):
            self.assertEqual(attention.tensor_of(array, "k", 12345, of_torch=False).device, 3)
        self.assertEqual(array.streams, [12345])


class Cupy(WithoutAGpu):
    def test_makes_outputs_on_the_gpu_of_q(self):
        q = OfCupy((2, 8, 5, 64), code=2)
        of_torch = Exported((2, 8, 5, 64), code=2)
        with mock.patch.dict(sys.modules, {"cupy": FakeCupy("cupy")}):
            FakeCupy.made.clear()
            warpledger.sdpa(q, of_torch, of_torch, return_lse=True)
        self.assertEqual(FakeCupy.made, [(3, "float16"), (3, "float32")])
        self.assertEqual((q.streams, of_torch.streams), ([103], [103, 103]))
        self.assertEqual(self.library.streams, [103])

    def test_is_known_by_its_subclasses_too(self):
        class OfAProgram(OfCupy):
            __module__ = "program"

        q = OfAProgram((2, 8, 5, 64), code=2)
        with mock.patch.dict(sys.modules, {"cupy": FakeCupy("cupy")}):
            warpledger.sdpa(q, q, q)
        self.assertEqual(self.library.streams, [103])


class Frameworks(unittest.TestCase):
    def test_of_pytorch_is_known_by_subclasses_of_its_tensors(self):
        class OfTorch:
            device = 1

        class Parameter(OfTorch):
            __module__ = "program"

        cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=70 + device))
        with mock.patch.dict(sys.modules, {"torch": types.SimpleNamespace(Tensor=OfTorch, cuda=cuda)}):
            for array in OfTorch(), Parameter():
                framework = attention._Framework(array)
                self.assertEqual((framework.name, framework.stream(array)), ("torch", 71))
            self.assertIsNone(attention._Framework(Stands((1,))).name)
        with mock.patch.dict(sys.modules, {"torch": None}):
            self.assertIsNone(attention._Framework(OfTorch()).name)


class Refusals(WithoutADriver):
    def refused(self, said, q=None, k=None, v=None, kind=ValueError, **options):
        q = q or Stands((2, 8, 5, 64))
        k = k or Stands((2, 2, 7, 64))
        with self.assertRaisesRegex(kind, said):
            warpledger.sdpa(q, k, v or k, **options)

    def test_before_a_library_is_looked_for(self):
        self.refused("layout is 'sbhd'", layout="sbhd")
        for scale in 0, -1, float("nan"), 1e-46, 1e39, float("inf"):
            self.refused("it must be above 0 and finite", scale=scale)
        self.refused("q has 3 dimensions, not 4", q=Stands((8, 5, 64)))
        self.driver.devices[8192] = 1
        self.refused("k is on another GPU than q", k=Stands((2, 2, 7, 64), pointer=8192))
        self.refused("k has another dtype than q", k=Stands((2, 2, 7, 64), kind="<f4"))
        self.refused("must be float16 or bfloat16", *[Stands((2, 8, 5, 64), kind="<f4")] * 3)
        self.refused("k has batch 3 and head_dim 64, q 2 and 64", k=Stands((3, 2, 7, 64)))
        self.refused(r"k has shape \(2, 2, 7, 64\) and v \(2, 2, 8, 64\)", v=Stands((2, 2, 8, 64)))
        self.refused("q must lie side by side: its last stride is 5", q=Stands((2, 8, 5, 64), (5120, 640, 2, 10)))
        self.refused("out must be given", kind=TypeError)
        self.refused("out must be as q", out=Stands((2, 8, 6, 64)))
        self.refused("an LSE is made only for arrays of PyTorch and CuPy", kind=TypeError, return_lse=True,
                     out=Stands((2, 8, 5, 64)))
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
                             ({"out": Stands((9, 4, 64))}, "out must be as q"), ({"scale": 0}, "above 0"),
                             ({"scale": 1e-46}, "above 0")):
            given = {"q": q, "k": q, "v": q, "cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 5,
                     "max_seqlen_k": 5} | change
            with self.assertRaisesRegex(ValueError, said):
                warpledger.sdpa_varlen(**given)
        with self.assertRaisesRegex(TypeError, "an LSE is made only for arrays of PyTorch and CuPy"):
            warpledger.sdpa_varlen(q, q, q, cu, cu, 5, 5, out=q, return_lse=True)

    def test_packed_sequences_without_rows_before_a_library_is_looked_for(self):
        some, none, cu = Stands((9, 8, 64)), Stands((0, 8, 64)), Stands((3,), kind="<i4")
        for q, k in (none, none), (none, some), (some, none):
            with self.assertRaisesRegex(ValueError, "^packed q, k and v must have rows$"):
                warpledger.sdpa_varlen(q, k, k, cu, cu, 5, 5, out=q)

    def test_says_where_the_library_may_be(self):
        # The second is too near the root for a checkout around it.
        for here in "/a/b/c/d/e", "/app/warpledger":
            with mock.patch.dict(os.environ, {"WARPLEDGER_SDPA_LIBRARY": ""}), \
                    mock.patch.object(attention, "_HERE", pathlib.Path(here)), \
                    self.assertRaisesRegex(FileNotFoundError, "name it in WARPLEDGER_SDPA_LIBRARY"):
                attention.library_path()

    def test_takes_no_other_library_than_the_one_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            brought, named = here / "program/lib/libwarpledger_sdpa.so", here / "named.so"
            brought.parent.mkdir(parents=True)
            brought.touch()
            with mock.patch.dict(os.environ, {"WARPLEDGER_SDPA_LIBRARY": ""}) as environment, \
                    mock.patch.object(attention, "_HERE", here):
                self.assertEqual(attention.library_path(), str(brought))
                environment["WARPLEDGER_SDPA_LIBRARY"] = str(named)
                with self.assertRaisesRegex(FileNotFoundError, "^WARPLEDGER_SDPA_LIBRARY is '.*named.so'"):
                    attention.library_path()
                named.touch()
                self.assertEqual(attention.library_path(), str(named))
                environment["WARPLEDGER_SDPA_LIBRARY"] = os.path.relpath(named)
                self.assertTrue(os.path.isabs(attention.library_path()))
                self.assertTrue(os.path.samefile(attention.library_path(), named))

    def test_looks_for_the_program_where_no_checkout_can_be(self):
        with mock.patch.dict(os.environ, {"WARPLEDGER_PROGRAM": ""}), \
                mock.patch.object(program, "_HERE", pathlib.Path("/app/warpledger")):
            with self.assertRaisesRegex(FileNotFoundError, "there is no program `warpledger`"):
                program.path()
            with self.assertRaisesRegex(FileNotFoundError, "neither in the package nor in a checkout"):
                program.module("nowhere.py")
        self.assertEqual(program.checkouts(PACKAGE / "warpledger"), [ROOT])


class Expanded(WithoutAGpu):
    """One row that stands for all others has the strides by which the library is told of no gaps."""
    WHOLE, ROW = (2, 8, 64, 64), (0, 0, 0, 2)

    def test_rows_are_refused(self):
        whole, row = Stands(self.WHOLE), Stands(self.WHOLE, self.ROW)
        for name in "q", "k", "v", "out":
            given = dict.fromkeys(("q", "k", "v", "out"), whole) | {name: row}
            with self.assertRaisesRegex(ValueError, f"^{name} is one row expanded over all others"):
                warpledger.sdpa(**given)
        self.assertEqual(self.library.problems, [])

    def test_packed_rows_are_refused(self):
        whole, row, cu = Stands((64, 8, 64)), Stands((64, 8, 64), (0, 0, 2)), Stands((3,), kind="<i4")
        for name in "q", "k", "v", "out":
            given = dict.fromkeys(("q", "k", "v", "out"), whole) | {name: row}
            with self.assertRaisesRegex(ValueError, f"^{name} is one row expanded over all others"):
                warpledger.sdpa_varlen(**given, cu_seqlens_q=cu, cu_seqlens_k=cu, max_seqlen_q=40, max_seqlen_k=40)
        self.assertEqual(self.library.problems, [])

    def test_one_row_is_none(self):
        one = Stands((1, 1, 1, 64), self.ROW)
        warpledger.sdpa(one, one, one, out=one)
        self.assertEqual(len(self.library.problems), 1)


class Threads(WithoutAGpu):
    def test_of_one_stream_call_in_turn(self):
        """A call may be several launches, which share a workspace."""
        calls = []

        def slow(*_):
            calls.append("begin")
            time.sleep(0.01)  # lets other threads run, as ctypes does
            calls.append("end")
            return 0

        for name in "forward", "forward_varlen", "forward_e4m3", "forward_e4m3_output":
            setattr(self.library, f"warpledger_sdpa_{name}", slow)
        made = types.SimpleNamespace(given=[None], workspace_bytes=4096)
        threads = []
        for _ in range(4):
            threads += [threading.Thread(target=attention.launch, args=(made, *[0] * 7)),
                        threading.Thread(target=attention.launch, args=(made, *[0] * 7, [0] * 3)),
                        threading.Thread(target=attention.launch, args=(made, *[0] * 7, [0] * 4)),
                        threading.Thread(target=attention.launch_packed, args=(made, *[0] * 9))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(calls, ["begin", "end"] * 16)

    def test_go_on_after_a_refused_call(self):
        given = Stands((2, 8, 64, 64))
        self.library.warpledger_sdpa_last_error = lambda: b"the stand-in refuses"
        with mock.patch.object(self.library, "warpledger_sdpa_forward", lambda *_: 1), \
                self.assertRaisesRegex(ValueError, "the stand-in refuses"):
            warpledger.sdpa(given, given, given, out=given)
        warpledger.sdpa(given, given, given, out=given)
        self.assertEqual(len(self.library.problems), 1)


class ScaleTensors(WithoutAGpu):
    class OfOne:
        """A tensor of one element: it is compared by value, and hashed by identity."""
        requires_grad = False

        def __init__(self, value):
            self.value = value

        def __float__(self):
            return self.value

        def __lt__(self, other):
            return self.value < other

        def __gt__(self, other):
            return self.value > other

    def calls(self):
        whole, packed, cu = Stands((2, 8, 64, 64)), Stands((64, 8, 64)), Stands((3,), kind="<i4")
        return (lambda scale: warpledger.sdpa(whole, whole, whole, out=whole, scale=scale),
                lambda scale: warpledger.sdpa_varlen(packed, packed, packed, cu, cu, 40, 40, out=packed, scale=scale))

    def test_are_read_in_each_call(self):
        for call in self.calls():
            scale = self.OfOne(0.25)
            for value in 0.25, 0.5:
                scale.value = value
                call(scale)
                self.assertEqual(self.library.problems[-1].softmax_scale, value)

    def test_that_ask_for_a_gradient_are_refused(self):
        torch = types.SimpleNamespace(
            Tensor=self.OfOne, is_grad_enabled=lambda: True,
            autograd=types.SimpleNamespace(forward_ad=types.SimpleNamespace(_current_level=-1)))
        for call in self.calls():
            scale = self.OfOne(0.25)
            with mock.patch.dict(sys.modules, {"torch": torch}):
                call(scale)
                scale.requires_grad = True
                with self.assertRaisesRegex(RuntimeError, "requires a gradient, and there is no backward"):
                    call(scale)
        self.assertEqual(len(self.library.problems), 2)


class Scales(unittest.TestCase):
    def test_are_those_that_a_float_holds(self):
        least, most = 2.0 ** -150, (2 - 2.0 ** -24) * 2.0 ** 127  # where rounding goes to 0, and to infinity
        for scale in (least, math.nextafter(least, 1), math.nextafter(least, 0), most, math.nextafter(most, 0),
                      math.nextafter(most, math.inf), 1e-46, 1e-45, 1e-38, 1, 3e38, 4e38, 1e300, 5e-324):
            self.assertEqual(attention.is_scale(scale), 0 < ctypes.c_float(scale).value < math.inf, scale)
        self.assertTrue(attention.is_scale(None))


class PackedLengths(WithoutAGpu):
    def test_are_none_that_the_library_does_not_take(self):
        given, cu = Stands((64, 8, 64)), Stands((3,), kind="<i4")
        for said, told in (0, 1), (40, 40), (2**20 + 1, 2**20), (2**32 + 5, 2**20):
            warpledger.sdpa_varlen(given, given, given, cu, cu, said, said, out=given)
            it = self.library.problems[-1]
            self.assertEqual((it.seq_q, it.seq_kv, it.batch, it.total_q), (told, told, 2, 64))


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
        done = run(sys.executable, "-c", program,
                   env=os.environ | {"PYTHONPATH": str(PACKAGE), "WARPLEDGER_SDPA_LIBRARY": "/nowhere"})
        self.assertEqual((done.returncode, done.stdout), (0, "warpledger.attention False\n"), done.stderr)


@unittest.skipUnless(TORCH, "no PyTorch")
class OperatorOnACpu(WithOperatorsOnACpu):
    def each(self):
        """(operator, its arguments behind q, k and v, a shape)"""
        operators = self.torch.ops.warpledger
        cu = self.torch.tensor([0, 8], dtype=self.torch.int32)
        for name in "sdpa", "sdpa_lse":
            yield getattr(operators, name), (), (1, 2, 8, 64)
        for name in "sdpa_varlen", "sdpa_varlen_lse":
            yield getattr(operators, name), (cu, cu, 8, 8), (8, 2, 64)

    def first(self, result):
        return result[0] if isinstance(result, tuple) else result

    def test_makes_outputs_as_its_fake_ones_where_q_is_copied(self):
        """A view that begins between two 16 bytes is, and has another order of rows and heads than its copy."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        k, room = self.halves(2, 8, 5, 64), self.halves(2, 5, 8, 72)
        for operator in self.torch.ops.warpledger.sdpa, self.torch.ops.warpledger.sdpa_lse:
            for begin in 0, 4:
                q = room[..., begin:begin + 64].transpose(1, 2)
                self.assertEqual(q.data_ptr() % 16, 2 * begin)
                with FakeTensorMode() as mode:
                    fake = self.first(operator(*(mode.from_tensor(each) for each in (q, k, k))))
                for each in q, q.contiguous(), q:
                    out = self.first(operator(each, k, k))
                    self.assertEqual(out.stride(), fake.stride() if each is q else each.stride())

    def test_refuses_a_scale_that_is_0_in_float32(self):
        plain = self.halves(1, 2, 8, 64)
        for scale in 1e-46, float("inf"):
            with self.assertRaisesRegex(ValueError, "it must be above 0 and finite"):
                self.torch.ops.warpledger.sdpa(plain, plain, plain, False, scale)

    def test_refuses_what_asks_for_a_gradient(self):
        for operator, rest, shape in self.each():
            for asks in range(3):
                given = [self.halves(*shape).requires_grad_(i == asks) for i in range(3)]
                with self.assertRaisesRegex(RuntimeError, "requires a gradient, and there is no backward"):
                    operator(*given, *rest)
                with self.torch.no_grad():
                    self.assertFalse(self.first(operator(*given, *rest)).requires_grad)
            plain = self.halves(*shape)
            self.assertFalse(self.first(operator(plain, plain, plain, *rest)).requires_grad)

    def test_refuses_an_out_that_asks_for_a_gradient_in_a_known_call_too(self):
        self.replace(attention, "_known", {})
        self.replace(attention, "tensor_of", lambda array, *_: Tensor(
            array.data_ptr(), tuple(array.shape), array.stride(), 0, None))
        plain = self.halves(1, 2, 8, 64)

        def call(out):
            return attention._sdpa_of_torch(self.torch, plain, plain, plain, False, None, False, out, "bhsd")

        self.assertFalse(call(self.torch.empty_like(plain)).requires_grad)
        with self.assertRaisesRegex(RuntimeError, "requires a gradient, and there is no backward"):
            call(self.torch.empty_like(plain).requires_grad_())
        self.assertEqual(len(self.library.problems), 1)

    def test_refuses_transforms_that_differentiate(self):
        func, forward_ad = self.torch.func, self.torch.autograd.forward_ad
        for operator, rest, shape in self.each():
            plain = self.halves(*shape)

            def summed(q, k=plain, operator=operator, rest=rest):
                return self.first(operator(q, k, k, *rest)).float().sum()

            with self.assertRaisesRegex(RuntimeError, "no backward"):
                func.grad(summed)(plain)
            with self.assertRaisesRegex(RuntimeError, "no backward"):
                func.grad(lambda q, of=summed: func.grad(lambda other: (of(q) * other).sum())(q).float().sum())(plain)
            with self.assertRaisesRegex(RuntimeError, "no forward derivative"):
                func.jvp(summed, (plain,), (plain,))
            with forward_ad.dual_level():
                with self.assertRaisesRegex(RuntimeError, "no forward derivative"):
                    summed(forward_ad.make_dual(plain, plain))
                summed(plain)  # of another tensor
            func.grad(lambda other, of=summed, q=plain: (of(q) * other).sum())(self.torch.ones(()))

    def test_is_refused_by_the_compiler_too(self):
        operator = self.torch.ops.warpledger.sdpa
        plain = self.halves(1, 2, 8, 64)
        compiled = self.torch.compile(lambda q: operator(q, plain, plain), fullgraph=True, backend="aot_eager")
        self.assertEqual(compiled(plain).shape, plain.shape)
        with self.assertRaisesRegex(Exception, "requires a gradient, and there is no backward"):
            compiled(plain.clone().requires_grad_())

    def test_leaves_what_is_differentiated_to_pytorch(self):
        func, forward_ad = self.torch.func, self.torch.autograd.forward_ad
        plain = self.torch.randn(1, 2, 8, 64)
        said = []

        def ask(q):
            said.append(self.ours.why_not(q, plain, plain))
            return q.sum()

        ask(plain)
        func.grad(ask)(plain)
        func.jvp(ask, (plain,), (plain,))
        func.grad(lambda q: self.torch.vmap(ask)(q[None]).sum())(plain)
        with forward_ad.dual_level():
            ask(forward_ad.make_dual(plain, plain))
            ask(plain)
        gradient = ["a gradient" in each for each in said]
        self.assertEqual(gradient, [False, True, True, True, True, False], said)

    def test_asks_anew_within_a_transform(self):
        plain = self.torch.randn(1, 2, 8, 64)
        with mock.patch.object(self.ours, "why_not", return_value="the test says so") as asked:
            for _ in range(2):
                self.ours.scaled_dot_product_attention(plain, plain, plain)
            self.assertEqual(asked.call_count, 1)
            self.torch.vmap(lambda q: self.ours.scaled_dot_product_attention(q, plain, plain))(plain[None])
            self.assertEqual(asked.call_count, 2)


    def test_is_pytorchs_where_a_state_or_a_kind_of_tensor_asks_for_it(self):
        """Also where a call of the same shapes, dtypes and strides was the library's before."""
        torch, ours = self.torch, self.ours
        plain, asked = self.halves(1, 2, 8, 64), []
        why_not = ours.why_not
        self.replace(ours, "why_not", lambda *_: "")
        self.replace(ours, "_own", lambda query, *_, **options: asked.append(query))

        def whose(query, **options):
            asked.clear()
            ours.scaled_dot_product_attention(query, plain, plain, **options)
            return "PyTorch's" if asked else "the library's"

        class Parts(torch.Tensor):
            pass

        self.assertEqual(whose(plain), "the library's")
        for dtype, whose_then in (torch.bfloat16, "PyTorch's"), (torch.float16, "the library's"):
            with mock.patch.object(torch, "is_autocast_enabled", lambda kind: kind == "cuda"), \
                    mock.patch.object(torch, "get_autocast_dtype", lambda kind, dtype=dtype: dtype):
                self.assertEqual(whose(plain), whose_then)
                self.assertEqual("autocast asks for another dtype" == why_not(plain, plain, plain),
                                 whose_then == "PyTorch's")
        with mock.patch.dict(sys.modules, {"torch.distributed.tensor": types.SimpleNamespace(DTensor=Parts)}):
            self.assertEqual(whose(plain.as_subclass(Parts)), "PyTorch's")
            self.assertIn("distributed", why_not(plain, plain.as_subclass(Parts), plain))
        nested = torch.nested.nested_tensor([plain[0], plain[0, :, :5]])
        self.assertEqual(whose(nested), "PyTorch's")
        self.assertIn("nested", why_not(plain, plain, nested))
        self.assertEqual(whose(plain, scale=torch.tensor(0.5)), "PyTorch's")
        self.assertIn("scale", why_not(plain, plain, plain, scale=torch.tensor(0.5)))

    def test_refuses_a_scale_that_asks_for_a_gradient(self):
        plain = self.halves(1, 2, 8, 64)
        scale = self.torch.tensor(0.5, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "requires a gradient, and there is no backward"):
            self.ours.sdpa(plain, plain, plain, scale=scale)
        self.ours.sdpa(plain, plain, plain, scale=scale.detach())
        self.assertEqual(self.library.problems[-1].softmax_scale, 0.5)


@unittest.skipUnless(TORCH, "no PyTorch")
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

    def test_leaves_scales_that_are_0_in_float32_to_pytorch(self):
        import torch
        import warpledger.torch as ours
        from torch._subclasses.fake_tensor import FakeTensorMode
        with mock.patch.object(ours, "_why_not_on", lambda index: ""), FakeTensorMode():
            q = torch.empty(1, 1, 8, 64, dtype=torch.float16, device="cuda")
            self.assertEqual(ours.why_not(q, q, q, scale=1e-45), "")
            for scale in 1e-46, 0.0, float("inf"):
                self.assertIn("scale", ours.why_not(q, q, q, scale=scale))

    def test_leaves_sizes_above_the_librarys_to_pytorch(self):
        import torch
        import warpledger.torch as ours
        from torch._subclasses.fake_tensor import FakeTensorMode
        with mock.patch.object(ours, "_why_not_on", lambda index: ""), FakeTensorMode():
            for rows, said in (2**20, ""), (2**20 + 8, "a size is above 2^20"):
                q = torch.empty(1, 1, rows, 64, dtype=torch.float16, device="cuda")
                self.assertEqual(ours.why_not(q, q, q, is_causal=True), said)

    def test_says_why_a_call_is_pytorchs(self):
        import torch
        from warpledger.torch import scaled_dot_product_attention, why_not
        q = torch.randn(1, 2, 8, 64)
        self.assertIn("on a GPU", why_not(q, q, q))
        self.assertIn("mask", why_not(q, q, q, dropout_p=0.5))
        self.assertTrue(torch.equal(scaled_dot_product_attention(q, q, q),
                                    torch.nn.functional.scaled_dot_product_attention(q, q, q)))
