"""What nobody asked for: time passes, Redis loses things or remembers them wrongly."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.model import ageing, world
from tests.model.base import Base

which = st.integers(0, 9)  # counts from the newest
QUEUES = ("short", "long")


class Trouble(Base):
    @rule(units=st.sampled_from([1, 2, 2, 3, 6, 6, 14, 40]))
    def time_passes(self, units):
        self.say(f"{units * ageing.UNIT} s pass")
        self.pass_time(units * ageing.UNIT)

    @precondition(lambda self: "losses" in self.troubles)
    @rule(what=st.sampled_from(["everything", "lists", "records", "delayed jobs", "watermarks"]))
    def the_queue_loses(self, what):
        self.say(f"the queue loses {what}")
        client = world.client()
        lost = {
            "everything": client.keys("*"),
            "lists": list(QUEUES),
            "records": client.keys("teamdesk:job:*"),
            "delayed jobs": ["teamdesk:delayed"],
            "watermarks": client.keys("teamdesk:watermark:*"),
        }[what]
        if lost:
            client.delete(*lost)

    @precondition(lambda self: self.tasks and "wrong records" in self.troubles)
    @rule(
        number=which,
        state=st.sampled_from(
            ["failed", "completed", "waiting", "active", "delayed", "nonsense", "a string"]
        ),
        attempt=st.sampled_from([-1, 0, 1, 1, 2]),
        age=st.sampled_from([-100, 0, 1, 2]),
        message=st.booleans(),
    )
    def a_record_is_wrong(self, number, state, attempt, age, message):
        """``attempt`` is relative to the ledger's, ``age`` in units of time."""
        task = list(self.tasks.values())[-1 - number % len(self.tasks)]
        self.say(f"the record of {task} says {state}, attempt {task.attempt + attempt}")
        client, key = world.client(), f"teamdesk:job:{task.job}"
        if state == "a string":
            client.set(key, state)
            return
        if not message or client.type(key) != b"hash":
            client.delete(key)
        at = world.queues().now - age * ageing.UNIT * 1_000_000
        if state == "delayed" and age == 0:  # rightly so, but for the sorted set
            at = world.rows()[task.pk]["score"]
        fields = {"state": state, "attempt": task.attempt + attempt, "at": at, "error": ""}
        if not message:
            fields["message"] = "of-another-life"
        client.hset(key, mapping=fields)

    @precondition(lambda self: self.tasks and "wrong times" in self.troubles)
    @rule(
        number=which,
        what=st.sampled_from(["delayed", "delayed", "watermark"]),
        units=st.sampled_from([-1, 0, 1, 20]),
    )
    def a_time_is_wrong(self, number, what, units):
        """In the set of delayed jobs or in a queue's watermark."""
        task = list(self.tasks.values())[-1 - number % len(self.tasks)]
        at = world.queues().now + units * ageing.UNIT * 1_000_000
        self.say(f"the {what} of {task} is set to {units * ageing.UNIT} s from now")
        if what == "delayed":
            world.client().zadd("teamdesk:delayed", {task.job: at})
        else:
            world.client().set(f"teamdesk:watermark:{task.kind.queue}", at)
