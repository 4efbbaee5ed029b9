"""``gunicorn --logger-class teamdesk.gunicorn.Logger``: its lines look like all others."""

import logging.config
import os

from gunicorn.glogging import Logger as GunicornsLogger


class Logger(GunicornsLogger):
    def setup(self, cfg):
        super().setup(cfg)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "teamdesk.settings")
        from django.conf import settings

        logging.config.dictConfig(settings.LOGGING)
        for log in (self.error_log, self.access_log):
            log.handlers = []
            log.propagate = True
