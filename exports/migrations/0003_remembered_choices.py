import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("exports", "0002_scheduled_exports"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RememberedChoices",
            fields=[
                ("person", models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="+", serialize=False, to=settings.AUTH_USER_MODEL, verbose_name="person")),
                ("columns", models.JSONField(blank=True, default=dict, verbose_name="columns")),
                ("file_format", models.CharField(blank=True, choices=[("csv", "CSV"), ("csv.gz", "CSV, compressed"), ("xlsx", "Excel workbook"), ("jsonl", "JSON Lines")], max_length=10, verbose_name="format")),
                ("delimiter", models.CharField(blank=True, choices=[(",", "comma"), (";", "semicolon"), ("\t", "tab")], max_length=1, verbose_name="delimiter")),
                ("time_zone", models.CharField(blank=True, max_length=64, verbose_name="time zone")),
            ],
            options={
                "verbose_name": "remembered choices",
                "verbose_name_plural": "remembered choices",
            },
        ),
    ]
