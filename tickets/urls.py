from django.urls import path

from tickets.views import detail, edit, list, new, notifications, verbs

urlpatterns = [
    path("tickets/", list.ticket_list, name="ticket_list"),
    path("tickets/new/", new.ticket_new, name="ticket_new"),
    path("tickets/<int:pk>/", detail.ticket_detail, name="ticket_detail"),
    path("tickets/<int:pk>/edit/", edit.ticket_edit, name="ticket_edit"),
    path("tickets/<int:pk>/pulse/", detail.ticket_pulse, name="ticket_pulse"),
    path("tickets/<int:pk>/<slug:verb>/", verbs.ticket_verb, name="ticket_verb"),
    path("notifications/", notifications.notification_list, name="notification_list"),
    path("notifications/badge/", notifications.notification_badge, name="notification_badge"),
    path("notifications/read/", notifications.notification_read_all, name="notification_read_all"),
    path("notifications/<int:pk>/open/", notifications.notification_open, name="notification_open"),
    path("notifications/<int:pk>/read/", notifications.notification_read, name="notification_read"),
]
