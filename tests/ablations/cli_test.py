"""The command line `warpledger` as a user without a GPU meets it.

What it prints, its exit codes, and that a command that fails leaves nothing
behind. Cases that need a build with kernels, or a machine without a GPU, skip
with the reason elsewhere.

    cli_test.py path/to/warpledger kernels|no_kernels
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
SYNTHETIC = pathlib.Path(__file__).resolve().parents[1] / "reports/testdata/summary.json"
HAS_KERNELS = False

# Exit codes, as `warpledger --help` explains them.
OK, USAGE, MISSING, DAMAGED = 0, 2, 3, 4

COMMANDS = ("list", "check", "run", "judge", "report", "techniques", "standings", "exec", "compare", "gate",
            "ratchet", "dtypes")
PROCESSES = 3
BLOCKS = 6
ARMS = (
    # name, config, role, toggle, base, median us
    ("minimal_scalar", "minimal_scalar", "base", "", "", 10.0),
    ("ladder:kv_tiling", "kv_tiling", "step", "kv_tiling", "minimal_scalar", 5.0),
    ("control:aa", "kv_tiling", "aa", "", "ladder:kv_tiling", 5.0),
)


def gpu_is_listed():
    """True when the NVIDIA driver lists a GPU."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False,
                                timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "GPU 0" in listed.stdout


def npy(shape, dtype="<f2"):
    """The bytes of an .npy file of zeros, format 1.0."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header = header.ljust((10 + len(header) + 1 + 63) // 64 * 64 - 11) + "\n"
    size = int(dtype[2:])
    for length in shape:
        size *= length
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(size)


def run_json():
    """A run of three arms on one shape."""
    return {
        "schema_version": 1, "run_id": "2026-01-02-example", "created_utc": "2026-01-02T03:04:05Z",
        "design": "ladder", "family": "ladder", "argv": ["warpledger", "run"], "seed": 1,
        "processes": PROCESSES, "blocks_per_process": BLOCKS, "cache": "warm",
        "shapes": [{"name": "small", "batch": 1, "heads_q": 1, "heads_kv": 1, "seq_q": 32,
                    "seq_kv": 32, "head_dim": 64, "causal": False}],
        "arms": [dict(zip(("name", "config", "role", "toggle", "base"), arm)) for arm in ARMS],
        "git": {"sha": "0123abcd", "dirty": False}, "registry_sha256": "aa",
        "kernel_source_sha256": "bb",
        "toolchain": {"nvcc": "13.0", "host_compiler": "g++ 12", "build_type": "Release",
                      "cuda_flags": "", "architectures": "90"},
        "gpu": {"name": "NVIDIA H200", "slug": "h200", "uuid": "GPU-1",
                "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 62914560,
                "memory_bytes": 150754820096, "driver": "580.0", "cuda_runtime": "13.0",
                "ecc": True, "max_sm_clock_mhz": 1980, "max_memory_clock_mhz": 3201,
                "power_limit_w": 700.0},
    }


def sample_lines():
    """Every block of every process: each arm once, with a scatter of about one per cent."""
    lines = []
    for process in range(PROCESSES):
        for block in range(BLOCKS):
            for order, arm in enumerate(ARMS):
                scatter = 1 + 0.01 * ((7 * process + 3 * block + 5 * order) % 5 - 2)
                lines.append(json.dumps({
                    "seq": len(lines), "process": process, "shape": "small", "block": block,
                    "order": order, "of": len(ARMS), "arm": arm[0], "launches": 64,
                    "us": arm[5] * scatter, "sm_mhz": 1980, "temp_c": 41, "power_w": 310.5,
                    "throttle": 0, "cache": "warm"}))
    return lines


def check_lines():
    """One passed check per arm."""
    return [json.dumps({"process": 0, "arm": arm[0], "shape": "small", "inputs": "normal",
                        "seed": 1, "correct": True, "max_err": 1e-5, "max_err_limit": 1e-4,
                        "mean_err": 1e-6, "mean_err_limit": 1e-5, "lse_err": 1e-7,
                        "lse_limit": 1e-6, "guards_intact": True, "bit_identical": True,
                        "reason": ""}) for arm in ARMS]


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], cwd=self.path, capture_output=True, text=True,
                              check=False, timeout=120, stdin=subprocess.DEVNULL)

    def refused(self, code, *arguments):
        """Its one line on stderr; nothing on stdout, nothing new in the folder."""
        before = self.files()
        result = self.run_program(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Awarpledger: [^\n]+\n\Z")
        self.assertEqual(self.files(), before)
        return result.stderr

    def files(self):
        return {str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else None
                for path in self.path.rglob("*")}

    def needs_kernels(self):
        if not HAS_KERNELS:
            self.skipTest("this build holds no kernels, so their commands say that first")

    def needs_no_gpu(self):
        if gpu_is_listed():
            self.skipTest("nvidia-smi lists a GPU, so the command would use it")


class Help(CliTest):
    def test_names_every_command_and_every_exit_code(self):
        for arguments in (["--help"], ["-h"], ["help"]):
            result = self.run_program(*arguments)
            self.assertEqual(result.returncode, OK)
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
                result = self.run_program(*arguments)
                self.assertEqual(result.returncode, OK, arguments)
                self.assertTrue(result.stdout.startswith(f"warpledger {command} "), result.stdout)
                self.assertRegex(result.stdout, r"\n  --\w+ +\w")
        self.assertRegex(self.run_program("help", "run").stdout, r"--design +.*\(default: ladder\)")

    def test_wins_over_flags_that_are_wrong(self):
        self.assertEqual(self.run_program("judge", "--nonesuch", "--help").returncode, OK)

    def test_is_shown_where_no_command_is_given_but_that_is_wrong_use(self):
        result = self.run_program()
        self.assertEqual(result.returncode, USAGE)
        self.assertIn("Usage: warpledger COMMAND", result.stdout)

    def test_of_an_unknown_command_is_refused(self):
        self.assertIn("'jugde'", self.refused(USAGE, "help", "jugde"))

    def test_the_version_is_a_number(self):
        result = self.run_program("--version")
        self.assertEqual(result.returncode, OK)
        self.assertRegex(result.stdout, r"\Awarpledger \d+\.\d+\.\d+\n\Z")


class WrongUse(CliTest):
    def test_an_unknown_command_is_refused_with_the_nearest(self):
        self.assertIn("did you mean 'judge'?", self.refused(USAGE, "jugde"))
        self.assertIn("'xyzzy'; `warpledger --help`", self.refused(USAGE, "xyzzy"))

    def test_an_unknown_flag_is_refused_with_the_nearest(self):
        error = self.refused(USAGE, "judge", "--recrod=x")
        self.assertIn("--recrod", error)
        self.assertIn("did you mean --record?", error)

    def test_a_flag_of_another_command_is_refused(self):
        self.assertIn("has no flag --variants", self.refused(USAGE, "judge", "--variants=all"))

    def test_a_flag_of_the_libraries_is_refused(self):
        self.refused(USAGE, "list", "--flagfile=x")

    def test_a_flag_without_its_value_is_refused(self):
        self.assertIn("--record needs a value", self.refused(USAGE, "judge", "--record"))

    def test_a_value_of_another_type_is_refused(self):
        self.assertIn("--plots=maybe", self.refused(USAGE, "report", "--plots=maybe"))
        self.assertIn("--seeds=few", self.refused(USAGE, "check", "--seeds=few"))

    def test_an_argument_that_is_no_flag_is_refused(self):
        self.assertIn("'somewhere'", self.refused(USAGE, "judge", "somewhere"))

    def test_an_unknown_format_is_refused_with_those_that_exist(self):
        error = self.refused(USAGE, "list", "--format=jsn")
        self.assertIn("jsn", error)
        self.assertIn("text or json", error)

    def test_an_unknown_section_of_the_list_is_refused_with_the_nearest(self):
        self.assertIn("did you mean 'shapes'?", self.refused(USAGE, "list", "shape"))

    def test_an_unknown_variant_shape_design_or_input_is_refused_with_the_nearest(self):
        self.needs_kernels()
        for arguments, nearest in (
                (["check", "--variants=ladder:wmma_vp"], "'ladder:wmma_pv'"),
                (["check", "--variants=kv_tilling"], "'kv_tiling'"),
                (["check", "--shapes=misson_b"], "'mission_b'"),
                (["check", "--inputs=norml"], "'normal'"),
                (["run", "--out=o", "--design=lader"], "'ladder'"),
                (["run", "--out=o", "--shapes=misson_b"], "'mission_b'"),
                (["exec", "--variant=minimal"], "'minimal_scalar'")):
            with self.subTest(arguments=arguments):
                self.assertIn(f"did you mean {nearest}", self.refused(USAGE, *arguments))

    def test_an_illegal_variant_is_refused_with_what_it_lacks(self):
        self.needs_kernels()
        error = self.refused(USAGE, "check", "--variants=kv_tiling+cp_async_stages")
        self.assertIn("needs vector_loads", error)

    def test_a_legal_variant_without_a_kernel_is_refused_with_where_to_look(self):
        self.needs_kernels()
        error = self.refused(USAGE, "check", "--variants=kv_tiling+warp_shuffle+wmma_qk")
        self.assertIn("`warpledger list variants`", error)

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
            done = self.run_program("run", "--dry_run", *arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

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
                     "--replay_us=inf", "--silence_limit_s=0", "--max_launches=1"):
            self.assertIn("must be positive", self.refused(USAGE, "run", "--out=o", flag))

    def test_a_run_without_a_place_for_its_record_is_refused(self):
        self.needs_kernels()
        self.assertIn("--out=DIR is missing", self.refused(USAGE, "run"))

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
        result = self.run_program("list", "--format=json", *arguments)
        self.assertEqual(result.returncode, OK, result.stderr)
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
        self.assertIn("mission_b", text)
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


class RecordTest(CliTest):
    def setUp(self):
        super().setUp()
        self.record = self.path / "record"
        self.record.mkdir()
        self.write(run_json(), sample_lines(), check_lines())

    def write(self, run, samples, checks):
        (self.record / "run.json").write_text(json.dumps(run))
        (self.record / "samples.jsonl").write_text("".join(line + "\n" for line in samples))
        (self.record / "correctness.jsonl").write_text("".join(line + "\n" for line in checks))


class Judge(RecordTest):
    def judge(self, *arguments):
        result = self.run_program("judge", "--record=record", *arguments)
        self.assertEqual(result.returncode, OK, result.stderr)
        return result.stdout

    def damaged(self):
        error = self.refused(DAMAGED, "judge", "--record=record")
        self.assertFalse((self.record / "summary.json").exists())
        return error

    def test_writes_the_summary_and_prints_the_verdicts(self):
        table = self.judge()
        self.assertIn("kv_tiling", table)
        self.assertIn("record/summary.json", table)
        summary = json.loads((self.record / "summary.json").read_text())
        medians = {cell["variant"]: cell["p50_us"] for cell in summary["cells"]}
        self.assertAlmostEqual(medians["minimal_scalar"], 10, delta=0.2)
        self.assertAlmostEqual(medians["ladder:kv_tiling"], 5, delta=0.1)
        [verdict] = summary["verdicts"]
        self.assertEqual((verdict["toggle"], verdict["base"]), ("kv_tiling", "minimal_scalar"))
        self.assertAlmostEqual(verdict["ratio"], 2, delta=0.05)
        self.assertEqual(summary["provenance"]["n_samples"], PROCESSES * BLOCKS * len(ARMS))

    def test_changes_no_raw_file_and_gives_the_same_bytes_again(self):
        raw = self.files()
        self.judge()
        first = (self.record / "summary.json").read_bytes()
        self.judge()
        self.assertEqual((self.record / "summary.json").read_bytes(), first)
        after = self.files()
        del after["record/summary.json"]
        self.assertEqual(after, raw)

    def test_writes_where_it_is_told_and_nowhere_else(self):
        before = set(self.files())
        self.judge("--out=elsewhere.json")
        self.assertEqual(set(self.files()) - before, {"elsewhere.json"})

    def test_wants_a_record(self):
        self.assertIn("--record=DIR is missing", self.refused(USAGE, "judge"))

    def test_of_a_directory_that_is_not_there_or_holds_no_record_says_so(self):
        self.assertIn("nowhere: no record here", self.refused(USAGE, "judge", "--record=nowhere"))
        (self.path / "empty").mkdir()
        self.assertIn("no record here", self.refused(USAGE, "judge", "--record=empty"))

    def test_of_a_file_wants_a_folder(self):
        self.assertIn("name a folder", self.refused(USAGE, "judge", "--record=record/run.json"))

    def test_of_a_record_that_lost_its_samples_or_has_none_is_refused_as_damage(self):
        self.write(run_json(), [], check_lines())
        self.assertIn("samples.jsonl: holds no sample", self.damaged())
        (self.record / "samples.jsonl").unlink()
        self.assertIn("no samples.jsonl", self.damaged())

    def test_of_an_unfinished_record_says_so_on_stderr(self):
        whole = self.run_program("judge", "--record=record")
        self.assertEqual((whole.returncode, whole.stderr), (OK, ""))
        lines = sample_lines()[:4 * BLOCKS // 3 * len(ARMS)]  # a third of the second process
        self.write(run_json(), lines, check_lines())
        part = self.run_program("judge", "--record=record")
        self.assertEqual(part.returncode, OK)
        self.assertRegex(part.stderr, r"unfinished: 8 of 18 blocks; .*`warpledger run`")
        provenance = json.loads((self.record / "summary.json").read_text())["provenance"]
        self.assertEqual((provenance["processes_found"], provenance["blocks_missing"]), (2, 10))

    def test_names_file_and_line_of_a_line_that_is_no_json(self):
        samples = sample_lines()
        samples[4] = samples[4][:20]
        self.write(run_json(), samples, check_lines())
        self.assertIn("samples.jsonl:5: ", self.damaged())

    def test_names_file_and_line_of_a_sample_that_lacks_a_field(self):
        samples = sample_lines()
        sample = json.loads(samples[7])
        del sample["us"]
        samples[7] = json.dumps(sample)
        self.write(run_json(), samples, check_lines())
        self.assertRegex(self.damaged(), r"samples\.jsonl:8: us: missing")

    def test_finds_a_deleted_line(self):
        samples = sample_lines()
        del samples[3:6]
        self.write(run_json(), samples, check_lines())
        self.assertIn("samples.jsonl:4: ", self.damaged())

    def test_finds_a_last_line_that_is_cut_off_and_says_how_to_go_on(self):
        text = (self.record / "samples.jsonl").read_text()
        (self.record / "samples.jsonl").write_text(text[:-9])
        error = self.damaged()
        self.assertIn(f"samples.jsonl:{len(sample_lines())}: ", error)
        self.assertIn("`warpledger run` on the same directory", error)

    def test_names_file_and_line_of_a_damaged_check(self):
        checks = check_lines()
        checks[1] = "{}"
        self.write(run_json(), sample_lines(), checks)
        self.assertIn("correctness.jsonl:2: ", self.damaged())

    def test_finds_damage_in_the_descriptions_too(self):
        (self.record / "run.json").write_text('{"schema_version": 1,')
        self.assertIn("run.json: ", self.damaged())
        run = run_json()
        del run["arms"]
        self.write(run, sample_lines(), check_lines())
        self.assertIn("run.json: arms: missing", self.damaged())

    def test_leaves_an_older_summary_alone_when_the_record_is_damaged(self):
        self.judge()
        old = (self.record / "summary.json").read_bytes()
        with open(self.record / "samples.jsonl", "a", encoding="utf-8") as file:
            file.write("{")
        self.refused(DAMAGED, "judge", "--record=record")
        self.assertEqual((self.record / "summary.json").read_bytes(), old)


class Report(RecordTest):
    def test_writes_a_report_that_speaks_of_the_record(self):
        result = self.run_program("report", "--record=record", "--out=out", "--noplots")
        self.assertEqual(result.returncode, OK, result.stderr)
        report = (self.path / "out/ladder.md").read_text(encoding="utf-8")
        for word in ("H200", "kv_tiling", "2026-01-02-example"):
            self.assertIn(word, report)
        self.assertEqual([path.name for path in (self.path / "out").iterdir()], ["ladder.md"])

    def test_also_writes_the_summary_that_judge_writes(self):
        for call in (["judge", "--out=judged.json"],
                     ["report", "--out=out", "--noplots", "--summary=reported.json"]):
            result = self.run_program(*call, "--record=record")
            self.assertEqual(result.returncode, OK, result.stderr)
        self.assertEqual((self.path / "reported.json").read_text(),
                         (self.path / "judged.json").read_text())

    def test_wants_a_record_and_a_place(self):
        self.assertIn("--out=DIR is missing", self.refused(USAGE, "report", "--record=record"))
        self.assertIn("--record=DIR is missing", self.refused(USAGE, "report", "--out=out"))

    def test_of_a_damaged_record_is_none(self):
        (self.record / "samples.jsonl").write_text("{}\n")
        self.assertIn("samples.jsonl:1: ",
                      self.refused(DAMAGED, "report", "--record=record", "--out=out"))

    def test_says_what_plots_need_where_the_interpreter_is_missing(self):
        result = self.run_program("report", "--record=record", "--out=out",
                                  "--python=warpledger_no_python")
        self.assertEqual(result.returncode, MISSING, result.stderr)
        self.assertIn("--noplots", result.stderr)
        self.assertTrue((self.path / "out/ladder.md").exists())

    def test_renews_only_the_marked_section_of_a_readme(self):
        readme = self.path / "README.md"
        readme.write_text("# Title\n\nno section here\n")
        before = readme.read_bytes()
        result = self.run_program("report", "--record=record", "--out=out", "--noplots",
                                  "--readme=README.md")
        self.assertNotEqual(result.returncode, OK)
        self.assertEqual(readme.read_bytes(), before)


class ReportOfDtypes(RecordTest):
    def test_writes_the_summary_and_refuses_a_readme(self):
        study = sorted((SYNTHETIC.parents[3] / "reports/data/cpu").glob("dtypes-*"))[-1]
        report = ("report", f"--record={study}", "--out=out", "--noplots")
        self.assertIn("this is a study of data types",
                      self.refused(USAGE, *report, "--readme=README.md"))
        result = self.run_program(*report, "--summary=summary.json")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertEqual(json.loads((self.path / "summary.json").read_text()),
                         json.loads((study / "dtypes.json").read_text()))


class Techniques(RecordTest):
    def test_writes_an_index_and_a_page_per_toggle_from_what_was_judged(self):
        self.assertEqual(self.run_program("judge", "--record=record").returncode, OK)
        result = self.run_program("techniques", "--record=record", "--out=out")
        self.assertEqual(result.returncode, OK, result.stderr)
        index = (self.path / "out/techniques.md").read_text(encoding="utf-8")
        self.assertIn("2026-01-02-example", index)
        page = (self.path / "out/techniques/kv_tiling.md").read_text(encoding="utf-8")
        self.assertIn("1 verdict in 1 design", page)
        self.assertIn("](techniques/mma_sync.md)", index)
        self.assertTrue((self.path / "out/techniques/mma_sync.md").exists())

    def test_wants_judged_records_and_a_place(self):
        self.assertIn("--out=DIR is missing",
                      self.refused(USAGE, "techniques", "--record=record"))
        self.assertIn("--record=DIR[,DIR..] is missing",
                      self.refused(USAGE, "techniques", "--out=out"))
        self.assertIn("`warpledger judge --record=record`",
                      self.refused(USAGE, "techniques", "--record=record", "--out=out"))

    def test_refuses_two_records_of_one_design_and_text_that_is_no_summary(self):
        self.assertEqual(self.run_program("judge", "--record=record").returncode, OK)
        self.assertIn("both of design ladder",
                      self.refused(USAGE, "techniques", "--record=record,record", "--out=out"))
        (self.record / "summary.json").write_text("{")
        self.assertIn("record/summary.json",
                      self.refused(DAMAGED, "techniques", "--record=record", "--out=out"))
        self.assertFalse((self.path / "out").exists())


class StandingsCommand(RecordTest):
    def test_of_a_record_without_peers_it_says_so(self):
        self.assertEqual(self.run_program("judge", "--record=record").returncode, OK)
        result = self.run_program("standings", "--record=record", "--out=out")
        self.assertEqual(result.returncode, OK, result.stderr)
        self.assertIn("No record holds an arm of ours beside a peer",
                      (self.path / "out/standings.md").read_text(encoding="utf-8"))

    def test_wants_judged_records_and_a_place(self):
        self.assertIn("--out=DIR is missing",
                      self.refused(USAGE, "standings", "--record=record"))
        self.assertIn("--record=DIR[,DIR..] is missing",
                      self.refused(USAGE, "standings", "--out=out"))
        self.assertIn("`warpledger judge --record=record`",
                      self.refused(USAGE, "standings", "--record=record", "--out=out"))

    def test_writes_the_page_and_renews_the_readme(self):
        """Of a summary with peers; those of a run are timed by PyTorch."""
        summary = json.loads(SYNTHETIC.read_text(encoding="utf-8"))
        summary["provenance"]["created_utc"] = "2026-11-22T00:00:00Z"
        (self.record / "summary.json").write_text(json.dumps(summary))
        readme = self.path / "README.md"
        readme.write_text("before\n<!-- generated:standings begin -->\nold\n"
                          "<!-- generated:standings end -->\nafter\n")
        result = self.run_program("standings", "--record=record", "--out=out", "--noplots",
                                  "--readme=README.md", "--readme_pictures=pages")
        self.assertEqual(result.returncode, OK, result.stderr)
        page = (self.path / "out/standings.md").read_text(encoding="utf-8")
        self.assertIn("## Other problems", page)
        text = readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n") and text.endswith("after\n"))
        self.assertIn("](pages/standings.md)", text)
        self.assertNotIn("old", text.splitlines())


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in ("kernels", "no_kernels"):
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    HAS_KERNELS = sys.argv.pop(1) == "kernels"
    unittest.main()
