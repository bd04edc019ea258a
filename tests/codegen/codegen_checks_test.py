# SPDX-License-Identifier: Apache-2.0
"""The checks on generated code find what they are there to find."""

import pathlib
import tempfile
import unittest

import codegen_checks as checks


def instance(variant="base", **changes):
    fields = {"variant": variant, "arch": "sm_90", "registers": 100, "static_smem_bytes": 0,
              "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0,
              "code_sha256": variant, "opcodes": {"HMMA.16816.F32": 8, "EXIT": 1},
              "ptx": ("wmma.mma.sync.aligned.row.col;", "ret;")}
    return checks.Instance(**{**fields, **changes})


def step(change="grows", ptx=r"wmma\.mma\.sync", sass="HMMA"):
    toggle = {"id": "wmma_pv", "evidence": {"change": change, "ptx": ptx, "sass": sass}}
    return checks.Step(toggle, "base", "candidate")


def compiled(base, candidate):
    return {"base": {"sm_90": base}, "candidate": {"sm_90": candidate}}


class EvidenceTest(unittest.TestCase):
    def test_growth_needs_more_matches_than_before(self):
        more = instance("candidate", opcodes={"HMMA.16816.F32": 8, "HMMA.1688.F16": 1})
        self.assertEqual(checks.sass_failures(step(), compiled(instance(), more)), [])
        same = instance("candidate")
        self.assertRegex(checks.sass_failures(step(), compiled(instance(), same))[0],
                         "8 when off, 8 when on; expected more")

    def test_each_kind_of_change_is_told_from_the_others(self):
        none, one = ("ret;",), ("wmma.mma.sync.aligned.row.col;", "ret;")
        inside = ("$L1:", "wmma.mma.sync;", "wmma.mma.sync;", "@%p1 bra $L1;", "ret;")
        outside = ("wmma.mma.sync;", "$L1:", "wmma.mma.sync;", "bra.uni $L1;", "ret;")
        forward = ("bra $L1;", "wmma.mma.sync;", "$L1:", "ret;")
        for change, off, on, failure in (
                ("appears", none, one, None),
                ("appears", one, one, "1 when off, 1 when on; expected none when off"),
                ("appears", none, none, "0 when off, 0 when on"),
                ("shrinks", one, none, None),
                ("shrinks", one, one, "1 when off, 1 when on; expected fewer"),
                ("vanishes", one, none, None),
                ("vanishes", none, none, "0 when off, 0 when on"),
                ("vanishes", one, one, "1 when off, 1 when on"),
                ("differs", one, none, None),
                ("differs", none, one, None),
                ("differs", none, none, "expected another number"),
                ("shrinks_in_loops", inside, outside, None),
                ("shrinks_in_loops", outside, inside,
                 "1 when off, 2 when on; expected fewer in loops"),
                ("shrinks_in_loops", forward, forward, "0 when off, 0 when on")):
            with self.subTest(change=change, off=off, on=on):
                found = checks.ptx_failures(step(change), compiled(
                    instance(ptx=off), instance("candidate", ptx=on)))
                self.assertEqual(len(found), 0 if failure is None else 1)
                self.assertRegex("".join(found), failure or "^$")

    def test_between_two_levels_the_evidence_need_only_stand_in_the_candidate(self):
        on = checks.Step(step("appears").toggle, "kv_tiling+wmma_pv", "kv_tiling+wmma_pv=2")
        self.assertTrue(on.between_levels)
        self.assertFalse(checks.Step(on.toggle, "kv_tiling+wmma_pv_not", "x").between_levels)
        pair = {on.base: {"sm_90": instance()}, on.candidate: {"sm_90": instance("candidate")}}
        self.assertEqual(checks.ptx_failures(on, pair), [])
        pair[on.candidate]["sm_90"] = instance("candidate", ptx=("ret;",))
        self.assertRegex(checks.ptx_failures(on, pair)[0], "expected at least one")

    def test_an_empty_pattern_is_not_checked(self):
        pair = compiled(instance(), instance("candidate"))
        self.assertEqual(checks.sass_failures(step(sass=""), pair), [])
        self.assertEqual(checks.ptx_failures(step(ptx=""), pair), [])

    def test_a_technique_may_not_promise_that_nothing_changes(self):
        pair = compiled(instance(), instance("candidate"))
        self.assertRegex(checks.ptx_failures(step("none"), pair)[0], "promises 'none'")

    def test_a_toggle_that_reached_nothing_is_found(self):
        same = instance("candidate", code_sha256="base")
        self.assertRegex(checks.reach_failures(step(), compiled(instance(), same))[0],
                         "reached nothing")
        differs = instance("candidate")
        self.assertEqual(checks.reach_failures(step(), compiled(instance(), differs)), [])

    def test_a_control_that_changes_the_code_is_found(self):
        differs = instance("candidate")
        self.assertRegex(checks.control_failures(step(), compiled(instance(), differs))[0],
                         "differs on sm_90")
        same = instance("candidate", code_sha256="base")
        self.assertEqual(checks.control_failures(step(), compiled(instance(), same)), [])

    def test_an_architecture_missing_from_the_candidate_is_an_error(self):
        with self.assertRaises(KeyError):
            checks.reach_failures(step(), {"base": {"sm_90": instance()}, "candidate": {}})

    def test_steps_resolve_the_base_arm_to_its_configuration_and_drop_repeats(self):
        arms = [{"name": "ladder:a", "config": "minimal_scalar", "role": "base", "toggle": "",
                 "base": "", "instances": ["minimal_scalar"]},
                {"name": "ladder:b", "config": "wmma_pv", "role": "step", "toggle": "wmma_pv",
                 "base": "ladder:a", "instances": ["wmma_pv"]}]
        registry = {"toggles": [step().toggle],
                    "designs": [{"name": "ladder", "arms": arms}, {"name": "again", "arms": arms}]}
        self.assertEqual(checks.steps(registry, "step"),
                         [checks.Step(step().toggle, "minimal_scalar", "wmma_pv")])
        self.assertEqual(checks.steps(registry, "null"), [])


class ResourcesTest(unittest.TestCase):
    def test_stack_spills_and_local_memory_are_each_found(self):
        self.assertEqual(checks.local_memory_failures(instance()), [])
        for changes in ({"stack_bytes": 8}, {"spill_store_bytes": 4}, {"spill_load_bytes": 4},
                        {"opcodes": {"LDL.64": 1}}, {"opcodes": {"STL": 1}}):
            with self.subTest(changes=changes):
                self.assertEqual(len(checks.local_memory_failures(instance(**changes))), 1)

    def test_the_budget_counts_static_and_dynamic_shared_memory(self):
        self.assertEqual(checks.budget_failures(instance(static_smem_bytes=24), 1000, 100, 1024),
                         [])
        self.assertRegex(
            checks.budget_failures(instance(static_smem_bytes=25), 1000, 100, 1024)[0],
            "1025 B of shared memory, at most 1024")

    def test_the_budget_counts_registers_and_spills(self):
        self.assertRegex(checks.budget_failures(instance(), 0, 99, 0)[0], "100 registers")
        self.assertRegex(checks.budget_failures(instance(spill_load_bytes=4), 0, 100, 0)[0],
                         "spills")


class WaiversTest(unittest.TestCase):
    def test_a_waiver_without_a_reason_waives_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "waivers.txt"
            self.assertEqual(checks.load_waivers(path), {})
            path.write_text("# name reason\n\nsdpa_a faster with four spilled bytes\nsdpa_b\n",
                            encoding="utf-8")
            self.assertEqual(checks.load_waivers(path),
                             {"sdpa_a": "faster with four spilled bytes"})
