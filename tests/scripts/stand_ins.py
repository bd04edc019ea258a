# SPDX-License-Identifier: Apache-2.0
"""For tests of scripts whose programs need a GPU: scripts that stand in for those programs."""

import stat


def script(path, text):
    """Beside what a killed test's process may still run, which can't be written to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".new")
    scratch.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    scratch.chmod(scratch.stat().st_mode | stat.S_IEXEC)
    scratch.replace(path)
