"""Visitor categories from home codes and operators' countries: residents, national and foreign tourists.

Source of the country codes: ITU, Operational Bulletin, list of mobile country or geographical area codes
(complement to Recommendation ITU-T E.212; 535 of Guam: bulletin 859, 1.V.2006); countries and areas by their
ISO 3166-1 code. Operators of Guam and the Northern Mariana Islands use codes of the United States, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.studyfile.problems import unknown
from reports.studies.studyfile.table import Table, text_problem

VISITOR_CATEGORY: Final = "visitor_category"
VISITOR_CATEGORIES: Final = ("Resident", "National tourist", "Foreign tourist")
VISITOR_CATEGORIES_FR: Final = ("Résident", "Touriste national", "Touriste étranger")
RESIDENT, NATIONAL, FOREIGN = range(3)
ORIGIN_KEYS: Final = ("operator_column", "home", "countries")
MAX_HOMES, LONGEST_HOME = 1000, 16
MCC_DIGITS: Final = 3
# Test networks, satellites and private networks: of no country.
NO_COUNTRY: Final = ("001", "901", "902", "991", "999")
_CODES: Final = """
AD213 AE424+430+431 AF412 AG344 AI365 AL276 AM283 AO631 AR722 AS544 AT232 AU505 AW363 AZ400 BA218 BB342 BD470
BE206 BF613 BG284 BH426 BI642 BJ616 BL340 BM350 BN528 BO736 BQ362 BR724 BS364 BT402 BW652 BY257 BZ702 CA302
CD630 CF623 CG629 CH228 CI612 CK548 CL730 CM624 CN460+461 CO732 CR712 CU368 CV625 CW362 CY280 CZ230 DE262
DJ638 DK238 DM366 DO370 DZ603 EC740 EE248 EG602 ER657 ES214 ET636 FI244 FJ542 FK750 FM550 FO288 FR208 GA628
GB234+235 GD352 GE282 GF340+742 GG234 GH620 GI266 GL290 GM607 GN611 GP340 GQ627 GR202 GT704 GU310+311+535
GW632 GY738 HK454 HN708 HR219 HT372 HU216 ID510 IE272 IL425 IM234 IN404+405+406 IQ418 IR432 IS274 IT222 JE234
JM338 JO416 JP440+441 KE639 KG437 KH456 KI545 KM654 KN356 KP467 KR450 KW419 KY346 KZ401 LA457 LB415 LC358
LI295 LK413 LR618 LS651 LT246 LU270 LV247 LY606 MA604 MC212 MD259 ME297 MF340 MG646 MH551 MK294 ML610 MM414
MN428 MO455 MP310+534 MQ340 MR609 MS354 MT278 MU617 MV472 MW650 MX334 MY502 MZ643 NA649 NC546 NE614 NG621
NI710 NL204 NO242 NP429 NR536 NU555 NZ530 OM422 PA714 PE716 PF547 PG537 PH515 PK410 PL260 PM308 PR330 PS425
PT268 PW552 PY744 QA427 RE647 RO226 RS220 RU250 RW635 SA420 SB540 SC633 SD634 SE240 SG525 SH658 SI293 SK231
SL619 SM292 SN608 SO637 SR746 SS659 ST626 SV706 SX362 SY417 SZ653 TC376 TD622 TG615 TH520 TJ436 TK554 TL514
TM438 TN605 TO539 TR286 TT374 TV553 TW466 TZ640 UA255 UG641 US310+311+312+313+314+315+316 UY748 UZ434 VA225
VC360 VE734 VG348 VI332 VN452 VU541 WF543 WS549 XK221 YE421 YT647 ZA655 ZM645 ZW648
"""


# Mobile country codes by ISO code; neighbours may share one.
COUNTRY_CODES: Final = {word[:2]: tuple(word[2:].split("+")) for word in _CODES.split()}


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginRule:
    """Rule of a visitor category; its `column` holds home codes.

    operator_column : column of the operator's country: a mobile country code, or a text that begins with one
        (the code of a network, an IMSI)
    home : beginnings of the home codes of the area, all of one length
    countries : ISO codes of the countries whose operators' subscribers are no foreigners
    """

    operator_column: str
    home: tuple[str, ...]
    countries: tuple[str, ...]

    @property
    def operators(self) -> dict[str, int | None]:
        """Category by mobile country code, NATIONAL for any of the countries; None of what has no country."""
        own = {code for country in self.countries for code in COUNTRY_CODES[country]}
        codes = (code for codes in COUNTRY_CODES.values() for code in codes)
        return {code: NATIONAL if code in own else FOREIGN for code in codes} | dict.fromkeys(NO_COUNTRY)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Self | None:
        """Rebuild a rule from plain values; None where there is none."""
        if data is None:
            return None
        texts = {key: tuple(data[key]) for key in ("home", "countries")}
        return cls(operator_column=data["operator_column"], **texts)


def read_origin(table: Table) -> OriginRule:
    """Read the keys of a visitor category."""
    home, countries = _texts(table, "home"), _texts(table, "countries")
    for place, code in enumerate(home, start=1):
        if problem := text_problem(code):  # a database would refuse NUL
            table.add(f"home[{place}]", problem, code)
        elif not code.isascii() or len(code) > LONGEST_HOME:
            table.add(
                f"home[{place}]",
                Reason(_("must have 1 to %(most)s ASCII characters"), most=LONGEST_HOME),
                code,
            )
    if len({len(code) for code in home}) > 1:
        table.add(
            "home",
            _("must be of one length: the leading characters of a home code that are compared"),
        )
    for place, country in enumerate(countries, start=1):
        if country not in COUNTRY_CODES:
            rule = unknown(country, known=sorted(COUNTRY_CODES), noun="ISO country code")
            table.add(f"countries[{place}]", rule)
    for code, others in _sharing(countries).items():
        text = _("must also list %(others)s: their operators may have mobile country code %(code)s, too")
        rule = Reason(text, others=", ".join(others), code=str(code))
        table.add("countries", rule, list(countries))
    return OriginRule(operator_column=table.text("operator_column"), home=home, countries=countries)


def _sharing(countries: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the countries that are missing in a list, by the code that they share with some of it."""
    own = {code for country in countries for code in COUNTRY_CODES.get(country, ())}
    missing = {
        code: [other for other, codes in COUNTRY_CODES.items() if code in codes and other not in countries]
        for code in sorted(own)
    }
    return {code: others for code, others in missing.items() if others}


def _texts(table: Table, key: str) -> tuple[str, ...]:
    values = table.raw(key)
    if values is None:
        return ()
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    if not is_list or not 1 <= len(values) <= MAX_HOMES or len(set(values)) < len(values):
        table.add(
            key,
            Reason(_("must be a list of 1 to %(most)s different texts"), most=str(MAX_HOMES)),
            str(values),
        )
        return ()
    return tuple(values)
