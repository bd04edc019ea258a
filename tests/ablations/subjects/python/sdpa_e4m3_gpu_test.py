# SPDX-License-Identifier: Apache-2.0
"""warpledger.sdpa and its operator in E4M3 on a GPU, against FP64 of the dequantised inputs by PyTorch.

Skips, and runs with another interpreter, as sdpa_gpu_test.py does.
"""

import math
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from sdpa_gpu_test import WHY, half_ulp, mask, normal, reference, torch  # noqa: E402

KEYS = 128  # of a block
SCOPES = ("tensor", "tensor"), ("head", "tensor"), ("tensor", "head"), ("head", "head"), ("tensor", "block"), ("head", "block")


def quantise(values, scope):
    """(codes, scales, what they stand for) of (batch, heads, rows, head_dim)."""
    b, h, rows, d = values.shape
    most = torch.finfo(torch.float8_e4m3fn).max
    if scope == "tensor":
        scales = (values.abs().max() / most).reshape(1)
        each = scales.expand(b, h, rows)
    elif scope == "head":
        scales = values.abs().amax((2, 3)) / most
        each = scales[..., None].expand(b, h, rows)
    else:
        blocks = (rows + KEYS - 1) // KEYS
        whole = torch.nn.functional.pad(values, (0, 0, 0, blocks * KEYS - rows))
        scales = whole.reshape(b, h, blocks, KEYS, d).abs().amax((3, 4)) / most
        each = scales.repeat_interleave(KEYS, 2)[..., :rows]
    codes = (values / each[..., None]).clamp(-most, most).to(torch.float8_e4m3fn)
    return codes, scales.float().contiguous(), codes.double() * each[..., None].double()


def naive(q, k, v, causal):
    """(out, scores) as reference.h says: S in FP16, P in E4M3 and 2^8 times as large; sums in FP32."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (each.half().float() for each in (q, k, v))
    k, v = (each.repeat_interleave(group, dim=1) for each in (k, v))
    scores = (torch.matmul(q, k.transpose(2, 3)).half().float() / math.sqrt(q.shape[3])).half().float()
    if causal:
        mask(scores)
    most = scores.amax(3, keepdim=True).nan_to_num(neginf=0.0)
    raised = 256 * torch.exp(scores - most)
    out = torch.matmul(raised.to(torch.float8_e4m3fn).float(), v) / raised.sum(3, keepdim=True)
    return out.nan_to_num(0.0).half(), scores


def rounded_lse(q, k, scores):
    """Of those scores, each raised by 2^-13 of the sum of its products' magnitudes."""
    group = q.shape[1] // k.shape[1]
    magnitudes = torch.matmul(q.abs(), k.abs().repeat_interleave(group, dim=1).transpose(2, 3))
    return torch.logsumexp(scores.double() + magnitudes * (2.0 ** -13 / math.sqrt(q.shape[3])), dim=3)


@unittest.skipIf(WHY, WHY)
class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.generator = torch.Generator(device="cuda")
        self.generator.manual_seed(2)

    def make(self, b, hq, hk, sq, sk, scopes, layout="bhsd", head_dim=128):
        """([codes], [scales], [what they stand for]) of q, k and v."""
        made = []
        for (heads, rows), scope in zip(((hq, sq), (hk, sk), (hk, sk)), (scopes[0], scopes[1], scopes[1])):
            values = normal((b, heads, rows, head_dim), torch.float32, self.generator)
            steps = torch.arange(b * heads, device="cuda").reshape(b, heads, 1, 1) * 5 + \
                torch.arange(rows, device="cuda").reshape(1, 1, rows, 1) // KEYS * 3
            codes, scales, stand_for = quantise(values * 2.0 ** -(steps % 4), scope)
            if layout == "bshd":
                codes = codes.transpose(1, 2).contiguous().transpose(1, 2)
            made.append((codes, scales, stand_for))
        return [list(each) for each in zip(*made)]

    def right(self, out, lse, q, k, v, causal):
        """By the rule of ablations/subjects/sdpa/correctness.h."""
        expected, expected_lse = reference(q, k, v, causal, None)
        self.assertEqual(out.dtype, torch.float16)
        self.assertTrue(torch.isfinite(out).all())
        unseen = torch.isneginf(expected_lse)
        self.assertEqual(int(torch.count_nonzero(out[unseen])), 0)
        theirs_out, scores = naive(q, k, v, causal)
        ours, theirs = ((each.double() - expected).abs() for each in (out, theirs_out))
        self.assertLessEqual(float(ours.max()), 2 * float(theirs.max()) + half_ulp(torch.float16, expected))
        self.assertLessEqual(float(ours.mean()), 1.5 * float(theirs.mean()))
        if lse is not None:
            self.assertTrue(torch.equal(torch.isneginf(lse), unseen))
            seen = expected_lse[~unseen]
            limit = 2 * 2 ** -18 * max(1.0, float(seen.abs().max()))
            limit += 2 * float((rounded_lse(q, k, scores)[~unseen] - seen).abs().max())
            self.assertLessEqual(float((lse.double()[~unseen] - seen).abs().max()), limit)

    def test_many_problems_scopes_and_layouts(self):
        import warpledger as wl
        draw = random.Random(4)
        for i in range(72):
            hk = draw.choice((1, 2, 3, 8))
            b, hq = draw.choice((1, 1, 2, 4)), hk * draw.choice((1, 1, 2, 3, 8))
            sk = draw.randint(20, 1500)
            sq = draw.choice((1, draw.randint(20, 300), sk))
            # The rule compares two means of errors, which a few rows leave to chance.
            sizes = (64 if sq == 1 else b), hq, hk
            causal, layout, scopes = i % 2 == 0, ("bhsd", "bshd")[i // 2 % 2], SCOPES[i % len(SCOPES)]
            head_dim = draw.choice((64, 128, 256))
            if causal and sq > sk:
                layout = "bhsd"  # rows that see no key are stored without gaps alone
            with self.subTest(f"{sizes}, {sq} queries, {sk} keys, {head_dim=}, {causal=}, {layout}, {scopes}"):
                codes, scales, stand_for = self.make(*sizes, sq, sk, scopes, layout, head_dim)
                given = dict(zip(("q_scale", "k_scale", "v_scale"), scales))
                out, lse = wl.sdpa(*codes, causal=causal, return_lse=True, **given)
                self.right(out, lse, *stand_for, causal)
                as_bytes = [each.view(torch.uint8) for each in codes]
                self.assertTrue(torch.equal(wl.sdpa(*as_bytes, causal=causal, dtype="e4m3", **given), out))
                by_rows = wl.sdpa(*(each.transpose(1, 2) for each in codes), causal=causal, layout="bshd", **given)
                self.assertTrue(torch.equal(by_rows.transpose(1, 2), out))

    def test_writes_e4m3_with_a_scale(self):
        """The codes nearest to what it writes in float16, which was rounded before; at most 448."""
        from warpledger.torch import sdpa
        import warpledger as wl
        names = "q_scale", "k_scale", "v_scale"
        for head_dim in 64, 128, 256:
            for layout, causal in ("bhsd", True), ("bshd", False):
                codes, scales, _ = self.make(2, 8, 2, 200, 700, ("head", "head"), layout, head_dim)
                given = dict(zip(names, scales)) | {"causal": causal}
                expected = wl.sdpa(*codes, **given).float()
                for most in 448, 1792:
                    scale = expected.abs().max() / most
                    numbers = (expected / scale).clamp(-448, 448)
                    out = wl.sdpa(*codes, **given, out_scale=scale)
                    self.assertEqual((out.dtype, out.stride()), (torch.float8_e4m3fn, codes[0].stride()))
                    rounded_before = (expected.abs() * 2.0 ** -11).clamp(min=2.0 ** -25) / scale
                    largest = (numbers.abs() + rounded_before).clamp(min=2.0 ** -6)
                    steps = 2.0 ** (torch.log2(largest).floor() - 3)
                    self.assertTrue(((out.float() - numbers).abs() <= 0.501 * steps + rounded_before).all())
                    by_operator = sdpa(*codes, **given, out_scale=scale)
                    self.assertTrue(torch.equal(by_operator.view(torch.uint8), out.view(torch.uint8)))

    def test_the_operator_is_the_same_and_passes_pytorchs_own_checks(self):
        from warpledger.torch import sdpa
        import warpledger as wl
        for scopes in SCOPES:
            codes, scales, _ = self.make(2, 8, 2, 100, 300, scopes, "bshd")
            for operator in torch.ops.warpledger.sdpa_e4m3.default, torch.ops.warpledger.sdpa_e4m3_lse.default:
                # test_schema multiplies its inputs, which PyTorch 2.11 can't for E4M3.
                for out_scale in ((), (torch.full((), 0.01, device="cuda"),)) if "block" not in scopes else ((),):
                    torch.library.opcheck(operator, (*codes, *scales, True, None, *out_scale),
                                          test_utils=("test_faketensor",))
            given = dict(zip(("q_scale", "k_scale", "v_scale"), scales))
            out, lse = sdpa(*codes, causal=True, return_lse=True, **given)
            expected, expected_lse = wl.sdpa(*codes, causal=True, return_lse=True, **given)
            self.assertTrue(torch.equal(out, expected) and torch.equal(lse, expected_lse))

    def test_a_graph_follows_new_inputs_and_scales(self):
        from warpledger.torch import sdpa
        names = "q_scale", "k_scale", "v_scale"
        for scopes in SCOPES:
            codes, scales, _ = self.make(1, 8, 2, 200, 700, scopes)
            sdpa(*codes, **dict(zip(names, scales)))  # loads its code
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out, lse = sdpa(*codes, return_lse=True, **dict(zip(names, scales)))
            fresh_codes, fresh_scales, stand_for = self.make(1, 8, 2, 200, 700, scopes)
            for each, fresh in zip((*codes, *scales), (*fresh_codes, *fresh_scales)):
                each.copy_(fresh)
            graph.replay()
            torch.cuda.synchronize()
            self.right(out, lse, *stand_for, False)

    def test_a_graph_follows_a_new_scale_of_its_output(self):
        from warpledger.torch import sdpa
        codes, scales, _ = self.make(1, 8, 2, 200, 700, ("head", "head"))
        scale = torch.full((), 0.01, device="cuda")
        given = dict(zip(("q_scale", "k_scale", "v_scale", "out_scale"), (*scales, scale)))
        sdpa(*codes, **given)  # loads its code
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = sdpa(*codes, **given)
        for value in 0.01, 0.003:
            scale.fill_(value)
            graph.replay()
            self.assertTrue(torch.equal(out.view(torch.uint8), sdpa(*codes, **given).view(torch.uint8)))

    def test_refuses_in_python(self):
        import warpledger as wl
        codes, scales, _ = self.make(1, 4, 2, 64, 64, ("head", "head"))
        given = dict(zip(("q_scale", "k_scale", "v_scale"), scales))
        with self.assertRaisesRegex(NotImplementedError, "head_dim is 64, 128 or 256"):
            wl.sdpa(*(each[..., :96].contiguous() for each in codes), **given)
        with self.assertRaisesRegex(ValueError, "E4M3 without scales"):
            wl.sdpa(*codes)
        with self.assertRaisesRegex(ValueError, "go together"):
            wl.sdpa(*codes, q_scale=scales[0])
        with self.assertRaisesRegex(ValueError, "k_scale has shape"):
            wl.sdpa(*codes, **given | {"k_scale": scales[0]})
        with self.assertRaisesRegex(ValueError, "the row stride of q is 136"):
            room = torch.zeros(1, 4, 64, 136, dtype=torch.uint8, device="cuda").view(torch.float8_e4m3fn)
            wl.sdpa(room[..., :128], *codes[1:], **given)
