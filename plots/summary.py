# SPDX-License-Identifier: Apache-2.0
"""summary.json as the figures read it (schema: reports/RECORD.md).

Everything a figure uses is checked at load, and the one error names the JSON path. Cells that
failed correctness stay in the data, but `ranked` is false for them: they are drawn, never compared.
"""

import collections
import functools
import json
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


def _field(parent, path, key, kinds, nullable=False):
    where = f"{path}.{key}" if path else key
    if not isinstance(parent, dict):
        raise SummaryError(f"summary.json: {path or 'the document'} must be an object")
    if key not in parent:
        raise SummaryError(f"summary.json: {where} is missing; write the summary again with "
                           "`warpledger judge`")
    value = parent[key]
    if value is None and nullable:
        return None
    # bool is an int to Python, and no number to us.
    if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
        raise SummaryError(f"summary.json: {where} must be {_name(kinds)}"
                           f"{' or null' if nullable else ''}, but is {json.dumps(value)[:40]}")
    return value


def _name(kinds):
    names = {str: "a string", bool: "true or false", dict: "an object", list: "an array"}
    return names.get(kinds, "a number")


_NUMBER = (int, float)


def _positive(parent, path, key):
    value = _field(parent, path, key, _NUMBER, nullable=True)
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


# For the other summaries.
field = _field


def number(parent, path, key):
    return _field(parent, path, key, _NUMBER, nullable=True)


class Summary:
    """What the figures need, in the record's order."""

    def __init__(self, data):
        version = _field(data, "", "schema_version", int)
        if version > SCHEMA_VERSION:
            raise SummaryError(f"summary.json: schema_version is {version}, but these plots know "
                               f"versions up to {SCHEMA_VERSION}")
        self.design = _field(data, "", "design", str)
        provenance = _field(data, "", "provenance", dict)
        gpu = _field(provenance, "provenance", "gpu", dict)
        self.gpu = _field(gpu, "provenance.gpu", "name", str)
        self.date = _field(provenance, "provenance", "created_utc", str)[:10]
        self.cache = _field(provenance, "provenance", "cache", str)
        self.alone = "alone" in provenance  # each arm was timed by itself
        self._is_attention = provenance.get("subject", "sdpa") == "sdpa"
        statistics = _field(data, "", "statistics", dict)
        self.part = ""  # a subtitle's word on the shapes, where they are some of the record's
        self.confidence = _field(statistics, "statistics", "confidence", _NUMBER)
        self.neutral_delta = _field(statistics, "statistics", "neutral_delta", _NUMBER)
        self.shapes = [self._shape(j, path) for j, path in self._elements(data, "shapes")]
        self.verdicts = [self._verdict(j, path) for j, path in self._elements(data, "verdicts")]
        self._tell_levels_apart()
        self.cells = [self._cell(j, path) for j, path in self._elements(data, "cells")]
        self.peers = [self._peer(j, path) for j, path in self._elements(data, "peers")]
        self.floors = [self._floor(j, path) for j, path in self._elements(data, "floors")]
        # Only a factorial has shares.
        self.attribution = ([self._attribution(j, path)
                             for j, path in self._elements(data, "attribution")]
                            if "attribution" in data else [])
        self.interactions = ([self._interaction(j, path)
                              for j, path in self._elements(data, "interactions")]
                             if "interactions" in data else [])
        if not self.shapes:
            raise SummaryError("summary.json: shapes is empty, so there is nothing to draw")

    @staticmethod
    def _elements(data, key):
        return [(element, f"{key}[{i}]") for i, element in enumerate(_field(data, "", key, list))]

    def _shape(self, j, path):
        shape = {"name": _field(j, path, "name", str), "flops": _field(j, path, "flops", _NUMBER)}
        if not self._is_attention:
            shape["words"] = ", ".join(f"{key} {value}" for key, value in j.items()
                                       if key not in ("name", "shown", "flops", "min_bytes"))
            return shape
        shape["causal"] = _field(j, path, "causal", bool)
        for key in ("batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim"):
            shape[key] = _field(j, path, key, int)
        shape["dtype"] = _field(j, path, "dtype", str) if "dtype" in j else "fp16"
        return shape

    def _verdict(self, j, path):
        verdict = {key: _field(j, path, key, str)
                   for key in ("toggle", "base", "candidate", "shape", "verdict")}
        if verdict["verdict"] not in style.VERDICT_MARKS:
            raise SummaryError(f"summary.json: {path}.verdict is \"{verdict['verdict']}\", which "
                               "these plots do not know")
        verdict["ratio"] = _estimate(j, path, "ratio", "ci_low", "ci_high")
        verdict["gate"] = _positive(j, path, "gate")
        return self._known_shape(verdict, path)

    def _cell(self, j, path):
        cell = {key: _field(j, path, key, str) for key in ("variant", "config", "role", "shape")}
        cell["kv_bits"] = _field(j, path, "kv_bits", int) if "kv_bits" in j else 16
        cell["toggle"] = _field(j, path, "toggle", str, nullable=True) or ""
        cell["label"] = _field(j, path, "label", str, nullable=True) or cell["variant"]
        cell["us"] = _estimate(j, path, "p50_us", "ci_low_us", "ci_high_us")
        gain = _field(j, path, "speedup_over_first", dict, nullable=True)
        cell["gain"] = (None if gain is None else
                        _estimate(gain, f"{path}.speedup_over_first", "ratio", "ci_low",
                                  "ci_high")[0])
        cell["verdict"] = self.verdict(cell["variant"], cell["shape"])
        verdict = cell["verdict"]
        cell["correct"] = _field(j, path, "correct", bool, nullable=True)
        cell["ranked"] = (cell["correct"] is True and cell["us"][0] is not None
                          and (verdict is None or verdict["verdict"] != "INVALID"))
        return self._known_shape(cell, path)

    def _peer(self, j, path):
        name = _field(j, path, "name", str).removeprefix("peer:")
        peer = {"name": PEER_LABELS.get(name, name), "shape": _field(j, path, "shape", str),
                "available": _field(j, path, "available", bool),
                "correct": _field(j, path, "correct", bool, nullable=True),
                "us": _estimate(j, path, "p50_us", "ci_low_us", "ci_high_us")}
        peer["ranked"] = (peer["available"] and peer["correct"] is True
                          and peer["us"][0] is not None)
        return self._known_shape(peer, path)

    def _floor(self, j, path):
        floor = {"name": _field(j, path, "name", str).removeprefix("floor:"),
                 "shape": _field(j, path, "shape", str),
                 "us": _estimate(j, path, "p50_us", "ci_low_us", "ci_high_us")}
        return self._known_shape(floor, path)

    def _attribution(self, j, path):
        """A toggle's Shapley share at a shape; `log` and its interval are natural logarithms."""
        row = {key: _field(j, path, key, str) for key in ("toggle", "shape")}
        for name, key in (("share", "shapley_share"), ("log", "shapley_log"),
                          ("low", "shapley_log_low"), ("high", "shapley_log_high"),
                          ("total", "total_log")):
            row[name] = _field(j, path, key, _NUMBER, nullable=True)
        row["label"] = self.step_labels().get(row["toggle"], row["toggle"])
        return self._known_shape(row, path)

    def _interaction(self, j, path):
        row = {key: _field(j, path, key, str) for key in ("a", "b", "shape")}
        row["ratio"], row["low"], row["high"] = _estimate(j, path, "interaction_ratio", "ci_low",
                                                          "ci_high")
        for key in ("a", "b"):
            row[f"{key}_label"] = self.step_labels().get(row[key], row[key])
        return self._known_shape(row, path)

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

    def _known_shape(self, element, path):
        if element["shape"] not in self.shape_names():
            raise SummaryError(f"summary.json: {path}.shape is \"{element['shape']}\", which is "
                               "not in shapes")
        return element

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
