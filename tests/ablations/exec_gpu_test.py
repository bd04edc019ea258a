"""`warpledger exec` on random arrays gives what PyTorch's SDPA gives.

The outside opinion is torch.nn.functional.scaled_dot_product_attention: in FP64
on the CPU as the reference, and in fp16 by its math backend as the naive
computation whose error sets the limit (the rule of FlashAttention's tests).

    exec_gpu_test.py path/to/warpledger
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"SKIPPED: needs PyTorch as the outside SDPA: {error}")
    sys.exit(SKIPPED)

PROGRAM = ""

# batch, query heads, K/V heads, query length, key length, causal. PyTorch aligns
# its causal mask to the top left, ours is at the bottom right: equal when square.
CASES = [
    (2, 3, 3, 100, 77, False),
    (1, 8, 8, 512, 512, False),
    (1, 4, 4, 129, 129, True),
    (2, 8, 2, 65, 97, False),
]


# Toggles that trade accuracy away, alone or at a level; forward_gpu_test judges what uses
# them against a reference of their own. Here they only have to come near.
APPROXIMATE = re.compile(r"mma_kv_dtype|mma_fp16_accumulate|(exp_method|mma_exp)=3\b|"
                         r"softmax_in_registers(\+|$)")
NEAR = 0.05  # of N(0, 1) values of V
NEAR_LSE = 0.2


def run(*arguments):
    return subprocess.run([PROGRAM, "exec", *arguments], capture_output=True, text=True,
                          timeout=120, check=False)


class ExecTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def variants(self):
        """{name: configuration} of all that begin with Q, K and V."""
        listed = json.loads(subprocess.run([PROGRAM, "list", "--format=json"], capture_output=True,
                                           text=True, check=True).stdout)
        begin_with_x = {arm["name"] for design in listed["designs"] if design.get("projected")
                        for arm in design["arms"]}
        return {variant["name"]: variant["config"] for variant in listed["variants"]
                if variant["name"] not in begin_with_x}

    def compare(self, variant, approximate, case, seed):
        batch, heads_q, heads_kv, seq_q, seq_kv, causal = case
        rng = np.random.default_rng(seed)
        q = rng.standard_normal((batch, heads_q, seq_q, 64)).astype(np.float16)
        k = rng.standard_normal((batch, heads_kv, seq_kv, 64)).astype(np.float16)
        v = rng.standard_normal((batch, heads_kv, seq_kv, 64)).astype(np.float16)
        files = {name: str(self.path / f"{name}.npy") for name in ("q", "k", "v", "o", "lse")}
        for name, array in (("q", q), ("k", k), ("v", v)):
            np.save(files[name], array)
        done = run(f"--variant={variant}", f"--q={files['q']}", f"--k={files['k']}",
                   f"--v={files['v']}", f"--out={files['o']}", f"--lse={files['lse']}",
                   *(["--causal"] if causal else []))
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
        error = np.abs(out.astype(np.float64) - reference).max()
        naive_error = np.abs(naive.cpu().double().numpy() - reference).max()
        half_ulp = np.spacing(np.float16(np.abs(reference).max())).astype(np.float64) / 2
        limit = NEAR if approximate else 2 * naive_error + half_ulp
        self.assertLessEqual(error, limit, f"{variant}, {case}")

        lse = np.load(files["lse"])
        repeat = heads_q // heads_kv
        scores = (tensors[0].double() @ tensors[1].double().repeat_interleave(
            repeat, dim=1).transpose(-1, -2)) / 8.0
        if causal:
            mask = torch.ones(seq_q, seq_kv, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        np.testing.assert_allclose(lse, torch.logsumexp(scores, -1).numpy(), rtol=0,
                                   atol=NEAR_LSE if approximate else 1e-4)

    def test_every_variant_agrees_with_pytorch_on_random_arrays(self):
        variants = self.variants()
        self.assertGreater(len(variants), 7)
        approximate = {name for name, config in variants.items() if APPROXIMATE.search(config)}
        self.assertLess(len(approximate), len(variants) / 4)
        for variant in variants:
            for seed, case in enumerate(CASES):
                with self.subTest(variant=variant, case=case):
                    self.compare(variant, variant in approximate, case, seed)

    def test_a_wrong_dtype_writes_nothing(self):
        files = {name: str(self.path / f"{name}.npy") for name in ("q", "k", "v", "o")}
        for name in ("q", "k", "v"):
            np.save(files[name], np.zeros((1, 1, 4, 64), np.float32))
        done = run("--variant=minimal_scalar", f"--q={files['q']}", f"--k={files['k']}",
                   f"--v={files['v']}", f"--out={files['o']}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("float16", done.stderr)
        self.assertFalse(pathlib.Path(files["o"]).exists())


if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("SKIPPED: PyTorch sees no GPU")
        sys.exit(SKIPPED)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
