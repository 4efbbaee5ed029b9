from django.urls import path

from tickets.views import notifications, saved_views
from tickets.views.bulk import bulk_cancel, bulk_detail, bulk_new, bulk_retry
from tickets.views.columns import list_columns
from tickets.views.dashboard import dashboard
from tickets.views.detail import ticket_detail, ticket_pulse
from tickets.views.edit import ticket_edit
from tickets.views.list import ticket_list
from tickets.views.new import ticket_new
from tickets.views.verbs import ticket_verb

urlpatterns = [
    path("dashboard/", dashboard, name="dashboard"),
    path("tickets/", ticket_list, name="ticket_list"),
    path("tickets/new/", ticket_new, name="ticket_new"),
    path("tickets/columns/", list_columns, name="list_columns"),
    path("tickets/views/", saved_views.saved_view_list, name="saved_view_list"),
    path("tickets/views/new/", saved_views.saved_view_new, name="saved_view_new"),
    path("tickets/views/<int:pk>/edit/", saved_views.saved_view_edit, name="saved_view_edit"),
    path("tickets/views/<int:pk>/move/", saved_views.saved_view_move, name="saved_view_move"),
    path("tickets/views/<int:pk>/delete/", saved_views.saved_view_delete, name="saved_view_delete"),
    path("tickets/bulk/", bulk_new, name="bulk_new"),
    path("tickets/bulk/<int:pk>/", bulk_detail, name="bulk_detail"),
    path("tickets/bulk/<int:pk>/cancel/", bulk_cancel, name="bulk_cancel"),
    path("tickets/bulk/<int:pk>/retry/", bulk_retry, name="bulk_retry"),
    path("tickets/<int:pk>/", ticket_detail, name="ticket_detail"),
    path("tickets/<int:pk>/edit/", ticket_edit, name="ticket_edit"),
    path("tickets/<int:pk>/pulse/", ticket_pulse, name="ticket_pulse"),
    path("tickets/<int:pk>/<slug:verb>/", ticket_verb, name="ticket_verb"),
    path("notifications/", notifications.notification_list, name="notification_list"),
    path("notifications/badge/", notifications.notification_badge, name="notification_badge"),
    path("notifications/read/", notifications.notification_read_all, name="notification_read_all"),
    path("notifications/<int:pk>/open/", notifications.notification_open, name="notification_open"),
    path("notifications/<int:pk>/read/", notifications.notification_read, name="notification_read"),
]
