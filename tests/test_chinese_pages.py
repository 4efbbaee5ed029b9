"""What a Chinese reader sees is Chinese: no page leaves an English word."""

import re
from datetime import time

import pytest
from django.utils import timezone, translation

from exports.models import Export, ScheduledExport
from tasks import registry
from tasks.models import DispatcherStatus
from tasks.worker import run_job
from tests.tickets.mail.test_letter import arrived, html_of, text_of
from tests.visible import VisibleTexts
from tickets.models import MailDelivery, Notification, SavedView, Ticket

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.5"}
# Names: of the product, formats, people, teams, zones, tags, kinds of tasks.
NAMES = {
    "TeamDesk",
    "CSV",
    "JSON",
    "Lines",
    "Excel",
    "UTC",
    "KB",
    "LDAP",
    "English",
    "REMINDER",
    "EXPORT",
    "SCHEDULED",
    "STRANDED",
    "SCHEDULES",
    "MAIL",
    "BULK",
    "PRUNE",
    "CANARY",
    "SHORT",
    "LONG",
    "Redis",
    "beat",
    "vpn",
    "Support",
}
NAMES |= {"Alice", "Ames", "AA", "Bob", "Berg", "BB", "Vera", "Vogel", "VV", "alice", "bob", "vera"}
NAMES |= {"root", "RO", "support", "mara", "example", "org"}
WORD = re.compile(r"[A-Za-z]{2,}")


@pytest.fixture(autouse=True)
def _only_our_kinds(monkeypatch):
    """Kinds that other tests registered have names of their own."""
    ours = {
        name: kind
        for name, kind in registry.kinds().items()
        if not kind.handler.__module__.startswith("tests.")
    }
    monkeypatch.setattr(registry, "_kinds", ours)


def english_in(response) -> list[str]:
    """Texts of the page with a word that is no name."""
    page = response.content.decode()
    assert '<html lang="zh-hans"' in page
    return [
        text
        for text in VisibleTexts(page).texts
        if any(word not in NAMES for word in WORD.findall(_without_examples(text)))
    ]


def said_on(response) -> str:
    """What the page says, which has no English word."""
    assert english_in(response) == []
    return " ".join(VisibleTexts(response.content.decode()).texts)


def _without_examples(text):
    return re.sub(r"Europe/Berlin|Asia/Shanghai|T17:00", "", text)


@pytest.fixture
def desk(alice, bob, vera, support):
    """One ticket with all there is to tell of it, in Chinese."""
    ticket = Ticket.objects.open(
        by=alice,
        team=support,
        subject="打印机着火了",
        description="三楼的那台。",
        requester_name="马拉",
        requester_email="mara@example.org",
        tags=["vpn"],
    )
    ticket.assign(bob, by=alice)
    ticket.set_priority("urgent", by=bob)
    ticket.set_status("on_hold", by=bob)
    ticket.edit(by=alice, changes={"description": "四楼的那台。", "due_at": timezone.now()})
    ticket.comment(by=alice, body="谢谢你的报告。")
    ticket.comment(by=alice, body="又是四号机架。", is_public=False)
    Notification.objects.notify([bob], kind="reminder", cause="due", ticket=ticket, text="打印机")
    Notification.objects.notify([bob], kind="export_ready", cause="export", text="1200")
    return ticket


@pytest.fixture
def chinese(client, bob):
    """bob's browser, who chose Chinese, though it asks for English."""
    bob.language = "zh-hans"
    bob.save()
    client.force_login(bob)
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "en-US,en"
    return client


PAGES = {
    "list": "/tickets/",
    "filtered": "/tickets/?status=on_hold&priority=urgent&assignee=me&tags=vpn&overdue=1"
    "&created_after=2020-01-01&updated_before=2999-01-01&sort=due",
    "wrong filters": "/tickets/?status=x&created_after=x&assignee=x",
    "nothing found": "/tickets/?q=没有",
    "ticket": "/tickets/{ticket}/",
    "bulk change": "/tickets/bulk/?all=1",
    "chosen bulk change": "/tickets/bulk/?id={ticket},999999999",
    "bulk change of nothing": "/tickets/bulk/",
    "new": "/tickets/new/",
    "edit": "/tickets/{ticket}/edit/",
    "dashboard": "/dashboard/",
    "dashboard of no team": "/dashboard/?team=999&days=7",
    "notifications": "/notifications/",
    "exports": "/exports/",
    "new export": "/exports/new/?status=on_hold",
    "new export of conversations": "/exports/new/?status=on_hold&row_kind=conversation",
    "new export of changes": "/exports/new/?row_kind=history&format=xlsx&time_zone=Asia/Shanghai",
    "new export of nothing": "/exports/new/?q=没有&row_kind=history",
    "new export of chosen tickets": "/exports/new/?id={ticket}&selected=1",
    "none chosen": "/exports/new/?selected=1",
    "chosen tickets": "/tickets/?id={ticket}",
    "wrongly chosen tickets": "/tickets/?id=-1",
    "saved view": "/tickets/?view={view}",
    "changed view": "/tickets/?view={view}&q=&columns=tags&columns=creator&columns=resolved_at",
    "lost place": "/tickets/?cursor=x",
    "saved views": "/tickets/views/",
    "new view": "/tickets/views/new/?status=x",
    "edit view": "/tickets/views/{view}/edit/",
    "scheduled exports": "/exports/schedules/",
    "new scheduled export": "/exports/schedules/new/?status=on_hold",
    "edit scheduled export": "/exports/schedules/{schedule}/edit/",
    "profile": "/accounts/profile/",
}


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_are_chinese(name, chinese, desk):
    scheduled = ScheduledExport.objects.schedule(
        desk.assignee, name="每日", rhythm="weekly", weekdays=[1], time_of_day=time(8)
    )
    view = SavedView.objects.save_view(
        desk.assignee, name="火", team=desk.team, filters={}, zone="UTC", columns=["id"]
    )
    path = PAGES[name].format(ticket=desk.pk, schedule=scheduled.pk, view=view.pk)
    page = chinese.get(path)
    assert page.status_code == 200
    assert english_in(page) == []


@pytest.mark.django_db(transaction=True)
def test_a_bulk_change_is_chinese(chinese, alice, desk):
    form = {"tickets": f"{desk.pk}:{desk.version},999999999:1", "priority": "high"}
    refused = chinese.post("/tickets/bulk/", {"tickets": form["tickets"], "due_at": "x"})
    assert (refused.status_code, english_in(refused)) == (422, [])
    desk.refresh_from_db()
    desk.set_priority("low", by=alice)
    page = chinese.post("/tickets/bulk/", form).url
    assert english_in(chinese.get(page)) == []
    for verb in ("cancel", "retry"):
        chinese.post(f"{page}{verb}/")
        assert english_in(chinese.get(page)) == []
    run_job(int(page.split("/")[-2]), 1)
    assert english_in(chinese.get(page)) == []


def test_a_viewers_ticket_is_chinese(client, vera, desk):
    client.force_login(vera)
    assert english_in(client.get(f"/tickets/{desk.pk}/", headers=CHINESE)) == []


def test_what_is_refused_is_refused_in_chinese(chinese, desk):
    opened = chinese.post("/tickets/new/", {"subject": " ", "team": "x", "due_at": "x"})
    assert opened.status_code == 422
    assert english_in(opened) == []
    changed = chinese.post(f"/tickets/{desk.pk}/status/", {"status": "x", "version": "1"})
    assert changed.status_code == 422
    assert english_in(changed) == []
    profile = chinese.post("/accounts/profile/", {"language": "xx", "time_zone": "Nowhere"})
    assert profile.status_code == 422
    assert [
        text for text in english_in(profile) if "Nowhere" not in text and "xx" not in text
    ] == []


def test_a_conflict_is_told_in_chinese(chinese, alice, desk):
    seen = desk.version
    desk.refresh_from_db()
    desk.set_priority("low", by=alice)
    changed = chinese.post(f"/tickets/{desk.pk}/priority/", {"priority": "high", "version": seen})
    assert changed.status_code == 409
    assert "低" in changed.content.decode()
    assert english_in(changed) == []


def test_a_view_that_another_changed_is_told_in_chinese(chinese, alice, desk):
    view = SavedView.objects.save_view(
        alice, name="火", team=desk.team, filters={}, zone="UTC", columns=["id"]
    )
    desk.team.memberships.filter(user=desk.assignee).update(role="lead")
    page = chinese.post(f"/tickets/views/{view.pk}/edit/", {"name": "", "version": "1"})
    assert page.status_code == 422
    assert english_in(page) == []
    view.change(alice, 1, name="水")
    fields = {"name": "土", "version": "1", "columns": ["id"]}
    page = chinese.post(f"/tickets/views/{view.pk}/edit/", fields)
    assert page.status_code == 409
    assert english_in(page) == []


def test_what_was_done_is_said_in_chinese(chinese, desk):
    page = chinese.post(f"/tickets/{desk.pk}/resolve/", follow=True)
    assert "工单已解决。" in page.content.decode()
    assert english_in(page) == []


@pytest.mark.parametrize("status", ["WAITING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])
def test_exports_are_chinese_in_every_state(status, chinese, desk, exported):
    export = exported(status)
    assert english_in(chinese.get(f"/exports/{export.pk}/")) == []
    assert english_in(chinese.get("/exports/")) == []


@pytest.fixture
def exported(chinese):
    def make(status):
        chinese.post("/exports/new/", {"status": "on_hold", "columns": ["id", "subject"]})
        export = Export.objects.get()
        task = export.task
        task.status = status
        task.execution_id = "0b3c1f0e-3a53-4a3a-8a2c-0d6b6c1c7a11" if status == "RUNNING" else None
        if status == "COMPLETED":
            Export.objects.update(rows=1, size=2048)
        if status in {"COMPLETED", "FAILED", "CANCELLED"}:
            task.finished_at = timezone.now()
        task.save()
        return export

    return make


def test_a_missing_page_is_chinese(chinese, settings):
    settings.DEBUG = False
    page = chinese.get("/tickets/999/")
    assert page.status_code == 404
    assert "页面不存在" in page.content.decode()
    assert english_in(page) == []


def test_strangers_are_greeted_in_their_browsers_language(client, db):
    page = client.get("/accounts/login/", headers=CHINESE)
    assert "登录 TeamDesk" in page.content.decode()
    assert english_in(page) == []
    wrong = client.post("/accounts/login/", {"username": "x", "password": "x"}, headers=CHINESE)
    assert english_in(wrong) == []
    assert b'<html lang="en"' in client.get("/accounts/login/").content


def test_a_persons_choice_beats_the_browsers(client, alice):
    alice.language = "en"
    alice.save()
    client.force_login(alice)
    page = client.get("/tickets/", headers=CHINESE).content.decode()
    assert '<html lang="en"' in page
    assert "New ticket" in page


# Django's own texts, which its Chinese catalogue lacks, and the label of a hidden field.
DJANGOS = {
    "Add link",
    "After you’ve created a user, you’ll be able to edit more user options.",
    "Change or view list link",
    "False",
    "ID",
    "Model name",
    "Search",
    "True",
    "Version seen:",
}
ADMIN = [
    "/admin/",
    "/admin/tasks/backgroundtask/",
    "/admin/tasks/chore/",
    "/admin/tasks/dispatcherstatus/",
    "/admin/tickets/",
    "/admin/tickets/ticket/",
    "/admin/tickets/ticket/{ticket}/change/",
    "/admin/tickets/team/",
    "/admin/tickets/team/add/",
    "/admin/tickets/user/",
    "/admin/tickets/user/add/",
    "/admin/tickets/notification/",
    "/admin/tickets/maildelivery/",
    "/admin/exports/export/",
    "/admin/exports/scheduledexport/",
]


@pytest.fixture
def chinese_root(client, root):
    root.language = "zh-hans"
    root.save()
    client.force_login(root)
    return client


@pytest.mark.parametrize(
    "query", ["", "?as=tables&hours=1", "?kind=REMINDER&status=WAITING", "?ticket=x&error=%00"]
)
def test_operations_are_chinese(query, chinese_root, desk):
    # What the tasks' own errors say is data: none has one here.
    assert english_in(chinese_root.get(f"/operations/{query}")) == []
    DispatcherStatus.record_start()
    DispatcherStatus.record_success(0.1, {})
    assert english_in(chinese_root.get(f"/operations/{query}")) == []


def test_a_tasks_life_is_chinese(chinese_root, desk):
    task = desk.background_tasks.get(kind="REMINDER")
    assert run_job(task.pk, task.run) == "COMPLETED"
    page = chinese_root.get(f"/operations/tasks/{task.pk}/")
    execution = str(task.attempts.get().execution_id)
    assert [text for text in english_in(page) if text not in (execution, task.request_id)] == []


def test_mail_is_chinese(chinese, desk, alice, bob):
    bob.mail_commented = True
    bob.save()
    desk.comment(by=alice, body="又着火了。")
    with translation.override("en"):
        mails = {each.kind: arrived(each) for each in MailDelivery.objects.filter(recipient=bob)}
    assert mails.keys() >= {"assigned", "commented"}
    for message in mails.values():
        texts = VisibleTexts(html_of(message)).texts + text_of(message).splitlines()
        said = [re.sub(r"https?://\S+", "", text) for text in texts]
        assert [text for text in said if set(WORD.findall(text)) - NAMES] == []


@pytest.mark.parametrize("path", ADMIN)
def test_the_admin_is_chinese(path, chinese_root, desk):
    page = chinese_root.get(path.format(ticket=desk.pk), follow=True)
    assert page.status_code == 200
    assert set(english_in(page)) <= DJANGOS
