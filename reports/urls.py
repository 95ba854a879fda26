"""Addresses of the analyst zone. A file name has a dot, so it cannot be the slug of an indicator."""

from collections.abc import Callable

from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, re_path

from reports.boards import views as boards
from reports.compare import views as compare
from reports.dpia import views as dpia
from reports.exports import events as event_downloads
from reports.exports import forecasts as forecast_downloads
from reports.exports import smoothed as smoothed_downloads
from reports.exports import views as downloads
from reports.exports.boards import views as board_downloads
from reports.exports.findings import classes as class_downloads
from reports.exports.findings import crosstabs as crosstab_downloads
from reports.exports.findings import extrapolation as extrapolation_downloads
from reports.exports.findings import flows as flow_downloads
from reports.exports.findings import means as means_downloads
from reports.exports.findings import models as model_downloads
from reports.exports.findings import numbers as number_downloads
from reports.exports.findings import visited as visited_downloads
from reports.exports.places import views as place_downloads
from reports.exports.presence import views as slot_downloads
from reports.maps import density_views as density
from reports.maps import layer_views as map_layers
from reports.maps import views as maps
from reports.movement import views as movement
from reports.pages import (
    crosstab,
    crosstab_model,
    crowd_limits,
    days,
    flows,
    forecast,
    indicator,
    notes,
    presence,
    scenario,
    studies,
    visited,
)
from reports.privacy.statement import views as statement
from reports.questions import views as questions
from reports.sharing import boards as shared_boards
from reports.sharing import digest_views

app_name = "reports"


def file(address: str, view: Callable[..., HttpResponseBase], *, name: str) -> URLPattern:
    """A file of a study; a format has the ending that its files have, and `reports.exports.formats.choosing`
    says which ones make sense where."""
    ending = r"(?P<file_format>[a-z]+(?:\.(?:csv|json))?)"
    return re_path(rf"^(?P<slug>[-\w]+)/{address}\.{ending}$", view, name=name)


INDICATOR = r"(?P<indicator_slug>[-\w]+)"
urlpatterns = [
    path("", studies.studies, name="studies"),
    path("<slug:slug>/", studies.study, name="study"),
    file("export", downloads.download_study, name="study_file"),
    path("<slug:slug>/boards/", boards.boards, name="boards"),
    path("<slug:slug>/boards/<int:board_id>/", boards.board, name="board"),
    file(r"boards/(?P<board_id>[0-9]{1,18})/board", board_downloads.download_board, name="board_file"),
    path("<slug:slug>/boards/<int:board_id>/change/", boards.change, name="change_board"),
    path("<slug:slug>/boards/<int:board_id>/digest/", digest_views.digest, name="board_digest"),
    path("<slug:slug>/boards/<int:board_id>/remove/", shared_boards.remove, name="remove_board"),
    path("<slug:slug>/notes/", notes.notes, name="notes"),
    path("<slug:slug>/notes/<int:note_id>/remove/", notes.remove, name="remove_note"),
    path("<slug:slug>/maps/", density.location_maps, name="maps"),
    path("<slug:slug>/maps/days.json", density.location_days, name="maps_days"),
    path("<slug:slug>/maps/layers/", map_layers.layers, name="map_layers"),
    path("<slug:slug>/maps/compute/", density.compute, name="maps_compute"),
    path("<slug:slug>/maps/state/", density.state, name="maps_state"),
    file("maps/(?P<content>[a-z]+)", place_downloads.download_places, name="maps_file"),
    path("<slug:slug>/presence/", presence.slots, name="presence"),
    path("<slug:slug>/presence/slots.json", presence.frames, name="presence_frames"),
    file("presence", slot_downloads.download_presence, name="presence_file"),
    path("<slug:slug>/presence/forecast/", forecast.slots, name="presence_forecast"),
    path("<slug:slug>/presence/limits/", crowd_limits.limits, name="crowd_limits"),
    file("presence/forecast", forecast_downloads.download_slots, name="presence_forecast_file"),
    path("<slug:slug>/forecast/", forecast.days, name="forecast"),
    path("<slug:slug>/forecast/compute/", forecast.ask, name="ask_forecast"),
    file("forecast", forecast_downloads.download_days, name="forecast_file"),
    path("<slug:slug>/scenario/", scenario.scenario, name="scenario_study"),
    file("scenario", downloads.download_scenario, name="scenario_study_file"),
    path("<slug:slug>/crosstab/", crosstab.crosstab, name="crosstab"),
    path("<slug:slug>/crosstab/model/", crosstab_model.crosstab_model, name="crosstab_model"),
    file("crosstab/model", model_downloads.download_model, name="crosstab_model_file"),
    file("crosstab/selection", crosstab_downloads.download_selection, name="crosstab_selection_file"),
    file("crosstab", crosstab_downloads.download_crosstab, name="crosstab_file"),
    path("<slug:slug>/flows/visited/", visited.visited, name="visited"),
    file("flows/visited", visited_downloads.download_visited, name="visited_file"),
    path("<slug:slug>/flows/", flows.flows, name="flows"),
    file("flows", flow_downloads.download_flows, name="flows_file"),
    path("<slug:slug>/questions/", questions.questions, name="questions"),
    path("<slug:slug>/statement/", statement.statement, name="statement"),
    path("<slug:slug>/dpia/", dpia.dpia, name="dpia"),
    re_path(r"^(?P<slug>[-\w]+)/dpia\.(?P<ending>md|pdf)$", dpia.download, name="dpia_file"),
    path("<slug:slug>/bundle.zip", downloads.download_bundle, name="bundle"),
    path("<slug:slug>/population.zip", downloads.download_population, name="population"),
    path("<slug:slug>/statement.json", downloads.download_statement, name="statement_file"),
    path("<slug:slug>/<slug:indicator_slug>/", indicator.indicator, name="indicator"),
    file(f"{INDICATOR}/export", downloads.download_window, name="indicator_file"),
    path("<slug:slug>/<slug:indicator_slug>/days/", days.days, name="days"),
    path("<slug:slug>/<slug:indicator_slug>/map.json", maps.map_days, name="map_days"),
    path("<slug:slug>/<slug:indicator_slug>/compare/", compare.comparison, name="compare"),
    path("<slug:slug>/<slug:indicator_slug>/movement/", movement.movements, name="movement"),
    path("<slug:slug>/<slug:indicator_slug>/forecast/", forecast.days, name="forecast_indicator"),
    file(f"{INDICATOR}/forecast", forecast_downloads.download_days, name="forecast_indicator_file"),
    path("<slug:slug>/<slug:indicator_slug>/scenario/", scenario.scenario, name="scenario"),
    file(f"{INDICATOR}/days", downloads.download_days, name="days_file"),
    file(f"{INDICATOR}/periods", event_downloads.download_periods, name="periods_file"),
    file(f"{INDICATOR}/next-period", forecast_downloads.download_events, name="next_period_file"),
    file(f"{INDICATOR}/smoothed", smoothed_downloads.download_smoothed, name="smoothed_file"),
    file(f"{INDICATOR}/compare", downloads.download_comparison, name="compare_file"),
    file(
        f"{INDICATOR}/extrapolation",
        extrapolation_downloads.download_extrapolation,
        name="extrapolation_file",
    ),
    file(f"{INDICATOR}/classes", class_downloads.download_classes, name="classes_file"),
    file(f"{INDICATOR}/means", means_downloads.download_means, name="means_file"),
    file(f"{INDICATOR}/number", number_downloads.download_number, name="number_file"),
    file(f"{INDICATOR}/movement", downloads.download_movement, name="movement_file"),
    file(f"{INDICATOR}/scenario", downloads.download_scenario, name="scenario_file"),
]
