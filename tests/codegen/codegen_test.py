# SPDX-License-Identifier: Apache-2.0
"""Every toggle of the registry reached the machine code, and nothing spilled.

Applies codegen_checks.py to a build: registry.json (`warpledger list
--format=json`), resources.json and codegen.json (cmake/collect_codegen.py) and
the keep folders of the very compile that was linked. Needs no GPU.
"""

import argparse
import json
import pathlib
import sys
import unittest

import codegen_checks as checks

# The L4 notes' budget for their stage 2; the shared memory is what needs no opt-in.
BUDGET_ARM = "ladder:wmma_pv"
MAX_REGISTERS = 128
MAX_SMEM_BYTES = 49152


class CodegenTest(unittest.TestCase):
    args = None

    @classmethod
    def setUpClass(cls):
        cls.registry = json.loads(pathlib.Path(cls.args.registry).read_text(encoding="utf-8"))
        cls.instances, cls.disassembler = checks.load_instances(
            cls.args.codegen_dir, cls.args.keep_root, cls.args.instances)
        cls.listed = {row["variant"]: row for row in
                      checks.collect_codegen.load_instances(cls.args.instances)}
        cls.waivers = checks.load_waivers(cls.args.waivers)

    def steps(self, role):
        """Those of the registry; in a build of some designs, those whose kernels it holds."""
        steps = checks.steps(self.registry, role)
        if not self.args.partial:
            return steps
        return [step for step in steps if {step.base, step.candidate} <= set(self.instances)]

    def check_steps(self, role, check):
        steps = self.steps(role)
        if not steps and self.args.partial and role != "step":
            self.skipTest(f"this build holds no kernels of the role '{role}'")
        self.assertTrue(steps, f"registry.json holds no arm with role '{role}'")
        for step in steps:
            with self.subTest(step=str(step)):
                self.assert_none(check(step, self.instances))

    def assert_none(self, failures):
        if failures:
            self.fail("\n".join(failures))

    def is_waived(self, variant):
        row = self.listed[variant]
        return bool({row["symbol"], pathlib.Path(row["source"]).stem} & set(self.waivers))

    def test_each_variant_of_the_registry_is_compiled_for_every_architecture(self):
        of_registry = {instance["name"] for instance in self.registry["instances"]}
        self.assertLessEqual(set(self.instances), of_registry)
        if self.args.partial:
            families = {instance["family"] for instance in self.registry["instances"]}
            self.assertEqual({instance["family"] for instance in self.registry["instances"]
                              if instance["name"] in self.instances}, families)
        else:
            self.assertEqual(set(self.instances), of_registry)
        # wgmma exists in the architecture-specific target of Hopper alone.
        archs = {"smem": set(self.args.archs), "mma": set(self.args.archs),
                 "wgmma": {"sm_90a"},
                 "resident": {"sm_90a"}}
        listed = {instance["name"]: instance for instance in self.registry["instances"]}
        for variant, by_arch in self.instances.items():
            with self.subTest(variant=variant):
                expected = archs[listed[variant]["family"]]
                # generate_instances_test says which these are.
                if self.listed[variant]["set"].endswith("_ladder"):
                    expected = expected | set(self.args.ladder_archs)
                if listed[variant]["family"] == "mma":
                    least = listed[variant]["min_arch"]
                    expected = {arch for arch in expected if int(arch[3:].rstrip("a")) >= least}
                self.assertEqual(set(by_arch), expected)

    def test_each_step_changes_the_machine_code(self):
        self.check_steps("step", checks.reach_failures)

    def test_leaving_a_toggle_out_changes_the_machine_code(self):
        self.check_steps("without", checks.reach_failures)

    def test_each_step_leaves_its_evidence_in_the_ptx(self):
        self.check_steps("step", checks.ptx_failures)

    def test_each_step_leaves_its_evidence_in_the_sass(self):
        if not self.disassembler:
            self.skipTest("codegen.json was made without nvdisasm, so it holds no opcodes")
        self.check_steps("step", checks.sass_failures)

    def test_each_toggle_that_is_wired_to_nothing_is_refused(self):
        steps, without = (self.steps(role) for role in ("step", "without"))
        if not self.args.partial:
            # Launch-side ones are held to what is launched, which takes a GPU.
            self.assertEqual({toggle["id"] for toggle in self.registry["toggles"]
                              if not toggle["control"] and not toggle["launch_side"]}
                             - {step.toggle["id"] for step in steps + without}, set())
        for step in steps + without:
            # What a build gives where no kernel branches on it: the base again.
            unwired = {**self.instances, step.candidate: self.instances[step.base]}
            with self.subTest(step=str(step)):
                self.assertTrue(checks.reach_failures(step, unwired))
        for step in steps:
            if step.between_levels:
                continue  # base and candidate both have the evidence
            unwired = {**self.instances, step.candidate: self.instances[step.base]}
            with self.subTest(step=str(step)):
                evidence = step.toggle["evidence"]
                self.assertEqual(bool(checks.ptx_failures(step, unwired)), bool(evidence["ptx"]))
                if self.disassembler:
                    self.assertEqual(bool(checks.sass_failures(step, unwired)),
                                     bool(evidence["sass"]))

    def test_a_control_leaves_the_machine_code_as_it_was(self):
        self.check_steps("null", checks.control_failures)

    def test_no_instance_uses_local_memory(self):
        for variant, by_arch in self.instances.items():
            if self.is_waived(variant):
                continue
            for instance in by_arch.values():
                with self.subTest(instance=str(instance)):
                    self.assert_none(checks.local_memory_failures(instance))

    def test_an_instance_in_bf16_multiplies_in_bf16_and_in_nothing_else(self):
        if not self.disassembler:
            self.skipTest("codegen.json was made without nvdisasm, so it holds no opcodes")
        bf16 = [variant for variant in self.instances if "bf16" in variant.partition("@")[2]]
        if self.args.partial and not bf16:
            self.skipTest("this build holds no kernel in bf16")
        self.assertTrue(bf16, "no instance is compiled for bf16")
        for variant in bf16:
            for instance in self.instances[variant].values():
                with self.subTest(instance=str(instance)):
                    self.assertGreater(instance.sass_count(r"^HG?MMA\..*BF16"), 0)
                    self.assertEqual(instance.sass_count(r"^HG?MMA\.(?!.*BF16)"), 0)

    def test_the_hopper_families_hold_the_instructions_that_they_are_made_of(self):
        if not self.disassembler:
            self.skipTest("codegen.json was made without nvdisasm, so it holds no opcodes")
        hopper = [instance["name"] for instance in self.registry["instances"]
                  if instance["family"] in ("wgmma", "resident")
                  and instance["name"] in self.instances]
        self.assertTrue(hopper, "no instance is of the families wgmma and resident")
        for variant in hopper:
            on = {part.split("=")[0] for part in variant.split("@")[0].split("+")}
            moves_registers = ("consumer_warpgroups" in on
                               and not on & {"wgmma_equal_registers", "wgmma_inline_loads"})
            expected = {r"^HGMMA": "wgmma_fp8" not in on,  # wgmma in 16 bits
                        r"^QGMMA": "wgmma_fp8" in on,  # and in FP8
                        r"^UTMALDG": True,  # loads by TMA: Q's, where no others are
                        r"^UTMASTG": "tma_store" in on,
                        r"^LDGSTS": "wgmma_cp_async" in on,
                        r"^SYNCS": True,  # mbarriers
                        r"^USETMAXREG": moves_registers}
            for instance in self.instances[variant].values():
                for pattern, is_there in expected.items():
                    with self.subTest(instance=str(instance), pattern=pattern):
                        self.assertEqual(instance.sass_count(pattern) > 0, is_there)

    def test_wmma_for_p_v_stays_within_the_budget_of_the_notes(self):
        config = next(arm["config"] for design in self.registry["designs"]
                      for arm in design["arms"] if arm["name"] == BUDGET_ARM)
        if self.args.partial and config not in self.instances:
            self.skipTest(f"this build holds no kernel of {BUDGET_ARM}")
        dynamic_smem_bytes = next(variant["smem_bytes"] for variant in self.registry["variants"]
                                  if variant["config"] == config)
        for instance in self.instances[config].values():
            with self.subTest(instance=str(instance)):
                self.assert_none(checks.budget_failures(
                    instance, dynamic_smem_bytes, MAX_REGISTERS, MAX_SMEM_BYTES))


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--registry", required=True)
    parser.add_argument("--partial", action="store_true",
                        help="the build holds the kernels of some designs alone")
    parser.add_argument("--codegen-dir", required=True)
    parser.add_argument("--keep-root", required=True)
    parser.add_argument("--instances", required=True)
    parser.add_argument("--archs", nargs="+", default=["sm_90"])
    parser.add_argument("--ladder-archs", nargs="*", default=["sm_80", "sm_89"],
                        help="what the ladders' instances are compiled for beside these")
    parser.add_argument("--waivers", default=root / "kernels" / "sdpa" / "spill_waivers.txt")
    CodegenTest.args, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
