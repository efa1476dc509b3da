"""Trains one model on all workers, in the form of TensorFlow's tutorial of MultiWorkerMirroredStrategy with a loop of its own.

TF_CONFIG names the workers. Worker 0 saves a checkpoint after each step, and all workers go on from it when they are started
again. At the end each worker prints the loss of its copy of the model on all data.
"""

import argparse
import os
import time

import keras
import tensorflow as tf

BATCH = 8


def make_data():
    inputs = tf.random.stateless_normal((640, 10), seed=(0, 0))
    return inputs, tf.sin(tf.reduce_sum(inputs, axis=1, keepdims=True))


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--steps", type=int, default=20)
    arguments.add_argument("--pause", type=float, default=0, help="seconds between two steps")
    options = arguments.parse_args()

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    worker, workers = strategy.cluster_resolver.task_id or 0, strategy.num_replicas_in_sync
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
        optimizer = keras.optimizers.SGD(0.05)
        optimizer.build(model.trainable_variables)
        done = tf.Variable(0, trainable=False, dtype=tf.int64)
    inputs, targets = make_data()

    def make_dataset(context):
        part = tf.data.Dataset.from_tensor_slices((inputs, targets)).shard(context.num_input_pipelines, context.input_pipeline_id)
        return part.batch(context.get_per_replica_batch_size(BATCH * workers)).repeat()

    batches = iter(strategy.distribute_datasets_from_function(make_dataset))

    @tf.function
    def train_step(batch):
        def step(inputs, targets):
            with tf.GradientTape() as tape:
                errors = keras.losses.mean_squared_error(targets, model(inputs, training=True))
                loss = tf.nn.compute_average_loss(errors, global_batch_size=BATCH * workers)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=batch), axis=None)

    # Saving takes all workers, as they read variables together. What is not worker 0's is thrown away.
    directory = os.environ["CHECKPOINT_DIR"]
    own = directory if worker == 0 else os.path.join(directory, f"worker-{worker}")
    checkpoint = tf.train.Checkpoint(model=model, done=done)
    manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=1)
    checkpoint.restore(tf.train.latest_checkpoint(directory))
    print(f"worker {worker} of {workers} starts at step {done.numpy()}", flush=True)

    def log(what):
        if worker == 0:
            with open(os.path.join(directory, "log"), "a") as file:
                file.write(what + "\n")

    log(f"start {done.numpy()}")
    while done.numpy() < options.steps:
        loss = train_step(next(batches))
        done.assign_add(1)
        print(f"worker {worker} step {done.numpy()} loss {float(loss):.5f}", flush=True)
        manager.save()
        log(f"saved {done.numpy()}")
        time.sleep(options.pause)

    loss = tf.reduce_mean(tf.square(model(inputs) - targets))
    print(f"worker {worker} of {workers} ends with loss {float(loss):.6f}", flush=True)


if __name__ == "__main__":
    main()
