# SPDX-License-Identifier: Apache-2.0
"""Outputs against the reference.

An output may be twice as far off as the naive result in the inputs' own types, and 1.5 times on average; or
as far as `atol` + `rtol` times the largest value.
"""

import math

from . import arrays, program

NO_CHECK = {"correct": False, "max_err": None, "max_err_limit": None, "mean_err": None,
            "mean_err_limit": None, "lse_err": None, "lse_limit": 0, "guards_intact": True,
            "bit_identical": True, "reason": "", "rows": 0}


class Reference:
    """What is right for one set of inputs."""

    def __init__(self, comparison, inputs):
        self.atol, self.rtol = comparison.atol, comparison.rtol
        given = arrays.copied(arrays.widened(inputs))
        right = arrays.leaves(comparison.call(comparison.reference, given))
        for after, made in zip(arrays.leaves(given), arrays.leaves(inputs)):
            if not arrays.same(after, arrays.widened(made)):
                raise ValueError("the reference writes into its inputs, which a callable may not: let it work "
                                 "on a copy")
        if any(arrays.library(array) == "jax" and array.dtype.name == "float32" for array in right):
            raise ValueError("the reference computes in float32, because JAX has float64 off unless a program "
                             "asks for it (jax_enable_x64): write it in NumPy, whose arrays it gets")
        for array in right:
            if not arrays.is_number(array):
                raise ValueError(f"the reference gives {arrays.dtype_name(array)}, which is no real number")
        self.dtypes = [arrays.dtype_name(array) for array in right]
        self.is_float = [arrays.is_float(array) for array in right]
        self.right = [arrays.to_float64(array) for array in right]
        self.naive = None
        for array in self.right:
            if not math.isfinite(float(abs(array).max())):
                raise ValueError("the reference gives NaN or infinity")
        if not self.right:
            raise ValueError("the reference gives no array")
        if not (self.atol or self.rtol):
            naive = comparison.naive or comparison.reference
            self.naive = arrays.leaves(comparison.call(naive, arrays.copied(inputs)))

    def judged(self, outputs):
        """A line of correctness.jsonl without whose it is; `reason` is empty where all is right."""
        check = dict(NO_CHECK)
        given = arrays.leaves(outputs)
        if len(given) != len(self.right):
            check["reason"] = f"it gives {len(given)} arrays, the reference {len(self.right)}"
            return check
        worst = -1
        for i, (array, right) in enumerate(zip(given, self.right)):
            if tuple(array.shape) != tuple(right.shape):
                check["reason"] = (f"output {i} has the shape {tuple(array.shape)}, the reference's "
                                   f"{tuple(right.shape)}")
                return check
            if not arrays.is_number(array) or (self.is_float[i] and not arrays.is_float(array)):
                check["reason"] = (f"output {i} is of {arrays.dtype_name(array)}, the reference's of "
                                   f"{self.dtypes[i]}")
                return check
            largest_error, mean_error = distance(array, right)
            most, mean_most = self.limits(i, array)
            # Written so that NaN fails.
            holds = largest_error <= most and mean_error <= mean_most
            share = largest_error / max(most, 1e-300) if holds else math.inf
            if share <= worst:
                continue
            worst = share
            check |= {"max_err": largest_error, "max_err_limit": most, "mean_err": mean_error,
                      "mean_err_limit": mean_most}
            if not holds:
                check["reason"] = f"output {i} " + ("has NaN" if math.isnan(largest_error) else
                    f"is wrong: off by {largest_error:.3g}, {most:.3g} is allowed"
                    if largest_error > most else
                    f"is wrong: off by {mean_error:.3g} on average, {mean_most:.3g} is allowed")
        check["correct"] = not check["reason"]
        return check

    def limits(self, i, like):
        right = self.right[i]
        largest = float(abs(right).max())
        if self.naive is None:
            return [self.atol + self.rtol * largest] * 2
        naive = self.naive[i]
        are_floats = arrays.is_float(naive) and arrays.is_float(like)
        if are_floats and arrays.library(naive) == arrays.library(like):
            rounded = arrays.cast(naive, like)  # what the output's type can't hold, nobody can return
            # Infinity is no result, so it is no measure either.
            naive = rounded if math.isfinite(distance(rounded, right)[0]) else naive
        study_data = program.module("ablations/subjects/study/study_data.py")
        return study_data.tolerance(*distance(naive, right), largest)


def distance(array, right):
    """The largest and the mean error."""
    if arrays.library(array) == arrays.library(right) and arrays.on_gpu(array) == arrays.on_gpu(right):
        off = abs(arrays.to_float64(array) - right)
    else:
        off = abs(arrays.to_numpy(array) - arrays.to_numpy(right))
    return float(off.max()), float(off.mean())
