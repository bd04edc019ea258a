# SPDX-License-Identifier: Apache-2.0
"""summary.json as the figures read it (schema: reports/RECORD.md).

Everything a figure uses is checked at load, and the one error names the JSON path. Cells that
failed correctness stay in the data, but `ranked` is false for them: they are drawn, never compared.
"""

import collections
import functools
import math
import pathlib

from plots import json_text, style

SCHEMA_VERSION = 2

# Where a backend's name leaves open which implementation it is.
DEPENDENTS = "(+dependents)"  # of a toggle that is left out with those that need it
PEER_LABELS = {"flash": "flash (FA2)"}


def _arm_name(verdict, bases, say):
    """The candidate's name, and the base's where the one doesn't begin with the other."""
    base, candidate = verdict["base"], verdict["candidate"]
    if candidate.startswith(base) and len(bases[candidate]) == 1:
        return say(candidate)
    return f"{say(base)} → {say(candidate)}"


def _end_of_chain(arm, kept):
    """An arm's name by so many of its last techniques, where it is a longer chain."""
    parts = arm.split("+")
    return arm if len(parts) <= kept + 1 else "+".join(["…", *parts[-kept:]])


def _short_names(whole_names):
    """{whole name: a short one}, of verdicts by their arms: by the ends of chains, each as long as
    it must be for no two to have the same.

    whole_names: {whole name: a function that says it with arms said by another function}
    """
    kept = dict.fromkeys(whole_names, 2)
    while True:
        short = {whole: name(lambda arm, kept=kept[whole]: _end_of_chain(arm, kept))
                 for whole, name in whole_names.items()}
        taken = collections.Counter(short.values())
        alike = [whole for whole in short if taken[short[whole]] > 1 and short[whole] != whole]
        if not alike:
            return short
        for whole in alike:
            kept[whole] += 1


class SummaryError(Exception):
    """The summary can't be drawn; the message is one line that says what and why."""


def with_shown_names(data):
    """The summary with its problems called as pages call them ("shown", reports/RECORD.md)."""
    shapes = data.get("shapes") if isinstance(data, dict) else None
    shown = {shape["name"]: shape["shown"] for shape in shapes if isinstance(shape, dict)
             and all(isinstance(shape.get(key), str) for key in ("name", "shown"))
             } if isinstance(shapes, list) else {}
    for key, rows in data.items() if shown else ():
        name = "name" if key == "shapes" else "shape"
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get(name), str):
                row[name] = shown.get(row[name], row[name])
    return data


def load_json(path):
    try:
        return json_text.loads(pathlib.Path(path).read_bytes())
    except OSError as error:
        raise SummaryError(f"{path}: {error.strerror}; write it with `warpledger judge`") from error
    except ValueError as error:
        raise SummaryError(f"{path}: not JSON ({error}); write it again with `warpledger judge`"
                           ) from error


def checked(data, schema, path=""):
    """The data; SummaryError names the path of what is not as the schema of json_text says."""
    try:
        return json_text.checked(data, schema, path)
    except ValueError as error:
        raise SummaryError(f"summary.json: {error}; write the summary again with "
                           "`warpledger judge`") from None


_MAYBE = (float, None)
_TIME = dict.fromkeys(("p50_us", "ci_low_us", "ci_high_us"), _MAYBE)
_RATIO = dict.fromkeys(("ratio", "ci_low", "ci_high"), _MAYBE)
# What the figures use.
_SCHEMA = {
    "design": str,
    "provenance": {"gpu": {"name": str}, "created_utc": str, "cache": str},
    "statistics": {"confidence": float, "neutral_delta": float},
    "shapes": [{"name": str, "flops": float}],
    "verdicts": [{"toggle": str, "base": str, "candidate": str, "shape": str, "verdict": str,
                  "gate": _MAYBE} | _RATIO],
    "cells": [{"variant": str, "config": str, "role": str, "shape": str, "kv_bits?": int,
               "toggle": (str, None), "label": (str, None), "speedup_over_first": (_RATIO, None),
               "correct": (bool, None)} | _TIME],
    "peers": [{"name": str, "shape": str, "available": bool, "kv_bits?": int,
               "correct": (bool, None)} | _TIME],
    "floors": [{"name": str, "shape": str} | _TIME],
    # Only a factorial has shares.
    "attribution?": [{"toggle": str, "shape": str, "shapley_share": _MAYBE, "shapley_log": _MAYBE,
                      "shapley_log_low": _MAYBE, "shapley_log_high": _MAYBE, "total_log": _MAYBE}],
    "interactions?": [{"a": str, "b": str, "shape": str, "interaction_ratio": _MAYBE,
                       "ci_low": _MAYBE, "ci_high": _MAYBE}],
}
_ATTENTION = {"shapes": [{"causal": bool, "batch": int, "heads_q": int, "heads_kv": int,
                          "seq_q": int, "seq_kv": int, "head_dim": int, "dtype?": str}]}


def _positive(parent, path, key):
    value = parent[key]
    if value is not None and not (math.isfinite(value) and value > 0):
        raise SummaryError(f"summary.json: {path}.{key} must be above 0, but is {value}")
    return value


def _estimate(parent, path, value, low, high):
    """(value, low, high); all None when there is no value, and no interval when half is missing.

    An interval need not hold its value: a bootstrap's may lie beside the median of few samples.
    """
    middle, low, high = (_positive(parent, path, key) for key in (value, low, high))
    if middle is None:
        return None, None, None
    if low is None or high is None:
        return middle, None, None
    if low > high:
        raise SummaryError(f"summary.json: {path}: the interval's ends are swapped")
    return middle, low, high


class Summary:
    """What the figures need, in the record's order."""

    def __init__(self, data):
        version = checked(data, {"schema_version": int})["schema_version"]
        if version > SCHEMA_VERSION:
            raise SummaryError(f"summary.json: schema_version is {version}, but these plots know "
                               f"versions up to {SCHEMA_VERSION}")
        checked(data, _SCHEMA)
        self.design = data["design"]
        provenance = data["provenance"]
        self.gpu = provenance["gpu"]["name"]
        self.date = provenance["created_utc"][:10]
        self.cache = provenance["cache"]
        self.alone = "alone" in provenance  # each arm was timed by itself
        self._is_attention = provenance.get("subject", "sdpa") == "sdpa"
        if self._is_attention:
            checked(data, _ATTENTION)
        self.part = ""  # a subtitle's word on the shapes, where they are some of the record's
        self.confidence = data["statistics"]["confidence"]
        self.neutral_delta = data["statistics"]["neutral_delta"]
        # Of which boards the intervals of verdicts are.
        self.boards = ("other boards of the kind"
                       if data["statistics"].get("spreads") and not self.alone else "this board")
        self.shapes = [self._shape(j) for j in data["shapes"]]
        self.verdicts = self._rows(data, "verdicts", self._verdict)
        self._tell_levels_apart()
        self.cells = self._rows(data, "cells", self._cell)
        self.peers = self._rows(data, "peers", self._peer)
        self.floors = self._rows(data, "floors", self._floor)
        self.attribution = self._rows(data, "attribution", self._attribution)
        self.interactions = self._rows(data, "interactions", self._interaction)
        if not self.shapes:
            raise SummaryError("summary.json: shapes is empty, so there is nothing to draw")

    def _rows(self, data, key, row_of):
        """Each object with what row_of(object, path) makes of it, at a shape of the record."""
        rows = []
        for i, j in enumerate(data.get(key, [])):
            path = f"{key}[{i}]"
            if j["shape"] not in self.shape_names():
                raise SummaryError(f"summary.json: {path}.shape is \"{j['shape']}\", which is not in "
                                   "shapes")
            rows.append(j | row_of(j, path))
        return rows

    def _shape(self, j):
        if self._is_attention:
            return {"dtype": "fp16"} | j
        return j | {"words": ", ".join(f"{key} {value}" for key, value in j.items()
                                       if key not in ("name", "shown", "flops", "min_bytes"))}

    @staticmethod
    def _verdict(j, path):
        if j["verdict"] not in style.VERDICT_MARKS:
            raise SummaryError(f"summary.json: {path}.verdict is \"{j['verdict']}\", which "
                               "these plots do not know")
        return {"ratio": _estimate(j, path, *_RATIO),
                "gate": _positive(j, path, "gate")}

    def _cell(self, j, path):
        verdict = self.verdict(j["variant"], j["shape"])
        us = _estimate(j, path, *_TIME)
        gain = j["speedup_over_first"]
        return {"kv_bits": j.get("kv_bits", 16), "toggle": j["toggle"] or "",
                "label": j["label"] or j["variant"], "us": us, "verdict": verdict,
                "gain": gain and _estimate(gain, f"{path}.speedup_over_first", *_RATIO)[0],
                "ranked": (j["correct"] is True and us[0] is not None
                           and (verdict is None or verdict["verdict"] != "INVALID"))}

    @staticmethod
    def _peer(j, path):
        name = j["name"].removeprefix("peer:")
        us = _estimate(j, path, *_TIME)
        return {"name": PEER_LABELS.get(name, name), "us": us, "kv_bits": j.get("kv_bits", 16),
                "ranked": j["available"] and j["correct"] is True and us[0] is not None}

    @staticmethod
    def _floor(j, path):
        return {"name": j["name"].removeprefix("floor:"), "us": _estimate(j, path, *_TIME)}

    def _attribution(self, j, _path):
        """A toggle's Shapley share at a shape; `log` and its interval are natural logarithms."""
        return {"share": j["shapley_share"], "log": j["shapley_log"],
                "low": j["shapley_log_low"], "high": j["shapley_log_high"],
                "total": j["total_log"],
                "label": self.step_labels().get(j["toggle"], j["toggle"])}

    def _interaction(self, j, path):
        ratio, low, high = _estimate(j, path, "interaction_ratio", "ci_low", "ci_high")
        labels = self.step_labels()
        return {"ratio": ratio, "low": low, "high": high,
                "a_label": labels.get(j["a"], j["a"]), "b_label": labels.get(j["b"], j["b"])}

    def _tell_levels_apart(self):
        """A toggle that is judged more than once at a shape, as at several levels, goes by its arm."""
        judged = {}
        for verdict in self.verdicts:
            judged.setdefault((verdict["toggle"], verdict["shape"]), []).append(verdict)
        several = {toggle for (toggle, _), verdicts in judged.items() if len(verdicts) > 1}
        # One arm may be judged against several others.
        bases = {}
        for verdict in self.verdicts:
            bases.setdefault(verdict["candidate"], set()).add(verdict["base"])
        names = [(verdict, functools.partial(_arm_name, verdict, bases))
                 for verdict in self.verdicts if verdict["toggle"] in several]
        short = _short_names({name(str): name for _, name in names})
        for verdict, name in names:
            # Spaces where a line may break.
            verdict["toggle"] = short[name(str)].replace(":", ": ").replace("+", " + ")

    def shape_names(self):
        return [shape["name"] for shape in self.shapes]

    def shape(self, name):
        for shape in self.shapes:
            if shape["name"] == name:
                return shape
        raise SummaryError(f"the record has no shape {name}; it has "
                           f"{', '.join(self.shape_names())}")

    def verdict(self, candidate, shape):
        for verdict in self.verdicts:
            if verdict["candidate"] == candidate and verdict["shape"] == shape:
                return verdict
        return None

    def ladder(self, shape):
        """The base and its steps at a shape, in ladder order."""
        at_shape = [cell for cell in self.cells if cell["shape"] == shape]
        first = next((cell for cell in at_shape if cell["role"] == "base"), None)
        return [cell for cell in at_shape if cell is first or cell["role"] == "step"]

    def beside_ladder(self, shape):
        """What a design times beside its ladder: other bases, and the last step without a toggle."""
        ladder = self.ladder(shape)
        return [cell for cell in self.cells
                if cell["shape"] == shape and cell["role"] in ("base", "without")
                and cell not in ladder]

    def step_labels(self):
        """{toggle: label} in ladder order."""
        return {cell["toggle"]: cell["label"].removeprefix("Without: ")
                + (f" {DEPENDENTS}" if cell["variant"] in self._without_dependents() else "")
                for cell in self.cells if cell["role"] in ("step", "without")}

    def judged(self):
        """(what a verdict is on, how the two times of its ratio are called), for titles: a step of
        a ladder, where each verdict's base is the candidate of the one before, or a toggle."""
        for shape in self.shape_names():
            verdicts = [verdict for verdict in self.verdicts if verdict["shape"] == shape]
            if any(after["base"] != before["candidate"]
                   for before, after in zip(verdicts, verdicts[1:])):
                return "toggle", "time without / time with each toggle"
        return "step", "time before / time after each step"

    def with_dependents(self):
        """A subtitle's word on toggles that were taken away with what needs them; "" without any."""
        return (f"{DEPENDENTS}: and with those that need it · " if self._without_dependents()
                else "")

    def _without_dependents(self):
        """The arms that lack more than the toggle that they leave out."""
        def toggles(config):
            return {part.partition("=")[0] for part in config.split("+")}

        configs = {cell["variant"]: toggles(cell["config"]) for cell in self.cells}
        left_out = {cell["variant"] for cell in self.cells if cell["role"] == "without"}
        return {verdict["base"] for verdict in self.verdicts if verdict["base"] in left_out
                and len(configs.get(verdict["candidate"], set()) - configs[verdict["base"]]) > 1}


def describe(shape):
    if "words" in shape:
        return shape["words"]
    heads = f"{shape['heads_q']} head{'' if shape['heads_q'] == 1 else 's'}"
    if shape["heads_kv"] != shape["heads_q"]:
        heads += f" ({shape['heads_kv']} K/V)"
    causal = ", causal" if shape["causal"] else ""
    return (f"batch {shape['batch']}, {heads}, {shape['seq_q']} queries × {shape['seq_kv']} keys, "
            f"head_dim {shape['head_dim']}{causal}, {shape['dtype']}")


def significant(value, digits):
    """As many significant digits, no exponent: 9.73, 246, 0.512."""
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = max(0, digits - 1 - math.floor(math.log10(rounded)))
    return f"{value:.{decimals}f}"  # a digit before the point is never made a zero: 1071, not 1070


def ratio_number(ratio):
    """With the digits of the reports' tables, so that an estimate lies in its interval, and below
    the gate that it misses, as printed too."""
    decimals = 3 if ratio < 1.9995 else 2 if ratio < 9.995 else 1 if ratio < 99.95 else 0
    return f"{ratio:.{decimals}f}"


def times(ratio):
    """A ratio beside a mark."""
    return f"{ratio_number(ratio)}×"


def spoken_times(ratio):
    """A ratio in a title: three digits."""
    return f"{significant(ratio, 3)}×"
