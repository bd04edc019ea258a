# SPDX-License-Identifier: Apache-2.0
r"""micro.json as figures and pages read it, and the formulas that follow from its values.

    micro = load("reports/data/h200/micro-TIME/micro.json")
    micro.value("fma_shfl/ffma/throughput")          # 127.9, or None where it wasn't measured
    curve = micro.curve(r"read_\d+MiB/bandwidth", "footprint_bytes")   # [(bytes, GB/s), ..]

Records differ in their cases: whoever draws or writes asks for what it needs and goes without
what is missing. Only Python's own modules are used, so that the install tree needs no package.
"""

import gzip
import math
import pathlib
import re
import statistics

from plots import json_text

SCHEMA_VERSION = 1
# Units in which less is better; everything else is a rate.
COSTS = ("cycles", "us", "ns")


class MicroError(Exception):
    """The record can't be read; the message is one line that says what, why and what to do."""


def load(path):
    """The record of a micro.json; values by process come from the raw samples where it has none."""
    path = pathlib.Path(path)
    try:
        data = json_text.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise MicroError(f"can't read {path}: {error}; write it with micro/record.sh") from error
    if not isinstance(data, dict) or data.get("schema_version") != SCHEMA_VERSION:
        raise MicroError(f"{path}: its schema isn't version {SCHEMA_VERSION}; read it with the "
                         "version that wrote it, or run micro/record.sh again")
    try:
        check(data)
        if any("by_process" not in entry for entry in data["micro"]):
            add_processes(data, path.parent)
        return Micro(data)
    except MicroError as error:
        raise MicroError(f"{path}: {error}; it is of another version. Run micro/record.sh again"
                         ) from error
    except json_text.DAMAGE as error:
        raise MicroError(f"{path} lacks or garbles something: {json_text.said(error)}; it is of "
                         "another version. Run micro/record.sh again") from error


# What figures and pages read.
_SCHEMA = {"gpu": {"name": str, "sm_count": int}, "provenance": {"started": str},
           "micro": [{"name": str, "unit": str, "parameters": {str: float}, "value": float,
                      "percent_of_limit": (float, None), "sm_mhz_p50": (float, None)}]}


def check(data):
    """MicroError names the path of what a figure would miss."""
    try:
        json_text.checked(data, _SCHEMA)
    except ValueError as error:
        raise MicroError(error) from None


def raw_lines(folder):
    """The lines of the raw samples, packed or not; [] when the folder has none."""
    for name, opened in (("micro_raw.jsonl", open), ("micro_raw.jsonl.gz", gzip.open)):
        path = pathlib.Path(folder) / name
        if path.exists():
            with opened(path, "rt", encoding="utf-8") as file:
                return file.read().split("\n")
    return []


def process_values(samples):
    """[{value, repetitions, sm_mhz}] by process: medians of a case's samples, in the raw file's form."""
    values, clocks = {}, {}
    for sample in samples:
        values.setdefault(sample["process"], {}).setdefault(sample["repetition"], []).append(
            sample["value"])
        clocks.setdefault(sample["process"], []).append(sample.get("sm_mhz"))
    processes = []
    for process, repetitions in sorted(values.items()):
        medians = [statistics.median(found) for _, found in sorted(repetitions.items())]
        known = [clock for clock in clocks[process] if clock is not None]
        processes.append({"value": statistics.median(medians), "repetitions": medians,
                          "sm_mhz": statistics.median(known) if known else None})
    return processes


def add_processes(data, folder):
    """Older records: each process's medians, from the raw samples beside micro.json."""
    by_case = {}
    for line in raw_lines(folder):
        if not line:
            continue
        try:
            sample = json_text.loads(line)
        except ValueError:
            continue  # cut off by a kill
        by_case.setdefault(sample["case"], []).append(sample)
    for entry in data["micro"]:
        entry["by_process"] = process_values(by_case.get(entry["name"], []))


class Micro:
    """One record. Entries keep the order of the program's list."""

    def __init__(self, data):
        self.gpu = data["gpu"]
        self.provenance = data["provenance"]
        self.entries = data["micro"]
        self.not_run = data["not_run"]
        self._by_name = {entry["name"]: entry for entry in self.entries}

    def for_pages(self):
        """The same with texts that are safe in Markdown."""
        return Micro(json_text.markdown({"gpu": self.gpu, "provenance": self.provenance,
                                         "micro": self.entries, "not_run": self.not_run}))

    def __contains__(self, name):
        return name in self._by_name

    def entry(self, name):
        return self._by_name.get(name)

    def value(self, name):
        entry = self._by_name.get(name)
        return None if entry is None else entry["value"]

    def benchmarks(self):
        """{benchmark: its entries}, in the record's order; files are linked in any order."""
        groups = {}
        for entry in self.entries:
            groups.setdefault(entry["name"].partition("/")[0], []).append(entry)
        return dict(sorted(groups.items()))

    def matching(self, pattern):
        """[(match, entry)] of the entries whose whole name matches."""
        found = ((re.fullmatch(pattern, entry["name"]), entry) for entry in self.entries)
        return [(match, entry) for match, entry in found if match]

    def curve(self, pattern, parameter):
        """[(parameter, value)] of the matching entries, by rising parameter."""
        return sorted((entry["parameters"][parameter], entry["value"])
                      for _, entry in self.matching(pattern) if parameter in entry["parameters"])


def parameter(entry, key):
    """A parameter that every case of this name has."""
    if key not in entry["parameters"]:
        raise MicroError(f"micro.json: {entry['name']} lacks the parameter {key}; it is of another "
                         "version. Run micro/record.sh again")
    return entry["parameters"][key]


# --- Formulas ------------------------------------------------------------------


def spread_percent(values):
    """How far the processes' medians lie apart, in percent of their median; None for fewer than 2."""
    middle = statistics.median(values) if values else 0
    return 100 * (max(values) - min(values)) / abs(middle) if len(values) > 1 and middle else None


def littles_law_gb_per_s(bytes_in_flight_per_sm, latency_cycles, sm_count, sm_mhz):
    """Bandwidth of a GPU whose SMs keep that many bytes on their way: bytes / latency."""
    return bytes_in_flight_per_sm * sm_count * sm_mhz * 1e6 / latency_cycles / 1e9


def bytes_for_bandwidth(gb_per_s, latency_cycles, sm_count, sm_mhz):
    """The inverse: bytes that each SM must have in flight for that bandwidth."""
    return gb_per_s * 1e9 * latency_cycles / (sm_count * sm_mhz * 1e6)


def effective_latency_cycles(bytes_in_flight_per_sm, gb_per_s, sm_count, sm_mhz):
    """The latency at which Little's law gives the measured bandwidth."""
    return bytes_in_flight_per_sm * sm_count * sm_mhz * 1e6 / (gb_per_s * 1e9)


def break_even(costly, free, tolerance=0.01):
    """The least x from which on `costly` is at most (1 + tolerance) times `free`, or None.

    Both are [(x, y)] over the same x, y above 0; between two points the excess is a straight line.
    """
    free = dict(free)
    excess = [(x, y / free[x] - 1 - tolerance) for x, y in sorted(costly) if x in free]
    if not excess or excess[-1][1] > 0:
        return None
    # From the right: the last point above nothing decides.
    for (x0, e0), (x1, e1) in zip(reversed(excess[:-1]), reversed(excess[1:])):
        if e0 > 0:
            return x0 + (x1 - x0) * e0 / (e0 - e1)
    return excess[0][0]


def pareto_front(points):
    """Of (gain, loss, ..) tuples those that no other beats in both, by rising gain."""
    front = []
    for point in sorted(points, key=lambda p: (-p[0], p[1])):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return front[::-1]


def line_fit(points):
    """(slope, intercept, r2) of least squares through [(x, y)]; r2 is 1 for constant y."""
    xs, ys = zip(*points)
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    xx = math.fsum((x - mean_x) ** 2 for x in xs)
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    yy = math.fsum((y - mean_y) ** 2 for y in ys)
    slope = xy / xx
    return slope, mean_y - slope * mean_x, 1.0 if yy == 0 else xy * xy / (xx * yy)


def speedup(off, on, unit, factor=1.0):
    """How much better `on` is than `off` times factor: above 1 is faster, as in every ratio here."""
    return off * factor / on if unit in COSTS else on / (off * factor)


# --- Words ---------------------------------------------------------------------


def number(value, digits=4):
    """So many significant digits, without an exponent where that is short."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -4 or magnitude > 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def size(byte_count):
    """Bytes in the largest binary unit that leaves at least one: 8 KiB, 16 MiB."""
    for unit, scale in (("GiB", 2 ** 30), ("MiB", 2 ** 20), ("KiB", 2 ** 10)):
        if byte_count >= scale:
            return f"{byte_count / scale:g} {unit}"
    return f"{byte_count:g} B"
