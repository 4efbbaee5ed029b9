"""The operations page: how the ledger is doing, what went wrong, and the verbs that mend it."""
