"""A Chinese reader's scheduled exports leave no English word, in any state and rhythm."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from exports.models import ScheduledExport
from tests.exports.schedules.conftest import form, run_due, schedule
from tests.test_chinese_pages import WORD, english_in, said_on
from tickets.models import MailDelivery

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/schedules/"
MONTHLY = {"rhythm": "monthly", "weekdays": []}


@pytest.fixture
def weekly(chinese, alice):
    return schedule(alice, name="每周报表")


@pytest.mark.parametrize(
    ("rhythm", "words"),
    [
        ({"rhythm": "daily", "weekdays": []}, "每天 08:00"),
        ({"weekdays": [1, 5]}, "每周星期一, 星期五 08:00"),
        (MONTHLY | {"day_of_month": 1}, "每月 1 日 08:00"),
        (MONTHLY | {"day_of_month": 30}, "每月 30 日（没有这一天时为最后一天）08:00"),
        (MONTHLY | {"day_of_month": 31}, "每月最后一天 08:00"),
    ],
)
def test_every_rhythm_is_told(rhythm, words, chinese, alice):
    scheduled = schedule(alice, name="报表", **rhythm)
    assert words in said_on(chinese.get(URL))
    assert english_in(chinese.get(f"{URL}{scheduled.pk}/edit/")) == []


def test_nothing_scheduled_yet(chinese):
    assert "还没有定时导出" in said_on(chinese.get(URL))


@pytest.mark.parametrize("row_kind", ["tickets", "conversation", "history"])
def test_a_new_one_of_every_kind_of_row(row_kind, chinese, weekly):
    page = chinese.get(f"{URL}new/?status=open&row_kind={row_kind}")
    assert "每周报表" in said_on(page)  # which may export this from now on


def test_one_that_is_late(chinese, weekly):
    ScheduledExport.objects.update(next_run_at=Now() - timedelta(hours=1))
    assert "已延误" in said_on(chinese.get(URL))


def test_why_one_is_paused(chinese, alice, support, weekly):
    support.memberships.filter(user=alice).delete()
    run_due(weekly)
    assert "所有者不属于任何团队。" in said_on(chinese.get(URL))
    assert "已暂停：所有者不属于任何团队。" in said_on(chinese.get(f"{URL}{weekly.pk}/edit/"))
    assert "你的定时导出“每周报表”已暂停" in said_on(chinese.get("/notifications/"))
    mail = MailDelivery.objects.get()
    assert not WORD.search(mail.excerpt)


def test_what_was_done_is_said(chinese, weekly):
    address = f"{URL}{weekly.pk}"
    assert "“每周报表”已暂停。" in said_on(chinese.post(f"{address}/pause/", follow=True))
    assert "已暂停。" in said_on(chinese.get(f"{address}/edit/"))
    changed = form(name="报表")
    saved = chinese.post(f"{address}/edit/", changed, follow=True)
    assert "“报表”已保存，目前处于暂停状态。" in said_on(saved)
    assert "“报表”下次导出时间：" in said_on(chinese.post(f"{address}/resume/", follow=True))
    assert "导出 #" in said_on(chinese.post(f"{address}/run/", follow=True))
    assert "最近的文件" in said_on(chinese.get(URL))
    assert "“报表”已删除。" in said_on(chinese.post(f"{address}/delete/", follow=True))


@pytest.mark.parametrize(
    ("mistake", "complaint"),
    [
        ({"name": " "}, "此项必填"),
        ({"weekdays": []}, "请至少选择一天。"),
        ({"rhythm": "monthly", "day_of_month": "32"}, "请选择 1 到 31 之间的日期。"),
        ({"zone": "x"}, "不是已知的时区"),
        ({"columns": []}, "请至少选择一列。"),
        ({"time_of_day": "8"}, "有效的时间"),
    ],
)
def test_mistakes_are_told(mistake, complaint, chinese):
    page = chinese.post(f"{URL}new/", form(name="报表") | mistake)
    assert page.status_code == 422
    assert complaint in said_on(page)


def test_too_many_are_refused(chinese, settings, weekly):
    settings.TEAMDESK_SCHEDULES_PER_PERSON = 1
    assert "你已有 1 个定时导出。" in said_on(chinese.post(f"{URL}new/", form(name="报表")))
