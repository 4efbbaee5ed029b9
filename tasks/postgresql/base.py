from django.db.backends.postgresql import base

from tasks.patience import PatientConnection


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params):
        connection = super().get_new_connection(conn_params)
        # Django calls psycopg.connect and offers no other class. Before any statement: a receiver
        # of connection_created would leave those that set up the session unguarded.
        connection.__class__ = PatientConnection
        return connection
