# SPDX-License-Identifier: Apache-2.0
"""warpledger.sdpa of E4M3 without a GPU: what it tells the library, what it refuses, and the operators."""

import sys
import unittest
from unittest import mock

from sdpa_fixture import TORCH, Exported, FakeCupy, OfCupy, Stands, WithoutAGpu, WithOperatorsOnACpu

import warpledger


class BytesOfCupy(OfCupy):
    dtype = "uint8"


class E4m3(WithoutAGpu):
    """Eight heads of q on two of k and v, 300 keys, which are three blocks."""
    SCALES = {"tensor": [(), (1,), (1, 1)], "head": [(2, 8), (2, 2), (2, 2)], "block": [(2, 8), (2, 2, 3), (2, 2, 3)]}

    def given(self, scope="tensor", make=Stands, of_bytes=None, **changed):
        of_bytes = of_bytes or {"kind": "|u1"}
        given = {"q": make((2, 8, 70, 128), **of_bytes), "out": Stands((2, 8, 70, 128)), "dtype": "e4m3"}
        given |= {name: make((2, 2, 300, 128), **of_bytes) for name in "kv"}
        given |= {f"{name}_scale": Stands(shape, kind="<f4", pointer=64 * at)
                  for at, (name, shape) in enumerate(zip("qkv", self.SCALES[scope]), 1)}
        return given | changed

    def test_tells_the_library_what_shares_a_scale(self):
        for scope, (of_q, of_kv) in {"tensor": (0, 0), "head": (1, 1), "block": (1, 2)}.items():
            warpledger.sdpa(**self.given(scope))
            it = self.library.problems[-1]
            self.assertEqual((it.dtype, it.head_dim, it.q_scale_scope, it.kv_scale_scope), (2, 128, of_q, of_kv))
            self.assertEqual(self.library.scales[-1], (64, 128, 192))
        mixed = Stands((), kind="<f4", pointer=64)
        warpledger.sdpa(**self.given("block", q_scale=mixed))
        self.assertEqual((self.library.problems[-1].q_scale_scope, self.library.problems[-1].kv_scale_scope), (0, 2))

    def test_is_known_by_dlpack_without_a_name(self):
        self.driver.devices = {64: 3, 128: 3, 192: 3, 4096: 3}
        given = self.given("head", make=Exported, of_bytes={"code": 10, "bits": 8}, dtype=None)
        warpledger.sdpa(**given)
        self.assertEqual(self.library.problems[-1].dtype, 2)
        given = self.given("head", make=Exported, of_bytes={"code": 1, "bits": 8})
        warpledger.sdpa(**given)
        with self.assertRaisesRegex(ValueError, "or uint8 and dtype='e4m3'"):
            warpledger.sdpa(**given | {"dtype": None})

    def test_makes_float16(self):
        with mock.patch.dict(sys.modules, {"cupy": FakeCupy("cupy")}):
            FakeCupy.made.clear()
            given = self.given(make=OfCupy, of_bytes={"code": 10, "bits": 8}, out=None, return_lse=True)
            given |= {f"{name}_scale": OfCupy((1,), code=2, bits=32) for name in "qkv"}
            warpledger.sdpa(**given)
        self.assertEqual(FakeCupy.made, [(3, "float16"), (3, "float32")])

    def test_writes_e4m3_with_a_scale(self):
        scale = Stands((), kind="<f4", pointer=256)
        warpledger.sdpa(**self.given("head", out=Stands((2, 8, 70, 128), kind="|u1"), out_scale=scale))
        it = self.library.problems[-1]
        self.assertEqual((it.dtype, it.o_dtype, self.library.scales[-1]), (2, 2, (64, 128, 192, 256)))
        warpledger.sdpa(**self.given("head"))
        self.assertEqual((self.library.problems[-1].o_dtype, self.library.scales[-1]), (0, (64, 128, 192)))
        with mock.patch.dict(sys.modules, {"cupy": FakeCupy("cupy")}):
            FakeCupy.made.clear()
            given = self.given(make=BytesOfCupy, of_bytes={"code": 1, "bits": 8}, out=None)
            given |= {f"{name}_scale": OfCupy((1,), code=2, bits=32) for name in ("q", "k", "v", "out")}
            warpledger.sdpa(**given)
        self.assertEqual(FakeCupy.made, [(3, "uint8")])
        self.assertEqual(self.library.problems[-1].o_dtype, 2)

    def test_is_strided_by_elements(self):
        rows = {"q": Stands((2, 70, 8, 128), kind="|u1"), "out": Stands((2, 70, 8, 128)),
                **{name: Stands((2, 300, 2, 128), kind="|u1") for name in "kv"}}
        warpledger.sdpa(**self.given("head", layout="bshd", **rows))
        it = self.library.problems[-1]
        self.assertEqual((it.q.row, it.q.head, it.o.row, it.k.row), (1024, 128, 1024, 256))

    def test_is_refused_without_what_it_needs(self):
        for changed, said in (({"q_scale": None}, "q_scale, k_scale and v_scale go together"),
                              ({f"{name}_scale": None for name in "qkv"}, "q, k and v are E4M3 without scales"),
                              ({"dtype": "e5m2"}, "dtype is 'e5m2'; it must be 'e4m3' or None"),
                              ({"dtype": None}, "with scales q, k and v must be float8_e4m3fn, or uint8 and"),
                              ({"k": Stands((2, 2, 300, 128))}, "k has another dtype than q"),
                              ({"q_scale": Stands((2, 8), kind="<f2")}, "q_scale must be float32 without gaps"),
                              ({"q_scale": Stands((2, 8), (64, 8), kind="<f4")}, "q_scale must be float32 without gaps"),
                              ({"q_scale": Stands((2, 8, 1), kind="<f4")},
                               r"q_scale has shape \(2, 8, 1\); it must have one element, or be \(2, 8\)$"),
                              ({"k_scale": Stands((2, 8), kind="<f4")},
                               r"k_scale has shape \(2, 8\); it must have one element, or be \(2, 2\) or \(2, 2, 3\)"),
                              ({"v_scale": Stands((2, 2, 3), kind="<f4")}, "what shares a scale must be the same in both"),
                              ({"out": Stands((2, 8, 70, 128), kind="|u1")}, "float16, on its GPU"),
                              ({"out_scale": Stands((), kind="<f4")}, "of its dtype, on its GPU"),
                              ({"out_scale": Stands((2,), kind="<f4")}, "out_scale must be one float32, on q's GPU"),
                              ({"out_scale": Stands((), kind="<f2")}, "out_scale must be one float32, on q's GPU"),
                              ({f"{name}_scale": None for name in "qkv"} | {"out_scale": Stands((), kind="<f4")},
                               "out_scale goes with q_scale, k_scale and v_scale")):
            with self.assertRaisesRegex(ValueError, said):
                warpledger.sdpa(**self.given("head", **changed))
        given, cu = Exported((64, 8, 128), code=10, bits=8), Exported((3,), code=0, bits=32)
        with self.assertRaisesRegex(ValueError, "are E4M3 without scales"):
            warpledger.sdpa_varlen(given, given, given, cu, cu, 40, 40, out=given)
        self.assertEqual(self.library.problems, [])


@unittest.skipUnless(TORCH, "no PyTorch")
class Operators(WithOperatorsOnACpu):
    def of_e4m3(self, *shape):
        return self.torch.randn(shape).to(self.torch.float8_e4m3fn)

    def test_makes_float16_of_e4m3_as_its_fake_ones(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        torch = self.torch
        q, k = self.of_e4m3(2, 70, 8, 128).transpose(1, 2), self.of_e4m3(2, 2, 300, 128)
        for shapes, scopes in (([(), (1,), (1, 1)], (0, 0)), ([(2, 8), (2, 2), (2, 2)], (1, 1)),
                               ([(2, 8), (2, 2, 3), (2, 2, 3)], (1, 2))):
            scales = [torch.ones(shape) for shape in shapes]
            with FakeTensorMode() as mode:
                fakes = torch.ops.warpledger.sdpa_e4m3_lse(*(mode.from_tensor(each) for each in (q, k, k, *scales)))
            made = torch.ops.warpledger.sdpa_e4m3_lse(q, k, k, *scales)
            for fake, each in zip(fakes, made):
                self.assertEqual((each.shape, each.stride(), each.dtype), (fake.shape, fake.stride(), fake.dtype))
            self.assertEqual((made[0].dtype, made[0].stride()), (torch.float16, q.stride()))
            it = self.library.problems[-1]
            self.assertEqual((it.dtype, it.q_scale_scope, it.kv_scale_scope), (2, *scopes))
            self.assertEqual(self.library.scales[-1], tuple(each.data_ptr() for each in scales))
            out = self.ours.sdpa(q, k, k, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2], causal=True)
            self.assertEqual((out.dtype, self.library.problems[-1].causal), (torch.float16, 1))

    def test_makes_e4m3_with_a_scale_as_its_fake_ones(self):
        from torch._subclasses.fake_tensor import FakeTensorMode
        torch = self.torch
        for head_dim in 128, 256:
            q, k = self.of_e4m3(2, 70, 8, head_dim).transpose(1, 2), self.of_e4m3(2, 2, 300, head_dim)
            scales = [torch.ones(()) for _ in range(4)]
            with FakeTensorMode() as mode:
                fakes = [mode.from_tensor(each) for each in (q, k, k, *scales)]
                fakes = torch.ops.warpledger.sdpa_e4m3_lse(*fakes[:6], False, None, fakes[6])
            made = torch.ops.warpledger.sdpa_e4m3_lse(q, k, k, *scales[:3], False, None, scales[3])
            for fake, each in zip(fakes, made):
                self.assertEqual((each.shape, each.stride(), each.dtype), (fake.shape, fake.stride(), fake.dtype))
            self.assertEqual((made[0].dtype, made[0].stride()), (torch.float8_e4m3fn, q.stride()))
            self.assertEqual(self.library.problems[-1].o_dtype, 2)
            self.assertEqual(self.library.scales[-1], tuple(each.data_ptr() for each in scales))
            out = self.ours.sdpa(q, k, k, q_scale=scales[0], k_scale=scales[1], v_scale=scales[2], out_scale=scales[3])
            self.assertEqual(out.dtype, torch.float8_e4m3fn)

    def test_refuses_e4m3_in_words(self):
        q, one = self.of_e4m3(1, 2, 8, 128), self.torch.ones(())
        operators = self.torch.ops.warpledger
        with self.assertRaisesRegex(ValueError, "are E4M3 without scales"):
            operators.sdpa(q, q, q)
        with self.assertRaisesRegex(ValueError, "with scales q, k and v must be float8_e4m3fn"):
            operators.sdpa_e4m3(*[self.halves(1, 2, 8, 128)] * 3, one, one, one)
        with self.assertRaisesRegex(ValueError, "k_scale must be float32"):
            operators.sdpa_e4m3(q, q, q, one, one.double(), one)
        with self.assertRaisesRegex(ValueError, "out_scale must be one float32"):
            operators.sdpa_e4m3(q, q, q, one, one, one, False, None, one.double())
        with self.assertRaisesRegex(ValueError, "go together"):
            self.ours.sdpa(q, q, q, q_scale=one)
        self.assertIn("float16 or bfloat16", self.ours.why_not(q, q, q))

    def test_refuses_scales_that_ask_for_a_gradient(self):
        q = self.of_e4m3(1, 2, 8, 128)
        for operator in self.torch.ops.warpledger.sdpa_e4m3, self.torch.ops.warpledger.sdpa_e4m3_lse:
            for asks in range(4):
                scales = [self.torch.ones(()).requires_grad_(i == asks) for i in range(4)]
                with self.assertRaisesRegex(RuntimeError, "requires a gradient, and there is no backward"):
                    operator(q, q, q, *scales[:3], False, None, scales[3])
