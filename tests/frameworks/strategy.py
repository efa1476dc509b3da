"""Trains a line in the form of TensorFlow's tutorial of ParameterServerStrategy, with an evaluator beside the training.

TF_CONFIG says what each process is. Workers and parameter servers serve until they are ended. The chief hands steps to workers,
and saves a checkpoint after each epoch. The evaluator reads checkpoints until it has seen the last one.
"""

import argparse
import json
import os
import time

import tensorflow as tf

STEPS_OF_EPOCH = 20


class Line(tf.Module):
    def __init__(self):
        super().__init__()
        self.slope = tf.Variable(0.0)
        self.offset = tf.Variable(0.0)

    def __call__(self, inputs):
        return self.slope * inputs + self.offset


def make_dataset(context=None):
    """Gives points of the line 3x + 1."""
    inputs = tf.random.stateless_uniform((256,), seed=(0, context.input_pipeline_id if context else 7), minval=-1, maxval=1)
    points = tf.data.Dataset.from_tensor_slices((inputs, 3 * inputs + 1))
    return points.batch(16) if context is None else points.repeat().batch(16)


def train(resolver, directory, epochs):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        line = Line()
        epoch = tf.Variable(0, trainable=False)

    @tf.function
    def train_step(batches):
        def step(inputs, targets):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(line(inputs) - targets))
            slope, offset = tape.gradient(loss, [line.slope, line.offset])
            line.slope.assign_sub(0.1 * slope)
            line.offset.assign_sub(0.1 * offset)
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=next(batches)), axis=None)

    @tf.function
    def make_datasets():
        return strategy.distribute_datasets_from_function(make_dataset)

    batches = iter(coordinator.create_per_worker_dataset(make_datasets))
    checkpoint = tf.train.Checkpoint(line=line, epoch=epoch)
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=None)
    checkpoint.restore(manager.latest_checkpoint)
    while int(epoch) < epochs:
        results = [coordinator.schedule(train_step, args=(batches,)) for _ in range(STEPS_OF_EPOCH)]
        coordinator.join()
        epoch.assign_add(1)
        manager.save()
        print(f"chief: epoch {int(epoch)} loss {coordinator.fetch(results[-1]):.5f}", flush=True)
    print(f"chief: slope {float(line.slope):.1f}, offset {float(line.offset):.1f}", flush=True)


def evaluate(directory, epochs):
    line, epoch = Line(), tf.Variable(0, trainable=False)
    checkpoint = tf.train.Checkpoint(line=line, epoch=epoch)
    while int(epoch) < epochs:
        path = tf.train.latest_checkpoint(directory)
        before = int(epoch)
        if path:
            checkpoint.restore(path).expect_partial()
        if int(epoch) == before:
            time.sleep(0.2)
            continue
        loss = sum(float(tf.reduce_mean(tf.square(line(inputs) - targets))) for inputs, targets in make_dataset())
        print(f"evaluator: epoch {int(epoch)} loss {loss:.5f}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--epochs", type=int, default=10)
    options = arguments.parse_args()
    directory = os.environ["CHECKPOINT_DIR"]
    if json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "evaluator":
        evaluate(directory, options.epochs)
        return
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc", start=True
        )
        print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
        server.join()
    train(resolver, directory, options.epochs)


if __name__ == "__main__":
    main()
