#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs records with all that it takes to judge them again into one tarball.

    bundle.py --program=bin/warpledger --plots=plots --record=DIR[,DIR..] --kind=KIND[,KIND..]
              --out=NAME.tar.gz

For `warpledger bundle`. The tarball holds the raw records (data/), what they give (expected/), the
program, its plots and replay.py, which checks and computes everything again; manifest.json names
every file with its SHA-256. The same inputs give the same bytes: files are sorted, times and
owners are those of nobody.

Records, folders or packs: of `warpledger run` (judged and reported), of `warpledger profile` (reported,
with what lies beside it in the bundle), and of the microbenchmarks (judging quotes them, and they
are the ceilings of profiles). The program adds those that the records' judging quotes.
Errors: exit status 1 and one line; nothing is written by halves.
"""

import argparse
import gzip
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile

# The tree's root, as in an install tree, comes second.
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[n]) for n in (0, 3)]
sys.dont_write_bytecode = True

import bundle_replay  # noqa: E402
from plots import whole_file  # noqa: E402

SCHEMA_VERSION = 1
LEFT_OVER = re.compile(r"\.tmp\.\d+\.\d+$")  # by a program that was killed while it wrote


class BundleError(Exception):
    """What went wrong, why, and what to do."""


def name_of(record):
    return record.name.removesuffix(".tar.zst")


def copy_records(records, data):
    data.mkdir(parents=True)
    names = [name_of(record) for record in records]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BundleError(f"two records are called {twice.pop()}; a bundle holds each name once")
    for record in records:
        if record.is_file():
            shutil.copyfile(record, data / record.name)
        for path in sorted(record.rglob("*")):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise BundleError(f"{path}: no regular file, and a bundle holds nothing else; "
                                  "remove it, or copy there what it points to")
            if path.is_file() and not path.name.startswith(".") and not LEFT_OVER.search(path.name):
                target = data / record.name / path.relative_to(record)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def write_tarball(folder, name, out):
    """The folder under `name`/, sorted, without times and owners."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            info = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            if path.is_dir():
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(info)
                continue
            content = path.read_bytes()
            info.size = len(content)
            info.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            tar.addfile(info, io.BytesIO(content))
    packed = io.BytesIO()
    # Level 6 takes 3.1 s for a program with all kernels, level 4 1.1 s and 7% more bytes.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0,
                       compresslevel=4) as file:
        file.write(raw.getvalue())
    whole_file.replace(out, packed.getvalue())


def build(arguments):
    out = pathlib.Path(arguments.out).resolve()
    name = out.name
    for suffix in (".gz", ".tgz", ".tar"):
        name = name.removesuffix(suffix)
    records = [pathlib.Path(record).resolve() for record in arguments.record.split(",") if record]
    if not records or not name or not out.name.endswith((".tar.gz", ".tgz")):
        raise BundleError("give --record=DIR[,DIR..] and --out=NAME.tar.gz")
    commands = [{"run": name_of(record), "calls": bundle_replay.calls_of(name_of(record))[kind]}
                for record, kind in zip(records, arguments.kind.split(","), strict=True)]
    commands = [command for command in commands if command["calls"]]
    with bundle_replay.scratch_folder() as scratch:
        folder = scratch / name
        copy_records(records, folder / "data")
        (folder / "bin").mkdir()
        shutil.copy(arguments.program, folder / "bin" / "warpledger")
        plots = folder / "share" / "warpledger" / "plots"
        plots.mkdir(parents=True)
        for path in sorted(pathlib.Path(arguments.plots).glob("*.py")):
            shutil.copyfile(path, plots / path.name)
        shutil.copyfile(bundle_replay.__file__, folder / "replay.py")
        version = bundle_replay.matplotlib_version()
        if not version:
            print(f"Pictures are left out: {sys.executable} has no matplotlib; --python names "
                  "another interpreter", file=sys.stderr)
        for command in commands:
            failed = bundle_replay.run_calls(folder, command, folder / "expected" / command["run"],
                                             bool(version))
            if failed:
                raise BundleError(failed[0])
        said = subprocess.run([arguments.program, "--version"], capture_output=True, text=True,
                              check=True)
        manifest = {
            "schema_version": SCHEMA_VERSION, "name": name,
            "environment": {"program": said.stdout.strip(), "python": platform.python_version(),
                            "matplotlib": version, "machine": platform.machine(),
                            "system": platform.system(), "libc": " ".join(platform.libc_ver())},
            "check": "python3 replay.py", "commands": commands,
            "files": {path.relative_to(folder).as_posix():
                      {"sha256": bundle_replay.sha256(path), "bytes": path.stat().st_size}
                      for path in sorted(folder.rglob("*")) if path.is_file()}}
        manifest_file = folder / bundle_replay.MANIFEST
        manifest_file.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n",
                                 encoding="utf-8")
        out.parent.mkdir(parents=True, exist_ok=True)
        write_tarball(folder, name, out)
        print(f"Bundle: {arguments.out}, {len(manifest['files'])} files")
        print(f"SHA-256 of the tarball: {bundle_replay.sha256(out)}")
        print(f"SHA-256 of its manifest: {bundle_replay.sha256(manifest_file)}")
        print(f"Check it anywhere: tar xzf {out.name} && python3 {name}/replay.py")


def main(argv=None):
    bundle_replay.stop_once()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag, meaning in (("program", "the warpledger to pack"), ("plots", "its plots"),
                          ("record", "records, comma-separated"),
                          ("kind", "run, profile or micro, for each record"),
                          ("out", "the tarball")):
        parser.add_argument(f"--{flag}", required=True, help=meaning)
    try:
        build(parser.parse_args(argv))
    except (BundleError, OSError, subprocess.SubprocessError) as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
