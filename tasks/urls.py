from django.urls import path

from tasks.operations import views

urlpatterns = [
    path("operations/", views.operations, name="operations"),
    path("operations/group/", views.operations_group, name="operations_group"),
    path("operations/tasks/<int:pk>/", views.operations_task, name="operations_task"),
    *(
        path(
            f"operations/tasks/<int:pk>/{verb}/",
            views.operations_verb,
            {"verb": verb},
            name=f"operations_{verb}",
        )
        for verb in ("retry", "cancel")
    ),
]
