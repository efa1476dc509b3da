"""Sums the numbers of all ranks, in the form of mpi4py's tutorial of collective communication."""

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1, op=MPI.SUM)
print(f"rank {world.Get_rank()} of {world.Get_size()} on {MPI.Get_processor_name()}: sum {total}", flush=True)
