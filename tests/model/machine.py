"""The machine: all its rules together."""

from hypothesis.stateful import run_state_machine_as_test

from tests.model.gaps import Gaps
from tests.model.profiles import chosen
from tests.model.rounds import Rounds
from tests.model.steps import Steps
from tests.model.trouble import Trouble


class Ledger(Gaps, Trouble):
    """A rule that has more names is chosen more often: without these nothing would happen."""

    rounds = more_rounds = Rounds.round
    much_time_passes = more_time_passes = Trouble.time_passes
    runs, claims, more_claims = Steps.run, Steps.claim, Steps.claim
    finishes = more_finishes = Steps.finish
    faults = Rounds.round_with_a_fault
    recoveries = Gaps.recover_what_was_read


def play(settings=None) -> None:
    """Run the examples. Raises what broke, with the steps that lead there in its notes."""
    run_state_machine_as_test(Ledger, settings=settings or chosen())
