# SPDX-License-Identifier: Apache-2.0
"""The command line `warpledger` as a user without a GPU meets it; records are cli_record_test's.

What it prints, its exit codes, and that a command that fails leaves nothing behind.
"""

import json
import re
import struct
import tempfile

from cli_fixture import MISSING, OK, USAGE, CliTest
from fixture import HAS_KERNELS

COMMANDS = ("list", "check", "run", "judge", "report", "techniques", "standings", "exec",
            "compare", "pool", "gate", "ratchet", "dtypes")


def npy(shape, dtype="<f2"):
    """The bytes of an .npy file of zeros, format 1.0."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header = header.ljust((10 + len(header) + 1 + 63) // 64 * 64 - 11) + "\n"
    size = int(dtype[2:])
    for length in shape:
        size *= length
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(size)


class Help(CliTest):
    def test_names_every_command_and_every_exit_code(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            result = self.ends(self.run_program(*arguments), OK)
            self.assertEqual(result.stderr, "")
            for command in COMMANDS:
                self.assertRegex(result.stdout, rf"(?m)^  {command} +\w")
            exit_codes = result.stdout[result.stdout.index("Exit codes:"):]
            for code in range(6):
                self.assertRegex(exit_codes, rf"\b{code} \w")

    def test_does_not_name_the_worker_which_is_no_users_command(self):
        self.assertNotIn("worker", self.run_program("--help").stdout)

    def test_of_a_command_names_it_and_its_flags_with_their_defaults(self):
        for command in COMMANDS:
            for arguments in (["help", command], [command, "--help"], [command, "-h"]):
                result = self.ends(self.run_program(*arguments), OK)
                self.assertTrue(result.stdout.startswith(f"warpledger {command} "), result.stdout)
                self.assertRegex(result.stdout, r"\n  --\w+ +\w")
        self.assertRegex(self.run_program("help", "run").stdout, r"--design +.*\(default: ladder\)")

    def test_wins_over_flags_that_are_wrong(self):
        self.assertEqual(self.run_program("judge", "--nonesuch", "--help").returncode, OK)

    def test_is_shown_where_no_command_is_given_but_that_is_wrong_use(self):
        self.ends(self.run_program(), USAGE, out="Usage: warpledger COMMAND")

    def test_of_an_unknown_command_is_refused(self):
        self.assertIn("'jugde'", self.refused(USAGE, "help", "jugde"))

    def test_the_version_is_a_number(self):
        result = self.ends(self.run_program("--version"), OK)
        self.assertRegex(result.stdout, r"\Awarpledger \d+\.\d+\.\d+\n\Z")


class WrongUse(CliTest):
    def assert_refused(self, *cases):
        for arguments, *told in cases:
            with self.subTest(arguments):
                error = self.refused(USAGE, *arguments.split(" "))
                for words in told:
                    self.assertIn(words, error)

    def test_what_is_unknown_is_refused_with_the_nearest(self):
        self.assert_refused(
            ("jugde", "did you mean 'judge'?"),
            ("xyzzy", "'xyzzy'; `warpledger --help`"),
            ("judge --recrod=x", "--recrod", "did you mean --record?"),
            ("judge --variants=all", "has no flag --variants"),
            ("list --flagfile=x",),  # of the libraries
            ("judge somewhere", "'somewhere'"),
            ("list --format=jsn", "jsn", "text or json"),
            ("list shape", "did you mean 'shapes'?"))

    def test_what_can_be_read_in_two_ways_or_has_no_value_is_refused(self):
        self.assert_refused(
            ("judge --record", "--record needs a value"),
            ("judge --record=a --record=b", "--record is given twice"),
            ("report --plots --noplots", "--plots is given twice"),
            ("run --dry_run --dry-run", "--dry_run is given twice"),
            ("judge --record= --out=o", "--record needs a value"),
            ("judge --record --out=o", "--record needs a value"),
            ("micro --out=o --filter=", "--filter needs a value"),
            ("bundle --record=a,,b --out=o", "a name between the commas is missing"),
            ("techniques --record=, --out=o", "a name between the commas is missing"))

    def test_a_value_of_another_type_is_refused(self):
        self.assert_refused(
            ("report --plots=maybe", "--plots=maybe: it is true or false"),
            ("check --seeds=few", "--seeds=few: it is a whole number from -2147483648"),
            ("run --processes=2147483648", "--processes=2147483648: it is a whole"),
            ("dtypes --seed=-1", "--seed=-1: it is a whole number from 0 to"),
            ("dtypes --seed=18446744073709551616", "it is a whole number from 0 to"))

    def test_a_variant_shape_design_or_input_that_is_not_there_is_refused_with_the_nearest(self):
        self.needs_kernels()
        self.assert_refused(
            ("check --variants=ladder:wmma_vp", "did you mean 'ladder:wmma_pv'"),
            ("check --variants=kv_tilling", "did you mean 'kv_tiling'"),
            ("check --shapes=misson_b", "did you mean 'mission_b'"),
            ("check --inputs=norml", "did you mean 'normal'"),
            ("run --out=o --design=lader", "did you mean 'ladder'"),
            ("run --out=o --shapes=misson_b", "did you mean 'mission_b'"),
            ("exec --variant=minimal", "did you mean 'minimal_scalar'"),
            ("check --variants=kv_tiling+cp_async_stages", "needs vector_loads"),
            ("check --variants=kv_tiling+warp_shuffle+wmma_qk", "`warpledger list variants`"),
            ("run", "--out=DIR is missing"))

    def test_a_dry_run_of_a_check_counts_without_a_gpu(self):
        self.needs_kernels()
        asked = ("check", "--dry_run", "--variants=minimal_scalar,kv_tiling", "--seeds=3",
                 "--inputs=normal,outliers")
        done = self.run_program(*asked, "--shapes=small,mission_b")
        self.assertEqual((done.returncode, done.stdout), (0, "24 checks\n"), done.stderr)
        # tests/sanitizers.py looks for these words.
        self.assertIn("none of these variants is compiled",
                      self.refused(USAGE, *asked, "--shapes=ragged_33x65_bf16"))

    def test_pairs_without_a_kernel_are_named_where_variants_and_shapes_were(self):
        self.needs_kernels()
        asked = ("check", "--dry_run", "--inputs=normal", "--seeds=1")
        two = "--variants=minimal_scalar,kv_tiling"
        done = self.run_program(*asked, two, "--shapes=small,ragged_33x65_bf16")
        self.assertEqual((done.returncode, done.stdout), (0, "2 checks\n"))
        self.assertEqual(done.stderr, "Skipped, for want of a kernel: 2 of 4 pairs\n"
                                      "  ragged_33x65_bf16: minimal_scalar, kv_tiling\n")
        for group in (two, "--shapes=all"), ("--variants=all", "--shapes=small,ragged_33x65_bf16"):
            done = self.run_program(*asked, *group)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_dry_run_refuses_the_shapes_that_a_run_refuses(self):
        for arguments, why in (
                (("--design=fusion", "--shapes=mission_b"), "begin with x; mission_b does not"),
                (("--design=ladder", "--shapes=fusion_a"),
                 "begin with Q, K and V; fusion_a does not"),
                (("--design=ladder", "--shapes=small", "--cache=cold"),
                 "small: one launch touches"),
                (("--design=ladder", "--shapes=mission_b,fa3_d256_s512_full"),
                 "no arm that is compiled for fa3_d256_s512_full: head_dim 256 in fp16"),
                (("--design=ladder", "--shapes=ragged_33x65_bf16"), "head_dim 64 in bf16")):
            with self.subTest(arguments=arguments):
                self.assertIn(why, self.refused(USAGE, "run", "--dry_run", *arguments))
        for arguments in (("--design=fusion", "--shapes=fusion_a"),
                          ("--design=ladder", "--shapes=mission_b", "--cache=cold"),
                          ("--design=hopper_d256", "--shapes=fa3_d256_s512_full")):
            self.ends(self.run_program("run", "--dry_run", *arguments))

    def test_numbers_out_of_range_are_refused(self):
        self.needs_kernels()
        self.assertIn("--seeds", self.refused(USAGE, "check", "--seeds=0"))
        for shard in ("0/4", "5/4", "2", "a/b", "1/0", "1/2/3"):
            self.assertIn(f"--shard={shard}: it is K/N",
                          self.refused(USAGE, "check", f"--shard={shard}"))
        self.assertIn("can't be read", self.refused(USAGE, "check", "--known=nowhere"))
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as known:
            known.write("ab12\n")
            known.flush()
            self.assertIn("'ab12' is no SHA-256",
                          self.refused(USAGE, "check", f"--known={known.name}"))
        for flag in ("--processes=0", "--blocks=-1", "--replay_us=0", "--replay_us=nan",
                     "--replay_us=inf", "--replay_us=6.1e7", "--silence_limit_s=0",
                     "--max_launches=1"):
            self.assertIn("must be positive", self.refused(USAGE, "run", "--out=o", flag))

    def test_a_refusal_fills_no_screen_and_commands_no_terminal(self):
        for call in (["run", "--out=o", "--shapes=" + "a" * 100_000],
                     ["judge", "--record=" + "b" * 100_000]):
            error = self.run_program(*call).stderr
            self.assertLess(len(error), 5000)
            self.assertRegex(error, r"… \(\d+ bytes\)\n\Z")
        error = self.run_program("judge", "--record=a\x1b[2J\x07b").stderr
        self.assertIn("a\\x1b[2J\\x07b", error)
        self.assertNotIn("\x1b", error)

    def test_a_place_that_is_a_file_is_refused_before_anything_is_computed(self):
        self.write("file", "")
        error = self.run_program("dtypes", "--out=file").stderr
        self.assertRegex(error, r"\Awarpledger: file: [^\n]+\n\Z")

    def test_every_command_that_a_refusal_suggests_works(self):
        wrong = [["jugde"], ["xyzzy"], ["judge", "--recrod=x"], ["list", "shape"], ["list", "--x"]]
        if HAS_KERNELS:
            wrong += [["check", "--variants=xyzzy"], ["check", "--shapes=xyzzy"],
                      ["check", "--inputs=xyzzy"], ["run", "--out=o", "--design=xyzzy"],
                      ["exec"], ["check", "--variants=kv_tiling+warp_shuffle+wmma_qk"]]
        for arguments in wrong:
            error = self.refused(USAGE, *arguments)
            suggested = re.findall(r"`warpledger ([^`]*)`", error)
            self.assertTrue(suggested, error)
            for command in suggested:
                with self.subTest(suggested=command):
                    self.assertEqual(self.run_program(*command.split()).returncode, OK, error)


class List(CliTest):
    def listed(self, *arguments):
        result = self.ends(self.run_program("list", "--format=json", *arguments), OK)
        return json.loads(result.stdout)

    def test_is_json_that_holds_the_registry(self):
        registry = self.listed()
        self.assertEqual(set(registry),
                         {"toggles", "designs", "variants", "instances", "shapes", "inputs"})
        for rows in registry.values():
            self.assertTrue(rows)
        for toggle in registry["toggles"]:
            self.assertEqual(toggle["levels"][0], 0, toggle["id"])
            self.assertTrue(toggle["claim"], toggle["id"])
            self.assertLessEqual(toggle["predicted"]["low"], toggle["predicted"]["high"])
            self.assertGreater(toggle["gate"], 1)
            self.assertIn(toggle["evidence"]["change"],
                          ("none", "appears", "grows", "shrinks", "vanishes", "differs",
                           "shrinks_in_loops"))

    def test_refers_only_to_what_it_lists(self):
        registry = self.listed()
        ids = {toggle["id"] for toggle in registry["toggles"]}
        shapes = {shape["name"] for shape in registry["shapes"]}
        configs = {variant["config"] for variant in registry["variants"]}
        for toggle in registry["toggles"]:
            self.assertLessEqual(set(toggle["needs"]), ids)
            self.assertIn(toggle["predicted"]["shape"], shapes)
        for design in registry["designs"]:
            arms = {arm["name"] for arm in design["arms"]}
            for arm in design["arms"]:
                self.assertIn(arm["config"], configs)
                self.assertIn(arm["toggle"], ids | {""})
                self.assertIn(arm["base"], arms | {""})

    def test_gives_the_geometry_of_each_variant(self):
        variants = {variant["name"]: variant for variant in self.listed("variants")["variants"]}
        base = variants["minimal_scalar"]
        self.assertEqual((base["tile_m"], base["tile_n"], base["threads"]), (1, 64, 64))
        last = variants["ladder:wmma_pv"]
        self.assertEqual((last["tile_m"], last["threads"], last["stages"]), (32, 128, 2))
        for variant in variants.values():
            self.assertGreater(variant["smem_bytes"], 0)

    def test_shows_only_the_sections_that_are_asked_for(self):
        self.assertEqual(list(self.listed("shapes", "inputs")), ["shapes", "inputs"])
        text = self.run_program("list", "shapes").stdout
        self.assertRegex(text, r"b1_h8_s512_d64 +\* .*; mission_b in records\n")
        self.assertNotIn("Toggles", text)

    def test_is_text_for_people_unless_told_otherwise(self):
        text = self.run_program("list").stdout
        for word in ("Toggles", "Variants", "Designs", "Shapes", "Input distributions",
                     "kv_tiling", "ladder:wmma_pv", "control:aa", "ragged_1x1", "large_logits"):
            self.assertIn(word, text)
        self.assertEqual(text, self.run_program("list", "--format=text").stdout)


class WithoutGpu(CliTest):
    def setUp(self):
        super().setUp()
        self.needs_no_gpu()

    def write_arrays(self, **changed):
        shapes = {"q": (1, 4, 3, 64), "k": (1, 2, 5, 64), "v": (1, 2, 5, 64)}
        for name, shape in shapes.items():
            content = changed.get(name, npy(shape))
            (self.path / f"{name}.npy").write_bytes(content)
        return ["exec", "--variant=minimal_scalar", "--q=q.npy", "--k=k.npy", "--v=v.npy",
                "--out=o.npy", "--lse=lse.npy"]

    def test_commands_that_launch_kernels_say_what_is_missing_and_leave_nothing(self):
        for arguments in (["run", "--out=record"], ["run", "--out=record", "--shapes=small"],
                          ["check"], ["check", "--shapes=small", "--seeds=1"],
                          self.write_arrays()):
            with self.subTest(arguments=arguments):
                error = self.refused(MISSING, *arguments)
                self.assertRegex(error, "GPU|nvcc|driver")

    def test_exec_refuses_wrong_arrays_before_it_looks_for_a_gpu(self):
        self.needs_kernels()
        wrong = {
            "fp32": ({"q": npy((1, 4, 3, 64), "<f4")}, "q.npy"),
            "three dimensions": ({"k": npy((2, 5, 64))}, "k.npy"),
            "another length of V": ({"v": npy((1, 2, 6, 64))}, "v.npy"),
            "another batch of K": ({"k": npy((2, 2, 5, 64))}, "k.npy"),
            "another head_dim": ({name: npy((1, 2, 5, 32)) for name in "qkv"}, "head_dim 32"),
            "heads that do not divide": ({"q": npy((1, 3, 3, 64))}, "multiple"),
            "a short file": ({"q": npy((1, 4, 3, 64))[:-2]}, "q.npy"),
            "no .npy file": ({"v": b"PK\x03\x04 and so on"}, "v.npy"),
        }
        for why, (changed, named) in wrong.items():
            with self.subTest(why):
                self.assertIn(named, self.refused(USAGE, *self.write_arrays(**changed)))

    def test_exec_names_the_file_or_flag_that_is_missing(self):
        self.needs_kernels()
        arguments = self.write_arrays()
        (self.path / "k.npy").unlink()
        self.assertIn("k.npy", self.refused(USAGE, *arguments))
        for flag in ("--variant", "--q", "--v", "--out"):
            rest = [argument for argument in self.write_arrays()
                    if not argument.startswith(flag + "=")]
            self.assertIn(f"{flag} is missing", self.refused(USAGE, *rest))
