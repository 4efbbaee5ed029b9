"""TeamDesk's own settings with one more app, which brings the kind of the benchmark."""

from teamdesk.settings import *  # noqa: F403
from teamdesk.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench.arms"]
