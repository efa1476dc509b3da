"""Tests of what a trial finds of its parameters, and of what studies have in common."""

import pathlib
import sys
import unittest

LAUNCHER = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAUNCHER))
sys.path.insert(0, str(LAUNCHER / "tests"))

import studies  # noqa: E402  the paths above are where these are
from heliostat_gang import contracts, parameters  # noqa: E402
from histories import role  # noqa: E402
from studies import parameter, tune  # noqa: E402


class Variables(unittest.TestCase):
    def test_names(self):
        for name, expected in (
            ("learningRate", "LEARNING_RATE"), ("learning_rate", "LEARNING_RATE"), ("learning-rate", "LEARNING_RATE"), ("lr", "LR"),
            ("L2reg", "L2REG"), ("lr2Decay", "LR2_DECAY"), ("useGPU", "USE_GPU"), ("a--b", "A_B"), ("x_", "X"),
        ):
            self.assertEqual(parameters.variable(name), expected)

    def started(self, values, **more):
        """Return what the one process of a trial starts with."""
        described = parameters.describe(studies.job(role("worker", 1, **more)), 7, values)
        [start] = contracts.starts(described, [contracts.Place("worker", 0, "10.0.0.1")], {contracts.MASTER: 1}, 3)
        return start

    def test_values_are_variables_and_words_of_the_command(self):
        start = self.started(
            {"learningRate": "0.1", "opt": "sgd"},
            command=["x", "--lr=$(tune.learningRate)", "$(tune.trial)", "$$(tune.x)", "$(worker.count)"],
            env=[{"name": "DIR", "value": "/c/$(tune.trial)/$(tune.opt)"}, {"name": "OPT", "value": "mine"}],
        )
        self.assertEqual(start.argv, ["x", "--lr=0.1", "7", "$(tune.x)", "1"])
        found = {name: start.env[name] for name in ("LEARNING_RATE", "OPT", "DIR", "HELIOSTAT_TRIAL", "HELIOSTAT_ROUND")}
        self.assertEqual(found, {
            "LEARNING_RATE": "0.1", "OPT": "sgd", "DIR": "/c/7/sgd", "HELIOSTAT_TRIAL": "7", "HELIOSTAT_ROUND": "100003",
        })

    def test_a_value_is_never_a_reference(self):
        start = self.started({"a": "$(worker.count)"}, command=["$(tune.a)"])
        self.assertEqual((start.argv, start.env["A"]), (["$(worker.count)"], "$(worker.count)"))

    def test_a_command_of_a_shell_is_no_reference(self):
        start = self.started({"a": "1"}, command=["sh", "-c", "x=$(tune.sh --fast) $(tune.a)"])
        self.assertEqual(start.argv[2], "x=$(tune.sh --fast) 1")

    def test_a_name_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(parameters.ParameterError, r"\$\(tune.lr\) names no parameter \(a, trial\)"):
            self.started({"a": "1"}, command=["$(tune.lr)"])

    def test_numbers_read_back_as_the_same(self):
        self.assertEqual(parameters.texts([0.1, 1e-05, 3, "0.10", 1 / 3]), ["0.1", "1e-05", "3", "0.10", "0.3333333333333333"])


class Grid(unittest.TestCase):
    def test_the_last_parameter_changes_first(self):
        given = tune(parameters=[parameter("n", "Int", "1", "5", step="2"), parameter("o", "Categorical", values=["a", "b"])])
        found = [tuple(parameters.combination(given, trial).values()) for trial in range(7)]
        self.assertEqual(found, [("1", "a"), ("1", "b"), ("3", "a"), ("3", "b"), ("5", "a"), ("5", "b"), ()])
        self.assertEqual(parameters.combinations(given), 6)

    def test_a_grid_that_is_too_large_is_refused_at_once(self):
        for given in ([parameter("n", "Int", "0", str(1 << 60))], [parameter(f"p{number}", "Int", "0", "99") for number in range(9)]):
            with self.assertRaises(parameters.ParameterError):
                parameters.combinations(tune(parameters=given))


class Common(unittest.TestCase):
    def test_differences_are_named(self):
        base = tune(parameters=[parameter("x", "Float", "0", "1"), parameter("y", "Int", "1", "2")])
        for more, expected in (
            ({}, ""),
            ({"maxTrials": 99, "parallelTrials": 9, "goal": "1", "maxFailedTrials": 9}, ""),
            ({"trialDeadlineSeconds": 9, "fits": 1, "storage": "/y"}, ""),
            ({"seed": None}, ""),
            ({"metric": "acc"}, 'metric is "loss" there, and "acc" here'),
            ({"seed": 8}, "seed is 7 there, and 8 here"),
            ({"earlyStopping": "Median"}, 'earlyStopping is "None" there, and "Median" here'),
            ({"parameters": [parameter("x", "Float", "0", "1")]}, "parameter y is not here"),
            ({"parameters": [*base["parameters"], parameter("z")]}, "parameter z is not there"),
            ({"parameters": [parameter("x", "Float", "0", "2"), base["parameters"][1]]}, 'max of parameter x is "1" there, and "2" here'),
            ({"parameters": base["parameters"][::-1]}, "the order of parameters is another"),
        ):
            self.assertEqual(parameters.difference(parameters.common(base), {**base, **more}), expected)


if __name__ == "__main__":
    unittest.main()
