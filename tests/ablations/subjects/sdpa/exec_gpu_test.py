# SPDX-License-Identifier: Apache-2.0
"""`warpledger exec` on random arrays gives what PyTorch's SDPA gives.

The outside opinion is torch.nn.functional.scaled_dot_product_attention: in FP64
on the CPU as the reference, and in fp16 by its math backend as the naive
computation whose error sets the limit (the rule of FlashAttention's tests).
"""

import json
import pathlib
import re
import tempfile
from concurrent import futures

from fixture import FolderTest, skip, warpledger

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    skip(f"needs PyTorch as the outside SDPA: {error}")
if not torch.cuda.is_available():
    skip("PyTorch sees no GPU")

# batch, query heads, K/V heads, query length, key length, causal. PyTorch aligns
# its causal mask to the top left, ours is at the bottom right: equal when square.
CASES = [
    (2, 3, 3, 100, 77, False),
    (1, 8, 8, 512, 512, False),
    (1, 4, 4, 129, 129, True),
    (2, 8, 2, 65, 97, False),
]


# Toggles that trade accuracy away, alone or at a level, and how near to PyTorch they have to
# come with N(0, 1) values, beyond as large a share of the value itself: forward_gpu_test judges
# what uses them against a reference of their own. FP8 rounds K, V and with wgmma Q and P by up
# to half a step, 2^-4 of a number in E4M3 and 2^-3 in E5M2. The first that matches counts.
APPROXIMATE = [(re.compile(pattern), near) for pattern, near in (
    (r"mma_kv_dtype=4\b", 3 / 16),
    (r"mma_kv_dtype=3\b", 3 / 32),
    (r"wgmma_fp8", 3 / 16),
    (r"mma_kv_dtype|mma_fp16_accumulate|(exp_method|mma_exp)=3\b|softmax_in_registers(\+|$)",
     1 / 20))]
NEAR_LSE = 0.2
AT_A_TIME = 8  # processes


def nearness(config):
    """How far a configuration's output may be from PyTorch's; 0: as far as the rule says."""
    return next((near for pattern, near in APPROXIMATE if pattern.search(config)), 0)


class ExecTest(FolderTest):
    def variants(self):
        """What `list` says of all variants that begin with Q, K and V."""
        listed = json.loads(self.ends(warpledger("list", "--format=json")).stdout)
        begin_with_x = {arm["name"] for design in listed["designs"] if design.get("projected")
                        for arm in design["arms"]}
        return [variant for variant in listed["variants"] if variant["name"] not in begin_with_x]

    def compare(self, variant, case, seed):
        head_dim = 64 if 64 in variant["head_dims"] else variant["head_dims"][0]
        batch, heads_q, heads_kv, seq_q, seq_kv, causal = case
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((batch, heads_q, seq_q, head_dim)).astype(np.float16)
        k = rng.standard_normal((batch, heads_kv, seq_kv, head_dim)).astype(np.float16)
        v = rng.standard_normal((batch, heads_kv, seq_kv, head_dim)).astype(np.float16)
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.path))
        files = {name: str(folder / f"{name}.npy") for name in ("q", "k", "v", "o", "lse")}
        for name, array in (("q", q), ("k", k), ("v", v)):
            np.save(files[name], array)
        done = warpledger("exec", f"--variant={variant['name']}", f"--q={files['q']}", f"--k={files['k']}",
                          f"--v={files['v']}", f"--out={files['o']}", f"--lse={files['lse']}",
                          *(["--causal"] if causal else []), timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)

        out = np.load(files["o"])
        self.assertEqual(out.dtype, np.float16)
        self.assertEqual(out.shape, q.shape)
        tensors = [torch.from_numpy(array) for array in (q, k, v)]
        reference = F.scaled_dot_product_attention(
            *[t.double() for t in tensors], is_causal=causal, enable_gqa=heads_q != heads_kv)
        with sdpa_kernel(SDPBackend.MATH):
            naive = F.scaled_dot_product_attention(
                *[t.cuda() for t in tensors], is_causal=causal, enable_gqa=heads_q != heads_kv)
        reference = reference.numpy()
        near = nearness(variant["config"])
        error = (np.abs(out.astype(np.float64) - reference) - near * np.abs(reference)).max()
        naive_error = np.abs(naive.cpu().double().numpy() - reference).max()
        half_ulp = np.spacing(np.float16(np.abs(reference).max())).astype(np.float64) / 2
        self.assertLessEqual(error, near or 2 * naive_error + half_ulp)

        lse = np.load(files["lse"])
        repeat = heads_q // heads_kv
        scores = (tensors[0].double() @ tensors[1].double().repeat_interleave(
            repeat, dim=1).transpose(-1, -2)) / head_dim**0.5
        if causal:
            mask = torch.ones(seq_q, seq_kv, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        np.testing.assert_allclose(lse, torch.logsumexp(scores, -1).numpy(), rtol=0,
                                   atol=NEAR_LSE if near else 1e-4)

    def test_every_variant_agrees_with_pytorch_on_random_arrays(self):
        variants = self.variants()
        self.assertGreater(len(variants), 7)
        approximate = [v for v in variants if nearness(v["config"])]
        self.assertLess(len(approximate), len(variants) / 4)
        with futures.ThreadPoolExecutor(AT_A_TIME) as pool:
            # The causal case and another one, by turns: forward_gpu_test has every variant on many problems.
            causal = next(seed for seed, case in enumerate(CASES) if case[-1])
            full = [seed for seed in range(len(CASES)) if seed != causal]
            runs = {(variant["name"], CASES[seed]): pool.submit(self.compare, variant, CASES[seed], seed)
                    for index, variant in enumerate(variants) for seed in (causal, full[index % len(full)])}
            for (name, case), compared in runs.items():
                with self.subTest(variant=name, case=case):
                    compared.result()

    def test_a_wrong_dtype_writes_nothing(self):
        files = {name: str(self.path / f"{name}.npy") for name in ("q", "k", "v", "o")}
        for name in ("q", "k", "v"):
            np.save(files[name], np.zeros((1, 1, 4, 64), np.float32))
        done = warpledger("exec", "--variant=minimal_scalar", f"--q={files['q']}", f"--k={files['k']}",
                          f"--v={files['v']}", f"--out={files['o']}", timeout=120)
        self.assertEqual(done.returncode, 2)
        self.assertIn("float16", done.stderr)
        self.assertFalse(pathlib.Path(files["o"]).exists())
