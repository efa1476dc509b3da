# What is before objects.py and actors.py: there and first are options that place something on the worker alone,
# and on it as long as it lives; held are objects by name, and asked is what else to look at. What is placed there
# comes first: only then is it sure that all of Ray knows a worker that has just joined.
import time
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as on
place = {{printf "%q" .Place}}
there, first = ({"scheduling_strategy": on(node_id=place, soft=soft)} for soft in (False, True))
asked, cleanup = {}, lambda: None
