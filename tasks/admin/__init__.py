from .dispatcher import DispatcherStatusAdmin
from .ledger import BackgroundTaskAdmin
from .rows import CappedPaginator, Outcome, ReadOnly, each_row

__all__ = [
    "BackgroundTaskAdmin",
    "CappedPaginator",
    "DispatcherStatusAdmin",
    "Outcome",
    "ReadOnly",
    "each_row",
]
