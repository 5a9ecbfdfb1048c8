"""What has been done, on disk, so that a run that was killed goes on after its last finished step."""

import hashlib
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schema.command_line import replacing
from schema.errors import FormatError, InputError

FORMAT = 1
STATE_FILE = "state.json"


@dataclass(frozen=True)
class Step:
    """One finished step.

    Attributes:
        name: unique in its run.
        seconds: that it took.
        values: what it found, plain data.
        files: what it wrote, by what it is: `weights` (.npz), `xnn`.
    """

    name: str
    seconds: float
    values: dict[str, Any]
    files: dict[str, str]


class State:
    """The steps of one run, in a folder. A step is there once `state.json` lists it: its files are written before."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        """Opens the folder, which may hold an earlier part of the same run.

        Args:
            folder: made where it is missing.
            fingerprint: of everything that decides the result.

        Raises:
            InputError: the folder holds another run.
            FormatError: its state cannot be read.
        """
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._fingerprint = fingerprint
        self._steps: dict[str, Step] = {}
        path = folder / STATE_FILE
        if not path.exists():
            return
        try:
            stored = json.loads(path.read_text())
            steps = [Step(**step) for step in stored["steps"]]
            known = stored["format"], stored["fingerprint"]
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path} is no state of a compression: delete it, or name another folder") from error
        if known != (FORMAT, fingerprint):
            raise InputError(
                f"{folder} holds the state of another compression (another model, data, goal, recipe or setting): name "
                "another folder, or delete this one"
            )
        self._steps = {step.name: step for step in steps}

    @property
    def steps(self) -> list[Step]:
        return list(self._steps.values())

    @property
    def seconds(self) -> float:
        """Spent on all finished steps, over all restarts."""
        return sum(step.seconds for step in self._steps.values())

    def find(self, name: str) -> Step | None:
        return self._steps.get(name)

    def add(
        self,
        name: str,
        seconds: float,
        values: dict[str, Any],
        weights: Sequence[np.ndarray] | None = None,
        config: str | None = None,
        xnn: bytes | None = None,
    ) -> Step:
        """Writes a finished step.

        Args:
            name: unique in this run.
            seconds: that it took.
            values: plain data; numbers come back as JSON has them.
            weights: of the model after the step, in the order of `get_weights()`.
            config: the model's JSON where its architecture is no longer the base's.
            xnn: a file.
        """
        number, files = len(self._steps), {}
        if weights is not None:
            buffer = io.BytesIO()
            arrays = {f"{index:05d}": array for index, array in enumerate(weights)}
            np.savez_compressed(buffer, **arrays, config=np.array(config or ""))  # type: ignore[arg-type]
            files["weights"] = self._write(f"{number:03d}.npz", buffer.getvalue())
        if xnn is not None:
            files["xnn"] = self._write(f"{number:03d}.xnn", xnn)
        step = Step(name, seconds, json.loads(json.dumps(values)), files)
        self._steps[name] = step
        stored = {"format": FORMAT, "fingerprint": self._fingerprint, "steps": [vars(s) for s in self._steps.values()]}
        self._write(STATE_FILE, json.dumps(stored, indent=1).encode())
        return step

    def weights(self, step: Step) -> tuple[list[np.ndarray], str | None]:
        """The weights and the architecture (None for the base's) that a step left."""
        with np.load(self.folder / step.files["weights"], allow_pickle=False) as arrays:
            config = str(arrays["config"]) or None
            return [arrays[key] for key in sorted(key for key in arrays.files if key != "config")], config

    def xnn(self, step: Step) -> bytes:
        return (self.folder / step.files["xnn"]).read_bytes()

    def _write(self, name: str, content: bytes) -> str:
        with replacing(self.folder / name) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return name


def fingerprint(parts: Sequence[Any]) -> str:
    """A digest of arrays and plain data."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(json.dumps(part, sort_keys=True, default=repr).encode())
    return digest.hexdigest()
