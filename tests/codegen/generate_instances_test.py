# SPDX-License-Identifier: Apache-2.0
"""The instance generator: which kernels a build gets, and what WARPLEDGER_EXTRA_DESIGNS adds."""

import json
import pathlib

from fixture import BUILD, FolderTest, run

PROGRAM = BUILD / "generated/generate_instances"


class GenerateInstances(FolderTest):
    def call(self, *designs, code=0, only=None):
        selection = [] if only is None else [f"--only={only}"]
        done = run(PROGRAM, *selection, self.path, *designs, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def sets(self, *designs, only=None):
        """{variant: set}"""
        self.call(*designs, only=only)
        listed = json.loads((self.path / "instances.json").read_text())["instances"]
        return {instance["variant"]: instance["set"] for instance in listed}

    def variants(self, *designs):
        return list(self.sets(*designs))

    def test_sets_apart_the_steps_of_the_cumulative_ladders_and_their_controls(self):
        found = {}
        for variant, name in self.sets().items():
            if name.endswith("_ladder"):
                found.setdefault(name, set()).add(variant)
        self.assertEqual(set(found), {"smem_ladder", "mma_ladder"})
        for name, base in ("smem_ladder", {"minimal_scalar"}), ("mma_ladder", set()):
            toggles = max(found[name], key=len).split("+")
            self.assertEqual(toggles[-1], "null_toggle")
            self.assertEqual(found[name], base | {"+".join(toggles[:count + 1])
                                                  for count in range(len(toggles))})

    def test_compiles_the_kernels_of_designs_that_it_is_asked_for_too(self):
        usual = self.variants()
        more = self.variants("factorial:cp_async_stages,smem_layout", "sweep:cp_async_stages")
        self.assertEqual(more[:len(usual)], usual)
        added = more[len(usual):]
        self.assertIn("kv_tiling+vector_loads+wmma_qk+cp_async_stages+wmma_pv+smem_layout", added)
        self.assertIn("kv_tiling+vector_loads+cp_async_stages=4", added)
        self.assertEqual(len(set(more)), len(more))
        table = (self.path / "instances.cc").read_text()
        self.assertEqual(table.count("_code},"), len(more))

    def test_compiles_no_more_than_it_is_asked_for(self):
        everything = self.sets()
        self.assertEqual(set(self.sets(only="ladder")), {
            variant for variant, name in everything.items() if name == "smem_ladder"})
        steps = self.sets(only="a_step_per_family")
        self.assertLess(len(steps), 30)
        self.assertEqual({name.split("_")[0] for name in steps.values()},
                         {"smem", "mma", "wgmma", "resident"})
        of_designs = self.sets(only="library")
        code = (self.path / "library/code.txt").read_text().splitlines()
        table = (self.path / "library/instances.cc").read_text().splitlines()
        # No design measures packed sequences, so that instances.json has none of their kernels.
        self.assertEqual(sum(".varlen = true" in line for line in table), 12 + 8)
        # 20 kernels are for GPUs without wgmma, and split_mma has a form that reads strides.
        strided = [line for line in table if ".strided = true" in line]
        self.assertEqual([".mma_sync = 1" in line for line in strided], 24 * [True])
        # A kernel whose parts another one joins lets that one start early.
        joined = [".wgmma_dependent_launch = 1" in line for line in table if ".wgmma_join_kernel = 1" in line]
        self.assertEqual(joined, 12 * [True])
        # At head_dim 128 it has another form, of clusters.
        clusters = [line for line in table if ".wgmma_cluster_join = 1" in line]
        self.assertEqual([".head_dim = 128" in line for line in clusters], 4 * [True])
        # Scales of E4M3 are read where the caller has them; a design's lie as the host prepares them.
        scaled = [line for line in table if ".scale_strides = true" in line]
        self.assertEqual([".wgmma_fp8 = 1" in line for line in scaled], 20 * [True])
        self.assertEqual(sum(".wgmma_fp8 = 1" in line for line in table), 20)
        printed = self.call(only="library").stdout.splitlines()
        self.assertEqual(len(printed), len(code))
        self.assertEqual(sum(line.startswith("mma_strided ") for line in printed), 20)
        self.assertEqual(sum(line.startswith("mma90 ") for line in printed), 4)
        self.assertEqual({pathlib.Path(line.split()[1]).stem for line in printed},
                         {pathlib.Path(file).stem for file in code})
        self.assertLess(len(of_designs), len(code))
        self.assertEqual(len(self.sets(only="")), len(everything))
        refused = self.call(only="ladder,lader", code=1)
        self.assertIn("WARPLEDGER_DESIGNS: there is no design 'lader'", refused.stderr)

    def test_adds_nothing_for_a_design_that_is_there_already(self):
        own = ("factorial:warp_shuffle,vector_loads,wmma_qk,cp_async_stages,wmma_pv"
               "@kv_tiling,tile_m32_warps4")
        self.assertEqual(self.variants(own), self.variants())

    def test_refuses_what_is_no_design(self):
        for design, why in (("ladder", "no factorial:"), ("factorial:wmma_pw", "'wmma_pw'"),
                            ("factorial:kv_tiling@wmma_pv", "drop it from one side")):
            done = self.call(design, code=1)
            self.assertIn("WARPLEDGER_EXTRA_DESIGNS: design '", done.stderr)
            self.assertIn(why, done.stderr)
