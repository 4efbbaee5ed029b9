"""The invented world of ``manage.py seed_demo``: who works there, what they are asked, and when."""
