"""Visitor categories from home codes and operators' countries: residents, national and foreign tourists.

Source of the country codes: ITU, Operational Bulletin, list of mobile country or geographical area codes
(complement to Recommendation ITU-T E.212); countries and areas by their ISO 3166-1 code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from reports.studies.studyfile.problems import unknown
from reports.studies.studyfile.table import Table

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
AD 213 AE 424 430 431 AF 412 AG 344 AI 365 AL 276 AM 283 AO 631 AR 722 AS 544 AT 232 AU 505 AW 363 AZ 400
BA 218 BB 342 BD 470 BE 206 BF 613 BG 284 BH 426 BI 642 BJ 616 BL 340 BM 350 BN 528 BO 736 BQ 362 BR 724
BS 364 BT 402 BW 652 BY 257 BZ 702 CA 302 CD 630 CF 623 CG 629 CH 228 CI 612 CK 548 CL 730 CM 624
CN 460 461 CO 732 CR 712 CU 368 CV 625 CW 362 CY 280 CZ 230 DE 262 DJ 638 DK 238 DM 366 DO 370 DZ 603
EC 740 EE 248 EG 602 ER 657 ES 214 ET 636 FI 244 FJ 542 FK 750 FM 550 FO 288 FR 208 GA 628
GB 234 235 GD 352 GE 282 GF 340 742 GG 234 GH 620 GI 266 GL 290 GM 607 GN 611 GP 340 GQ 627 GR 202 GT 704
GU 310 311 GW 632 GY 738 HK 454 HN 708 HR 219 HT 372 HU 216 ID 510 IE 272 IL 425 IM 234 IN 404 405 406
IQ 418 IR 432 IS 274 IT 222 JE 234 JM 338 JO 416 JP 440 441 KE 639 KG 437 KH 456 KI 545 KM 654 KN 356
KP 467 KR 450 KW 419 KY 346 KZ 401 LA 457 LB 415 LC 358 LI 295 LK 413 LR 618 LS 651 LT 246 LU 270 LV 247
LY 606 MA 604 MC 212 MD 259 ME 297 MF 340 MG 646 MH 551 MK 294 ML 610 MM 414 MN 428 MO 455 MP 310 MQ 340
MR 609 MS 354 MT 278 MU 617 MV 472 MW 650 MX 334 MY 502 MZ 643 NA 649 NC 546 NE 614 NG 621 NI 710 NL 204
NO 242 NP 429 NR 536 NU 555 NZ 530 OM 422 PA 714 PE 716 PF 547 PG 537 PH 515 PK 410 PL 260 PM 308 PR 330
PS 425 PT 268 PW 552 PY 744 QA 427 RE 647 RO 226 RS 220 RU 250 RW 635 SA 420 SB 540 SC 633 SD 634 SE 240
SG 525 SH 658 SI 293 SK 231 SL 619 SM 292 SN 608 SO 637 SR 746 SS 659 ST 626 SV 706 SX 362 SY 417 SZ 653
TC 376 TD 622 TG 615 TH 520 TJ 436 TK 554 TL 514 TM 438 TN 605 TO 539 TR 286 TT 374 TV 553 TW 466 TZ 640
UA 255 UG 641 US 310 311 312 313 314 315 316 UY 748 UZ 434 VA 225 VC 360 VE 734 VG 348 VI 332 VN 452 VU 541
WF 543 WS 549 XK 221 YE 421 YT 647 ZA 655 ZM 645 ZW 648
"""


def _by_country(words: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    country = ""
    for word in words:
        if word.isdecimal():
            found[country] += (word,)
        else:
            country = word
            found[country] = ()
    return found


# Mobile country codes by ISO code; neighbours may share one.
COUNTRY_CODES: Final = _by_country(_CODES.split())


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
        if not code.isascii() or code.strip() != code or not 1 <= len(code) <= LONGEST_HOME:
            table.add(f"home[{place}]", f"must have 1 to {LONGEST_HOME} ASCII characters", code)
    if len({len(code) for code in home}) > 1:
        table.add("home", "must be of one length: the leading characters of a home code that are compared")
    for place, country in enumerate(countries, start=1):
        if country not in COUNTRY_CODES:
            rule = unknown(country, known=sorted(COUNTRY_CODES), noun="ISO country code")
            table.add(f"countries[{place}]", rule)
    return OriginRule(operator_column=table.text("operator_column"), home=home, countries=countries)


def _texts(table: Table, key: str) -> tuple[str, ...]:
    values = table.raw(key)
    if values is None:
        return ()
    is_list = isinstance(values, list) and all(isinstance(each, str) for each in values)
    if not is_list or not 1 <= len(values) <= MAX_HOMES or len(set(values)) < len(values):
        table.add(key, f"must be a list of 1 to {MAX_HOMES} different texts", str(values))
        return ()
    return tuple(values)
