from .chunk import ExportChunk
from .export import Export, pairs, readable

__all__ = ["Export", "ExportChunk", "pairs", "readable"]
