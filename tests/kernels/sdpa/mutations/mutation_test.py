# SPDX-License-Identifier: Apache-2.0
"""The planted bugs still stand in the sources that they are planted in, and cover what they should."""

import pathlib
import re
import tempfile
import unittest

import mutants

KINDS = ("missing_rescale", "mask_off_by_one", "quad_sum_over_two_lanes", "last_tile_dropped",
         "threshold_too_large", "missing_cluster_wait", "tail_unmasked", "split_dropped",
         "stale_phase", "lse_in_base_2", "hard_coded_scale", "wrong_kv_head",
         "one_copy_group_too_many", "neighbours_scale", "nan_for_unseen_rows")
GROUPS = ("simt", "wmma", "mma", "wgmma", "resident")


class MutationsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = mutants.load()

    def test_each_applies_where_its_text_stands_once(self):
        for each in self.all:
            with self.subTest(each.name):
                text = (mutants.ROOT / each.file).read_text(encoding="utf-8")
                self.assertNotEqual(each.mutated(), text)

    def test_each_has_a_name_of_its_own_that_begins_with_its_group(self):
        self.assertEqual(len({each.name for each in self.all}), len(self.all))
        for each in self.all:
            self.assertRegex(each.name, "^[a-z][a-z0-9_]+$")
            self.assertIn(each.group, GROUPS)
            self.assertIn(each.family, ("smem",) if each.group in ("simt", "wmma") else
                          (each.group,))

    def test_each_is_planted_in_its_family_or_in_what_families_share(self):
        for each in self.all:
            self.assertRegex(each.file, rf"^kernels/sdpa/({each.family}|shared)/.*\.cuh$")

    def test_there_are_enough_of_every_group_and_every_kind(self):
        self.assertGreaterEqual(len(self.all), 40)
        for group in GROUPS:
            self.assertGreaterEqual(sum(each.group == group for each in self.all), 8, group)
        for kind in KINDS:
            self.assertTrue([each for each in self.all if re.search(f"_{kind}$", each.name)], kind)

    def test_most_do_not_depend_on_time(self):
        self.assertLess(sum(bool(each.race) for each in self.all), len(self.all) / 8)

    def test_to_apply_leaves_nothing_of_an_older_mutant(self):
        mutation = self.all[0]
        with tempfile.TemporaryDirectory() as parent:
            older = pathlib.Path(parent, "mutant", "kernels", "older.cuh")
            older.parent.mkdir(parents=True)
            older.write_text("", encoding="utf-8")
            mutants.main("apply", mutation.name, str(older.parents[1]))
            files = [each for each in older.parents[1].rglob("*") if each.is_file()]
            self.assertEqual(files, [older.parents[1] / mutation.file])

    def test_a_text_that_is_missing_or_stands_twice_is_refused(self):
        for old in "no such text", "#include":
            with self.assertRaisesRegex(ValueError, "and should once"):
                mutants.Mutation("a", "b", self.all[0].file, old, "", "", "", "smem").mutated()
