# SPDX-License-Identifier: Apache-2.0
"""compare() on a GPU: PyTorch, torch.compile, Triton, CuPy, JAX and Numba, beside callables that are broken.

Where the interpreter lacks one of them, or there is no GPU, its cases skip. With another interpreter than
the build's:

    PYTHONPATH=tests:tests/ablations/subjects/python WARPLEDGER_PROGRAM=build/bin/warpledger \\
        python3 -m unittest -v tests/ablations/subjects/python/compare_gpu_test.py
"""

import importlib.util
import os
import subprocess
import sys

from python_fixture import PythonTest

TORCH = """
import torch, triton
import triton.language as tl
import warpledger as wl
from warpledger.examples.softmax import eager, fused, make_inputs

@triton.jit
def stray_kernel(out):
    tl.store(out + (1 << 40), 1.0)

def reads_back(x):
    y = eager(x)
    return y if y.max().item() > 0 else x

kept = {}
def remembers(x):
    if x.data_ptr() not in kept:
        kept[x.data_ptr()] = (x.clone(), eager(x))
    seen, y = kept[x.data_ptr()]
    return y.clone() if not torch.cuda.is_current_stream_capturing() else y

def wrong(x):
    y = fused(x).clone()
    y[7] = 0
    return y

def raises(x):
    raise NotImplementedError("no kernel for this shape")

def stray(x):
    y = fused(x)
    stray_kernel[(1,)](y)
    return y

callables = {"eager": eager, "compiled": torch.compile(eager), "triton": fused, "reads_back": reads_back,
             "remembers": remembers, "wrong": wrong, "raises": raises, "stray": stray}
result = wl.compare(callables, inputs=make_inputs,
                    problems={"large": {"rows": 4096, "cols": 1024}, "small": {"rows": 64, "cols": 256}},
                    reference=eager, record="record", processes=3, blocks=6,
                    launches={"triton": "softmax_kernel", "compiled": "triton_"},
                    min_bytes=lambda rows, cols: 4 * rows * cols)
print(result)
print(result.report("pages").read_text())
print({(each.name, each.problem): each.verdict for each in result.verdicts})
"""

CUPY = """
import cupy
import warpledger as wl

fused = cupy.ElementwiseKernel("float32 x", "float32 y", "y = 1 / (1 + expf(-x))", "sigmoid")

def separate(x):
    return 1 / (1 + cupy.exp(-x))

def make_inputs(seed, n):
    return cupy.random.RandomState(seed).standard_normal(n, dtype=cupy.float32)

result = wl.compare({"separate": separate, "fused": fused}, make_inputs, [{"n": 1 << 22}],
                    lambda x: 1 / (1 + cupy.exp(-x)), rtol=1e-6, record="record", processes=3, blocks=6)
print(result)
"""

JAX = """
import jax, jax.numpy as jnp
import numpy as np
import warpledger as wl

def separate(x):
    e = jnp.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def reference(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

def make_inputs(seed, rows, cols):
    return jax.random.normal(jax.random.key(seed), (rows, cols), dtype=jnp.float32)

result = wl.compare({"separate": separate, "jitted": jax.jit(separate)}, make_inputs, [{"rows": 1024, "cols": 1024}],
                    reference, rtol=1e-5, record="record", processes=3, blocks=6)
print(result)
"""

NUMBA = """
import numpy
if not hasattr(numpy, "row_stack"):  # older Numbas name it, and newer NumPys lack it
    numpy.row_stack = numpy.vstack
import torch
from numba import cuda
import warpledger as wl

@cuda.jit
def double(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]

def numba(x):
    y = torch.empty_like(x)
    stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)
    double[(x.numel() + 255) // 256, 256, stream](cuda.as_cuda_array(x), cuda.as_cuda_array(y))
    return y

result = wl.compare({"twice": lambda x: (x + x) * 1.0, "numba": numba},
                    lambda seed, n: torch.randn(n, device="cuda", generator=torch.Generator("cuda").manual_seed(seed)),
                    [{"n": 1 << 24}], lambda x: 2 * x, rtol=1e-6, record="record", processes=3, blocks=6)
print(result)
"""


def lacking(*packages):
    if subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode:
        return "no GPU"
    return next((f"no {name}" for name in packages if not importlib.util.find_spec(name)), None)


class OnAGpu(PythonTest):
    def measured(self, script, *packages):
        try:
            why = lacking(*packages)
        except OSError:
            why = "no GPU"
        if why:
            self.skipTest(why)
        self.write("program.py", script)
        done = subprocess.run([sys.executable, "program.py"], cwd=self.path, capture_output=True, text=True,
                              check=False, timeout=850, env=os.environ | self.environment({}))
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_pytorch_compiled_and_triton_beside_broken_ones(self):
        said = self.measured(TORCH, "torch", "triton")
        run, lines = self.record()
        calls = {(line["arm"], line["shape"]): line["lines"] for line in lines["calls"]}
        for problem in ("large", "small"):
            for name in ("wrong", "raises", "stray"):
                self.assertIn(f"('{name}', '{problem}'): 'BROKEN'", said)
            self.assertIn(f"('triton', '{problem}'): 'ADOPT'", said)
            self.assertIn(f"('compiled', '{problem}'): 'ADOPT'", said)
            self.assertRegex(calls["one_on:triton", problem][1],
                             r"^kernel softmax_kernel grid \d+x1x1 block 128x1x1 smem \d+ B registers \d+")
            self.assertEqual(calls["one_on:triton", problem][0], "by graph")
            self.assertEqual(len(calls["one_on:triton", problem]), 2)
            self.assertEqual(calls["eager", problem][0], "by graph")
            self.assertGreater(len(calls["eager", problem]), 4)
            self.assertEqual(calls["one_on:reads_back", problem][0], "by stream")
            self.assertIn("not captured", calls["one_on:reads_back", problem][1])
            self.assertEqual(calls["one_on:remembers", problem][0], "by stream")
            self.assertIn("does not follow new inputs", calls["one_on:remembers", problem][1])
        self.assertEqual({(line["arm"], line["kind"]) for line in lines["broken"]},
                         {("one_on:raises", "error"), ("one_on:stray", "illegal_address")})
        self.assertIn("torch", run["definition"]["versions"])
        self.assertTrue(run["gpu"]["uuid"].startswith("GPU-"))
        self.assertTrue(all(line["sm_mhz"] for line in lines["samples"]))

    def test_cupy(self):
        said = self.measured(CUPY, "cupy")
        self.assertIn("ADOPT", said)
        for line in self.record()[1]["calls"]:
            self.assertEqual(line["lines"][0], "by graph", line)

    def test_jax(self):
        said = self.measured(JAX, "jax")
        self.assertIn("ADOPT", said)
        for line in self.record()[1]["calls"]:
            self.assertEqual(line["lines"], ["by call", "not captured: JAX launches on streams of its own"])

    def test_numba(self):
        said = self.measured(NUMBA, "torch", "numba")
        lines = self.record()[1]
        self.assertIn("ADOPT", said)
        self.assertNotIn("BROKEN", said,
                         lines.get("broken", []) + [each for each in lines["correctness"] if not each["correct"]])
