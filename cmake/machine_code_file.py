#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds kernels/sdpa/machine_code.json to a build, or writes it from one.

The file says what this tree's instances compile to: the hash of each one's
machine code, as codegen.json has it, for the architectures that records are
made on, and the nvcc that it speaks of. Reports hold the hashes of a record's
kernels against it, to tell whether the record is older than the kernels.

  cmake/machine_code_file.py [--build build]           fails where a build differs
  cmake/machine_code_file.py [--build build] --write   after a build: renews the file

Exit codes: 0 the file is the build's, or is written; 1 it is not, and which
instances differ; 2 the build can't be read, or is not finished; 77 the build is
of another compiler, type or architecture, and says nothing of the file.
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILE = ROOT / "kernels" / "sdpa" / "machine_code.json"
SCHEMA_VERSION = 1
ARCHS = ("sm_90", "sm_90a")  # of the GPUs under reports/data

FAILED, UNREADABLE, SKIPPED = 1, 2, 77


def instances_of_tree(compute_capability):
    """{instance: hash} of what this tree compiles for such a GPU, as the file says."""
    archs = json.loads(FILE.read_text(encoding="utf-8"))["archs"]
    arch = "sm_" + compute_capability.replace(".", "")
    return archs.get(arch + "a", {}) | archs.get(arch, {})


class BuildError(Exception):
    """The build can't be read; the text says why and what to do."""


class Build:
    """What a build folder says of its compiler and instances."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        try:
            cache = dict(re.findall(r"^(\w+):\w+=(.*)$",
                                    (folder / "CMakeCache.txt").read_text(encoding="utf-8"), re.M))
            compiler = "".join(path.read_text(encoding="utf-8") for path in
                               sorted(folder.glob("CMakeFiles/*/CMakeCUDACompiler.cmake")))
            codegen = folder / "codegen" / "codegen.json"
            rows = json.loads(codegen.read_text(encoding="utf-8"))["instances"]
            listed = json.loads((folder / "generated" / "instances" / "instances.json").read_text(
                encoding="utf-8"))["instances"]
            self.hashes = {arch: {row["variant"]: row["code_sha256"] for row in rows
                                  if row["arch"] == arch} for arch in ARCHS}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BuildError(f"{folder} is no finished build with CUDA: {error!r}") from error
        version = re.search(r'CMAKE_CUDA_COMPILER_VERSION "([^"]+)"', compiler)
        if not version:
            raise BuildError(f"{folder} doesn't name its nvcc; configure it with CUDA")
        self.nvcc = version.group(1)
        self.build_type = cache.get("CMAKE_BUILD_TYPE", "")
        self.has_90 = bool(re.search(r"\b90", cache.get("WARPLEDGER_CUDA_ARCHITECTURES", "")))
        self.is_partial = bool(cache.get("WARPLEDGER_DESIGNS"))
        self.has_extra_designs = bool(cache.get("WARPLEDGER_EXTRA_DESIGNS"))
        if {row["variant"] for row in rows} != {row["variant"] for row in listed}:
            raise BuildError(f"{codegen} is of other instances than the configured ones; build")
        logs = folder.glob("generated/instances/*.keep/ptxas.log")
        if any(log.stat().st_mtime > codegen.stat().st_mtime for log in logs):
            raise BuildError(f"{codegen} is older than the instances; finish the build")


def why_not_comparable(nvcc, build):
    """Why a build says nothing of a file that speaks of `nvcc`; "" if it does."""
    if build.nvcc != nvcc:
        return f"the file speaks of nvcc {nvcc}, and this build is of {build.nvcc}"
    if build.build_type != "Release":
        return f"the file speaks of Release, and this build is {build.build_type or 'of no type'}"
    if not build.has_90:
        return "this build has no sm_90"
    return ""


def differences(committed, built, more_is_fine=False, fewer_is_fine=False):
    """What sets the built hashes {arch: {instance: hash}} apart, a sentence per instance.

    `more_is_fine`: a build may hold instances that the file does not; `fewer_is_fine`: lack some.
    """
    found = []
    for arch in sorted(set(committed) | set(built)):
        old, new = committed.get(arch, {}), built.get(arch, {})
        for name in sorted(set(old) | set(new)):
            if name not in new:
                if not fewer_is_fine:
                    found.append(f"{name} on {arch}: in the file, but not built")
            elif name not in old:
                if not more_is_fine:
                    found.append(f"{name} on {arch}: built, but not in the file")
            elif old[name] != new[name]:
                found.append(f"{name} on {arch}: other machine code than in the file")
    return found


def text_of(nvcc, hashes):
    """The file: instances sorted, each on a line of its own."""
    archs = {arch: instances for arch, instances in hashes.items() if instances}
    return json.dumps({"schema_version": SCHEMA_VERSION, "nvcc": nvcc,
                       "archs": {arch: dict(sorted(archs[arch].items()))
                                 for arch in sorted(archs)}}, indent=1) + "\n"


def check(path, build):
    """Prints what differs; returns the exit code."""
    try:
        committed = json.loads(path.read_text(encoding="utf-8"))
        nvcc, hashes = committed["nvcc"], committed["archs"]
        if not all(isinstance(of, dict) for of in [hashes, *hashes.values()]):
            raise ValueError("archs must be an object of objects")
        if not nvcc.isprintable() or len(nvcc) > 100:
            raise ValueError("nvcc is no version")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        print(f"{path} can't be read: {error!r:.200}. Write it: cmake/machine_code_file.py --write")
        return FAILED
    if reason := why_not_comparable(nvcc, build):
        print(f"skipped: {reason}")
        return SKIPPED
    found = differences(hashes, build.hashes, build.has_extra_designs, build.is_partial)
    for sentence in found:
        print(f"{sentence:.200}")
    if found:
        print(f"{len(found)} instances differ from {path.name}. If that is meant, renew it with "
              "cmake/machine_code_file.py --write, then the pages with reports/regenerate.py.")
        return FAILED
    compared = sum(len(set(hashes.get(arch, {})) & set(built))
                   for arch, built in build.hashes.items())
    print(f"{compared} instances as in {path.name}")
    return 0


def write(path, build):
    """Writes the file from a build that speaks of it; returns the exit code."""
    # Whatever compiler this build has is the one that the file speaks of from now on.
    reason = why_not_comparable(build.nvcc, build)
    if build.has_extra_designs:
        reason = reason or "this build holds instances of designs of one's own"
    if build.is_partial:
        reason = reason or "this build holds the instances of some designs alone"
    if reason:
        print(f"not written: {reason}")
        return UNREADABLE
    path.write_text(text_of(build.nvcc, build.hashes), encoding="utf-8")
    print(f"{path}: {sum(len(instances) for instances in build.hashes.values())} instances")
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="a finished build with CUDA (default: build)")
    parser.add_argument("--file", type=pathlib.Path, default=FILE)
    parser.add_argument("--write", action="store_true", help="renew the file from the build")
    options = parser.parse_args(argv)
    try:
        build = Build(options.build)
    except BuildError as error:
        print(f"machine_code_file.py: {error}", file=sys.stderr)
        return UNREADABLE
    return write(options.file, build) if options.write else check(options.file, build)


if __name__ == "__main__":
    sys.exit(main())
