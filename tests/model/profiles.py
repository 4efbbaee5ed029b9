"""How many examples, how long, and which: the quick ones of every test run, or the deep ones."""

import os

from hypothesis import HealthCheck, Phase, settings

_ALWAYS = {
    "deadline": None,  # nothing depends on speed
    "suppress_health_check": list(HealthCheck),
    "database": None,  # nothing is written into the checkout; the blob reproduces a failure
    "print_blob": True,
    "phases": [Phase.explicit, Phase.generate, Phase.shrink],
}
PROFILES = {
    # The same examples every time: a red run is the change's doing.
    "quick": settings(max_examples=60, stateful_step_count=50, derandomize=True, **_ALWAYS),
    # Others every time.
    "deep": settings(max_examples=2_000, stateful_step_count=80, **_ALWAYS),
}


def chosen() -> settings:
    return PROFILES[os.environ.get("TEAMDESK_MODEL", "quick")]
