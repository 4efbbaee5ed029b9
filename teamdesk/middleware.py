"""A request's id, and each person's own language and time zone, for the length of a request."""

from django.utils import timezone, translation
from django.utils.cache import patch_cache_control

from tasks import correlation


class RequestIdMiddleware:
    """Gives every request an id: the one that a proxy or client sent as ``X-Request-ID``, if it is
    safe, or a new one. Log lines, the tasks it enqueues and the response carry it."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        chosen = correlation.accepted_or_new(request.headers.get("X-Request-ID", ""))
        request.request_id = chosen
        token = correlation.request_id.set(chosen)
        try:
            response = self.get_response(request)
        finally:
            correlation.request_id.reset(token)
        response["X-Request-ID"] = chosen
        return response


class PersonalSettingsMiddleware:
    """Activates the logged-in person's language and time zone. Without a language of their own it
    is the browser's, chosen by LocaleMiddleware. The next request chooses its language anew; the
    zone ends with this one."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        user = request.user
        if not user.is_authenticated:
            return self.get_response(request)
        request.user_id = user.pk  # for lines that Django logs after all middleware
        token = correlation.user_id.set(user.pk)
        try:
            response = self._answer(request, user)
        finally:
            correlation.user_id.reset(token)
        # What one person may see is nothing for a cache that others share.
        patch_cache_control(response, private=True)
        return response

    def _answer(self, request, user):
        with timezone.override(user.zone):
            if user.language and user.language != translation.get_language():
                translation.activate(user.language)
                request.LANGUAGE_CODE = translation.get_language()
            return self.get_response(request)
