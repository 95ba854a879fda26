"""Colours of the style sheet can be told apart, in the light scheme and in the dark one (WCAG 2.2)."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "static"
STYLES = (STATIC / "css/app.css").read_text()
LIGHT_PART, DARK_PART = STYLES.split("@media (prefers-color-scheme: dark)", 1)
SCHEMES = [
    pytest.param(dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", part)), id=name)
    for name, part in (("light", LIGHT_PART), ("dark", DARK_PART.split("\n}\n", 1)[0]))
]
TEXTS = [
    *((text, "--bg") for text in ("--text", "--muted", "--accent")),
    *((text, "--surface") for text in ("--text", "--muted", "--accent")),
    *((text, "--surface-2") for text in ("--text", "--muted", "--accent")),
    *((f"--{tone}", f"--{tone}-soft") for tone in ("ok", "warn", "bad", "accent")),
    *(("--text", f"--{tone}-soft") for tone in ("ok", "warn", "bad", "accent")),
    ("--on-accent", "--accent"),
    ("--on-accent", "--accent-hover"),
    ("--accent-hover", "--bg"),
    ("--bad", "--surface"),
]  # fmt: skip
SHAPES = [*(f"--chart-{place}" for place in range(1, 9)), "--border-strong", "--focus"]


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", SCHEMES)
@pytest.mark.parametrize(("text", "ground"), TEXTS)
def test_text_can_be_read(colours: dict[str, str], text: str, ground: str) -> None:
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("colours", SCHEMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_can_be_seen(colours: dict[str, str], shape: str) -> None:
    assert contrast(colours[shape], colours["--surface"]) >= 3


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_paper_has_the_light_colours() -> None:
    light = dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", LIGHT_PART))
    paper = re.findall(r"(--[\w-]+): (#[0-9a-f]{6});", (STATIC / "css/print.css").read_text())
    assert {"--text", "--chart-1", "--chart-8"} <= {name for name, _ in paper}
    for name, colour in paper:
        assert colour == ("#ffffff" if name == "--bg" else light[name]), name  # paper is white
