"""docs/alerts.yml names nothing that /metrics does not show, and operations.md explains it all."""

import re

import promql_parser
import pytest
import yaml

from tasks.dispatcher import dispatch_once
from tasks.models import BackgroundTask, DispatcherStatus
from tasks.worker import run_job
from tests.processes import ROOT

ALERTS = yaml.safe_load((ROOT / "docs" / "alerts.yml").read_text())
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]


@pytest.fixture
def shown(client, settings, transactional_db):
    """Names of all that /metrics shows once a round and the canaries went well."""
    settings.TEAMDESK_CHORES = True
    dispatch_once()
    for task in BackgroundTask.objects.filter(kind__startswith="CANARY"):
        run_job(task.pk, 0)
    assert DispatcherStatus.current().last_succeeded_at
    lines = client.get("/metrics").text.splitlines()
    return {re.match(r"\w+", line)[0] for line in lines if not line.startswith("#")}


def test_every_metric_of_the_rules_is_shown(shown):
    named = {name for rule in RULES for name in re.findall(r"teamdesk_\w+", rule["expr"])}
    assert len(named) > 5
    assert named - shown == set()


def test_every_metric_of_the_operations_page_is_shown(shown):
    named = set(re.findall(r"`(teamdesk_\w+)", OPERATIONS))
    families = shown | {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    assert len(named) > 15
    assert named - families == set()


def test_every_metric_that_is_shown_is_explained(shown):
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    ours = {name for name in families if name.startswith("teamdesk_")}
    unexplained = {name for name in ours if not name.endswith("_created")} - set(
        re.findall(r"`(teamdesk_\w+)", OPERATIONS)
    )
    assert unexplained == set()


def test_every_rule_is_whole():
    for rule in RULES:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert re.fullmatch(r"TeamDesk\w+", rule["alert"])
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"]["summary"].endswith(".")
        assert re.fullmatch(r"\d+m", rule.get("for", "1m"))
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_every_expression_is_promql():
    for rule in RULES:
        promql_parser.parse(rule["expr"])


def test_every_alert_is_explained_under_its_name():
    explained = set(re.findall(r"^### (TeamDesk\w+)$", OPERATIONS, re.MULTILINE))
    assert explained == {rule["alert"] for rule in RULES}
