"""What people write on a ticket."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Comment(models.Model):
    """``is_public``: a reply the requester may read; otherwise an internal note."""

    ticket = models.ForeignKey(
        "tickets.Ticket", models.CASCADE, related_name="comments", verbose_name=_("ticket")
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=_("author"),
    )
    author_text = models.CharField(_("author as it was"), max_length=200, blank=True, default="")
    body = models.TextField(_("text"))
    is_public = models.BooleanField(_("public"), default=True)
    created_at = models.DateTimeField(_("created"), db_default=Now())

    class Meta:
        verbose_name = _("comment")
        verbose_name_plural = _("comments")
        ordering = ["created_at", "id"]

    def __str__(self):
        return self.body[:60]
