"""Sums the numbers of all processes, in the form of JAX's tutorial of programs with more than one process."""

import os

import jax
import numpy

jax.distributed.initialize(num_processes=int(os.environ["NUM_PROCESSES"]), process_id=int(os.environ["PROCESS_ID"]))
mesh = jax.make_mesh((jax.device_count(),), ("all",))
spread = jax.sharding.NamedSharding(mesh, jax.P("all"))
own = numpy.full(jax.local_device_count(), jax.process_index() + 1)
numbers = jax.make_array_from_process_local_data(spread, own)
total = jax.jit(jax.shard_map(lambda part: jax.lax.psum(part, "all"), mesh=mesh, in_specs=jax.P("all"), out_specs=jax.P()))(numbers)
print(f"process {jax.process_index()} of {jax.process_count()}: sum {int(total.addressable_data(0)[0])}", flush=True)
