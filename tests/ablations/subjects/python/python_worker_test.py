# SPDX-License-Identifier: Apache-2.0
"""The parts of the worker that need no process: orders, arrays, the rule."""

import time
import unittest

import numpy as np
from python_fixture import PythonTest  # finds the package
from warpledger import arrays, check, machine, worker
from warpledger.comparison import Comparison


def comparison(reference=lambda x: x.sum(axis=1), **more):
    return Comparison(**{"callables": {}, "inputs": None, "problems": {}, "reference": reference,
                                 "naive": None, "atol": 0, "rtol": 0} | more)


class Orders(unittest.TestCase):
    ARMS = ("a", "b", "c", "floor")

    def order(self, block, arms=ARMS):
        return worker.order_of(1, 0, "small", block, arms)

    def test_each_second_block_mirrors_the_one_before(self):
        self.assertEqual(self.order(1), self.order(0)[::-1])
        self.assertGreater(len({tuple(self.order(block)) for block in range(0, 40, 2)}), 5)

    def test_an_arm_that_drops_out_leaves_the_others_order(self):
        for block in range(6):
            self.assertEqual([arm for arm in self.order(block) if arm != "b"],
                             self.order(block, ("a", "c", "floor")))


class Rotation(unittest.TestCase):
    def sets(self, cache, min_bytes):
        job = {"cache": cache, "definition": {"problems": [{"name": "p", "min_bytes": min_bytes}],
                                              "gpu": {"l2_bytes": 1 << 20}}}
        return worker.Worker(None, job, None).rotation("p")

    def test_is_that_of_the_engine(self):  # RotationSets() of plan/job.h
        self.assertEqual(self.sets("warm", 1), 4)
        self.assertEqual(self.sets("cold", 1 << 20), 4)
        self.assertEqual(self.sets("cold", 1 << 18), 8)
        self.assertEqual(self.sets("cold", 400_000), 8)


class Arrays(unittest.TestCase):
    def test_are_found_at_any_depth(self):
        x, y = np.ones(2), np.zeros(3, np.int32)
        self.assertEqual([a.shape for a in arrays.leaves({"x": x, "more": [(y, 4), None]})], [(2,), (3,)])
        self.assertEqual(arrays.widened(np.float16([1])).dtype, np.float64)
        self.assertEqual(arrays.widened(y).dtype, np.int32)

    def test_that_overlap_are_told_from_neighbours(self):
        x = np.ones(8)
        self.assertTrue(arrays.share_memory(x, x[7:]))
        self.assertFalse(arrays.share_memory(x[:4], x[4:]))

    def test_are_the_same_bit_by_bit(self):
        nan = np.float32([1, np.nan])
        self.assertTrue(arrays.same(nan, nan.copy()))
        self.assertFalse(arrays.same(nan, nan.astype(np.float64)))
        self.assertFalse(arrays.same(nan, np.float32([1, 2])))


class TheRule(PythonTest):
    def setUp(self):
        super().setUp()
        self.x = np.random.default_rng(1).standard_normal((64, 512)).astype(np.float16)

    def judged(self, output, **more):
        return check.Reference(comparison(**more), self.x).judged(output)

    def test_lets_through_twice_the_error_of_the_inputs_type(self):
        right = self.x.astype(np.float64).sum(axis=1)
        naive = self.x.sum(axis=1)
        self.assertTrue(self.judged(naive)["correct"])
        error = np.abs(naive - right).max()
        limit = self.judged(naive)["max_err_limit"]
        self.assertAlmostEqual(limit, 2 * error, delta=1e-5)
        off = right.copy()
        off[3] += 1.01 * limit
        self.assertIn("is wrong: off by", self.judged(off)["reason"])
        self.assertIn("on average", self.judged(right + 0.9 * limit)["reason"])

    def test_is_that_of_atol_and_rtol_where_they_are_named(self):
        right = self.x.astype(np.float64).sum(axis=1)
        self.assertEqual(self.judged(right, atol=0.25)["max_err_limit"], 0.25)
        self.assertTrue(self.judged(right + 0.2, atol=0.25)["correct"])
        self.assertFalse(self.judged(right + 0.3, atol=0.25)["correct"])

    def test_an_output_of_another_kind_sets_no_tolerance_of_its_own(self):
        right = self.x.astype(np.float64).sum(axis=1)
        for output, kind in ((np.zeros(64, bool), "bool"), (right.astype(np.int32), "int32"),
                             (right + 1e9j, "complex128"), (right.astype(str), "<U"),
                             (right.astype(object), "object"), (right.astype("datetime64[s]"), "datetime64")):
            for more in {}, {"atol": 1e6}:
                result = self.judged(output, **more)
                self.assertFalse(result["correct"], kind)
                self.assertIn(f"output 0 is of {kind}", result["reason"])
                self.assertIn("the reference's of float64", result["reason"])
        # A narrower float may be as far off as its own rounding.
        self.assertTrue(self.judged(right.astype(np.float16))["correct"])

    def test_a_type_that_overflows_sets_no_endless_tolerance(self):
        made = check.Reference(comparison(lambda x: 1e6 * x), self.x[:, :4].astype(np.float32))
        self.assertFalse(made.judged(np.zeros((64, 4), np.float16))["correct"])

    def test_an_integer_result_may_be_of_any_real_type(self):
        x = np.arange(64).reshape(8, 8)
        made = check.Reference(comparison(), x)
        right = x.sum(axis=1)
        for output in right, right.astype(np.int32), right.astype(np.float32):
            self.assertTrue(made.judged(output)["correct"], output.dtype)
        for output in np.ones(8, bool), right.astype(np.int8), right + 1, right.astype(complex):
            self.assertFalse(made.judged(output)["correct"], output.dtype)

    def test_naive_gets_the_inputs_as_they_were_made(self):
        def reference(x):
            return x * 2

        def naive(x):
            x += 1
            return x

        for x in self.x, np.arange(64).reshape(8, 8):
            before = x.copy()
            made = check.Reference(comparison(reference, naive=naive), x)
            np.testing.assert_array_equal(made.naive[0], before + 1)
            np.testing.assert_array_equal(x, before)

    def test_refuses_a_reference_that_writes_into_its_inputs(self):
        def reference(x):
            x *= 2
            return x

        for x in self.x, self.x.astype(np.float64), np.arange(64).reshape(8, 8):
            for more in {}, {"atol": 1}, {"naive": lambda x: 2 * x}:
                with self.assertRaisesRegex(ValueError, "the reference writes into its inputs"):
                    check.Reference(comparison(reference, **more), x)

    def test_refuses_a_reference_without_a_result(self):
        for reference in (lambda x: x.sum(axis=1) * np.nan, lambda x: None):
            with self.assertRaises(ValueError):
                check.Reference(comparison(reference), self.x)


class TheClock(unittest.TestCase):
    def test_of_the_cpu_is_the_real_one(self):
        calls = machine.Timed(machine.Cpu(), lambda which: time.sleep(0.002), sets=2, launches=4)
        self.assertGreaterEqual(calls.us(), 2000)
        self.assertEqual(calls.lines, ["by call", "a Python function on the CPU"])


class TheProof(unittest.TestCase):
    """A graph that does not follow its inputs is found; a stand-in for a GPU captures."""

    class Machine(machine.Cpu):
        on_gpu, called, capture_refused = True, "by stream", ""

        def __init__(self, follows):
            self.follows = follows
            self.driver = type("Driver", (), {"call_lines": staticmethod(lambda graph, calls: ["kernel k"])})

        def captured(self, work):
            outputs = work()
            frozen = arrays.copied(outputs)

            def replay():
                for to, new, old in zip(outputs, work(), frozen):
                    arrays.assign(to, new if self.follows else old)
            return replay, outputs, None

    def prepared(self, follows):
        job = {"replay_us": 100, "max_launches": 8}
        made = worker.Worker(comparison(callables={"f": lambda x: x.sum(axis=1)}), job, None)
        made.sets = [np.random.default_rng(i).standard_normal((4, 8)) for i in range(4)]
        made.references = [check.Reference(made.comparison, x) for x in made.sets]
        made.machine = self.Machine(follows)
        before = arrays.copied(made.sets)
        calls = made.prepared("f")
        self.assertTrue(all(arrays.same(a, b) for a, b in zip(before, made.sets)))
        self.assertTrue(made.replayed(calls)["correct"])
        return calls

    def test_keeps_a_graph_that_follows_its_inputs(self):
        self.assertEqual(self.prepared(True).lines, ["by graph", "kernel k"])

    def test_calls_one_by_one_where_it_does_not(self):
        calls = self.prepared(False)
        self.assertEqual(calls.lines[0], "by stream")
        self.assertIn("its replay does not follow new inputs (input set 0", calls.lines[1])
