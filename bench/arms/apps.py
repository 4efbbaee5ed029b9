from django.apps import AppConfig


class BenchConfig(AppConfig):
    name = "bench.arms"
    label = "bench"

    def ready(self):
        from bench.arms import ours  # noqa: F401  registers its kind
