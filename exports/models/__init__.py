from .choices import Delimiter, FileFormat, RowKind
from .chunk import ExportChunk
from .export import Export

__all__ = ["Delimiter", "Export", "ExportChunk", "FileFormat", "RowKind"]
