from django.urls import path

from exports.schedules import views

urlpatterns = [
    path("", views.schedule_list, name="export_schedule_list"),
    path("new/", views.schedule_new, name="export_schedule_new"),
    path("<int:pk>/edit/", views.schedule_edit, name="export_schedule_edit"),
    path("<int:pk>/<slug:verb>/", views.schedule_verb, name="export_schedule_verb"),
]
