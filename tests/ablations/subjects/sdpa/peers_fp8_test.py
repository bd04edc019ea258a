# SPDX-License-Identifier: Apache-2.0
"""ablations/subjects/sdpa/peers: cuDNN's FP8 attention, on a PyTorch and a cuDNN made of NumPy."""

import math
import types
import unittest
from unittest import mock

import numpy

from peers_request import SHAPE, peer_arms, peer_fp8, peer_libraries, peer_rules, request
from peers_run_test import FakeTorch, Tensor, run_on

# NumPy has no FP8: a type that rounds as E4M3 does, and holds the numbers in fp32.
E4M3 = numpy.dtype(numpy.float32, metadata={"rounds": "e4m3"})


def e4m3(values):
    """The nearest numbers of E4M3, ties to even; NaN beyond the largest, as PyTorch converts."""
    values = numpy.asarray(values, numpy.float64)
    exponent = numpy.maximum(numpy.frexp(values)[1] - 1, -6)
    rounded = numpy.ldexp(numpy.rint(numpy.ldexp(values, 3 - exponent)), exponent - 3)
    return numpy.where(abs(rounded) > 448, numpy.nan, rounded).astype(numpy.float32)


class Fp8Tensor(Tensor):
    """What the FP8 peer's inputs and its reference need beside."""

    def _cast(self, dtype):
        if dtype is E4M3:
            return Fp8Tensor(e4m3(self.array))
        return Fp8Tensor(self.array.astype(dtype))

    def amax(self, dim, keepdim):
        return Fp8Tensor(self.array.max(axis=dim, keepdims=keepdim))

    def sum(self, dim, keepdim):
        return Fp8Tensor(self.array.sum(axis=dim, keepdims=keepdim))

    def clamp(self, low, high):
        return Fp8Tensor(self.array.clip(low, high))

    def __truediv__(self, by):
        by = by.array if isinstance(by, Tensor) else by
        return Fp8Tensor((self.array / by).astype(self.array.dtype))


def fp8(method):
    def made(self, *args):
        return Fp8Tensor(method(self, *args).array)
    return made


for name in ("T", "__getitem__", "__matmul__", "__mul__", "__sub__", "masked_fill", "abs"):
    given = getattr(Tensor, name)
    setattr(Fp8Tensor, name, property(fp8(given.fget)) if name == "T" else fp8(given))


def attention(given, causal):
    """cuDNN's: of codes and scales to codes, by another path than the reference's. `given`: arrays."""
    q, k, v = (given[name].astype(numpy.float64) * given[f"descale_{name}"].item() for name in "qkv")
    out = numpy.empty(q.shape)
    group = q.shape[1] // k.shape[1]
    for b, h, i in numpy.ndindex(*q.shape[:3]):
        keys, values = (t[b, h // group][:i + 1 if causal else None] for t in (k, v))
        scores = keys @ q[b, h, i] * given["attn_scale"]
        weights = numpy.exp(scores - scores.max())
        rounded = e4m3(weights * given["scale_s"].item()).astype(float) * given["descale_s"].item()
        out[b, h, i] = rounded @ values / weights.sum()
    return e4m3((out * given["scale_o"].item()).clip(-448, 448))


class FakeCudnn:
    """The front end: one graph of one operation. `attend` is what the kernel computes."""

    def __init__(self, torch, attend=attention):
        self.torch, self.attend, self.streams, self.graphs = torch, attend, [], []
        self.data_type = types.SimpleNamespace(FP8_E4M3="e4m3", FLOAT="fp32")
        self.heur_mode = types.SimpleNamespace(A="A", FALLBACK="fallback")

    def backend_version(self):
        return 91900

    def create_handle(self):
        return "the handle"

    def set_stream(self, handle, stream):
        self.streams.append(stream)

    def pygraph(self, **types_and_handle):
        self.graphs.append(FakeGraph(self, **types_and_handle))
        return self.graphs[-1]


class FakeGraph:
    def __init__(self, cudnn, io_data_type, intermediate_data_type, compute_data_type, handle):
        self.cudnn, self.tensors, self.handle, self.built = cudnn, {}, handle, False

    def tensor(self, name, dim, stride, data_type):
        self.tensors[name] = FakeOutput()
        self.tensors[name].dim, self.tensors[name].stride = dim, stride
        self.tensors[name].data_type = data_type
        return self.tensors[name]

    def sdpa_fp8(self, attn_scale, use_causal_mask, generate_stats, **tensors):
        assert tensors == self.tensors and not generate_stats
        self.attn_scale, self.causal = attn_scale, use_causal_mask
        self.out, self.unread = FakeOutput(), [FakeOutput(), FakeOutput()]
        return [self.out, None, *self.unread]

    def build(self, heuristics):
        self.built = True

    def get_workspace_size(self):
        return 0

    def execute(self, buffers, workspace, handle):
        assert self.built and handle == self.handle
        given = {name: buffers[tensor] for name, tensor in self.tensors.items()}
        for name, buffer in given.items():
            assert list(buffer.shape) == self.tensors[name].dim, name
        out, torch = buffers[self.out], self.cudnn.torch

        def compute():
            torch.clock_us += torch.us_per_call
            arrays = {name: buffer.array for name, buffer in given.items()}
            out.array[...] = self.cudnn.attend({**arrays, "attn_scale": self.attn_scale}, self.causal)

        if torch.capturing is not None:
            torch.capturing.calls.append(compute)
        else:
            compute()


class FakeOutput:
    def set_output(self, is_output):
        self.is_output = is_output
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self

    def set_data_type(self, data_type):
        self.data_type = data_type
        return self


def torch_with_fp8():
    torch = FakeTorch(us_per_call=1000.0)
    torch.float8_e4m3fn, torch.uint8 = E4M3, numpy.uint8
    torch.exp = lambda tensor: Fp8Tensor(numpy.exp(tensor.array))
    torch.full = lambda shape, value, dtype, device: Fp8Tensor(numpy.full(shape, value, dtype))
    torch.empty = lambda shape, dtype, device: Fp8Tensor(numpy.full(shape, 0, dtype))
    torch.ones = lambda shape, dtype, device: Fp8Tensor(numpy.ones(shape, dtype))
    torch.randn = lambda shape, generator, device, dtype: Fp8Tensor(
        torch.random.standard_normal(shape).astype(dtype))
    return torch


LONG = {**SHAPE, "seq_q": 24, "seq_kv": 96, "head_dim": 64}
SQUARE = {**LONG, "seq_kv": 24, "causal": True}


class CuDnnFp8Test(unittest.TestCase):
    def found(self, shape=LONG, attend=attention, package=True):
        """peers.json's entry, what was timed, and the front end."""
        torch = torch_with_fp8()
        cudnn = FakeCudnn(torch, attend)
        asked = request(shapes=[shape], peers=["cudnn_fp8"], input_sets=2, blocks=1)
        with mock.patch.dict("sys.modules", {"cudnn": cudnn if package else None}):
            (found,), samples = run_on(torch, asked)
        return found, {sample["arm"] for sample in samples}, cudnn

    def refused(self, attend, shape=LONG):
        found, timed, _ = self.found(shape, attend)
        self.assertFalse(found["checks"][0]["correct"], found)
        self.assertEqual((found["reason"], timed), ("tiny: incorrect, so not timed", set()))

    def test_codes_that_are_right_pass_for_each_mask_and_each_head_dim(self):
        for changes in ({}, {"heads_q": 4}, {"head_dim": 128}, {"head_dim": 256}):
            for shape in (LONG, SQUARE):
                with self.subTest(causal=shape["causal"], **changes):
                    found, timed, _ = self.found({**shape, **changes})
                    self.assertEqual((found["reason"], timed), ("", {"peer:cudnn_fp8"}))
                    self.assertTrue(found["checks"][0]["correct"])

    def test_its_versions_are_those_of_the_front_end_and_of_what_that_has_loaded(self):
        with mock.patch.object(peer_libraries, "version_of", lambda name: [f"{name} 1.32.0"]):
            found, _, _ = self.found()
        self.assertEqual(found["version"], "torch 2.11.0+cu130, nvidia-cudnn-frontend 1.32.0, cuDNN 9.19.0")

    def test_only_codes_and_scales_go_in_and_only_codes_come_out(self):
        _, _, cudnn = self.found()
        graph, = cudnn.graphs
        self.assertEqual({name: tensor.data_type for name, tensor in graph.tensors.items()}, {
            **dict.fromkeys("qkv", "e4m3"), **dict.fromkeys(peer_libraries.CuDnnFp8.SCALARS, "fp32")})
        self.assertTrue(graph.out.is_output)
        self.assertEqual((graph.out.data_type, graph.out.dim, graph.out.stride),
                         ("e4m3", [1, 2, 24, 64], [3072, 1536, 64, 1]))
        self.assertEqual([unread.is_output for unread in graph.unread], [False, False])

    def test_quantising_comes_before_the_calls_and_is_part_of_none(self):
        quantised = []

        class Counted(peer_fp8.Quantised):
            def __init__(self, torch, tensor):
                quantised.append(torch.clock_us)
                super().__init__(torch, tensor)
        with mock.patch.object(peer_fp8, "Quantised", Counted):
            self.found()
        self.assertEqual(quantised, [0.0] * 6)  # q, k and v of two sets, before any call

    def test_a_tile_of_keys_that_is_left_out_fails(self):
        def drops(given, causal):
            return attention({**given, "k": given["k"][:, :, :-16], "v": given["v"][:, :, :-16]}, causal)
        self.refused(drops)

    def test_a_scale_that_is_off_by_a_tenth_fails(self):
        for name in ("descale_v", "descale_q", "descale_s", "scale_s", "scale_o"):
            for factor in (1.1, 1 / 1.1):
                with self.subTest(name, factor=factor):
                    self.refused(lambda given, causal, name=name, factor=factor: attention(
                        {**given, name: given[name] * factor}, causal))

    def test_a_mask_that_is_forgotten_fails(self):
        self.refused(lambda given, causal: attention(given, False), SQUARE)

    def test_a_head_that_is_another_ones_fails(self):
        self.refused(lambda given, causal: attention({**given, "v": given["v"][:, ::-1]}, causal))

    def test_a_graph_that_reads_inputs_of_before_fails(self):
        first = {}

        def reads_what_it_saw_first(given, causal):
            return attention({**given, **first.setdefault("set", {name: given[name] for name in "qkv"})}, causal)
        self.refused(reads_what_it_saw_first)

    def test_new_codes_in_the_buffers_of_a_call_change_what_a_replay_writes(self):
        torch, arms = torch_with_fp8(), []
        prepare = peer_arms.ShapeInputs.prepare

        def keeps(inputs, peer):
            arms.append(prepare(inputs, peer))
            return arms[-1]
        with (mock.patch.dict("sys.modules", {"cudnn": FakeCudnn(torch)}),
              mock.patch.object(peer_arms.ShapeInputs, "prepare", keeps)):
            run_on(torch, request(shapes=[LONG], peers=["cudnn_fp8"], input_sets=1, blocks=1))
        arm, = arms
        (buffers, out), = arm._sets
        before = out.array.copy()
        buffers[arm._taken["v"]].array *= -1
        arm._graph.replay()
        numpy.testing.assert_array_equal(out.array, -before)

    def test_it_says_what_it_does_not_take(self):
        for changes, why in (({"dtype": "bf16"}, "FP8 variants, whose problems are in fp16"),
                             ({"head_dim": 96}, "head_dim 64, 128, 256"),
                             ({"causal": True}, "aligns the causal mask to the top left")):
            found, timed, cudnn = self.found({**LONG, **changes})
            self.assertIn(why, found["reason"])
            self.assertEqual((found["available"], timed, cudnn.graphs), (False, set(), []))

    def test_where_the_package_is_missing_the_reason_says_what_to_get(self):
        found, timed, _ = self.found(package=False)
        self.assertRegex(found["reason"], "^tiny: cudnn can't be loaded: .*; it is the package "
                         "nvidia-cudnn-frontend$")
        self.assertEqual((found["version"], timed), ("torch 2.11.0+cu130", set()))


class RuleTest(unittest.TestCase):
    def test_half_a_step_of_e4m3(self):
        for value, step in ((448.0, 32), (1.0, 0.125), (0.3, 0.03125), (2.0**-9, 2.0**-9), (0.0, 2.0**-9)):
            self.assertEqual(peer_rules.half_ulp(value, "e4m3"), step / 2)

    def test_the_step_that_no_output_escapes_is_in_the_outputs_unit(self):
        errors = {"max_err": 0.0, "mean_err": 0.0, "naive_max_err": 0.0, "naive_mean_err": 0.0,
                  "max_ref": 4.48}
        self.assertAlmostEqual(peer_rules.judge("a", [errors], "e4m3", 0.01)["max_err_limit"], 0.16)
        self.assertAlmostEqual(peer_rules.judge("a", [{**errors, "max_ref": 448.0}], "e4m3")["max_err_limit"], 16)

    def test_a_tensors_largest_magnitude_is_the_largest_code(self):
        tensor = Fp8Tensor(numpy.array([[0.5, -7.0], [3.0, 0.001]], numpy.float16))
        quantised = peer_fp8.Quantised(torch_with_fp8(), tensor)
        self.assertEqual(quantised.codes.array.min(), -448)
        self.assertAlmostEqual(quantised.descale.item(), 7 / 448)
        self.assertTrue((abs(quantised.numbers().array - tensor.array) <= abs(tensor.array) / 16 + 1e-4).all())

    def test_small_probabilities_of_the_yardstick_do_not_round_to_zero(self):
        # One key has nearly all of the weight, and the others 2^-12 each: less than E4M3 has.
        keys = 64
        k = numpy.zeros((keys, 4))
        k[0, 0] = 12 * math.log(2) * 2  # a score of 12 ln 2, as head_dim is 4
        v = numpy.ones((keys, 4))
        v[0] = 0
        shape = {**SHAPE, "batch": 1, "heads_q": 1, "heads_kv": 1, "seq_q": 1, "seq_kv": keys, "head_dim": 4}
        inputs = types.SimpleNamespace(torch=torch_with_fp8(), shape=shape, references=[None], sets=[tuple(
            Fp8Tensor(each.reshape(1, 1, -1, 4).astype(numpy.float16))
            for each in (numpy.array([[1.0, 0, 0, 0]]), k, v))])
        (reference, errors), = peer_fp8.Fp8Inputs(inputs).references
        self.assertLess(errors["naive_max_err"], 0.05 * abs(reference.array).max())

