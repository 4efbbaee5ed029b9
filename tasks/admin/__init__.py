from .dispatcher import DispatcherStatusAdmin
from .ledger import BackgroundTaskAdmin
from .rows import CappedPaginator, Forgiving, Outcome, ReadOnly, each_row

__all__ = [
    "BackgroundTaskAdmin",
    "CappedPaginator",
    "DispatcherStatusAdmin",
    "Forgiving",
    "Outcome",
    "ReadOnly",
    "each_row",
]
