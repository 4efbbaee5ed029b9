"""What a request for an export says: its parameters, of people and of programs."""

import json

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.http import HttpRequest, QueryDict
from django.utils.translation import gettext as _

# Parameters of the request that are no filters of the ticket list.
OF_THE_FILE = ("row_kind", "columns", "format", "delimiter", "time_zone")
OF_THE_PAGE = ("csrfmiddlewaretoken", "key", "announced_rows", "shown_kind", "selected")


def parameters_of(request: HttpRequest) -> QueryDict:
    """The request's parameters from its address and body; the body's win, name by name.

    A JSON body is an object of the same names, with texts, numbers or lists of them as values.

    Raises:
        ValidationError: a body that is not such an object.
    """
    parameters = request.GET.copy()
    if request.content_type == "application/json":
        body = _json_body(request)
    else:
        body = dict(request.POST.lists())
    for name, values in body.items():
        parameters.setlist(name, values)
    return parameters


def _json_body(request: HttpRequest) -> dict[str, list[str]]:
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError) as error:
        raise ValidationError(_("The body is not JSON.")) from error
    if not isinstance(body, dict):
        raise ValidationError(_("The body is not a JSON object."))
    lists = {
        name: value if isinstance(value, list) else [value]
        for name, value in body.items()
        if value is not None
    }
    for name, values in lists.items():
        if not all(isinstance(value, str | int) for value in values):
            raise ValidationError(
                _("“%(name)s” must be a text, a number or a list of them.") % {"name": name[:100]}
            )
    return {name: [_encodable(str(value)) for value in values] for name, values in lists.items()}


def _encodable(text: str) -> str:
    """JSON can name half of a character, which no page can show and no database can hold."""
    return text.encode("utf-8", "replace").decode()


def filters_in(parameters: QueryDict) -> QueryDict:
    """The list's parameters among these."""
    filters = parameters.copy()
    for name in OF_THE_FILE + OF_THE_PAGE:
        filters.pop(name, None)
    return filters


def readable(errors) -> list[str]:
    """The messages of a form's errors for programs, each with its parameter's name."""
    return [
        text if name == NON_FIELD_ERRORS else f"{name}: {text}"
        for name, texts in errors.items()
        for text in map(str, texts)
    ]
