"""The parts of bench/soak.py; also a Django app, so that every process of a soak has its kinds.

======================= =========================================================
stage.py, members.py    services, web, workers and beats, each started again when it ends
monkey.py               kills, freezes and restarts them
client.py               a person at the real web; says which answers were lost
tickets.py              load and check of due dates and reminders
exports.py              load and check of exports
mails.py                the mail server, and the check of what it received
orders.py               load and check of the soak's own kinds, one effect row per run
ledger.py               what must hold for every task; how long recoveries took
======================= =========================================================
"""
