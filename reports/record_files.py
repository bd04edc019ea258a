# SPDX-License-Identifier: Apache-2.0
"""The files of a record, whether it is a folder or a pack (reports/RECORD.md): the one way in which
scripts read one.

    record = record_files.open_record("reports/data/h200/mine")   # or mine.tar.zst
    run = record.json("run.json")

A pack is verified whole before anything of it is read: regular files with plain names alone, and
every SHA-256 sum. It needs Python 3.14, or else the package zstandard (requirements.txt). Errors:
RecordError, which names the record and the file, and FileNotFoundError for a file it lacks.
"""

import contextlib
import functools
import hashlib
import io
import pathlib
import re
import sys
import tarfile
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from plots import json_text  # noqa: E402 (the path comes first)

SUFFIX = ".tar.zst"
SUMS = "SHA256SUMS"
COLUMNS = ".columns"  # behind the name of a file that a pack has by columns
MOST_BYTES = 1 << 28  # of the archive within, as in ablations/record/record_files.h
MOST_PIECES = 1 << 23  # of a file by columns, as in ablations/record/columns.h
NAME = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+-]*")


class RecordError(Exception):
    """What can't be read of which record, and why."""


def decompressor(where):
    """(what decompresses one zstd frame, its error)"""
    try:
        from compression import zstd  # Python 3.14
        return zstd.ZstdDecompressor(), zstd.ZstdError
    except ImportError:
        pass
    try:
        import zstandard
        return zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError
    except ImportError as error:
        raise RecordError(f"{where}: reading a pack needs Python 3.14 or the package zstandard: "
                          "pip install -r requirements.txt") from error


def decompressed(data, where):
    """What one zstd frame holds."""
    frame, zstd_error = decompressor(where)
    out = io.BytesIO()
    # A kilobyte in gives 32 MiB at most, so that a bomb is noticed before it fills the memory.
    for at in range(0, len(data), 1024):
        if frame.eof:
            raise RecordError(f"{where}: something follows its end")
        try:
            out.write(frame.decompress(data[at:at + 1024]))
        except zstd_error as error:
            raise RecordError(f"{where}: zstd: {error}") from error
        if out.tell() > MOST_BYTES:
            raise RecordError(f"{where}: more than {MOST_BYTES} bytes come out, the most that a "
                              "pack may hold")
    if not frame.eof or frame.unused_data:
        raise RecordError(f"{where}: it is cut off in the middle, or something follows its end")
    return out.getvalue()


LEFT_OUT_SUM = b',"sum":""}\n'


def summed(line):
    """The line with its sum, where the columns leave the digits out."""
    if not line.endswith(LEFT_OUT_SUM):
        return line
    body = line[:-len(LEFT_OUT_SUM)]
    return body + b',"sum":"' + hashlib.sha256(body).hexdigest()[:8].encode() + b'"}\n'


def from_columns(columns, where):
    """The lines whose columns these are (ablations/record/columns.h)."""
    count, _, text = columns.partition(b"\n")
    n_pieces = text.count(b",") + text.count(b"\n")
    if (not re.fullmatch(rb"[1-9][0-9]{0,8}", count) or int(count) > n_pieces
            or n_pieces > MOST_PIECES or text[-1:] not in (b",", b"\n")):
        raise RecordError(f"{where}: its number of lines or pieces is wrong")
    pieces = text.replace(b"\n", b"\n,").split(b",")[:-1]  # without commas, with newlines
    lines = [[] for _ in range(int(count))]
    unfinished, begin = lines, 0
    while unfinished:
        column = pieces[begin:begin + len(unfinished)]
        if len(column) != len(unfinished):
            raise RecordError(f"{where}: its columns end before its lines")
        begin += len(column)
        for line, piece in zip(unfinished, column):
            line.append(piece)
        if b"\n" in b"".join(column):
            unfinished = [line for line in unfinished if not line[-1].endswith(b"\n")]
    if begin != len(pieces):
        raise RecordError(f"{where}: its columns go on behind its lines")
    return b"".join(summed(b",".join(line)) for line in lines)


def unpacked(data, where):
    """(name of the run, {file: bytes}) of a pack's bytes."""
    run, files = None, {}
    archive = decompressed(data, where)
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                parts = member.name.split("/")
                if not member.isreg() or len(parts) != 2 or not all(map(NAME.fullmatch, parts)):
                    raise RecordError(f"{where}: member '{member.name}' is no regular file RUN/FILE")
                file = parts[1].removesuffix(COLUMNS)
                if (run not in (None, parts[0]) or file in files or not NAME.fullmatch(file)
                        or file.endswith(COLUMNS) or (run is None and parts[1] != SUMS)):
                    raise RecordError(f"{where}: member '{member.name}' is there twice, of another "
                                      f"run, no file of a record, or stands before {SUMS}")
                run = parts[0]
                files[file] = tar.extractfile(member).read()
                if file != parts[1]:
                    files[file] = from_columns(files[file], f"{where}: {parts[1]}")
            if any(archive[tar.offset:]):  # tarfile takes a header that it can't read for the end
                raise RecordError(f"{where}: the tar header after {len(files)} members is damaged")
    except tarfile.TarError as error:
        raise RecordError(f"{where}: tar: {error}") from error
    if run is None:
        raise RecordError(f"{where}: it holds no file")
    sums = dict(reversed(line.split("  ", 1)) for line in files.pop(SUMS).decode().splitlines())
    misfits = [f"{name} is not what {SUMS} says" for name, content in files.items()
               if name in sums and hashlib.sha256(content).hexdigest() != sums[name]]
    misfits += [f"{name} has no line in {SUMS}" for name in files.keys() - sums.keys()]
    misfits += [f"{name} is missing" for name in sums.keys() - files.keys()]
    if misfits or not files:
        raise RecordError(f"{where}: {'; '.join(sorted(misfits)) or 'it holds no file'}")
    return run, files


@functools.lru_cache(maxsize=4)
def read_pack(path, _modified, _size):
    return unpacked(path.read_bytes(), path)


class Record:
    """path: the folder or pack; name: what it is called."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._files = None
        if self.path.is_dir():
            self.name = self.path.resolve().name
        else:
            stat = self.path.stat()
            self.name, self._files = read_pack(self.path, stat.st_mtime_ns, stat.st_size)

    packed = property(lambda self: self._files is not None)

    def __contains__(self, file):
        return file in self._files if self.packed else (self.path / file).is_file()

    def bytes(self, file):
        if not self.packed:
            return (self.path / file).read_bytes()
        if file not in self._files:
            raise FileNotFoundError(f"{self.path / file}: the pack has no such file")
        return self._files[file]

    def text(self, file):
        return self.bytes(file).decode("utf-8")

    def lines(self, file):
        """The objects of a .jsonl file."""
        try:
            return [json_text.loads(line) for line in self.bytes(file).splitlines()]
        except ValueError as error:
            raise RecordError(f"{self.path / file} has a line that is no JSON: {error}") from error

    def json(self, file):
        try:
            return json_text.loads(self.bytes(file))
        except ValueError as error:
            raise RecordError(f"{self.path / file} is no JSON: {error}") from error

    @contextlib.contextmanager
    def folder(self):
        """Its folder; of a pack a scratch one that is called as the record."""
        if not self.packed:
            yield self.path
            return
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / self.name
            folder.mkdir()
            for name, content in self._files.items():
                (folder / name).write_bytes(content)
            yield folder


def plain(path):
    """The path of a record's folder, whether or not it is packed."""
    path = pathlib.Path(path)
    return path.with_name(path.name.removesuffix(SUFFIX))


def open_record(path):
    """A folder, or its pack where the folder is absent, or the other way round."""
    path = pathlib.Path(path)
    folder = plain(path)
    pack = folder.with_name(folder.name + SUFFIX)
    for candidate in (path, folder, pack):
        if candidate.is_dir() or (candidate == pack and candidate.is_file()):
            return Record(candidate)
    raise RecordError(f"{path}: there is no such record, neither the folder {folder.name} nor the "
                      f"pack {pack.name}")


def records(data, file, kind=""):
    """The records in the folders of `data` that have such a file, by folder and name; of a kind,
    whose names begin with it, others are not opened."""
    found = {plain(path): path for path in data.glob(f"*/{kind}*{SUFFIX}")}
    found.update({path: path for path in data.glob(f"*/{kind}*") if path.is_dir()})
    return [record for record in (Record(found[key]) for key in sorted(found)) if file in record]


STUDY = "study:"


ALONE = " alone"


def question_of(run):
    """Its design; of a study "study:NAME:DESIGN"; with ALONE where each arm was timed by itself."""
    study = (run.get("definition") or {}).get("study")
    design = run["design"] + (ALONE if run.get("alone") else "")
    return f"{STUDY}{study['name']}:{design}" if study else design


def runs(data):
    """{(gpu slug, question_of() it, cache mode): records of runs, oldest first; those of one second by their board}."""
    found = {}
    for record in records(pathlib.Path(data), "run.json"):
        run = record.json("run.json")
        for key in ("design", "cache", "created_utc"):
            if not isinstance(run, dict) or not isinstance(run.get(key), str):
                raise RecordError(f"{record.path / 'run.json'} lacks \"{key}\", or it is no text")
        key = (record.path.parent.name, question_of(run), run["cache"])
        board = (run.get("gpu") or {}).get("uuid", "")
        found.setdefault(key, []).append((run["created_utc"], board, record.name, record))
    return {key: [record for *_, record in sorted(entries, key=lambda entry: entry[:3])]
            for key, entries in found.items()}
