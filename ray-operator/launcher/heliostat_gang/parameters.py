"""The parameters of a study: what a trial finds of them, and what all trials of a storage have in common.

In: the object tune of the description, and the values of a trial, as texts. Out: variables, a description with the values in it,
the combinations of a grid, and the first difference between two studies.

Everything here follows from arguments.
"""

import json
import re
from typing import Any, Dict, List, Mapping, Sequence, Tuple

Tune = Mapping[str, Any]
Values = Mapping[str, str]

TRIAL = "trial"
MOST_COMBINATIONS = 10_000
# What attempts with one storage may not differ in.
COMMON = ("metric", "direction", "value", "algorithm", "earlyStopping", "seed")

_WORD = re.compile("[A-Z]+[a-z0-9]*|[a-z0-9]+")
_REFERENCE = re.compile(r"\$\$\(|\$\(tune\.([A-Za-z0-9_-]+)\)")


class ParameterError(Exception):
    """A reference that names no parameter, or a grid that is too large. Its text is for the user."""


def variable(name: str) -> str:
    """Return the name of the variable that has a parameter: its words in capitals."""
    return "_".join(_WORD.findall(name)).upper()


def describe(description: Mapping[str, Any], trial: int, values: Values) -> Dict[str, Any]:
    """Return the description of a gang that runs a trial, with its values in env and in commands."""
    known = {**{f"{name}": text for name, text in values.items()}, TRIAL: str(trial)}
    given = [{"name": variable(name), "value": _literal(text)} for name, text in values.items()]
    given.append({"name": "HELIOSTAT_TRIAL", "value": str(trial)})
    names = {one["name"] for one in given}
    roles = []
    for role in description["roles"]:
        env = [{**one, "value": _replace(one["value"], known)} for one in role["env"] if one["name"] not in names]
        command = [_replace(text, known) for text in role["command"]]
        roles.append({**role, "command": command, "env": [*env, *given]})
    env = [{**one, "value": _replace(one["value"], known)} for one in description["env"]]
    return {**description, "env": env, "roles": roles}


def numbers(parameter: Mapping[str, Any]) -> List[str]:
    """Return the values that a parameter of a grid can have."""
    if parameter["values"]:
        return list(parameter["values"])
    step = int(parameter["step"] or 1)
    return [str(number) for number in range(int(parameter["min"]), int(parameter["max"]) + 1, step)]


def combination(tune: Tune, trial: int) -> Dict[str, str]:
    """Return the values of a trial of a grid, or nothing behind its end. The last parameter changes first."""
    found = []
    for parameter in reversed(tune["parameters"]):
        texts_of = numbers(parameter)
        trial, at = divmod(trial, len(texts_of))
        found.append((parameter["name"], texts_of[at]))
    return {} if trial else dict(reversed(found))


def combinations(tune: Tune) -> int:
    """Return how many combinations a grid has."""
    count = 1
    for parameter in tune["parameters"]:
        if not parameter["values"] and int(parameter["max"]) - int(parameter["min"]) > MOST_COMBINATIONS * int(parameter["step"] or 1):
            raise ParameterError(f"the grid has more than {MOST_COMBINATIONS} values of {parameter['name']}; raise step, or give values")
        count *= len(numbers(parameter))
        if count > MOST_COMBINATIONS:
            raise ParameterError(f"the grid has more than {MOST_COMBINATIONS} combinations; give fewer values, or another algorithm")
    return count


def common(tune: Tune) -> Dict[str, Any]:
    """Return what all attempts with one storage have in common."""
    found = {name: tune[name] for name in COMMON}
    found["parameters"] = [dict(parameter) for parameter in tune["parameters"]]
    return found


def difference(former: Mapping[str, Any], tune: Tune) -> str:
    """Return the first difference of a study from one that a storage has, or an empty text. A seed that is not given is the former."""
    now = common(tune)
    for name in COMMON:
        if former.get(name) != now[name] and not (name == "seed" and now[name] is None):
            return f"{name} is {_show(former.get(name))} there, and {_show(now[name])} here"
    before = {parameter.get("name"): parameter for parameter in former.get("parameters", [])}
    for parameter in now["parameters"]:
        name = parameter["name"]
        if name not in before:
            return f"parameter {name} is not there"
        for field in parameter:
            if before[name].get(field) != parameter[field]:
                return f"{field} of parameter {name} is {_show(before[name].get(field))} there, and {_show(parameter[field])} here"
        del before[name]
    if before:
        return f"parameter {next(iter(before))} is not here"
    if [parameter["name"] for parameter in former["parameters"]] != [parameter["name"] for parameter in now["parameters"]]:
        return "the order of parameters is another"
    return ""


def show(values: Values) -> str:
    """Return the values of a trial in a line."""
    return ", ".join(f"{name}={text}" for name, text in values.items())


def order(tune: Tune, values: Values) -> List[Tuple[str, str]]:
    """Return values in the order of the spec."""
    return [(parameter["name"], values.get(parameter["name"], "")) for parameter in tune["parameters"]]


def _literal(text: str) -> str:
    """Return a text that the replacement of the gang's own references leaves as it is."""
    return text.replace("$(", "$$(")


def _replace(text: str, known: Values) -> str:
    """Return a text with references to parameters replaced, and those to roles left."""

    def replace(match: "re.Match[str]") -> str:
        name = match.group(1)
        if name is None:
            return match.group(0)
        if name not in known:
            names = ", ".join(sorted(known))
            raise ParameterError(f"$(tune.{name}) names no parameter ({names}); correct it, or write $$(tune.{name}) for the text")
        return _literal(known[name])

    return _REFERENCE.sub(replace, text)


def _show(value: Any) -> str:
    return "not set" if value in (None, "", []) else json.dumps(value)


def texts(values: Sequence[Any]) -> List[str]:
    """Return values as programs find them: a float as the shortest text that reads back as the same number."""
    return [repr(value) if isinstance(value, float) else str(value) for value in values]
