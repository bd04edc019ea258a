#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a bundle from outside, by a program that is none of its files.

    bundle_verify.py --program=bin/warpledger --plots=plots --bundle=NAME.tar.gz|DIR
                     [--manifest_sha256=HASH]

For `warpledger verify`. What replay.py in the bundle checks, this checks too, and nothing of the
bundle runs: neither that script nor its program nor its plots. A tarball is read into a scratch
folder; a member that is neither a file nor a folder below NAME/, or that comes twice, is named.
Exit code: 0 all the same, 1 something differs (each thing is named), 2 what is named is no bundle.
"""

import argparse
import pathlib
import shutil
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import bundle_replay  # noqa: E402

LARGEST = 4 << 30  # bytes of all members


def unpacked(tarball, scratch):
    """The bundle's folder; ValueError where a member could lead elsewhere."""
    names = set()
    size = 0
    with tarfile.open(tarball) as tar:
        for member in tar:
            parts = pathlib.PurePosixPath(member.name).parts
            size += member.size
            if (not (member.isfile() or member.isdir()) or len(parts) < 2 or parts[0] == "/"
                    or ".." in parts or member.name in names or size > LARGEST):
                raise ValueError(f"unknown: {member.name!r:.200}")
            names.add(member.name)
            to = scratch.joinpath(*parts)
            if member.isdir():
                to.mkdir(parents=True, exist_ok=True)
                continue
            to.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as content, open(to, "wb") as file:
                shutil.copyfileobj(content, file)
    folders = {pathlib.PurePosixPath(name).parts[0] for name in names}
    if len(folders) != 1:
        raise ValueError(f"a bundle has one folder, this has {sorted(folders)!r:.200}")
    return scratch / folders.pop()


def verify(bundle, scratch, arguments):
    # As in a bundle: pages speak of what lies beside a program.
    program = scratch / "own" / "bin" / "warpledger"
    program.parent.mkdir(parents=True)
    shutil.copy(arguments.program, program)
    plots = scratch / "own" / "share" / "warpledger" / "plots"
    shutil.copytree(arguments.plots, plots, ignore=shutil.ignore_patterns("__pycache__"))
    code = bundle_replay.check(bundle, arguments.manifest_sha256, "", program, plots)
    for inside, ours in (("bin/warpledger", arguments.program),
                         ("replay.py", bundle_replay.__file__)):
        if (bundle / inside).is_file() and (bundle_replay.sha256(bundle / inside)
                                            != bundle_replay.sha256(ours)):
            print(f"Not run, and not the one that checks: {inside}")
    return code


def main(argv=None):
    bundle_replay.stop_once()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag, meaning in (("program", "the warpledger that judges"), ("plots", "its plots"),
                          ("bundle", "a tarball, or the folder that came out of it")):
        parser.add_argument(f"--{flag}", required=True, help=meaning)
    parser.add_argument("--manifest_sha256", default="", help="what `warpledger bundle` printed")
    arguments = parser.parse_args(argv)
    bundle = pathlib.Path(arguments.bundle).resolve()
    try:
        with bundle_replay.scratch_folder() as scratch:
            folder = bundle if bundle.is_dir() else unpacked(bundle, scratch / "bundle")
            return verify(folder, scratch, arguments)
    except ValueError as error:
        print(error)
        return 1
    except (OSError, EOFError, tarfile.TarError) as error:
        print(f"verify: {arguments.bundle}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
