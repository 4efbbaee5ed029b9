from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ("exports", "0003_remembered_choices"),
        ("tasks", "0002_initial"),
    ]

    operations = [
        # Readers: the limit of exports under way (models/limiting.py) and their turns (turns.py). Made
        # here and not in the ledger's model, which knows nothing of exports. A row of another kind
        # is not in it, so nothing else pays for it.
        migrations.RunSQL(
            "CREATE INDEX exports_live ON tasks_backgroundtask (owner_id, status, run_at)"
            " WHERE kind = 'EXPORT' AND status IN ('WAITING', 'RUNNING')",
            "DROP INDEX exports_live",
        ),
    ]
