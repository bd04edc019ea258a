# SPDX-License-Identifier: Apache-2.0
"""Makes a study's inputs and what is right for them.

Reads a request (data.h's DataRequest) as JSON on standard input. Writes to the request's folder
`inputs.bin`, the values of each set one tensor behind the other in the study's own dtypes, and, where the
study has a reference, `reference.bin`, the outputs for the first set as float64. Its reply (DataReply) is
one line of JSON on standard output. References are kept in the study's cache: the function runs once for
the same inputs and the same files of the study.

What is wrong with the study is the reply's `error`, as "FIELD: …".
"""

import hashlib
import importlib.util
import inspect
import json
import os
import pathlib
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print(json.dumps({"error": f"{sys.executable} has no numpy, which draws a study's inputs: install it, "
                               "or name another interpreter in WARPLEDGER_PYTHON"}))
    sys.exit()

MAX_RATIO, MEAN_RATIO = 2, 1.5  # of the naive error, as for attention


class DataError(Exception):
    """What is wrong, behind the field of the study."""


# --- Types -------------------------------------------------------------------

def minifloats(exponent_bits, mantissa_bits, has_infinity):
    """The value of each of the 256 codes of an 8-bit float."""
    codes = np.arange(256)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    fraction = mantissa / (1 << mantissa_bits)
    values = sign * np.where(exponent == 0, fraction * 2.0 ** (1 - bias),
                             (1 + fraction) * 2.0 ** (exponent - bias))
    top = exponent == (1 << exponent_bits) - 1
    if has_infinity:
        values[top] = np.where(mantissa[top] == 0, sign[top] * np.inf, np.nan)
    else:
        values[(codes & 0x7F) == 0x7F] = np.nan
    return values


MINIFLOATS = {"e4m3": minifloats(4, 3, False), "e5m2": minifloats(5, 2, True)}
PLAIN = {"fp64": np.float64, "fp32": np.float32, "fp16": np.float16, "int32": np.int32,
         "int8": np.int8}


def encode(values, dtype):
    """float64 values as those of `dtype`, rounded to nearest even."""
    if dtype in PLAIN:
        if dtype.startswith("int"):
            limits = np.iinfo(PLAIN[dtype])
            values = np.clip(np.rint(values), limits.min, limits.max)
        return values.astype(PLAIN[dtype])
    if dtype == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    table = MINIFLOATS[dtype]
    codes = np.flatnonzero(np.isfinite(table))
    codes = codes[np.argsort(table[codes], kind="stable")]
    known = table[codes]
    above = np.clip(np.searchsorted(known, values), 1, len(known) - 1)
    down, up = values - known[above - 1], known[above] - values
    even = codes[above] % 2 == 0
    return codes[np.where((up < down) | ((up == down) & even), above, above - 1)].astype(np.uint8)


def decode(values, dtype):
    if dtype in PLAIN:
        return values.astype(np.float64)
    if dtype == "bf16":
        return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return MINIFLOATS[dtype][values]


def draw(random, tensor):
    shape, kind = tensor["shape"], tensor["values"]
    if kind == "ones":
        return np.ones(shape)
    if kind == "uniform":
        return random.uniform(0, 1, shape)
    if kind == "integers":
        return random.integers(-8, 8, shape).astype(np.float64)
    return random.standard_normal(shape)


# --- The reference -----------------------------------------------------------

def load(folder, name):
    path = pathlib.Path(folder) / name
    if not path.is_file():
        raise DataError(f"check.reference: there is no file {name}")
    spec = importlib.util.spec_from_file_location("study_reference", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's own code
        raise DataError(f"check.reference: {name} does not load: {told(error)}") from error
    if not callable(getattr(module, "reference", None)):
        raise DataError(f"check.reference: {name} has no function reference()")
    return module


def told(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def call(function, inputs, parameters, outputs):
    """A list of float64 arrays, one for each output. The function takes what it names."""
    known = {**parameters, **inputs}
    asked = inspect.signature(function).parameters.values()
    if any(each.kind == each.VAR_KEYWORD for each in asked):
        wanted = known
    else:
        for each in asked:
            if each.name not in known:
                raise DataError(f"check.reference: {function.__name__}() asks for '{each.name}', which "
                                "is no input and no parameter")
        wanted = {each.name: known[each.name] for each in asked}
    try:
        with np.errstate(all="ignore"):
            results = function(**wanted)
    except (Exception, SystemExit) as error:  # the user's own code
        raise DataError(f"check.reference: {function.__name__}() fails: {told(error)}") from error
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    if len(results) != len(outputs):
        raise DataError(f"check.reference: {function.__name__}() returns {len(results)} arrays, the study "
                        f"has {len(outputs)} outputs")
    arrays = []
    for output, result in zip(outputs, results):
        try:
            array = np.asarray(result)
        except Exception as error:  # a tensor on a GPU, lists of different lengths
            raise DataError(f"check.reference: {function.__name__}() returns what is no array: "
                            f"{told(error)}") from error
        if array.dtype.kind not in "fiub" or list(array.shape) != output["shape"]:
            raise DataError(f"check.reference: {function.__name__}() returns {output['name']} as "
                            f"{array.dtype} {list(array.shape)}, expected numbers {output['shape']}")
        arrays.append(array.astype(np.float64))
    return arrays


def check_finite(outputs, arrays, parameters, function="reference"):
    for output, array in zip(outputs, arrays):
        if not np.isfinite(array).all():
            raise DataError(f"check.reference: {function}() gives NaN or infinity in {output['name']}, a "
                            f"{output['dtype']}, for {parameters}")


def tolerance(worst, mean, largest):
    """[largest error, mean error] that is let through where the naive result is `worst` off, `mean` on
    average, and the largest value is `largest`."""
    return [MAX_RATIO * worst + 1e-7 * largest, MEAN_RATIO * mean + 1e-7 * largest]


def decoded(request, raw):
    """{name: input as float64}, in memory of its own."""
    return {t["name"]: decode(a, t["dtype"]) for t, a in zip(request["inputs"], raw)}


def referred_to(request, module, raw):
    """The outputs of reference()."""
    inputs = decoded(request, raw)
    arrays = call(module.reference, inputs, request["parameters"], request["outputs"])
    for name, made in decoded(request, raw).items():
        if not np.array_equal(inputs[name], made):
            raise DataError(f"check.reference: reference() writes into its input {name}, which naive() and a "
                            "kernel find as it was made: let it work on a copy")
    check_finite(request["outputs"], arrays, request["parameters"])
    return arrays


def limits_of(request, module, raw, arrays):
    """[largest error, mean error] that is let through for each output."""
    check = request["check"]
    if check.get("atol") or check.get("rtol"):
        return [[check.get("atol", 0) + check.get("rtol", 0) * float(np.abs(array).max())] * 2
                for array in arrays]
    outputs = request["outputs"]
    naive = getattr(module, "naive", None)
    if callable(naive):
        given = call(naive, decoded(request, raw), request["parameters"], outputs)
        # What the output's type can't hold, no kernel can return.
        with np.errstate(all="ignore"):
            given = [decode(encode(array, out["dtype"]), out["dtype"]) for array, out in zip(given, outputs)]
        check_finite(outputs, given, request["parameters"], "naive")
        errors = [np.abs(a - b) for a, b in zip(given, arrays)]
        return [tolerance(float(e.max()), float(e.mean()), float(np.abs(a).max()))
                for e, a in zip(errors, arrays)]
    raise DataError("check: it has neither `atol` nor `rtol`, and the reference's file no function naive() "
                    "from whose error a tolerance follows")


# --- Planted errors ----------------------------------------------------------

def planted(array):
    """Wrong results that a tolerance should find: {what: array}."""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(-1, 1)
    made = {}
    middle = len(rows) // 2
    made["a dropped row"] = np.where(np.arange(len(rows))[:, None] == middle, 0.0, rows)
    made["a row scaled by 1.05"] = np.where(np.arange(len(rows))[:, None] == middle, 1.05 * rows, rows)
    if len(rows) > 1:
        order = np.arange(len(rows))
        order[[middle, middle - 1]] = order[[middle - 1, middle]]
        made["two swapped rows"] = rows[order]
    made["the mean everywhere"] = np.full_like(rows, rows.mean())
    return {what: wrong for what, wrong in made.items() if not np.array_equal(wrong, rows)}, rows


def let_through(request, arrays, limits):
    """What the tolerance would not find, of each output."""
    found = []
    for output, array, (largest, mean) in zip(request["outputs"], arrays, limits):
        wrongs, rows = planted(array)
        for what, wrong in wrongs.items():
            error = np.abs(wrong - rows)
            if error.max() <= largest and error.mean() <= mean:
                found.append(f"{what} of {output['name']}")
    return found


# --- The whole ---------------------------------------------------------------

MOST_FILES, MOST_BYTES = 10_000, 1 << 24


def state_of(folder):
    """Of the study's files: content, or size and time of a large one. Not of what the program writes there.
    None: there are too many."""
    digest, files = hashlib.sha256(), 0
    for here, folders, names in os.walk(folder):
        if "run.json" in names and here != str(folder):  # a record
            folders.clear()
            continue
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each != "__pycache__")
        for name in sorted(names):
            path = pathlib.Path(here) / name
            if not path.is_file():
                continue
            files += 1
            if files > MOST_FILES:
                return None
            digest.update(f"{path.relative_to(folder)}\0".encode(errors="surrogateescape"))
            try:
                state = path.stat()
                digest.update(path.read_bytes() if state.st_size <= MOST_BYTES else
                              f"{state.st_size} {state.st_mtime_ns}".encode())
            except OSError as error:  # another program's, which took it away just now
                digest.update(str(error.errno).encode())
    return digest.hexdigest()


def referred(request, raw):
    """The reference's outputs and limits, kept by what they follow from."""
    name = request["check"]["reference"]
    module = load(request["study"], name)
    state = state_of(request["study"])
    digest = hashlib.sha256(json.dumps([request["outputs"], request["parameters"], request["check"], state],
                                       sort_keys=True).encode())
    for array in raw:
        digest.update(array.tobytes())
    kept = pathlib.Path(request["cache"]) / "references" / f"{digest.hexdigest()[:32]}.npz"
    if state and (known := read_kept(kept, len(request["outputs"]))):
        return known
    arrays = referred_to(request, module, raw)
    limits = limits_of(request, module, raw, arrays)
    if state:
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as part:
            np.savez(part, limits=np.array(limits), **{f"output{i}": a for i, a in enumerate(arrays)})
        os.replace(part.name, kept)
    return arrays, limits


def read_kept(path, outputs):
    """None where there is none, or it is damaged."""
    try:
        with np.load(path) as file:
            return [file[f"output{i}"] for i in range(outputs)], file["limits"].tolist()
    except Exception:  # whatever a damaged file makes of it
        return None


def main():
    # What the user's own code prints is no part of the reply.
    lines, sys.stdout = sys.stdout, sys.stderr
    request = json.load(sys.stdin)
    folder = pathlib.Path(request["folder"])
    reply = {"limits": [], "let_through": []}
    try:
        first = None
        with open(folder / "inputs.bin", "wb") as file:
            for seed in request["seeds"]:
                random = np.random.default_rng(seed)
                raw = [encode(draw(random, tensor), tensor["dtype"]) for tensor in request["inputs"]]
                for array in raw:
                    file.write(np.ascontiguousarray(array).tobytes())
                first = first if first is not None else raw
        if request["check"].get("reference"):
            arrays, limits = referred(request, first)
            (folder / "reference.bin").write_bytes(b"".join(a.tobytes() for a in arrays))
            reply["limits"] = limits
            if request["probe"]:
                reply["let_through"] = let_through(request, arrays, limits)
    except DataError as error:
        reply = {"error": str(error)}
    except MemoryError as error:
        reply = {"error": f"input: no memory for {request['parameters']}: {error}"}
    print(json.dumps(reply), file=lines)


if __name__ == "__main__":
    main()
