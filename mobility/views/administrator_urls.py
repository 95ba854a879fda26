app_name = "administrator"
urlpatterns: list[object] = []
