# SPDX-License-Identifier: Apache-2.0
"""The one way in which scripts write a file that stays: whole, or as it was.

    whole_file.replace(folder / "page.md", text)

As the program does it (ablations/base/files.h): through a file FILE.tmp.PID.N of the same folder,
which the next call that writes FILE removes where its writer was killed. A link stays, and what it
points to is written; a file keeps its mode; a device or a pipe is written to as it is. Only
Python's own modules are used.
"""

import itertools
import os
import pathlib
import re
import shutil

_NUMBERS = itertools.count()
_OF_A_WRITER = re.compile(r"\.tmp\.(\d+)\.\d+$")


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # of another user, or no process's number
        pass
    return True


def remove_leftovers(path):
    """What writers of the file left beside it that run no more."""
    for left in path.parent.glob("*.tmp.*"):
        found = _OF_A_WRITER.search(left.name)
        if (found and left.name[:found.start()] == path.name and left.is_file()
                and not _runs(int(found[1]))):
            left.unlink(missing_ok=True)


def replace(path, content):
    """Text is written as UTF-8. Errors: OSError, with the old file as it was."""
    path = pathlib.Path(os.path.realpath(path))
    content = content.encode() if isinstance(content, str) else content
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    remove_leftovers(path)
    temporary = path.with_name(f"{path.name}.tmp.{os.getpid()}.{next(_NUMBERS)}")
    try:
        temporary.write_bytes(content)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
