# SPDX-License-Identifier: Apache-2.0
"""`wl_gate`: a pytest fixture that fails a test on a shown regression.

    def test_softmax_is_no_slower(wl_gate):
        wl_gate(fused, torch_softmax, inputs=make_inputs, problems=[{"rows": 4096}], reference=softmax)

A candidate that is slower beyond doubt, or BROKEN, fails; whatever the run can't tell passes. Everything that
compare() takes may be named, and what it returns is returned.
"""

import sys

import pytest


@pytest.fixture
def wl_gate(request):
    from .comparison import compare

    # The run's processes run this test alone, as pytest finds it.
    again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=",
             f"--rootdir={request.config.rootpath}", str(request.node.path) + "::"
             + request.node.nodeid.partition("::")[2]]

    def gate(candidate, baseline, *, inputs, problems, reference, **options):
        result = compare({"baseline": baseline, "candidate": candidate}, inputs, problems, reference,
                         again=again, **options)
        shown = [each for each in result.verdicts if each.verdict in ("REGRESSION", "BROKEN")]
        if shown:
            told = "; ".join(f"{each.verdict} on {each.problem}: {each.reason}" for each in shown)
            pytest.fail(f"{told}\n{result}", pytrace=False)
        return result

    return gate
