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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import record_files  # noqa: E402 (the path comes first)
from plots import whole_file  # noqa: E402

TABLE = "summaries.sha256"


def environment(kept, **variables):
    """In which the program keeps the summaries that it computes in a folder, and uses them again."""
    return dict(os.environ, WARPLEDGER_SUMMARIES=str(kept), **variables)


def hashes(program, records, kept, **variables):
    """{GPU/RECORD: hash} of the summaries that the program computes under these variables of the
    environment, on all cores, and writes to GPU/RECORD.json in the folder `kept`;
    CalledProcessError where it computes none.
    """
    def hash_of(record):
        folder = record_files.plain(record.path)
        name = f"{folder.parent.name}/{folder.name}"
        summary = pathlib.Path(kept) / f"{name}.json"
        summary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([program, "judge", f"--record={record.path}", f"--out={summary}"],
                       check=True, capture_output=True, text=True, timeout=600,
                       env=environment(kept, **variables))
        return name, hashlib.sha256(summary.read_bytes()).hexdigest()

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(pool.map(hash_of, records))


def read(data):
    """The table as it is committed."""
    lines = (data / TABLE).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write(program, data, kept):
    runs = record_files.records(data, "run.json")  # and calibrations
    lines = [f"{digest}  {name}\n" for name, digest in hashes(program, runs, kept).items()]
    whole_file.replace(data / TABLE, "".join(lines))
