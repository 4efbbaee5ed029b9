from .chores import ChoreAdmin
from .dispatcher import DispatcherStatusAdmin
from .ledger import BackgroundTaskAdmin
from .rows import CappedPaginator, Forgiving, Outcome, ReadOnly, each_row

__all__ = [
    "BackgroundTaskAdmin",
    "CappedPaginator",
    "ChoreAdmin",
    "DispatcherStatusAdmin",
    "Forgiving",
    "Outcome",
    "ReadOnly",
    "each_row",
]
