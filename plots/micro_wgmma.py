# SPDX-License-Identifier: Apache-2.0
"""FLOP per clock of wgmma by its width N, beside the operands' limit and mma.sync."""

from plots import micro_canvas, style
from plots.micro_curves import WGMMA_KINDS, wgmma_operand_limit, wgmma_sweeps

_MMA_SYNC = "tensor_core/mma_m16n8k16_f16_f32/throughput"


def draw(micro):
    """The figure, or None where the record has no such curves."""
    found = wgmma_sweeps(micro)
    if not found:
        return None
    least = {what: min((n for n, percent in points if percent >= 95), default=None)
             for what, points in found.items()}
    ends = [f"N = {least[what]:g} on with {what}" for _, what in WGMMA_KINDS[:2]
            if least.get(what)]
    figure, (axes,) = micro_canvas.panels(
        "wgmma fills the tensor cores from " + ", from ".join(ends) if ends else
        "wgmma doesn't fill the tensor cores",
        micro_canvas.subtitle(micro, "m64nN, back to back, the better of one and two warpgroups",
                              "percent of the dense rate of its type"))
    mma_sync = micro.entry(_MMA_SYNC)
    if mma_sync and mma_sync["percent_of_limit"] is not None:
        axes.axhline(mma_sync["percent_of_limit"], **micro_canvas.THEORY)
        axes.text(0.99, mma_sync["percent_of_limit"] + 1.5,
                  f"mma.sync m16n8k16: {mma_sync['percent_of_limit']:.1f}%", ha="right",
                  transform=axes.get_yaxis_transform(), fontsize=style.HEADER_PT,
                  color=style.MUTED_INK)
    limit = wgmma_operand_limit(micro)
    if limit:
        axes.plot(*zip(*limit), color=style.RULE, linewidth=5, solid_capstyle="round", zorder=1,
                  label="limit by operands: A and B at 128 B/clk, fp16")
    for i, (_, what) in enumerate(WGMMA_KINDS):
        if what in found:
            micro_canvas.series(axes, found[what], i, what,
                                # Marks that fall on each other show as rings.
                                markersize=14 - 3 * i,
                                **({} if len(found[what]) > 1 else {"linestyle": "none"}))
    ns = sorted({n for points in found.values() for n, _ in points})
    axes.set_xscale("log", base=2)
    micro_canvas.plain_ticks(axes.xaxis, ns)
    axes.set_ylim(0, 108)
    axes.set_xlabel("N (log scale)")
    axes.set_ylabel("% of the limit")
    micro_canvas.legend(axes, loc="lower right")
    return figure
