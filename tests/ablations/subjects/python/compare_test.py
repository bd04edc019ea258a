# SPDX-License-Identifier: Apache-2.0
"""compare() from one end to the other, on the CPU."""

import importlib.util
import signal
import subprocess
import sys
import time
import unittest

from fixture import ROOT, run
from python_fixture import HEAD, PythonTest

BROKEN = {"wrong": "output 0 is wrong", "not_a_number": "output 0 has NaN",
          "transposed": "output 0 has the shape (1, 64), the reference's (64,)",
          "raises": "ValueError: no kernel for this", "quits": "SystemExit: 3", "in_place": "it wrote into its inputs"}


class Compare(PythonTest):
    def test_each_callable_gets_its_verdict_and_a_broken_one_stops_nobody(self):
        done = self.python(f"""
names = ["summed", "sooner", "later", *{list(BROKEN)}]
result = wl.compare({{name: globals()[name] for name in names}}, inputs=make_inputs, problems=PROBLEMS,
                    reference=lambda x: x.sum(axis=1), record="record", **SHORT)
print(result)
print({{each.name: each.verdict for each in result.verdicts}})
print({{each.name: each.reason for each in result.verdicts if each.verdict == "BROKEN"}})
print(result.report("pages").read_text())
""")
        verdicts = {"sooner": "ADOPT", "later": "REGRESSION", **dict.fromkeys(BROKEN, "BROKEN")}
        self.assertIn(str(verdicts), done.stdout)
        for reason in BROKEN.values():
            self.assertIn(reason, done.stdout)
        self.assertIn("Timed: summed, sooner, later, control:aa by call: a Python function on the CPU",
                      done.stdout)
        self.assertIn("**REGRESSION**", done.stdout)  # of the page
        self.assertEqual((done.stdout + done.stderr).count("what a program prints"), 1)
        run, lines = self.record()
        self.assertEqual(run["subject"], "python")
        self.assertEqual(run["gpu"]["name"], "CPU")
        self.assertIn("numpy", run["definition"]["versions"])
        self.assertEqual({(line["arm"], line["kind"]) for line in lines["broken"]},
                         {("one_on:raises", "error"), ("one_on:quits", "error")})
        # Only what is right is timed.
        self.assertEqual({line["arm"] for line in lines["samples"]},
                         {"summed", "one_on:sooner", "one_on:later", "control:aa", "floor:empty_kernel"})
        self.assertEqual(len({line["process"] for line in lines["samples"]}), 3)
        self.assertIn("timed_graph", {line["inputs"] for line in lines["correctness"]})

    def test_readmes_lines_run_as_they_stand(self):
        script = (ROOT / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
        self.assertRegex(self.python(script, head="").stdout, r"(?m)^products +n=65536 +\d+\.\d+ .*(ADOPT|REAL|NEUTRAL|REGR|INCON)")
        self.assertTrue((self.path / "out/one_on.md").exists())

    def test_a_callable_that_hangs_is_broken(self):
        done = self.python("""
def hangs(x):
    while True:
        time.sleep(1)

result = wl.compare({"summed": summed, "hangs": hangs}, make_inputs, PROBLEMS, lambda x: x.sum(axis=1),
                    arm_limit_s=5, **SHORT)
print([each.reason for each in result.verdicts])
""")
        self.assertIn("no_answer: no answer within 5 s", done.stdout)

    def test_a_run_that_was_killed_goes_on(self):
        script = """
result = wl.compare({"summed": summed, "sooner": sooner}, make_inputs, PROBLEMS, lambda x: x.sum(axis=1),
                    record="record", **SHORT | {"blocks": 8})
print(result.verdicts[0].verdict)
"""
        self.write("program.py", HEAD + script)
        samples = self.path / "record/samples.jsonl"
        run = subprocess.Popen([sys.executable, "program.py"], cwd=self.path, start_new_session=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=self.environment({"PATH": "/usr/bin:/bin"}))
        while run.poll() is None and not (samples.is_file() and samples.stat().st_size):
            time.sleep(0.01)
        subprocess.run(["kill", "-KILL", "--", f"-{run.pid}"], check=True)
        self.assertEqual(run.wait(), -signal.SIGKILL)
        before = samples.read_bytes().rpartition(b"\n")[0]
        self.assertIn("ADOPT", self.python(script).stdout)
        self.assertTrue(samples.read_bytes().startswith(before))
        self.assertEqual(len(self.record()[1]["samples"]), 3 * 8 * 4)
        self.assertGreater(3 * 8 * 4, before.count(b"\n"))

    def test_a_program_may_compare_twice(self):
        done = self.python("""
for names in ("summed", "sooner"), ("sooner", "summed"):
    result = wl.compare({name: globals()[name] for name in names}, make_inputs, PROBLEMS,
                        lambda x: x.sum(axis=1), **SHORT)
    print(names[1], result.verdicts[0].verdict)
""")
        self.assertIn("sooner ADOPT\n", done.stdout)
        self.assertIn("summed REGRESSION\n", done.stdout)

    def test_changed_sources_are_another_record(self):
        script = """
wl.compare({"summed": summed, "sooner": sooner}, make_inputs, PROBLEMS, lambda x: x.sum(axis=1),
           record="record", **SHORT)
"""
        self.python(script)
        self.write("program.py", HEAD.replace("spend(0.001)", "spend(0.002)") + script)
        done = self.call(sys.executable, "program.py", **self.environment({}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("definition", done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "no JAX")
    def test_calls_of_jax_are_waited_for(self):
        script = """
import jax, jax.numpy as jnp
inputs = lambda seed, rows, cols: jnp.asarray(make_inputs(seed, rows, cols))
def base(x):
    spend(0.004)
    return jnp.sum(x, axis=1)
def candidate(x):
    spend(0.001)
    return jnp.sum(x, axis=1)
def wrong(x):
    return jnp.sum(x[:, 1:], axis=1)
result = wl.compare({"base": base, "candidate": candidate, "wrong": wrong}, inputs, PROBLEMS, REFERENCE, rtol=1e-5,
                    record="record", **SHORT)
print([each.verdict for each in result.verdicts])
"""
        self.assertIn("['ADOPT', 'BROKEN']", self.python(script.replace("REFERENCE", "lambda x: x.sum(axis=1)")).stdout)
        self.assertEqual(self.record()[1]["calls"][0]["lines"], ["by call", "JAX launches on streams of its own"])
        self.write("program.py", HEAD + script.replace("REFERENCE", "lambda x: jnp.sum(x, axis=1)")
                   .replace('"record"', '"other"'))
        done = self.call(sys.executable, "program.py", **self.environment({}))
        self.assertIn("the reference computes in float32", done.stderr)

    def test_mistakes_are_told_before_anything_is_measured(self):
        for call, told in (
                ("{'a': summed, 'b': sooner}, lambda seed, rows, cols: np.ones((rows, cols)), PROBLEMS, summed",
                 "that differs from seed to seed"),
                ("{'a': summed, 'b': sooner}, make_inputs, [], summed", "problems: there must be one or more"),
                ("{'a': summed, 'b': sooner}, make_inputs, PROBLEMS * 2, summed",
                 "problems: rows=64:cols=32 is there twice"),
                ("{'a': summed, 'b': sooner}, lambda seed, rows, name: make_inputs(seed, rows, 8), "
                 "[{'rows': 8, 'name': 'x'}], summed",
                 "problem rows=8:name=x: no parameter can be called name, "),
                ("{'a': summed}, make_inputs, PROBLEMS, summed", "callables: there must be two or more, the base first"),
                ("{'a': summed, 'b c': summed}, make_inputs, PROBLEMS, summed", "callables[1].name"),
                ("{'a': summed, 'b': sooner}, make_inputs, PROBLEMS, summed, launches={'c': 'x'}",
                 "there is no callable 'c'")):
            with self.subTest(told=told):
                self.write("program.py", f"{HEAD}\nwl.compare({call}, record='record')\n")
                done = self.call(sys.executable, "program.py", **self.environment({}))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(told, done.stderr)
                self.assertFalse((self.path / "record").exists())

    def test_a_prompt_is_no_file(self):
        done = run(sys.executable, "-", input=f"{HEAD}\nwl.compare({{}}, make_inputs, [], summed)",
                   env=self.environment({"PATH": "/usr/bin:/bin"}))
        self.assertIn("it must stand in a file", done.stderr)
