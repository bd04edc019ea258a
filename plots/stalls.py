# SPDX-License-Identifier: Apache-2.0
"""Why the warps of each profiled kernel wait at one shape: shares of their cycles, stacked."""

import math

from matplotlib.patches import Patch

from plots import profile, style
from plots.summary import SummaryError

_ROW_IN = 0.42
_LEGEND_IN = 0.75
_AXIS_IN = 0.55
# Reasons that have a colour; what is left is one grey rest. "selected" is no stall but the issue.
_REASONS = (("selected", "issues", style.BLUISH_GREEN),
            ("not_selected", "ready, another warp issues", "#9AD9C3"),
            ("wait", "fixed latency", style.SKY_BLUE),
            ("short_scoreboard", "shared memory, MUFU", style.ORANGE),
            ("mio_throttle", "queue to shared memory", "#F5D38A"),
            ("long_scoreboard", "L2, DRAM, copies", style.VERMILLION),
            ("lg_throttle", "queue to global memory", "#F0B48C"),
            ("barrier", "barrier", style.BLUE),
            ("math_pipe_throttle", "arithmetic pipe", style.REDDISH_PURPLE))
_REST = ("other", "#C9C9C9")
_TEXT_FROM = 0.06  # a narrower part has no room for its figure


def _spoken(reason, names):
    """What is waited for, as it stands in a sentence."""
    if reason == "barrier":
        return "each other at barriers"
    if reason == "wait":
        return "the fixed latency of their own instructions"
    if reason.endswith("_throttle"):
        return f"room in the {names.get(reason, reason)}"
    return names.get(reason, reason).replace(", ", " or ")


def _finding(launches, shape):
    first, last = launches[0], launches[-1]

    def top(launch):
        waits = {reason: value for reason, value in launch["stalls"].items()
                 if reason not in ("selected", "not_selected")}
        reason = max(waits, key=waits.get)
        return reason, waits[reason] / math.fsum(launch["stalls"].values())

    names = {reason: label for reason, label, _ in _REASONS}
    variants = profile.short_names([launch["variant"] for launch in launches])
    (one, one_share), (other, other_share) = top(first), top(last)
    text = (f"At {shape} the warps of {variants[first['variant']]} wait most for "
            f"{_spoken(one, names)} ({one_share:.0%} of their cycles)")
    if len(launches) == 1:
        return text
    return f"{text}, those of {variants[last['variant']]} for {_spoken(other, names)} ({other_share:.0%})"


def draw(summary, shape):
    """The figure; SummaryError when no launch at that shape has stall counters."""
    launches = [launch for launch in summary.launches
                if launch["shape"] == shape and math.fsum(launch["stalls"].values()) > 0]
    if not launches:
        raise SummaryError(f"no launch at {shape} has stall counters, so there is nothing to draw")
    figure, axes = style.new_figure()
    heading = style.Heading(
        figure, _finding(launches, shape),
        f"{summary.gpu} · {shape} · share of the cycles of resident warps by what they wait for · "
        f"right: warp-cycles per instruction · Nsight Compute {summary.ncu}, one launch · "
        f"{summary.date}")
    names = list(profile.short_names([launch["variant"] for launch in launches]).values())
    labels_in = max(style.width_in(figure, name, style.ROW_PT) for name in names)
    left = style.MARGIN_IN + labels_in + 0.2
    width = style.WIDTH_IN - style.MARGIN_IN - left - 0.6
    axes_in = len(launches) * _ROW_IN
    figure.set_size_inches(style.WIDTH_IN,
                           heading.height_in + 0.2 + axes_in + _AXIS_IN + _LEGEND_IN)
    style.place(figure, axes, left, _AXIS_IN + _LEGEND_IN, width, axes_in)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(launches) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xticklabels(["0%", "25%", "50%", "75%", "100%"])
    present = []
    for y, launch in enumerate(launches):
        whole = math.fsum(launch["stalls"].values())
        start = 0.0
        rest = 1.0
        for reason, label, colour in _REASONS:
            share = launch["stalls"].get(reason, 0) / whole
            rest -= share
            if share <= 0:
                continue
            if (label, colour) not in present:
                present.append((label, colour))
            axes.barh(y, share, left=start, height=0.72, color=colour, edgecolor="white",
                      linewidth=0.8, gid=f"part:{launch['variant']}:{reason}")
            if share >= _TEXT_FROM:
                axes.text(start + share / 2, y, f"{share:.0%}", ha="center", va="center",
                          fontsize=11, color="white" if colour in (style.BLUE, style.VERMILLION)
                          else style.INK)
            start += share
        axes.barh(y, max(rest, 0), left=start, height=0.72, color=_REST[1], edgecolor="white",
                  linewidth=0.8)
        axes.text(1.01, y, f"{whole:.3g}", ha="left", va="center", fontsize=style.TICK_PT,
                  color=style.MUTED_INK)
        axes.text(-0.2 / width, y, names[y], ha="right", va="center")
    order = [(label, colour) for _, label, colour in _REASONS if (label, colour) in present]
    handles = [Patch(facecolor=colour, label=label) for label, colour in order + [_REST]]
    style.legend_below(figure, handles, 0.12, ncols=5, handletextpad=0.5, columnspacing=1.1)
    heading.draw(figure)
    return figure
