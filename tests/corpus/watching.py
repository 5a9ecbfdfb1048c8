"""Files run in a process that is watched from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

MOST_MEMORY = 64 << 20


def visited(folder: Path, repository: Path) -> dict[str, str]:
    """What became of each file, after checking that nothing became of the process."""
    command = [sys.executable, "-m", "tests.corpus.child", str(folder)]
    child = subprocess.run(command, cwd=repository, env=os.environ, capture_output=True, text=True, timeout=900)
    lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, f"{lines[-1:]} ended the process:\n{child.stderr}"
    assert lines[-1]["grown"] < MOST_MEMORY
    return {line["file"]: line["outcome"] for line in lines if "outcome" in line}
