"""The formats of the file. Each turns the rows of a snapshot into bytes, a block at a time."""

from exports.models import FileFormat

from . import compressed, delimited, json_lines, workbook
from .source import Block, Source

__all__ = ["BLOCKS_OF", "Block", "Source"]

BLOCKS_OF = {
    FileFormat.CSV: delimited.blocks,
    FileFormat.CSV_GZ: compressed.blocks,
    FileFormat.XLSX: workbook.blocks,
    FileFormat.JSONL: json_lines.blocks,
}
