"""Under `tf.distribute`: two replicas in one process, and two workers."""

import json
import os
import socket
import subprocess
import sys

import pytest

COMMON = """
import os, sys
import numpy as np
import tensorflow as tf
import {keras} as keras
import xnn_tf
from xnn_tf.compression.recipe import Recipe
from xnn_tf.compression.stages.convert import Conversion
from xnn_tf.compression.stages.prune import Prune

keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
centres, labels = rng.normal(size=(4, 16)), rng.integers(0, 4, 384)
points = (centres[labels] + rng.normal(size=(384, 16))).astype("float32")

def compress(strategy, folder, **more):
    model = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(4)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    start = np.random.default_rng(1)
    model.set_weights([start.normal(size=w.shape).astype("float32") / 8 for w in model.get_weights()])
    recipe = Recipe("test", (Prune(levels=255),), (Conversion("int8-weights"),), (2.0, 0.5), first_ratio=6.0, levels=1)
    return xnn_tf.compress(
        model, (points[:256], labels[:256]), (points[256:], labels[256:]), target_ratio=6, recipe=recipe, epochs=4,
        batch_size=64, folder=folder, verbose=False, distributed=strategy, **more)
"""

MIRRORED = """
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
result = compress(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), sys.argv[1])
assert result.met, result
assert xnn_tf.sparsity(result.model).total.sparsity > 0.2
alone = compress(None, sys.argv[1] + "-alone")
assert abs(len(alone.xnn) - len(result.xnn)) < 100, (len(alone.xnn), len(result.xnn))
for now, then in zip(result.model.get_weights(), alone.model.get_weights()):
    assert np.mean(now == 0) == np.mean(then == 0)
"""

STARTED = "the cluster is up"
"""What a worker prints then. Those that fail earlier have lost a port to somebody, or each other: they start again."""
TRIES = 3

WORKER = """
from tensorflow.python.distribute.collective_all_reduce_strategy import coordination_config_pb2
from tensorflow.python.eager import context

# Usually a worker that was not heard of for ten seconds counts as dead: on a busy machine it waits for its turn.
context.context().configure_coordination_service(
    "standalone", "/job:worker/replica:0/task:0", heartbeat_timeout_in_ms=300_000,
    cluster_register_timeout_in_ms=300_000, shutdown_barrier_timeout_in_ms=300_000,
    coordinated_jobs=[coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=2)])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
print("the cluster is up", flush=True)
result = compress(strategy, sys.argv[1], budget_minutes=1000.0)
assert result.met, result
result.save(os.path.join(sys.argv[1], "worker-" + os.environ["INDEX"] + ".xnn"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_two_replicas(repository, tmp_path, keras):
    script = COMMON.replace("{keras}", keras) + MIRRORED
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    run = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stderr


def run_workers(repository, folder):
    """(exit code, output, errors) of each worker of a new cluster."""
    sockets = [socket.socket() for _ in range(2)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    cluster = {"worker": [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]}
    for each in sockets:
        each.close()
    processes = []
    for index in range(2):
        setting = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        environment = os.environ | {"TF_CONFIG": json.dumps(setting), "INDEX": str(index)}
        command = [sys.executable, "-c", COMMON.replace("{keras}", "tf_keras") + WORKER, str(folder)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, cwd=repository, env=environment, **pipes))
    results = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=900)
            results.append((process.returncode, output, errors))
            if process.returncode != 0 and STARTED not in output:
                break  # the other one waits for it in vain
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return results


@pytest.mark.slow
def test_two_workers(repository, tmp_path):
    """Each takes half of every batch, and both end with the same file."""
    for _ in range(TRIES):
        results = run_workers(repository, tmp_path)
        if all(STARTED in output for _, output, _ in results) and len(results) == 2:
            break
    assert len(results) == 2, results[0][2][-3000:]
    for code, _, errors in results:
        assert code == 0, errors[-3000:]
    assert (tmp_path / "worker-0.xnn").read_bytes() == (tmp_path / "worker-1.xnn").read_bytes()
    assert (tmp_path / "report.html").exists() and (tmp_path / "worker-1" / "state.json").exists()
