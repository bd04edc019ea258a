#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes all that is committed under reports/ and in README.md from the records.

Of each GPU, design and cache mode the newest record under reports/data counts:
it is judged (its summary.json), and reported with pictures into reports/<gpu>.
So are the newest microbenchmarks, the newest profiles of each set of shapes, all
that the sanitizers said, the newest samples of steps, the newest study of data
types (of the CPU), a page of each study and one that ranks what they are about, the comparison of the two newest ladders, an index of questions, a page per
technique and one of standings from all of these designs, and the generated parts of README.md: the
newest ladder of the GPU with most designs, its standings and its techniques, and its studies. These last, and
reports/explorer.html, are of records with a warm L2 alone. The figures of two decisions are of all records, those of a third of the newest. And reports/data/summaries.sha256, the hash of every record's summary.json.
A file in reports/<gpu> that no record gives any more is deleted.
Records are folders or packs. A calibration's page pools and counts all that lie there.

Needs matplotlib; no GPU. report_fresh_test says what to commit after it: a picture only where it
shows something else, not where another CPU gave it other digits.
Exit codes: 0 done; 1 a step failed, and its output says why.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import io
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("reports/explorer", "reports", ".",
                                                  "ablations/cli/archive")]
import bundle_replay  # noqa: E402 (the path comes first)
import equal_errors  # noqa: E402 (the path comes first)
import explorer  # noqa: E402 (the path comes first)
import folklore  # noqa: E402 (the path comes first)
import record_files  # noqa: E402 (the path comes first)
import summaries  # noqa: E402
import verdict_figures  # noqa: E402
from plots import render, whole_file  # noqa: E402

DATA = ROOT / "reports" / "data"
_SCRATCH = pathlib.Path("reports/.regenerate")


class StepFailed(Exception):
    """A program that makes files failed; the text is what it printed."""


def read(record, file, **kinds):
    """The record's file, an object with such keys; StepFailed names the file and what is wrong."""
    content = record.json(file)
    for key, kind in kinds.items():
        if not isinstance(content, dict) or not isinstance(content.get(key), kind):
            raise StepFailed(f"{record.path / file} lacks \"{key}\", or it is not of type "
                             f"{kind.__name__}; no page can be made of this record")
    return content


def of_kind(kind):
    """Records of a kind that is called after its file; their names end in the time."""
    return record_files.records(DATA, f"{kind}.json", f"{kind}-")


def newest(kind):
    """{gpu slug: its newest record of the kind}"""
    return {record.path.parent.name: record for record in of_kind(kind)}


def sanitizers():
    """{gpu slug: records, the newest first}: each counts for the code that it ran. Those of
    another model of GPU or another compute-sanitizer than the newest's are left out."""
    found, of_gpu = {}, {}
    for record in reversed(of_kind("sanitizers")):
        of_gpu.setdefault(record.path.parent.name, {})[record.path] = read(
            record, "sanitizers.json", run_id=str)
    for gpu, records in sorted(of_gpu.items()):
        run_ids = {record["run_id"] for record in records.values()}
        for folder, record in records.items():
            for key, kind in (("since", list), ("gpu", dict)):  # older records lack them
                if not isinstance(record.get(key, kind()), kind):
                    raise StepFailed(f"{folder}/sanitizers.json: \"{key}\" is not of type "
                                     f"{kind.__name__}")
            for missing in set(record.get("since", [])) - run_ids:
                raise StepFailed(f"{folder} leaves out what {missing} found clean, and "
                                 f"{DATA / gpu} has no such record")
        tools = [(record.get("gpu", {}).get("name"), record.get("compute_sanitizer"))
                 for record in records.values()]
        found[gpu] = [folder for folder, tool in zip(records, tools) if tool == tools[0]]
    return found


def profiles():
    """{(gpu slug, folder under reports/<gpu>): newest record of profiles of those shapes}.

    Those of the ladder's shapes stand beside the other pages, and others in a folder named for
    their shapes. A newer record of these shapes and more stands in place of an older one.
    """
    found = {}
    for record in of_kind("profile"):
        shapes = read(record, "profile.json", shapes=list)["shapes"]
        if not all(isinstance(shape, dict) and isinstance(shape.get("name"), str)
                   for shape in shapes):
            raise StepFailed(f"{record.path / 'profile.json'}: a shape lacks its \"name\"")
        names = [shape["name"] for shape in shapes]
        place = "." if "mission_b" in names else "profile_" + "_".join(names)
        gpu = record.path.parent.name
        if place != ".":
            found = {key: kept for key, kept in found.items()
                     if key[0] != gpu or key[1] == "." or not kept[1] <= set(names)}
        found[gpu, place] = (record.path, set(names))
    return {key: record for key, (record, _) in found.items()}


def of_whole_kernels(program):
    """The designs that ask which of some kernels is fastest, which is no verdict on a technique:
    kernels/sdpa/library/fit_costs.py reads their records."""
    done = subprocess.run([str(program), "list", "designs", "--format=json"], capture_output=True,
                          text=True, cwd=ROOT, timeout=600, check=False)
    if done.returncode != 0:
        raise StepFailed(f"{program} list designs: {done.stderr}")
    return {design["name"] for design in json.loads(done.stdout)["designs"]
            if design["whole_kernels"]}


def call(*command, kept):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          cwd=ROOT, timeout=600, check=False,
                          env=summaries.environment(kept))
    if done.returncode != 0:
        raise StepFailed(f"{' '.join(str(part) for part in command)}\n{done.stdout}{done.stderr}")


def draw(summary, folder):
    """The figures of a summary, as `warpledger report` has them drawn.

    In a process that stays: Python and matplotlib take as long to start as a figure takes.
    """
    status, said = _painters().submit(_paint, summary, folder).result()
    if status != 0:
        raise StepFailed(f"plots of {summary}: {said}")


@functools.cache
def _painters():
    # Not forked: other threads of this process are at work.
    return concurrent.futures.ProcessPoolExecutor(
        os.cpu_count(), multiprocessing.get_context("spawn"), _end_with_parent)


def _end_with_parent():
    """A killed parent tells its workers nothing, and they would wait for ever."""
    def wait():
        multiprocessing.parent_process().join()
        os._exit(1)
    threading.Thread(target=wait, daemon=True).start()


def _paint(summary, folder):
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = render.main(["--summary", str(summary), "--out", str(folder)])
    return status, said.getvalue()


def regenerate(program, out, kept, say=lambda line: None):
    """Makes every file under the folder `out`, laid out as in the repository; returns their paths.

    kept: a folder in which the program keeps the summaries that several pages need
    The paths are relative to `out`. Raises StepFailed.
    """
    shutil.rmtree(out / _SCRATCH, ignore_errors=True)  # of one that was ended
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers, \
            contextlib.ExitStack() as opened:
        try:
            return _regenerate(program, out, kept, say, workers, opened)
        finally:
            workers.shutdown(cancel_futures=True)
            shutil.rmtree(out / _SCRATCH, ignore_errors=True)


def _regenerate(program, out, kept, say, workers, opened):
    made = set()
    waiting = []

    def produce(scratch, command, then):
        scratch.mkdir(parents=True)
        call(*(part(scratch) if callable(part) else part for part in command),
             kept=kept)
        then(scratch)

    def into(gpu, title, *command, then=lambda folder: None):
        """Has a command run that writes into an empty folder, whose files finish() then moves to
        reports/gpu. As many run at a time as there are CPUs."""
        scratch = out / _SCRATCH / str(len(waiting))
        waiting.append((gpu, title, scratch, workers.submit(produce, scratch, command, then)))

    def finish():
        """Waits for all commands; the next ones may read what these wrote."""
        for gpu, title, scratch, done in waiting:
            say(f"{gpu}: {title}")
            done.result()
            for path in sorted(path for path in scratch.rglob("*") if path.is_file()):
                target = pathlib.Path("reports") / gpu / path.relative_to(scratch)
                if target in made:
                    raise StepFailed(f"{target} comes from two records")
                made.add(target)
                (out / target).parent.mkdir(parents=True, exist_ok=True)
                path.replace(out / target)
        waiting.clear()
        shutil.rmtree(out / _SCRATCH, ignore_errors=True)

    whole_kernels = of_whole_kernels(program)
    all_runs = {run: records for run, records in record_files.runs(DATA).items()
                if run[1] not in whole_kernels}
    studied = collections.defaultdict(list)  # {gpu slug: claims}
    gpu_names = {}

    def study_done(folder, record, summary, name, gpu, cache):
        draw(summary, folder)
        page, = folder.glob("*.md")
        place = folder / pathlib.Path(folklore.PAGE).stem / name
        files = list(folder.iterdir())
        place.mkdir(parents=True)
        for file in files:
            file.replace(place / file.name)
        if cache == "warm":
            run = record.json("run.json")
            gpu_names[gpu] = run["gpu"]["name"]
            studied[gpu] += folklore.claims_of(
                run, json.loads(summary.read_text(encoding="utf-8")),
                (place / page.name).relative_to(folder).as_posix())

    # A calibration's page quotes the verdicts of the other designs: it comes last.
    for (gpu, design, cache), records in sorted(
            all_runs.items(), key=lambda run: (run[0][1] == "calibrate", run[0])):
        if design == "calibrate":
            finish()
        record = records[-1]
        summary = out / _SCRATCH / f"{gpu}-{design}-{cache}.summary.json"
        summary.parent.mkdir(parents=True, exist_ok=True)
        then = functools.partial(draw, summary)
        if design.startswith(record_files.STUDY):
            then = functools.partial(study_done, record=record, summary=summary,
                                     name=design.split(":")[1], gpu=gpu, cache=cache)
        into(gpu, f"{design} ({cache})", program, "report", f"--record={record.path}",
             lambda folder: f"--out={folder}", f"--summary={summary}", "--noplots",
             then=then)
    finish()
    for gpu, claims in sorted(studied.items()):
        page = pathlib.Path("reports") / gpu / folklore.PAGE
        claims.sort(key=lambda claim: claim.study)
        whole_file.replace(out / page, folklore.page(gpu_names[gpu], claims))
        made.add(page)
    warm = {(gpu, design): [record.path for record in records]
            for (gpu, design, cache), records in all_runs.items()
            if cache == "warm" and not design.startswith(record_files.STUDY)
            and not design.endswith(record_files.ALONE)}
    # Standings rest on these, on the newest with each set of peers. A technique's page holds what arms
    # in turn say of it.
    alone = collections.defaultdict(list)
    for (gpu, design, cache), records in sorted(all_runs.items()):
        if cache == "warm" and design.endswith(record_files.ALONE):
            alone[gpu].extend(str(record.path) for record in records)
    judged_of, standing_of, claims_of = {}, {}, {}
    for gpu in sorted({gpu for gpu, _ in warm}):
        # A calibration judges no technique; the ladder is what one reads first.
        designs = sorted((design != "ladder", design) for of, design in warm
                         if of == gpu and design != "calibrate")
        judged_of[gpu] = ",".join(str(warm[gpu, design][-1]) for _, design in designs)
        claims = out / _SCRATCH / f"{gpu}.claims.json"
        into(gpu, "techniques", program, "techniques", f"--record={judged_of[gpu]}",
             lambda folder: f"--out={folder}", f"--claims={claims}",
             then=lambda folder, gpu=gpu, claims=claims: claims_of.update(
                 {gpu: json.loads(claims.read_text(encoding="utf-8"))}))
        standing_of[gpu] = ",".join([judged_of[gpu], *alone[gpu]])
        into(gpu, "standings", program, "standings", f"--record={standing_of[gpu]}",
             lambda folder: f"--out={folder}", f"--python={sys.executable}")
    for gpu, record in newest("micro").items():
        folder = opened.enter_context(record.folder())
        into(gpu, "microbenchmarks", sys.executable, "-B", ROOT / "micro" / "record.py",
             "report", "--micro", folder / "micro.json", "--out", lambda folder: folder)
    for (gpu, place), record in profiles().items():
        into(gpu, "profiles", program, "report", f"--record={record}",
             lambda folder, place=place: f"--out={folder / place}", f"--python={sys.executable}")
    for gpu, records in sanitizers().items():
        into(gpu, "sanitizers", sys.executable, "-B", ROOT / "tests" / "sanitizers.py", "report",
             *records, "--out", lambda folder: folder)
    for gpu, record in newest("step_samples").items():
        into(gpu, "samples of steps", sys.executable, "-B", ROOT / "reports" / "step_samples.py",
             "report", record.path, "--out", lambda folder: folder)
    for place, record in newest("dtypes").items():
        into(place, "data types", program, "report", f"--record={record.path}",
             lambda folder: f"--out={folder}", f"--python={sys.executable}")
    for (gpu, design), folders in sorted(warm.items()):
        if design == "ladder" and len(folders) > 1:
            into(gpu, "two ladders compared", program, "compare", f"--a={folders[-2]}",
                 f"--b={folders[-1]}", lambda folder: f"--out={folder / 'compare.md'}")

    finish()
    if claims_of:
        say("explorer.html")
        target = pathlib.Path("reports/explorer.html")
        whole_file.replace(out / target, explorer.page(
            [claim for gpu in sorted(claims_of) for claim in claims_of[gpu]],
            [records[-1] for (_, design, cache), records in all_runs.items()
             if cache == "warm" and not design.startswith(record_files.STUDY)
             and not design.endswith(record_files.ALONE)]))
        made.add(target)
    ladders = [folders[-1] for (_, design), folders in warm.items() if design == "ladder"]
    if ladders:
        # README shows the GPU of which there are most designs, and its newest ladder.
        designs = collections.Counter(gpu for gpu, _ in warm)
        ladder = max(ladders, key=lambda path: (designs[path.parent.name], path.name))
        say("README.md")
        # Whoever ends this finds the README as it was, or with all its parts renewed.
        scratch = out / _SCRATCH
        scratch.mkdir(parents=True)
        readme = scratch / "README.md"
        shutil.copy(ROOT / "README.md", readme)
        gpu = ladder.parent.name
        # Contenders alone are what counts; where this GPU has none, another one's are said.
        elsewhere = [] if alone[gpu] else [standing_of[each] for each in sorted(alone) if alone[each]]
        for command, record, *flags in (("report", ladder.relative_to(ROOT), "--noplots"),
                                        ("standings", standing_of[gpu], "--noplots",
                                         *(f"--alone={records}" for records in elsewhere[:1])),
                                        ("techniques", judged_of[gpu])):
            call(program, command, f"--record={record}", f"--out={scratch / 'pages'}", *flags,
                 f"--readme={readme}", f"--readme_pictures=reports/{gpu}",
                 kept=kept)
        if gpu in studied:
            text = folklore.section(studied[gpu], f"reports/{gpu}/{folklore.PAGE}")
            try:
                renewed = folklore.renewed(readme.read_text(encoding="utf-8"), text)
            except ValueError as error:
                raise StepFailed(f"{readme}: {error}") from error
            readme.write_text(renewed, encoding="utf-8")
        readme.replace(out / "README.md")
        made.add(pathlib.Path("README.md"))
    paths = [record.path for (_, design, _), records in sorted(all_runs.items())
             if design != "calibrate" for record in records]
    environment = summaries.environment(kept)
    parts = {"0002-verdict-intervals.md": lambda: verdict_figures.today(
                 list(workers.map(lambda path: verdict_figures.judge(program, path, environment),
                                  paths))),
             "0036-boards-of-a-kind.md": lambda: verdict_figures.coverage(
                 verdict_figures.left_out(program, paths, environment)),
             "0043-claims-and-pages.md": lambda: equal_errors.figures(
                 program, [path for of_gpu in judged_of.values() for path in of_gpu.split(",")],
                 environment)}
    for name, text in parts.items():
        target = pathlib.Path("reports/decisions") / name
        if not (ROOT / target).is_file():
            continue
        say(str(target))
        page = folklore.renewed((ROOT / target).read_text(encoding="utf-8"), f"\n\n{text()}\n",
                                "<!-- generated:figures begin -->",
                                "<!-- generated:figures end -->")
        (out / target).parent.mkdir(parents=True, exist_ok=True)
        whole_file.replace(out / target, page)
        made.add(target)
    return made


def left_over(made):
    """Files under reports/<gpu> that no record gives."""
    folders = {path.parts[1] for path in made if path.parts[0] == "reports"} - {
        "data", "decisions"}
    there = {path.relative_to(ROOT) for gpu in folders
             for path in (ROOT / "reports" / gpu).rglob("*") if path.is_file()}
    return there - made


def committed():
    """What git can give back; nothing where this tree is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-z", "reports"], cwd=ROOT, capture_output=True,
                            text=True, check=False)
    return {pathlib.Path(name) for name in listed.stdout.split("\0") if name}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "bin" / "warpledger",
                        help="the warpledger to run (default: build/bin/warpledger)")
    options = parser.parse_args()
    try:
        with bundle_replay.scratch_folder() as kept:
            made = regenerate(options.program.resolve(), ROOT, kept,
                              lambda line: print(line, flush=True))
            summaries.write(options.program.resolve(), DATA, kept)
    except (OSError, StepFailed, record_files.RecordError, subprocess.SubprocessError) as error:
        print(f"regenerate.py: {error}", file=sys.stderr)
        return 1
    known = committed()
    for path in sorted(left_over(made)):
        if path in known:
            print(f"deleted {path}: no record gives it")
            (ROOT / path).unlink()
        else:
            print(f"kept {path}: no record gives it, and git does not know it")
    print(f"{len(made)} files")
    return 0


if __name__ == "__main__":
    bundle_replay.stop_once()
    try:
        ended = main()
        sys.stdout.flush()
    except SystemExit as stopped:
        ended = stopped.code
    except OSError as error:
        print(f"regenerate.py: {error}", file=sys.stderr)
        ended = 1
    # Not through Python's own end, which waits for the painters: a signal in the middle of that has
    # stopped it for good. They end with this process.
    os._exit(ended or 0)
