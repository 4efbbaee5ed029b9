"""Mail kept in files, one ``.eml`` each, which mail programs open: for development."""

import contextlib
import tempfile
import time
from pathlib import Path

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend


class EmailBackend(BaseEmailBackend):
    def __init__(self, *args, file_path=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.folder = Path(file_path or settings.EMAIL_FILE_PATH)

    def send_messages(self, email_messages):
        self.folder.mkdir(parents=True, exist_ok=True)
        for each in email_messages:
            self._keep(each)
        return len(email_messages)

    def _keep(self, each) -> None:
        """Whole or not at all: whoever watches the folder sees no half mail."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        to = "".join(c if c.isalnum() or c in "@.-_+" else "_" for c in ", ".join(each.to))[:100]
        with tempfile.NamedTemporaryFile(
            dir=self.folder, prefix=f"{stamp}-{to}-", suffix=".part", delete=False
        ) as part:
            try:
                part.write(each.message().as_bytes())
                part.flush()
                path = Path(part.name)
                path.chmod(0o644)
                path.rename(path.with_suffix(".eml"))
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(part.name).unlink()
                raise
