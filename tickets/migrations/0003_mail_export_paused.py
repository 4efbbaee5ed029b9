from django.db import migrations, models


KINDS = [('reminder', 'reminder'), ('assigned', 'assigned to you'), ('commented', 'new comment'), ('export_ready', 'export ready'), ('export_paused', 'scheduled export paused')]


class Migration(migrations.Migration):

    dependencies = [
        ('tickets', '0002_mail'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='mail_export_paused',
            field=models.BooleanField(default=True, verbose_name='mail when a scheduled export of theirs is paused'),
        ),
        migrations.AlterField(
            model_name='maildelivery',
            name='kind',
            field=models.CharField(choices=KINDS, max_length=20, verbose_name='kind'),
        ),
        migrations.AlterField(
            model_name='notification',
            name='kind',
            field=models.CharField(choices=KINDS, max_length=20, verbose_name='kind'),
        ),
    ]
