# SPDX-License-Identifier: Apache-2.0
"""compare(): callables against each other, by the program's own engine."""

import dataclasses
import hashlib
import importlib.util
import inspect
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import types

from . import arrays, machine, program, worker

_CWD = os.getcwd()  # where a program is started again
_TASK = "WARPLEDGER_PYTHON_TASK"
_records = {}  # {a program: the records of its compare() calls so far}


@dataclasses.dataclass(frozen=True)
class Verdict:
    name: str  # of the callable
    problem: str
    verdict: str  # ADOPT, NEUTRAL, REGRESSION, …: README.md, "How to read a verdict"
    ratio: float | None  # time of the base / its time, with an interval
    low: float | None
    high: float | None
    reason: str


class Result:
    """A record and its verdicts."""

    def __init__(self, record):
        self.record = pathlib.Path(record)
        self._table = said("judge", f"--record={record}").partition("\nSummary:")[0].rstrip()
        self.summary = json.loads((self.record / "summary.json").read_text(encoding="utf-8"))
        self.verdicts = [Verdict(each["toggle"], each["shape"], each["verdict"], each.get("ratio"),
                                 each.get("ci_low"), each.get("ci_high"), each.get("reason", ""))
                         for each in self.summary["verdicts"]]

    def how_timed(self):
        """{(arm, problem): how its calls are launched}, the first process's."""
        file = self.record / "calls.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        found = {}
        for call in map(json.loads, lines):
            found.setdefault((call["arm"], call["shape"]), call["lines"])
        return found

    def report(self, out):
        """The record's page, with pictures where matplotlib is there. The page's path."""
        plots = "true" if importlib.util.find_spec("matplotlib") else "false"
        said("report", f"--record={self.record}", f"--out={out}", f"--plots={plots}",
             f"--python={sys.executable}")
        return sorted(pathlib.Path(out).glob("*.md"))[0]

    def __str__(self):
        how = {}
        for (arm, _), lines in self.how_timed().items():
            text = lines[0] if lines[0] == "by graph" else ": ".join(lines[:2])
            how.setdefault(text, {})[arm.removeprefix("one_on:")] = None
        told = "; ".join(f"{', '.join(arms)} {text}" for text, arms in how.items())
        return f"{self._table}\n\nTimed: {told}\nRecord: {self.record}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    callables: dict
    inputs: types.FunctionType
    problems: dict  # {name: parameters}
    reference: types.FunctionType
    naive: types.FunctionType | None
    atol: float
    rtol: float

    @staticmethod
    def call(function, inputs):
        if isinstance(inputs, dict):
            return function(**inputs)
        return function(*inputs) if isinstance(inputs, (tuple, list)) else function(inputs)


def compare(callables, inputs, problems, reference, *, gate=1.05, naive=None, atol=0.0, rtol=0.0,
            launches=None, flops=None, min_bytes=None, record=None, processes=5, blocks=24, cache="warm",
            seed=1, replay_us=1000, max_launches=256, arm_limit_s=300, again=None):
    """Checks the callables, times them in turn in several processes, and judges each against the first.

    callables   {name: function of the inputs}; it puts its work on the current stream and returns arrays
    inputs      function of `seed` and a problem's parameters; returns an array, or a tuple, list or dict of
                arrays. Their device is the one that is measured (PyTorch, CuPy or JAX on a GPU; else the CPU)
    problems    [{"rows": 4096, "cols": 1024}, …], or {name: parameters}
    reference   function of the inputs with their floats as float64; returns the right result
    gate        the ratio time(first) / time(callable) from which a callable is adopted
    naive       the formula in the inputs' own types; its error sets the tolerance. Default: the reference on
                the inputs as they are. `atol` and `rtol` (relative to the largest value) replace it
    launches    {name: regex}: must match the launches of a call, else the callable is INVALID
    flops, min_bytes   functions of a problem's parameters: the work of a call. Default: one operation for
                each element of the inputs, and the bytes of the inputs
    record      a folder for the record, so that the same call resumes a stopped run. Default: a new folder
    again       the command that runs this program again up to here. Default: the command that started it

    Each process of the run is this program, started again; compare() works there and does not return. So every
    process must reach the same call: put it into a file, not into a notebook.
    """
    if "jax" in sys.modules:  # else each process takes three quarters of the GPU's memory
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    again = tuple(again or this_program())
    records = _records.setdefault(again, [])
    problems = problems if isinstance(problems, dict) else by_name(problems)
    comparison = Comparison(dict(callables), inputs, problems, reference, naive, atol, rtol)
    task = json.loads(os.environ.get(_TASK, "null"))
    if task is not None:
        if list(again) != task["again"]:
            raise RuntimeError("this process works for another compare() than the one that it came to")
        if len(records) < len(task["records"]):  # one before: its record is there
            records.append(task["records"][len(records)])
            return Result(records[-1])
        worker.serve(comparison)
    record = os.path.abspath(record or tempfile.mkdtemp(prefix="warpledger-"))
    definition = definition_of(comparison, again, gate, launches or {}, flops, min_bytes)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "definition.json"
        file.write_text(json.dumps(definition), encoding="utf-8")
        done = subprocess.run(
            [program.path(), "run", f"--callables={file}", f"--out={record}", "--shapes=all",
             f"--processes={processes}", f"--blocks={blocks}", f"--cache={cache}", f"--seed={seed}",
             f"--replay_us={replay_us}", f"--max_launches={max_launches}", f"--arm_limit_s={arm_limit_s}",
             f"--silence_limit_s={max(300, arm_limit_s)}"],
            cwd=_CWD, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False,
            env={**os.environ, _TASK: json.dumps({"again": again, "records": records})})
    if done.returncode:
        raise RuntimeError(f"warpledger run ended with {done.returncode}; its message is above")
    records.append(record)
    return Result(record)


def said(*arguments):
    done = subprocess.run([program.path(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def this_program():
    """The command that started this process."""
    file = getattr(sys.modules["__main__"], "__file__", None) or ""
    if not os.path.isfile(file) and "-c" not in sys.orig_argv:
        raise RuntimeError("compare() starts your program again for each of its processes, so it must stand "
                           "in a file, not in a notebook or at a prompt")
    return [sys.executable, *sys.orig_argv[1:]]


def name_of(parameters):
    return ":".join(f"{name}={value}" for name, value in parameters.items()).replace(",", ";").replace(" ", "")


def by_name(problems):
    named = {}
    for parameters in problems:
        name = name_of(parameters)
        if name in named:
            raise ValueError(f"problems: {name} is there twice")
        named[name] = parameters
    return named


def definition_of(comparison, again, gate, launches, flops, min_bytes):
    """What python_subject.h describes."""
    if unknown := set(launches) - set(comparison.callables):
        raise ValueError(f"launches: there is no callable {unknown.pop()!r}")
    if not comparison.problems:
        raise ValueError("problems: there must be one or more")
    problems = []
    for name, parameters in comparison.problems.items():
        if taken := {"name", "flops", "min_bytes"} & set(parameters):
            raise ValueError(f"problem {name}: no parameter can be called {taken.pop()}, which is another field of "
                             "a problem in a record")
        first, other = (comparison.inputs(seed=seed, **parameters) for seed in (0, 1))
        if all(arrays.same(a, b) for a, b in zip(arrays.leaves(first), arrays.leaves(other))):
            raise ValueError(f"problem {name}: the inputs have no array of NumPy, PyTorch, CuPy or JAX that "
                             "differs from seed to seed")
        elements = sum(math.prod(array.shape) for array in arrays.leaves(first))
        touched = sum(map(arrays.nbytes, arrays.leaves(first)))
        kept = {key: value if isinstance(value, (bool, int)) else str(value)
                for key, value in parameters.items()}
        problems.append({"name": name, **kept,
                         "flops": float(flops(**parameters) if flops else elements),
                         "min_bytes": float(min_bytes(**parameters) if min_bytes else touched)})
        measured_on = machine.machine_of(first)
        first = other = None
        measured_on.free()
    return {"worker": ["/bin/sh", "-c", worker.REDIRECT, "sh", *again], "gpu": measured_on.describe(),
            "gate": gate, "problems": problems, "versions": machine.versions(),
            "callables": [{"name": name, "sha256": identity(name, function),
                           **({"launched": launches[name]} if name in launches else {})}
                          for name, function in comparison.callables.items()]}


def identity(name, function):
    """Of the name and, where Python knows it, the source."""
    try:
        source = inspect.getsource(inspect.unwrap(getattr(function, "fn", function)))
    except (OSError, TypeError):
        source = type(function).__qualname__
    return hashlib.sha256(f"{name}\n{source}".encode()).hexdigest()
