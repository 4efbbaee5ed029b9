"""docker-compose.yml and Dockerfile name nothing that does not exist."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from celery.bin.celery import celery
from django.core.management import get_commands
from gunicorn.app.wsgiapp import WSGIApplication

from tasks.registry import QUEUES

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OURS = sorted(name for name, service in SERVICES.items() if service["image"] == "teamdesk")

# Read by gunicorn, Celery or prometheus-client, or by the images of PostgreSQL.
KNOWN_ELSEWHERE = {
    "REMAP_SIGTERM",
    "PROMETHEUS_MULTIPROC_DIR",
    "POSTGRES_USER",
    "POSTGRES_PASSWORD",
    "POSTGRES_DB",
}


def words(command) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else list(command)


def default_command() -> list[str]:
    text = re.search(r"^CMD (\[.*?\])$", DOCKERFILE, re.MULTILINE | re.DOTALL).group(1)
    return yaml.safe_load(text.replace("\\\n", ""))


def commands() -> dict[str, list[str]]:
    return {name: words(SERVICES[name].get("command") or default_command()) for name in OURS}


def checks(name) -> list[str]:
    return words(SERVICES[name].get("healthcheck", {}).get("test", []))


def test_it_has_the_parts_of_a_helpdesk():
    assert {"postgres", "redis", "web", "worker-short", "worker-long", "beat"} <= set(SERVICES)
    assert SERVICES["postgres"]["image"] == "postgres:18"


def test_every_command_of_ours_exists():
    for name, (program, *arguments) in commands().items():
        if program == "python":
            assert arguments[0] == "manage.py", name
            assert arguments[1] in get_commands(), name
        elif program == "gunicorn":
            module = ROOT / (arguments[0].replace(".", "/") + ".py")
            assert "application = " in module.read_text(), name
        else:
            assert program == "celery", name
            assert arguments[:2] == ["-A", "teamdesk"], name


@pytest.mark.parametrize("name", ["web", "worker-short", "worker-long", "beat"])
def test_every_option_of_ours_is_understood(name):
    """Each program reads its own command line, as far as that goes without starting."""
    program, *arguments = commands()[name]
    if program == "gunicorn":
        parser = WSGIApplication.__new__(WSGIApplication)
        parser.usage, parser.prog = None, None
        parser.load_default_config()
        options = parser.cfg.parser().parse_args(arguments)
        assert options.bind == ["0.0.0.0:8000"]
    else:
        _, _, subcommand, *rest = arguments
        command = celery.commands[subcommand]
        _, left_over, _ = command.make_parser(click.Context(command)).parse_args(rest)
        assert left_over == []


def test_every_check_of_ours_exists():
    assert checks("beat") == ["CMD", "python", "manage.py", "ready", "dispatcher"]
    assert "ready" in get_commands()
    assert "/healthz" in checks("web")[-1]
    for name in ("web", "worker-short", "worker-long", "beat"):
        assert checks(name)[0] in {"CMD", "CMD-SHELL"}


def test_every_queue_has_its_worker():
    served = {
        word.removeprefix("--queues=")
        for command in commands().values()
        for word in command
        if word.startswith("--queues=")
    }
    assert served == set(QUEUES)


def test_every_variable_is_read_by_somebody():
    settings = (ROOT / "teamdesk" / "settings.py").read_text()
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert variable in KNOWN_ELSEWHERE or f'"{variable}"' in settings, (name, variable)


def test_every_variable_of_the_readme_reaches_the_containers():
    """But the folder, which a container has for itself, and what the file decides."""
    readme = (ROOT / "README.md").read_text()
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", readme, re.MULTILINE))
    for name in OURS:
        missing = listed - {"TEAMDESK_VAR"} - set(SERVICES[name]["environment"])
        assert missing == set(), name


def test_every_dependency_is_there_and_can_be_waited_for():
    for name, service in SERVICES.items():
        for other, condition in service.get("depends_on", {}).items():
            assert other in SERVICES, (name, other)
            if condition["condition"] == "service_healthy":
                check = SERVICES[other]["healthcheck"]
                assert check.get("test") and not check.get("disable"), (name, other)


def test_nothing_starts_before_the_database_is_up_to_date():
    for name in set(OURS) - {"migrate"}:
        condition = SERVICES[name]["depends_on"]["migrate"]["condition"]
        assert condition == "service_completed_successfully", name
    assert SERVICES["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_all_that_stays_has_a_health_check_and_is_started_again():
    for name in set(SERVICES) - {"migrate"}:
        assert checks(name), name
        assert SERVICES[name]["restart"] == "unless-stopped", name


@pytest.mark.parametrize("queue", ["short", "long"])
def test_a_worker_is_asked_by_the_name_it_has(queue):
    service = SERVICES[f"worker-{queue}"]
    assert f"--hostname={queue}@%h" in words(service["command"])
    assert f"-d {queue}@$$HOSTNAME" in checks(f"worker-{queue}")[1]


@pytest.mark.parametrize("queue", ["short", "long"])
def test_a_worker_has_time_to_leave(queue):
    service = SERVICES[f"worker-{queue}"]
    assert service["environment"]["REMAP_SIGTERM"] == "SIGQUIT"
    assert int(service["stop_grace_period"].removesuffix("s")) > 10 + 5


def test_web_and_workers_can_be_scaled():
    for name in ("web", "worker-short", "worker-long", "beat"):
        assert "ports" not in SERVICES[name], "two containers cannot share a port of the machine"
        assert "container_name" not in SERVICES[name]


def test_secrets_come_from_the_environment_alone():
    for name in OURS:
        environment = SERVICES[name]["environment"]
        assert environment["SECRET_KEY"].startswith("${SECRET_KEY:?"), name
        assert "${POSTGRES_PASSWORD:?" in environment["DATABASE_URL"], name
        assert environment["DEBUG"] == "False", name
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"].startswith("${")
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert ".env" in ignored


def test_redis_keeps_messages_and_evicts_none():
    command = " ".join(SERVICES["redis"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_the_image_leaves_the_embedded_services_out_and_is_not_root():
    required = (ROOT / "requirements.txt").read_text()
    for package in re.search(r"grep -vE '\^\((.*)\)=='", DOCKERFILE).group(1).split("|"):
        assert f"\n{package}==" in required
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.MULTILINE) == ["teamdesk"]
