# SPDX-License-Identifier: Apache-2.0
"""Bandwidth against bytes in flight, by cp.async, TMA and loads through registers."""

from plots import micro_canvas, style
from plots.micro_curves import (CP_ASYNC_LEVELS, CP_ASYNC_WAYS, cp_async_curves, cp_async_latency,
                                cp_async_stages_for)
from plots.micro_data import bytes_for_bandwidth, littles_law_gb_per_s


def draw(micro):
    """The figure, or None where the record has no such curves."""
    levels = [level for level in CP_ASYNC_LEVELS if cp_async_curves(micro, level[0])]
    if not levels:
        return None
    needs = []
    for level, name, *_ in levels:
        if found := cp_async_stages_for(micro, level):
            needs.append(f"{found[0]} {'stages ' if not needs else ''}for {name}")
    figure, all_axes = micro_canvas.panels(
        "cp.async is within 5% of its best with " + " and ".join(needs),
        micro_canvas.subtitle(micro, "tiles of 8 KiB, one CTA on each SM, no arithmetic",
                              "both scales logarithmic"), len(levels), height_in=5.2)
    for axes, (level, name, latency_case, peak_case) in zip(all_axes, levels):
        found = cp_async_curves(micro, level)
        for i, (_, what) in enumerate(CP_ASYNC_WAYS):
            if what in found:
                points = found[what]
                micro_canvas.series(axes, points, i, what,
                                    **({} if len(points) > 1 else {"linestyle": "none"}))
        xs = sorted({x for points in found.values() for x, _ in points})
        top = max(y for points in found.values() for _, y in points)
        clock = next(entry["sm_mhz_p50"] for _, entry in micro.matching(
            rf"cp_async_depth/{level}_.*/bandwidth") if entry["sm_mhz_p50"])
        latency, peak = micro.value(latency_case), micro.value(peak_case)
        if latency:
            sms = micro.gpu["sm_count"]
            loaded = cp_async_latency(micro, level)
            for cycles, why, dashes in ((latency, "idle", (0, (1, 1.5))),
                                        (loaded, "one stage's", (0, (5, 3)))):
                if cycles is None:
                    continue
                # Drawn as far as the level's own rate; past it the law isn't the limit.
                ends = (xs[0] / 2, bytes_for_bandwidth(peak or top, cycles, sms, clock))
                axes.plot(ends, [littles_law_gb_per_s(x, cycles, sms, clock) for x in ends],
                          **(micro_canvas.THEORY | {"linestyle": dashes}),
                          label=f"Little's law at {cycles:.0f} cycles, {why}")
        if peak:
            axes.axhline(peak, color=style.RULE, linewidth=1.4, zorder=1)
            axes.text(xs[-1] * 1.06, peak, "plain reads", fontsize=style.HEADER_PT,
                      color=style.MUTED_INK, va="bottom", ha="right")
        micro_canvas.bytes_axis(axes, [2 ** k for k in range(13, 17)],
                                "bytes in flight per SM (log scale)")
        axes.set_xlim(xs[0] / 2, xs[-1] * 1.15)
        axes.set_yscale("log", base=2)
        micro_canvas.plain_ticks(axes.yaxis, [500, 1000, 2000, 4000, 8000])
        axes.set_ylim(min(y for points in found.values() for _, y in points) / 2.5,
                      1.15 * max(top, peak or 0))
        axes.set_ylabel("GB/s")
        micro_canvas.panel_title(axes, f"from {name}")
        micro_canvas.legend(axes, loc="lower right")
    return figure
