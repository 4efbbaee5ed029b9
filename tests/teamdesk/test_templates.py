"""Rules of the front end that a glance would miss."""

import re
from pathlib import Path

import pytest
from django.conf import settings

ROOT = settings.BASE_DIR
TEMPLATES = sorted(ROOT.glob("templates/**/*.html"))
# Mail programs know no style sheets of ours: styles are inline there, and there alone.
MAIL = ROOT / "templates/mail"
IN_MAIL = {"an inline style", "a style element"}
APPS = ("teamdesk", "exports", "tickets", "tasks")
SOURCES = [path for app in APPS for path in ROOT.glob(f"{app}/**/*.py")]
FORBIDDEN = {
    "an inline style": r"\sstyle=",
    "an inline script": r"<script(?![^>]*\ssrc=)[^>]*>",
    "a style element": r"<style",
    "an event handler": r"\son[a-z]+=",
    "a script in an attribute": r"hx-on|javascript:|\bjs:",
    "something from another site": r"(src|href)=[\"']?(https?:)?//",
    "a query": r"\.(objects|filter|exclude)\b",
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_template_has(what):
    found = {
        str(path.relative_to(ROOT))
        for path in TEMPLATES
        if re.search(FORBIDDEN[what], path.read_text())
        and not (what in IN_MAIL and path.is_relative_to(MAIL))
    }
    assert found == set()


def test_the_icons_are_those_that_are_used():
    sprite = (ROOT / "static/icons.svg").read_text()
    known = set(re.findall(r'<symbol id="([^"]+)"', sprite))
    text = "\n".join(path.read_text() for path in [*TEMPLATES, *SOURCES])
    named = set(re.findall(r'{% icon "([^"]+)"', text) + re.findall(r'icon_name="([^"]+)"', text))
    named |= set(re.findall(r'icon_name\|default:"([^"]+)"', text))
    quoted = set(re.findall(r'"([a-z0-9-]+)"', text))
    assert named - known == set()
    assert known - quoted == set(), "not used any more"


def test_vendored_files_say_where_they_are_from():
    for folder in Path(ROOT / "static/vendor").iterdir():
        assert (folder / "LICENSE").exists()
        assert folder.name.rpartition("-")[2] in (folder / "README.md").read_text()
        for path in folder.glob("*.css"):
            assert "sourceMappingURL" not in path.read_text()
