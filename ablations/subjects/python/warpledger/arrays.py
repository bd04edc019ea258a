# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy, PyTorch, CuPy and JAX as one.

JAX's can't be written to, and its float64 is off unless a program asks for it: its references get NumPy's.

Inputs and outputs are an array, or a tuple, list or dict of them, to any depth; what is no array in them
stays as it is.
"""

import numpy as np


def library(value):
    """"numpy", "torch", "cupy" or "jax"; None where `value` is no array."""
    name = type(value).__module__.partition(".")[0]
    if name == "torch" and type(value).__name__ not in ("Tensor", "Parameter"):
        return None
    if name == "jaxlib" and hasattr(value, "devices"):
        return "jax"
    if name in ("torch", "cupy", "numpy") and hasattr(value, "dtype") and hasattr(value, "shape"):
        return name
    return None


def on_gpu(array):
    if library(array) == "jax":
        return next(iter(array.devices())).platform == "gpu"
    return library(array) == "cupy" or (library(array) == "torch" and array.is_cuda)


def mapped(function, value):
    """With every array replaced by what the function makes of it."""
    if isinstance(value, dict):
        return {name: mapped(function, each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        made = [mapped(function, each) for each in value]
        return made if isinstance(value, list) else tuple(made)
    return function(value) if library(value) else value


def leaves(value):
    """All arrays, in their order."""
    found = []
    mapped(found.append, value)
    return [np.asarray(each) if isinstance(each, np.generic) else each for each in found]


def is_float(array):
    if library(array) == "torch":
        return array.is_floating_point()
    # bfloat16 is no number of NumPy's.
    return array.dtype.kind == "f" or "float" in array.dtype.name


def is_number(array):
    """A real one, or a truth value."""
    if library(array) == "torch":
        return not array.is_complex()
    return array.dtype.kind in "fiub" or is_float(array) or "int" in array.dtype.name


def dtype_name(array):
    return str(array.dtype).removeprefix("torch.")


def to_float64(array):
    if library(array) == "jax":
        return np.asarray(array, dtype=np.float64)
    return array.double() if library(array) == "torch" else array.astype(np.float64)


def widened(value):
    """Floating-point arrays as float64."""
    return mapped(lambda array: to_float64(array) if is_float(array) else array, value)


def to_numpy(array):
    if library(array) == "torch":
        return array.detach().double().cpu().numpy()
    return np.asarray(array.get() if library(array) == "cupy" else array, dtype=np.float64)


def cast(array, like):
    return array.to(like.dtype) if library(array) == "torch" else array.astype(like.dtype)


def copied(value):
    return mapped(lambda array: array.clone() if library(array) == "torch" else array.copy(), value)


def assign(array, values):
    if library(array) == "torch":
        array.copy_(values)
    else:
        array[...] = values


def poison(array):
    """NaN, or in integers a number that is unlikely to be right. An array of JAX's is no old one's memory."""
    if library(array) == "jax":
        return
    wrong = float("nan") if is_float(array) else 85
    if library(array) == "torch":
        array.fill_(wrong)
    else:
        array[...] = wrong


def bytes_of(array):
    """The memory from its first byte to its last, as an interval of addresses."""
    if library(array) == "torch":
        begin, size = array.data_ptr(), array.element_size()
        steps = sum((n - 1) * step for n, step in zip(array.shape, array.stride()) if n)
        return begin, begin + size * (1 + steps)
    if library(array) == "jax":
        return array.unsafe_buffer_pointer(), array.unsafe_buffer_pointer() + array.nbytes
    if library(array) == "cupy":
        return array.data.ptr, array.data.ptr + array.nbytes
    return np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)


def share_memory(a, b):
    return on_gpu(a) == on_gpu(b) and bytes_of(a)[0] < bytes_of(b)[1] and bytes_of(b)[0] < bytes_of(a)[1]


def nbytes(array):
    return array.numel() * array.element_size() if library(array) == "torch" else array.nbytes


def same(a, b):
    """Bit by bit; NaN is NaN."""
    if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
        return False
    return bool(((a == b) | ((a != a) & (b != b))).all())
