"""How many processors this process may use: cores, affinity, and the quota of its control groups."""

from __future__ import annotations

import os
from pathlib import Path


def available_processors(root: Path = Path("/")) -> int:
    """At least 1. `root` is where /proc and /sys/fs/cgroup are found."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        count = os.cpu_count() or 1
    quota = control_group_quota(root)
    # Rounded down: threads beyond the quota are stopped for the rest of each period, in the middle of a barrier.
    return max(1, count if quota is None else min(count, int(quota)))


def control_group_quota(root: Path = Path("/")) -> float | None:
    """CPUs' worth of time that the control groups (v1 or v2) of this process grant; None if unlimited or unknown."""
    quotas = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        mount = root / "sys/fs/cgroup"
        if not controllers:
            read = _quota_v2
        elif "cpu" in controllers.split(","):
            mount, read = (
                next((mount / name for name in ("cpu", controllers) if (mount / name).is_dir()), mount),
                _quota_v1,
            )
        else:
            continue
        # Every ancestor limits too. In a container the path may name a group that is mounted as the root.
        folder = mount / path.lstrip("/")
        for group in (folder, *folder.parents):
            quotas.append(read(group))
            if group == mount:
                break
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_v2(group: Path) -> float | None:
    try:
        quota, period = (group / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def _quota_v1(group: Path) -> float | None:
    try:
        quota = int((group / "cpu.cfs_quota_us").read_text())
        period = int((group / "cpu.cfs_period_us").read_text())
    except (OSError, ValueError):
        return None
    return quota / period if quota > 0 and period > 0 else None
