"""Models of a study, its area and its indicators."""

from datetime import date, timedelta
from typing import Any

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.functional import cached_property

from ldp.privacy.plans import MAX_DAYS, MAX_EVENT_DAYS
from reports.studies.geography.stored import GridMap
from reports.studies.names import category_names, in_language
from reports.studies.studyfile.category_shares import CategoryShares
from reports.studies.studyfile.definition import DEFAULT_POPULATION


class Study(models.Model):
    """One place over consecutive days; its days are numbered from 1."""

    class State(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed"

    class Units(models.TextChoices):
        """Counted units: people who may be there on several days, or events, each of one day."""

        VISITORS = "visitors"
        EVENTS = "events"

    slug = models.SlugField(unique=True, max_length=64)
    name = models.CharField(max_length=200)
    name_fr = models.CharField(  # noqa: DJ001 - SQLite adds a nullable column without losing the triggers
        max_length=200, null=True, blank=True, help_text="for pages in French; null = `name`"
    )
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    timezone = models.CharField(max_length=64)
    first_day = models.DateField()
    days = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(MAX_EVENT_DAYS)]
    )
    units = models.CharField(max_length=8, choices=Units, default=Units.VISITORS, help_text="what is counted")
    market_share = models.DecimalField(max_digits=9, decimal_places=8)
    category_shares = models.JSONField(
        null=True,
        blank=True,
        help_text="list of market shares by category; null = none",
    )
    classes = models.JSONField(
        null=True, blank=True, help_text="list of {slug, name, name_fr} in the order of the plan; null = none"
    )
    min_publication = models.PositiveIntegerField()
    small_cell = models.PositiveIntegerField(
        default=0, help_text="windows with fewer visitors are not shown; 0 = no such rule"
    )
    small_category = models.PositiveIntegerField(
        default=0, help_text="categories with fewer visitors are not shown; 0 = no such rule"
    )
    visitor_min_minutes = models.PositiveSmallIntegerField()
    visitor_from = models.TimeField()
    visitor_to = models.TimeField(help_text="inclusive: the whole minute counts")
    presence = models.JSONField(
        null=True,
        blank=True,
        help_text="ldp.PresenceSpec of the plan: totals are noisy; null = they are exact",
    )
    noisy_through = models.PositiveSmallIntegerField(
        default=0, help_text="with presence noise: the last day whose totals are here"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150, blank=True)
    is_demo = models.BooleanField(
        default=False, help_text="made-up people, written by `manage.py demo` alone: it can be removed"
    )
    population = models.SlugField(
        max_length=64,
        default=DEFAULT_POPULATION,
        help_text="the people: what studies of the same population reveal of a person adds up",
    )
    key_until = models.DateField(
        null=True, blank=True, help_text="day by which the study must be closed and its key destroyed"
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="since then its key is destroyed: no answer can be added"
    )

    class Meta:
        ordering = ["-first_day", "slug"]
        constraints = [
            models.CheckConstraint(
                name="study_closed_has_time",
                condition=Q(state="open", closed_at__isnull=True)
                | Q(state="closed", closed_at__isnull=False),
            ),
            models.CheckConstraint(
                name="study_days",
                condition=Q(days__gte=1, days__lte=MAX_DAYS)
                | Q(units="events", days__gte=1, days__lte=MAX_EVENT_DAYS),
            ),
            models.CheckConstraint(
                name="study_market_share", condition=Q(market_share__gt=0) & Q(market_share__lte=1)
            ),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def shown_name(self) -> str:
        """Name in the active language."""
        return in_language(self.name, self.name_fr)

    @property
    def shares_by_category(self) -> list[CategoryShares]:
        """Market shares by category of some indicators, in the order of their categories."""
        return [CategoryShares.from_json(each) for each in self.category_shares or ()]

    @property
    def shown_classes(self) -> list[str]:
        """Names of the classes of subscribers, in the active language."""
        return [in_language(each["name"], each["name_fr"]) for each in self.classes or ()]

    @property
    def of_events(self) -> bool:
        """Return whether each row is a unit, which is there on one day."""
        return self.units == self.Units.EVENTS

    @property
    def tally_shape(self) -> tuple[int, int]:
        """Shape of a gap tally; `ldp.estimation.tallies` explains them."""
        return (1 if self.of_events else self.days + 1), self.days + 1

    @property
    def is_key_overdue(self) -> bool:
        """Return whether the study should have been closed, and its key destroyed, before today."""
        until = self.key_until
        return self.state == self.State.OPEN and until is not None and until < timezone.localdate()

    @property
    def last_day(self) -> date:
        return self.date_of(self.days)

    def date_of(self, day: int) -> date:
        """Calendar date of study day `day` (1 = first)."""
        return self.first_day + timedelta(days=day - 1)

    def day_of(self, when: date) -> int:
        """Number of the study day of `when`; outside 1..days when it is not in the study."""
        return (when - self.first_day).days + 1


class AreaManager(models.Manager["Area"]):
    """Areas without shapes and grids, which may be megabytes: they are read where they are used."""

    def get_queryset(self) -> models.QuerySet["Area"]:
        return super().get_queryset().defer("geojson", "outlines", "layers", "grid_zones", "grid_land")


class Area(models.Model):
    """The zones of a study, for maps; absent when every cell belongs to the study. Cells stay in the vault.

    Positions of outlines and layers are [x, y] in metres of `projection`: maps are drawn without it.
    """

    study = models.OneToOneField(Study, on_delete=models.CASCADE, related_name="area")
    n_cells = models.PositiveIntegerField()
    zones = models.JSONField(default=list, help_text="names of the zones, in file order")
    zones_fr = models.JSONField(null=True, blank=True, help_text="the same in French; null = `zones`")
    geojson = models.JSONField(null=True, blank=True, help_text="zones (WGS 84), simplified for display")
    projection = models.CharField(max_length=200, blank=True, help_text="in metres, as PROJ reads it")
    outlines = models.JSONField(default=list, blank=True, help_text="the same zones: a list of rings each")
    layers = models.JSONField(default=list, blank=True, help_text="list of {name, kind, paths}")
    grid = models.JSONField(null=True, blank=True, help_text="of locations, as Grid.to_json writes it")
    grid_zones = models.BinaryField(null=True, help_text="zone of each square: GridMap of reports.geography")
    grid_land = models.BinaryField(null=True, help_text="squares where people may be: a bit each")
    grid_at_antennas = models.BooleanField(
        default=False, help_text="whether these are the squares of antennas, and not all land"
    )

    h3_resolution = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="of the hexagons by which files sum the squares; empty: no such files",
    )

    objects = AreaManager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="area_grid_whole",
                condition=Q(grid__isnull=True, grid_zones__isnull=True, grid_land__isnull=True)
                | Q(grid__isnull=False, grid_zones__isnull=False, grid_land__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"area of {self.study}"

    @cached_property
    def has_outlines(self) -> bool:
        """Return whether the shapes of zones are known; does not read them."""
        return Area.objects.filter(pk=self.pk).exclude(outlines=[]).exists()

    @property
    def zone_shapes(self) -> dict[str, dict[str, Any]]:
        """Geometry of each zone, as in GeoJSON."""
        features = (self.geojson or {}).get("features", [])
        return {feature["properties"]["zone"]: feature["geometry"] for feature in features}

    @property
    def shown_zones(self) -> list[str]:
        """Names of the zones in the active language."""
        return in_language(self.zones, self.zones_fr)

    @property
    def grid_map(self) -> GridMap | None:
        """Grid of locations, with zone and land of each square; None in a study without locations."""
        if self.grid is None or self.grid_zones is None or self.grid_land is None:
            return None
        return GridMap.from_fields(
            grid=self.grid,
            zones=bytes(self.grid_zones),
            land=bytes(self.grid_land),
            at_antennas=self.grid_at_antennas,
        )


class Indicator(models.Model):
    """One question about a visitor, with a public and fixed list of answers."""

    class Kind(models.TextChoices):
        STATIC = "static"
        DAILY = "daily"

    study = models.ForeignKey(Study, on_delete=models.CASCADE, related_name="indicators")
    position = models.PositiveSmallIntegerField(help_text="order in the study file, from 0")
    slug = models.SlugField(max_length=64)
    name = models.CharField(max_length=200)
    name_fr = models.CharField(  # noqa: DJ001 - SQLite adds a nullable column without losing the triggers
        max_length=200, null=True, blank=True, help_text="for pages in French; null = `name`"
    )
    kind = models.CharField(max_length=8, choices=Kind)
    categories = models.JSONField(help_text="list of names; the code of a category is its place")
    categories_fr = models.JSONField(
        null=True, blank=True, help_text="the same in French; null = `categories`"
    )
    groups = models.JSONField(
        null=True,
        blank=True,
        help_text="names of categories that reports add up, by name of their group",
    )
    protect = models.CharField(  # noqa: DJ001 - as `name_fr`
        max_length=16, null=True, blank=True, help_text="in_groups: answers tell the group; null = nothing"
    )
    max_values = models.PositiveSmallIntegerField(null=True, blank=True, help_text="daily: days answered")
    max_moves = models.PositiveSmallIntegerField(
        null=True, blank=True, help_text="moves: of a day, with their full weight; null = something else"
    )

    class Meta:
        ordering = ["study", "position"]
        constraints = [
            models.UniqueConstraint(fields=["study", "slug"], name="indicator_slug_once"),
            models.UniqueConstraint(fields=["study", "position"], name="indicator_position_once"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def shown_name(self) -> str:
        """Name in the active language."""
        return in_language(self.name, self.name_fr)

    @property
    def shown_categories(self) -> list[str]:
        """Names of the categories in the active language."""
        return category_names(self.categories, self.categories_fr)
