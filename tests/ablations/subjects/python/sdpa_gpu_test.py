# SPDX-License-Identifier: Apache-2.0
"""warpledger.sdpa and its PyTorch operator on a GPU, against the same formula in FP64 by PyTorch.

Without PyTorch, a GPU of compute capability 8.0 or newer or the library, all cases skip. With another interpreter than
the build's:

    WARPLEDGER_SDPA_LIBRARY=build-library/library/libwarpledger_sdpa.so \\
        python3 -m unittest -v tests/ablations/subjects/python/sdpa_gpu_test.py
"""

import math
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[4] / "ablations/subjects/python"))

try:
    import torch
except ImportError:
    torch = None

COUNT = int(os.environ.get("WARPLEDGER_SDPA_PROBLEMS", "240"))
LAYOUTS = ("bhsd", "bshd", "packed", "cache", "heads_view", "permuted")


def lacking():
    if torch is None:
        return "no PyTorch"
    if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
        return "no GPU of compute capability 8.0 or newer"
    from warpledger import attention
    try:
        attention.library()
    except (FileNotFoundError, OSError) as error:
        return str(error)
    return None


WHY = lacking()


def normal(shape, dtype, generator):
    return torch.randn(shape, dtype=torch.float32, device="cuda", generator=generator).to(dtype)


def tensors(p, generator):
    """q, k, v as (batch, heads, seq, head_dim), lying as the problem's layout says."""
    b, hq, hk, sq, sk, d, dtype = (p[name] for name in ("b", "hq", "hk", "sq", "sk", "d", "dtype"))
    if p["layout"] == "bshd":
        return [normal((b, s, h, d), dtype, generator).transpose(1, 2) for h, s in ((hq, sq), (hk, sk), (hk, sk))]
    if p["layout"] == "packed":  # a product's columns: Q's heads, K's, V's
        rows = normal((b, max(sq, sk), hq + 2 * hk, d), dtype, generator).transpose(1, 2)
        return rows[:, :hq, :sq], rows[:, hq:hq + hk, :sk], rows[:, hq + hk:, :sk]
    if p["layout"] == "cache":  # the first rows of longer ones
        return [normal((b, h, s + 37, d), dtype, generator)[:, :, :s] for h, s in ((hq, sq), (hk, sk), (hk, sk))]
    if p["layout"] == "heads_view":  # K and V from one tensor, every other head
        pair = normal((b, 2 * hk, sk, d), dtype, generator)
        return normal((b, hq, sq, d), dtype, generator), pair[:, ::2], pair[:, 1::2]
    if p["layout"] == "permuted":  # rows outermost, as (seq, batch, heads, head_dim)
        return [normal((s, b, h, d), dtype, generator).permute(1, 2, 0, 3)
                for h, s in ((hq, sq), (hk, sk), (hk, sk))]
    return [normal((b, h, s, d), dtype, generator) for h, s in ((hq, sq), (hk, sk), (hk, sk))]


def problems(count, seed=7):
    draw = random.Random(seed)
    made = []
    while len(made) < count:
        i = len(made)
        group = draw.choice((1, 1, 2, 3, 4, 5, 7, 8, 16))
        p = {"b": draw.choice((1, 1, 2, 3, 4, 7, 16, 64)), "hk": draw.choice((1, 2, 3, 8)), "d": draw.choice((64, 128, 256)),
             "dtype": (torch.float16, torch.bfloat16)[i % 2], "causal": draw.random() < 0.5,
             "layout": LAYOUTS[i % len(LAYOUTS)], "scale": draw.choice((None, None, 0.03, 0.3))}
        p["hq"] = p["hk"] * group
        kind = draw.choice(("prompt", "prompt", "decode", "few", "other", "small"))
        p["sk"] = draw.randint(1, 300) if kind == "small" else draw.randint(1, 3000)
        p["sq"] = {"decode": 1, "few": draw.randint(2, 16), "other": draw.randint(1, 400)}.get(kind, p["sk"])
        if p["b"] * p["hq"] * p["sq"] * p["sk"] <= 1 << 27:  # 1 GB of scores in FP64
            made.append(p)
    return made


def mask(scores):
    rows, keys = scores.shape[2:]
    seen = torch.ones(rows, keys, dtype=torch.bool, device=scores.device).tril(keys - rows)
    scores.masked_fill_(~seen, -math.inf)


def reference(q, k, v, causal, scale):
    """(out, lse) in FP64."""
    group = q.shape[1] // k.shape[1]
    k, v = (each.double().repeat_interleave(group, dim=1) for each in (k, v))
    scores = torch.matmul(q.double(), k.transpose(2, 3)).mul_(scale or 1 / math.sqrt(q.shape[3]))
    if causal:
        mask(scores)
    lse = torch.logsumexp(scores, dim=3)
    probabilities = torch.exp(scores - lse[..., None].nan_to_num(neginf=0.0))
    return torch.matmul(probabilities, v), lse


def naive(q, k, v, causal, scale):
    """The same with S, S * scale, P and O rounded to the dtype; sums in FP32."""
    group = q.shape[1] // k.shape[1]
    k, v = (each.float().repeat_interleave(group, dim=1) for each in (k, v))
    scores = torch.matmul(q.float(), k.transpose(2, 3)).to(q.dtype)
    scores = (scores.float() * (scale or 1 / math.sqrt(q.shape[3]))).to(q.dtype).float()
    if causal:
        mask(scores)
    # A row that sees no key would be NaN.
    return torch.matmul(torch.softmax(scores, dim=3).nan_to_num_(0.0).to(q.dtype).float(), v).to(q.dtype)


def half_ulp(dtype, expected):
    """Of the dtype at the largest output."""
    largest = max(float(expected.abs().max()), torch.finfo(dtype).tiny)
    return torch.finfo(dtype).eps * 2.0 ** math.floor(math.log2(largest)) / 2


def name_of(p):
    return " ".join(f"{key}={value}" for key, value in p.items())


@unittest.skipIf(WHY, WHY)
class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.generator = torch.Generator(device="cuda")
        self.generator.manual_seed(1)

    def right(self, out, lse, q, k, v, causal, scale):
        """By the rule of ablations/subjects/sdpa/correctness.h. Returns each error over its limit."""
        expected, expected_lse = reference(q, k, v, causal, scale)
        self.assertTrue(torch.isfinite(out).all())
        unseen = torch.isneginf(expected_lse)
        self.assertEqual(int(torch.count_nonzero(out[unseen])), 0)
        ours = (out.double() - expected).abs()
        theirs = (naive(q, k, v, causal, scale).double() - expected).abs()
        found = {"largest": float(ours.max()) / (2 * float(theirs.max()) + half_ulp(q.dtype, expected)),
                 "mean": float(ours.mean()) / (1.5 * float(theirs.mean())) if float(ours.mean()) else 0.0}
        if lse is not None:
            self.assertTrue(torch.equal(torch.isneginf(lse), unseen))
            seen = expected_lse[~unseen]
            if seen.numel():
                limit = 2 ** -18 * max(1, q.shape[3] // 64) * max(1.0, float(seen.abs().max()))
                found["lse"] = float((lse.double()[~unseen] - seen).abs().max()) / limit
        for name, ratio in found.items():
            self.assertLessEqual(ratio, 1, name)
        return found

    def test_many_problems_and_layouts(self):
        import warpledger as wl
        kernels, worst, done = {}, {}, 0
        for p in problems(COUNT):
            with self.subTest(name_of(p)):
                q, k, v = tensors(p, self.generator)
                out, lse = wl.sdpa(q, k, v, causal=p["causal"], scale=p["scale"], return_lse=True)
                for error, ratio in self.right(out, lse, q, k, v, p["causal"], p["scale"]).items():
                    worst[error] = max(worst.get(error, (0, "")), (ratio, name_of(p)))
                by_rows = wl.sdpa(*(each.transpose(1, 2) for each in (q, k, v)), causal=p["causal"], scale=p["scale"],
                                  layout="bshd")
                self.assertTrue(torch.equal(by_rows.transpose(1, 2), out))
                made = plan_of(q, k, v, out, p["causal"], p["scale"])
                kernels[made.kernel, made.launches > 1] = kernels.get((made.kernel, made.launches > 1), 0) + 1
                done += 1
        print(f"{done} problems right; kernels (name, several launches): {kernels}")
        for error, (ratio, problem) in worst.items():
            print(f"the largest {error} error over its limit: {ratio:.3f}, of {problem}", flush=True)

    def test_out_may_be_given_with_strides_and_what_lies_between_stays(self):
        import warpledger as wl
        for d in 64, 128, 256:
            for b in 1, 3:
                q, k, v = (normal((b, 200, 8, d), torch.float16, self.generator).transpose(1, 2) for _ in range(3))
                room = torch.full((b, 200, 8 + 3, d + 8), 7.0, dtype=torch.float16, device="cuda")
                out = room[:, :, :8, :d].transpose(1, 2)
                self.assertIs(wl.sdpa(q, k, v, out=out, causal=True), out)
                self.right(out, None, q, k, v, True, None)  # O alone
                self.assertTrue((room[:, :, 8:] == 7).all() and (room[..., d:] == 7).all())

    def test_packed_sequences(self):
        """Ragged, of no query, of no key, of NaN beside others; as slices of a packed product too."""
        import warpledger as wl
        draw = random.Random(3)
        for i in range(24):
            d, causal, sliced = (64, 128, 256)[i % 3], i % 2 == 0, i % 4 > 1
            dtype = (torch.float16, torch.bfloat16)[i // 2 % 2]
            hk = draw.choice((1, 2, 3, 8))
            hq = hk * draw.choice((1, 2, 4))
            lengths = [(draw.randint(0, 500), draw.randint(0, 900)) for _ in range(draw.randint(1, 9))]
            lengths += [(40, 40), (130, 0), (0, 7), (64, 300)]
            if sliced:
                lengths = [(rows, rows) for rows, _ in lengths]
            ends_q, ends_k = ([sum(each[j] for each in lengths[:n]) for n in range(len(lengths) + 1)] for j in (0, 1))
            cu_q, cu_k = (torch.tensor(ends, dtype=torch.int32, device="cuda") for ends in (ends_q, ends_k))
            if sliced:
                product = normal((ends_q[-1] + 9, hq + 2 * hk, d), dtype, self.generator)
                q, k, v = product.split((hq, hk, hk), dim=1)
            else:
                q, k, v = (normal((rows + 9, heads, d), dtype, self.generator)
                           for rows, heads in ((ends_q[-1], hq), (ends_k[-1], hk), (ends_k[-1], hk)))
            foreign = len(lengths) - 5  # between others
            for each, ends in (q, ends_q), (k, ends_k), (v, ends_k):
                each[ends[foreign]:ends[foreign + 1]] = math.nan
                each[ends[-1]:] = math.inf
            out = torch.full((q.shape[0], hq, d), 7.0, dtype=dtype, device="cuda")
            longest = [max(each[j] for each in lengths) for j in (0, 1)]
            same, lse = wl.sdpa_varlen(q, k, v, cu_q, cu_k, *longest, causal=causal, return_lse=True, out=out)
            self.assertIs(same, out)
            self.assertTrue((out[ends_q[-1]:] == 7).all())
            for n, (rows, keys) in enumerate(lengths):
                if n == foreign or rows == 0:
                    continue
                at_q, at_k = slice(ends_q[n], ends_q[n + 1]), slice(ends_k[n], ends_k[n + 1])
                with self.subTest(f"problem {i}, {lengths[n]}, d{d}, {hq} on {hk} heads, causal={causal}"):
                    mine = out[at_q].transpose(0, 1)[None]
                    if keys == 0:
                        self.assertEqual(int(torch.count_nonzero(mine)), 0)
                        self.assertTrue(torch.isneginf(lse[:, at_q]).all())
                        continue
                    one = [each[at].transpose(0, 1)[None] for each, at in ((q, at_q), (k, at_k), (v, at_k))]
                    self.right(mine, lse[:, at_q][None], *one, causal, None)

    def test_a_graph_follows_new_lengths(self):
        import warpledger.torch  # noqa: F401
        sequences = [[300, 20, 700, 0, 64], [64, 64, 500, 400, 56]]
        cus = [torch.tensor([0, *each], device="cuda").cumsum(0, dtype=torch.int32) for each in sequences]
        q, k, v = (normal((1084, 4, 128), torch.float16, self.generator) for _ in range(3))
        varlen = torch.ops.warpledger.sdpa_varlen
        cu = cus[0].clone()
        expected = [varlen(q, k, v, each, each, 700, 700, True) for each in cus]
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = varlen(q, k, v, cu, cu, 700, 700, True)
        for each, right in zip(cus, expected):
            cu.copy_(each)
            graph.replay()
            self.assertTrue(torch.equal(out, right))
        torch.library.opcheck(varlen.default, (q, k, v, cu, cu, 700, 700, True, None),
                              test_utils=("test_schema", "test_faketensor"))

    def test_refuses_packed_sequences_in_python(self):
        import warpledger as wl
        q = normal((100, 4, 64), torch.float16, self.generator)
        cu = torch.tensor([0, 40, 100], dtype=torch.int32, device="cuda")
        for change, said in (({"cu_seqlens_q": cu.long()}, "must be .batch . 1. int32"),
                             ({"cu_seqlens_q": cu[:2]}, "has 2 values and cu_seqlens_k 3"),
                             ({"k": q[:, :3], "v": q[:, :3]}, "multiple of key/value heads"),
                             ({"q": q[None]}, "not 3"), ({"scale": 0}, "above 0")):
            given = {"q": q, "k": q, "v": q, "cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 60,
                     "max_seqlen_k": 60} | change
            with self.assertRaisesRegex(ValueError, said):
                wl.sdpa_varlen(**given)

    def test_refuses_in_python(self):
        import warpledger as wl
        q = normal((2, 4, 64, 64), torch.float16, self.generator)
        with self.assertRaisesRegex(ValueError, "another dtype"):
            wl.sdpa(q, q.bfloat16(), q)
        with self.assertRaisesRegex(ValueError, "not 4"):
            wl.sdpa(q[0], q[0], q[0])
        with self.assertRaisesRegex(ValueError, "float16 or bfloat16"):
            wl.sdpa(*[q.float()] * 3)
        with self.assertRaisesRegex(ValueError, "multiple of key/value heads"):
            wl.sdpa(q, q[:, :3], q[:, :3])
        with self.assertRaisesRegex(ValueError, "side by side"):
            wl.sdpa(q.transpose(2, 3), q, q)
        with self.assertRaisesRegex(ValueError, "not 16-byte aligned"):
            wl.sdpa(normal((1, 4, 64, 128), torch.float16, self.generator)[..., 4:68], q[:1], q[:1])
        with self.assertRaisesRegex(ValueError, "the row stride of q is 68"):
            wl.sdpa(normal((2, 4, 64, 68), torch.float16, self.generator)[..., :64], q, q)
        with self.assertRaisesRegex(NotImplementedError, "head_dim is 64, 128 or 256"):
            wl.sdpa(*[normal((1, 1, 8, 80), torch.float16, self.generator)] * 3)
        with self.assertRaisesRegex((BufferError, RuntimeError), "gradient"):
            wl.sdpa(q.clone().requires_grad_(), q, q)

    def test_a_graph_follows_new_inputs_and_shares_nothing(self):
        from warpledger.torch import sdpa
        for b, sq, sk in (1, 700, 700), (2, 1, 3000), (3, 16, 900), (1, 128, 128):
            def make(b=b, sq=sq, sk=sk):
                return [normal((b, 8, s, 128), torch.float16, self.generator) for s in (sq, sk, sk)]
            graphs = []
            for _ in range(2):
                given = make()
                sdpa(*given, causal=sq == sk)  # loads its code
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    first, _ = sdpa(*given, causal=sq == sk, return_lse=True)
                    out, lse = sdpa(first, *given[1:], causal=sq == sk, return_lse=True)
                graphs.append((graph, given, out, lse))
            streams = [torch.cuda.Stream() for _ in graphs]
            for _, given, _, _ in graphs:
                for each, fresh in zip(given, make()):
                    each.copy_(fresh)
            torch.cuda.synchronize()
            for _ in range(20):
                for stream, (graph, *_) in zip(streams, graphs):
                    with torch.cuda.stream(stream):
                        graph.replay()
            torch.cuda.synchronize()
            for _, given, out, lse in graphs:
                again = sdpa(given[0], *given[1:], causal=sq == sk)
                expected, expected_lse = sdpa(again, *given[1:], causal=sq == sk, return_lse=True)
                self.assertTrue(torch.equal(out, expected) and torch.equal(lse, expected_lse))

    def test_streams_at_once(self):
        from warpledger.torch import sdpa
        streams = [torch.cuda.Stream() for _ in range(4)]
        given = [[normal((2, 8, s, 64), torch.bfloat16, self.generator) for s in (1, 2000, 2000)] for _ in streams]
        expected = [sdpa(*each) for each in given]
        torch.cuda.synchronize()
        got = [[] for _ in streams]
        for _ in range(50):
            for kept, stream, each in zip(got, streams, given):
                with torch.cuda.stream(stream):
                    kept.append(sdpa(*each))
        torch.cuda.synchronize()
        for kept, right in zip(got, expected):
            self.assertTrue(all(torch.equal(each, right) for each in kept))

    def test_the_operator_passes_pytorchs_own_checks(self):
        import warpledger.torch  # noqa: F401
        for layout in "bhsd", "bshd":
            q, k, v = tensors({"b": 2, "hq": 8, "hk": 2, "sq": 100, "sk": 100, "d": 64, "dtype": torch.float16,
                               "layout": layout}, self.generator)
            # One that is copied, because it begins between two 16 bytes, and has gaps between its rows.
            between = torch.nn.functional.pad(q.transpose(1, 2), (4, 4))[..., 4:68].transpose(1, 2)
            self.assertEqual(between.data_ptr() % 16, 8)
            for operator in torch.ops.warpledger.sdpa.default, torch.ops.warpledger.sdpa_lse.default:
                for each in q, between:
                    torch.library.opcheck(operator, (each, k, v, True, None),
                                          test_utils=("test_schema", "test_faketensor"))
            self.right(torch.ops.warpledger.sdpa(between, k, v, True), None, between, k, v, True, None)

    def test_compiles_whole(self):
        from warpledger.torch import scaled_dot_product_attention, why_not

        def block(x, weights):
            q, k, v = (x @ weights).unflatten(2, (3, 8, 64)).permute(2, 0, 3, 1, 4)
            out = scaled_dot_product_attention(q, k, v, is_causal=True)
            return out.transpose(1, 2).flatten(2) + x

        weights = normal((512, 1536), torch.float16, self.generator) / 20
        whole = normal((1, 8, 100, 64), torch.float16, self.generator)
        self.assertEqual(why_not(whole, whole, whole, is_causal=True), "")
        for mode in None, "reduce-overhead":
            torch._dynamo.reset()
            compiled = torch.compile(block, fullgraph=True, mode=mode)
            for rows in 64, 100, 333, 64:
                x = normal((1, rows, 512), torch.float16, self.generator)
                for _ in range(3):
                    got = compiled(x, weights).clone()
                self.assertLess(float((got - block(x, weights)).abs().max()), 0.02, (mode, rows))

    def test_is_a_drop_in(self):
        from warpledger.torch import scaled_dot_product_attention, why_not
        own = torch.nn.functional.scaled_dot_product_attention
        if torch.cuda.get_device_capability() != (9, 0):
            q = normal((1, 4, 64, 64), torch.float16, self.generator)
            self.assertIn("compute capability", why_not(q, q, q))
            self.assertTrue(torch.equal(scaled_dot_product_attention(q, q, q), own(q, q, q)))
            return
        ours = 0
        for p in problems(60, seed=3):
            q, k, v = tensors(p, self.generator)
            options = {"is_causal": p["causal"], "scale": p["scale"], "enable_gqa": p["hq"] != p["hk"]}
            got, theirs = scaled_dot_product_attention(q, k, v, **options), own(q, k, v, **options)
            ours += not why_not(q, k, v, **options)
            both = torch.isfinite(theirs)
            off = ((got - theirs).abs() / (1 + theirs.abs()))[both].max()
            self.assertLess(float(off), 0.02 if p["dtype"] == torch.bfloat16 else 0.004, name_of(p))
        self.assertGreater(ours, 15)
        q = normal((1, 4, 64, 64), torch.float16, self.generator)
        mask = torch.zeros(64, 64, dtype=torch.float16, device="cuda")
        for options, why in (({"attn_mask": mask}, "mask"), ({"dropout_p": 0.5}, "dropout")):
            self.assertIn(why, why_not(q, q, q, **options))
            scaled_dot_product_attention(q, q, q, **options)
        odd = normal((1, 4, 64, 128), torch.float16, self.generator)[..., 4:68]
        self.assertEqual(why_not(odd, odd, odd), "")  # copied, for it lies between two 16 bytes
        found = self.right(scaled_dot_product_attention(odd, odd, odd), None, odd, odd, odd, False, None)
        theirs = float((own(odd, odd, odd).double() - reference(odd, odd, odd, False, None)[0]).abs().max())
        print(f"between two 16 bytes: error over its limit {found['largest']:.3f}; PyTorch's largest error {theirs:.5f}")
        self.assertIn("top left", why_not(q, q[:, :, :32], q[:, :, :32], is_causal=True))
        asks = q.clone().requires_grad_()
        scaled_dot_product_attention(asks, q, q).sum().backward()
        self.assertIsNotNone(asks.grad)
        self.assertIn("4 dimensions", why_not(*[q.float()] * 3))
        with self.assertRaises(RuntimeError):  # PyTorch's own
            scaled_dot_product_attention(q, q[..., :32], q)

    def test_host_times_beside_pytorch(self):
        """Prints; fails nothing. Of a call that the GPU is faster with than the host."""
        import time

        import warpledger as wl
        from warpledger.torch import scaled_dot_product_attention
        q, k, v = (normal((1, 8, s, 128), torch.float16, self.generator) for s in (1, 64, 64))
        calls = {"drop-in": scaled_dot_product_attention, "PyTorch": torch.nn.functional.scaled_dot_product_attention,
                 "operator": torch.ops.warpledger.sdpa.default, "warpledger.sdpa": wl.sdpa}
        for name, call in calls.items():
            times = []
            for _ in range(20):
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(50):
                    call(q, k, v)
                times.append((time.perf_counter() - begin) * 1e6 / 50)
            print(f"{name}: {sorted(times)[10]:.1f} us of the host a call", flush=True)

    def test_times_beside_pytorch(self):
        """Prints; fails nothing. Each call alone in a graph of 20, the median of 30 replays."""
        from warpledger.torch import scaled_dot_product_attention, why_not
        own = torch.nn.functional.scaled_dot_product_attention
        for b, hq, hk, sq, sk, d, causal in ((1, 16, 16, 4096, 4096, 128, True), (4, 16, 16, 2048, 2048, 128, True),
                                             (32, 16, 16, 512, 512, 64, True), (8, 16, 16, 1024, 1024, 256, True),
                                             (1, 32, 8, 1, 8192, 128, False), (16, 32, 8, 1, 4096, 128, False)):
            for layout in "bhsd", "bshd", "packed", "cache":
                if layout == "packed" and sq != sk:
                    continue
                q, k, v = tensors({"b": b, "hq": hq, "hk": hk, "sq": sq, "sk": sk, "d": d, "dtype": torch.float16,
                                   "layout": layout}, self.generator)
                options = {"is_causal": causal, "enable_gqa": hq != hk}
                times = [median_us(lambda f=f: f(q, k, v, **options)) for f in (scaled_dot_product_attention, own)]  # noqa: B023
                out = scaled_dot_product_attention(q, k, v, **options)
                whose = why_not(q, k, v, **options)
                made = None if whose else plan_of(q, k, v, out, causal, None)
                print(f"b{b}_h{hq}x{hk}_s{sq}x{sk}_d{d}{'_causal' * causal} {layout}: {times[0]:.1f} us, PyTorch "
                      f"{times[1]:.1f} us, {times[1] / times[0]:.2f}x; " + (f"PyTorch's own: {whose}" if whose else f"{made.kernel}, "
                      f"{made.launches} launches, {made.expected_us:.1f} us expected"), flush=True)


def plan_of(q, k, v, out, causal, scale):
    from warpledger import attention
    given = [attention.tensor_of(each, "", 0) for each in (q, k, v, out)]
    return attention.plan_of(*given, causal, scale)


def median_us(call, calls=20, replays=30):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    times = []
    for _ in range(replays):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / calls)
    return sorted(times)[len(times) // 2]
