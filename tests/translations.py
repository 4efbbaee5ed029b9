"""The catalogue of Simplified Chinese: what the project says, merged into it and compiled.

``bin/messages`` runs this. It does the work of Django's ``makemessages`` and ``compilemessages``
without GNU gettext, which not every machine has. ``django.mo`` is kept in the repository beside
``django.po``, so that TeamDesk speaks Chinese with nothing to build first.
"""

import io
import sys
from dataclasses import dataclass, field
from pathlib import Path

import polib
from babel.messages.extract import extract
from django.utils.translation.template import templatize

ROOT = Path(__file__).parent.parent
CATALOGUE = ROOT / "locale/zh_Hans/LC_MESSAGES/django.po"
COMPILED = CATALOGUE.with_suffix(".mo")
FOLDERS = ("teamdesk", "tasks", "tickets", "exports", "templates")

# Which argument is what, as Babel writes it; "c" is the context.
_ONE, _PLURAL = (1,), (1, 2)
KEYWORDS = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop"), _ONE),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), _PLURAL),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}

Key = tuple[str | None, str]  # context and text: what a message is looked up by


@dataclass
class Message:
    plural: str = ""
    files: list[str] = field(default_factory=list)


def sources() -> list[Path]:
    """Every file that may say something to a person."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    found = [path for path in found if "migrations" not in path.parts]
    plain = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.txt")]  # of mail
    return sorted(found) + templates() + sorted(plain)


def templates() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.html"))


def used() -> dict[Key, Message]:
    """What code and templates say, in the order of their files."""
    messages: dict[Key, Message] = {}
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        for context, text, plural in _extract(path.read_text(), path.suffix):
            message = messages.setdefault((context, text), Message())
            message.plural = message.plural or plural
            if name not in message.files:
                message.files.append(name)
    return messages


def _extract(text: str, suffix: str):
    if suffix != ".py":
        # Python-like text, whose indentation is still the template's.
        text = "\n".join(line.lstrip() for line in templatize(text).splitlines())
    found = extract("python", io.BytesIO(text.encode()), KEYWORDS, options={"encoding": "utf-8"})
    for _line, message, _comments, context in found:
        singular, plural = message if isinstance(message, tuple) else (message, "")
        yield context, singular, plural


def key_of(entry: polib.POEntry) -> Key:
    return entry.msgctxt, entry.msgid


def main() -> int:
    catalogue = polib.pofile(str(CATALOGUE), wrapwidth=100)
    known = {key_of(entry): entry for entry in catalogue if not entry.obsolete}
    wanted = used()
    for key in [key for key in known if key not in wanted]:
        was = known[key].msgstr or known[key].msgstr_plural
        sys.stdout.write(f"Gone: {known[key].msgid!r}, was {was!r}\n")
    catalogue[:] = [_merged(known.get(key), key, message) for key, message in wanted.items()]
    catalogue.save()
    catalogue.save_as_mofile(str(COMPILED))
    missing = [entry for entry in catalogue if not entry.translated()]
    for entry in missing:
        sys.stdout.write(f"To translate: {entry.msgid!r}\n")
    return 1 if missing else 0


def _merged(known: polib.POEntry | None, key: Key, message: Message) -> polib.POEntry:
    context, text = key
    entry = polib.POEntry(msgctxt=context, msgid=text, msgid_plural=message.plural)
    if message.plural:
        entry.msgstr_plural = (known and known.msgstr_plural) or {0: ""}
    elif known:
        entry.msgstr = known.msgstr
    if known:
        entry.tcomment = known.tcomment
        entry.flags = [flag for flag in known.flags if flag == "fuzzy"]
    if "%(" in text or "%(" in message.plural:
        entry.flags.append("python-format")
    # No line numbers: they would change with every edit.
    entry.occurrences = [(name, "") for name in message.files]
    return entry


if __name__ == "__main__":
    sys.exit(main())
