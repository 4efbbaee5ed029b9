"""Every text has its Chinese, and nothing people read is left in English by oversight."""

import ast
import gettext
import io
import re

import polib
import pytest
from django.apps import apps
from django.template.base import Lexer, TokenType
from django.utils import translation
from django.utils.functional import Promise

from tests import translations
from tests.visible import VisibleTexts

CHINESE = re.compile(r"[\u4e00-\u9fff]")
WORD = re.compile(r"[A-Za-z]{2,}")
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]|\{\w*\}")
OURS = ("teamdesk", "tasks", "tickets", "exports")


@pytest.fixture(scope="module")
def catalogue():
    return polib.pofile(str(translations.CATALOGUE))


def test_it_holds_what_is_said_and_nothing_else(catalogue):
    said = {key: message.plural for key, message in translations.used().items()}
    held = {translations.key_of(entry): entry.msgid_plural for entry in catalogue}
    assert held == said, "bin/messages brings the catalogue up to date"
    assert len(catalogue) == len(held)


def test_everything_is_translated(catalogue):
    assert [entry.msgid for entry in catalogue if not entry.translated()] == []
    # An obsolete entry would be compiled no more, a fuzzy one is a guess.
    assert [entry.msgid for entry in catalogue if entry.obsolete or entry.fuzzy] == []


def test_each_translation_fills_in_the_same_values(catalogue):
    def values(text):
        return sorted(PLACEHOLDER.findall(text))

    # A singular may leave the number out, the Chinese never can: it has one form for all.
    wrong = [
        entry.msgid
        for entry in catalogue
        for text in _translations(entry)
        if values(text) != values(entry.msgid_plural or entry.msgid)
    ]
    assert wrong == []


def test_translations_are_chinese_and_end_as_their_originals_do(catalogue):
    # Only a mark between two other texts.
    without_words = {"by %(name)s"}
    wrong = []
    for entry in catalogue:
        for text in _translations(entry):
            if not CHINESE.search(text) and entry.msgid not in without_words:
                wrong.append(text)
            for english, chinese in ((".", "。"), ("…", "…")):
                if entry.msgid.endswith(english) != text.endswith(chinese):
                    wrong.append(text)
            if entry.msgid.endswith(":") and not text.endswith(":"):
                wrong.append(text)
            # Latin punctuation after a Chinese character.
            if re.search(r"[\u4e00-\u9fff][,.;!?](?!\w)", text):
                wrong.append(text)
    assert wrong == []


def test_what_is_compiled_is_what_is_written(catalogue):
    compiled = gettext.GNUTranslations(io.BytesIO(translations.COMPILED.read_bytes()))
    written = gettext.GNUTranslations(io.BytesIO(catalogue.to_binary()))
    assert compiled._catalog == written._catalog, "bin/messages compiles it"


def test_templates_say_nothing_untranslated():
    names = {"TeamDesk"}  # of the product
    bare = []
    for path in translations.templates():
        page, literals = _skeleton(path.read_text())
        for text in VisibleTexts(page).texts + literals:
            if any(word not in names for word in WORD.findall(text)):
                bare.append(f"{path.relative_to(translations.ROOT)}: {text}")
    assert bare == []


def test_python_says_nothing_untranslated():
    bare = []
    for path in translations.sources():
        # Commands and the launcher speak to operators, in English like the logs.
        is_program = "commands" in path.parts or path.name == "launcher.py"
        if path.suffix == ".py" and not is_program:
            for line, text in _said_bare(ast.parse(path.read_text())):
                bare.append(f"{path.relative_to(translations.ROOT)}:{line}: {text}")
    assert bare == []


def test_models_fields_and_choices_have_chinese_names():
    english = []
    with translation.override("zh-hans"):
        for model in (model for name in OURS for model in apps.get_app_config(name).get_models()):
            options = model._meta
            if options.label == "exports.ExportChunk":  # no page shows one
                continue
            named = {"": options.verbose_name, "plural": options.verbose_name_plural}
            for field in options.concrete_fields + options.many_to_many:
                if field.editable and not field.primary_key:
                    named[field.name] = field.verbose_name
                    named |= {f"{field.name} {key}": label for key, label in field.choices or ()}
            english += [
                f"{options.label} {name}: {text}"
                for name, text in named.items()
                if isinstance(text, Promise | str) and not CHINESE.search(str(text))
            ]
    assert english == []


def _translations(entry) -> list[str]:
    return list(entry.msgstr_plural.values()) or [entry.msgstr]


def _skeleton(template: str) -> tuple[str, list[str]]:
    """A template's own HTML, without what is translated; and texts that its tags hand on."""
    html, literals, skipping = [], [], ""
    for token in Lexer(template).tokenize():
        name = token.contents.split(" ", 1)[0] if token.token_type == TokenType.BLOCK else ""
        if skipping:
            skipping = "" if name == skipping else skipping
        elif name in {"blocktranslate", "blocktrans", "comment"}:
            skipping = f"end{name}"
        elif token.contents == "block wide":  # a class of the page
            skipping = "endblock"
        elif token.token_type == TokenType.TEXT:
            html.append(token.contents)
        elif name not in {"translate", "trans"} and token.token_type != TokenType.COMMENT:
            html.append(" ")
            untranslated = re.sub(r'_\("[^"]*"\)', "", token.contents)
            # Names, classes and states are one word or small; a text is neither.
            literals += [
                text
                for text in re.findall(r'"([^"]*)"', untranslated)
                if re.match(r"[A-Z][a-z]|\w+ [^-]*$", text)
            ]
    return "".join(html), literals


SPEAKING_CALLS = {"ValidationError", "PermissionDenied", "json_error"}
SPEAKING_METHODS = {f"messages.{level}" for level in ("success", "error", "info", "warning")}
SPEAKING_ARGUMENTS = {"description", "empty_label", "help_text", "label", "verbose_name"}


def _said_bare(tree):
    """English literals where a person would read them: line and text."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        arguments = [word.value for word in call.keywords if word.arg in SPEAKING_ARGUMENTS]
        if isinstance(call.func, ast.Name) and call.func.id in SPEAKING_CALLS:
            arguments += call.args[:1]
        if ast.unparse(call.func) in SPEAKING_METHODS:
            arguments += call.args[1:2]
        for argument in arguments:
            is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            if isinstance(argument, ast.JoinedStr) or (is_text and WORD.search(argument.value)):
                yield argument.lineno, ast.unparse(argument)
