"""Error text for people and rows: clean, bounded, and never itself the cause of an error."""

import traceback

TEXT_LIMIT = 2_000  # characters of a last_error
TRACEBACK_LIMIT = 20_000


def describe(error: BaseException) -> str:
    """One cleaned line or paragraph for ``last_error``; NUL is not storable in PostgreSQL."""
    text = _text_of(error)
    return clean(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def words_of(error: BaseException) -> str:
    """The error's own text alone, cleaned, for people; its name if it has no text."""
    return clean(_text_of(error)) or describe(error)


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # noqa: BLE001  whatever its text raises, the error still needs a row
        return "(its text could not be made)"


def traceback_of(error: BaseException) -> str:
    try:
        # The end of a traceback says what happened; a huge message must not be built twice.
        text = "".join(traceback.format_tb(error.__traceback__)) + describe(error)
    except Exception:  # noqa: BLE001  as above
        text = "(its traceback could not be made)"
    return clean(text, TRACEBACK_LIMIT, keep_end=True)


def clean(text: str, limit: int = TEXT_LIMIT, keep_end: bool = False) -> str:
    if len(text) > limit:
        text = "…" + text[-limit + 1 :] if keep_end else text[: limit - 1] + "…"
    # Lone surrogates cannot be encoded, NUL cannot be stored.
    return text.replace("\0", "�").encode("utf-8", "replace").decode()
