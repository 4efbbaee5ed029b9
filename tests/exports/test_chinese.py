"""What a Chinese reader is told of an export under way, of its file, and of what is refused."""

from datetime import timedelta

import pytest

from exports import turns
from exports.models import Export
from tasks.lease import Lease
from tests.exports.conftest import aged, reloaded
from tests.exports.test_progress import running
from tests.test_chinese_pages import said_on

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/exports/new/"


@pytest.fixture
def export(chinese, alice, ticket):
    ticket("打印机着火了")
    return Export.objects.request(alice, {}, ["id"], file_format="xlsx", announced_rows=2)


def page_of(export, browser) -> str:
    return said_on(browser.get(f"/exports/{export.pk}/"))


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (999, 10, "还需几秒"),
        (500, 30, "还需约 30 秒"),
        (400, 60, "还需约 2 分钟"),
        (10, 60, "还需约 2 小时"),
    ],
)
def test_how_long_it_takes(done, seconds, words, chinese, export):
    running(export, done, 1_000, timedelta(seconds=-seconds))
    assert words in page_of(export, chinese)
    assert words in said_on(chinese.get("/exports/"))


def test_that_it_waits_for_its_turn(chinese, export, alice, bob, run):
    second, _bobs = (Export.objects.request(person, {}, ["id"]) for person in (alice, bob))
    turns.take(export, Lease.claim(export.pk, 0))
    run(second)
    assert "正在排队" in page_of(second, chinese)


def test_what_became_of_its_file(chinese, export, run):
    ready = run(export)
    Export.objects.update(cut_cells=3)
    said = page_of(ready, chinese)
    assert "原先显示为 2 行，其间工单有变化。" in said
    assert "有 3 段文本超出工作簿单元格的长度上限" in said
    assert "Excel 工作簿" in said
    aged(ready, expires_at=timedelta(hours=-1))
    assert "文件已过期" in page_of(ready, chinese)
    refused = chinese.get(f"/exports/{ready.pk}/download/")
    assert refused.status_code == 410
    assert "文件已过期，请重新导出。" in said_on(refused)


def test_more_at_once_than_one_may(chinese, export, settings):
    settings.TEAMDESK_EXPORTS_PER_PERSON = 1
    assert "你有 1 个导出正在进行" in said_on(chinese.post(URL, {"columns": ["id"]}))


def test_more_rows_than_a_file_may_have(chinese, export, settings):
    settings.TEAMDESK_EXPORT_MAX_ROWS = 0
    assert "一个文件最多 0 行" in said_on(chinese.get(URL))


def test_more_bytes_than_one_may_keep(chinese, export, run, settings):
    run(export)
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = 1024
    said = said_on(chinese.get(URL))
    assert "你的文件已用完 1.0 KB 的上限。请删除不再需要的文件，或等最早的文件在" in said


def test_a_file_that_grows_too_large(chinese, export, run, settings):
    settings.TEAMDESK_EXPORT_MAX_BYTES_PER_PERSON = 1024
    failed = run(export)
    assert failed.task.status == "FAILED"
    assert "加上此文件，你的文件将超出 1.0 KB 的上限。" in page_of(failed, chinese)


@pytest.mark.parametrize(
    ("mistake", "complaint"),
    [
        ({"columns": ""}, "请至少选择一列。"),
        ({"time_zone": "x"}, "不是已知的时区"),
        ({"delimiter": "|"}, "不在以下可选值中"),
        ({"id": "x"}, "不是工单编号"),
        ({"selected": "1"}, "请在列表中至少选择一个工单。"),
    ],
)
def test_mistakes(mistake, complaint, chinese):
    answer = chinese.post(URL, {"columns": ["id"]} | mistake)
    assert answer.status_code == 422
    assert complaint in said_on(answer)


def test_other_rows_are_looked_at_first(chinese):
    asked = {"row_kind": "history", "shown_kind": "tickets", "columns": ["id"]}
    assert "列和行数已按所选的每行内容更新" in said_on(chinese.post(URL, asked))


def test_deleting_its_file(chinese, export, run):
    assert "删除文件" in page_of(run(export), chinese)
    chinese.post(f"/exports/{export.pk}/discard/")
    assert reloaded(export).is_expired
    assert "文件已过期" in page_of(export, chinese)
