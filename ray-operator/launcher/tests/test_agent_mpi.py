"""Tests of the agent with a program in the place of mpirun."""

import os
import threading

from processes import Case, collect, wait_for

from heliostat_gang import mpi

# Runs a line in another place, as mpirun does, and ends with its exit code.
MPIRUN = 'exec "$OMPI_MCA_plm_rsh_agent" 10.0.0.2 "$LINE"'
# A rank that saves on SIGTERM, below a program that would end it at once.
RANK = """
trap 'echo mpirun was ended; exit 1' TERM
PMI_RANK=0 sh -c 'trap "sleep 0.3; echo saved; exit 0" TERM; echo runs; while :; do sleep 0.05; done' {mark} &
wait $!
"""


class TestMPI(Case):
    """The command of MPI, and its daemons."""

    def command(self, text=MPIRUN, **env):
        """Return the command of MPI."""
        slots = {"slots": {"10.0.0.1": 1, "10.0.0.2": 1}, "interface": "lo"}
        return {**self.shell("worker/0", text), "env": env, "defaults": {}, "mpi": slots}

    def daemon(self, request):
        """Return the daemon of a request."""
        return {"name": "worker/1", "argv": ["sh", "-c", request["line"]], "env": request["env"], "mpi": {}}

    def run_command(self, first, second):
        """Answer beats, start daemons in the second place, and return the events of both places."""
        events, beats = {}, {first: 0, second: 0}
        running = 1
        while running:
            running = 0
            for place in beats:
                reply = place.exchange(beats[place])
                beats[place] = reply["beat"]
                running += reply["running"]
                for event in reply["events"]:
                    events[event["process"]] = event
                    if event["process"] == "worker/1":
                        text = mpi.describe_failure(event["lines"], event["code"])
                        first.finish_daemon(1, 1, event["code"], text)
                for request in reply["daemons"]:
                    self.assertEqual(second.start(1, [self.daemon(request)]), [None])
                    running += 1
        return events

    def test_a_line_of_mpirun_runs_in_another_place(self):
        """Its exit code is that of mpirun, whose output says why it failed; and nothing is left."""
        first, second = self.agent(), self.agent()
        line = 'echo "cannot find $PWD"; exit 5'
        first.start(1, [self.command(LINE=line)])
        directory = first.relay.directory
        events = self.run_command(first, second)
        self.assertEqual((events["worker/0"]["code"], events["worker/1"]["code"]), (5, 5))
        self.assertEqual(events["worker/0"]["lines"], [f"10.0.0.2: cannot find {os.getcwd()}"])
        wait_for(lambda: not os.path.exists(directory), "the guard removes the directory")

    def test_ranks_are_ended_and_not_mpirun(self):
        """SIGTERM goes to the rank, which saves, and mpirun ends after it."""
        made = self.agent(grace=20.0)
        made.start(1, [self.command(RANK.replace("{mark}", self.mark))])
        self.wait_for_text("worker/0", "runs")
        made.stop(1)
        events, _ = collect(made)
        self.assertEqual((self.log("worker/0"), events[0]["code"]), ("runs\nsaved\n", 0))

    def test_mpirun_whose_ranks_are_elsewhere_is_not_ended(self):
        """It ends when its daemons have ended."""
        made = self.agent(grace=20.0)
        made.start(1, [self.command('trap "echo ended" TERM; ' + MPIRUN.replace("exec ", ""), LINE="x")])
        requests = []
        wait_for(lambda: requests.extend(made.exchange(0)["daemons"]) or requests, "mpirun wants a daemon")
        made.stop(1)
        threading.Timer(0.7, made.finish_daemon, (1, requests[0]["number"], 0, "")).start()
        events, _ = collect(made)
        self.assertEqual((self.log("worker/0"), events[0]["code"]), ("", 0))

    def test_a_script_ends_once_it_has_no_rank(self):
        """A stop ends what the script would run next."""
        made = self.agent(grace=20.0)
        made.start(1, [self.command(RANK.replace("{mark}", self.mark) + "\nwhile :; do sleep 0.05; done")])
        self.wait_for_text("worker/0", "runs")
        made.stop(1)
        events, _ = collect(made)
        self.assertEqual(self.log("worker/0"), "runs\nsaved\nmpirun was ended\n")

    def test_a_line_that_comes_after_a_stop_is_refused(self):
        """mpirun need not wait for it."""
        made = self.agent(grace=20.0)
        made.start(1, [self.command("while [ ! -e go ]; do sleep 0.05; done; " + MPIRUN, LINE="x") | {"cwd": self.folder}])
        with made.changed:
            made.stopped = 1
        open(os.path.join(self.folder, "go"), "w").close()
        events, _ = collect(made)
        self.assertEqual((events[0]["code"], events[0]["lines"]), (255, ["10.0.0.2: the round has ended"]))

    def test_a_command_that_is_not_there_leaves_nothing(self):
        """The directory for mpirun is removed."""
        made = self.agent()
        answers = made.start(1, [{**self.command(), "argv": ["no-such-mpirun"]}])
        self.assertEqual(answers[0]["kind"], "NotFound")
        self.assertIsNone(made.relay)
