# SPDX-License-Identifier: Apache-2.0
"""tests/sanitizers.py notices what it is there to notice, and its page says what was covered.

Stand-ins take the place of compute-sanitizer and of the program under it.
"""

import json
import pathlib
import sys
from unittest import mock

from fixture import ROOT, FolderTest, load
from stand_ins import script

SANITIZERS = load(ROOT / "tests" / "sanitizers.py")

PROGRAM = """
if [[ $1 == list ]]; then
  echo '{"shapes": ['
  for shape in small ragged large; do
    echo "{\\"name\\": \\"$shape\\", \\"batch\\": 1, \\"heads_q\\": 1, \\"seq_q\\": 32,"
    [[ $shape == large ]] && seq_kv=9999999 || seq_kv=32
    echo "\\"seq_kv\\": $seq_kv, \\"head_dim\\": 64}$([[ $shape == large ]] || echo ,)"
  done
  echo ']}'
  exit
fi
for flag; do
  case $flag in
    --out=*) out=${flag#--out=} ;;
    --shape=* | --shapes=*) shape=${flag#*=} ;;
    --shard=*) shard=${flag#--shard=} ;;
    --known=*) known=${flag#--known=} ;;
  esac
done
if [[ "$*" == *--dry_run* ]]; then
  [[ "$*" == *--variants=broken* ]] && { echo "no variant 'broken'" >&2; exit 2; }
  [[ "$*" == *--variants=on_small* && $shape == small ]] && { echo "1 checks"; exit; }
  echo "none of these variants is compiled for the head_dim and dtype of these shapes" >&2
  exit 2
fi
left=0
for i in 1 2; do
  code="code of $shape-$i"
  [[ -n $known ]] && grep -qxF "$code" "$known" && continue
  ((left++ % ${shard#*/} == ${shard%/*} - 1)) &&
    echo "{\\"instance\\": \\"$shape-$i\\", \\"code_sha256\\": \\"$code\\"}" >>"$out"
done
exit 0
"""


class SanitizersTest(FolderTest):
    """The program holds two instances for each shape, one for each part."""

    blind = "none"  # the tool that overlooks what is planted for it

    def sanitize(self, says="true", *arguments):
        """What becomes of a tool that `says` this of racecheck on the first part of `ragged`."""
        script(self.path / "nvidia-smi", "echo '0, GPU-1, NVIDIA H200, 9.0, 580.1'\n")
        script(self.path / "program", PROGRAM)
        script(self.path / "faults", "exit 0\n")
        script(self.path / "compute-sanitizer", f"""
[[ $1 == --version ]] && {{ echo "Version 2025.3"; exit; }}
if [[ $7 == */faults ]]; then
  [[ $2 == {self.blind} ]] && echo '========= ERROR SUMMARY: 0 errors' && exit
  echo '========= COMPUTE-SANITIZER'
  echo "========= a fault for $8"
  echo '========= ERROR SUMMARY: 1 error'
  exit 9
fi
echo "$@" >>"{self.path}/calls"
for last; do :; done
[[ $last == --known=* ]] && cp "${{last#--known=}}" "{self.path}/"
[[ "$*" == *racecheck*shapes=ragged*shard=1/2* ]] && {{ {says}; }}
shift 6
"$@"
echo '========= ERROR SUMMARY: 0 errors'
""")
        return self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                         self.path / "program", "--parts=2", "--jobs=2",
                         f"--faults={self.path / 'faults'}", *arguments)

    def record(self, folder="out"):
        return json.loads((self.path / folder / "sanitizers.json").read_text(encoding="utf-8"))

    def calls(self):
        return (self.path / "calls").read_text(encoding="utf-8")

    def earlier(self, name, change=lambda record: None, says="true"):
        """A record made before there was --since; `says` as in sanitize()."""
        self.sanitize(says, "--out", self.path / name)
        record = self.record(name)
        record["run_id"] = name
        record["gpu"]["driver"] = "570.1"
        del record["since"]
        change(record)
        (self.path / name / "sanitizers.json").write_text(json.dumps(record), encoding="utf-8")
        (self.path / "calls").unlink()
        return self.path / name

    def known(self):
        """{(tool, shape): the hashes that the program was given there}"""
        files = {tuple(path.stem.split("-")[1:]): path.read_text(encoding="utf-8").splitlines()
                 for path in self.path.glob("known-*.txt")}
        self.assertEqual(len(files), len({call.split("known-")[1] for call
                                          in self.calls().splitlines() if "known-" in call}))
        return files

    def test_clean_is_every_tool_on_every_part_of_every_small_shape(self):
        done = self.ends(self.sanitize("true", "--out", self.path / "out"))
        self.assertEqual(done.stdout.count(": clean, 1 instances"), 16)
        record = self.record()
        self.assertEqual(record["instances"], {f"{shape}-{part}": f"code of {shape}-{part}"
                                               for shape in ("ragged", "small")
                                               for part in (1, 2)})
        self.assertEqual([(run["tool"], run["shape"]) for run in record["runs"]],
                         [(tool, shape) for tool in ("memcheck", "racecheck", "initcheck",
                                                     "synccheck")
                          for shape in ("small", "ragged")])
        for run in record["runs"]:
            self.assertEqual((run["instances"], run["findings"]),
                             ([2, 3] if run["shape"] == "small" else [0, 1], []))
        self.assertEqual(record["gpu"], {"name": "NVIDIA H200", "compute_capability": "9.0",
                                         "driver": "580.1"})
        self.assertEqual(record["since"], [])
        self.assertNotIn("--known", self.calls())

    def test_a_tool_that_overlooks_a_planted_fault_is_believed_nothing(self):
        self.blind = "initcheck"
        self.ends(self.sanitize("true", "--out", self.path / "out"), 3,
                  err="initcheck does not find the fault")
        self.assertFalse((self.path / "calls").exists())
        self.blind = "none"
        self.assertEqual(self.sanitize("true", "--out", self.path / "out").returncode, 0)
        self.assertEqual(self.record()["planted"],
                         {tool: f"a fault for {tool}" for tool in
                          ("memcheck", "racecheck", "initcheck", "synccheck")})
        page = self.page_of_out()
        self.assertIn('racecheck, "a fault for racecheck"', page)

    def test_variants_run_on_the_shapes_that_they_are_made_for(self):
        self.ends(self.sanitize("true", "--out", self.path / "out", "--variants=on_small"))
        self.assertEqual({run["shape"] for run in self.record()["runs"]}, {"small"})
        for variants, says in (("nowhere", "none of these variants has a kernel"),
                               ("broken", "no variant 'broken'")):
            self.ends(self.sanitize("true", f"--variants={variants}"), 2, err=says)

    def test_without_planted_faults_nothing_runs(self):
        self.ends(self.sanitize("true", f"--faults={self.path / 'nowhere'}"), 3,
                  err="nowhere, which plants a fault")

    def page_of_out(self):
        self.ends(self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "report",
                            self.path / "out", "--out", self.path / "page"))
        return (self.path / "page" / "sanitizers.md").read_text(encoding="utf-8")

    def test_a_warning_that_leaves_the_exit_code_alone_is_a_finding(self):
        done = self.sanitize("echo '========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 "
                             "warning)'; exit 0", "--out", self.path / "out")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("racecheck on ragged, part 1: FOUND", done.stdout)
        self.assertEqual(done.stdout.count(": clean, "), 15)
        found = [run for run in self.record()["runs"] if run["findings"]]
        self.assertEqual([(run["tool"], run["shape"]) for run in found], [("racecheck", "ragged")])
        self.assertIn("1 hazard displayed", found[0]["findings"][1])
        again = self.sanitize("true", "--out", self.path / "out")
        self.assertEqual((again.returncode, again.stdout.count("with findings")), (1, 1))

    def test_so_is_an_exit_code_and_a_summary_that_is_not_there(self):
        self.assertEqual(self.sanitize("echo 'ERROR SUMMARY: 0 errors'; exit 9").returncode, 1)
        self.assertEqual(self.sanitize("exit 0").returncode, 1)

    def test_the_same_call_goes_on_after_a_kill(self):
        self.ends(self.sanitize("kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); exit",
                                "--out", self.path / "out"), -9)
        self.assertFalse((self.path / "out" / "sanitizers.json").exists())
        done = self.ends(self.sanitize("true", "--out", self.path / "out"))
        self.assertRegex(done.stdout, r"^[1-9]\d* of 16 processes were clean already")
        already = int(done.stdout.split()[0])
        self.assertEqual(already + done.stdout.count(": clean, 1 instances"), 16)
        self.assertEqual(len(self.record()["instances"]), 4)

    def test_what_another_call_began_is_refused(self):
        self.sanitize("kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); exit",
                      "--out", self.path / "out")
        self.ends(self.sanitize("true", "--out", self.path / "out", "--parts=3"), 2,
                  err="holds the beginning of another run")

        script(self.path / "other", PROGRAM.replace("code of", "other code of"))
        self.ends(self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                            self.path / "other", "--parts=2", "--jobs=2",
                            f"--faults={self.path / 'faults'}", "--out", self.path / "out"),
                  2, err="was another kernel in an earlier call")

    def test_what_an_earlier_record_found_clean_is_left_out(self):
        earlier = self.earlier("earlier", says="exit 9")
        self.ends(self.sanitize("true", "--out", self.path / "out", "--since", earlier))
        pairs = [(tool, shape) for tool in SANITIZERS.TOOLS for shape in ("small", "ragged")]
        clean = [pair for pair in pairs if pair != ("racecheck", "ragged")]
        self.assertEqual(self.known(), {(tool, shape): [f"code of {shape}-1", f"code of {shape}-2"]
                                        for tool, shape in clean})
        # Where the first part has nothing, the second is not started.
        self.assertEqual(len(self.calls().splitlines()), len(clean) + 2)
        record = self.record()
        self.assertEqual(record["since"], ["earlier"])
        self.assertEqual(record["instances"], {"ragged-1": "code of ragged-1",
                                               "ragged-2": "code of ragged-2"})
        self.assertEqual([((run["tool"], run["shape"]), run["processes"], run["instances"])
                          for run in record["runs"]],
                         [(pair, 1, []) if pair in clean else (pair, 2, [0, 1]) for pair in pairs])

    def test_a_first_part_that_fails_says_nothing_of_the_second(self):
        earlier = self.earlier("earlier")
        self.ends(self.sanitize("exit 9", "--since", earlier), 1,
                  out=("racecheck on ragged, part 1: FOUND", "racecheck on ragged, part 2: clean"))

    def test_machine_code_that_no_record_ran_clean_runs(self):
        """What `tools` lacks is synccheck on `ragged`; in `shape` two have other machine code."""
        tools = self.earlier("tools", lambda record: record["runs"].pop())
        shape = self.earlier("shape", lambda record: record["instances"].update({
            "ragged-1": "old code", "small-2": "old code of another"}))
        self.ends(self.sanitize("true", "--out", self.path / "out", "--since", f"{shape},{tools}"))
        self.assertEqual(self.record()["since"], ["shape", "tools"])
        self.assertEqual(self.known()["synccheck", "ragged"], ["code of ragged-2", "old code"])
        self.assertEqual(self.known()["memcheck", "small"],
                         ["code of small-1", "code of small-2", "old code of another"])
        self.assertEqual(self.record()["instances"], {"ragged-1": "code of ragged-1"})
        self.assertEqual([(run["tool"], run["shape"]) for run in self.record()["runs"]
                          if run["instances"]], [("synccheck", "ragged")])

    def test_machine_code_with_a_name_that_no_record_ran_runs_again(self):
        tree = SANITIZERS.instances_of_tree("9.0")
        codes = list(tree.values())
        ran, other = [name for name, code in tree.items() if codes.count(code) == 1][:2]

        def rename(record):
            record["instances"] = {ran: tree[ran], "another name": tree[other], "no code": "",
                                   "gone": "code of nothing"}

        earlier = self.earlier("earlier", rename)
        done = self.ends(self.sanitize("true", "--since", earlier))
        # All that the program has is left, in both parts; the record's first two ran on `ragged`.
        self.assertEqual(done.stdout.count(": clean, 1 instances"), 16)
        self.assertEqual(self.known()["memcheck", "ragged"], [tree[ran]])
        self.assertEqual(self.known()["memcheck", "small"], ["code of nothing"])

    def test_a_record_of_another_gpu_or_version_is_no_earlier_one(self):
        for change, both in (
                (lambda record: record["gpu"].update(name="NVIDIA H100"),
                 ("NVIDIA H100", "NVIDIA H200")),
                (lambda record: record.update(compute_sanitizer="2024.1"), ("2024.1", "2025.3"))):
            earlier = self.earlier("of_" + both[0].replace(" ", "_"), change)
            done = self.sanitize("true", "--out", self.path / "out", "--since", earlier)
            self.assertEqual(done.returncode, 2, done.stdout)
            for name in both:
                self.assertIn(name, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertFalse((self.path / "calls").exists())

    def test_a_call_goes_on_with_the_same_earlier_records_alone(self):
        earlier = self.earlier("earlier", lambda record: record["runs"].clear())
        kill = "kill -KILL $(cut -d' ' -f4 /proc/$PPID/stat); exit"
        self.ends(self.sanitize(kill, "--out", self.path / "out", "--since", earlier), -9)
        for since in ([], ["--since", f"{earlier},{self.earlier('other')}"]):
            self.ends(self.sanitize("true", "--out", self.path / "out", *since), 2,
                      err="holds the beginning of another run")
        self.ends(self.sanitize("true", "--out", self.path / "out", "--since", earlier))
        self.assertEqual(self.record()["since"], ["earlier"])

    def test_wrong_use_has_one_line(self):
        for arguments, said in ((["--tools=racechek"], "no tool 'racechek'"),
                                (["--shapes=smal"], "no shape 'smal'"),
                                (["--since=nowhere"], "nowhere/sanitizers.json can't be read")):
            done = self.ends(self.sanitize("true", *arguments), 2, err=said)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = self.ends(self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "run",
                                   self.path / "not_built"), 2, err="Build it")
        self.assertEqual(done.stderr.count("\n"), 1)

    def page(self, *changes):
        """The page of records r1, r2, … that are each clean of all instances, but for its change.

        Tells what was wrong where there is none.
        """
        tree = SANITIZERS.instances_of_tree("9.0")
        folders = []
        for i, change in enumerate(changes, 1):
            record = {"run_id": f"r{i}", "created_utc": f"day {i}", "compute_sanitizer": "2025.3",
                      "instances": dict(tree),
                      "gpu": {"name": "NVIDIA H200", "compute_capability": "9.0",
                              "driver": f"580.{i}"},
                      "runs": [{"tool": tool, "shape": "small", "instances": [*range(len(tree))],
                                "findings": []} for tool in SANITIZERS.TOOLS]}
            change(record)
            folders.append(self.path / f"record{i}")
            folders[-1].mkdir(exist_ok=True)
            (folders[-1] / "sanitizers.json").write_text(json.dumps(record), encoding="utf-8")
        pages = []
        for order in (folders, [*folders[::-1], folders[0]]):
            done = self.call(sys.executable, ROOT / "tests" / "sanitizers.py", "report", *order,
                             "--out", self.path)
            if done.returncode != 0:
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                return done.stderr
            pages.append((self.path / "sanitizers.md").read_text(encoding="utf-8"))
        self.assertEqual(*pages)
        return pages[0]

    def assert_covered(self, page, lacking):
        every = len(SANITIZERS.instances_of_tree("9.0"))
        self.assertEqual(page.split("**")[1].split(" instances")[0],
                         f"{every - lacking} of the {every}")

    def test_the_page_names_what_is_not_covered(self):
        every = len(SANITIZERS.instances_of_tree("9.0"))
        whole = self.page(lambda record: None)
        self.assert_covered(whole, 0)
        self.assertNotIn("## Never run", whole)
        self.assertIn(f"\n| `small` | {every} | {every} | {every} | {every} |\n", whole)

        def forget(record):
            record["instances"]["gone"] = record["instances"].pop("kv_tiling")

        page = self.page(forget)
        self.assert_covered(page, 1)
        self.assertIn("## Never run\n\n- `kv_tiling`\n", page)
        self.assertIn("## Run, and no longer in this tree\n\n- `gone`\n", page)

        page = self.page(lambda record: record["instances"].update(kv_tiling="other"))
        self.assert_covered(page, 1)
        self.assertIn("## Machine code changed since\n\n- `kv_tiling`\n", page)

        page = self.page(lambda record: record["runs"][1]["findings"].append("a hazard"))
        self.assert_covered(page, every)
        self.assertIn("racecheck on `small` in `r1`:\n\n```\na hazard\n```", page)
        self.assertIn(f"\n| `small` | {every} | **{every}** | {every} | {every} |\n", page)

        def of_code_that_is_gone(record):
            record["instances"] = dict.fromkeys(record["instances"], "old")
            record["runs"][1]["findings"].append("a hazard")

        self.assertNotIn("a hazard", self.page(lambda record: None, of_code_that_is_gone))

        page = self.page(lambda record: record["runs"].pop())
        self.assert_covered(page, every)
        self.assertEqual(page.split("\n## Not clean under every tool\n")[1].count("\n- `"), every)
        self.assertNotIn("\n## Machine code changed", page)

    def test_a_page_of_several_records_is_of_what_any_of_them_ran_clean(self):
        names = list(SANITIZERS.instances_of_tree("9.0"))
        every = len(names)
        at = names.index("kv_tiling")

        def old_code(record):
            record["instances"]["kv_tiling"] = "old"

        def that_alone(record):
            record["since"] = ["r1"]
            for run in record["runs"]:
                run["instances"] = [at, at]

        page = self.page(old_code, that_alone)
        self.assert_covered(page, 0)
        self.assertNotIn("\n## Machine code changed", page)
        self.assertIn(f"0 of 4 pairs of a tool and a shape have findings, in {4 * every + 8} "
                      f"checks, of which {4 * every + 4} ran that code.**", page)
        # Of a machine code that ran twice there is one, and of one that is gone none.
        self.assertIn("\n| `small` |" + f" {every} |" * 4 + "\n", page)
        self.assertIn("\n| `small` |" + f" {every - 1} |" * 4 + "\n", self.page(old_code))
        newest_first = (
            "- `r2` (day 2): NVIDIA H200, driver 580.2, compute-sanitizer 2025.3, 8 checks, "
            "without instances that `r1` had found clean\n"
            "- `r1` (day 1): NVIDIA H200, driver 580.1, compute-sanitizer 2025.3, "
            f"{4 * every} checks, nothing left out\n")
        self.assertIn(newest_first, page)

        page = self.page(lambda record: record["runs"].pop(), lambda record: record.update(
            runs=record["runs"][3:]))
        self.assert_covered(page, 0)
        page = self.page(lambda record: record["runs"].pop(), lambda record: record.update(
            runs=record["runs"][2:3]))
        self.assert_covered(page, every)

        def gone(record):
            record["instances"] = {f"{name} of old": code
                                   for name, code in record["instances"].items()}
            for run in record["runs"]:
                run["shape"] = "withdrawn"

        page = self.page(gone, lambda record: None)
        self.assert_covered(page, 0)
        self.assertNotIn("| `withdrawn` |", page)
        self.assertIn("\nNothing of this tree's code ran at `withdrawn`.\n", page)
        self.assertIn("0 of 4 pairs of a tool and a shape", page)
        self.assertIn("## Run, and no longer in this tree\n\n- `", page)
        self.assertEqual(page.count(" of old`\n"), every)

    def test_a_finding_of_any_record_is_shown_and_covers_nothing(self):
        every = len(SANITIZERS.instances_of_tree("9.0"))

        def find(record):
            record["runs"][1]["findings"].append("a hazard")

        page = self.page(find, lambda record: None)
        self.assert_covered(page, 0)
        self.assertIn("racecheck on `small` in `r1`:\n\n```\na hazard\n```", page)
        self.assertIn(f"\n| `small` | {every} | **{every}** | {every} | {every} |\n", page)
        self.assertIn("1 of 4 pairs of a tool and a shape have findings", page)
        page = self.page(find, lambda record: record["runs"].pop(1))
        self.assert_covered(page, every)

    def test_records_of_two_gpus_or_versions_make_no_page(self):
        for change, both in (
                (lambda record: record["gpu"].update(name="NVIDIA H100"),
                 ("NVIDIA H100", "NVIDIA H200")),
                (lambda record: record.update(compute_sanitizer="2024.1"), ("2024.1", "2025.3"))):
            said = self.page(change, lambda record: None)
            for name in both:
                self.assertIn(name, said)
            self.assertIn("one page can't speak of both", said)

    def test_runs_whose_tools_found_the_same_planted_faults_share_a_line(self):
        def plant(said):
            return lambda record: record.update(planted={"memcheck": said})

        page = self.page(plant("a read"), plant("a read"), plant("a write"))
        self.assertIn("Before `r2` and `r1` each tool had to find a fault that was planted for it: "
                      "memcheck, \"a read\".", page)
        self.assertIn("Before `r3` each tool had to find a fault that was planted for it: "
                      "memcheck, \"a write\".", page)

    def test_the_page_says_which_shapes_give_a_persistent_kernel_several_tiles(self):
        none = "a persistent kernel's second tile, and what it then uses again, ran under no tool"

        def many_heads(record):
            record["runs"].append(record["runs"][0] | {"shape": "many_heads_d128"})

        def nothing_ran(record):
            record["runs"].append(record["runs"][0] | {"shape": "many_heads", "instances": []})

        page = self.page(many_heads, nothing_ran)
        self.assertNotIn(none, page)
        self.assertIn("but for `many_heads_d128`: there, a persistent kernel has several tiles",
                      page)
        without = "instances with the dynamic schedule, which had one tile a CTA at most"
        self.assertNotIn(without, page)

        def many_heads_of_others(record):
            many_heads(record)
            record["runs"][-1]["instances"] = [
                at for at, name in enumerate(record["instances"]) if "dynamic" not in name]

        self.assertIn(without, self.page(many_heads_of_others))
        self.assertIn(none, self.page(nothing_ran, lambda record: None))

    def test_a_damaged_record_has_one_line(self):
        for change in (lambda record: record.pop("runs"),
                       lambda record: record["runs"][0]["instances"].append(10**6),
                       lambda record: record["runs"][0].update(tool="racechek"),
                       lambda record: record.update(gpu="NVIDIA H200")):
            self.assertIn("sanitizers.json can't be read: ", self.page(change))

    def test_the_committed_page_is_of_all_records_the_newest_first(self):
        regenerate = load(ROOT / "reports" / "regenerate.py")

        def record(run_id, *since):
            folder = self.path / "h200" / f"sanitizers-of-{run_id}"
            folder.mkdir(parents=True)
            content = {"run_id": run_id} | ({"since": since} if since else {})
            (folder / "sanitizers.json").write_text(json.dumps(content), encoding="utf-8")
            return folder

        first = record("day1")
        second = record("day2", "day1")
        third = record("day3", "day1")
        fourth = record("day4", "day1")
        last = record("day5", "day4", "day3")
        calls = []

        def call(*command, kept):
            self.assertEqual(kept, self.path / "kept")
            calls.append(command)
            (command[-1] / "sanitizers.md").touch()

        with mock.patch.multiple(regenerate, DATA=self.path, call=call,
                                 of_whole_kernels=lambda program: set()), \
                mock.patch.multiple(regenerate.verdict_figures, judge=mock.DEFAULT,
                                    left_out=mock.DEFAULT, today=lambda _: "", coverage=lambda _: ""):
            made = regenerate.regenerate("program", self.path / "made", self.path / "kept")
        self.assertEqual(made, {pathlib.Path("reports/h200/sanitizers.md"),
                                pathlib.Path("reports/decisions/0002-verdict-intervals.md"),
                                pathlib.Path("reports/decisions/0036-boards-of-a-kind.md"),
                                pathlib.Path("reports/decisions/0043-claims-and-pages.md")})
        self.assertEqual([command[3:-2] for command in calls],
                         [("report", last, fourth, third, second, first)])

        newer = record("day6")
        (newer / "sanitizers.json").write_text(
            json.dumps({"run_id": "day6", "compute_sanitizer": "2099"}), encoding="utf-8")
        with mock.patch.multiple(regenerate, DATA=self.path):
            self.assertEqual(regenerate.sanitizers(), {"h200": [newer]})

        record("day7", "day0")
        with (mock.patch.multiple(regenerate, DATA=self.path),
              self.assertRaisesRegex(regenerate.StepFailed, "what day0 found clean")):
            regenerate.sanitizers()
