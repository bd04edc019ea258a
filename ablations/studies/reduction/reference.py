# SPDX-License-Identifier: Apache-2.0
"""The sum. The inputs are whole numbers and so few that float32 adds them without an error."""


def reference(x):
    return x.sum(keepdims=True)
