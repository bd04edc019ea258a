# SPDX-License-Identifier: Apache-2.0
"""Error of attention against the number of keys, by how K and V are stored.

Reads dtypes.json (schema: reports/RECORD.md).
"""

from matplotlib import ticker

from plots import style
from plots.summary import SummaryError, checked

_PANELS_IN = 4.4
_AXIS_IN = 0.75
_LEGEND_COLUMNS = 4
_LEGEND_ROW_IN = 0.3
_TOP_IN = 0.5
_GAP_IN = 0.75

_INPUTS = {"normal": "N(0, 1)", "outliers": "N(0, 1), 0.1% outliers",
           "large_logits": "large logits"}
# By what begins a scheme's name: a format has a colour; by what scope follows: a mark and a line.
_FORMATS = (("fp16", style.BLACK), ("bf16", "#8A8A8A"), ("uint8", style.BLUE),
            ("e4m3", style.BLUISH_GREEN), ("e5m2", style.VERMILLION))
_SCOPES = {"tensor": ("s", (0, (1, 1.5))), "head": ("o", "-"), "block": ("^", (0, (4, 2)))}
_OTHER = ("D", "-")
_SCHEMA = {"cells": [{"inputs": str, "scheme": str, "finite": bool}],
           "schemes": [{"name": str, "label": str}], "created_utc": str, "head_dim": int,
           "seed": int}
_POINT = {"seq": int, "relative_rms": float}
_FP16_PRODUCTS = "_fp16"  # ends the name of a mixed scheme: 8-bit K and V, products in fp16


def is_dtypes(data):
    return isinstance(data, dict) and data.get("kind") == "dtypes"


def _look(name):
    """How a scheme's curve is drawn: keywords of Axes.plot."""
    colour = next((colour for start, colour in _FORMATS if name.startswith(start)), style.INK)
    scope = name.removesuffix(_FP16_PRODUCTS).rsplit("_", 1)[-1]
    marker, line = _SCOPES.get(scope, _OTHER)
    look = {"color": colour, "marker": marker, "linestyle": line, "linewidth": 1.8,
            "markersize": 6, "markerfacecolor": colour}
    if name.endswith(_FP16_PRODUCTS):
        # It lies on the curve of the same storage: a ring around each of its marks.
        look.update(linestyle="none", markersize=11, markerfacecolor="none")
    elif name == "fp16":
        look.update(markerfacecolor="white")
    return look


def _curves(data):
    """{inputs: {scheme: [(keys, relative error)]}}; a cell that is not finite has no point."""
    curves = {}
    for i, cell in enumerate(checked(data, _SCHEMA)["cells"]):
        curve = curves.setdefault(cell["inputs"], {}).setdefault(cell["scheme"], [])
        if cell["finite"]:
            checked(cell, _POINT, f"cells[{i}]")
            curve.append((cell["seq"], cell["relative_rms"]))
    if not curves:
        raise SummaryError("dtypes.json: no cell, so there is nothing to draw")
    return curves


def _title(curves):
    normal = curves.get("normal", {})
    if all(normal.get(name) for name in ("uint8_head", "e4m3_head", "e5m2_head")):
        at = {name: normal[name][-1] for name in ("uint8_head", "e4m3_head", "e5m2_head")}
        keys = at["uint8_head"][0]
        return (f"At {keys} keys, 8-bit K and V move O by {100 * at['uint8_head'][1]:.2g}% as "
                f"uint8, {100 * at['e4m3_head'][1]:.2g}% as E4M3 and "
                f"{100 * at['e5m2_head'][1]:.2g}% as E5M2")
    return "What storing K and V in fewer bits does to O"


def draw(data):
    """The figure of a dtypes.json, as parsed."""
    curves = _curves(data)
    labels = {scheme["name"]: scheme["label"] for scheme in data["schemes"]}
    figure, panels = style.new_figure(1, len(curves), squeeze=False)
    date = data["created_utc"][:10]
    heading = style.Heading(
        figure, _title(curves),
        f"CPU, FP64; fp16 and mixed in fp16 · head_dim {data['head_dim']} · root "
        "mean square of the change over that of O · "
        f"seed {data['seed']} · {date}")
    most_curves = max(len(schemes) for schemes in curves.values())
    legend_in = 0.1 + _LEGEND_ROW_IN * -(-most_curves // _LEGEND_COLUMNS)
    height = heading.height_in + _TOP_IN + _PANELS_IN + _AXIS_IN + legend_in
    figure.set_size_inches(style.WIDTH_IN, height)
    left = style.MARGIN_IN + 0.6
    width = (style.WIDTH_IN - left - style.MARGIN_IN - (len(curves) - 1) * _GAP_IN) / len(curves)
    for axes, (inputs, schemes) in zip(panels[0], curves.items()):
        style.place(figure, axes, left, _AXIS_IN + legend_in, width, _PANELS_IN)
        left += width + _GAP_IN
        for name, points in schemes.items():
            axes.plot([x for x, _ in points], [y for _, y in points],
                      label=labels.get(name, name), **_look(name))
        axes.set_xscale("log", base=2)
        if any(schemes.values()):
            axes.set_yscale("log")
        else:
            axes.text(0.5, 0.5, "nothing finite", transform=axes.transAxes, ha="center")
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(
            lambda value, _: f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:g}%"))
        axes.minorticks_off()
        axes.grid(axis="y", color=style.BAND, linewidth=1)
        axes.set_axisbelow(True)
        axes.set_xlabel("keys")
        axes.set_title(_INPUTS.get(inputs, inputs), loc="left", fontsize=style.ROW_PT)
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", bbox_to_anchor=(0.5, 0.12 / height),
                  ncol=_LEGEND_COLUMNS, frameon=False, fontsize=style.HEADER_PT, handlelength=2.6)
    heading.draw(figure)
    return figure
