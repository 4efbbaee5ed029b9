from .chores import ChoreAdmin
from .dispatcher import DispatcherStatusAdmin
from .ledger import BackgroundTaskAdmin
from .rows import BigTable, Forgiving, Outcome, ReadOnly, each_row

__all__ = [
    "BackgroundTaskAdmin",
    "BigTable",
    "ChoreAdmin",
    "DispatcherStatusAdmin",
    "Forgiving",
    "Outcome",
    "ReadOnly",
    "each_row",
]
