"""The driver of a job that tunes: carries out what the trials decide, and reports.

In: the description, a cluster, and a study. Out: the job's output with the table of trials at its end, files of the storage, the report,
and how the driver ends.

One thread decides, calls and writes, as for a gang. Values that take long to draw are drawn in another one.
"""

import contextlib
import os
import queue
import signal
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from . import capacity, parameters, report, rounds, storage, study, trials
from .children import Child, Share
from .drawer import DrawError, Drawer
from .driver import Posted, describe, do_posted, now
from .groups import SPAN

# How often the table is written at most, and how much longer than it takes.
TABLE_SECONDS, TABLE_TIMES = 1.0, 20
LINES = 8


class Tuner:
    """Runs one attempt of a job that tunes."""

    def __init__(
        self, description: Mapping[str, Any], make_cluster: Callable[..., Any], console: Any, library: Any = study
    ) -> None:
        """Take a description, what makes a cluster of it and of a function that posts, and what has Study and find_optuna."""
        self.description = description
        self.tune: Mapping[str, Any] = description["tune"]
        self.console = console
        self.library = library
        self.posted: Posted = queue.SimpleQueue()
        self.cluster = make_cluster(description, self.post)
        self.cluster.on_group = self.take_group
        self.cluster.on_drain = self.take_drain
        self.cluster.on_nodes = self.take_nodes
        self.cluster.on_refused = self.take_refusal
        self.reporter = report.Reporter(self.cluster.put_report)
        self.lock: Optional[storage.Lock] = None
        self.holder: Optional[Dict[str, Any]] = None  # who has the storage, where it is not ours
        self.study: Any = None
        self.drawer = Drawer(self.post, self.take_draw)
        self.trials: Optional[trials.Trials] = None
        self.children: Dict[int, Child] = {}
        self.shares: Dict[int, Share] = {}
        self.drains: List[str] = []
        self.is_stopping = False
        self.result: Optional[rounds.Finish] = None
        self.problem: Optional[rounds.Cause] = None  # why the study has not begun
        self.started: Optional[float] = None
        self.past = rounds_of(())  # of trials that have ended
        self.lost_pods: List[str] = []
        self.is_stale = False  # the table lacks something
        self.table_due = 0.0

    def post(self, do: Callable[..., None], *arguments: Any) -> None:
        """Have the deciding thread call a function. Threads and signal handlers may post."""
        self.posted.put((do, arguments))

    def run(self) -> rounds.Finish:
        """Run the trials, and return how the driver has to end."""
        self.cluster.gather(False)
        if self.prepare():
            while self.result is None:
                self.step()
                if self.result is None:
                    do_posted(self.posted, all(child.is_calm() for child in self.children.values()))
        self.leave()
        return self.result or rounds.Finish(0, 0)

    def prepare(self) -> bool:
        """Take the storage and open the study, and return whether that is done."""
        try:
            self.library.find_optuna(self.tune)
            if self.tune["algorithm"] == "Grid":
                parameters.combinations(self.tune)  # before anything has that many values
            if not self.take_storage():
                return False
            self.open_study()
        except storage.LostError as error:
            self.problem = rounds.Cause(now(), "Gather", str(error))
            self.result = rounds.Finish(0, int(signal.SIGUSR2))
            return False
        except (study.StudyError, storage.StorageError, parameters.ParameterError) as error:
            self.refuse(str(error))
            return False
        except Exception as error:  # of the disk, or whatever a module raises that is broken
            self.refuse(f"open the study: {error!r}")
            return False
        if self.is_stopping:
            self.trials.stop()
        return True

    def take_storage(self) -> bool:
        """Wait for the lock of the storage."""
        directory = self.tune["storage"]
        if not directory:
            return True
        storage.make_directory(directory)
        self.lock = storage.Lock(directory, {name: self.description[name] for name in ("job", "uid", "attempt")})
        bound, begin = self.description["firstGatherSeconds"], now()
        while True:
            holder = self.lock.take(now())
            if holder is None:
                self.holder = None
                return True
            if self.holder is None:
                self.console.note(f"waits for storage {directory}: {describe_holder(holder)} has it")
            self.holder = holder
            self.reporter.write(self.encode())
            until = now() + storage.LOOK_SECONDS
            while now() < until and not self.is_stopping:
                do_posted(self.posted, False)
            if self.is_stopping:
                self.result = rounds.Finish(128 + signal.SIGTERM, 0)
                return False
            if bound and now() - begin >= bound:
                self.problem = rounds.Cause(now(), "Gather", f"{describe_holder(holder)} has storage {directory} after {bound} s")
                self.result = rounds.Finish(0, int(signal.SIGUSR2))
                return False

    def open_study(self) -> None:
        """Open the study, and take its trials."""
        path = None
        with self.beating():
            if self.lock is not None:
                path = os.path.join(self.tune["storage"], storage.JOURNAL)
                if storage.mend_journal(path):
                    self.console.note(f"cut off an operation that was not written to its end from {path}")
            self.study = self.library.Study(self.tune, path, self.check_storage)
            known = self.study.trials()
        self.trials = trials.Trials(self.description, known, now())
        if known:
            left = f", of which {len(self.trials.left)} run again" if self.trials.left else ""
            self.console.note(f"continues with {len(known)} trials{left}")
            self.show_table()
        fits, parallel = self.tune["fits"], self.tune["parallelTrials"]
        if fits and fits < parallel:
            self.console.note(f"runs {fits} of {parallel} trials at a time, as no more fit")
        self.is_stale = True

    @contextlib.contextmanager
    def beating(self) -> Any:
        """Renew the lock meanwhile: a journal of a million steps takes longer to read than the lock may wait."""
        is_done = threading.Event()

        def beat() -> None:
            while not is_done.wait(storage.BEAT_SECONDS):
                with contextlib.suppress(OSError, storage.LostError):  # the next write finds it
                    self.lock.beat(now())

        thread = threading.Thread(target=beat, name="tune-beat", daemon=True)
        if self.lock is not None:
            thread.start()
        try:
            yield
        finally:
            is_done.set()
            if self.lock is not None:
                thread.join()

    def check_storage(self) -> None:
        """Raise where the storage is another driver's."""
        if self.lock is not None:
            self.lock.check(now())

    def refuse(self, message: str) -> None:
        """Take that the study cannot begin."""
        self.problem = rounds.Cause(now(), trials.STUDY, message, code=2)
        self.result = rounds.Finish(2, 0)

    def step(self) -> None:
        """Do what has to be done now."""
        for number, child in list(self.children.items()):
            if child.result is None:
                child.step()
            if not child.is_started and child.rounds.started is not None:
                child.is_started = True
                self.started = self.started or child.rounds.started
                self.trials.started(number, now())
            if child.result is not None:
                self.end(number, child)
        self.keep_storage()
        if self.drawer.is_drawing():
            self.trials.drawing(now())
        for action in self.trials.step(now()):
            getattr(self, type(action).__name__.lower())(*action)
        self.cluster.gather(any(share.is_gathering for share in self.shares.values()))
        if self.is_stale and now() >= self.table_due:
            self.write_table()
        self.reporter.write(self.encode())

    def keep_storage(self) -> None:
        """Renew the lock."""
        try:
            if self.lock is not None:
                self.lock.beat(now())
        except storage.LostError as error:
            self.trials.fail(str(error), now(), signal.SIGUSR2)
        except OSError:  # it is tried again, until the lock counts as lost
            pass

    # What child gangs want.

    def begin(self, number: int) -> Optional[Tuple[int, Mapping[str, str]]]:
        """Return a trial with its values for a child gang that has its places, or nothing: there is none, or its values are being drawn."""
        wanted = self.trials.begin(number)
        if wanted is None:
            return None
        with self.writing():
            draw = self.study.propose(wanted)
            proposal = None if draw is None else self.drawer.take(wanted, draw)
            if draw is not None and proposal is None:
                return None
            given = round(time.time(), 1), self.description["attempt"], proposal
            trial = self.study.draw(*given) if wanted < 0 else self.study.resume(wanted, *given)
            self.trials.began(number, trial, now())
            self.children[number].began_at = now()
            self.is_stale = True
            return trial.number, trial.values
        return None

    def take_draw(self) -> None:
        """Take that the values of a trial are there, for the first child gang that waits for some."""
        for child in list(self.children.values()):
            child.begin_drawn()

    def take_step(self, number: int, step: int, value: float) -> None:
        """Take a value of the metric."""
        if self.trials.is_watched(number):
            with self.writing():
                if self.study.report(self.trials.children[number].trial, step, value):
                    self.trials.prune(number, step)

    # What the trials want.

    def open(self, number: int) -> None:
        """Start a child gang."""
        share = self.shares[number] = Share(self.cluster, number)
        child = self.children[number] = Child(number, self.description, share, (self.console, self.posted), self)
        child.take_drain(self.drains)

    def close(self, number: int) -> None:
        """Give up a child gang."""
        self.children.pop(number).give_up()
        del self.shares[number]

    def stop(self, number: int) -> None:
        """End the trial of a child gang."""
        self.children[number].take_stop()

    def next(self, number: int) -> None:
        """Have a child gang begin another trial."""
        self.children[number].follow()

    def tell(self, number: int, state: str, value: Optional[float], message: str, seconds: float) -> None:
        """Write what a trial has come to."""
        shown = "" if value is None else f", {self.tune['metric']}={trials.number_text(value)}"
        self.console.note(f"trial {number}: {state.lower()}{shown}{': ' if message else ''}{message}")
        self.is_stale = True
        with self.writing():
            self.study.tell(number, state, value, message, seconds)

    def finish(self, code: int, signal_number: int) -> None:
        """End the driver."""
        self.result = rounds.Finish(code, signal_number)

    # What is posted.

    def take_group(self, group: int, state: str) -> None:
        """Take what Ray has of a group."""
        if group // SPAN in self.children:
            self.children[group // SPAN].take_group(group % SPAN, state)

    def take_drain(self, nodes: List[str]) -> None:
        """Take which nodes drain."""
        self.drains = nodes
        for child in self.children.values():
            child.take_drain(nodes)

    def take_nodes(self, is_coming: bool, nodes: List[capacity.Node]) -> None:
        """Take what nodes have free."""
        for child in self.children.values():
            child.take_nodes(is_coming, nodes)

    def take_refusal(self, message: str) -> None:
        """Take that Ray refuses a group: it would refuse that of each child gang."""
        for child in self.children.values():
            child.take_refusal(message)

    def take_stop(self) -> None:
        """Take that the attempt has to end."""
        self.is_stopping = True
        if self.trials is not None:
            self.trials.stop()

    # What they have in common.

    def end(self, number: int, child: Child) -> None:
        """Take that nothing is left of a trial."""
        end = child.end()
        state = child.rounds.report()
        self.lost_pods += [pod for pod in state["lost"] if pod not in self.lost_pods]
        self.past = rounds_of((child.rounds,), self.past)
        if end.cause is not None:
            for line in end.cause.lines[-LINES:]:
                child.console.note(f"{end.cause.process}: {line}")
            child.console.note(describe(end.cause))
        self.trials.ended(number, end, now(), now() - child.began_at if child.has_begun else 0.0)

    @contextlib.contextmanager
    def writing(self) -> Any:
        """Have the attempt end where the journal takes nothing."""
        try:
            yield
        except storage.LostError as error:
            self.trials.fail(str(error), now(), signal.SIGUSR2)
        except DrawError as error:
            self.trials.fail(str(error), now())
        except Exception as error:  # of the disk, or whatever Optuna raises for what it reads
            text = error.strerror if isinstance(error, OSError) else repr(error)
            self.trials.fail(f"write to the journal of {self.tune['storage'] or 'the study'}: {text}", now())

    def write_table(self) -> None:
        """Write the table of trials."""
        begin = now()
        self.is_stale = False
        if self.lock is not None:
            with contextlib.suppress(OSError, storage.LostError):
                self.lock.check(begin)
                storage.write_table(self.tune["storage"], storage.print_csv(self.rows(sorted(self.trials.trials.values(), key=_number))))
        self.table_due = begin + max(TABLE_SECONDS, TABLE_TIMES * (now() - begin))

    def show_table(self) -> None:
        """Write the table to the job's output."""
        found = sorted(self.trials.trials.values(), key=_number)
        chosen = storage.choose(found, self.tune["direction"])
        if len(chosen) < len(found):
            self.console.note(f"the table has {len(chosen)} of {len(found)} trials: the best, and the last")
        self.console.show("".join(f"{line}\n" for line in storage.print_lines(self.rows(chosen))))

    def rows(self, chosen: List[trials.Trial]) -> List[List[str]]:
        """Return the table of some trials."""
        return storage.table(self.tune, chosen, stamp)

    def encode(self) -> bytes:
        """Return the report."""
        offset = time.time() - now()
        tune = {name: 0 for name in ("trials", "running", "succeeded", "failed", "pruned", "waiting")}
        tune["best"] = None
        if self.trials is not None:
            tune = self.trials.report()
        holder = "" if self.holder is None else describe_holder(self.holder)
        return report.encode(self.state(), self.waiting_text(), offset, tune={**tune, "holder": holder[:120]})

    def state(self) -> Dict[str, Any]:
        """Return the state of all child gangs together, as rounds have that of one."""
        states = [child.rounds.report() for child in self.children.values()]
        # A child gang that has its places begins its next trial within a second: the job runs all the time.
        running = [
            state for child, state in zip(self.children.values(), states)
            if state["state"] == "Running" or self.started is not None and child.rounds.hand.is_minimum_ready()
        ]
        counted = running or states
        causes = [state["last"] for state in states if state["last"]]
        causes += [cause for cause in (self.trials.last if self.trials else None, self.problem) if cause]
        last = max(causes, key=lambda cause: cause.time, default=None)
        if self.result is not None and self.result != rounds.Finish(0, 0):
            last = self.problem or (self.trials.last if self.trials else None)
        totals = rounds_of([child.rounds for child in self.children.values()], self.past)
        name = "Ended" if self.result is not None else "Running" if running else "Gathering"
        lost = [*self.lost_pods, *(pod for state in states for pod in state["lost"] if pod not in self.lost_pods)]
        rounds_done, restarts = (min(totals[one], report.MOST_ROUNDS - 1) for one in ("rounds", "restarts"))
        replicas, ready = (min(sum(state[one] for state in counted), report.MOST_PLACES) for one in ("replicas", "ready"))
        return {
            "state": name, "round": rounds_done + 1, "restarts": restarts, "losses": 0, "replicas": replicas, "ready": ready,
            "started": self.started, "last": last, "lost": lost[-LINES:],
        }

    def waiting_text(self) -> str:
        """Return what the job waits for."""
        if self.holder is not None:
            return f"{describe_holder(self.holder)} has storage {self.tune['storage']}"
        waiting = [(child.console.trial, child.waiting_text()) for child in self.children.values() if child.is_waiting()]
        drawn = f"{self.tune['algorithm']} draws the values of a trial" if self.drawer.is_drawing() else ""
        return next((text if trial is None else f"trial {trial}: {text}" for trial, text in waiting if text), drawn)

    def leave(self) -> None:
        """Write the table, give the storage back, and write the last report and all output that waits."""
        if self.trials is not None:
            self.write_table()
            self.show_table()
        if self.lock is not None:
            with contextlib.suppress(OSError):
                self.lock.release(now())
        cause = self.problem or (self.trials.last if self.trials else None)
        if self.is_stopping:
            self.console.note("stopped")
        elif cause is not None and self.result != rounds.Finish(0, 0):
            self.console.note(cause.message)
        self.reporter.close(self.encode())
        self.console.close()


def rounds_of(found: Any, past: Optional[Mapping[str, int]] = None) -> Dict[str, int]:
    """Return how often processes started again, and how often that counted as a restart."""
    past = past or {"rounds": 0, "restarts": 0}
    return {
        "rounds": past["rounds"] + sum(one.restarts + one.losses + one.drains for one in found),
        "restarts": past["restarts"] + sum(one.restarts for one in found),
    }


def _number(trial: trials.Trial) -> int:
    return trial.number


def describe_holder(holder: Mapping[str, Any]) -> str:
    """Return who has a storage, for people."""
    if "job" not in holder:
        return "another driver"
    return f"job {str(holder['job'])[:63]} (attempt {holder['attempt']})"


def stamp(seconds: float) -> str:
    """Return a second of Unix time as text."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
