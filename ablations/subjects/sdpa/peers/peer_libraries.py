# SPDX-License-Identifier: Apache-2.0
"""Peers that are not PyTorch's scaled_dot_product_attention(), and the list of all peers.

Each is optional: where it is missing, peers.json says how to get it.
"""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import pathlib

from peer_arms import Arm, CuDnn, Efficient, Flash, Math, softmax_scale
from peer_fp8 import RISE, Fp8Inputs, scalar
from peer_rules import Refused, cudnn_text


def one_line(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:150]


def version_of(package):
    """["PACKAGE VERSION"], or nothing where it is not installed."""
    try:
        return [f"{package} {importlib.metadata.version(package)}"]
    except importlib.metadata.PackageNotFoundError:
        return []


def opened(variable, wanted, open_file):
    """What `open_file` makes of the file that a variable of the environment names. Raises Refused."""
    path = os.environ.get(variable, "")
    if not path:
        raise Refused(f"{variable} names no file: {wanted}")
    try:
        return open_file(path)
    except Exception as error:  # whatever a file of another version does
        raise Refused(f"{variable} can't be loaded: {one_line(error)}; it is to name {wanted}") from error


class RowsFirst(Arm):
    """Takes tensors as (batch, rows, heads, head_dim)."""

    MASK_ENDS = True

    def laid_out(self, tensor):
        return tensor.transpose(1, 2).contiguous()

    def as_heads(self, output):
        return output.transpose(1, 2)


def fa3_schedule(ops, sizes, dtype, ends_q, ends_kv, causal):
    """FlashAttention-3's schedule of all calls with these lengths; a call leaves it as it found it. sizes: the batch,
    the most rows of queries, the most keys, heads of both, head_dim"""
    return ops.get_scheduler_metadata(
        *sizes, sizes[-1], dtype, ends_kv.diff(), ends_q, ends_kv,
        None, None, None, None, 0,  # cu_seqlens_k_new, seqused_q, leftpad_k, page_size, max_seqlen_k_new
        causal, -1, -1, False, 0, None, 0)  # windows, softcap, splits, pack_gqa, margin: as calls have them


class Fa3(RowsFirst):
    """FlashAttention-3, as vLLM builds it and calls it: all rows of a batch in one tensor, and a schedule that is
    made once ahead. Without it each call launches prepare_varlen_num_blocks, which takes 1 to 1.5 microseconds."""

    FILE = "WARPLEDGER_FA3"  # of the environment
    FROM = "the file vllm/vllm_flash_attn/_vllm_fa3_C.abi3.so of the wheel vllm 0.33.0"

    @classmethod
    def load(cls, torch):
        def open_file(path):
            torch.ops.load_library(path)
            ops = torch.ops._vllm_fa3_C
            _ = ops.fwd, ops.get_scheduler_metadata  # or it is another library
            return ops
        return opened(cls.FILE, cls.FROM, open_file)

    @classmethod
    def versions(cls, torch):
        return ["FlashAttention-3 of vllm 0.33.0, scheduled ahead"]

    def begin(self):
        def ends(rows):
            return self.torch.arange(0, (self.shape["batch"] + 1) * rows, rows, dtype=self.torch.int32,
                                     device="cuda")
        self._ends_q, self._ends_kv = ends(self.shape["seq_q"]), ends(self.shape["seq_kv"])

    def laid_out(self, tensor):
        rows = super().laid_out(tensor)
        return rows.reshape(-1, *rows.shape[2:])

    def lay_out(self):
        sets = super().lay_out()
        sizes = [self.shape[each] for each in ("batch", "seq_q", "seq_kv", "heads_q", "heads_kv", "head_dim")]
        self._schedule = fa3_schedule(self.library, sizes, sets[0][0].dtype, self._ends_q, self._ends_kv,
                                      self.shape["causal"])
        return sets

    def attend(self, q, k, v):
        s = self.shape
        out, *_ = self.library.fwd(
            q, k, v, None, None, None, None,  # k_new, v_new, q_v, out
            self._ends_q, self._ends_kv, None, None, None,  # cu_seqlens_k_new, seqused_q and _k
            s["seq_q"], s["seq_kv"], None, None, None,  # page_table, kv_batch_idx, leftpad_k
            None, None, None, None, None, None,  # rotary cos, sin, lengths; scales of q, k, v
            s["head_dim"] ** -0.5, s["causal"], -1, -1, 0.0,  # windows, softcap
            True, self._schedule, 0, None, 0,  # interleaved, splits, pack_gqa, margin
            None, 1, 0, None)  # sinks, context parallelism
        return out

    def as_heads(self, output):
        s = self.shape
        return super().as_heads(output.reshape(s["batch"], s["seq_q"], s["heads_q"], -1))


class CuDnnFp8(Arm):
    """cuDNN's attention in E4M3, by its own front end, since PyTorch has no way to it.

    Quantising is not timed. A call reads codes and scales, and writes codes of E4M3: on Hopper
    cuDNN 9.19 writes nothing else, and aligns a causal mask in FP8 to the top left alone.
    peer_fp8.py says how it is judged, and what differs from our FP8 variants.
    """

    # cuDNN 9.19 documents multiples of 16 up to 256 on Hopper; our problems have these.
    HEAD_DIMS = (64, 128, 256)
    SCALARS = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")

    @classmethod
    def load(cls, torch):
        try:
            cudnn = importlib.import_module("cudnn")
            return cudnn, cudnn.create_handle()
        except Exception as error:  # of the package, or of the library that it looks for
            raise Refused(f"cudnn can't be loaded: {one_line(error)}; it is the package "
                          "nvidia-cudnn-frontend") from error

    @classmethod
    def versions(cls, torch):
        try:
            number = importlib.import_module("cudnn").backend_version()
        except Exception:  # load() says why
            return []
        return [*version_of("nvidia-cudnn-frontend"), cudnn_text(number)]

    @classmethod
    def why_not(cls, shape):
        if shape["dtype"] != "fp16":
            return "it is compared with FP8 variants, whose problems are in fp16"
        if shape["head_dim"] not in cls.HEAD_DIMS:
            return f"it takes head_dim {', '.join(map(str, cls.HEAD_DIMS))}"
        return super().why_not(shape)

    def begin(self):
        cudnn, handle = self.library
        kind, s = cudnn.data_type, self.shape
        self._on_this_stream()
        plan = cudnn.pygraph(io_data_type=kind.FP8_E4M3, intermediate_data_type=kind.FLOAT,
                             compute_data_type=kind.FLOAT, handle=handle)

        def layout(heads, rows):  # as tensors lie: (batch, heads, rows, head_dim)
            return ([s["batch"], heads, rows, s["head_dim"]],
                    [heads * rows * s["head_dim"], rows * s["head_dim"], s["head_dim"], 1])

        def tensor(name, layout, data_type):
            return plan.tensor(name=name, dim=layout[0], stride=layout[1], data_type=data_type)

        one, of_q = ([1] * 4, [1] * 4), layout(s["heads_q"], s["seq_q"])
        of_kv = layout(s["heads_kv"], s["seq_kv"])
        taken = {name: tensor(name, lies, kind.FP8_E4M3)
                 for name, lies in (("q", of_q), ("k", of_kv), ("v", of_kv))}
        taken |= {name: tensor(name, one, kind.FLOAT) for name in self.SCALARS}
        out, _, *largest = plan.sdpa_fp8(**taken, attn_scale=softmax_scale(s), use_causal_mask=s["causal"],
                                         generate_stats=False)
        out.set_output(True).set_dim(of_q[0]).set_stride(of_q[1]).set_data_type(kind.FP8_E4M3)
        for unread in largest:  # of P and O, which training takes its next scales from
            unread.set_output(False).set_dim(one[0]).set_stride(one[1]).set_data_type(kind.FLOAT)
        plan.build([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
        self._plan, self._taken, self._out = plan, taken, out
        self._workspace = self.torch.empty((max(1, plan.get_workspace_size()),), dtype=self.torch.uint8,
                                           device="cuda")

    def lay_out(self):
        self._fp8 = Fp8Inputs(self._inputs)
        scales = {"descale_s": scalar(self.torch, 1.0 / RISE)[0], "scale_s": scalar(self.torch, RISE)[0],
                  "scale_o": self._fp8.scale}
        return [self._call_of(q, k, v, scales) for q, k, v in self._fp8.sets]

    def _call_of(self, q, k, v, scales):
        """The buffers of a call by cuDNN's tensors, and that which it writes."""
        values = {"q": q.codes, "k": k.codes, "v": v.codes, "descale_q": q.descale,
                  "descale_k": k.descale, "descale_v": v.descale, **scales}
        out = self.torch.empty(q.codes.shape, dtype=self.torch.float8_e4m3fn, device="cuda")
        return {**{self._taken[name]: value for name, value in values.items()}, self._out: out}, out

    def attend(self, buffers, out):
        self._on_this_stream()
        self._plan.execute(buffers, self._workspace, handle=self.library[1])
        return out

    def _on_this_stream(self):
        cudnn, handle = self.library
        cudnn.set_stream(handle, self.torch.cuda.current_stream().cuda_stream)

    def references(self):
        return self._fp8.references

    def as_heads(self, output):
        return output.float() * self._fp8.unit

    def judged(self, errors):
        return self._fp8.judged(errors)


class Fa4(RowsFirst):
    """FlashAttention-4, written in CuTe DSL: compiled at its first call."""

    @classmethod
    def load(cls, torch):
        try:
            return importlib.import_module("flash_attn.cute").flash_attn_func
        except Exception as error:  # of any of the packages that it needs
            raise Refused(f"flash_attn.cute can't be imported: {one_line(error)}; it is the package "
                          "flash-attn-4") from error

    @classmethod
    def versions(cls, torch):
        return version_of("flash-attn-4") or ["flash-attn-4"]

    def attend(self, q, k, v):
        out = self.library(q, k, v, causal=self.shape["causal"])
        return out[0] if isinstance(out, tuple) else out  # some versions give the LSE too


class Flex(Arm):
    """PyTorch's flex_attention(), compiled with its own search for the fastest kernel."""

    MASK_ENDS = True
    LAUNCHES = "^kernel triton_"

    @classmethod
    def load(cls, torch):
        try:
            return importlib.import_module("torch.nn.attention.flex_attention")
        except ImportError as error:
            raise Refused(f"torch {torch.__version__} has no flex_attention") from error

    @classmethod
    def versions(cls, torch):
        return [*version_of("triton"), "max-autotune"]

    def begin(self):
        # PyTorch compiles one function for a few shapes alone, and runs further ones uncompiled.
        self.torch._dynamo.reset()
        self._compiled = self.torch.compile(self.library.flex_attention, dynamic=False, fullgraph=True,
                                            mode="max-autotune-no-cudagraphs")
        shift = self.shape["seq_kv"] - self.shape["seq_q"]
        self._options = {"enable_gqa": self.shape["heads_q"] != self.shape["heads_kv"]}
        if self.shape["causal"]:
            self._options["block_mask"] = self.library.create_block_mask(
                lambda b, h, row, key: row + shift >= key, None, None, self.shape["seq_q"],
                self.shape["seq_kv"], device="cuda")

    def attend(self, q, k, v):
        return self._compiled(q, k, v, **self._options)


class TritonTutorial(Arm):
    """Triton's tutorial on fused attention, which tunes itself at its first call of a length."""

    FILE = "WARPLEDGER_TRITON_TUTORIAL"  # of the environment
    FROM = "python/tutorials/06-fused-attention.py of Triton's repository, at the version of the package"

    @classmethod
    def load(cls, torch):
        def open_file(path):
            spec = importlib.util.spec_from_file_location("triton_tutorial", path)
            tutorial = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(tutorial)
            takes = inspect.signature(tutorial._attention.forward).parameters
            # As its own benchmark asks for it, by GPU.
            specialised = torch.cuda.get_device_capability()[0] >= 10
            return tutorial.attention, [specialised] if "warp_specialize" in takes else []
        return opened(cls.FILE, cls.FROM, open_file)

    @classmethod
    def versions(cls, torch):
        path = pathlib.Path(os.environ.get(cls.FILE, ""))
        text = [f"tutorial {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"] if path.is_file() else []
        return version_of("triton") + text

    @classmethod
    def why_not(cls, shape):
        if shape["dtype"] != "fp16":
            return "it writes fp16 alone"
        if shape["heads_q"] != shape["heads_kv"] or shape["seq_q"] != shape["seq_kv"]:
            return "it takes as many heads and rows of K and V as of Q"
        return "" if shape["seq_q"] % 128 == 0 else "it takes lengths that are multiples of 128"

    def attend(self, q, k, v):
        attention, options = self.library
        return attention(q, k, v, self.shape["causal"], self.shape["head_dim"] ** -0.5, *options)


PEERS = {"flash": Flash, "cudnn": CuDnn, "efficient": Efficient, "math": Math, "fa3": Fa3, "fa4": Fa4,
         "flex": Flex, "triton": TritonTutorial, "cudnn_fp8": CuDnnFp8}
UNASKED = ("flash", "cudnn", "efficient", "math")  # PyTorch's own, which need nothing more
