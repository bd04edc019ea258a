# SPDX-License-Identifier: Apache-2.0
"""Which of these callables is faster, is it still right, and is that beyond noise?

    import warpledger as wl

    result = wl.compare({"eager": f, "compiled": g}, inputs=make_inputs,
                        problems=[{"rows": 4096, "cols": 1024}], reference=h)
    print(result)
    result.report("out/")

And attention by libwarpledger_sdpa: out = wl.sdpa(q, k, v, causal=True), and wl.sdpa_varlen() of packed sequences;
warpledger.torch makes them operators of PyTorch.
"""

from .attention import sdpa, sdpa_varlen
from .comparison import Result, Verdict, compare

__all__ = ["Result", "Verdict", "compare", "sdpa", "sdpa_varlen"]
