"""What a person reads or hears of a page of HTML."""

from html.parser import HTMLParser

SPOKEN = {"alt", "aria-label", "aria-description", "placeholder", "title"}
# Texts that a script shows later.
SPOKEN |= {"data-announcement", "data-failed", "data-offline", "data-one", "data-many"}


class VisibleTexts(HTMLParser):
    """``VisibleTexts(html).texts``: texts and spoken attributes, stripped, none empty."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self._silent = ""
        self.feed(html)
        self.close()

    def _add(self, text):
        if text.strip():
            self.texts.append(" ".join(text.split()))

    def handle_starttag(self, tag, attrs):
        if tag in {"script", "style"}:
            self._silent = tag
        attributes = {name: value or "" for name, value in attrs}
        for name in SPOKEN & attributes.keys():
            self._add(attributes[name])
        if tag == "input" and attributes.get("type") in {"button", "reset", "submit"}:
            self._add(attributes.get("value", ""))

    def handle_endtag(self, tag):
        if tag == self._silent:
            self._silent = ""

    def handle_data(self, data):
        if not self._silent:
            self._add(data)
