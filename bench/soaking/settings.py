"""TeamDesk's settings with the soak's own app beside its apps."""

from teamdesk.settings import *  # noqa: F403  a deployment's settings, every one
from teamdesk.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.soaking"]  # last: it changes the others' policies
