"""An administrator makes a study in the browser, from an empty form to a draft in review."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.e2e
DEMO = Path(__file__).parents[2] / "mobility" / "demo"


@pytest.mark.parametrize("width", [1440, 390])
def test_from_an_empty_form_to_a_draft_in_review(site, extract, sign_in, width):
    page = sign_in("administrator")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site.address}/administrator/")
    held = []

    def hold(route):
        held.append(route)

    page.route("**/create_study.*.js", hold)
    page.get_by_role("link", name="Create a study").click(no_wait_after=True)
    text = page.locator("#study-text")

    page.get_by_label("Name", exact=True).first.fill(f"Spring fair {width}")
    page.keyboard.press("Tab")
    held[0].continue_()  # typed before the script ran
    expect(page.get_by_label("Short name").first).to_have_value(f"spring-fair-{width}")
    assert page.evaluate("document.activeElement.id") == "id-study.slug"  # the answer took no focus away
    page.get_by_label("First day").fill("2017-05-31")

    page.set_input_files("#sample-file", extract[0])
    expect(page.get_by_label("Subscriber column")).to_have_value("msisdn", timeout=20_000)
    page.set_input_files("#cells-file", DEMO / "cells.csv")
    expect(page.get_by_label("Name of the cell file")).to_have_value("cells.csv")
    page.set_input_files("#zones-file", DEMO / "zones.geojson")
    expect(page.locator("#area-map")).to_contain_text("62 cells, 10 zones.", timeout=20_000)
    expect(page.locator("#area-map .shapelayer path").first).to_be_visible()
    expect(page.locator("#area-map text").filter(has_text="Vosges")).to_be_visible()

    page.get_by_role("button", name="Add gender as an indicator").press("Enter")
    expect(page.get_by_role("group", name="Values in the sample").get_by_label("NR")).to_be_checked()
    page.get_by_role("group", name="Values in the sample").get_by_label("NR").uncheck()
    with page.expect_response("**/create/"):
        page.get_by_label("Number of days").fill("5")
        page.get_by_label("Number of days").press("Tab")
        page.get_by_role("button", name="Add a daily indicator").hover()
        page.mouse.down()
    page.mouse.up()  # the answer came between, and did not take the button away
    daily = page.locator(".indicator").last
    expect(daily.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("Night zone")
    page.keyboard.press("Tab")
    expect(daily.get_by_label("Short name")).to_have_value("night-zone")
    daily.get_by_label("Value computed from a day's events").select_option("night_zone")

    text.fill(text.input_value().replace("epsilon = 1", "epsilon = 0.8 # as agreed"))
    expect(page.get_by_label("Epsilon", exact=True)).to_have_value("0.8")
    page.get_by_label("Number of days").fill("99")
    page.get_by_role("button", name="Check and create draft").click()
    expect(page.locator("#step-about .field--bad")).to_contain_text("from 1 to 62, got 99")
    page.get_by_label("Number of days").fill("7")
    page.get_by_role("button", name="Check and create draft").click()
    page.get_by_role("button", name="Request review").click()
    expect(page.locator("h1")).to_contain_text("waiting for review")
    expect(page.locator("main")).to_contain_text("Night zone")
