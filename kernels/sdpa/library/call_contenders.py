# SPDX-License-Identifier: Apache-2.0
"""Who is timed by call_times.py. A contender is a function of a problem's inputs; it returns a call, which returns
its output, and what it is.
"""

import ctypes
import functools
import importlib.util
import math

import torch
from peer_libraries import fa3_schedule
from warpledger import attention, driver


# --- Batches of one length: (batch, heads, rows, head_dim) -------------------------------------------------------

def ours(q, k, v, causal):
    return ours_of(q, k, v, torch.empty_like(q), causal)


def ours_of(q, k, v, out, causal, module=attention):
    given = [module.tensor_of(each, "", 0) for each in (q, k, v, out)]
    made = module.plan_of(*given, causal, None)
    space = torch.zeros(made.workspace_bytes, dtype=torch.uint8, device="cuda")

    def call():
        module.launch(made, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), None, space.data_ptr(),
                      torch.cuda.current_stream().cuda_stream)
        return out
    return call, f"{made.kernel}, {made.launches} launches, {made.expected_us:.1f} us expected"


def ours_by(path):
    """By another build of the library: warpledger.attention once more."""
    spec = importlib.util.find_spec("warpledger.attention")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.library_path = lambda: path
    return lambda q, k, v, causal: ours_of(q, k, v, torch.empty_like(q), causal, module)


def torch_by(name):
    """One of PyTorch's backends."""
    def prepare(q, k, v, causal):
        backend = getattr(torch.nn.attention.SDPBackend, name)

        def call():
            with torch.nn.attention.sdpa_kernel([backend]):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                                        enable_gqa=q.shape[1] != k.shape[1])
        return call, f"torch {torch.__version__}"
    return prepare


def torch_alone(q, k, v, causal):
    """What PyTorch chooses."""
    options = {"is_causal": causal, "enable_gqa": q.shape[1] != k.shape[1]}
    try:
        choice = torch.nn.attention.SDPBackend(torch._fused_sdp_choice(q, k, v, **options)).name
    except (AttributeError, RuntimeError, TypeError, ValueError):
        choice = "choice not known"
    return (lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, **options),
            f"torch {torch.__version__}, {choice}")


def fa3_by(planned):
    """planned: its schedule is made once ahead, as vLLM makes it once a batch for all layers. Otherwise each call
    launches prepare_varlen_num_blocks for it."""
    def prepare(q, k, v, causal):
        (batch, heads_q, rows, head_dim), (_, heads_kv, keys, _) = q.shape, k.shape
        q_, k_, v_ = (each.transpose(1, 2).flatten(0, 1).contiguous() for each in (q, k, v))
        out = torch.empty_like(q_)
        cu_q, cu_k = (torch.arange(batch + 1, dtype=torch.int32, device="cuda") * each for each in (rows, keys))
        sizes = (batch, rows, keys, heads_q, heads_kv, head_dim)
        plan = fa3_schedule(torch.ops._vllm_fa3_C, sizes, q.dtype, cu_q, cu_k, causal) if planned else None

        def call():
            fa3_call(q_, k_, v_, out, cu_q, cu_k, rows, keys, causal, plan)
            return out.unflatten(0, (batch, rows)).transpose(1, 2)
        return call, "torch.ops._vllm_fa3_C" + ", scheduled ahead" * planned
    return prepare


def fa3_call(q, k, v, out, cu_q, cu_k, max_q, max_k, causal, plan=None):
    """Of packed (total, heads, head_dim)."""
    torch.ops._vllm_fa3_C.fwd(
        q, k, v, None, None, None, out, cu_q, cu_k, None, None, None, max_q, max_k, None, None, None, None, None, None,
        None, None, None, 1 / math.sqrt(q.shape[2]), causal, -1, -1, 0.0, True, plan, 0, None, 0, None, 1, 0, None)
    return out


# --- The same bytes, read and nothing else: what memory allows --------------------------------------------------

def whole(k, v):
    """K and V as words, which lie side by side."""
    if v.data_ptr() != k.data_ptr() + k.numel() * k.element_size():
        raise ValueError("K and V don't lie side by side")
    return k.as_strided((2 * k.numel(),), (1,)).view(torch.int32)


def torch_sum(_q, k, v, _causal):
    """PyTorch's sum of K and V as if they were float32: reads each byte once, in one launch or two."""
    words = whole(k, v).view(torch.float32)

    def call():
        words.sum()
    return call, f"torch {torch.__version__}, sum() of K and V as float32"


class PlainRead:
    """A kernel that adds up words, 64 bytes a thread in flight and 2,048 threads an SM."""

    PTX = b"""
.version 7.4
.target sm_80
.address_size 64
.visible .entry read_plainly(.param .u64 from, .param .u64 chunks, .param .u64 sums, .param .u32 always)
.maxntid 256, 1, 1
.minnctapersm 8
{
  .reg .pred %p<6>;
  .reg .u32 %r<30>;
  .reg .u64 %d<12>;
  ld.param.u64 %d0, [from];
  ld.param.u64 %d1, [chunks];
  ld.param.u64 %d2, [sums];
  ld.param.u32 %r0, [always];
  cvta.to.global.u64 %d0, %d0;
  cvta.to.global.u64 %d2, %d2;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r6, %r5, %r2;
  cvt.u64.u32 %d3, %r4;
  cvt.u64.u32 %d4, %r6;
  shl.b64 %d5, %d4, 4;
  mul.wide.u32 %d6, %r4, 16;
  add.u64 %d6, %d0, %d6;
  mov.u32 %r7, 0;
more:
  setp.ge.u64 %p0, %d3, %d1;
  @%p0 bra done;
  add.u64 %d7, %d3, %d4;
  setp.lt.u64 %p1, %d7, %d1;
  add.u64 %d8, %d7, %d4;
  setp.lt.u64 %p2, %d8, %d1;
  add.u64 %d9, %d8, %d4;
  setp.lt.u64 %p3, %d9, %d1;
  mov.u32 %r12, 0;
  mov.u32 %r13, 0;
  mov.u32 %r14, 0;
  mov.u32 %r15, 0;
  mov.u32 %r16, 0;
  mov.u32 %r17, 0;
  mov.u32 %r18, 0;
  mov.u32 %r19, 0;
  mov.u32 %r20, 0;
  mov.u32 %r21, 0;
  mov.u32 %r22, 0;
  mov.u32 %r23, 0;
  ld.global.nc.L1::no_allocate.v4.u32 {%r8, %r9, %r10, %r11}, [%d6];
  add.u64 %d6, %d6, %d5;
  @%p1 ld.global.nc.L1::no_allocate.v4.u32 {%r12, %r13, %r14, %r15}, [%d6];
  add.u64 %d6, %d6, %d5;
  @%p2 ld.global.nc.L1::no_allocate.v4.u32 {%r16, %r17, %r18, %r19}, [%d6];
  add.u64 %d6, %d6, %d5;
  @%p3 ld.global.nc.L1::no_allocate.v4.u32 {%r20, %r21, %r22, %r23}, [%d6];
  add.u64 %d6, %d6, %d5;
  add.u64 %d3, %d9, %d4;
  add.u32 %r8, %r8, %r9;
  add.u32 %r10, %r10, %r11;
  add.u32 %r12, %r12, %r13;
  add.u32 %r14, %r14, %r15;
  add.u32 %r16, %r16, %r17;
  add.u32 %r18, %r18, %r19;
  add.u32 %r20, %r20, %r21;
  add.u32 %r22, %r22, %r23;
  add.u32 %r8, %r8, %r10;
  add.u32 %r12, %r12, %r14;
  add.u32 %r16, %r16, %r18;
  add.u32 %r20, %r20, %r22;
  add.u32 %r8, %r8, %r12;
  add.u32 %r16, %r16, %r20;
  add.u32 %r7, %r7, %r8;
  add.u32 %r7, %r7, %r16;
  bra more;
done:
  // A sum decides whether it is stored, so that no load can be left out.
  setp.ne.u32 %p4, %r0, 0;
  setp.eq.or.u32 %p5, %r7, 1, %p4;
  @!%p5 bra end;
  mul.wide.u32 %d10, %r4, 4;
  add.u64 %d10, %d2, %d10;
  st.global.u32 [%d10], %r7;
end:
  ret;
}
\0"""

    def __init__(self):
        self._driver = driver.Calls()
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._driver.call("cuModuleLoadData", ctypes.byref(module), self.PTX)
        self._driver.call("cuModuleGetFunction", ctypes.byref(self._function), module, b"read_plainly")
        sms = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
        self._ctas = 8 * sms
        self._sums = torch.zeros(256 * self._ctas, dtype=torch.int32, device="cuda")

    def launch(self, words, always):
        values = [ctypes.c_uint64(words.data_ptr()), ctypes.c_uint64(words.numel() // 4),
                  ctypes.c_uint64(self._sums.data_ptr()), ctypes.c_uint32(always)]
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(each) for each in values))
        self._driver.call("cuLaunchKernel", self._function, self._ctas, 1, 1, 256, 1, 1, 0,
                          ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), arguments, None)

    def check(self, words):
        self.launch(words, 1)
        read, wanted = (int(each.sum(dtype=torch.int64)) % (1 << 32) for each in (self._sums, words))
        if read != wanted:
            raise RuntimeError(f"a plain read adds up to {read}, PyTorch to {wanted}")


@functools.cache
def plain_read_kernel():
    return PlainRead()


def plain_read(_q, k, v, _causal):
    kernel, words = plain_read_kernel(), whole(k, v)
    kernel.check(words)
    return lambda: kernel.launch(words, 0), "a kernel that reads K and V, 16 bytes a load, 64 in flight a thread"


# --- Packed sequences: (total, heads, head_dim), by cumulative lengths ------------------------------------------

def ours_packed(q, k, v, cu, longest, causal):
    out = torch.empty_like(q)
    given = [attention.packed_by_heads(attention.tensor_of(each, "", 0), "") for each in (q, k, v, out)]
    made = attention.plan_of_packed(*given, cu.shape[0] - 1, (longest, longest), causal, None)
    space = torch.zeros(made.workspace_bytes, dtype=torch.uint8, device="cuda")

    def call():
        attention.launch_packed(made, q.data_ptr(), k.data_ptr(), v.data_ptr(), out.data_ptr(), None, cu.data_ptr(),
                                cu.data_ptr(), space.data_ptr(), torch.cuda.current_stream().cuda_stream)
        return out
    return call, f"{made.kernel}, {made.expected_us:.0f} us expected"


def as_batches(contiguous):
    """The same call without cumulative lengths, where all are one: of (batch, heads, seq, head_dim), contiguous or as
    (batch, seq, heads, head_dim)."""
    def prepare(q, k, v, cu, longest, causal):
        if q.shape[0] != longest * (cu.shape[0] - 1):
            raise NotImplementedError("lengths differ")
        q, k, v = (each.unflatten(0, (-1, longest)).transpose(1, 2) for each in (q, k, v))
        if contiguous:
            q, k, v = (each.contiguous() for each in (q, k, v))
        return ours_of(q, k, v, torch.empty_like(q), causal)
    return prepare


def flash_packed(q, k, v, cu, longest, causal):
    """Grouped heads as they are: PyTorch hands them to FlashAttention-2, which takes them."""
    def call():
        return torch.ops.aten._flash_attention_forward(q, k, v, cu, cu, longest, longest, 0.0, causal, False)[0]
    return call, f"torch {torch.__version__}"


def fa3_packed_by(planned):
    """planned: as fa3_by() has it."""
    def prepare(q, k, v, cu, longest, causal):
        out = torch.empty_like(q)
        sizes = (cu.shape[0] - 1, longest, longest, q.shape[1], k.shape[1], q.shape[2])
        plan = fa3_schedule(torch.ops._vllm_fa3_C, sizes, q.dtype, cu, cu, causal) if planned else None
        return (lambda: fa3_call(q, k, v, out, cu, cu, longest, longest, causal, plan),
                "torch.ops._vllm_fa3_C" + ", scheduled ahead" * planned)
    return prepare


PEERS = {"cudnn": torch_by("CUDNN_ATTENTION"), "flash": torch_by("FLASH_ATTENTION"), "fa3": fa3_by(planned=False),
         "fa3_planned": fa3_by(planned=True), "torch": torch_alone}
READS = {"read": plain_read, "sum": torch_sum}  # no attention
PACKED = {"ours": ours_packed, "one length": as_batches(True), "bshd": as_batches(False), "flash": flash_packed,
          "fa3": fa3_packed_by(planned=False), "fa3_planned": fa3_packed_by(planned=True)}


def contenders(mode, before=None):
    """{name: contender} of a mode."""
    if mode == "varlen":
        return dict(PACKED)
    made = {"ours": ours, **PEERS, **(READS if mode == "decode" else {})}
    return {**made, "before": ours_by(before)} if before else made
