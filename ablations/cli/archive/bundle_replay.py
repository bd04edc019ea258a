#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks this bundle and computes its verdicts, reports and pictures again.

    python3 replay.py [--manifest_sha256=HASH] [--keep=DIR]

Every file must be there with the bytes that manifest.json promises, and nothing else; then the
program of the bundle judges the records once more, and what comes out must equal what was bundled,
byte for byte; pictures must show the same. Needs Python 3.9 and nothing else; the pictures need
matplotlib of the version that the manifest names, and are said to be left out without it.

--manifest_sha256 is what `warpledger bundle` printed: with it a manifest that was changed, or a
bundle that was rebuilt around this script, is recognised too. Whoever rebuilds a bundle can change
this script as well: `warpledger verify` of another copy of the program trusts nothing in it. Exit code: 0 all the same, 1 something differs (every file is named), 2 wrong use.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MANIFEST = "manifest.json"
PICTURE = ".svg"
STOPS = (signal.SIGTERM, signal.SIGINT)
MOST_SECONDS_TO_END = 10  # of a child that was killed


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def stop_once():
    """TERM and INT end this program with all that it tidies up; a second signal, as when the program
    that called this one ends of the first, does not stop that."""
    def stop(number, _):
        for each in STOPS:
            signal.signal(each, signal.SIG_IGN)
        sys.exit(128 + number)
    for each in STOPS:
        signal.signal(each, stop)


@contextlib.contextmanager
def scratch_folder():
    """A folder that goes behind this, whenever TERM or INT comes (stop_once): in the middle of its
    removal, too."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    folder = pathlib.Path(tempfile.mkdtemp())
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        yield folder
    finally:
        try:
            remove(folder)
        except SystemExit:  # of a signal just then, behind which no other comes through
            remove(folder)
            raise


def remove(folder):
    """The folder and what is in it; what this started and killed may write there for a moment yet."""
    deadline = time.monotonic() + MOST_SECONDS_TO_END
    while folder.exists() and time.monotonic() < deadline:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():
            time.sleep(0.05)


def damaged_files(folder, manifest):
    """One line for each file that is not what the manifest promises."""
    complaints = []
    for name, promised in sorted(manifest["files"].items()):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            complaints.append(f"missing: {name}")
        elif path.stat().st_size != promised["bytes"] or sha256(path) != promised["sha256"]:
            complaints.append(f"changed: {name}")
    known = set(manifest["files"]) | {MANIFEST}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (path.is_symlink() or not path.is_dir()) and name not in known:
            complaints.append(f"unknown: {name}")
    return complaints


def calls_of(run):
    """What the program is asked to do with a record, by its kind; "{data}" and "{out}" stand for
    folders."""
    where = f"--record={{data}}/{run}"
    report = ["report", where, "--out={out}"]
    return {"run": [["judge", where, "--out={out}/summary.json"], report], "profile": [report],
            "micro": []}


def foreign_commands(commands):
    """One line for each command that no bundle is made with: its name could lead elsewhere."""
    return [f"changed: {MANIFEST}: a command on {command['run']!r}" for command in commands
            if pathlib.PurePath(command["run"]).name != command["run"] or command["run"] == ".."
            or command["calls"] not in calls_of(command["run"]).values()]


def matplotlib_version():
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as plots/render.py says
    try:
        import matplotlib
    except ImportError:
        return ""
    return matplotlib.__version__


def same(made, expected, plots):
    """Whether a picture shows the same; of other files, whether the bytes are the same."""
    if made.suffix != PICTURE:
        return made.read_bytes() == expected.read_bytes()
    # A folder of bytecode would be unknown in a bundle.
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(plots.parent))
    from plots import compare_svg
    return not compare_svg.compare(made, expected)


def run_calls(folder, command, target, with_plots, program=None):
    """Makes the results of one record in `target`; one line for each call that fails. By the
    bundle's own program, unless another is named."""
    complaints = []
    target.mkdir(parents=True, exist_ok=True)
    for arguments in command["calls"]:
        call = [str(program or folder / "bin" / "warpledger")]
        call += [argument.replace("{data}", str(folder / "data")).replace("{out}", str(target))
                 for argument in arguments]
        if arguments[0] == "report":
            call.append(f"--python={sys.executable}" if with_plots else "--noplots")
        done = subprocess.run(call, capture_output=True, text=True, check=False,
                              env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                                       TMPDIR=str(target.parent)))  # goes with it after a kill
        if done.returncode != 0:
            complaints.append(f"failed: {command['run']}: warpledger {arguments[0]}: "
                              f"{done.stderr.strip() or done.returncode}")
    return complaints


def replay(folder, manifest, out, with_plots, program=None, plots=None):
    """One line for each result that differs from the bundled one. `program` and `plots`: in place
    of the bundle's own."""
    complaints = []
    for command in manifest["commands"]:
        run = command["run"]
        target = out / run
        complaints += run_calls(folder, command, target, with_plots, program)
        expected = folder / "expected" / run
        wanted = {path.name for path in expected.iterdir()
                  if with_plots or path.suffix != PICTURE}
        made = {path.name for path in target.iterdir()}
        for name in sorted(wanted | made):
            if name not in made:
                complaints.append(f"not made: {run}/{name}")
            elif name not in wanted:
                complaints.append(f"not bundled: {run}/{name}")
            elif not same(target / name, expected / name,
                          plots or folder / "share" / "warpledger" / "plots"):
                complaints.append(f"differs: {run}/{name}")
    return complaints


def check(folder, manifest_sha256="", keep="", program=None, plots=None):
    """Prints what differs in a bundle, or what was found to be the same; returns an exit code."""
    manifest_file = folder / MANIFEST
    try:
        manifest = json.loads(manifest_file.read_text(encoding="utf-8"))
        files, commands, environment = (manifest[key]
                                        for key in ("files", "commands", "environment"))
        drawn_with = environment.get("matplotlib", "")
        complaints = foreign_commands(commands) or damaged_files(folder, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        print(f"changed: {MANIFEST}: {error!r:.200}")
        return 1
    if manifest_sha256 and sha256(manifest_file) != manifest_sha256:
        complaints = [f"changed: {MANIFEST}"]
    if complaints:
        print("\n".join(complaints))
        return 1
    with_plots = bool(drawn_with) and matplotlib_version() == drawn_with
    with scratch_folder() as scratch:
        out = pathlib.Path(keep or scratch).resolve()
        complaints = replay(folder, manifest, out, with_plots, program, plots)
    if complaints:
        print("\n".join(complaints))
        return 1
    print(f"{len(files)} files as promised; verdicts and reports of "
          f"{len(commands)} records come out the same, byte for byte"
          + (", and pictures show the same" if with_plots else
             f". Pictures left out: they need matplotlib {drawn_with or '(none was bundled)'}"))
    if not manifest_sha256:
        print("The manifest itself was not checked: give --manifest_sha256.")
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manifest_sha256", default="", help="what `warpledger bundle` printed")
    parser.add_argument("--keep", default="", help="folder for what is computed; default: none")
    arguments = parser.parse_args(argv)
    stop_once()
    return check(HERE, arguments.manifest_sha256, arguments.keep)


if __name__ == "__main__":
    sys.exit(main())
