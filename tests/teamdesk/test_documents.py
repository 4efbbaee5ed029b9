"""What the documents say is so."""

import re

from tests.processes import ROOT

README = (ROOT / "README.md").read_text()
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def test_the_readme_lists_every_variable_and_no_other():
    settings = (ROOT / "teamdesk" / "settings.py").read_text()
    call = r'env\.\w+\(\s*"([A-Z_]+)"'
    read = set(re.findall(call, settings))
    listed = set(re.findall(r"^\| `([A-Z_]+)` \|", README, re.M))
    assert read == listed


def test_every_link_between_documents_leads_somewhere():
    broken = [
        f"{document.name}: {target}"
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text())
        if not (document.parent / target).exists()
    ]
    assert broken == []


def test_every_file_that_a_document_names_exists():
    missing = [
        f"{document.name}: {path}"
        for document in DOCUMENTS
        for path in re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", document.read_text())
        if not (ROOT / path).exists()
    ]
    assert missing == []


def test_every_setting_reader_that_a_document_names_exists():
    from teamdesk import environment

    named = {
        name for document in DOCUMENTS for name in re.findall(r"`env\.(\w+)`", document.read_text())
    }
    assert named and all(hasattr(environment, name) for name in named)
