from .chunk import ExportChunk
from .export import Export

__all__ = ["Export", "ExportChunk"]
