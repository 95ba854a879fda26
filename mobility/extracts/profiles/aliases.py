"""Names that columns have in the files of mobile networks and registers, for proposals."""

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# In each role the better ones first: FlowKit, 3GPP TS 32.298, TAP, multimno, scikit-mobility, bandicoot.
ROLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "subscriber": (
            "msisdn", "servedMSISDN", "subscriber", "subscriber_id", "imsi", "servedIMSI", "caller_id",
            "user_id", "uid", "person_id", "customer_id", "client_id", "calling_number",
            "calling_party_number", "phone_number", "mobile_number", "numero", "caller",
            "abonne", "id_abonne", "numero_abonne", "n_abonne", "n°_abonne", "no_abonne", "numero_d_abonne",
            "identifiant_abonne", "subscriber_number", "numero_de_telephone", "numero_telephone",
            "n_telephone", "n_de_telephone", "telephone_number", "telephone", "phone", "user", "customer",
            "client", "identifiant", "id",
        ),
        "timestamp": (
            "timestamp", "datetime", "recordOpeningTime", "startTime", "changeTime", "localTimeStamp",
            "call_start_ts", "event_time", "event_timestamp", "call_datetime", "date_time", "time",
            "horodatage", "date_heure", "date_et_heure", "heure_evenement", "date_evenement", "event_date",
            "zeitstempel", "fecha_hora", "date",
        ),
        "cell": (
            "cell_id", "location_id", "cellIdentifier", "antenna_id", "first_cell_id", "cell", "cgi", "ecgi",
            "ncgi", "cell_global_id", "cell_code", "site_id", "antenna", "cellule", "id_cellule",
            "identifiant_cellule", "identifiant_de_cellule", "identifiant_de_la_cellule", "code_cellule",
            "numero_cellule", "antenne", "id_antenne",
            "zelle", "celda",
        ),
    }
)  # fmt: skip
# Columns of the country of a person's operator.
OPERATORS: Final = ("mcc", "mobile_country_code", "plmn", "home_plmn", "mcc_mnc", "operator", "operateur")
# Devices distinguish people as well as subscribers do.
IDENTIFIERS: Final = (
    *ROLES["subscriber"],
    "imei",
    "imeisv",
    "servedIMEI",
    "servedIMEISV",
    "tac",
    "iccid",
)
# An indicator that is called like one of a group is looked for under all of its names.
ATTRIBUTES: Final[tuple[tuple[str, ...], ...]] = (
    ("gender", "sex", "sexe", "genre", "sexo", "geschlecht", "civilite"),
    (
        "age", "age_band", "age_group", "age_range", "age_class", "tranche_age", "tranche_d_age", "alter",
        "edad",
        "birth_year", "year_of_birth", "yob", "annee_naissance", "annee_de_naissance", "geburtsjahr",
        "birth_date", "birthdate", "date_of_birth", "dob", "date_naissance", "date_de_naissance",
        "geburtsdatum",
    ),
    (
        "region", "region_of_residence", "home_region", "province", "county", "state", "departement",
        "department",
        "postcode", "postal_code", "zip", "zip_code", "code_postal", "cp", "plz", "insee", "commune",
    ),
    ("origin", "origine", "provenance", "home"),
    ("visitor_category", "category", "categorie", "customer_type", "client_type"),
)  # fmt: skip


def plain(name: str) -> str:
    """A name without case, accents, blanks and signs."""
    letters = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in letters if letter.isalnum() and not unicodedata.combining(letter))


def attribute_names(*names: str) -> list[str]:
    """Plain names under which an indicator may be found that is called `names`; its own first."""
    own = [plain(name) for name in names if name]
    groups = [[plain(name) for name in group] for group in ATTRIBUTES]
    more = [name for group in groups if set(own) & set(group) for name in group]
    return list(dict.fromkeys([*own, *more]))
