import os

from runtime.native.processors import available_processors, control_group_quota


def write(root, path, text):
    path = root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_control_groups_affinity_counts(tmp_path):
    assert control_group_quota(tmp_path) is None
    if hasattr(os, "sched_getaffinity"):
        assert available_processors(tmp_path) == len(os.sched_getaffinity(0))


def test_version_2_takes_the_tightest_ancestor(tmp_path):
    write(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    write(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
    assert control_group_quota(tmp_path) is None
    write(tmp_path, "sys/fs/cgroup/a/cpu.max", "150000 100000\n")
    assert control_group_quota(tmp_path) == 1.5
    assert available_processors(tmp_path) == 1


def test_version_2_in_a_container_whose_group_is_the_root(tmp_path):
    write(tmp_path, "proc/self/cgroup", "0::/docker/abc\n")
    write(tmp_path, "sys/fs/cgroup/cpu.max", "50000 100000\n")
    assert control_group_quota(tmp_path) == 0.5
    assert available_processors(tmp_path) == 1


def test_version_1(tmp_path):
    write(tmp_path, "proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x\n")
    write(tmp_path, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n")
    write(tmp_path, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n")
    assert control_group_quota(tmp_path) is None
    write(tmp_path, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n")
    assert control_group_quota(tmp_path) == 3
