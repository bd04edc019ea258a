# SPDX-License-Identifier: Apache-2.0
"""Python's readers of records, manifests and requests, fed with damage that Hypothesis draws.

Whatever a file holds, a script uses it or ends with one line that says why: no traceback, and
nothing written but below its --out. What it writes then is a picture that is XML, or a page in
which no tag of the record stands. WARPLEDGER_FUZZ_EXAMPLES sets how many damages of each
reader are tried; Hypothesis prints the one that fails, as small as it can make it.
"""

import argparse
import contextlib
import copy
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

import explorer
import record
import record_files
import regenerate
import step_samples
from fixture import ROOT, load
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plots import micro_render, render

EXAMPLES = int(os.environ.get("WARPLEDGER_FUZZ_EXAMPLES", "30"))
LONGEST = 2000  # characters that a script says of a damaged file
TAG = "<script>"
# Where parsers, arithmetic and pages have their borders.
ODD = (None, True, False, "", TAG, "\x1b[2J", "../../outside", "\ud800", "a\nb", [], {}, [[]], [{}],
       {"": None}, 0, -1, 1, 1.5, -0.0, 5e-324, 1e308, -1e308, float("inf"), float("nan"), 2**31,
       2**63, 10**400, "9" * 400)


BUNDLE = load(ROOT / "ablations/cli/archive/bundle_replay.py")
CODEGEN = load(ROOT / "cmake/collect_codegen.py")
MACHINE_CODE = load(ROOT / "cmake/machine_code_file.py")
PEERS = load(ROOT / "ablations/subjects/sdpa/peers/peers.py")
SANITIZERS = load(ROOT / "tests/sanitizers.py")
SUMMARIZE = load(ROOT / "cmake/summarize_tests.py")


# --- Damage ------------------------------------------------------------------


def places(value, parent=None, key=None):
    """(parent, key) of every value below this one."""
    if parent is not None:
        yield parent, key
    children = (value.items() if isinstance(value, dict)
                else enumerate(value) if isinstance(value, list) else ())
    for name, child in children:
        yield from places(child, value, name)


def odd(draw):
    return copy.deepcopy(draw(st.sampled_from(ODD)))


@st.composite
def damaged_value(draw, value):
    """The JSON value with one or two changes of meaning."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 2))):
        found = list(places(value))
        if not found:
            return odd(draw)
        parent, key = found[draw(st.integers(0, len(found) - 1))]
        change = draw(st.sampled_from(("odd", "odd", "gone", "other", "twice")))
        if change == "gone":
            del parent[key]
        elif change == "other":
            other, place = found[draw(st.integers(0, len(found) - 1))]
            parent[key] = copy.deepcopy(other[place])
        elif change == "twice" and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[key]))
        else:
            parent[key] = odd(draw)
    return value


@st.composite
def damaged_bytes(draw, content):
    """Cut off, overwritten, not UTF-8, too deep, or something else."""
    at = draw(st.integers(0, max(len(content) - 1, 0)))
    return draw(st.sampled_from((
        content[:at], b"", b"\xff\xfe" + content, b"[" * 100_000, b'{"a":' * 100_000,
        content[:at] + b"\x00" + content[at + 1:], content[:at] + b"\xc3" + content[at:],
        content[:at] + b"9" * 5000 + content[at:], content + content, b"null", b"[]", b"{}")))


@st.composite
def damaged_file(draw, content):
    """A file's bytes with one damage; of its meaning, where it is JSON or lines of it."""
    if draw(st.integers(0, 4)) == 0:
        return draw(damaged_bytes(content))
    text = content.decode()
    try:
        return json.dumps(draw(damaged_value(json.loads(text)))).encode()
    except ValueError:
        lines = text.splitlines()
    at = draw(st.integers(0, len(lines) - 1))
    try:
        lines[at] = json.dumps(draw(damaged_value(json.loads(lines[at]))))
    except ValueError:
        return draw(damaged_bytes(content))
    return "\n".join(lines + [""]).encode()


# --- Readers -----------------------------------------------------------------


def dumped(value):
    return json.dumps(value).encode()


def summary():
    """Of the committed one, what one small figure needs."""
    whole = json.loads((ROOT / "tests/reports/testdata/summary.json").read_text(encoding="utf-8"))
    shape = whole["shapes"][0]["name"]
    for key in ("cells", "peers", "floors", "verdicts", "controls"):
        whole[key] = [row for row in whole[key] if row["shape"] == shape][:4]
    return whole | {"shapes": whole["shapes"][:1]}


def dtypes():
    return {"schema_version": 1, "kind": "dtypes", "created_utc": "2026-01-02T03:04:05Z", "seed": 1,
            "head_dim": 64, "schemes": [{"name": "fp16", "label": "fp16"}],
            "cells": [{"inputs": "normal", "seq": seq, "scheme": "fp16", "finite": True,
                       "max_err": 0.1, "mean_err": 0.01, "relative_rms": 0.01} for seq in (64, 128)]}


def profile():
    pack = max((ROOT / "reports/data/h200").glob("profile-*"))
    info = record_files.open_record(pack).json("profile.json")
    launch = json.loads(record_files.open_record(pack).text("profiles.jsonl").splitlines()[0])
    return {"schema_version": 1, "kind": "profile", "provenance": info, "shapes": info["shapes"],
            "gpu": {"name": "GPU", "slug": "h200", "sm_count": 132, "max_sm_clock_mhz": 1980},
            "profiles": [launch | {"p50_us": 10.0, "ci_low_us": 9.0, "ci_high_us": 11.0,
                                   "timed_in": "a", "roof": "wgmma"}],
            "ceilings": [{"name": name, "per_s": per_s, "of": of, "micro": "m", "run": "r"}
                         for name, per_s, of in (("wgmma", 1e15, "flop"), ("L2", 1e13, "bytes"))],
            "steps": [], "skipped": []}


def micro_run():
    """A folder as micro/record.sh leaves it: one case, two processes of two repetitions."""
    name = "fma_shfl/ffma/throughput"
    context = {"gpu": "NVIDIA H200", "gpu_slug": "h200", "gpu_uuid": "GPU-1", "nvcc": "13.0",
               "compute_capability": "90", "sm_count": "132", "max_sm_clock_mhz": "1980",
               "dram_gb_per_s": "4900", "date": "2026-11-21T01:00:00"}
    case = {"name": name, "kind": "cycles", "measures": "cycles", "unit": "cycles", "min_cc": 80,
            "max_cc": 0, "peak_case": "", "kernels": [], "parameters": {"warps": 4},
            "evidence": [{"sass": "^FFMA", "ptx": "", "at_least": 8, "at_most": -1, "min_cc": 0,
                          "max_cc": 0}],
            "published": [{"cc": 90, "value": 4.0, "source": "a paper", "why": "b"}],
            "limits": {"90": {"value": 128.0, "source": "c"}}}
    samples = [{"case": name, "process": process, "repetition": repetition, "value": 4.0, "r2": 1.0,
                "sm_mhz": 1980, "limit": 4.0, "throttle": 0} for process in (0, 1) for repetition in (0, 1)]
    files = {"cases.json": dumped({"cases": [case]}),
             "micro_raw.jsonl": "".join(json.dumps(sample) + "\n" for sample in samples).encode()}
    for process in (0, 1):
        files[f"micro_process{process}.json"] = dumped({
            "context": context | {"warpledger_process": str(process)},
            "benchmarks": [{"run_type": "iteration", "value": 4.0,
                            "run_name": f"{name}/iterations:12/repeats:2/manual_time"}] * 2})
    return files


def micro_record():
    with tempfile.TemporaryDirectory() as folder:
        for name, content in micro_run().items():
            (pathlib.Path(folder) / name).write_bytes(content)
        return {"micro.json": record.rows_on_lines(record.collect(folder)).encode(),
                "cases.json": micro_run()["cases.json"]}


def newest_json(kind, keep=2):
    """Of the newest record of a kind, its file with lists cut down."""
    content = record_files.open_record(max((ROOT / "reports/data/h200").glob(f"{kind}-*"))).json(
        f"{kind}.json")
    for kernel in content.get("kernels", []):
        kernel["loop"] = [row for row in kernel["loop"] if "GMMA" in row["sass"]][:keep] + kernel["loop"][:3]
    if isinstance(content.get("instances"), dict):
        content["instances"] = dict(list(content["instances"].items())[:keep])
        for run in content["runs"]:
            run["instances"] = [0]
    for key in ("kernels", "runs"):
        content[key] = content.get(key, [])[:keep]
    return content


SAMPLES = "".join(json.dumps({"shape": "small", "arm": arm, "process": 0, "block": block, "us": us}) + "\n"
                  for arm, us in (("off", 3.0), ("on", 2.0)) for block in (0, 1)).encode()
CLAIM = {"record": "run", "problem": "small", "problem_in_record": "small", "base": "off",
         "candidate": "on", "n_pairs": 2, "ratio": 1.5, "estimand": "time", "verdict": "ADOPT",
         "reason": "", "predicted_low": None}
MANIFEST = {"schema_version": 1, "name": "b", "check": "python3 replay.py",
            "environment": {"program": "w", "python": "3", "matplotlib": "", "machine": "x",
                            "system": "Linux", "libc": "glibc"},
            "commands": [{"run": "mine", "calls": BUNDLE.calls_of("mine")["run"]}],
            "files": {"data/mine/run.json": {"sha256": "0" * 64, "bytes": 2}}}
REQUEST = {"shapes": [{"name": "small", "batch": 1, "heads_q": 1, "heads_kv": 1, "seq_q": 64,
                       "seq_kv": 64, "head_dim": 64, "causal": False}]}


def regenerating(folder):
    """Everything that is read before a program runs."""
    with mock.patch.multiple(regenerate, ROOT=folder, DATA=folder / "data"), \
            mock.patch.object(regenerate, "regenerate",
                              side_effect=lambda *_: (record_files.runs(regenerate.DATA),
                                                      regenerate.profiles(), regenerate.sanitizers(),
                                                      set())[-1]), \
            mock.patch.object(regenerate.summaries, "write"):
        return called(regenerate.main)


def called(main, *arguments):
    with mock.patch.object(sys, "argv", ["script", *map(str, arguments)]):
        return main()


def with_record(main, folder, name, *flags):
    return called(main, "report", folder / name, "--out", folder / "out", *flags)


def requested(folder):
    """peers.py, where nothing can be timed."""
    with open(folder / "request.json", encoding="utf-8") as stdin:
        return PEERS.main([], stdin, make_bench=lambda request: (None, "no GPU"))


def listed_instances(folder):
    try:
        CODEGEN.load_instances(folder / "instances.json")
    except CODEGEN.CodegenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


# {reader: ({file: its whole content}, what reads them in a folder and returns an exit code)}
READERS = {
    "a summary": (lambda: {"summary.json": dumped(summary())}, lambda folder: render.main(
        ["--summary", str(folder / "summary.json"), "--out", str(folder / "out")])),
    "a study of data types": (lambda: {"dtypes.json": dumped(dtypes())}, lambda folder: render.main(
        ["--summary", str(folder / "dtypes.json"), "--out", str(folder / "out")])),
    "a profile": (lambda: {"profile.json": dumped(profile())}, lambda folder: render.main(
        ["--summary", str(folder / "profile.json"), "--out", str(folder / "out")])),
    "a run of microbenchmarks": (micro_run, lambda folder: record.main(
        ["collect", "--run", str(folder)])),
    "a record of microbenchmarks": (micro_record, lambda folder: record.main(
        ["report", "--micro", str(folder / "micro.json"), "--out", str(folder / "out"), "--noplots"])),
    "figures of microbenchmarks": (micro_record, lambda folder: micro_render.main(
        ["--micro", str(folder / "micro.json"), "--out", str(folder / "out")])),
    "samples of steps": (lambda: {"s/step_samples.json": dumped(newest_json("step_samples"))},
                         lambda folder: with_record(step_samples.main, folder, "s")),
    "what sanitizers said": (lambda: {"s/sanitizers.json": dumped(newest_json("sanitizers"))},
                             lambda folder: with_record(SANITIZERS.main, folder, "s")),
    "verdicts to explore": (
        lambda: {"claims.json": dumped([CLAIM]), "run/samples.jsonl": SAMPLES,
                 "run/run.json": b"{}"},
        lambda folder: called(explorer.main, "--claims", folder / "claims.json", "--record",
                              folder / "run", "--out", folder / "explorer.html")),
    "records of all kinds": (
        lambda: {"data/g/ladder-1/run.json": dumped({"design": "ladder", "cache": "warm",
                                                     "created_utc": "2026-01-01T00:00:00Z"}),
                 "data/g/profile-1/profile.json": dumped({"shapes": [{"name": "a"}]}),
                 "data/g/sanitizers-1/sanitizers.json": dumped(
                     {"run_id": "s", "since": [], "gpu": {"name": "g"}, "compute_sanitizer": "1"})},
        regenerating),
    "a bundle's manifest": (lambda: {"manifest.json": dumped(MANIFEST)}, BUNDLE.check),
    "a request for peers": (lambda: {"request.json": dumped(REQUEST)}, requested),
    "a build's instances": (
        lambda: {"instances.json": dumped({"instances": [
            {"variant": "a", "source": "a.cu", "symbol": "s", "set": "s"}]})}, listed_instances),
    "the file of machine codes": (
        lambda: {"machine_code.json": dumped({"schema_version": 1, "nvcc": "13.0", "archs": {
            "sm_90a": {"a": "0"}}})},
        lambda folder: MACHINE_CODE.check(folder / "machine_code.json", argparse.Namespace(
            build_type="Release", nvcc="13.0", hashes={"sm_90a": {"a": "0"}}, has_90=True, has_extra_designs=False,
            is_partial=False))),
    "results of tests": (
        lambda: {"log": b"-- tests left out: a", "junit.xml":
                 b'<testsuite><testcase name="a" status="run"/></testsuite>'},
        lambda folder: called(SUMMARIZE.main, "--junit", folder / "junit.xml",
                              "--configure-log", folder / "log")),
}


# Where these read "out" as their output, it may be a file.
WITH_OUT = [name for name in READERS if name.startswith(("a summary", "a study", "a profile", "a record of",
                                                          "figures", "samples", "what san"))]


class ReadersTest(unittest.TestCase):
    maxDiff = None

    def read(self, files, reader):
        """What a reader made of these files: its exit code and what it wrote; held to the promise."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name) / "in"
            for file, content in files.items():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes(content)
            said = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(said):
                try:
                    code = reader(folder)
                except SystemExit as ended:
                    code = ended.code
            if code != 0:
                told = said.getvalue() or out.getvalue()
                self.assertTrue(0 < len(told) <= LONGEST, told[:LONGEST])
                self.assertNotIn("\x1b", told)
            self.assertEqual([path.name for path in pathlib.Path(name).iterdir()], ["in"])
            written = {path.relative_to(folder).as_posix(): path.read_bytes()
                       for path in folder.rglob("*") if path.is_file()
                       and path.relative_to(folder).as_posix() not in files}
        for path, content in written.items():
            if path.endswith(".svg"):
                ElementTree.fromstring(content)
            elif path.endswith(".md"):
                for raw in (TAG, "[a](b)", "\x1b"):
                    self.assertNotIn(raw, content.decode())
            elif path.endswith(".json"):
                json.loads(content)
        return code, written

    def test_each_reads_what_is_whole(self):
        for name, (files, reader) in READERS.items():
            with self.subTest(name):
                if name == "a bundle's manifest":  # which promises a file that is not there
                    self.assertEqual(self.read(files(), reader)[0], 1)
                else:
                    self.assertEqual(self.read(files(), reader)[0], 0)

    def test_an_output_that_cant_be_written_is_one_line(self):
        for name in WITH_OUT:
            with self.subTest(name):
                files, reader = READERS[name]
                self.assertIn(self.read(files() | {"out": b"a file"}, reader), ((1, {}), (2, {})))

    def test_a_text_of_a_record_is_text_on_every_page(self):
        for name in ("a record of microbenchmarks", "samples of steps", "what sanitizers said"):
            whole, reader = READERS[name]
            for file, content in whole().items():
                value = json.loads(content)
                for parent, key in list(places(value)):
                    if isinstance(parent[key], str):
                        with self.subTest(name, file=file, key=key, text=parent[key][:40]):
                            before, parent[key] = parent[key], f"{parent[key]} {TAG} [a](b)\x1b"
                            self.read(whole() | {file: dumped(value)}, reader)
                            parent[key] = before

    def hold(self, files, reader):
        @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
                  suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink))
        @given(st.data())
        def reads(data):
            file = data.draw(st.sampled_from(sorted(files)))
            damaged = files | {file: data.draw(damaged_file(files[file]))}
            made = self.read(damaged, reader)
            if made[0] == 0 and data.draw(st.integers(0, 9)) == 0:
                self.assertEqual(self.read(damaged, reader), made)  # the same bytes again

        reads()

    def test_none_ends_with_a_traceback_whatever_a_file_holds(self):
        for name, (whole, reader) in READERS.items():
            with self.subTest(name):
                self.hold(whole(), reader)
