# SPDX-License-Identifier: Apache-2.0
"""How often the ledger is right where the truth is known: power, A/A intervals, p-values.

Reads a calibration's summary.json (schema: reports/RECORD.md).
"""

from matplotlib import ticker

from plots import style
from plots.summary import SummaryError, checked

_PANELS_IN = 4.2
_AXIS_IN = 0.75
_TOP_IN = 0.5
_GAP_IN = 0.95

_DODGE = 0.018  # of the axis, between curves

# (key in plants[], key in aa or None, label, colour, marker, filled)
_CURVES = [
    ("found", "false_verdicts", "REGRESSION, judged alone", style.VERMILLION, "v", True),
    ("found_in_family", "false_verdicts_in_family", "REGRESSION, strictest level",
     style.REDDISH_PURPLE, "D", False),
    ("neutral", None, "NEUTRAL", "#8A8A8A", "s", True),
]


def is_calibration(data):
    return isinstance(data, dict) and data.get("design") == "calibrate"


# A count of trials with its share, None of no trial, and the share's exact interval.
_SHARE = {"count": int, "of": int, "rate": (float, None), "low": float, "high": float}
_SCHEMA = {
    "provenance": {"gpu": {"name": str}, "created_utc": str},
    "shapes": [{"name": str}],
    "statistics": {"neutral_delta": float, "trial_processes": int, "trial_blocks": int},
    "aa": {"verdicts": {"NEUTRAL?": int}, "intervals_holding_truth": _SHARE}
          | {key: _SHARE for _, key, *_ in _CURVES if key},
    "plants": [{"aimed_percent": float, "achieved_percent": float}
               | {key: _SHARE for key, *_ in _CURVES}],
    "targets": [{"name": str, "limit": float}],
    "trials": [{"candidate": str}],
}
_OF_NULL = {"ratio": float, "ci_low": float, "ci_high": float, "p_value": float}


class Calibration:
    """What the figure needs; SummaryError names the path of what is missing."""

    def __init__(self, data):
        checked(data, _SCHEMA)
        provenance, statistics = data["provenance"], data["statistics"]
        self.gpu = provenance["gpu"]["name"]
        self.date = provenance["created_utc"][:10]
        if not data["shapes"]:
            raise SummaryError("summary.json: shapes is empty, so there is nothing to draw")
        self.shape = data["shapes"][0]["name"]
        self.delta = 100 * statistics["neutral_delta"]
        self.trial_processes = statistics["trial_processes"]
        self.trial_blocks = statistics["trial_blocks"]
        self.aa = data["aa"]
        trials = self.aa["false_verdicts"]["of"]  # without those that are INVALID
        if trials < 1:
            raise SummaryError("summary.json: the calibration has no A/A trial to draw")
        neutral = self.aa["verdicts"].get("NEUTRAL", 0) / trials
        self.neutral = {"rate": neutral, "low": neutral, "high": neutral}
        self.plants = data["plants"]
        self.target = next((100 * target["limit"] for target in data["targets"]
                            if target["name"] == "planted_found"), None)
        of_null = [checked(trial, _OF_NULL, f"trials[{i}]")
                   for i, trial in enumerate(data["trials"])
                   if trial["candidate"].startswith("null")]
        self.intervals = sorted(tuple(100 * (trial[key] - 1)
                                      for key in ("ratio", "ci_low", "ci_high"))
                                for trial in of_null)
        self.p_values = sorted(trial["p_value"] for trial in of_null)
        if not self.intervals:
            raise SummaryError("summary.json: the calibration has no A/A trial to draw")


def _finding(data):
    wrong = data.aa["false_verdicts"]
    text = f"{wrong['count']} false verdicts in {wrong['of']} A/A trials"
    two = [plant for plant in data.plants if plant["aimed_percent"] == 2]
    if not two:
        return text
    found = two[0]["found_in_family"]
    return (f"{text}; a slow-down of {two[0]['achieved_percent']:.1f}% is found in "
            f"{found['count']} of {found['of']}")


def _draw_power(axes, data):
    axes.axvspan(0, data.delta, color=style.BAND, zorder=0)
    reach = max([plant["achieved_percent"] for plant in data.plants] + [1])
    for place, (key, aa_key, label, colour, marker, filled) in enumerate(_CURVES):
        # Side by side: curves that meet would hide each other's marks and bars.
        shift = (place - (len(_CURVES) - 1) / 2) * _DODGE * reach
        points = [(0.0, data.aa[aa_key] if aa_key else data.neutral)]
        points += [(plant["achieved_percent"], plant[key]) for plant in data.plants]
        points.sort(key=lambda point: point[0])
        points = [(x + shift, rate) for x, rate in points if rate["rate"] is not None]
        xs = [x for x, _ in points]
        axes.plot(xs, [100 * rate["rate"] for _, rate in points], color=colour, linewidth=2,
                  zorder=2)
        for x, rate in points:
            axes.plot([x, x], [100 * rate["low"], 100 * rate["high"]], color=colour, linewidth=3,
                      solid_capstyle="butt", alpha=0.45, zorder=3)
        axes.plot(xs, [100 * rate["rate"] for _, rate in points], zorder=4, label=label,
                  **style.mark_arguments(marker, colour, filled))
    if data.target is not None:
        axes.axhline(data.target, color=style.RULE, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        # Above the legend, where no plant's bars hang.
        axes.text(0.68 * reach, data.target - 1.5, f"target: {data.target:g}%", ha="center",
                  va="top", fontsize=style.HEADER_PT, color=style.MUTED_INK)
    axes.set_ylim(-4, 104)
    axes.set_xlim(-0.15, reach + 0.25)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.set_xlabel("planted slow-down, as achieved")
    axes.set_title("Share of trials", loc="left", fontsize=style.ROW_PT)
    axes.legend(loc="center right", bbox_to_anchor=(1, 0.42), frameon=False,
                fontsize=style.HEADER_PT, handletextpad=0.4)
    axes.text(data.delta / 3, 57, f"NEUTRAL's band, ±{data.delta:g}%", rotation=90, ha="center",
              va="center", fontsize=style.HEADER_PT, color=style.MUTED_INK)


def _draw_intervals(axes, data):
    count = len(data.intervals)
    for place, (ratio, low, high) in enumerate(data.intervals):
        outside = low > 0 or high < 0
        axes.plot([low, high], [place, place], color=style.ORANGE if outside else style.SKY_BLUE,
                  linewidth=1.2, solid_capstyle="butt", zorder=3 if outside else 2)
        axes.plot([ratio], [place], marker="o", markersize=1.8, color=style.INK,
                  markeredgewidth=0, zorder=4)
    axes.axvline(0, color=style.INK, linewidth=1, zorder=1)
    for edge in (-data.delta, data.delta):
        axes.axvline(edge, color=style.RULE, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    reach = max([data.delta] + [abs(v) for _, low, high in data.intervals for v in (low, high)])
    axes.set_xlim(-1.08 * reach, 1.08 * reach)
    axes.set_ylim(-count * 0.02, count * 1.02)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.set_xlabel("ratio of identical arms − 1")
    held = data.aa["intervals_holding_truth"]
    axes.set_title(f"{held['count']} of {held['of']} intervals hold the truth", loc="left",
                   fontsize=style.ROW_PT)


def _draw_p_values(axes, data):
    count = len(data.p_values)
    axes.plot([0, 1], [0, 1], color=style.RULE, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.step([0] + data.p_values + [1], [i / count for i in range(count + 1)] + [1], where="post",
              color=style.BLUE, linewidth=2, zorder=2)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("p-value of an A/A trial")
    axes.set_title("Share of trials below it", loc="left", fontsize=style.ROW_PT)
    axes.text(0.97, 0.05, "on the dashed line: exact\nbelow it: cautious", ha="right", va="bottom",
              fontsize=style.HEADER_PT, color=style.MUTED_INK)


def draw(raw):
    """The figure of a calibration's summary.json, as parsed."""
    data = Calibration(raw)
    figure, panels = style.new_figure(1, 3)
    heading = style.Heading(
        figure, _finding(data),
        f"{data.gpu} · {data.shape} · a trial is {data.trial_processes} processes × "
        f"{data.trial_blocks} blocks · bars: exact 95% intervals of the shares · {data.date}")
    height = heading.height_in + _TOP_IN + _PANELS_IN + _AXIS_IN
    figure.set_size_inches(style.WIDTH_IN, height)
    left = style.MARGIN_IN + 0.55
    room = style.WIDTH_IN - left - style.MARGIN_IN - 2 * _GAP_IN
    shares = (0.44, 0.30, 0.26)
    for axes, share in zip(panels, shares):
        style.place(figure, axes, left, _AXIS_IN, room * share, _PANELS_IN)
        left += room * share + _GAP_IN
    _draw_power(panels[0], data)
    _draw_intervals(panels[1], data)
    _draw_p_values(panels[2], data)
    heading.draw(figure)
    return figure
