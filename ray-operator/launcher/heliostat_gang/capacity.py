"""How many of the places that a gang waits for would fit now, for the message.

In: what nodes have free, with their labels, and the places that are not there. Out: a number by role. It is an estimate: Ray places
a group as a whole, and knows more.
"""

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence


class Node(NamedTuple):
    """A node that takes work."""

    labels: Mapping[str, str]
    free: Mapping[str, float]


def fitting(nodes: Sequence[Node], roles: Mapping[str, Mapping[str, Any]], waiting: Sequence[str], placement: str) -> Dict[str, int]:
    """Return how many of the places that wait fit, by role. waiting has the role of each."""
    free = [dict(node.free) for node in nodes]
    found = dict.fromkeys(roles, 0)
    if placement == "StrictPack":
        counts = [fitting([node], roles, waiting, "Pack") for node in nodes]
        return max(counts, key=lambda count: sum(count.values()), default=found)
    open_nodes = list(range(len(nodes)))
    for role in waiting:
        wanted = roles[role]["resources"]
        for position in open_nodes:
            if _matches(nodes[position].labels, roles[role]["labelSelector"]) and _fits(wanted, free[position]):
                found[role] += 1
                for name, amount in wanted.items():
                    free[position][name] = free[position].get(name, 0) - amount
                if placement == "StrictSpread":
                    open_nodes.remove(position)
                break
    return found


def _fits(wanted: Mapping[str, float], free: Mapping[str, float]) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in wanted.items() if amount)


def _matches(labels: Mapping[str, str], selector: Mapping[str, str]) -> bool:
    """Report whether labels match a selector as Ray writes it: value, !value, in(a,b) or !in(a,b)."""
    return all((labels.get(name) in _values(text)) != text.startswith("!") for name, text in selector.items())


def _values(text: str) -> List[str]:
    text = text.lstrip("!")
    listed = re.fullmatch(r"in\((.*)\)", text)
    return [value.strip() for value in listed.group(1).split(",")] if listed else [text]
