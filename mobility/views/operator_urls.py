app_name = "operator"
urlpatterns: list[object] = []
