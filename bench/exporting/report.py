"""The tables at the end, and whether the targets are met."""

import sys
from collections.abc import Iterator

from bench.exporting import download, requests
from bench.exporting.files import COPY, CSV, IMPORT_EXPORT, LIBPQ, OPENPYXL, OURS, memory, seconds
from bench.measuring import Book, Target, table


def show(book: Book, sizes: list[int]) -> None:
    say = sys.stdout.write
    for metric in book.metrics():
        if metric in ("lost", "doubled"):
            continue
        ours = requests.ACCEPTED if metric in (requests.MEDIAN, requests.P95) else OURS
        lines = table(book, metric, ours=ours, higher_is_better=metric == download.SPEED)
        say("\n" + "\n".join(lines) + "\n")
    say("\n" + "\n".join(_per_row(book, sizes)) + "\n\n")
    for target in targets(book, sizes):
        say(f"{target}\n")
    lost, doubled = book.total("lost"), book.total("doubled")
    say(f"\nIn all rounds {lost:.0f} rows or bytes were lost, {doubled:.0f} rows doubled.\n")
    if book.failures:
        say(f"Rounds that failed: {', '.join(book.failures)}\n")


def _per_row(book: Book, sizes: list[int]) -> list[str]:
    """The slope: what a row costs in files of each size."""
    lines = [
        f"| µs a row | {' | '.join(f'{size:,}' for size in sizes)} |",
        f"|---|{'---:|' * len(sizes)}",
    ]
    for arm in (OURS, COPY, LIBPQ, CSV):
        figures = [_median(book, arm, seconds(size)) for size in sizes]
        cells = [
            f"{figure / size * 1e6:.2f}" if figure else ""
            for figure, size in zip(figures, sizes, strict=True)
        ]
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return lines


def targets(book: Book, sizes: list[int]) -> Iterator[Target]:
    """Those that could be measured."""
    largest, middle = sizes[-1], sizes[len(sizes) // 2]

    def ratio(one: str, other: str, metric: str) -> float | None:
        top, bottom = _median(book, one, metric), _median(book, other, metric)
        return top / bottom if top and bottom else None

    if value := ratio(OURS, COPY, seconds(largest)):
        yield Target(f"{largest:,} tickets, ours : raw COPY", value, 3.5)
    for peer, size, limit in ((CSV, largest, 3), (IMPORT_EXPORT, middle, 10)):
        if value := ratio(peer, OURS, seconds(size)):
            yield Target(f"{size:,} tickets, {peer} : ours", value, limit, at_least=True)
    if value := ratio(OPENPYXL, OURS, seconds(middle, is_workbook=True)):
        yield Target(f"{middle:,} tickets as XLSX, {OPENPYXL} : ours", value, 1.5, at_least=True)
    for size in sizes[1:]:
        one, other = _median(book, OURS, seconds(size)), _median(book, OURS, seconds(sizes[0]))
        if one and other:
            slope = (one / size) / (other / sizes[0])
            yield Target(f"a row of {size:,} tickets : of {sizes[0]:,}", slope, 1.2)
    for metric in [memory(size) for size in sizes] + [memory(middle, is_workbook=True)]:
        if (value := _median(book, OURS, metric)) is not None:
            yield Target(metric, value, 50, unit=" MB")
    if value := _median(book, OURS, download.SPEED):
        yield Target(download.SPEED, value, 150, at_least=True, unit=" MB/s")
    if (value := _median(book, OURS, download.MEMORY)) is not None:
        yield Target(download.MEMORY, value, 20, unit=" MB")
    if value := ratio(requests.ACCEPTED, requests.PLAIN, requests.P95):
        yield Target(f"p95, {requests.ACCEPTED} : {requests.PLAIN}", value, 2)


def _median(book: Book, arm: str, metric: str) -> float | None:
    series = book.get(arm, metric)
    return series.median if series else None
