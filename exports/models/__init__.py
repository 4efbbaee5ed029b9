from .choices import Delimiter, FileFormat, RowKind
from .chunk import ExportChunk
from .export import Export
from .limiting import LimitReached
from .recurring import Rhythm
from .remembered import RememberedChoices
from .schedule import ScheduledExport

__all__ = [
    "Delimiter",
    "Export",
    "ExportChunk",
    "FileFormat",
    "LimitReached",
    "RememberedChoices",
    "Rhythm",
    "RowKind",
    "ScheduledExport",
]
