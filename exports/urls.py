from django.urls import include, path

from exports import dialog, views
from exports.download import export_download

urlpatterns = [
    path("exports/", views.export_list, name="export_list"),
    path("exports/schedules/", include("exports.schedules.urls")),
    path("exports/new/", dialog.export_new, name="export_new"),
    path("exports/<int:pk>/", views.export_detail, name="export_detail"),
    path("exports/<int:pk>/download/", export_download, name="export_download"),
    path("exports/<int:pk>/retry/", views.export_retry, name="export_retry"),
    path("exports/<int:pk>/cancel/", views.export_cancel, name="export_cancel"),
    path("exports/<int:pk>/discard/", views.export_discard, name="export_discard"),
]
