# SPDX-License-Identifier: Apache-2.0
"""Packs of any contents, right or wrong, for tests of what reads them (reports/RECORD.md)."""

import hashlib
import io
import re
import tarfile

import zstandard


def sums_of(files):
    """The text of SHA256SUMS."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n"
                   for name, content in sorted(files.items())).encode()


def member(name, content=b"", **fields):
    """A tar member and what it holds."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def columns_of(text):
    """What a pack has of a file of lines (ablations/record/columns.h)."""
    lines = []
    for line in text.splitlines(keepends=True):
        body, sum_of, digits = line.rpartition(b',"sum":"')
        right = hashlib.sha256(body).hexdigest()[:8].encode() + b'"}\n'
        lines.append(re.findall(rb"[^,\n]*[,\n]",
                                body + sum_of + b'"}\n' if digits == right else line))
    widest = max(len(line) for line in lines)
    return b"%d\n" % len(lines) + b"".join(line[column] for column in range(widest)
                                           for line in lines if column < len(line))


def by_columns(files):
    """The members' contents as the program packs them."""
    return {name + ".columns" if name.endswith(".jsonl") else name:
            columns_of(content) if name.endswith(".jsonl") else content
            for name, content in files.items()}


def members_of(run, files, sums=None):
    """As programs before 2026-11-27 packed them; `sums` in place of the right ones."""
    return [member(f"{run}/SHA256SUMS", sums_of(files) if sums is None else sums),
            *(member(f"{run}/{name}", content) for name, content in sorted(files.items()))]


def compressed(members):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return zstandard.ZstdCompressor(write_checksum=True).compress(tar.getvalue())


def pack(run, files):
    return compressed(members_of(run, files))
