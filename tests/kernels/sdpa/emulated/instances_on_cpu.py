# SPDX-License-Identifier: Apache-2.0
"""Instances of the build, compiled for the CPU (tests/emulation) and run there, with as many at a time as there
are CPUs."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess

LIMIT_S = 120  # of a run, which takes seconds; one with a bug may hang


def options(description):
    """Of a test: emulated_run, the list of instances and the compiler with its flags."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--run", required=True)
    parser.add_argument("--instances", required=True, type=pathlib.Path)
    parser.add_argument("compiler", nargs="+")
    return parser.parse_args()


class OnCpu:
    def __init__(self, given, folder):
        self.run = given.run
        self.compiler = given.compiler
        self.folder = pathlib.Path(folder)
        self.instances = {each["variant"]: each
                          for each in json.loads(given.instances.read_text(encoding="utf-8"))["instances"]}

    def compiled(self, variant, name, *first):
        """The library of an instance. Headers are looked for in the folders `first` before others."""
        library = self.folder / f"{name}.so"
        program, *flags = self.compiler
        subprocess.run([program, *(f"-I{folder}" for folder in first), *flags, "-x", "c++",
                        self.instances[variant]["source"], "-o", library], check=True)
        return library

    def ran(self, library, problem, kind="normal"):
        """(exit code, what was printed): those of emulated_run, and below 0 a signal."""
        try:
            done = subprocess.run([self.run, library, problem, kind], capture_output=True, text=True,
                                  timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return -1, f"it hung for {LIMIT_S} s"
        return done.returncode, done.stdout + done.stderr


def map_all(function, items):
    """[function(item)] of all."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return list(workers.map(function, items))
