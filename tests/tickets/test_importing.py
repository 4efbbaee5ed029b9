"""import_tickets: files of every sort go in once, and defects are named with their line."""

import io
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from tasks.models import BackgroundTask
from tests.processes import ROOT
from tickets.importing.mapping import Mapping, MappingError, as_tag
from tickets.management.commands import import_tickets
from tickets.models import Comment, Ticket, TicketEvent, TicketStatus

HEADER = (
    "Ticket ID,Customer Name,Customer Email,Product Purchased,Ticket Type,Ticket Subject,"
    "Ticket Description,Ticket Status,Resolution,Ticket Priority,Ticket Channel,"
    "First Response Time,Time to Resolution"
)


def row(number, **changes):
    cells = {
        "id": str(number),
        "name": "Rita Rich",
        "email": "rita@example.org",
        "product": "Kettle 3000",
        "type": "Refund request",
        "subject": f"Kettle {number}",
        "description": "The {kettle} leaks.",
        "status": "Open",
        "resolution": "",
        "priority": "Medium",
        "channel": "Social media",
        "responded": "",
        "resolved": "",
    } | changes
    return ",".join(cells.values())


CLOSED = {
    "status": "Closed",
    "resolution": "A new lid.",
    "priority": "Critical",
    "responded": "2024-05-01 10:00:00",
    "resolved": "2024-05-01 09:00:00",  # before the response: it happens, and is kept
}


@pytest.fixture
def write(tmp_path):
    def write(*rows, header=HEADER, encoding="utf-8", newline="\n", text=None):
        path = tmp_path / "tickets.csv"
        text = newline.join([header, *rows, ""]) if text is None else text
        path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
        return path

    return write


@pytest.fixture
def load(support):
    """``load(path, **options)`` → (stdout, stderr)."""

    def load(path, **options):
        out, err = io.StringIO(), io.StringIO()
        call_command(
            "import_tickets", path, **({"team": "support"} | options), stdout=out, stderr=err
        )
        return out.getvalue().strip(), err.getvalue().strip()

    return load


# What a row becomes


def test_an_open_ticket(load, write):
    before = timezone.now()
    out, err = load(write(row(7)))
    assert out == "1 rows: 1 imported, 0 existed already, 0 could not be imported."
    assert err == ""
    ticket = Ticket.objects.get()
    assert (ticket.external_id, ticket.team.slug, ticket.subject) == ("7", "support", "Kettle 7")
    assert ticket.description == "The {kettle} leaks."
    assert (ticket.status, ticket.priority) == ("open", "normal")
    assert (ticket.requester_name, ticket.requester_email) == ("Rita Rich", "rita@example.org")
    assert ticket.tags == ["refund-request", "social-media", "kettle-3000"]
    assert (ticket.creator, ticket.assignee, ticket.due_at) == (None, None, None)
    assert ticket.first_responded_at is ticket.resolved_at is ticket.closed_at is None
    assert ticket.created_at == ticket.updated_at > before
    assert not ticket.comments.exists()


def test_a_closed_ticket_with_its_resolution(load, write):
    load(write(row(7, **CLOSED)))
    ticket = Ticket.objects.get()
    responded = datetime(2024, 5, 1, 10, tzinfo=UTC)
    resolved = datetime(2024, 5, 1, 9, tzinfo=UTC)
    assert (ticket.status, ticket.priority) == ("closed", "urgent")
    assert ticket.first_responded_at == responded
    assert ticket.resolved_at == ticket.closed_at == resolved
    assert (ticket.created_at, ticket.updated_at) == (resolved, responded)
    comment = Comment.objects.get()
    assert (comment.author, comment.author_text, comment.is_public) == (None, "imported", True)
    assert (comment.body, comment.created_at) == ("A new lid.", resolved)


def test_a_pending_ticket_was_created_at_its_first_response_at_the_latest(load, write):
    load(write(row(1, status="Pending Customer Response", responded="2024-05-01 10:00:00")))
    ticket = Ticket.objects.get()
    assert ticket.status == "pending"
    assert ticket.created_at == ticket.first_responded_at == datetime(2024, 5, 1, 10, tzinfo=UTC)


def test_history_says_imported_by_the_system(load, write):
    load(write(row(7)))
    event = TicketEvent.objects.get()
    assert (event.kind, event.actor, event.reason) == ("imported", None, "import")
    assert (event.new_value, event.version) == ("7", 1)


def test_quoted_cells_may_hold_anything(load, write):
    load(write(row(1, subject='"A, ""B"" — 退款 🙂"', description='"one\ntwo\r\nthree"')))
    ticket = Ticket.objects.get()
    assert ticket.subject == 'A, "B" — 退款 🙂'
    assert ticket.description == "one\ntwo\nthree"  # line breaks as everywhere


# Once


def test_a_second_run_adds_nothing(load, write):
    path = write(row(1), row(2, **CLOSED))
    load(path)
    out, _ = load(path)
    assert out == "2 rows: 0 imported, 2 existed already, 0 could not be imported."
    assert (Ticket.objects.count(), TicketEvent.objects.count()) == (2, 2)
    assert Comment.objects.count() == 1


def test_a_second_run_leaves_later_changes_alone(load, write, bob):
    path = write(row(1))
    load(path)
    Ticket.objects.get().edit(by=bob, changes={"subject": "Edited"})
    load(path)
    assert Ticket.objects.get().subject == "Edited"


def test_each_team_has_its_own_ids(load, write, billing):
    path = write(row(1))
    load(path)
    out, _ = load(path, team="billing")
    assert "1 imported" in out
    assert Ticket.objects.count() == 2


def test_an_id_that_appears_twice_in_a_file_is_named(load, write):
    out, err = load(write(row(1), row(2), row(1)))
    assert "2 imported, 0 existed already, 1 could not be imported" in out
    assert err == "line 4: the id “1” already appeared in line 2"


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_add_each_ticket_once(load, write, other, wait_until, support):
    path = write(row(1), row(2))
    tickets = Ticket.objects
    with transaction.atomic():
        load(path)
        second = other(lambda: load(path))
        wait_until(second.is_blocked, "the second import waits for the first")
    assert "0 imported, 2 existed already" in second.result()[0]
    assert tickets.count() == 2


@pytest.mark.django_db(transaction=True)
def test_people_open_tickets_while_an_import_runs(load, write, other, support, bob):
    with transaction.atomic():
        load(write(row(1)))
        opener = other(lambda: Ticket.objects.open(by=bob, team=support, subject="Meanwhile"))
        assert opener.result().subject == "Meanwhile"
    assert Ticket.objects.count() == 2


def test_a_dry_run_says_what_would_happen_and_adds_nothing(load, write):
    load(write(row(1)))
    out, err = load(write(row(1), row(2), row(3, status="Lost")), dry_run=True)
    assert out == "3 rows: 1 would be imported, 1 existed already, 1 could not be imported."
    assert err.startswith("line 4: ")
    assert Ticket.objects.count() == 1


# Bad rows


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"status": "Lost"}, "Ticket Status: “Lost” is not in the mapping (closed, open, pending"),
        ({"status": ""}, "Ticket Status: “”"),
        ({"priority": "Enormous"}, "Ticket Priority: “Enormous”"),
        ({"email": "nobody"}, "Customer Email: Enter a valid email address."),
        ({"subject": "  "}, "Ticket Subject: This field is required."),
        ({"subject": "x" * 201}, "Ticket Subject: At most 200 characters"),
        ({"id": ""}, "Ticket ID: This field is required."),
        ({"responded": "yesterday"}, "First Response Time: “yesterday” is not a time"),
        ({"resolved": "0001-01-01"}, "Time to Resolution: “0001-01-01” is not a time"),
        ({"description": "a\0b"}, "Ticket Description: Null characters are not allowed."),
        ({"resolved": "x,surplus"}, "14 columns instead of 13"),
        ({"name": '"a"b'}, "the row is malformed"),
    ],
)
def test_a_bad_row_is_named_and_the_others_go_in(load, write, changes, complaint):
    path = write(row(1), row(2, **changes), row(3))
    # A NUL at the beginning of a file would mean that it is no text.
    encoding = "utf-8" if "\0" in str(changes.get("description")) else None
    out, err = load(path, encoding=encoding)
    assert out == "3 rows: 2 imported, 0 existed already, 1 could not be imported."
    assert err.startswith("line 3: ") and complaint in err
    assert set(Ticket.objects.values_list("external_id", flat=True)) == {"1", "3"}


def test_lines_are_those_of_the_file_not_rows(load, write):
    long = row(1, description='"one\ntwo\nthree"')
    _, err = load(write(long, "", row(2, status="Lost"), row(3, priority="Huge")))
    assert [text.split(":")[0] for text in err.splitlines()] == ["line 6", "line 7"]


def test_a_file_that_was_cut_off_in_its_last_row(load, write):
    path = write(row(1), row(2))
    path.write_text(path.read_text()[:-60])
    out, err = load(path)
    assert "1 imported, 0 existed already, 1 could not be imported" in out
    assert "line 3: " in err and "was the file cut off?" in err


# Files that cannot be read


def refuse(load, path, **options):
    with pytest.raises(CommandError) as refusal:
        load(path, **options)
    assert not Ticket.objects.exists()
    return str(refusal.value)


def test_an_unclosed_quote_is_found_before_anything_is_imported(load, write):
    rows = [row(number) for number in range(1, 800)]
    text = refuse(load, write(*rows, row(800, description='"begins and never ends'), row(801)))
    assert "row that begins in line 801" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary file"),
        (b"\x89\xff\xfe", "is not utf-8: byte 0x89"),
        (b"a,b,c\n1,2,3\n", "missing columns: Ticket ID, Ticket Subject"),
        (b"a,b,c\n1,2,3\n", "found: a, b, c"),
        (HEADER.replace(",", ";").encode(), "perhaps the delimiter is ';'"),
        (HEADER.encode("utf-16-le"), "binary file"),
        ((HEADER + ",Ticket ID").encode(), "columns that appear twice: Ticket ID"),
        (HEADER.encode() + b"\n\xff\xfe\n", "is not utf-8"),
    ],
)
def test_unreadable_content(load, write, content, complaint):
    assert complaint in refuse(load, write(text=content))


def test_a_missing_file_and_a_folder(load, tmp_path):
    assert "No such file" in refuse(load, tmp_path / "none.csv")
    assert "directory" in refuse(load, tmp_path)


def test_what_is_no_file_to_read_twice(load, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "it is not a regular file; save what it holds in one" in refuse(load, pipe)
    assert "not a regular file" in refuse(load, "/dev/null")


@pytest.mark.parametrize("arguments", [[""], ["x.csv", "--mapping", ""]])
def test_an_empty_name_is_no_folder(support, arguments):
    with pytest.raises(CommandError, match="the name of a file is missing"):
        call_command("import_tickets", *arguments, "--team=support")


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_reader_that_has_left_is_no_failure(write, support):
    """``import_tickets … | true``: there is nobody to tell, and the tickets are in."""
    name = connection.settings_dict["NAME"]
    url = os.environ["DATABASE_URL"].replace("/teamdesk?", f"/{name}?")
    reader, out = os.pipe()
    os.close(reader)
    path = write(row(1), row(2, status="Lost"))
    for err in (subprocess.PIPE, subprocess.STDOUT):  # also … 2>&1 | true
        done = subprocess.run(
            [sys.executable, "manage.py", "import_tickets", path, "--team=support"],
            cwd=ROOT,
            env=os.environ | {"DATABASE_URL": url},
            stdout=out,
            stderr=err,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        if err == subprocess.PIPE:
            assert done.stderr.startswith("line 3: Ticket Status") and done.stderr.count("\n") == 1
    os.close(out)
    assert Ticket.objects.count() == 1


def test_a_header_alone_is_a_file_without_tickets(load, write):
    assert load(write())[0].startswith("0 rows: 0 imported")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"team": "nobody"}, "There is no team “nobody”. Teams: support."),
        ({"encoding": "klingon"}, "unknown encoding 'klingon'"),
        ({"encoding": "base64"}, "unknown encoding 'base64'"),
        ({"delimiter": "::"}, "The delimiter is one character"),
        ({"delimiter": '"'}, "The delimiter is one character"),
        ({"mapping": "/none.toml"}, "No such file"),
    ],
)
def test_bad_options(load, write, options, complaint):
    assert complaint in refuse(load, write(row(1)), **options)


# Encodings and delimiters


@pytest.mark.parametrize(
    ("encoding", "option"),
    [
        ("utf-8", None),
        ("utf-8", "utf8"),
        ("utf-8-sig", None),
        ("utf-8-sig", "utf-8"),
        ("utf-16", None),
        ("utf-32", None),
        ("utf-16-le", "utf-16-le"),
        ("gb18030", "gb18030"),
        ("gbk", "GB18030"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(load, write, encoding, option, newline):
    path = write(row(1, subject="我要退款"), encoding=encoding, newline=newline)
    load(path, encoding=option)
    assert Ticket.objects.get().subject == "我要退款"


@pytest.mark.parametrize(
    ("delimiter", "option"), [(";", ";"), ("\t", "tab"), ("\t", "\\t"), ("\t", "\t"), ("|", "|")]
)
def test_delimiters(load, write, delimiter, option):
    lines = [line.replace(",", delimiter) for line in (HEADER, row(1, description="x"))]
    load(write(*lines[1:], header=lines[0]), delimiter=option)
    assert Ticket.objects.get().tags == ["refund-request", "social-media", "kettle-3000"]


def test_other_columns_and_another_order_do_no_harm(load, write):
    header, cells = HEADER.split(","), row(1).split(",")
    pairs = [*reversed(list(zip(header, cells, strict=True))), ("Mood", "grim")]
    load(write(",".join(c for _, c in pairs), header=",".join(f" {h} " for h, _ in pairs)))
    assert Ticket.objects.get().subject == "Kettle 1"


# Mappings


@pytest.fixture
def mapping(tmp_path):
    def mapping(text):
        path = tmp_path / "mapping.toml"
        path.write_text(text)
        return path

    return mapping


SMALL = """
time_zone = "Asia/Shanghai"
[columns]
external_id = "nr"
subject = "what"
due_at = "due"
status = "state"
"""


def test_a_mapping_of_ones_own_with_due_dates(load, write, mapping, tomorrow, waiting_reminders):
    due = tomorrow.replace(microsecond=0)
    path = write(
        f"1,future,{due.isoformat()},open",
        "2,past,2024-01-01 08:00,open",
        f"3,done,{due.isoformat()},resolved",
        "4,none,,open",
        header="nr,what,due,state",
    )
    out, err = load(path, mapping=mapping(SMALL))
    assert ("4 imported" in out, err) == (True, "")
    future, past, done, _ = Ticket.objects.order_by("external_id")
    assert waiting_reminders(future) == [(1, due)]
    assert past.due_at == datetime(2024, 1, 1, 0, 0, tzinfo=UTC), "eight o'clock in Shanghai"
    assert BackgroundTask.objects.count() == 1
    assert done.resolved_at is not None and done.closed_at is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = [", "mapping.toml"),
        ("time_zone = 'Mars/Base'\n" + SMALL.replace("time_zone", "#"), "Mars/Base"),
        ("time_zone = 7\n" + SMALL.replace("time_zone", "#"), "time zone"),
        ("nonsense = 1\n" + SMALL, "unknown keys: nonsense"),
        ("tags = 'x'\n" + SMALL, "tags must be a list"),
        (SMALL + "color = 'x'", "unknown fields in [columns]: color"),
        (SMALL.replace('subject = "what"', ""), "which column is subject"),
        (SMALL + "[values.status]\nopen = 'ajar'", "names ajar"),
        (SMALL + "[values.color]\nred = 'x'", "[values] has tables for"),
        ("columns = 5", "[columns] must be a table"),
    ],
)
def test_a_bad_mapping_is_explained(mapping, text, complaint):
    with pytest.raises(MappingError) as refusal:
        Mapping.load(mapping(text))
    assert complaint in str(refusal.value)


def test_tags_are_readable():
    assert as_tag("  Social media ") == "social-media"
    assert as_tag("退款 请求") == "退款-请求"
    assert as_tag("--") == as_tag("") == ""
    assert as_tag("x" * 49 + " y") == "x" * 49


# A failure half-way


def test_whole_batches_stay_when_the_database_fails(load, write, monkeypatch):
    monkeypatch.setattr(import_tickets, "BATCH", 2)
    import_batch = type(Ticket.objects.all()).import_batch
    calls = []

    def fail_later(self, team, imports):
        calls.append(len(imports))
        if len(calls) == 3:
            raise OperationalError("server closed the connection")
        return import_batch(self, team, imports)

    path = write(*(row(number) for number in range(1, 8)), row(0, status="Lost"))
    with monkeypatch.context() as fault:
        fault.setattr(type(Ticket.objects.all()), "import_batch", fail_later)
        with pytest.raises(CommandError, match="4 tickets were imported before that"):
            load(path)
    assert Ticket.objects.count() == TicketEvent.objects.count() == 4
    out, _ = load(path)
    assert out == "8 rows: 3 imported, 4 existed already, 1 could not be imported."


def test_a_batch_goes_in_as_a_whole_or_not_at_all(support, monkeypatch):
    from tickets.models import ImportedComment, ImportedTicket

    def fail(*args, **kwargs):
        raise RuntimeError("disk full")

    monkeypatch.setattr(Comment.objects.__class__, "bulk_create", fail)
    with pytest.raises(RuntimeError):
        Ticket.objects.import_batch(
            support,
            [ImportedTicket("1", "S", comments=[ImportedComment("done", "imported")])],
        )
    assert not Ticket.objects.exists()
    assert not TicketEvent.objects.exists()


# The real thing


@pytest.mark.skipif(
    not os.environ.get("TEAMDESK_SAMPLE_CSV"),
    reason="TEAMDESK_SAMPLE_CSV does not name the sample of 8,469 customer support tickets",
)
def test_the_whole_sample_goes_in_exactly_once(load):
    import csv

    path = Path(os.environ["TEAMDESK_SAMPLE_CSV"])
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert load(path) == (
        f"{len(rows)} rows: {len(rows)} imported, 0 existed already, 0 could not be imported.",
        "",
    )
    tickets = {ticket.external_id: ticket for ticket in Ticket.objects.all()}
    comments = {comment.ticket_id: comment for comment in Comment.objects.all()}
    assert len(tickets) == len(rows) == TicketEvent.objects.filter(kind="imported").count()
    assert len(comments) == sum(bool(each["Resolution"]) for each in rows)
    assert not BackgroundTask.objects.exists()
    statuses = {"Open": "open", "Pending Customer Response": "pending", "Closed": "closed"}
    priorities = {"Low": "low", "Medium": "normal", "High": "high", "Critical": "urgent"}
    for each in rows:
        ticket = tickets[each["Ticket ID"]]
        responded, resolved = (
            datetime.fromisoformat(each[name]).replace(tzinfo=UTC) if each[name] else None
            for name in ("First Response Time", "Time to Resolution")
        )
        assert ticket.subject == each["Ticket Subject"]
        assert ticket.description == each["Ticket Description"]
        assert ticket.requester_name == each["Customer Name"]
        assert ticket.requester_email == each["Customer Email"]
        assert ticket.status == statuses[each["Ticket Status"]]
        assert ticket.priority == priorities[each["Ticket Priority"]]
        assert ticket.tags == [
            as_tag(each[name]) for name in ("Ticket Type", "Ticket Channel", "Product Purchased")
        ]
        assert ticket.first_responded_at == responded
        is_closed = ticket.status == TicketStatus.CLOSED
        assert ticket.resolved_at == ticket.closed_at == (resolved if is_closed else None)
        if each["Resolution"]:
            comment = comments[ticket.pk]
            assert (comment.body, comment.created_at) == (each["Resolution"], resolved)
    assert f"0 imported, {len(rows)} existed already" in load(path)[0]
    assert Ticket.objects.count() == len(rows)
