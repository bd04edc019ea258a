# SPDX-License-Identifier: Apache-2.0
"""reports/data/summaries.sha256: the hash of every record's summary.json, as `judge` computes it.

Packs have no summary.json, so that this table stands for them: a program that computes other bytes
of any record is found (tests/reports/fresh_test.py). reports/regenerate.py renews it. Its lines
are those of sha256sum: the hash, two blanks, and GPU/RECORD for the file's name.
"""

import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import record_files  # noqa: E402 (the path comes first)
from plots import whole_file  # noqa: E402

TABLE = "summaries.sha256"


def environment(kept):
    """In which the program keeps the summaries that it computes in a folder, and uses them again."""
    return dict(os.environ, WARPLEDGER_SUMMARIES=str(kept))


def hash_of(program, record, kept):
    """Of the summary that the program computes; CalledProcessError where it computes none."""
    with tempfile.TemporaryDirectory() as folder:
        summary = pathlib.Path(folder) / "summary.json"
        subprocess.run([program, "judge", f"--record={record}", f"--out={summary}"], check=True,
                       capture_output=True, text=True, timeout=600, env=environment(kept))
        return hashlib.sha256(summary.read_bytes()).hexdigest()


def hashes(program, data, kept):
    """{GPU/RECORD: hash} of every run and calibration, judged on all cores."""
    paths = [record.path for record in record_files.records(data, "run.json")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip((str(record_files.plain(path).relative_to(data)) for path in paths),
                        pool.map(lambda path: hash_of(program, path, kept), paths), strict=True))


def read(data):
    """The table as it is committed."""
    lines = (data / TABLE).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write(program, data, kept):
    lines = [f"{digest}  {name}\n" for name, digest in hashes(program, data, kept).items()]
    whole_file.replace(data / TABLE, "".join(lines))
